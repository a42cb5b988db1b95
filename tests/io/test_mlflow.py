"""MLflow: each field of a trace and of a span, and whose an assessment is."""

import base64
import json

import pytest

from known_dialogue import ALL, HI, SAMPLES, YES, said, turns
from trajscore import io


def span(key="2", kind="CHAT_MODEL", parent=None, attributes=None, **fields):
    own = {"mlflow.spanType": kind, "mlflow.spanInputs": [HI], "mlflow.spanOutputs": YES}
    ids = {"span_id": key, "name": key, "parent_span_id": parent}
    return ids | {"attributes": own | (attributes or {})} | fields


def judged(name, value, **fields):
    return {"assessment_name": name, "feedback": {"value": value}} | fields


def read(write, info=None, spans=None, **fields):
    trace = {"info": {"trace_id": "t"} | (info or {}), "data": {"spans": spans or [span()]}}
    (run,) = io.read_runs(write("a.json", trace | fields), format="mlflow")
    return run


def test_a_trace_in_its_forms(write):
    log = json.loads((SAMPLES / "mlflow.json").read_text())
    spans = log["data"]["spans"]
    flat = log["info"] | {"spans": spans, "trace_metadata": {}}
    for content in (
        log, [log], {"traces": [log]}, flat, [{"trace": json.dumps(flat)}],
        log | {"data": {"spans": json.dumps(spans)}},
    ):  # fmt: skip
        (run,) = io.read_runs(write("a.json", content), format="mlflow")
        assert (said(run), run.id, run.outcome) == (ALL, "tr-1", 1), content
        assert [step.confidence for step in run.steps] == [None, 0.7, None], content
    for path in (write("b.jsonl", [log], lines=True), write("c.json", flat)):
        assert said(io.read_runs(path)[0]) == ALL


def test_all_fields_of_a_trace_and_of_a_span(write):
    info = {
        "trace_metadata": {"mlflow.trace.session": "s", "mlflow.x": 1, "tier": 2},
        "tags": {"mlflow.y": 1, "team": "red"}, "state": "OK",
    }  # fmt: skip
    run = read(write, info)
    assert (run.id, run.meta["session"], run.stop_reason) == ("t", "s", None)
    assert (run.extra["metadata"], run.extra["tags"]) == ({"tier": 2}, {"team": "red"})
    run = read(write, {"trace_id": None, "request_id": "r", "status": "error"})
    assert (run.id, run.stop_reason, "session" in run.meta) == ("r", "error", False)
    attributes = {
        "mlflow.llm.cost": {"total_cost": 0.5}, "mlflow.llm.model": "m",
        "mlflow.chat.tokenUsage": '{"input_tokens": 9, "output_tokens": 2}',
    }  # fmt: skip
    run = read(write, spans=[span(attributes=attributes)])
    assert turns(run) == [("user", "Hi"), ("agent", "Yes")]
    turn = run.steps[1]
    assert (turn.cost, turn.extra["model"]) == (0.5, "m")
    assert turn.extra["tokens"] == {"input": 9, "output": 2}
    for fields, reason in (
        ({"status": {"code": "STATUS_CODE_ERROR"}}, "error"), ({"status_code": "ERROR"}, "error"),
        ({"status": "OK", "status_code": "ERROR"}, None), ({}, None),
    ):  # fmt: skip
        run = read(write, spans=[span("1", "AGENT", **fields), span("2", parent="1")])
        assert run.stop_reason == reason, fields


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
    for name in ("0x2a", "2a", base64.b64encode(b"*").decode(), "no="):
        owned = {"assessments": [judged("sure", 1, span_id=name)]}
        (_, turn) = read(write, owned, [span("no=" if name == "no=" else "2a")]).steps
        assert turn.scores == {"sure": 1}, name


def test_what_cannot_be_read(write):
    with pytest.raises(ValueError, match=r"run 't' \(index 0\).*its spans are dict, not a list"):
        read(write, spans={"a": 1})
    for fields in (
        {"info": {}, "data": {}}, {"info": 1, "data": {"spans": []}}, {"info": {}, "data": 1},
        {"assessments": [], "trace_metadata": {}},
    ):  # fmt: skip
        with pytest.raises(ValueError, match=r"a\.json"):
            io.read_runs(write("a.json", fields))
