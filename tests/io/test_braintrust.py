"""Spans of Braintrust: one root is one run."""

import json

import pytest

from trajscore import io
from trajscore.io._run import Run
from trajscore.io._spans import Span
from trajscore.io.formats.braintrust import Braintrust, _span
from trajscore.io.registry import Head


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


@pytest.mark.parametrize(
    ("fields", "recognised"),
    [
        ({"span_id": 1, "root_span_id": 1}, True), ({"span_id": 1}, False), ({}, False),
        ({"rows": [{"span_id": 1, "root_span_id": 1, "x": 1}]}, True), ({"rows": [1]}, False),
        ({"events": [{"x": 1}, {"span_id": 1, "root_span_id": 1}]}, False),
        ({"objects": [{"span_id": 1, "root_span_id": 1}], "data": []}, True),
    ],
)  # fmt: skip
def test_files_of_the_format(fields, recognised):
    assert Braintrust().recognise(Head(fields)) == recognised


def test_all_fields_of_a_span():
    record = {
        "span_id": "b", "span_parents": ["a", "z"], "input": [1], "output": {"x": 2},
        "span_attributes": {"name": "f", "type": "llm"}, "metadata": {"model": "m"}, "error": "no",
        "metrics": {"start": 1.5, "estimated_cost": 0.5, "prompt_tokens": 3}, "created": "2026",
        "scores": {"a": 1, "b": None},
    }  # fmt: skip
    assert _span(record, set()) == Span(
        id="b", kind="model", parent="a", start=1.5e6, name="f", inputs=[1], outputs={"x": 2},
        error=True, cost=0.5, tokens={"input": 3, "output": None}, scores={"a": 1},
        extra={"model": "m"},
    )  # fmt: skip
    bare = Span(id="b", start="2026", tokens={"input": None, "output": None}, extra={"model": None})
    assert _span({"span_id": "b", "created": "2026"}, {"f"}) == bare


@pytest.mark.parametrize(
    ("kind", "name", "expected"),
    [
        ("llm", "f", "model"), ("tool", "g", "tool"), ("function", "g", "other"),
        ("function", "f", "tool"), (None, "f", "tool"), ("task", "g", "other"),
    ],
)  # fmt: skip
def test_a_span_that_is_named_like_a_called_tool_is_that_tools(kind, name, expected):
    assert _span({"span_attributes": {"type": kind, "name": name}}, {"f"}).kind == expected


def test_scores_of_the_root_and_of_judges_are_those_of_the_run():
    def of(key, parents, kind, **scores):
        return {"span_id": key, "span_parents": parents, "scores": scores, "note": key,
                "span_attributes": {"type": kind}}  # fmt: skip

    records = [of("a", ["r"], "llm", x=1), of("r", None, "task", y=2), of("s", ["a"], "score", z=3),
               of("t", ["s"], "llm", w=4), of("u", ["t"], "llm", v=5)]  # fmt: skip
    run = Run("r")
    spans = Braintrust().spans(records, run)
    assert [(span.id, span.scores) for span in spans] == [("a", {"x": 1}), ("r", {})]
    assert (run.scores, run.extra) == ({"y": 2, "z": 3, "w": 4, "v": 5}, {"note": "r"})
    without_root = Run("r")
    Braintrust().spans(records[:1], without_root)
    assert (without_root.scores, without_root.extra) == ({"x": 1}, {"note": "a"})
