"""Messages in a tree: those that lead to the current one."""

from trajscore import io
from trajscore.io._message_trees import beside_path, find_tree


def test_trees_of_messages(write):
    """Of a tree, as ChatGPT exports it, the messages that lead to the current one count."""

    def node(key, parent, role, text):
        content = {"content_type": "text", "parts": [text]}
        author = {"role": role, "name": None}
        message = {"id": key, "author": author, "content": content, "create_time": 1.0}
        return {"id": key, "parent": parent, "children": [], "message": message}

    nodes = [node("a", "root", "user", "Hi"), node("b", "a", "assistant", "No"),
             node("c", "a", "assistant", "Yes")]  # fmt: skip
    tree = {"root": {"id": "root", "parent": None, "message": None}} | {n["id"]: n for n in nodes}
    record = {"title": "t", "mapping": tree, "current_node": "c", "conversation_id": "r"}
    ring = {**tree, "root": tree["root"] | {"parent": "c"}}
    for log in (record, {**record, "mapping": ring}, {k: record[k] for k in ("mapping", "title")}):
        (run,) = io.read_runs(write("conversations.json", [log]))
        assert [(s.actor, s.text) for s in run.steps] == [("user", "Hi"), ("agent", "Yes")]
        assert run.extra["n_left_out"] == {"other branch": 1}
    (run,) = io.read_runs(write("one.json", [record | {"current_node": "b"}]))
    assert (run.id, run.steps[-1].text) == ("r", "No")


def node(parent, text="x", **message):
    return {"parent": parent, "message": {"content": {"parts": [text]}, "role": "user"} | message}


def test_the_path_to_a_node():
    tree = {"a": node(None, "1"), "b": node("a", "2"), "c": node("a", "3"), "d": node("b", "4")}

    def texts(**fields):
        messages, names = find_tree({"x": 1, "tree": tree} | fields)
        assert names == {"tree"}
        return [message["content"] for message in messages]

    assert texts() == ["1", "2", "4"]  # the last one that has none after it
    assert texts(current_node="c") == ["1", "3"]
    assert texts(current_node="a") == ["1"]
    assert texts(current_node="gone") == texts(current_node=None) == []
    assert find_tree({"tree": tree | {"e": {"parent": "a"}}}) == ([], set())
    assert find_tree({"tree": {}, "n": [tree]}) == ([], set())


def test_a_message_of_a_tree_has_its_role_and_its_text():
    def own(**message):
        (found,), _ = find_tree({"tree": {"a": node(None, **message)}})
        return found["role"], found["content"]

    assert own() == ("user", "x")
    assert own(author={"role": "assistant"}) == ("assistant", "x")
    assert own(author={"role": ""}) == ("user", "x")
    assert own(content={"parts": ["a", "b"]}) == ("user", "a\nb")
    assert own(content={"parts": []}) == ("user", "")
    pictures = {"parts": ["a", {"image": 1}]}
    assert own(content=pictures) == ("user", pictures)


def test_messages_beside_the_path_are_counted():
    tree = {"root": {"message": None, "parent": None}, "a": node("root"), "b": node("root")}
    for n, left in ((0, 2), (1, 1), (2, 0), (3, 0)):
        expected = {"n_left_out": {"other branch": left}} if left else {}
        assert beside_path({"tree": tree, "other": tree}, {"tree"}, n) == expected
    assert beside_path({"messages": [1]}, {"messages"}, 0) == {}
