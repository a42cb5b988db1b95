"""JSON lines of any names: which are recognised, their order, and what is of the run."""

import pytest

from trajscore import io


def texts(run):
    return [(step.actor, step.text, step.observation) for step in run.steps]


def test_the_first_line_says_whether_lines_are_runs_or_steps(lines):
    step, run = {"run": 1, "p": 0.5}, {"run": 2, "steps": [{"text": "x"}, {"text": "y"}]}
    assert [len(one) for one in lines(step, step)] == [2]
    assert [len(one) for one in lines(run, run | {"run": 3})] == [2, 2]
    assert [one.id for one in lines(step, run | {"p": 0.5})] == ["1", "2"]
    assert len(lines({"run": 1, "x": [{"text": "x"}, {"text": "y"}]}, fields="steps=x")[0]) == 2
    (run,) = lines({"run": 1, "steps": [0.5, 1], "note": "x"})
    assert [step.confidence for step in run.steps] == [0.5, 1]
    assert run.extra == {"run": 1, "note": "x"}


def test_lines_in_the_order_of_their_steps(lines):
    for name, numbers, order in [
        ("step", [2, 0, 1], [1, 2, 0]), ("step", ["2", "10", " -1.5 "], [2, 0, 1]),
        ("step", [None, None], [0, 1]), ("step", [1.5, 0.5], [1, 0]),
        ("step", ["2026-01-02", "2026-01-01", "2026-01-02"], [1, 0, 2]),
        ("step", ["1970-01-01T00:00:00.000001", "1970-01-01"], [1, 0]),
        ("ts", [0.4, 0.4, 0.5], [0, 1, 2]), ("ts", [1.7e9, 1.6e9], [1, 0]),
        ("time", [0.5, 0.4], [0, 1]),  # which may be how long each took
        ("seq", [2, 0, 1], [1, 2, 0]), ("index", [1, 1, 0], [0, 1, 2]),
    ]:  # fmt: skip
        rows = [{"run": 1, "text": str(k), name: number} for k, number in enumerate(numbers)]
        (run,) = lines(*rows)
        assert [int(step.text) for step in run.steps] == order, (name, numbers)
    rows = [{"run": 1, "text": str(k), "time": 0.5 - 0.1 * k} for k in range(2)]
    (run,) = lines(*rows, fields="step=time")
    assert [step.text for step in run.steps] == ["1", "0"]


def test_steps_that_give_no_order(lines):
    for numbers, named in [
        ([1, None], "no step number"), ([None, 1], "no step number"),
        (["2026-01-01", "x"], "line 0 of the run has '2026-01-01'"),
        ([3, "x"], "line 1 of the run has 'x'"), ([3, "1.2.3"], "line 1 of the run has '1.2.3'"),
        ([3, float("nan")], "line 1 of the run has nan"), ([2, 3, 2], "step 2 twice"),
        ([[1]], r"line 0 of the run has \[1\]"),
    ]:  # fmt: skip
        rows = [{"run": 1, "text": "x", "step": number} for number in numbers]
        with pytest.raises(ValueError, match=f"run '1'.*{named}"):
            lines(*rows)


def test_lines_that_are_of_the_run(lines):
    step = {"run": 1, "step": 1, "text": "x"}
    for line in ({"x": 2}, {"x": 2, "text": None}, {"x": 2, "success": True}, {"by": "m"}):
        assert len(lines(step, {"run": 1} | line)[0]) == 1, line
    for line in ({"text": "a"}, {"observation": "a"}, {"p": 0.5}, {}):
        assert len(lines(step, {"run": 1, "step": 2, "x": 2} | line)[0]) == 2, line
    timed = {"run": 1, "text": "x", "timestamp": 0}
    assert len(lines(timed, {"run": 1, "x": 2, "timestamp": 1})[0]) == 1
    assert len(lines({"run": 1, "text": "x"}, {"run": 1})[0]) == 2  # a bare id
    rows = [
        {"run": 1, "task": "t", "note": "a"},
        step | {"success": 0, "by": "m", "n": 1},
        step | {"step": 2, "text": "y", "success": 0, "by": "m", "n": 2},
    ]
    runs = lines(*rows)
    assert (runs[0].task, runs[0].outcome, len(runs[0])) == ("t", 0, 2)
    assert "1 line without anything that a step holds" in runs.notes[0]
    (run,) = lines(*rows[1:])
    assert run.extra == {"run": 1, "by": "m"}  # what all lines share
    with pytest.raises(ValueError, match="'success' has several values in run '1'.*success.-1"):
        lines(rows[1], rows[2] | {"success": 1})
    (run,) = lines(rows[1], rows[2] | {"success": 0.5}, outcome="success.-1")
    assert run.outcome == 0.5


def test_who_acts(lines):
    for first, second, actors in [
        ({"actor": "user"}, {"actor": "assistant"}, ["user", "agent"]),
        ({"type": "user"}, {"type": "assistant"}, ["user", "agent"]),
        ({"type": "agent"}, {"type": "plan"}, ["agent", "agent"]),
        ({"role": "user"}, {"role": "assistant"}, ["user", "agent"]),
        ({"role": "user"}, {}, ["user", "agent"]), ({"role": ""}, {"role": "system"}, ["agent"]),
    ]:  # fmt: skip
        rows = [{"run": 1, "text": "x"} | fields for fields in (first, second)]
        (run,) = lines(*rows)
        assert [step.actor for step in run.steps] == actors, (first, second)
    runs = lines({"run": 1, "text": "x", "role": "user"}, *[{"run": 1, "text": "y"}] * 2)
    assert runs.notes == ["2 turns without a role, where others have one, taken as the agent's"]


def test_lines_of_one_run_name_one_model(lines):
    for models, is_refused in (("xx", False), ("xy", True), (["x", None], False)):
        rows = [{"run": 1, "text": f"{k}", "model": model} for k, model in enumerate(models)]
        if is_refused:
            with pytest.raises(ValueError, match="'1' has several values of 'model'.*id='model'"):
                lines(*rows)
        assert len(lines(*rows, id="run")) == 1


def test_lines_of_a_run_stand_together_where_they_are_read_one_by_one(write):
    rows = [{"run": run, "text": "x"} for run in "aba"]
    path = write("a.jsonl", rows, lines=True)
    assert [len(run) for run in io.read_runs(path, format="jsonl")] == [2, 1]
    stream = io.iter_runs(path, format="jsonl")
    assert [next(stream).id for _ in "ab"] == ["a", "b"]
    with pytest.raises(ValueError, match="'a'"):
        next(stream)


def test_a_file_without_ids_is_a_run_where_the_text_is_named(lines):
    rows = [{"body": "x"}, {"body": "y"}]
    (run,) = lines(*rows, fields="text=body")
    assert (run.id, [step.text for step in run.steps]) == ("log", ["x", "y"])
    for options, named in (({}, "index 0.*with id"), ({"fields": "text=body", "id": "x"}, "'x'")):
        with pytest.raises(ValueError, match=named):
            lines(*rows, **options)


def test_a_line_that_cannot_be_read_refuses_the_log(write):
    for line, named in (('{"run": ', "line 2"), ("[1]", "list")):
        path = write("log.jsonl", '{"run": 1, "p": 1}\n' + line + "\n")
        with pytest.raises(ValueError, match=f"log.jsonl, line with index 1.*{named}"):
            io.read_runs(path, format="jsonl")


def test_parts_that_are_named(lines):
    rows = [{"run": 1, "a": "x", "won": 1}, {"run": 1, "b": "y", "c": "z", "why": "done"}]
    named = {"text": "a", "observation": "b", "id": "run", "outcome": "won", "stop_reason": "why"}
    for fields in (",".join(map("=".join, named.items())), named):
        (run,) = lines(*rows, fields=fields, format=None)
        assert texts(run) == [("agent", "x", "y")]  # seen between two turns
        assert (run.id, run.outcome, run.stop_reason) == ("1", 1, "done")
    for fields, named in [
        ("text=d,observation=e", "text: no field named 'd'.*run, a"),
        ("steps=log,text=b", "steps: no field named 'log'"), ({"txt": "a"}, "'txt'"), (3, "fields"),
    ]:  # fmt: skip
        with pytest.raises(ValueError, match=named):
            lines(*rows, fields=fields)
    with pytest.raises(ValueError, match="text: no field named 'b'"):
        lines({"run": 1, "log": [{"a": "x"}, 3]}, fields="steps=log,text=b")


def test_the_step_of_a_record(lines):
    ask = {"run": 1, "role": "user", "body": "Hi"}
    for record, step in [
        ({"body": "a"}, ("agent", "a", None)), ({"body": "a", "role": ""}, ("agent", "a", None)),
        ({"observation": "o", "body": "b"}, ("agent", "b", "o")),
        ({"observation": [{"text": "o"}], "role": "agent"}, ("agent", "", "o")),
        ({"observation": "o", "cost": 1}, ("agent", "", "o")),
        ({"x": 1, "p": 0.5}, ("agent", "", None)),
    ]:  # fmt: skip
        (run,) = lines(ask, {"run": 1} | record, {"run": 1, "body": "."}, fields="text=body")
        assert texts(run) == [("user", "Hi", None), step, ("agent", ".", None)], record
    row = {"run": 1, "text": "a", "act": {"n": 1}, "observation": "o", "x": 2}
    (step,) = lines(row, fields="action=act")[0].steps
    assert (step.tool_calls[0].arguments, step.tool_calls[0].result) == ({"n": 1}, "o")
    assert step.extra == {"x": 2}
    call = {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}
    said = [{"type": "user", "text": "Hi"}, {"type": "assistant", "text": "I look."}]
    (run,) = lines(*({"run": 1} | one for one in (*said, call)))
    assert [len(step.tool_calls) for step in run.steps] == [0, 0, 1]


def test_where_the_steps_of_runs_stand(lines):
    run = {"log": [{"x": "a"}]}
    for record, path, ids in [(run, "log", ["log-0"]), ({"a": run}, "a.log", ["log-0"])]:
        runs = lines(record, fields=f"steps={path},text=x")
        assert [one.id for one in runs] == ids, path
        assert all(texts(one) == [("agent", "a", None)] for one in runs), path
    with pytest.raises(ValueError, match="its 'log' is int"):
        lines({"log": 3}, fields="steps=log")
    with pytest.raises(ValueError, match="message 1 is str"):
        lines({"log": [{"x": "a"}, "b"]}, fields="steps=log,text=x")
