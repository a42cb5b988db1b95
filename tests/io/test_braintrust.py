"""Spans of Braintrust: one root is one run."""

import json

import pytest

from trajscore import io


def span(name, parents, kind, given, answer, start, **fields):
    return {
        "id": f"row-{name}",
        "span_id": name,
        "root_span_id": "r",
        "span_parents": parents,
        "span_attributes": {"name": kind if kind != "score" else "Correctness", "type": kind},
        "input": given,
        "output": answer,
        "metrics": {"start": start},
    } | fields


QUESTION = {"role": "user", "content": "Where is it?"}
CALL = {"id": "c", "type": "function", "function": {"name": "find", "arguments": '{"q": 1}'}}
LOOK = {"role": "assistant", "content": "I look.", "tool_calls": [CALL]}


def rows(kind_of_tool):
    result = {"role": "tool", "tool_call_id": "c", "content": "in Rome"}
    tool = span("t", ["r"], kind_of_tool, {"q": 1}, "in Rome", 2.5)
    tool["span_attributes"]["name"] = "find"
    return [
        span("r", None, "task", "Where is it?", "Rome", 1.0, metadata={"model": "m"}),
        span("a", ["r"], "llm", [QUESTION], [{"message": LOOK}], 2.0),
        tool,
        span("b", ["r"], "llm", [QUESTION, LOOK, result], [{"message": {
            "role": "assistant", "content": "Rome"}}], 2.75),
        span("s", ["r"], "score", {}, {}, 4.0, scores={"Correctness": 1}),
        span("j", ["s"], "llm", [{"role": "user", "content": "Is it right?"}],
             [{"message": {"role": "assistant", "content": "Yes"}}], 4.1),
    ]  # fmt: skip


@pytest.mark.parametrize("kind", ["tool", "function", None])
@pytest.mark.parametrize("around", [None, "rows", "events", "text"])
def test_a_root_is_a_run(tmp_path, kind, around):
    """Calls of a judge are no turns, and the order of the rows does not matter."""
    listed = rows(kind)[::-1]
    if around == "text":  # as an export to a table has objects
        listed = [
            {k: v if v is None or isinstance(v, str) else json.dumps(v) for k, v in row.items()}
            for row in listed
        ]
    path = tmp_path / "spans.json"
    path.write_text(
        json.dumps(listed if around in (None, "text") else {around: listed, "cursor": None})
    )
    (run,) = io.read_runs(path)
    assert (run.id, run.outcome) == ("r", 1)
    turns = [(step.actor, step.text, step.observation) for step in run.steps]
    assert turns == [
        ("user", "Where is it?", None),
        ("agent", "I look.", "in Rome"),
        ("agent", "Rome", None),
    ]
    assert [call.arguments for call in run.steps[1].tool_calls] == [{"q": 1}]
    assert "session" not in run.meta


def test_the_first_session_that_a_span_names_is_that_of_the_run(tmp_path):
    listed = rows("tool")
    listed[0]["metadata"]["session_id"] = ""
    listed[1]["metadata"] = {"session_id": "s"}
    path = tmp_path / "spans.json"
    path.write_text(json.dumps(listed))
    (run,) = io.read_runs(path)
    assert (run.meta["session"], run.meta["file"]) == ("s", str(path))
    assert [run.id for run in io.read_runs(path, id="session")] == ["s"]
