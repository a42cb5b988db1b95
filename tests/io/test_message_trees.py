"""Messages in a tree: those that lead to the current one."""

from trajscore import io


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
