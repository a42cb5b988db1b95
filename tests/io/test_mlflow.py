"""MLflow: each field of a trace and of a span, and whose an assessment is."""

import base64

import pytest

from trajscore import io
from trajscore.io.formats.mlflow import MLflow, _hex
from trajscore.io.registry import Head

ASK, ANSWER = {"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Yes"}


def span(key="2", kind="CHAT_MODEL", parent=None, attributes=None, **fields):
    own = {"mlflow.spanType": kind, "mlflow.spanInputs": [ASK], "mlflow.spanOutputs": ANSWER}
    return {"span_id": key, "name": key, "parent_span_id": parent,
            "attributes": own | (attributes or {})} | fields  # fmt: skip


def judged(name, value, **fields):
    return {"assessment_name": name, "feedback": {"value": value}} | fields


def read(write, info=None, spans=None, **fields):
    trace = {"info": {"trace_id": "t"} | (info or {}), "data": {"spans": spans or [span()]}}
    (run,) = io.read_runs(write("a.json", trace | fields), format="mlflow")
    return run


@pytest.mark.parametrize(
    ("fields", "recognised"),
    [
        ({"info": {}, "data": {"spans": []}}, True), ({"info": {}, "data": {}}, False),
        ({"info": 1, "data": {"spans": []}}, False), ({"spans": [], "assessments": []}, True),
        ({"spans": [], "trace_metadata": {}}, True), ({"spans": []}, False),
        ({"assessments": [], "trace_metadata": {}}, False), ({"info": {}, "data": 1}, False),
    ],
)  # fmt: skip
def test_files_of_the_format(fields, recognised):
    assert MLflow().recognise(Head(fields)) == recognised


def test_all_fields_of_a_trace(write):
    info = {
        "trace_metadata": {"mlflow.trace.session": "s", "mlflow.x": 1, "tier": 2},
        "tags": {"mlflow.y": 1, "team": "red"}, "state": "OK",
    }  # fmt: skip
    run = read(write, info)
    assert (run.id, run.meta["session"], run.stop_reason) == ("t", "s", None)
    assert run.extra["metadata"] == {"tier": 2}
    assert run.extra["tags"] == {"team": "red"}
    assert read(write, {"trace_id": None, "request_id": "r", "status": "error"}).id == "r"
    assert read(write, {"status": "error"}).stop_reason == "error"
    assert "session" not in read(write).meta


def test_all_fields_of_a_span(write):
    attributes = {
        "mlflow.llm.cost": {"total_cost": 0.5}, "mlflow.llm.model": "m",
        "mlflow.chat.tokenUsage": '{"input_tokens": 9, "output_tokens": 2}',
    }  # fmt: skip
    run = read(write, spans=[span(attributes=attributes)])
    assert [step.text for step in run.steps] == ["Hi", "Yes"]
    turn = run.steps[1]
    assert (turn.cost, turn.extra["model"]) == (0.5, "m")
    assert turn.extra["tokens"] == {"input": 9, "output": 2}


@pytest.mark.parametrize(
    ("fields", "reason"),
    [({"status": {"code": "STATUS_CODE_ERROR"}}, "error"), ({"status_code": "ERROR"}, "error"),
     ({"status": "OK", "status_code": "ERROR"}, None), ({}, None)],
)  # fmt: skip
def test_an_error_of_the_outermost_span_is_the_stop(write, fields, reason):
    run = read(write, spans=[span("1", "AGENT", **fields), span("2", parent="1")])
    assert run.stop_reason == reason


def test_assessments(write):
    assessments = [
        judged("right", True), judged("sure", 0.25, span_id="0x2"), judged("old", 1, valid=False),
        judged("far", 3, span_id="9"), judged("trajscore.flag", 1),
        {"name": "wanted", "expectation": {"value": "x"}},
    ]  # fmt: skip
    run = read(write, {"assessments": assessments})
    assert (run.scores, run.steps[1].scores) == ({"right": True, "far": 3}, {"sure": 0.25})
    assert run.extra["expectations"] == {"wanted": "x"}
    assert "expectations" not in read(write).extra


@pytest.mark.parametrize(
    ("name", "digits"),
    [("0x2a", "2a"), ("2a", "2a"), (base64.b64encode(b"*").decode(), "2a"), ("no=", "no=")],
)
def test_ids_of_spans(name, digits):
    assert _hex(name) == digits


def test_a_search_holds_traces_as_text(write):
    whole = {"trace_id": "t", "spans": [span()], "assessments": []}
    (run,) = io.read_runs(write("a.json", [{"trace": whole}]), format="mlflow")
    assert run.id == "t"
    with pytest.raises(ValueError, match="its spans are dict, not a list"):
        read(write, spans={"a": 1})
