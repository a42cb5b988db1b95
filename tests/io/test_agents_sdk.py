"""OpenAI's Agents SDK: traces, each field of a span, and the limit on turns."""

import pytest

from trajscore import io
from trajscore.io.formats.agents_sdk import AgentsSDK
from trajscore.io.registry import Head

ASK, ANSWER = {"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Yes"}
TRACE = {"object": "trace", "id": "t", "workflow_name": "w", "group_id": "g", "metadata": {"m": 1}}


def span(key, kind="generation", parent=None, error=None, **data):
    own = {"object": "trace.span", "id": key, "trace_id": "t", "parent_id": parent, "error": error}
    return own | {"started_at": f"2026-01-01T00:00:0{key}Z", "span_data": {"type": kind} | data}


CALL = span("1", input=[ASK], output=[ANSWER], model="m", usage={"input_tokens": 9})


def read(write, *records):
    return io.read_runs(write("a.jsonl", records, lines=True))


@pytest.mark.parametrize(
    ("fields", "whole", "recognised"),
    [
        ({"object": "trace"}, True, True), ({"object": "trace.span"}, True, True),
        ({"object": "trace"}, False, False), ({"object": "chat"}, True, False), ({}, True, False),
    ],
)  # fmt: skip
def test_lines_of_the_format(fields, whole, recognised):
    assert AgentsSDK().recognise(Head(fields, whole=whole)) == recognised


def test_all_fields(write):
    (run,) = read(write, TRACE | {"tier": 2}, CALL)
    assert (run.id, run.meta["session"], run.stop_reason) == ("t", "g", None)
    assert run.extra == {"metadata": {"m": 1}, "tier": 2}
    assert [step.text for step in run.steps] == ["Hi", "Yes"]
    assert run.steps[1].extra == {"model": "m", "tokens": {"input": 9}}
    assert run.meta["input_tokens"] == 9


def test_traces_and_sessions(write):
    records = [
        TRACE, TRACE | {"id": "u", "metadata": None}, CALL, CALL | {"id": "2", "trace_id": "u"},
    ]  # fmt: skip
    runs = read(write, *records)
    assert [run.id for run in runs] == ["t", "u"]
    assert runs[1].extra == {"metadata": {}}
    assert AgentsSDK()._session(["x", {"group_id": None}, *records]) == "g"
    assert AgentsSDK()._session(["x", CALL]) is None


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (None, None),
        ({"message": "Max turns exceeded"}, "max_turns"),
        ({"message": "failed"}, "error"),
    ],
)
def test_stops(write, error, reason):
    inner = CALL | {"parent_id": "0"}
    (run,) = read(write, TRACE, span("0", "agent", error=error), inner)
    assert run.stop_reason == reason


def test_a_tool_that_failed(write):
    call = {"role": "assistant", "content": "", "tool_calls": [{"id": "c", "name": "f"}]}
    tool = span("2", "function", error={"message": "no"}, name="f", input="{}", output="x")
    (run,) = read(write, TRACE, span("1", input=[ASK], output=[call]), tool)
    (made,) = run.steps[1].tool_calls
    assert (made.result, made.error) == ("x", True)
    response = span("1", "response", response={"output": [ANSWER]})
    (run,) = read(write, TRACE, response)
    assert run.steps[-1].text == "Yes"


def test_spans_of_bare_ids_are_refused(write):
    bare = "its spans of responses hold no messages, as the SDK exports only their ids"
    with pytest.raises(ValueError, match=bare):
        read(write, TRACE, span("1", "response", response_id="r"))
    with pytest.raises(ValueError, match="its spans have no content"):
        read(write, TRACE, span("1", "agent"))
    for inputs, said in (([ASK], "it has no turn of the agent"), ([ASK, ANSWER], None)):
        record = span("1", "response", input=inputs)
        if said is None:
            (run,) = read(write, TRACE, record)
            assert [step.text for step in run.steps] == ["Hi", "Yes"]
        else:
            with pytest.raises(ValueError, match=said):
                read(write, TRACE, record)
    (run,) = read(write, TRACE, span("1", "response"), span("2", output=[ANSWER]))
    assert run.steps[-1].text == "Yes"
