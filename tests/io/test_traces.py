"""Logs of tracers and agents, in the shapes that they are documented in or were seen in."""

import json
from pathlib import Path

import pytest

from trajscore import io


def said(run):
    """Return who says what, and each call with its arguments and result."""
    return [
        *(("system", text) for text in run.extra.get("system", ())),
        *(
            part
            for step in run.steps
            for part in (
                *([(step.actor, step.text)] if step.text else []),
                *((call.name, call.arguments, call.result) for call in step.tool_calls),
            )
        ),
    ]


ASK = {"role": "user", "content": "Where is order 3?"}
LOOK = {
    "role": "assistant",
    "content": "I look.",
    "tool_calls": [
        {"id": "c1", "type": "function", "function": {"name": "find", "arguments": '{"order": 3}'}}
    ],
}
FOUND = {"role": "tool", "tool_call_id": "c1", "content": "in Paris"}
TOLD = {"role": "assistant", "content": "In Paris."}
ALL = [
    ("user", "Where is order 3?"),
    ("agent", "I look."),
    ("find", {"order": 3}, "in Paris"),
    ("agent", "In Paris."),
]


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
    with pytest.raises(ValueError, match="every turn of the agent is empty"):
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


# ------------------------------------------------------------------ OpenAI's Agents SDK


def test_agents_sdk(write):
    def line(name, start, data, error=None):
        return {
            "object": "trace.span",
            "id": name,
            "trace_id": "t1",
            "parent_id": "a" if name != "a" else None,
            "started_at": f"2026-01-01T00:00:0{start}+00:00",
            "span_data": data,
            "error": error,
        }

    call = {"type": "function_call", "call_id": "c1", "name": "find", "arguments": '{"order": 3}'}
    words = {"type": "message", "role": "assistant", "content": [{"type": "output_text"}]}
    words["content"][0]["text"] = "I look."
    result = {"type": "function_call_output", "call_id": "c1", "output": "in Paris"}
    usage = {"input_tokens": 5, "output_tokens": 2}
    first = {"type": "generation", "input": [ASK], "output": [words, call], "usage": usage}
    second = {"type": "generation", "input": [ASK, words, call, result], "output": [TOLD]}
    lines = [
        line("1", 1, first),
        line("2", 2, {"type": "function", "name": "find", "input": "{}", "output": "in Paris"}),
        line("3", 3, second),
        line("a", 0, {"type": "agent", "name": "A"}),
        {"object": "trace", "id": "t1", "workflow_name": "W", "metadata": {"success": False}},
    ]
    (run,) = io.read_runs(write("log.jsonl", lines, lines=True))
    assert said(run) == ALL
    assert (run.id, run.outcome, run.meta["output_tokens"]) == ("t1", 0, 2)
    lines[3]["error"] = {"message": "Max turns (10) exceeded", "data": {}}
    del lines[4]["metadata"]
    (run,) = io.read_runs(write("log.jsonl", lines, lines=True))
    assert (run.outcome, run.stop_reason, run.stop_kind) == (-1, "max_turns", "administrative")


# ------------------------------------------------------------------ Claude Code


def claude(kind, name, above, message, **fields):
    return {
        "type": kind,
        "uuid": name,
        "parentUuid": above,
        "sessionId": fields.pop("session", "s1"),
        "isSidechain": fields.pop("side", False),
        "cwd": "/work",
        "message": message,
        **fields,
    }


def answered(name, *content, **fields):
    usage = {"input_tokens": 3, "cache_read_input_tokens": 4, "output_tokens": 2}
    message = {"id": name, "role": "assistant", "model": "m", "content": list(content)}
    return message | {"stop_reason": None, "usage": usage} | fields


USE = {"type": "tool_use", "id": "c1", "name": "find", "input": {"order": 3}}
RESULT = {"type": "tool_result", "tool_use_id": "c1", "content": "in Paris"}
SESSION = [
    {"type": "summary", "summary": "Order 3", "leafUuid": "6"},
    claude("user", "1", None, {"role": "user", "content": "<command-name>/clear</command-name>"}),
    claude("user", "1b", None, {"role": "user", "content": "Where is ordr 3?"}, isMeta=True),
    claude("user", "2", "1", {"role": "user", "content": "Where is ordr 3?"}),
    claude("assistant", "2a", "2", answered("m0", {"type": "text", "text": "What?"})),
    claude("user", "2b", "1", {"role": "user", "content": "Where is order 3?"}),
    claude("assistant", "3", "2b", answered("m1", {"type": "text", "text": "I look."})),
    claude("assistant", "4", "3", answered("m1", USE, stop_reason="tool_use")),
    claude("user", "x", "4", {"role": "user", "content": "Look for it"}, side=True),
    claude("assistant", "y", "x", answered("mx", {"type": "text", "text": "Here"}), side=True),
    claude("user", "5", "4", {"role": "user", "content": [RESULT]}, toolUseResult={"x": 1}),
    claude("assistant", "6", "5", answered("m2", {"type": "text", "text": "In Paris."},
                                           stop_reason="end_turn")),
]  # fmt: skip


def test_claude_code(write):
    (run,) = io.read_runs(write("s1.jsonl", SESSION, lines=True))
    assert said(run) == ALL
    assert (run.id, run.stop_reason, run.stop_kind) == ("s1", "end_turn", "complete")
    assert (run.meta["input_tokens"], run.meta["output_tokens"]) == (14, 4)
    assert run.extra["n_left_out"] == {"put in": 2, "taken back": 2, "subagent": 2}


def test_a_folder_of_claude_code_is_one_data_set(write):
    other = [{**line, "sessionId": "s2"} for line in SESSION if "sessionId" in line]
    write("logs/agent-1.jsonl", [line for line in SESSION if line.get("isSidechain")], lines=True)
    write("logs/s1.jsonl", SESSION, lines=True)
    write("logs/s2.jsonl", other, lines=True)
    path = write("logs/s3.jsonl", SESSION[:1], lines=True)
    table = write("outcomes.csv", "id,outcome\ns1,1\ns2,0\n")
    runs = io.read_runs(path.parent, outcomes=table)
    assert [(run.id, run.outcome) for run in runs] == [("s1", 1), ("s2", 0)]
    write("projects/-work-a/s1.jsonl", SESSION, lines=True)
    path = write("projects/-work-b/s2.jsonl", other, lines=True)
    assert [run.id for run in io.read_runs(path.parent.parent)] == ["s1", "s2"]


def test_claude_code_that_prints_its_messages(write):
    lines = [{"type": "system", "subtype": "init", "session_id": "s1", "cwd": "/work"}]
    for line in SESSION[5:]:
        side = "c0" if line["isSidechain"] else None
        inner = {"type": line["type"], "message": line["message"], "parent_tool_use_id": side}
        lines.append(inner | {"session_id": "s1"})
    end = {"type": "result", "subtype": "error_max_turns", "total_cost_usd": 0.5, "num_turns": 2}
    (run,) = io.read_runs(write("out.jsonl", [*lines, {**end, "session_id": "s1"}], lines=True))
    assert said(run) == ALL
    assert (run.stop_reason, run.stop_kind, run.meta["cost"]) == (
        "max_turns", "administrative", 0.5,
    )  # fmt: skip


# ------------------------------------------------------------------ Codex


def rollout(kind, payload):
    return {"timestamp": "2026-01-01T00:00:00Z", "type": kind, "payload": payload}


def item(kind, **fields):
    return rollout("response_item", {"type": kind, **fields})


def words(role, text):
    kind = "output_text" if role == "assistant" else "input_text"
    return item("message", role=role, content=[{"type": kind, "text": text}])


ROLLOUT = [
    rollout("session_meta", {"id": "s1", "cwd": "/work", "cli_version": "1"}),
    words("user", "<environment_context>here</environment_context>"),
    rollout("turn_context", {"model": "m"}),
    words("user", "Where is order 3?"),
    rollout("event_msg", {"type": "user_message", "message": "Where is order 3?"}),
    item("reasoning", summary=[{"type": "summary_text", "text": "Hm"}], encrypted_content="x"),
    words("assistant", "I look."),
    item("function_call", name="find", arguments='{"order": 3}', call_id="c1"),
    rollout("event_msg", {"type": "token_count", "info": None}),
    rollout(
        "event_msg",
        {
            "type": "token_count",
            "info": {"last_token_usage": {"input_tokens": 5, "output_tokens": 2}},
        },
    ),
    item("function_call_output", call_id="c1", output="in Paris"),
    words("assistant", "In Paris."),
    rollout("event_msg", {"type": "task_complete", "last_agent_message": "In Paris."}),
]


def test_codex(write):
    path = write("sessions/2026/01/01/rollout-2026-s1.jsonl", ROLLOUT, lines=True)
    (run,) = io.read_runs(path)
    assert said(run) == [("system", "<environment_context>here</environment_context>"), *ALL]
    assert (run.id, run.stop_reason, run.meta["model"]) == ("s1", "completed", "m")
    assert run.steps[1].extra["tokens"] == {"input": 5, "output": 2}
    older = [{"id": "s2", "timestamp": "2026", "instructions": None}]
    older += [line["payload"] for line in ROLLOUT if line["type"] == "response_item"]
    write("sessions/2026/01/02/rollout-2026-s2.jsonl", older, lines=True)
    sub = [rollout("session_meta", {"id": "s3", "source": {"subagent": "review"}}), *ROLLOUT[1:]]
    write("sessions/2026/01/02/rollout-2026-s3.jsonl", sub, lines=True)
    runs = io.read_runs(path.parents[3], outcomes={"s1": 1, "s2": 0})
    assert [(run.id, run.outcome) for run in runs] == [("s1", 1), ("s2", 0)]
    assert said(runs[0]) == said(runs[1])


def test_codex_that_prints_its_events(write):
    shell = {"id": "i1", "type": "command_execution", "command": "ls", "status": "completed"}
    shell |= {"aggregated_output": "a.py", "exit_code": 1}
    lines = [
        {"type": "thread.started", "thread_id": "s1"},
        {"type": "item.started", "item": {**shell, "aggregated_output": ""}},
        {"type": "item.completed", "item": {"id": "i0", "type": "agent_message", "text": "Hm"}},
        {"type": "item.completed", "item": shell},
        {"type": "item.completed", "item": {"id": "i2", "type": "agent_message", "text": "Done"}},
        {"type": "turn.completed", "usage": {"input_tokens": 5, "output_tokens": 2}},
    ]
    (run,) = io.read_runs(write("out.jsonl", lines, lines=True))
    assert [step.text for step in run.steps] == ["Hm", "", "Done"]
    (call,) = run.steps[1].tool_calls
    assert (call.name, call.arguments, call.result, call.error) == ("shell", "ls", "a.py", True)
    assert (run.id, run.stop_reason, run.meta["output_tokens"]) == ("s1", "completed", 2)


# ------------------------------------------------------------------ SWE-agent


def test_swe_agent(write):
    history = [
        {"role": "system", "content": "Be kind."},
        {"role": "user", "content": "A demonstration", "is_demo": True},
        {"role": "user", "content": "Fix it."},
        {"role": "assistant", "content": "Look\n```\nopen a.py\n```"},
    ]
    steps = [
        {"thought": "Look", "response": "Look!", "action": "open a.py\n", "observation": "x = 1"},
        {"thought": "Done", "action": "", "observation": None, "state": "{}"},
    ]
    for name, status in (("i1", "submitted"), ("i2", "submitted (exit_cost)"), ("i3", None)):
        info = {"exit_status": status, "model_stats": {"instance_cost": 0.5, "tokens_sent": 9}}
        log = {"trajectory": steps, "history": history, "info": info, "environment": "e"}
        path = write(f"out/{name}/{name}.traj", log)
    write("out/results.json", {"resolved_ids": ["i1"], "unresolved_ids": ["i2"]})
    runs = io.read_runs(path.parents[1])
    assert [(run.id, run.outcome, run.stop_reason) for run in runs] == [
        ("i1", 1, "submitted"),
        ("i2", 0, "exit_cost"),
        ("i3", -1, None),
    ]
    assert said(runs[0]) == [
        ("system", "Be kind."),
        ("user", "Fix it."),
        ("agent", "Look"),
        ("open", "open a.py\n", "x = 1"),
        ("agent", "Done"),
    ]
    assert (runs[0].meta["cost"], runs[0].meta["input_tokens"]) == (0.5, 9)


def test_mini_swe_agent(write):
    log = {
        "info": {"exit_status": "LimitsExceeded", "submission": ""},
        "messages": [{"role": "system", "content": "Be kind."}, ASK, LOOK, FOUND, TOLD],
        "trajectory_format": "mini-swe-agent-1",
    }
    (run,) = io.read_runs(write("i1.traj.json", log))
    assert said(run) == [("system", "Be kind."), *ALL]
    assert (run.id, run.outcome, run.stop_kind) == ("i1", -1, "administrative")


# ------------------------------------------------------------------ AgentDojo


def test_agentdojo(write):
    text = [{"type": "text", "content": "Where is order 3?"}]
    call = {"function": "find", "args": {"order": 3}, "id": "c1", "placeholder_args": None}
    log = {
        "suite_name": "shop",
        "pipeline_name": "m",
        "user_task_id": "user_task_0",
        "injection_task_id": "injection_task_1",
        "attack_type": "direct",
        "messages": [
            {"role": "user", "content": text},
            {"role": "assistant", "content": "I look.", "tool_calls": [call]},
            {**FOUND, "tool_call": call, "error": None},
            {**TOLD, "tool_calls": None},
        ],
        "error": None,
        "utility": True,
        "security": False,
    }
    path = write("m/shop/user_task_0/direct/injection_task_1.json", log)
    other = log | {"injection_task_id": None, "attack_type": None, "utility": False}
    write("m/shop/user_task_0/none/none.json", other)
    runs = io.read_runs(path.parents[4])
    assert [run.id for run in runs] == [
        "m/shop-user_task_0/direct/injection_task_1",
        "m/shop-user_task_0",
    ]
    assert [(run.outcome, run.task) for run in runs] == [(1, "shop-user_task_0"), (0, runs[0].task)]
    assert runs[0].scores == {"security": False}
    assert said(runs[0]) == ALL


# ------------------------------------------------------------------ ATIF, with Harbor


def test_harbor_with_several_steps_and_files_that_go_on(write):
    def turn(text, **fields):
        return {"source": "agent", "message": text, **fields}

    def verdict(name, reward, error=None):
        exception = {"exception_type": error} if error else None
        rewards = {"verifier_result": {"rewards": {"reward": reward}}, "exception_info": exception}
        return {"step_name": name, **rewards}

    result = {
        "trial_name": "t1",
        "task_name": "task",
        "verifier_result": {"rewards": {"reward": 0.5}},
    }
    steps = [verdict("one", 1), verdict("two", 0, "ContextWindowExceededError")]
    write("job/t1/result.json", {**result, "step_results": steps})
    head = {"schema_version": "ATIF-v1.8", "session_id": "s"}
    copied = turn("a", is_copied_context=True)
    folder = "job/t1/steps/one/agent"
    goes_on = {**head, "steps": [turn("a")], "continued_trajectory_ref": "trajectory.cont-1.json"}
    write(f"{folder}/trajectory.json", goes_on)
    write(f"{folder}/trajectory.cont-1.json", {**head, "steps": [copied, turn("b")]})
    summary = {**head, "steps": [turn("To sum up")]}
    write(f"{folder}/trajectory.summarization-1-summary.json", summary)
    path = write("job/t1/steps/two/agent/trajectory.json", {**head, "steps": [turn("c")]})
    runs = io.read_atif(path.parents[5])
    assert [(run.id, run.task, run.outcome, run.stop_reason) for run in runs] == [
        ("t1/one", "task/one", 1, None),
        ("t1/two", "task/two", -1, "ContextWindowExceededError"),
    ]
    assert [step.text for step in runs[0].steps] == ["a", "b"]
    write("job/t1/agent/trajectory.json", {**head, "steps": [turn("c")]})
    write("job/t1/result.json", {**result, "verifier_result": None, "step_results": steps[:1]})
    assert io.read_atif(path.parents[3] / "agent")[0].outcome == 1


# ------------------------------------------------------------------ damage


@pytest.mark.parametrize("name", ["agents_sdk", "langsmith", "otel", "claude_code", "codex"])
def test_lines_that_are_no_objects_are_left_out(write, name):
    sample = Path(__file__).parents[2] / "docs" / "formats" / "samples" / f"{name}.jsonl"
    whole = sample if sample.exists() else write("otel.jsonl", by_genai("sdk"), lines=True)
    path = write("log.jsonl", whole.read_text() + "[]\n3\n")
    with pytest.warns(UserWarning, match="2 of 3 runs could not be read"):
        (run,) = io.read_runs(path)
    assert said(run)[-1] == ALL[-1]


def test_results_of_an_observation_that_are_no_list(write):
    turn = {"source": "agent", "message": "x", "observation": {"results": 3}}
    log = {"schema_version": "ATIF-v1.8", "session_id": "s", "steps": [turn]}
    with pytest.raises(ValueError, match="the results of its observation are no list"):
        io.read_runs(write("log.json", log))
