"""Traces of Langfuse: every form of its export, each field, whose a score is, and real traces."""

import json

import pytest

from known_dialogue import ALL, ASK, SAMPLES, YES, said
from trajscore import io


def generation(key="g", trace="t", **fields):
    own = {"id": key, "traceId": trace, "type": "GENERATION", "startTime": "2026-01-01T00:00:00Z"}
    return own | {"input": [ASK], "output": YES} | fields


def score(name, value, **fields):
    return {"traceId": "t", "name": name, "value": value} | fields


def trace(*observations, **fields):
    return {"id": "t", "observations": list(observations or [generation()])} | fields


def read(write, *records, **options):
    return io.read_runs(write("log.json", list(records)), format="langfuse", **options)


def test_every_form_of_an_export(write):
    log = json.loads((SAMPLES / "langfuse.json").read_text())
    made, scores = log["observations"], log["trace"]["scores"]
    about = {"id": "t1", "sessionId": "s1", "name": "x"}
    for k, one in enumerate([*scores, *made[::-1], about]):
        pages = write(f"pages/{k}.json", {"data": [one], "meta": {"page": k}}).parent
    write("apart/observations.jsonl", made, lines=True)
    apart = write("apart/scores.jsonl", scores, lines=True).parent
    inner = [{k: v for k, v in one.items() if k != "traceId"} for one in made]
    write("beside/traces.jsonl", [about | {"observations": inner}], lines=True)
    beside = write("beside/scores.jsonl", scores, lines=True).parent
    whole = about | {"observations": made, "scores": scores, "timestamp": "2026"}
    snake = {"traceId": "trace_id", "startTime": "start_time", "observationId": "observation_id",
             "parentObservationId": "parent_observation_id", "dataType": "data_type"}  # fmt: skip
    stored = [{snake.get(k, k): v for k, v in one.items()} for one in (*made, *scores)]
    for path in (
        pages, apart, beside, write("whole.json", whole), write("listed.json", [whole]),
        write("records.json", [*made, *scores]), write("stored.jsonl", stored, lines=True),
        write("page.json", {"data": [*made, *scores], "meta": {}}),
    ):  # fmt: skip
        (run,) = io.read_runs(path)
        assert (said(run), run.id, run.outcome) == (ALL, "t1", 1), path
        assert [step.confidence for step in run.steps] == [None, 0.7, 0.9], path
    two = write("log.json", {"data": [trace(), trace(id="u")], "meta": {}})
    assert [run.id for run in io.read_runs(two)] == ["t", "u"]


def test_what_a_trace_holds(write):
    inner = {"id": "t", "name": "n", "sessionId": "s", "output": '{"a": 1}', "scores": []}
    (run,) = read(write, {"trace": inner, "observations": [generation()]})
    assert (run.id, run.meta["session"]) == ("t", "s")
    assert run.extra == {"name": "n", "sessionId": "s", "output": {"a": 1}}
    assert read(write, trace())[0].extra == {}


def test_scores_of_turns_and_of_runs(write):
    scores = [score("a", 1), score("b", 0.5, observationId="g"), score("c", 2, observationId="?")]
    scores += [score("trajscore.flag", 1), score("trajscore", 0, observationId="g")]  # ours
    for records in ([trace(scores=scores)], [generation(), *scores]):
        (run,) = read(write, *records)
        assert (run.scores, run.steps[1].scores) == ({"a": 1, "c": 2}, {"b": 0.5})
    for fields, value in (
        ({"value": 0.5}, 0.5), ({"value": 1, "dataType": "BOOLEAN"}, True),
        ({"value": 0.0, "data_type": "boolean"}, False),
        ({"value": "x", "dataType": "BOOLEAN"}, "x"),
        ({"value": 1, "stringValue": "good", "dataType": "CATEGORICAL"}, "good"),
        ({"value": 1, "stringValue": "good", "dataType": "NUMERIC"}, 1),
        ({"value": None, "string_value": "good"}, "good"),
    ):  # fmt: skip
        (run,) = read(write, generation(), {"traceId": "t", "name": "a", **fields})
        assert (run.scores["a"], type(run.scores["a"])) == (value, type(value)), fields
    for values, replaced in (([1, 0], 1), ([1, 1], None), ([1], None), ([0, 1, 0, 0], 2)):
        (run,) = (runs := read(write, trace(scores=[score("a", value) for value in values])))
        assert (run.scores["a"], run.extra.get("replaced_scores")) == (values[-1], replaced)
        assert bool(replaced) == any("another value" in note for note in runs.notes)


def test_which_records_make_up_a_run(write):
    scores = score("a", 1), score("a", 0, traceId="v")
    runs = read(write, generation("1", "t"), generation("2", "u"), *scores)
    assert [(run.id, run.scores) for run in runs] == [("t", {"a": 1}), ("u", {})]
    # whole traces of one file are runs even if they share an id, which must then be another
    with pytest.raises(ValueError, match="2 runs have the id 't'"):
        read(write, trace(), trace())
    files = [write(f"{name}.json", [trace()]) for name in "ab"]
    assert [run.id for run in io.read_runs(files, format="langfuse")] == ["t"]
    # the traces of a session are one run if the session is the id
    later = [ASK, YES, {"role": "user", "content": "And?"}]
    traces = [
        {"trace": {"id": key, "sessionId": session}, "observations": [made]}
        for key, session, made in (
            ("t", "s", generation("1", "t")), ("u", "r", generation("2", "u")),
            ("v", "s", generation("3", "v", input=later)),
        )
    ]  # fmt: skip
    for name in ("sessionId", "session"):
        runs = read(write, *traces, id=name)
        assert [(run.id, len(run.steps)) for run in runs] == [("s", 4), ("r", 2)]
    assert len(read(write, *traces)) == 3


def test_records_that_cannot_be_read(write):
    for record, words in (
        (trace(scores="x"), "scores are str, not a list"), (trace(scores=[1]), "int, not an object")
    ):  # fmt: skip
        with pytest.raises(ValueError, match=rf"\(index 0\).*{words}"):
            read(write, record)
    for other in ([{"observations": ["id"]}], [{"trace": {}}], {"data": [], "meta": {}}):
        with pytest.raises(ValueError, match=r"log\.json"):
            io.read_runs(write("log.json", other))
    with pytest.warns(UserWarning, match=r"1 of 2 runs.*: it is str"):
        assert len(read(write, trace(), "x")) == 1


# who acts, by the first letter, and how many calls of tools there are
REAL = {
    "autogen-2025-06-06": ("ua", 0), "claude-agent-2025-12-22": ("uaaaa", 2),
    "crewai-2025-07-11": ("ua", 0), "langgraph-python-2025-08-22": ("uuaa", 1),
    "openai-agents-2025-09-30": ("uaa", 1), "pydantic-ai-tools-2025-12-04": ("uaauaua", 4),
    "vercel-aisdk-2025-11-17": ("ua", 1),
}  # fmt: skip


def test_real_traces_as_langfuses_own_converter_reads_them(public_file):
    for name, (actors, tools) in REAL.items():
        (run,) = io.read_runs(public_file("traces", "langfuse", f"{name}.trace.json"))
        assert "".join(step.actor[0] for step in run.steps) == actors, name
        assert sum(len(step.tool_calls) for step in run.steps) == tools, name
        assert "unmatched_results" not in run.extra
        ours = [" ".join(part[1].split()) for part in said(run) if len(part) == 2]
        theirs = json.loads(public_file("traces", "langfuse", f"{name}.chatml.json").read_text())
        for side in (side for sides in theirs.values() for side in sides.values()):
            place = 0
            for message in side["data"] if side["success"] else ():
                text, role = message.get("content"), message.get("role")
                if isinstance(text, str) and text and role in ("system", "user", "assistant"):
                    assert " ".join(text.split()) in ours[place:], (name, text)
                    place = ours.index(" ".join(text.split()), place)


def test_scores_of_real_traces(public_file):
    paths = [public_file("traces", "langfuse", f"{name}.trace.json") for name in REAL]
    runs = io.read_runs(paths)
    assert [run.outcome for run in runs] == [-1, 0, -1, -1, -1, -1, -1]  # one has "correctness"
    assert runs[4].scores == {"toxicity": 0.8, "hallucination": 0}
    assert any("toxicity" in note for note in runs.notes)


@pytest.mark.parametrize(
    ("declared", "outcome"),
    [({"value": 0, "stringValue": "good", "dataType": "TEXT"}, 1),
     ({"value": "good", "dataType": "TEXT"}, 1), ({"value": 0, "dataType": "TEXT"}, -1),
     ({"value": 0, "string_value": "good", "data_type": "CATEGORICAL"}, 1),
     ({"value": 1, "stringValue": "False", "dataType": "BOOLEAN"}, 1),
     ({"value": 0, "stringValue": "good", "dataType": "NUMERIC"}, 0),
     ({"value": 0, "stringValue": "good", "dataType": "CORRECTION"}, -1)],
)  # fmt: skip
def test_a_score_of_text_is_its_word(write, declared, outcome):
    log = trace(scores=[score("correctness", **declared)])
    (run,) = io.read_runs(write("log.json", [log]), outcome_map={"good": 1})
    assert run.outcome == outcome
