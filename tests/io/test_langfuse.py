"""Traces of Langfuse: every form of its export, each field, whose a score is, and real traces."""

import json

import pytest

from known_dialogue import ALL, ASK, FOUND, LOOK, SAMPLES, TOLD, said
from trajscore import io
from trajscore.io import Run

YES = {"role": "assistant", "content": "Yes"}


def observation(name, kind, start, **fields):
    own = {"id": name, "traceId": "t1", "type": kind, "name": fields.pop("tool", name)}
    own |= {"startTime": f"2026-01-01T00:00:0{start}Z"}
    return own | {"parentObservationId": fields.pop("parent", "root"), **fields}


OBSERVATIONS = [
    observation("second", "GENERATION", 3, input=[ASK, LOOK, FOUND], output=TOLD, totalCost=0.5),
    observation("root", "SPAN", 0, input={"messages": [ASK]}, output="In Paris.", parent=None),
    observation("first", "GENERATION", 1, input=json.dumps([ASK]), output=json.dumps(LOOK),
     usageDetails={"input": 7, "output": 2, "total": 9},),
    observation("run", "TOOL", 2, tool="find", input='{"order": 3}', output="in Paris"),
]  # fmt: skip
SCORES = [
    {"id": "1", "traceId": "t1", "name": "success", "value": 1, "dataType": "BOOLEAN"},
    {"id": "2", "traceId": "t1", "observationId": "first", "name": "confidence", "value": 0.7},
    {"id": "3", "traceId": "t1", "name": "tone", "stringValue": "warm", "dataType": "CATEGORICAL"},
]


def generation(key="g", trace="t", **fields):
    own = {"id": key, "traceId": trace, "type": "GENERATION", "startTime": "2026-01-01T00:00:00Z"}
    return own | {"input": [ASK], "output": YES} | fields


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


def test_the_sample():
    (run,) = io.read_runs(SAMPLES / "langfuse.json")
    assert said(run) == ALL
    assert (run.id, run.outcome, run.meta["session"]) == ("t1", 1, "s1")
    assert [step.confidence for step in run.steps] == [None, 0.7, 0.9]


def test_every_form_of_an_export(write):
    pages = [*SCORES, *OBSERVATIONS, {"id": "t1", "sessionId": "s", "name": "x"}]
    for k, one in enumerate(pages):
        folder = write(f"pages/{k}.json", {"data": [one], "meta": {"page": k}}).parent
    write("apart/observations.jsonl", OBSERVATIONS, lines=True)
    apart = write("apart/scores.jsonl", SCORES, lines=True).parent
    nameless = [{k: v for k, v in one.items() if k != "traceId"} for one in OBSERVATIONS]
    write("scores/o.jsonl", [{"id": "t1", "observations": nameless}], lines=True)
    beside = write("scores/scores.jsonl", SCORES, lines=True).parent
    whole = {"id": "t1", "observations": OBSERVATIONS, "scores": SCORES}
    forms = {
        "around": {"trace": {"id": "t1", "scores": SCORES}, "observations": OBSERVATIONS},
        "whole": whole | {"timestamp": "2026"}, "listed": [whole],
        "records": [*OBSERVATIONS, *SCORES],
        "a page": {"data": [*OBSERVATIONS, *SCORES], "meta": {"page": 1}},
    }  # fmt: skip
    paths = [write(f"{name}.json", log) for name, log in forms.items()]
    for path in (*paths, folder, apart, beside):
        (run,) = io.read_runs(path)
        assert (said(run), run.id, run.outcome) == (ALL, "t1", 1), path
        assert [step.confidence for step in run.steps] == [None, 0.7, None], path
        assert run.scores["tone"] == "warm"
        assert (run.meta["input_tokens"], run.steps[-1].cost) == (7, 0.5)
        assert path != folder or (run.meta["session"], run.extra["name"]) == ("s", "x")
    stored = [
        {"id": one["id"], "trace_id": "t1", "type": one["type"], "name": one["name"],
         "start_time": one["startTime"].replace("T", " "), "input": one["input"],
         "parent_observation_id": one["parentObservationId"], "output": one["output"]}
        for one in OBSERVATIONS
    ]  # fmt: skip
    assert said(io.read_runs(write("log.jsonl", stored, lines=True))[0]) == ALL
    two = write("log.json", {"data": [trace(), trace(id="u")], "meta": {}})
    assert [run.id for run in io.read_runs(two)] == ["t", "u"]


def test_all_fields_of_an_observation(read):
    usage = {"usageDetails": {"input": 9, "output": 2}, "usage": {"input": 1}}
    costs = {"totalCost": 0.25, "calculatedTotalCost": 9}
    (run,) = read(trace(generation(model="m", latency=0.5, level="DEFAULT", **costs, **usage)))
    turn = run.steps[1]
    assert (turn.text, turn.cost, turn.span) == ("Yes", 0.25, "g")
    assert turn.extra == {"model": "m", "latency": 0.5, "tokens": {"input": 9, "output": 2}}
    (other,) = read(trace(generation(calculated_total_cost=9, usage={"input": 1})))
    assert (other.steps[1].cost, other.steps[1].extra["tokens"]) == (9, {"input": 1})
    call = YES | {"content": "", "tool_calls": [{"id": "c", "name": "f"}]}
    of_tool = observation("s", "TOOL", 1, tool="named", input={"x": 1}, output="42")
    metadata = {"gen_ai.tool.name": "f", "tool.id": "c"}
    for level, error in (("ERROR", True), ("WARNING", None), (None, None)):
        for told in (metadata, json.dumps(metadata), {"attributes": metadata}):
            own = of_tool | {"level": level, "metadata": told}
            (made,) = read(trace(generation(output=call), own))[0].steps[1].tool_calls
            assert (made.name, made.result, made.error) == ("f", "42", error), (level, told)
    assert read(trace(of_tool))[0].steps[0].tool_calls[0].name == "named"


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
    for fields, value in (
        ({"value": 0.5}, 0.5), ({"value": 1, "dataType": "BOOLEAN"}, True),
        ({"value": 0.0, "data_type": "boolean"}, False),
        ({"value": "x", "dataType": "BOOLEAN"}, "x"),
        ({"value": 1, "stringValue": "good", "dataType": "CATEGORICAL"}, "good"),
        ({"value": 1, "stringValue": "good", "dataType": "NUMERIC"}, 1),
        ({"value": None, "string_value": "good"}, "good"),
    ):  # fmt: skip
        (run,) = read(generation(), {"traceId": "t", "name": "a", **fields})
        assert (run.scores["a"], type(run.scores["a"])) == (value, type(value)), fields
    for values, replaced in (([1, 0], 1), ([1, 1], None), ([1], None), ([0, 1, 0, 0], 2)):
        (run,) = (runs := read(trace(scores=[score("a", value) for value in values])))
        assert (run.scores["a"], run.extra.get("replaced_scores")) == (values[-1], replaced)
        assert bool(replaced) == any("another value" in note for note in runs.notes)


def test_which_records_make_up_a_run(read, write):
    runs = read(
        generation("1", "t"), generation("2", "u"), score("a", 1), score("a", 0, traceId="v")
    )
    assert [(run.id, run.scores) for run in runs] == [("t", {"a": 1}), ("u", {})]
    # whole traces of one file are runs even if they share an id
    assert [run.id for run in read(trace(), trace())] == ["t", "t"]
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
        assert [(run.id, len(run.steps)) for run in read(*traces, id=name)] == [("s", 4), ("r", 2)]
    assert len(read(*traces)) == 3


@pytest.mark.parametrize(
    "records",
    [[{"observations": ["id"]}], [{"type": "SPAN", "traceId": "t"}], [{"trace": {}}],
     [{"traceId": "t", "name": "n"}], {"data": [], "meta": {}}],
)  # fmt: skip
def test_what_is_not_of_langfuse(write, records):
    with pytest.raises(ValueError, match=r"log\.json"):
        io.read_runs(write("log.json", records))


def test_records_that_cannot_be_read(read):
    for record, words in (
        (trace(scores="x"), "scores are str, not a list"), (trace(scores=[1]), "int, not an object")
    ):  # fmt: skip
        with pytest.raises(ValueError, match=rf"\(index 0\).*{words}"):
            read(record)
    with pytest.warns(UserWarning, match=r"1 of 2 runs.*: it is str"):
        assert len(read(trace(), "x")) == 1


# ------------------------------------------------------------------ real traces

# who acts, by the first letter, and how many calls of tools there are
REAL = {
    "autogen-2025-06-06": ("ua", 0),
    "claude-agent-2025-12-22": ("uaaaa", 2),
    "crewai-2025-07-11": ("ua", 0),
    "langgraph-python-2025-08-22": ("uuaa", 1),
    "openai-agents-2025-09-30": ("uaa", 1),
    "pydantic-ai-tools-2025-12-04": ("uaauaua", 4),
    "vercel-aisdk-2025-11-17": ("ua", 1),
}


def plain(content):
    """Return a text without regard to spaces, and JSON without regard to how it is written."""
    text = content if isinstance(content, str) else json.dumps(content)
    try:
        value = json.loads(text)
    except ValueError:
        return " ".join(text.split())
    return json.dumps(value if not isinstance(value, list) or len(value) > 1 else value[0])


def said_in(run: Run):
    """Return all that a run says, in order."""
    parts = [("system", plain(text)) for text in run.extra.get("system", ())]
    for step in run.steps:
        parts += [(step.actor, plain(step.text))] if step.text else []
        parts += [("call", call.name) for call in step.tool_calls]
        parts += [("tool", plain(call.result)) for call in step.tool_calls if call.result]
    return [*parts, ("json", plain(run.extra.get("output", "")))]


def said_by(messages):
    """Return what the messages say that Langfuse's own converter read."""
    actors = {"assistant": "agent", "model": "agent", "developer": "system"}
    for message in messages:
        content, role = message.get("content"), message.get("role", "tool")
        parts = content if isinstance(content, list) else [content]
        used = [p["name"] for p in parts if isinstance(p, dict) and p.get("type") == "tool_use"]
        if content and not used:
            texts = all(isinstance(p, dict) and p.get("type") == "text" for p in parts)
            words = "\n".join(p["text"] for p in parts) if texts else content
            yield actors.get(role, role), plain(words)
        used += [call["name"] for call in message.get("tool_calls") or ()]
        yield from (("call", name) for name in used)
        if "json" in message and "role" not in message:
            yield "json", plain(message["json"])


def test_real_traces_as_langfuses_own_converter_reads_them(public_file):
    for name, (actors, tools) in REAL.items():
        (run,) = io.read_runs(public_file("traces", "langfuse", f"{name}.trace.json"))
        assert "".join(step.actor[0] for step in run.steps) == actors, name
        assert sum(len(step.tool_calls) for step in run.steps) == tools, name
        assert "unmatched_results" not in run.extra
        theirs = json.loads(public_file("traces", "langfuse", f"{name}.chatml.json").read_text())
        ours = said_in(run)
        for side in (side for sides in theirs.values() for side in sides.values()):
            place = 0
            for kind, text in said_by(side["data"]) if side["success"] else ():
                wanted = [(one, text) for one in {kind, "tool" if kind == "json" else kind}]
                found = [k for k in range(place, len(ours)) if ours[k] in wanted]
                assert found, (name, kind, text)
                place = found[0]


def test_scores_of_real_traces(public_file):
    paths = [public_file("traces", "langfuse", f"{name}.trace.json") for name in REAL]
    runs = io.read_runs(paths)
    assert [run.outcome for run in runs] == [-1, 0, -1, -1, -1, -1, -1]  # one has "correctness"
    assert runs[4].scores == {"toxicity": 0.8, "hallucination": 0}
    assert any("toxicity" in note for note in runs.notes)
