"""LangSmith: each field of a run, and whose a score is."""

import pytest

from trajscore import io
from trajscore.io.formats.langsmith import LangSmith, _ended
from trajscore.io.registry import Head

ASK, ANSWER = {"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Yes"}


def record(key, kind="llm", parent=None, **fields):
    own = {"id": key, "trace_id": "t", "run_type": kind, "parent_run_id": parent, "name": key}
    return own | {"inputs": None, "outputs": None} | fields


def call(key="2", parent="1", **fields):
    given = {"inputs": {"messages": [ASK]}, "outputs": {"messages": [ANSWER]}}
    return record(key, "llm", parent, **given | fields)


def read(write, *records):
    return io.read_runs(write("a.jsonl", records, lines=True))


@pytest.mark.parametrize(
    ("names", "whole", "recognised"),
    [
        ("run_type inputs", True, True), ("run_type inputs", False, False),
        ("run_type", True, False), ("event run_id parent_ids", True, True),
        ("event run_id parent_ids name", True, True), ("event run_id", True, False),
        ("event run_id parent_ids", False, False),
    ],
)  # fmt: skip
def test_lines_of_the_format(names, whole, recognised):
    fields = dict.fromkeys(names.split())
    assert LangSmith().recognise(Head(fields, whole=whole)) == recognised


def test_all_fields(write):
    metadata = {"thread_id": "s", "tier": 2}
    root = record(
        "1", "chain", feedback_stats={"right": {"avg": 1.0}}, extra={"metadata": metadata}
    )
    turn = call(
        feedback_stats='{"sure": {"avg": 0.25}}', total_cost=0.5, input_tokens=9, output_tokens=2
    )
    (run,) = read(write, turn, root)
    assert (run.id, run.meta["session"]) == ("t", "s")
    assert run.extra == {"metadata": metadata, "name": "1"}
    assert run.scores == {"right": {"avg": 1.0}}
    assert [step.text for step in run.steps] == ["Hi", "Yes"]
    step = run.steps[1]
    assert (step.scores, step.cost) == ({"sure": {"avg": 0.25}}, 0.5)
    assert step.extra["tokens"] == {"input": 9, "output": 2}


def test_sessions():
    of = [{"extra": {"metadata": {name: name}}} for name in ("other", "conversation_id")]
    assert LangSmith()._session(["x", {"extra": None}, *of]) == "conversation_id"
    assert LangSmith()._session(of[:1]) is None


def test_a_trace_without_a_root_has_the_first_run_in_its_place(write):
    (run,) = read(write, call(feedback_stats={"a": 1}), call("3"))
    assert (run.scores, run.extra["name"]) == ({"a": 1}, "2")
    alone = {name: value for name, value in call().items() if name != "trace_id"}
    assert read(write, alone)[0].id == "2"


def test_errors_and_order(write):
    later = [ASK, ANSWER, {"role": "user", "content": "And?"}]
    second = call("3", inputs={"messages": later}, outputs="No")
    for name, times in (("start_time", (1, 2)), ("dotted_order", ("10", "20"))):
        records = [second | {name: times[1]}, call() | {name: times[0]}]
        (run,) = read(write, record("1", "chain", error="oops"), *records)
        assert [step.text for step in run.steps] == ["Hi", "Yes", "And?", "No"]
        assert run.stop_reason == "error"


@pytest.mark.parametrize(
    ("parents", "trace", "parent"),
    [(None, "r", None), ([], "r", None), (["a"], "a", "a"), (["a", "b", "c"], "a", "c")],
)
def test_an_event_ends_a_run(parents, trace, parent):
    event = {"run_id": "r", "parent_ids": parents, "name": "n", "metadata": {"m": 1}}
    data = {"input": 1, "output": 2, "error": 3}
    assert _ended(event | {"event": "on_chat_model_end", "data": data}) == {
        "id": "r", "trace_id": trace, "parent_run_id": parent, "run_type": "chat_model",
        "name": "n", "inputs": 1, "outputs": 2, "error": 3, "extra": {"metadata": {"m": 1}},
    }  # fmt: skip
    assert _ended(event | {"event": "on_tool_error"})["run_type"] == "tool"
    assert _ended(event | {"event": "on_tool_start", "data": data}) is None
    assert _ended(event | {"event": "on_chat_model_stream"}) is None


def event(name, parents, key="r", **more):
    return {"event": name, "run_id": key, "parent_ids": parents, "name": "n"} | more


def test_events_of_a_graph_name_those_around_them(write):
    node = {"metadata": {"langgraph_node": "agent"}}
    data = {"data": {"input": {"messages": [ASK]}, "output": ANSWER}}
    with pytest.raises(ValueError, match="holds events of a graph that do not name the events"):
        read(write, event("on_chain_start", [], **node))
    (run,) = read(
        write, event("on_chain_start", [], "a"),
        event("on_chat_model_end", ["a"], **node, **data), event("on_chain_end", [], "a"),
    )  # fmt: skip
    assert (run.id, [step.text for step in run.steps]) == ("a", ["Hi", "Yes"])


def test_the_scores_of_the_root_are_those_of_the_run(write):
    (run,) = read(write, call("1", None), call("2", "1", feedback_stats={"a": 1}))
    assert (run.scores, run.extra["name"]) == ({}, "1")
