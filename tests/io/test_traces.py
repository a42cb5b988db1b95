"""Logs of tracers, in the shapes that they are documented in or were seen in."""

import json
from pathlib import Path

import pytest

from known_dialogue import ALL, ASK, FOUND, LOOK, TOLD, said
from trajscore import io

# ------------------------------------------------------------------ Langfuse


def observation(name, kind, start, **fields):
    return {
        "id": name,
        "traceId": "t1",
        "type": kind,
        "name": fields.pop("tool", name),
        "startTime": f"2026-01-01T00:00:0{start}Z",
        "parentObservationId": fields.pop("parent", "root"),
        **fields,
    }


OBSERVATIONS = [
    observation("second", "GENERATION", 3, input=[ASK, LOOK, FOUND], output=TOLD, totalCost=0.5),
    observation("root", "SPAN", 0, input={"messages": [ASK]}, output="In Paris.", parent=None),
    observation(
        "first", "GENERATION", 1, input=json.dumps([ASK]), output=json.dumps(LOOK),
        usageDetails={"input": 7, "output": 2, "total": 9},
    ),
    observation("run", "TOOL", 2, tool="find", input='{"order": 3}', output="in Paris"),
]  # fmt: skip
SCORES = [
    {"id": "1", "traceId": "t1", "name": "success", "value": 1, "dataType": "BOOLEAN"},
    {"id": "2", "traceId": "t1", "observationId": "first", "name": "confidence", "value": 0.7},
    {"id": "3", "traceId": "t1", "name": "tone", "stringValue": "warm", "dataType": "CATEGORICAL"},
]


def check_langfuse(run):
    assert said(run) == ALL
    assert (run.id, run.outcome) == ("t1", 1)
    assert [step.confidence for step in run.steps] == [None, 0.7, None]
    assert run.scores["tone"] == "warm"
    assert (run.meta["input_tokens"], run.steps[-1].cost) == (7, 0.5)


@pytest.mark.parametrize(
    "log",
    [
        {"trace": {"id": "t1", "scores": SCORES}, "observations": OBSERVATIONS},
        {"id": "t1", "timestamp": "2026", "observations": OBSERVATIONS, "scores": SCORES},
        [{"id": "t1", "observations": OBSERVATIONS, "scores": SCORES}],
        [*OBSERVATIONS, *SCORES],
        {"data": [*OBSERVATIONS, *SCORES], "meta": {"page": 1}},
    ],
)
def test_langfuse_in_every_form_of_its_export(write, log):
    (run,) = io.read_runs(write("log.json", log))
    check_langfuse(run)


def test_langfuse_with_scores_in_another_file(write):
    rows = [{k: v for k, v in one.items() if k != "traceId"} for one in OBSERVATIONS]
    write("export/observations.jsonl", OBSERVATIONS, lines=True)
    path = write("export/scores.jsonl", SCORES, lines=True)
    (run,) = io.read_runs(path.parent)
    check_langfuse(run)
    write("export/observations.jsonl", [{"id": "t1", "observations": rows}], lines=True)
    check_langfuse(io.read_runs(path.parent)[0])


def test_langfuse_in_the_names_of_its_storage(write):
    rows = [
        {
            "id": one["id"],
            "trace_id": "t1",
            "type": one["type"],
            "name": one["name"],
            "start_time": one["startTime"].replace("T", " "),
            "parent_observation_id": one["parentObservationId"],
            "input": one["input"],
            "output": one["output"],
        }
        for one in OBSERVATIONS
    ]
    (run,) = io.read_runs(write("log.jsonl", rows, lines=True))
    assert said(run) == ALL


def test_langfuse_over_several_files_in_any_order(write):
    for k, one in enumerate([*SCORES, *OBSERVATIONS, {"id": "t1", "sessionId": "s", "name": "x"}]):
        path = write(f"pages/{k}.json", {"data": [one], "meta": {"page": k}})
    (run,) = io.read_runs(path.parent)
    check_langfuse(run)
    assert (run.meta["session"], run.extra["name"]) == ("s", "x")


def test_the_traces_of_a_session_are_one_run_if_it_is_the_id(write):
    def trace(name, start, *talk):
        one = observation("o" + name, "GENERATION", start, input=list(talk[:-1]), output=talk[-1])
        one |= {"parentObservationId": None, "traceId": name}
        return {"id": name, "sessionId": "s", "observations": [one], "scores": []}

    again = {"role": "user", "content": "And order 4?"}
    rest = {"role": "assistant", "content": "In Rome."}
    traces = [trace("t2", 5, ASK, TOLD, again, rest), trace("t1", 1, ASK, TOLD)]
    path = write("log.jsonl", traces, lines=True)
    assert [run.id for run in io.read_runs(path)] == ["t2", "t1"]
    (run,) = io.read_runs(path, id="session")
    assert [step.text for step in run.steps] == [
        "Where is order 3?", "In Paris.", "And order 4?", "In Rome.",
    ]  # fmt: skip
    assert run.id == "s"


# ------------------------------------------------------------------ OpenTelemetry


def otlp(value):
    kind = {str: "stringValue", int: "intValue", bool: "boolValue", float: "doubleValue"}
    if isinstance(value, list):
        return {"arrayValue": {"values": [otlp(one) for one in value]}}
    return {kind[type(value)]: str(value) if type(value) is int else value}


def span(name, start, parent, attributes, form):
    if form == "otlp":
        pairs = [{"key": key, "value": otlp(value)} for key, value in attributes.items()]
        return {
            "traceId": "ab",
            "spanId": name,
            "parentSpanId": parent or "",
            "startTimeUnixNano": str(10**18 + start),
            "attributes": pairs,
        }
    return {
        "context": {"trace_id": "ab", "span_id": name},
        "parent_id": parent,
        "start_time": f"2026-01-01T00:00:0{start}.000000Z",
        "attributes": attributes,
    }


def test_spans_that_are_each_others_parents_are_noted(write):
    texts = {"input.value": "Hi", "output.value": "Bye"}
    spans = [span("a", 1, "b", texts, "sdk"), span("b", 2, "a", texts, "sdk")]
    runs = io.read_runs(write("log.json", spans), format="otel")
    assert runs[0].extra["input"] == "Hi"
    note = "spans of 1 trace are each other's parents; the first of them in time is taken as "
    assert runs.notes == [f"{note}the outermost"]


def parts(role, *found):
    return {"role": role, "parts": list(found)}


GEN_ASK = parts("user", {"type": "text", "content": "Where is order 3?"})
GEN_LOOK = parts(
    "assistant",
    {"type": "text", "content": "I look."},
    {"type": "tool_call", "id": "c1", "name": "find", "arguments": {"order": 3}},
)
GEN_FOUND = parts("tool", {"type": "tool_call_response", "id": "c1", "response": "in Paris"})
GEN_TOLD = parts("assistant", {"type": "text", "content": "In Paris."})


def by_genai(form):
    def chat(given, answer, **other):
        return {
            "gen_ai.operation.name": "chat",
            "gen_ai.system_instructions": json.dumps([{"type": "text", "content": "Be kind."}]),
            "gen_ai.input.messages": json.dumps(given),
            "gen_ai.output.messages": json.dumps([answer]),
            "gen_ai.usage.input_tokens": 5,
            **other,
        }

    tool = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "find",
        "gen_ai.tool.call.id": "c1",
        "gen_ai.tool.call.result": "in Paris",
    }
    last = chat([GEN_ASK, GEN_LOOK, GEN_FOUND], GEN_TOLD)
    return [  # as they end
        span("1", 1, "0", chat([GEN_ASK], GEN_LOOK, confidence=0.5), form),
        span("2", 2, "0", tool, form),
        span("3", 3, "0", last, form),
        span("0", 0, None, {"gen_ai.operation.name": "invoke_agent", "passed": True}, form),
    ]


def by_openinference(form):
    def message(side, k, one):
        start = f"llm.{side}_messages.{k}.message"
        fields = {f"{start}.role": one["role"]}
        if "content" in one:
            fields[f"{start}.contents.0.message_content.type"] = "text"
            fields[f"{start}.contents.0.message_content.text"] = one["content"]
        if "tool_call_id" in one:
            fields[f"{start}.tool_call_id"] = one["tool_call_id"]
        for call in one.get("tool_calls", ()):
            inner = f"{start}.tool_calls.0.tool_call"
            fields[f"{inner}.id"] = call["id"]
            fields |= {f"{inner}.function.{k}": v for k, v in call["function"].items()}
        return fields

    def llm(given, answer, **other):
        fields = {"openinference.span.kind": "LLM", "llm.token_count.prompt": 5, **other}
        for k, one in enumerate(given):
            fields |= message("input", k, one)
        return fields | message("output", 0, answer)

    system = {"role": "system", "content": "Be kind."}
    tool = {
        "openinference.span.kind": "TOOL",
        "tool.name": "find",
        "input.value": '{"order": 3}',
        "output.value": "in Paris",
    }
    judged = {"evaluations.0.evaluation.name": "confidence", "evaluations.0.evaluation.score": 0.5}
    root = {
        "openinference.span.kind": "AGENT",
        "trace.evaluations.0.evaluation.name": "passed",
        "trace.evaluations.0.evaluation.score": 1.0,
    }
    return [
        span("1", 1, "0", llm([system, ASK], LOOK, **judged), form),
        span("2", 2, "0", tool, form),
        span("3", 3, "0", llm([system, ASK, LOOK, FOUND], TOLD), form),
        span("0", 0, None, root, form),
    ]


@pytest.mark.parametrize("convention", [by_genai, by_openinference])
@pytest.mark.parametrize("form", ["otlp", "sdk"])
def test_spans_of_both_conventions_and_forms(write, convention, form):
    spans = convention(form)
    if form == "otlp":
        log = {"resourceSpans": [{"scopeSpans": [{"scope": {"name": "x"}, "spans": spans}]}]}
        paths = [write("a.json", log), write("b.jsonl", [log], lines=True)]
    else:
        paths = [write("a.jsonl", spans, lines=True), write("b.json", {"spans": spans})]
    for path in paths:
        (run,) = io.read_runs(path)
        assert said(run) == [("system", "Be kind."), *ALL]
        assert (run.id, run.outcome, run.meta["input_tokens"]) == ("ab", 1, 10)
        assert [step.confidence for step in run.steps] == [None, 0.5, None]


OLDER = {
    "gen_ai.prompt.0.role": "user",
    "gen_ai.prompt.0.content": "Where is order 3?",
    "gen_ai.completion.0.role": "assistant",
    "gen_ai.completion.0.content": "I look.",
    "gen_ai.completion.0.tool_calls.0.id": "c1",
    "gen_ai.completion.0.tool_calls.0.name": "find",
    "gen_ai.completion.0.tool_calls.0.arguments": '{"order": 3}',
    "llm.request.type": "chat",
}
AI_SDK = {
    "ai.operationId": "ai.generateText.doGenerate",
    "ai.prompt.messages": json.dumps([ASK]),
    "ai.response.text": "I look.",
    "ai.response.toolCalls": json.dumps(
        [{"toolCallId": "c1", "toolName": "find", "input": '{"order": 3}'}]
    ),
}
GOOGLE = {
    "gen_ai.operation.name": "call_llm",
    "gcp.vertex.agent.llm_request": json.dumps(
        {"config": {}, "contents": [{"role": "user", "parts": [{"text": "Where is order 3?"}]}]}
    ),
    "gcp.vertex.agent.llm_response": json.dumps(
        {
            "content": {
                "role": "model",
                "parts": [
                    {"text": "I look."},
                    {"function_call": {"id": "c1", "name": "find", "args": {"order": 3}}},
                ],
            }
        }
    ),
}
LANGFUSE_SDK = {
    "langfuse.observation.type": "generation",
    "langfuse.observation.input": json.dumps([ASK]),
    "langfuse.observation.output": json.dumps(LOOK),
}


@pytest.mark.parametrize("attributes", [OLDER, AI_SDK, GOOGLE, LANGFUSE_SDK])
@pytest.mark.parametrize("form", ["otlp", "sdk"])
def test_spans_by_other_conventions(write, attributes, form):
    tool = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "find"}
    tool |= {"gen_ai.tool.call.id": "c1", "output.value": "in Paris"}
    lines = [span("1", 1, None, attributes, form), span("2", 2, None, tool, form)]
    log = {"resourceSpans": [{"scopeSpans": [{"spans": lines}]}]} if form == "otlp" else lines
    (run,) = io.read_runs(write("log.json", log))
    assert said(run) == ALL[:3]


def test_a_trace_in_several_files(write):
    for k, one in enumerate(by_genai("sdk")):
        path = write(f"spans/{k}.jsonl", [one], lines=True)
    (run,) = io.read_runs(path.parent)
    assert said(run) == [("system", "Be kind."), *ALL]


def test_messages_and_judgements_in_events_of_spans(write):
    def event(name, body):
        return {"event_name": name, "body": body, "trace_id": "ab", "span_id": "1"}

    judged = {"gen_ai.evaluation.name": "success", "gen_ai.evaluation.score.value": 1}
    lines = [
        event("gen_ai.user.message", {"content": "Where is order 3?"}),
        event("gen_ai.choice", {"index": 0, "message": TOLD, "finish_reason": "stop"}),
        span("1", 1, None, {"gen_ai.operation.name": "chat"}, "sdk"),
        {
            **span("2", 2, None, {}, "sdk"),
            "events": [{"name": "gen_ai.evaluation.result", "attributes": judged}],
        },
    ]
    (run,) = io.read_runs(write("log.jsonl", lines, lines=True))
    assert said(run) == [ALL[0], ALL[-1]]
    assert run.outcome == 1


def test_spans_without_content_are_refused(write):
    lines = [span("1", 1, None, {"gen_ai.operation.name": "chat"}, "sdk")]
    with pytest.raises(ValueError, match="its spans have no content"):
        io.read_runs(write("log.jsonl", lines, lines=True))


# ------------------------------------------------------------------ MLflow


def mlflow_span(name, start, parent, kind, given, answer, identifier):
    values = {"mlflow.spanType": kind, "mlflow.spanInputs": given, "mlflow.spanOutputs": answer}
    return {
        "span_id": identifier,
        "parent_span_id": parent,
        "name": name,
        "start_time_unix_nano": start,
        "status": {"code": "STATUS_CODE_OK"},
        "attributes": {key: json.dumps(value) for key, value in values.items()},
    }


def test_mlflow(write):
    spans = [
        mlflow_span("agent", 0, None, "AGENT", {"q": "?"}, "In Paris.", "AAAAAAAAAAA="),
        mlflow_span(
            "chat", 1, "AAAAAAAAAAA=", "CHAT_MODEL", {"messages": [ASK], "n": 1},
            {"choices": [{"message": LOOK, "finish_reason": "tool_calls"}]}, "AAAAAAAAAAE=",
        ),
        mlflow_span("find", 2, "AAAAAAAAAAA=", "TOOL", {"order": 3}, "in Paris", "AAAAAAAAAAI="),
        mlflow_span(
            "chat", 3, "AAAAAAAAAAA=", "CHAT_MODEL", {"messages": [ASK, LOOK, FOUND]},
            {"choices": [{"message": TOLD, "finish_reason": "stop"}]}, "AAAAAAAAAAM=",
        ),
    ]  # fmt: skip
    judged = [
        {"assessment_name": "correctness", "feedback": {"value": True}},
        {"assessment_name": "old", "feedback": {"value": True}, "valid": False},
        {"assessment_name": "answer", "expectation": {"value": "Paris"}},
        {
            "assessment_name": "confidence",
            "span_id": "0000000000000001",
            "feedback": {"value": 0.25},
        },
    ]
    info = {"trace_id": "tr-1", "state": "OK", "assessments": judged}
    log = {"info": info, "data": {"spans": spans}}
    for path in (write("a.json", log), write("b.jsonl", [log], lines=True)):
        (run,) = io.read_runs(path)
        assert said(run) == ALL
        assert (run.id, run.outcome, run.scores) == ("tr-1", 1, {"correctness": True})
        assert [step.confidence for step in run.steps] == [None, 0.25, None]
        assert run.extra["expectations"] == {"answer": "Paris"}


# ------------------------------------------------------------------ LangSmith


def test_langsmith(write):
    def record(name, kind, start, inputs, outputs, **fields):
        record = {"id": name, "trace_id": "0", "run_type": kind, "inputs": inputs}
        record |= {"parent_run_id": None if name == "0" else "0", "name": fields.pop("tool", name)}
        return record | {"outputs": outputs, "start_time": f"2026-01-01T00:00:0{start}", **fields}

    def message(kind, **fields):
        return {"lc": 1, "type": "constructor", "id": ["langchain", kind], "kwargs": fields}

    ask = message("HumanMessage", content="Where is order 3?")
    call = {"name": "find", "args": {"order": 3}, "id": "c1", "type": "tool_call"}
    look = message("AIMessage", content="I look.", tool_calls=[call])
    found = message("ToolMessage", content="in Paris", tool_call_id="c1")
    generated = {"generations": [[{"text": "I look.", "message": look}]]}
    told = {"generations": [[{"text": "In Paris.", "message": None}]]}
    lines = [
        record("3", "llm", 3, {"messages": [[ask, look, found]]}, told, prompt_tokens=5),
        record("2", "tool", 2, {"input": "{'order': 3}"}, {"output": "in Paris"}, tool="find"),
        record("1", "llm", 1, {"messages": [[ask]]}, generated, feedback_stats={"p": {"avg": 0.5}}),
        record(
            "0", "chain", 0, {"messages": [ASK]}, {"messages": [ASK, LOOK, FOUND, TOLD]},
            feedback_stats={"correctness": {"avg": 1.0, "n": 1}},
            extra={"metadata": {"task_id": "t7"}},
        ),
    ]  # fmt: skip
    (run,) = io.read_runs(write("runs.jsonl", lines, lines=True))
    assert said(run) == ALL
    assert (run.id, run.outcome, run.task, run.meta["input_tokens"]) == ("0", 1, "t7", 5)
    assert [step.confidence for step in run.steps] == [None, 0.5, None]


def test_a_file_without_a_trace_before_others_is_refused(write):
    inputs, outputs = {"messages": [ASK]}, {"messages": [TOLD]}
    record = {"id": "0", "trace_id": "0", "run_type": "llm", "inputs": inputs, "outputs": outputs}
    write("log/b.json", [record])
    path = write("log/a.json", {"info": {}})
    with pytest.raises(ValueError, match=r"no runs in .*a\.json: it has no 'run_type'; leave"):
        io.read_runs(path.parent, format="langsmith")


# ------------------------------------------------------------------ damage


@pytest.mark.parametrize("name", ["langsmith", "otel", "claude_code", "codex"])
def test_lines_that_are_no_objects_are_left_out(write, name):
    sample = Path(__file__).parents[2] / "docs" / "formats" / "samples" / f"{name}.jsonl"
    whole = sample if sample.exists() else write("otel.jsonl", by_genai("sdk"), lines=True)
    path = write("log.jsonl", whole.read_text() + "[]\n3\n")
    with pytest.warns(UserWarning, match="2 of 3 runs could not be read"):
        (run,) = io.read_runs(path)
    assert said(run)[-1] == ALL[-1]
