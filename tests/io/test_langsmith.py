"""Runs of LangSmith, and events of LangChain: each field, and whose a score is."""

import pytest

from known_dialogue import ALL, HI, SAMPLES, YES, said, turns
from trajscore import io


def record(key, kind="llm", parent=None, **fields):
    own = {"id": key, "trace_id": "t", "run_type": kind, "parent_run_id": parent, "name": key}
    return own | {"inputs": None, "outputs": None} | fields


def call(key="2", parent="1", **fields):
    given = {"inputs": {"messages": [HI]}, "outputs": {"messages": [YES]}}
    return record(key, "llm", parent, **given | fields)


def read(write, *records, **options):
    return io.read_runs(write("a.jsonl", records, lines=True), **options)


def test_all_fields(write):
    metadata = {"thread_id": "s", "tier": 2, "task_id": "t7"}
    stats = {"right": {"avg": 1.0}}
    root = record("1", "chain", feedback_stats=stats, extra={"metadata": metadata})
    numbers = {"total_cost": 0.5, "input_tokens": 9, "output_tokens": 2}
    (run,) = read(write, call(feedback_stats='{"sure": {"avg": 0.25}}', **numbers), root)
    assert (run.id, run.meta["session"], run.task, run.scores) == ("t", "s", "t7", stats)
    assert run.extra == {"metadata": metadata, "name": "1"}
    assert turns(run) == [("user", "Hi"), ("agent", "Yes")]
    step = run.steps[1]
    assert (step.scores, step.cost) == ({"sure": {"avg": 0.25}}, 0.5)
    assert step.extra["tokens"] == {"input": 9, "output": 2}
    # of labels, which have no mean, one that all gave is a word
    for labels, outcome in (({"good": 2}, 1), ({"good": 1, "bad": 1}, -1), ({}, -1)):
        stats = {"correctness": {"n": 2, "avg": None, "values": labels}}
        rated = record("1", "chain", feedback_stats=stats)
        (run,) = read(write, call(), rated, outcome_map="good=1")
        assert run.outcome == outcome, labels
    # the scores of the root are those of the run, and the first stands in for a root
    (run,) = read(write, call("1", None), call("2", "1", feedback_stats={"a": 1}))
    assert (run.scores, run.extra["name"]) == ({}, "1")
    (run,) = read(write, call(feedback_stats={"a": 1}), call("3"))
    assert (run.scores, run.extra["name"]) == ({"a": 1}, "2")
    alone = {name: value for name, value in call().items() if name != "trace_id"}
    assert read(write, alone)[0].id == "2"
    assert "session" not in run.meta


def test_errors_and_order(write):
    later = [HI, YES, {"role": "user", "content": "And?"}]
    second = call("3", inputs={"messages": later}, outputs="No")
    for name, times in (("start_time", (1, 2)), ("dotted_order", ("10", "20"))):
        records = [second | {name: times[1]}, call() | {name: times[0]}]
        (run,) = read(write, record("1", "chain", error="oops"), *records)
        assert [step.text for step in run.steps] == ["Hi", "Yes", "And?", "No"]
        assert run.stop_reason == "error"
    twice = [call("0", None), record("0", "tool", "0"), call("1", "0")]  # its own parent
    assert turns(read(write, *twice)[0])[:2] == [("user", "Hi"), ("agent", "Yes")]


def test_what_cannot_be_read(write):
    write("log/b.json", [call()])
    path = write("log/a.json", {"info": {}})
    with pytest.raises(ValueError, match=r"a\.json.*'run_type'"):
        io.read_runs(path.parent, format="langsmith")
    for name in ("langsmith", "claude_code", "codex"):
        lines = (SAMPLES / f"{name}.jsonl").read_text() + "[]\n3\n"
        with pytest.warns(UserWarning, match="2 of 3 runs could not be read"):
            (run,) = io.read_runs(write("log.jsonl", lines))
        assert said(run)[-1] == ALL[-1]
