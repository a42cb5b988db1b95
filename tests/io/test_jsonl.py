"""JSON lines of any names: which are recognised, their order, and what is of the run."""

from pathlib import Path

import pytest

from trajscore import io
from trajscore.io._conversation import Conversation
from trajscore.io.fields import Fields
from trajscore.io.files import Place
from trajscore.io.formats import jsonl
from trajscore.io.registry import Head

LOOK = "I look at it."


@pytest.mark.parametrize(
    ("fields", "recognised"),
    [
        ({"run": 1, "text": "x", "p": 0.5}, True),
        ({"p": 0.5}, False),
        ({"run": 1, "messages": []}, False),
        ({"run": 1, "step": 2}, False),
        ({"run": 1, "step": 1, "thought": LOOK}, False),  # its text would be lost
        ({"run": 1, "step": 1, "text": "x"}, True),
        ({"run": 1, "steps": [{"text": "x"}]}, True),
        ({"run": 1, "steps": [3, 0.5]}, True),
        ({"run": 1, "steps": [{"thought": LOOK}]}, False),
        ({"run": 1, "steps": [{"thought": LOOK, "p": 0.5}]}, True),
        ({"run": 1, "steps": [{"thought": LOOK, "text": "x"}]}, True),
        ({"run": 1, "steps": [{"text": "x"}, {"thought": LOOK}]}, True),
    ],
)
def test_files_of_the_format(fields, recognised):
    assert jsonl.JSONLines().recognise(Head(fields, whole=True)) == recognised
    assert not jsonl.JSONLines().recognise(Head(fields))


def read(write, lines, **options):
    return io.read_runs(write("log.jsonl", lines, lines=True), format="jsonl", **options)


def test_the_first_line_says_whether_lines_are_runs_or_steps(write):
    step, run = {"run": 1, "p": 0.5}, {"run": 2, "steps": [{"text": "x"}, {"text": "y"}]}
    assert [len(one.steps) for one in read(write, [step, step])] == [2]
    assert [len(one.steps) for one in read(write, [run, run | {"run": 3}])] == [2, 2]
    assert [one.id for one in read(write, [step, run | {"p": 0.5}])] == ["1", "2"]


@pytest.mark.parametrize(
    ("numbers", "order"),
    [
        ([2, 0, 1], [1, 2, 0]),
        (["2", "10", "-1"], [2, 0, 1]),
        ([None, None], [0, 1]),
        (["2026-01-02", "2026-01-01", "2026-01-02"], [1, 0, 2]),
        (["1970-01-02", "1970-01-01"], [1, 0]),
        (["1970-01-01T00:00:00.000001", "1970-01-01"], [1, 0]),
        ([1.5, 0.5], [1, 0]),
    ],
)
def test_lines_in_the_order_of_their_steps(numbers, order):
    lines = [{"step": number} for number in numbers]
    assert jsonl._in_order(lines, Fields()) == [lines[k] for k in order]


@pytest.mark.parametrize(
    ("numbers", "problem"),
    [
        ([1, None], "some of its lines have no step number"),
        ([None, 1], "some of its lines have no step number"),
        (["2026-01-01", "x"], "line 0 of the run has '2026-01-01'"),
        ([3, "x"], "line 1 of the run has 'x'"),
        ([2, 3, 2], "it has step 2 twice"),
        ([[1]], r"line 0 of the run has \[1\]"),
    ],
)
def test_steps_that_give_no_order(numbers, problem):
    with pytest.raises(ValueError, match=problem):
        jsonl._in_order([{"step": number} for number in numbers], Fields())


@pytest.mark.parametrize(
    ("name", "times", "are_durations"),
    [
        ("time", [0.5, 0.4], True), ("time", [0.4, 0.4, 0.5], False), ("time", [0.4], False),
        ("step", [2, 1], False), ("time", [0.5, 1.7e9, 1.6e9], False), ("time", ["b", "a"], False),
    ],
)  # fmt: skip
def test_small_times_that_fall_are_durations(name, times, are_durations):
    lines = [{name: time} for time in times]
    assert jsonl._are_durations(lines, Fields()) is are_durations
    assert jsonl._are_durations(lines, Fields(step=name)) is False
    ordered = lines if are_durations or name == "step" or "a" in times else None
    if ordered is None:
        ordered = sorted(lines, key=lambda line: line["time"])
    if name == "time" and "a" not in times:
        assert jsonl._in_order(lines, Fields()) == ordered


@pytest.mark.parametrize(
    ("value", "is_number"),
    [
        (3, True), ("3", True), (" -1.5 ", True), ("1.2.3", False), ("", False), ("2026-01", False),
        ("x", False), (None, True),
    ],
)  # fmt: skip
def test_numbers_and_texts_of_numbers(value, is_number):
    assert jsonl._is_number(value) is is_number


@pytest.mark.parametrize(
    ("line", "is_step"),
    [
        ({"run": 1}, True),  # a bare id
        ({}, True),
        ({"run": 1, "x": 2}, False),
        ({"run": 1, "x": 2, "text": None}, False),
        ({"x": 2, "text": "a"}, True),
        ({"x": 2, "observation": "a"}, True),
        ({"x": 2, "p": 0.5}, True),
        ({"x": 2, "step": 1}, True),
        ({"x": 2, "timestamp": 1}, False),
        ({"type": "reasoning", "x": 2}, True),
        ({"x": 2, "success": True}, False),
    ],
)
def test_a_line_of_a_step_and_of_the_run(line, is_step):
    assert jsonl._is_step(line, Fields()) is is_step


def test_the_named_id_of_a_line_is_no_step():
    assert jsonl._is_step({"x": 1}, Fields(id="x"))
    assert not jsonl._is_step({"x": 1, "y": 1}, Fields(id="x"))


def test_fields_that_all_lines_share():
    lines = [{"a": 1, "b": 1, "c": None, "d": [1], "e": {"x": 1}, "f": "x"}]
    assert jsonl._constants(lines) == {"a": 1, "b": 1, "f": "x"}
    assert jsonl._constants([*lines, {"a": 1, "b": 2, "d": [1]}, lines[0]]) == {"a": 1}


@pytest.mark.parametrize(
    ("records", "kind"),
    [
        ([{"type": "user"}, {"type": "assistant"}], "type"),
        ([{"kind": "user_message"}, {"kind": "agent"}, 3], "kind"),
        ([{"type": "x", "event": "user"}, {"type": "y", "event": "agent"}], "event"),
        ([{"type": "user"}, {"type": "tool"}], None),
        ([{"type": "agent"}, {"type": "plan"}], None),
        ([{"type": "user", "role": "x"}, {"type": "assistant"}], None),
        ([{"other": "user"}, {"other": "assistant"}], None),
        ([], None),
    ],
)
def test_the_field_that_tells_the_agent_from_others(records, kind):
    assert jsonl._kind_of_actor(records, Fields()) == kind


@pytest.mark.parametrize(
    ("roles", "extra"),
    [
        (["user", None, None], {"without_role": 2}), (["user", "agent", None], {"without_role": 1}),
        (["user", "agent"], {}), ([None, None], {}), ([], {}),
    ],
)  # fmt: skip
def test_steps_without_a_role_are_counted_where_others_have_one(roles, extra):
    records = [{"role": role} if role else {"x": 1} for role in roles]
    assert jsonl._with_roles(io.Run("a"), records, Fields()).extra == extra


# ------------------------------------------------------------------ runs of steps


def test_lines_of_the_run_are_counted_and_give_its_fields(write):
    rows = [
        {"run": 1, "task": "t", "note": "a"}, {"run": 1, "step": 1, "text": "x", "success": 0},
        {"run": 1, "step": 2, "text": "y", "success": 0},
    ]  # fmt: skip
    (run,) = read(write, rows)
    assert (run.task, run.outcome, [step.text for step in run.steps]) == ("t", 0, ["x", "y"])
    assert run.extra == {"run": 1, "lines_of_run": 1, "task": "t"}
    (bare,) = read(write, rows[1:])
    assert bare.extra == {"run": 1}


@pytest.mark.parametrize(
    ("models", "is_refused"), [("xx", False), ("xy", True), ("x", False), (["x", None], False)]
)
def test_lines_of_one_run_name_one_model(write, models, is_refused):
    lines = [{"run": 1, "text": f"{k}", "model": model} for k, model in enumerate(models)]
    if is_refused:
        with pytest.raises(ValueError, match="'1' has several values of 'model'"):
            read(write, lines)
    else:
        assert len(read(write, lines)) == 1
    assert len(read(write, lines, id="run")) == 1


def test_a_file_without_ids_is_a_run_where_the_text_is_named(write):
    lines = [{"body": "x"}, {"body": "y"}]
    (run,) = read(write, lines, fields="text=body")
    assert (run.id, [step.text for step in run.steps]) == ("log", ["x", "y"])
    for options, problem in (
        ({}, r"has no usual field of run ids \(uq_problem_idx,"),
        ({"fields": "text=body", "id": "x"}, "no line has the field 'x' for 'id'|has no field 'x'"),
    ):
        with pytest.raises(ValueError, match=problem):
            read(write, lines, **options)


def test_a_line_that_cannot_be_read_refuses_the_log(write):
    for text, problem in (
        ('{"run": 1, "p": 1}\n{"run": \n', "line with index 1: .*; repair the line"),
        ('{"run": 1, "p": 1}\n[1]\n', "line with index 1 is list, not an object"),
    ):
        with pytest.raises(ValueError, match=problem):
            io.read_runs(write("log.jsonl", text), format="jsonl")


def test_named_fields_that_no_line_has(write):
    lines = [{"run": 1, "a": "x"}, {"run": 1, "b": "y", "c": "z"}]
    (run,) = read(write, lines, fields="text=a,observation=b")
    assert [(step.text, step.observation) for step in run.steps] == [("x", "y")]
    with pytest.raises(ValueError, match=r"no line has the field 'd' for 'text'; .* has run, a$"):
        read(write, lines, fields="text=d,observation=e")
    nested = [{"run": 1, "log": [{"a": "x"}, 3]}]
    with pytest.raises(ValueError, match="no line has the field 'b' for 'text'"):
        read(write, nested, fields="steps=log,text=b")


# ------------------------------------------------------------------ steps of runs


def test_steps_under_a_path():
    steps = [{"x": 1}]
    assert jsonl._steps_of({"a": {"b": steps}}, "a.b") == steps
    assert jsonl._steps_of({"b": steps}, "a.b") == steps
    assert jsonl._steps_of({"a": {"b": {"c": steps}}}, "z.a.b.c") == steps
    assert jsonl._steps_of({"a": {"b": 3}, "b": 4}, "a.b") == 3
    assert jsonl._steps_of({"a": 3}, "b") is None


def records(value, path):
    place = Place(Path("log.json"), 7)
    return [(one.index, run) for one, run in jsonl._records_at([(place, value)], path)]


def test_runs_within_records_that_have_the_steps():
    steps = [{"x": 1}]
    one = {"log": steps}
    assert records({"runs": [one, one]}, "runs.log") == [(0, one), (1, one)]
    assert records({"a": {"runs": [one, 3]}}, "a.runs.log") == [(0, one), (1, 3)]
    assert records({"a": [{"b": one}]}, "a.b.log") == [(0, {"b": one})]
    assert records(one, "log") == [(7, one)]
    assert records({"a": one}, "a.log") == [(7, {"a": one})]
    keyed = {"t0": one, "t1": one}
    assert records(keyed, "log") == [(k, {"id": f"t{k}", **one}) for k in range(2)]
    assert records({"x": 1}, "log") == [(7, {"x": 1})]
    assert records({"runs": []}, "runs.log") == [(7, {"runs": []})]


def test_steps_may_be_numbers(write):
    (run,) = read(write, [{"run": 1, "steps": [0.5, 1], "note": "x"}])
    assert [step.confidence for step in run.steps] == [0.5, 1.0]
    assert run.extra == {"run": 1, "note": "x"}


# ------------------------------------------------------------------ one step


def added(record, *, kind=None, **fields):
    talk = Conversation(Place(Path("log.json"), 0))
    talk.add({"role": "user", "content": "Hi"}, 0)
    jsonl._add(talk, record, 1, Fields(**fields), (), kind)
    return [(step.actor, step.text, step.observation) for step in talk.steps]


ASKED = ("user", "Hi", None)


@pytest.mark.parametrize(
    ("record", "options", "steps"),
    [
        ({"text": "a"}, {}, [ASKED, ("agent", "a", None)]),
        ({"text": "a", "role": "user"}, {}, [ASKED, ("user", "a", None)]),
        ({"text": "a", "role": ""}, {}, [ASKED, ("agent", "a", None)]),
        ({"text": "a", "type": "user_message"}, {"kind": "type"}, [ASKED, ("user", "a", None)]),
        ({"text": "a", "type": "x"}, {"kind": "type"}, [ASKED, ("environment", "a", None)]),
        ({"text": "a", "observation": "o"}, {}, [ASKED, ("agent", "a", "o")]),
        ({"observation": "o"}, {}, [ASKED, ("agent", "", "o")]),
        ({"observation": "o"}, {"text": "body"}, [ASKED]),
        ({"observation": "o", "body": "b"}, {"text": "body"}, [ASKED, ("agent", "b", "o")]),
        ({"observation": "o", "role": "agent"}, {"text": "body"}, [ASKED, ("agent", "", "o")]),
        ({"observation": "o", "cost": 1}, {"text": "body"}, [ASKED, ("agent", "", "o")]),
        ({"x": 1}, {"text": "body"}, [ASKED, ("agent", "", None)]),
        ({"text": "a", "role": "system"}, {}, [ASKED]),
    ],
)  # fmt: skip
def test_the_step_of_a_record(record, options, steps):
    assert added(record, **options) == steps


def test_items_keep_their_own_role_where_the_kind_of_a_step_tells_it():
    call = {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}
    assert added(call, kind="type") == [ASKED, ("agent", "", None)]


def test_actions_are_calls_with_what_was_seen():
    talk = Conversation(Place(Path("log.json"), 0))
    step = {"text": "a", "act": {"n": 1}, "observation": [{"text": "o"}], "x": 2}
    jsonl._add(talk, step, 3, Fields(action="act"), (), None)
    ((call,),) = (one.tool_calls for one in talk.steps)
    assert (call.name, call.arguments, call.result) == ("action", {"n": 1}, "o")
    assert (talk.steps[0].index, talk.steps[0].extra) == (3, {"x": 2})
