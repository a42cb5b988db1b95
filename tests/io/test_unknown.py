"""JSON that no format recognises: what is nearest, and how its parts are named."""

import json
import re
import shutil
import subprocess

import pytest

from trajscore import io
from trajscore.core.errors import ArgumentError
from trajscore.io._unknown import (
    _are_codes,
    _is_actor,
    _may_be_roles,
    _rank_of_id,
    _wrapper,
    guess_parts,
    json_text_field,
    side_by_side,
    unknown_json,
    what_instead,
)
from trajscore.io.registry import detect_log

FORMATS = {"a": ("spans", "x", "y"), "b": ("runs", "z")}


def said(**more):
    return [{"say": "one two"} | more] * 2


def turns(n=3):
    return [{"author": "bot", "say": f"Step {k} of the plan."} for k in range(n)]


@pytest.mark.parametrize(
    ("record", "parts"),
    [
        ({"events": turns()}, {"steps": "events", "text": "say", "actor": "author"}),
        ({"runs": [{"events": turns()}]},
         {"steps": "runs.events", "text": "say", "actor": "author"}),
        ({"a": {"b": [{"c": {"body": "I see."}}]}}, {"steps": "a.b", "text": "c.body"}),
        ({"conv": "c", "event": {"body": "long text", "who": "bot"}},
         {"text": "event.body", "actor": "event.who"}),
        ({"meta": [{"id": "a long identifier"}], "steps": turns()},
         {"steps": "steps", "text": "say", "actor": "author"}),
        ({"x": [1, 2], "y": 3}, {}),
        ({"id": "a b", "model": "some model"}, {}),  # not what somebody says
        ({"request": {"messages": turns()}}, {}),  # what was asked
        ({"43": {"say": "one two"}}, {}),  # a name that is an id
        ({"say": "one two", "agent_version": "1.0"}, {"text": "say"}),
        # what the agent was asked or sees, and labels, are not what it says
        ({"system": {"text": "You help people."}}, {}),
        ({"session": 1, "queryText": "Where is it?", "replies": [{"text": ["It is here."]}]},
         {"text": "replies.0.text.0"}),
        ({"a": [{"observation": {"text": "A long page."}}, {"raw": "I click it."}]},
         {"steps": "a", "text": "raw"}),
        ({"data": {"lastNode": "AI Agent"}}, {}),
        ({"data": {"lastNode": "The agent at the end"}}, {"text": "data.lastNode"}),
        # who speaks, in an object of its own
        ({"a": said(author={"type": "bot", "name": "Fin"})},
         {"steps": "a", "text": "say", "actor": "author.type"}),
        # one step within a record that names its session is the record's
        ({"session": "s", "a": said()[:1]}, {"text": "a.0.say"}),
        ({"session": "s", "a": said()}, {"steps": "a", "text": "say"}),
        ({}, {}),
    ],
)  # fmt: skip
def test_parts_that_are_proposed(record, parts):
    assert guess_parts(record) == parts


def test_the_nearest_format_is_named(tmp_path):
    error = unknown_json(tmp_path / "a.json", {"x": 1, "y": 2}, FORMATS)
    assert "nearest is a, for 'x', 'y', but there is no 'spans'; name it with format" in str(error)
    error = unknown_json(tmp_path / "a.json", {"x": 1}, FORMATS)
    assert "nearest is" not in str(error)
    assert str(error).endswith("one of a, b")


def followed(error):
    """Return the arguments that an error proposes."""
    named = re.findall(r"\b(id|fields)='([^']*)'", str(error))
    assert named
    return dict(named)


@pytest.mark.parametrize(
    ("name", "data", "ids"),
    [
        (
            "a.json",
            {"version": 2, "runs": [{"id": k, "events": turns()} for k in "ab"]},
            ["a", "b"],
        ),
        ("a.json", [{"id": k, "trace": {"nodes": turns()}} for k in "ab"], ["a", "b"]),
        ("a.json", {"events": turns()}, ["a-0"]),
        ("a.jsonl", [{"conv": k, "event": step} for k in "ab" for step in turns()], ["a", "b"]),
        ("a.jsonl", [{"event": step} for step in turns()], ["a"]),
    ],
)
def test_what_an_error_proposes_reads_the_log(write, name, data, ids):
    path = write(name, data, lines=name.endswith("l"))
    with pytest.raises(ValueError, match="the format is not known"):
        detect_log(path)
    with pytest.raises(ValueError, match="[Tt]he format is not known") as error:
        io.read_runs(path)
    runs = io.read_runs(path, **followed(error.value))
    assert [run.id for run in runs] == ids
    assert [[step.text for step in run.steps] for run in runs] == [
        [step["say"] for step in turns()] for _ in ids
    ]


def test_lines_that_look_like_steps_and_hold_nothing_are_asked_about(write):
    lines = [{"run_id": k, "event": step} for k in "ab" for step in turns()]
    path = write("a.jsonl", lines, lines=True)
    with pytest.raises(ValueError, match="can be read as jsonl.*The format is not known") as error:
        io.read_runs(path)
    assert len(io.read_runs(path, **followed(error.value))) == 2


def nested(value, *names):
    for name in reversed(names):
        value = {name: value}
    return value


@pytest.mark.parametrize(
    ("record", "parts"),
    [
        # lists below four names, and texts below four within a step, are not searched
        (nested(said(), *"wxyz"), {"steps": "w.x.y.z", "text": "say"}),
        (nested(said(), *"vwxyz"), {}),
        (nested("one two", *"wxyz", "say"), {"text": "w.x.y.z.say"}),
        (nested("one two", *"vwxyz", "say"), {}),
        # the first 20 items of a list are looked at
        ({"a": [1] * 19 + said()}, {"steps": "a", "text": "say"}),
        ({"a": [1] * 20 + said()}, {}),
        # texts are words in at least half of the steps
        ({"a": [{"x": "one two"}, {"x": "one"}]}, {"steps": "a", "text": "x"}),
        ({"a": [{"x": "one two"}, {"x": "one"}, {"x": " two "}]}, {}),
        ({"a": [{"x": "one two"}, {"x": " "}, {"x": 3}]}, {"steps": "a", "text": "x"}),
        # a list with a usual name of texts goes before a longer one, and that before a shorter one
        ({"a": said(), "b": [{"x": "one two"}] * 3}, {"steps": "a", "text": "say"}),
        ({"a": [{"x": "one two"}] * 2, "b": [{"y": "one two"}] * 3}, {"steps": "b", "text": "y"}),
        # a usual name of texts goes before a longer text, and that before a shorter one
        ({"a": [{"say": "a b", "x": "one two three"}]}, {"steps": "a", "text": "say"}),
        ({"a": [{"x": "a b", "y": "one two three"}]}, {"steps": "a", "text": "y"}),
        # the actor has the shortest path, and a name
        ({"a": said(who="bot", meta={"author": "x"})},
         {"steps": "a", "text": "say", "actor": "who"}),
        ({"a": said(sender="bot", author="bot")},
         {"steps": "a", "text": "say", "actor": "author"}),
        ({"a": said(who="b" * 40)}, {"steps": "a", "text": "say", "actor": "who"}),
        ({"a": said(who="b" * 41)}, {"steps": "a", "text": "say"}),
        ({"a": said(who="a/b")}, {"steps": "a", "text": "say"}),
        # of several runs by their ids, the first is looked at
        ({"r1": {"a": said()}, "r2": {"b": said()}}, {"steps": "a", "text": "say"}),
        ({"r1": {"a": said()}}, {"steps": "r1.a", "text": "say"}),
        # requests, and objects whose names are data
        ({"a": said(config={"who": "bot"})}, {"steps": "a", "text": "say"}),
        ({"a": {"8f-1": said()}}, {}),
        ([], {}),
    ],
)  # fmt: skip
def test_parts_by_their_names_and_places(record, parts):
    assert guess_parts(record or {}) == parts


def test_twelve_fields_are_shown(tmp_path):
    record = dict.fromkeys("abcdefghijklmn", 1)
    error = unknown_json(tmp_path / "a.json", record, FORMATS)
    assert "(the fields of the JSON are 'a', 'b', " in str(error)
    assert "'l')" in str(error)
    assert "the fields of" not in str(unknown_json(tmp_path / "a.json", {}, FORMATS))


def test_an_error_says_what_went_wrong_first(tmp_path):
    error = unknown_json(tmp_path / "a.json", {"x": 1}, FORMATS, "nothing can be read")
    assert "a.json: nothing can be read. The format is not known" in str(error)
    error = unknown_json(tmp_path / "a.json", {"spans": 1, "x": 1, "y": 2}, FORMATS)
    assert "nearest is a, for 'spans', 'x', 'y', but there is no list of runs" in str(error)


def test_an_id_is_proposed_where_lines_are_steps(tmp_path):
    def fields(record):
        return str(unknown_json(tmp_path / "a.json", record, FORMATS))

    text = {"say": "one two"}
    assert "id='conv'" in fields({"conv": "c", "event": text})
    assert "id='conv_key'" in fields({"note": "x", "conv_key": 7, "event": text})
    assert "id=" not in fields({"run_id": "c", "conv": "c", "event": text})  # a usual name
    assert "id=" not in fields({"conv": "c", "a": [text]})
    assert "id=" not in fields({"conv": [1], "event": text})


STATE = "messages_to_dict(graph.get_state(config).values['messages'])"


@pytest.mark.parametrize(
    ("item", "start"),
    [
        (["updates", {}], f"holds what several streams of LangGraph gave; save {STATE} as JSON"),
        ([[], []], "holds what several streams of LangGraph gave"),
        (["updates", {}, 1], None),
        (["updates", "x"], None),
        (["other", {}], None),
        ([{"x": 1}, {"new_agent": 1, "type": 2}], "holds events of OpenAI's Agents SDK"),
        ([{"x": 1}, {}, {"new_agent": 1, "type": 2}], None),
        ({"new_agent": 1}, None),
        ({"langgraph_step": 1, "langgraph_node": "a", "x": 2}, "holds pieces of messages"),
        ({"step": 1, "timestamp": 2, "type": "t", "payload": {}}, "holds events that LangGraph"),
        ({"step": 1, "timestamp": 2, "type": "t", "payload": "text"}, None),
        (3, None),
    ],
)
def test_what_to_save_instead(item, start):
    text = what_instead(item)
    assert text is None if start is None else text.startswith(start)


PIECE = {"id": "c", "choices": [{"delta": {"content": "In"}}]}


@pytest.mark.parametrize(
    ("record", "words"),
    [
        (PIECE, "pieces of answers as a model streams them"),
        ({"type": "message_start", "message": {}}, "pieces of answers"),
        ({"type": "response.created", "sequence_number": 0}, "pieces of answers"),
        (
            {"timestamp": 1, "message": '{"run": 1}'},
            "as JSON text in 'message'; write them",
        ),
        ({"events": [{"message": '{"run": 1}'}]}, "JSON text in 'message'"),
        ({"op_name": "op", "trace_id": "t", "inputs": {}}, "calls of Weave"),
        (["r0", 1, 0.5], "rows without the names of their columns"),
        ({"role": "user", "message": '{"run": 1}'}, None),
        ({"choices": [{"message": {"role": "assistant"}}]}, None),
        ({"timestamp": 1, "message": "[INFO] ready"}, None),
    ],
)
def test_records_that_are_kept_otherwise(record, words):
    text = what_instead(record)
    assert text is None if words is None else words in text


def test_several_answers_a_record(write):
    samples = [{"completion": f"It is {k} here", "passed": k} for k in range(2)]
    record = {"task_id": "t", "prompt": "Why is it?", "samples": samples}
    with pytest.raises(ArgumentError, match=r"jq -c 'del\(.samples\) \+ .samples\[\]'"):
        io.read_runs(write("samples.jsonl", [record], lines=True))
    own = {k: v for k, v in record.items() if k != "samples"}
    runs = io.read_runs(write("runs.jsonl", [own | sample for sample in samples], lines=True))
    assert [(run.task, run.outcome, len(run.steps)) for run in runs] == [("t", 0, 2), ("t", 1, 2)]


def test_parts_in_another_script():
    record = {"编号": "a", "消息": [{"角色": "用户", "内容": "请完成任务"},
                                {"角色": "助手", "内容": "答案是四十二"}]}  # fmt: skip
    assert guess_parts(record) == {"steps": "消息", "text": "内容", "actor": "角色"}


@pytest.mark.parametrize(
    ("record", "parts"),
    [
        ({"answer": {"talks": [turns()]}},
         {"steps": "answer.talks.0", "text": "say", "actor": "author"}),
        ({"turns_": [{"message": {"text": f"Do it, {k}!"}, "response": [{"value": f"I do {k}."}]}
                     for k in range(3)]},
         {"steps": "turns_", "text": "response.0.value"}),
        ({"talk": [{"type": k % 2 + 1, "text": f"Words {k} of it"} for k in range(4)]},
         {"steps": "talk", "text": "text", "actor": "type"}),
        ({"talk": [{"type": k, "text": f"Words {k} of it"} for k in range(4)]},
         {"steps": "talk", "text": "text"}),
        ({"history": [{"out": {"next_goal": "Open the page."}, "result": [{"seen": "a b"}]},
                      {"out": {"next_goal": "To the end"}, "done": "It is done, at last."}]},
         {"steps": "history", "text": "out.next_goal"}),
        ({"$props": {"said": "Some words"}}, {"text": "$props.said"}),
    ],
)  # fmt: skip
def test_parts_of_what_the_agent_says(record, parts):
    assert guess_parts(record) == parts


def test_lists_of_rows_are_written_one_a_line(write):
    path = write("a.json", {"rows": [{"row": {"a": 1}}], "partial": False})
    with pytest.raises(ArgumentError, match=r"jq -c '.*\[\"rows\"\]\? .*' \S+ > rows\.jsonl"):
        io.read_runs(path)


def test_who_speaks_by_number(write):
    talk = [{"type": k % 2, "text": f"Words {k} of it"} for k in range(4)]
    path = write("a.json", {"id": "r", "talk": talk})
    fields = {"steps": "talk", "text": "text", "actor": "type"}
    (run,) = io.read_runs(path, fields=fields, roles={"0": "user", "1": "agent"})
    assert [step.actor for step in run.steps] == ["user", "agent"] * 2


def test_steps_without_a_role_are_counted(write):
    steps = [{"role": "user", "text": "Hi"}, {"text": "Yes"}, {"role": "agent", "text": "No"}]
    lines = [{"run_id": "r", **step} for step in steps]
    for path in (write("a.jsonl", lines, lines=True), write("b.json", [{"id": 1, "steps": steps}])):
        notes = io.read_runs(path, format="jsonl").notes
        assert "1 turn without a role, where others have one, taken as the agent's" in notes
    bare = [{"run_id": "r", "text": "Yes"}, {"run_id": "r", "text": "No"}]
    assert io.read_runs(write("c.jsonl", bare, lines=True)).notes == []


def chat(answer):
    return [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": answer}]


def typed(error, folder):
    """Run the command that an error gives in a folder, and return what it wrote."""
    command, name = re.search(r", (jq .*), and give (\w+\.jsonl)", str(error)).groups()
    if shutil.which("jq") is None:
        pytest.skip("needs jq")
    subprocess.run(command, shell=True, check=True, cwd=folder)
    return folder / name


@pytest.mark.parametrize("lines", [True, False])
def test_conversations_side_by_side_are_runs(write, tmp_path, lines):
    pairs = [
        {"id": k, "winner": winner, "chat_a": chat("One."), "chat_b": chat("Two.")}
        for k, winner in enumerate(["model_a", "model_b", "tie"])
    ]
    path = write("a.jsonl" if lines else "a.json", pairs, lines=lines)
    with pytest.raises(ValueError, match="several conversations, 'chat_a', 'chat_b'") as error:
        detect_log(path)
    runs = io.read_runs(typed(error.value, tmp_path), outcome="won")
    assert [run.id for run in runs] == ["0-a", "0-b", "1-a", "1-b", "2-a", "2-b"]
    assert [run.outcome for run in runs] == [1, 0, 0, 1, -1, -1]
    assert [run.steps[-1].text for run in runs] == ["One.", "Two."] * 3


def test_calls_under_names_of_their_own_are_written_out(write, tmp_path):
    talk = [*chat("One."), {"role": "user", "content": "Go on"}]
    sides = [(talk[:1], talk[1:2]), (talk, chat("Two.")[1:])]
    events = [
        {"event": "x", "properties": {"$trace_id": run, "$input": asked, "$output": answer}}
        for run in "ab"
        for asked, answer in sides
    ]
    with pytest.raises(ValueError, match="a call of a model, from '.input' to '.output'") as error:
        detect_log(write("a.json", events))
    runs = io.read_runs(typed(error.value, tmp_path))
    assert [run.id for run in runs] == ["a", "b"]
    assert [[step.text for step in run.steps] for run in runs] == [
        ["Hi", "One.", "Go on", "Two."]
    ] * 2


@pytest.mark.parametrize(
    "record",
    [
        {},
        {"a": chat("x")},
        {"a": chat("x"), "b": [1]},
        {"a": {"a": chat("x")}, "b": {"b": chat("x")}},
    ],
)
def test_one_conversation_has_none_beside_it(tmp_path, record):
    assert side_by_side(tmp_path, record) == ""


def test_rows_are_taken_out_of_what_is_around_each_of_them(write, tmp_path):
    rows = [{"run_id": f"r{k}", "step": 1, "confidence": 0.5, "success": k} for k in range(2)]
    around = [{"row_idx": k, "row": row, "truncated": []} for k, row in enumerate(rows)]
    with pytest.raises(ValueError, match="if its 'rows' are runs") as error:
        io.read_runs(write("a.json", {"features": [{}], "rows": around}))
    path = typed(error.value.args[0].replace(", or name it", " "), tmp_path)
    assert [json.loads(line) for line in path.read_text().splitlines()] == rows


def test_a_question_and_its_answer_may_be_a_run(write):
    rows = [{"input": "Where is it?", "output": "Here.", "score": k, "step": 10} for k in range(2)]
    path = write("a.jsonl", rows, lines=True)
    with pytest.raises(ArgumentError, match="a text 'input' and a text 'output'.*'openai'"):
        detect_log(path)
    runs = io.read_runs(path, format="openai", outcome="score")
    assert [(len(run.steps), run.outcome) for run in runs] == [(2, 0), (2, 1)]
    for more in ({"id": 1}, {"confidence": 0.5}, {"correct": 1}):
        assert detect_log(write("b.jsonl", [row | more for row in rows], lines=True)) is None


def test_the_id_of_a_step_is_what_several_share(tmp_path):
    text = {"say": "one two three"}
    for names, own in (
        (("task_name", "kickoff_id"), "kickoff_id"),
        (("reply_id", "session"), "session"),
        (("task_key", "conv"), "task_key"),
    ):
        error = unknown_json(tmp_path / "a.json", dict.fromkeys(names, "x") | text, FORMATS)
        assert f"id='{own}'" in str(error)


def test_the_record_with_most_steps_is_looked_at(write):
    lines = [{"session": k, "events": turns(1 + (k == "b"))} for k in "ab"]
    with pytest.raises(ArgumentError) as error:
        detect_log(write("a.jsonl", lines, lines=True))
    assert followed(error.value)["fields"].startswith("steps=events")


def test_what_is_seen_between_two_turns_is_observed(write):
    steps = [{"observation": {"text": "Page 1"}}, {"raw": "I click it."}]
    path = write("a.json", [{"id": k, "trajectory": steps * 2} for k in "ab"])
    runs = io.read_runs(path, fields="steps=trajectory,text=raw")
    assert [[step.text for step in run.steps] for run in runs] == [["I click it."] * 2] * 2
    assert [step.observation for step in runs[0].steps] == ["Page 1", None]
    assert runs.notes[0].startswith("4 results of a tool without its call")


def test_the_command_for_calls_under_other_names():
    record = {
        "trace_id": "t", "session": "s", "n": {"request": chat("a")[:1], "answer": chat("a")[1:]},
    }  # fmt: skip
    select = """jq -c '.. | objects | select(has("request") and has("answer")) |"""
    call = (
        """input: .["request"], output: .["answer"]}' a.json > calls.jsonl, and give calls.jsonl"""
    )
    start = "each record is a call of a model, from 'request' to 'answer'; write the calls out, "
    assert side_by_side("a.json", record) == f"{start}{select} {{{call}"
    named = {"trace_id": "t", "session": "s", **record["n"]}
    own = """session_id: .["trace_id"], """
    assert side_by_side("a.json", named) == f"{start}{select} {{{own}{call}"


@pytest.mark.parametrize(
    ("names", "sides", "start"),
    [
        (("chat_a", "chat_b"), ("a", "b"), "chat_"),
        (("left", "right"), ("left", "right"), ""),
        (("x_a", "y_b"), ("x_a", "y_b"), ""),
        (("input", "output_1", "output_2"), ("input", "output_1", "output_2"), ""),
    ],
)
def test_the_command_for_several_conversations(names, sides, start):
    chats = {name: chat("a") for name in names}
    there = " and ".join(f'has("{name}")' for name in names)
    listed = ", ".join(f'"{side}"' for side in sides)
    others = ", ".join(f'.["{name}"]' for name in names)
    own = f'side: $side, messages: .["{start}" + $side]'
    decided = f"""if test("_({"|".join(sides)})$") then endswith("_" + $side) else null end"""
    for fields, more in (
        ({}, ""),
        ({"run_id": 3, "id": 4}, """, "run_id": "\\(.["run_id"])-\\($side)\""""),
        ({"by": f"model_{sides[1]}", "n": f"m_{sides[0]}"}, f', won: (.["by"] | {decided})'),
    ):
        if any("_" in side for side in sides) and "by" in fields:
            continue  # only the last word of a winner is looked at
        assert side_by_side("a.json", fields | chats) == (
            f"each record holds several conversations, {', '.join(map(repr, names))}; write each "
            f"as a run, jq -c '.. | objects | select({there}) | ({listed}) as $side | "
            f"del({others}) + {{{own}{more}}}' a.json > runs.jsonl, and give runs.jsonl"
        )


@pytest.mark.parametrize(
    ("values", "are_codes"),
    [([0, 1, 1], True), ([3, 7], True), ([0, [1]], False), ([0, "1"], False), ([1, True], False),
      ([0, 0], False), ([0, 1, 2], False), ([0, 1, None], False),
     ([0, 1, True], False), ([0, 1, 0.5], False), ([], False)],
)  # fmt: skip
def test_numbers_that_stand_for_who_speaks(values, are_codes):
    assert _are_codes(values) is are_codes


@pytest.mark.parametrize(
    ("values", "may_be"),
    [
        (["用户", "助手"], True), (["用户", "bot"], False), (["user", "bot"], False),
        (["用户", "用户"], False), (["用 户", "助手"], False), (["用" * 40, "助手"], True),
        (["用" * 41, "助手"], False), ([chr(0x4E00 + k) for k in range(12)], True),
        ([chr(0x4E00 + k) for k in range(13)], False),
    ],
)  # fmt: skip
def test_roles_in_another_script(values, may_be):
    assert _may_be_roles(values) is may_be


@pytest.mark.parametrize(
    ("path", "is_actor"),
    [
        ("author", True), ("Sender", True), ("author.role", True), ("from.Kind", True),
        ("event.role", True), ("event.kind", False), ("author.name", False), ("kind", False),
        ("a.speaker", True),
    ],
)  # fmt: skip
def test_fields_of_who_speaks(path, is_actor):
    assert _is_actor(tuple(path.split("."))) is is_actor


def test_fields_around_rows():
    row = {"a": 1}
    for rows, fields in (
        ([{"row": row, "n": 1}, {"row": row}], ["row"]),
        ([{"row": row}, {"other": row}], []),
        ([{"row": row, "other": row}] * 2, []),
        ([row, row], []),
        ([{"row": row}, "x"], []),
        ([{"row": row}] * 20 + [row], ["row"]),  # only the first are looked at
        ([{"row": row}] * 19 + [row], []),
    ):
        assert _wrapper(rows) == fields


@pytest.mark.parametrize(
    ("fields", "name"),
    [
        ({"message": '{"a": 1}'}, "message"), ({"msg": "{}", "log": '{"a": 1}'}, "log"),
        ({"message": "", "log": '{"a": 1}'}, "log"), ({"message": "[1]"}, None),
        ({"message": "text"}, None), ({"other": '{"a": 1}'}, None),
        ({"role": "user", "message": '{"a": 1}'}, None), ({"Type": 1, "log": '{"a": 1}'}, None),
        ({"hits": [{"log": '{"a": 1}'}]}, "log"), ({"hits": [{}, {"log": '{"a": 1}'}]}, None),
    ],
)  # fmt: skip
def test_fields_with_records_in_json_text(fields, name):
    assert json_text_field(fields) == name


@pytest.mark.parametrize(
    ("item", "is_piece"),
    [
        ({"type": "response.created", "sequence_number": 0}, True), ({"type": "response.x"}, False),
        ({"type": "other", "sequence_number": 0}, False), ({"type": "message_start"}, False),
        ({"type": "message_start", "message": {}}, True), ({"type": "x", "message": {}}, False),
        ({"choices": [{"delta": {}}]}, True), ({"choices": [{"delta": {}, "message": {}}]}, False),
        ({"choices": [{}, {"delta": {}}]}, False), ({"choices": []}, False), ({}, False),
    ],
)  # fmt: skip
def test_pieces_of_answers_that_a_model_streams(item, is_piece):
    said = what_instead(item)
    assert bool(said) is is_piece
    assert not is_piece or said.startswith("holds pieces of answers as a model streams them; save")


def test_what_lists_hold_too_little():
    rows, streams = "holds rows without the names of their columns", "holds what several streams"
    for item, start in (
        ([1, "a"], rows), (["a", 0.5, None], rows), (["a", "b"], None), ([1, {"a": 2}], None),
        (["values", {}], streams), ([[], []], streams), (["updates", [1]], streams),
        (["other", {}], None), (["values", {}, 3], None), (["values", "x"], None), ([], None),
        ([{}, {"event_kind": 1, "index": 2, "part": 3}], "holds events of Pydantic AI; save"),
        ([{}, {}, {"event_kind": 1, "index": 2, "part": 3}], None),
    ):  # fmt: skip
        said = what_instead(item)
        assert said is None if start is None else said.startswith(start), item


@pytest.mark.parametrize("content", ["[]", "[1, 2, 3]"])
def test_json_without_objects(tmp_path, content):
    path = tmp_path / "x.json"
    path.write_text(content)
    with pytest.raises(ValueError, match=r"x.json: no JSON object could be read from it"):
        io.read_runs(path)


@pytest.mark.parametrize(
    ("record", "parts"),
    [
        # what is done and seen has parts of its own
        ({"a": [{"x": "I look.", "command": "click the big button"}]},
         {"steps": "a", "text": "x", "action": "command"}),
        ({"a": [{"x": "I look.", "act": "go on", "action": "click it", "obs": "a page"}]},
         {"steps": "a", "text": "x", "action": "action", "observation": "obs"}),
        ({"a": [{"x": "I look.", "observation": "a long page"}]}, {"steps": "a", "text": "x"}),
        ({"a": [{"command": "click the button"}]}, {"steps": "a", "text": "command"}),
        ({"a": [{"observation": {"page": "A long page."}}]},
         {"steps": "a", "text": "observation.page"}),
        # names of what is no text count where they stand last
        ({"model": {"say": "one two"}}, {"text": "model.say"}),
        ({"event": {"model": "one two three four"}}, {}),
        ({"task": {"say": "one two"}}, {}), ({"task": {"text": "one two"}}, {}),
        ({"a": [{"prompt_text": "one two", "x": "one two"}]}, {"steps": "a", "text": "x"}),
        # blank texts do not count
        ({"a": [{"x": "one two"}, {"x": " "}, {"x": " "}]}, {"steps": "a", "text": "x"}),
        # a text of a record is one by its name, or has more than three words
        ({"x": "one two three"}, {}), ({"x": "one two three four"}, {"text": "x"}),
        ({"reply_to": "one two"}, {"text": "reply_to"}), ({"x": "请完成任务"}, {"text": "x"}),
        ({"x": "请完成"}, {}),
        # texts of most steps go before longer ones of few
        ({"a": [{"x": "one two"}, {"x": "one two"}, {"y": "one two three four"}]},
         {"steps": "a", "text": "x"}),
        ({"a": [{"x": "one two"}, {"y": "one two three"}]}, {"steps": "a", "text": "y"}),
        # an answer goes before another usual name
        ({"a": [{"say": "one two", "my_answer": "one two"}]}, {"steps": "a", "text": "my_answer"}),
        # a list of one list or text
        ({"a": [[{"say": "one two"}]]}, {"steps": "a.0", "text": "say"}),
        ({"a": [[{"say": "one two"}], []]}, {}),
        ({"a": [{"say": ["one two"]}]}, {"steps": "a", "text": "say.0"}),
        ({"a": [{"say": ["one two", "three"]}]}, {}),
        ({"a": [{"say": [{"x": "one two"}]}]}, {"steps": "a", "text": "say.0.x"}),
        ({"a": [{"say": [{"x": "one two"}] * 2}]}, {"steps": "a.say", "text": "x"}),
    ],
)  # fmt: skip
def test_which_text_is_what_the_agent_says(record, parts):
    assert guess_parts(record) == parts


def test_conversations_are_looked_for_within_four_objects():
    sides = {"left": chat("One."), "right": chat("Two.")}
    assert "several conversations, 'left', 'right'" in side_by_side(
        "a.json", nested(sides, *"wxyz")
    )
    assert side_by_side("a.json", nested(sides, *"vwxyz")) == ""
    assert side_by_side("a.json", {"left": chat("One.")}) == ""
    assert side_by_side("a.json", {"left": chat("One."), "x": 1}) == ""


@pytest.mark.parametrize(
    ("names", "is_call"),
    [
        (("request", "answer"), True), (("answer", "request"), True), (("request", "other"), False),
        (("other", "answer"), False), (("request", "input"), False), (("output", "answer"), False),
        (("request", "answer", "other"), False), (("input", "response"), True),
    ],
)  # fmt: skip
def test_two_sides_of_a_call_and_several_conversations(names, is_call):
    said = side_by_side("a.json", {name: chat("One.") for name in names})
    assert said.startswith("each record is a call of a model, from") is is_call
    assert said.startswith("each record holds several conversations, ") is not is_call


def test_the_whole_error_of_an_unknown_file():
    error = unknown_json("a.json", {"n": 1, "events": turns(), "conv_id": "c"}, FORMATS)
    assert str(error) == (
        "a.json: the format is not known (the fields of the JSON are 'n', 'events', 'conv_id'); if "
        "it holds steps, name their parts, such as fields='steps=events,text=say,actor=author', "
        "or name it with format, one of a, b"
    )
    error = unknown_json("a.json", {"conv": "c", "conv_id": 3, "a": {"say": "one two"}}, FORMATS)
    assert "such as id='conv_id' fields='text=a.say', or name it" in str(error)
    rows = {"few": [1], "rows": [{"row": {"a": 1}}, {"row": {"a": 2}}], "n": 3}
    assert str(unknown_json("a.json", rows, FORMATS)) == (
        "a.json: the format is not known (the fields of the JSON are 'few', 'rows', 'n'); if its "
        "'rows' are runs or rows, write one a line, jq -c '.. | .[\"rows\"]? | arrays | .[] | "
        '.["row"]\' a.json > rows.jsonl, and give rows.jsonl, or name it with format, one of a, b'
    )
    assert str(unknown_json("a.json", {}, FORMATS)) == (
        "a.json: no JSON object could be read from it; give a log of runs"
    )
    assert str(unknown_json("a.json", {}, FORMATS, "nothing fits")) == (
        "a.json: nothing fits. The format is not known; name it with format, one of a, b"
    )
    near = str(unknown_json("a.json", {"runs": 1, "z": 2, "spans": 3}, FORMATS))
    assert "; nearest is b, for 'runs', 'z', but there is no list of runs; name it" in near
    assert "nearest" not in str(unknown_json("a.json", {"runs": 1, "spans": 3}, FORMATS))


@pytest.mark.parametrize(
    ("names", "first"),
    [
        (["conv", "task_id"], "task_id"), (["conv", "run_key"], "run_key"),
        (["conv", "traj"], "conv"),
        (["thread_id", "session_key"], "thread_id"), (["conv_id", "my_session"], "my_session"),
    ],
)  # fmt: skip
def test_ids_of_what_several_records_share_go_first(names, first):
    assert min(names, key=_rank_of_id) == first
    assert _rank_of_id("conv_id") == (True, False)
    assert _rank_of_id("session") == (False, True)
    assert _rank_of_id("run_id") == (False, False)
    assert _rank_of_id("other") == (True, True)


def test_a_list_with_a_usual_name_of_texts_among_others_goes_first():
    lists = {"a": [{"say": "one two", "x": "three four"}], "b": [{"x": "one two"}] * 3}
    assert guess_parts(lists) == {"steps": "a", "text": "say"}


def test_either_of_the_first_two_items_says_what_to_save_instead():
    event = {"new_agent": 1, "type": 2}
    for items in ([event, {"x": 1}], [{"x": 1}, event]):
        assert what_instead(items).startswith("holds events of OpenAI's Agents SDK")
