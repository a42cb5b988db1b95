"""What is written of finished runs, in the words of each platform, by hand."""

import hashlib
import json

import pytest

from trajscore.core.version import __version__
from trajscore.integrations import Look
from trajscore.integrations._annotations import (
    LINES,
    Score,
    as_lines,
    for_langfuse,
    for_mlflow,
    for_otel,
    p_value,
    scores_of,
)
from trajscore.io import Run, Step

TRACE, SPAN = "0AF7651916CD43DD8448EB211C80319C", "b7ad6b7169203331"


def look(step, suspicion=0.5, flagged=None):
    return Look("r", step, flagged is not None, flagged, 1.23456, 2.99573, suspicion)


def run_of(*actors, spans=True):
    steps = [Step(actor, span=f"s{k}" if spans else None) for k, actor in enumerate(actors)]
    return Run("r", steps)


def test_a_score_for_each_turn_with_a_span_and_one_for_the_run():
    run = run_of("user", "environment", "agent")
    assert list(scores_of(run, [look(1), look(2, 0.96, 2)])) == [
        Score("r", "s0", "trajscore_p_value", 0.5, "step 1: log M = 1.23, threshold 3"),
        Score("r", "s2", "trajscore_p_value", 0.04, "step 2: log M = 1.23, threshold 3"),
        Score("r", None, "trajscore_flag", True, "flagged at step 2, threshold 3"),
    ]
    (alone,) = scores_of(run_of("user", spans=False), [look(1)])
    assert alone == Score("r", None, "trajscore_flag", False, "not flagged in 1 steps, threshold 3")


def test_signals_may_have_rows_of_the_agent_alone():
    first, second, _ = scores_of(run_of("user", "agent", "user", "agent"), [look(1), look(2)])
    assert (first.span, second.span) == ("s1", "s3")
    with pytest.raises(ValueError, match="signals have 3 rows, but the agent has 2 turns"):
        list(scores_of(run_of("user", "agent", "user", "agent"), [look(k) for k in (1, 2, 3)]))


@pytest.mark.parametrize(
    ("suspicion", "expected"), [(0.0, 1.0), (1.0, 0.0), (1 - 0.05, 0.05), (0.87654321, 0.123457)]
)
def test_p_values_have_six_digits(suspicion, expected):
    assert p_value(look(1, suspicion)) == expected


OF_RUN = Score(TRACE, None, "trajscore_flag", True, "why")
NOT_FLAGGED = OF_RUN._replace(value=False)
OF_TURN = Score(TRACE, "0x" + SPAN, "trajscore_p_value", 0.25, "seen")


def test_langfuse():
    whole, turn = for_langfuse([OF_RUN, OF_TURN])
    digest = hashlib.sha256(f"{TRACE} None trajscore_flag".encode()).hexdigest()
    assert whole == {
        "id": digest[:32],
        "traceId": TRACE,
        "name": "trajscore_flag",
        "value": 1.0,
        "dataType": "BOOLEAN",
        "comment": "why",
    }
    assert (turn["observationId"], turn["value"]) == ("0x" + SPAN, 0.25)
    assert turn["dataType"] == "NUMERIC"
    assert turn["id"] != whole["id"]


def test_mlflow():
    source = {"source_type": "CODE", "source_id": f"trajscore {__version__}"}
    whole = {"trace_id": TRACE, "name": "trajscore_flag", "value": True, "rationale": "why"}
    turn = {"trace_id": TRACE, "span_id": SPAN, "name": "trajscore_p_value", "value": 0.25}
    assert for_mlflow([OF_RUN, OF_TURN._replace(span=SPAN)]) == [
        whole | {"source": source},
        turn | {"rationale": "seen", "source": source},
    ]


def test_otel():
    (line,) = for_otel([OF_RUN, NOT_FLAGGED, OF_TURN])
    (logs,) = line["resourceLogs"][0]["scopeLogs"]
    assert logs["scope"] == {"name": "trajscore", "version": __version__}
    whole, other, turn = logs["logRecords"]
    name = "gen_ai.evaluation."
    values = [
        {item["key"].removeprefix(name): item["value"] for item in record["attributes"]}
        for record in (whole, other, turn)
    ]
    assert values[0] == {
        "name": {"stringValue": "trajscore_flag"},
        "score.value": {"doubleValue": 1.0},
        "explanation": {"stringValue": "why"},
        "score.label": {"stringValue": "flagged"},
    }
    assert values[1]["score.label"] == {"stringValue": "not flagged"}
    assert values[1]["score.value"] == {"doubleValue": 0.0}
    assert "score.label" not in values[2]
    assert values[2]["score.value"] == {"doubleValue": 0.25}
    assert (whole["traceId"], "spanId" in whole) == (TRACE.lower(), False)
    assert turn["spanId"] == SPAN
    assert {record["eventName"] for record in logs["logRecords"]} == {f"{name}result"}


@pytest.mark.parametrize(
    ("trace", "span", "digits"),
    [(TRACE[1:], SPAN, 32), ("g" * 32, SPAN, 32), (TRACE, SPAN + "0", 16), (TRACE, "", 16)],
)
def test_otlp_takes_no_other_ids(trace, span, digits):
    with pytest.raises(ValueError, match=f"OTLP takes ids of {digits} hexadecimal digits"):
        for_otel([OF_TURN._replace(trace=trace, span=span)])


def test_lines_of_calls():
    assert set(LINES) == {"langfuse", "otel", "mlflow"}
    assert as_lines([]) == ""
    assert as_lines([{"a": 1}, {"b": None}]) == '{"a": 1}\n{"b": null}\n'
    with pytest.raises(ValueError, match="JSON"):
        as_lines([{"a": float("nan")}])
    for line in LINES["mlflow"]([OF_RUN]):
        assert json.loads(as_lines([line])) == line
