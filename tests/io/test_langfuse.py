"""Traces of Langfuse: its records, each field of an observation, and whose a score is."""

import json

import pytest

from trajscore import io
from trajscore.io._run import Run
from trajscore.io._spans import Span
from trajscore.io.formats.langfuse import (
    Langfuse,
    _get,
    _is_observation,
    _is_score,
    _is_trace,
    _score_value,
    _span,
)
from trajscore.io.registry import Head

ASK = [{"role": "user", "content": "Hi"}]
ANSWER = {"role": "assistant", "content": "Yes"}


def generation(key="g", trace="t", **fields):
    own = {"id": key, "traceId": trace, "type": "GENERATION", "startTime": "2026-01-01T00:00:00Z"}
    return own | {"input": ASK, "output": ANSWER} | fields


def score(name, value, **fields):
    return {"traceId": "t", "name": name, "value": value} | fields


def trace(*observations, **fields):
    return {"id": "t", "observations": list(observations or [generation()])} | fields


@pytest.fixture
def read(write):
    """Read the runs of some records."""

    def read_all(*records, **options):
        return io.read_runs(write("log.json", list(records)), format="langfuse", **options)

    return read_all


# ------------------------------------------------------------------ records


@pytest.mark.parametrize(
    ("record", "kinds"),
    [
        ({"observations": []}, (True, False, False)),
        ({"observations": ["id"]}, (False, False, False)),
        ({"type": "SPAN", "traceId": "t", "startTime": 1}, (False, True, False)),
        ({"type": "SPAN", "trace_id": "t", "start_time": 1}, (False, True, False)),
        ({"type": "SPAN", "traceId": "t"}, (False, False, False)),
        ({"traceId": "t", "startTime": 1}, (False, False, False)),
        ({"traceId": "t", "name": "n", "value": None}, (False, False, True)),
        ({"trace_id": "t", "name": "n", "string_value": "x"}, (False, False, True)),
        ({"traceId": "t", "name": "n"}, (False, False, False)),
        ({"name": "n", "value": 1}, (False, False, False)),
        ({"traceId": "t", "value": 1}, (False, False, False)),
    ],
)
def test_kinds_of_records(record, kinds):
    assert (_is_trace(record), _is_observation(record), _is_score(record)) == kinds
    assert Langfuse().recognise(Head(record, listed=True)) == any(kinds)


@pytest.mark.parametrize(
    ("fields", "recognised"),
    [
        ({"observations": [], "scores": []}, True),
        ({"observations": [], "timestamp": 1}, True),
        ({"observations": []}, False),
        ({"trace": {}}, False),
        ({"data": [generation()], "meta": {}}, True),
        ({"data": [generation()]}, False),
        ({"data": [{}], "meta": {}}, False),
        ({"data": [{}, generation()], "meta": {}}, False),
        ({"data": [], "meta": {}}, False),
    ],
)
def test_heads_of_objects(fields, recognised):
    assert Langfuse().recognise(Head(fields)) == recognised


def test_fields_in_either_spelling():
    record = {"traceId": None, "parent_observation_id": "p"}
    assert _get(record, "traceId") is None
    assert _get(record, "parentObservationId") == "p"
    assert _get(record, "startTime") is None


@pytest.mark.parametrize(
    ("fields", "value"),
    [
        ({"value": 0.5}, 0.5),
        ({"value": 1, "dataType": "BOOLEAN"}, True),
        ({"value": 0.0, "data_type": "boolean"}, False),
        ({"value": "x", "dataType": "BOOLEAN"}, "x"),
        ({"value": 1, "stringValue": "good", "dataType": "CATEGORICAL"}, "good"),
        ({"value": 1, "stringValue": "good", "dataType": "NUMERIC"}, 1),
        ({"value": None, "string_value": "good"}, "good"),
    ],
)
def test_values_of_scores(fields, value):
    found = _score_value(fields)
    assert (found, type(found)) == (value, type(value))


# ------------------------------------------------------------------ runs


def test_all_fields_of_an_observation(read):
    usage = {"usageDetails": {"input": 9, "output": 2}, "usage": {"input": 1}}
    (run,) = read(trace(generation(
        model="m", latency=0.5, totalCost=0.25, calculatedTotalCost=9, level="DEFAULT", **usage
    )))  # fmt: skip
    assert [(step.actor, step.text) for step in run.steps] == [("user", "Hi"), ("agent", "Yes")]
    turn = run.steps[1]
    assert (turn.cost, turn.extra["model"], turn.extra["latency"]) == (0.25, "m", 0.5)
    assert turn.extra["tokens"] == {"input": 9, "output": 2}
    (other,) = read(trace(generation(calculated_total_cost=9, usage={"input": 1})))
    assert (other.steps[1].cost, other.steps[1].extra["tokens"]) == (9, {"input": 1})


@pytest.mark.parametrize(("level", "error"), [("ERROR", True), ("WARNING", None), (None, None)])
def test_observations_of_tools(read, level, error):
    call = ANSWER | {"content": "", "tool_calls": [{"id": "c", "name": "f"}]}
    of_tool = {
        "id": "s", "traceId": "t", "type": "TOOL", "startTime": "2026-01-01T00:00:01Z",
        "name": "named", "input": {"x": 1}, "output": "42", "level": level, "parent": None,
    }  # fmt: skip
    metadata = {"gen_ai.tool.name": "f", "tool.id": "c"}
    for told in (metadata, json.dumps(metadata), {"attributes": metadata}):
        (run,) = read(trace(generation(output=call), of_tool | {"metadata": told}))
        (made,) = run.steps[1].tool_calls
        assert (made.name, made.result, made.error) == ("f", "42", error)
    (run,) = read(trace(of_tool))
    assert run.steps[0].tool_calls[0].name == "named"


def test_what_a_trace_holds(read):
    inner = {"id": "t", "name": "n", "sessionId": "s", "output": '{"a": 1}', "scores": []}
    (run,) = read({"trace": inner, "observations": [generation()]})
    assert (run.id, run.meta["session"]) == ("t", "s")
    assert run.extra == {"name": "n", "sessionId": "s", "output": {"a": 1}}
    (bare,) = read(trace())
    assert ("session" in bare.meta, bare.extra) == (False, {})


def test_scores_of_turns_and_of_runs(read):
    scores = [score("a", 1), score("b", 0.5, observationId="g"), score("c", 2, observationId="?")]
    scores += [score("trajscore.flag", 1), score("trajscore", 0, observationId="g")]  # ours
    for records in ([trace(scores=scores)], [generation(), *scores]):
        (run,) = read(*records)
        assert (run.scores, run.steps[1].scores) == ({"a": 1, "c": 2}, {"b": 0.5})


def test_scores_that_differ_are_counted(read):
    runs = read(trace(scores=[score("a", 1), score("a", 0), score("b", 1), score("b", 1)]))
    assert runs[0].scores == {"a": 0, "b": 1}
    assert runs.notes[-1].startswith("1 score with another value than one of the same name")


def test_records_that_stand_apart_belong_to_their_traces(read):
    runs = read(
        generation("1", "t"), generation("2", "u"), score("a", 1), score("a", 0, traceId="v")
    )
    assert [(run.id, run.scores) for run in runs] == [("t", {"a": 1}), ("u", {})]


def test_sessions_may_be_the_runs(read):
    later = [*ASK, ANSWER, {"role": "user", "content": "And?"}]
    traces = [
        {"trace": {"id": key, "sessionId": session}, "observations": [observation]}
        for key, session, observation in (
            ("t", "s", generation("1", "t")),
            ("u", "r", generation("2", "u")),
            ("v", "s", generation("3", "v", input=later)),
        )
    ]
    assert [len(run.steps) for run in read(*traces, id="sessionId")] == [4, 2]
    assert len(read(*traces)) == 3


@pytest.mark.parametrize(
    ("record", "problem"),
    [
        (trace(scores="x"), "its observations or scores are str, not a list"),
        (trace(scores=[1]), "it is int, not an object"),
    ],
)
def test_traces_that_cannot_be_read(read, record, problem):
    with pytest.raises(ValueError, match=problem):
        read(record)


@pytest.mark.parametrize("page", [True, False])
def test_pages_of_the_interface(write, page):
    traces = [trace(id="t"), trace(id="u")]
    content = {"data": traces, "meta": {"page": 1}} if page else traces[0]
    runs = io.read_runs(write("log.json", content), format="langfuse")
    assert [run.id for run in runs] == ["t", "u"][: 1 + page]


def test_records_that_are_no_objects_are_left_out(read):
    with pytest.warns(
        UserWarning, match="1 of 2 runs could not be read .*it is str, not a list of"
    ):
        runs = read(trace(), "x")
    assert len(runs) == 1
    assert Langfuse().trace_of(None) == "None"


def test_whole_traces_of_one_file_are_runs_even_if_they_share_an_id(write, read):
    assert [run.id for run in read(trace(), trace())] == ["t", "t"]
    files = [write(f"{name}.json", [trace()]) for name in "ab"]
    assert [run.id for run in io.read_runs(files, format="langfuse")] == ["t"]
    of_session = [trace(sessionId="s"), trace(sessionId="s")]
    assert len(read(*of_session, id="sessionId")) == 1


@pytest.mark.parametrize(
    ("fields", "is_run"), [({}, False), ({"meta": 1}, False), ({"id": 1}, True),
                           ({"meta": 1, "id": 1}, True)]
)  # fmt: skip
def test_a_file_that_is_a_trace(fields, is_run):
    assert Langfuse()._is_run(fields) is is_run


@pytest.mark.parametrize(
    ("values", "replaced"), [([1, 0], 1), ([1, 1], None), ([1], None), ([0, 1, 0, 0], 2)]
)
def test_the_last_of_several_scores_counts(values, replaced):
    run = Run("t")
    Langfuse().spans([score("a", value) for value in values], run)
    assert (run.scores, run.extra.get("replaced_scores")) == ({"a": values[-1]}, replaced)


def test_an_observation_as_a_span():
    observation = generation(
        type="TOOL", parentObservationId="p", metadata={"tool.id": "c", "tool.name": "f"}, name="n",
        level="ERROR",
        usage={"input": 3}, calculatedTotalCost=2, feedback_scores=[{"name": "a", "value": 1}],
    )  # fmt: skip
    assert _span(observation) == Span(
        id="g", kind="tool", parent="p", start="2026-01-01T00:00:00Z", name="f", call="c",
        inputs=ASK, outputs=ANSWER, error=True, cost=2, tokens={"input": 3, "output": None},
        scores={"a": 1}, extra={"model": None, "latency": None},
    )  # fmt: skip
