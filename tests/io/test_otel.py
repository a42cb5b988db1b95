"""Spans of OpenTelemetry by every convention: forms of files, fields, events, and judgements."""

import json

import pytest

from known_dialogue import ALL, ASK, LOOK, SAMPLES, said, turns
from trajscore import io

HI, YES = [{"role": "user", "content": "Hi"}], [{"role": "assistant", "content": "Yes"}]
BOTH = [("user", "Hi"), ("agent", "Yes")]


def span(key, attributes, parent=None, **fields):
    ids = {"traceId": "t", "spanId": key, "parentSpanId": parent}
    return ids | {"attributes": attributes} | fields


def model(key="1", given=HI, answer=YES, fields=None, **attributes):
    own = {"gen_ai.operation.name": "chat", "gen_ai.input.messages": given}
    return span(key, own | {"gen_ai.output.messages": answer} | attributes, **fields or {})


def event(name, **attributes):
    return {"name": name, "attributes": attributes}


def judged(name, value, kind="value"):
    fields = {"gen_ai.evaluation.name": name, f"gen_ai.evaluation.score.{kind}": value}
    return {"name": "gen_ai.evaluation.result", "attributes": fields}


def read(write, *spans):
    (run,) = io.read_runs(write("log.json", list(spans)), format="otel")
    return run


def printed(name, start, parent, attributes):
    """Return a span as the SDKs print it."""
    time = f"2026-01-01T00:00:0{start}.000000Z"
    return {"context": {"trace_id": "ab", "span_id": name}, "parent_id": parent,
            "start_time": time, "attributes": attributes}  # fmt: skip


def test_forms_of_files(write):
    log = json.loads((SAMPLES / "otel.json").read_text())
    ((batch,),) = ([one["scopeSpans"][0]] for one in log["resourceSpans"])
    plain = [
        printed(one["spanId"], k, one["parentSpanId"], {
            pair["key"]: next(iter(pair["value"].values())) for pair in one["attributes"]})
        for k, one in enumerate(batch["spans"][-1:] + batch["spans"][:-1])
    ]  # fmt: skip
    for k, one in enumerate(plain):
        folder = write(f"spans/{k}.jsonl", [one], lines=True).parent
    for path in (
        write("b.jsonl", [log], lines=True), write("c.json", {"batches": [log]}), folder,
        write("d.jsonl", plain, lines=True), write("e.json", {"spans": plain}),
        write("f.json", plain),
    ):  # fmt: skip
        (run,) = io.read_runs(path, format="otel")
        assert (said(run), run.outcome) == (ALL, 1), path
        assert [step.confidence for step in run.steps] == [None, 0.7, 0.9], path
    runs = io.read_runs(write("g.json", {"spans": [model(), model() | {"traceId": "u"}], "n": 1}))
    assert ([run.id for run in runs], *runs.info.values()) == (["t", "u"], {"n": 1})
    alone = [model()["attributes"]] * 2
    runs = io.read_runs(write("log.jsonl", alone, lines=True))
    assert [(run.id, turns(run)) for run in runs] == [("log-0", BOTH), ("log-1", BOTH)]
    (run,) = io.read_runs(write("one.json", {"a": 1} | alone[0]), format="otel")
    assert turns(run) == BOTH


def test_other_conventions(write):
    calls = [{"toolCallId": "c1", "toolName": "find", "input": '{"order": 3}'}]
    part = {"function_call": {"id": "c1", "name": "find", "args": {"order": 3}}}
    google = {"role": "model", "parts": [{"text": "I look."}, part]}
    traceloop, own = "gen_ai.completion.0", "gcp.vertex.agent."
    asked = [{"role": "user", "parts": [{"text": ASK["content"]}]}]
    given, made = "llm.input_messages.0.message", "llm.output_messages.0.message"
    call = f"{made}.tool_calls.0.tool_call"
    tables = [
        {"openinference.span.kind": "LLM", f"{given}.role": "user", f"{made}.role": "assistant",
         f"{given}.contents.0.message_content.type": "text",
         f"{given}.contents.0.message_content.text": ASK["content"], f"{made}.content": "I look.",
         f"{call}.id": "c1", f"{call}.function.name": "find",
         f"{call}.function.arguments": '{"order": 3}'},
        {"gen_ai.prompt.0.role": "user", "gen_ai.prompt.0.content": ASK["content"],
         f"{traceloop}.role": "assistant", f"{traceloop}.content": "I look.",
         f"{traceloop}.tool_calls.0.id": "c1", f"{traceloop}.tool_calls.0.name": "find",
         f"{traceloop}.tool_calls.0.arguments": '{"order": 3}', "llm.request.type": "chat"},
        {"ai.operationId": "ai.generateText.doGenerate", "ai.prompt.messages": json.dumps([ASK]),
         "ai.response.text": "I look.", "ai.response.toolCalls": json.dumps(calls)},
        {"gen_ai.operation.name": "call_llm",
         f"{own}llm_request": json.dumps({"config": {}, "contents": asked}),
         f"{own}llm_response": json.dumps({"content": google})},
        {"langfuse.observation.type": "generation", "langfuse.observation.output": json.dumps(LOOK),
         "langfuse.observation.input": json.dumps([ASK])},
    ]  # fmt: skip
    tool = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "find"}
    tool |= {"gen_ai.tool.call.id": "c1", "output.value": "in Paris"}
    for attributes in tables:
        lines = [printed("1", 1, None, attributes), printed("2", 2, None, tool)]
        assert said(io.read_runs(write("log.json", lines))[0]) == ALL[:3], attributes


def test_rows_of_spans_as_tables_and_services_have_them(write):
    """Attributes in columns, messages as text; or in pages of an interface."""
    asked = [{"message.role": "user", "message.content": "Hi"}]
    told = [{"message.role": "assistant", "message.content": "Yes"}]
    row = {
        "name": "chat", "context.span_id": "s", "context.trace_id": "t", "parent_id": None,
        "attributes.openinference.span.kind": "LLM", "start_time": 1,
        "attributes.llm.input_messages": json.dumps(asked),
        "attributes.llm.output_messages": json.dumps(told),
    }  # fmt: skip
    (run,) = io.read_runs(write("rows.jsonl", [row], lines=True))
    assert turns(run) == BOTH
    with pytest.raises(ValueError, match=r"llm\.input_messages is not JSON"):
        printed_by_python = row | {"attributes.llm.input_messages": str(asked)}
        io.read_runs(write("rows.jsonl", [printed_by_python], lines=True))
    metadata = {"metadata": json.dumps({"success": True})}
    one = model(**metadata)
    (run,) = io.read_runs(write("page.json", {"data": [one], "next_cursor": None}))
    assert (turns(run), run.outcome) == (BOTH, 1)


ANSWER = {"gen_ai.output.messages": YES}
KINDS = [
    ({"gen_ai.operation.name": "chat", "output.value": "x"}, "model"),
    ({"openinference.span.kind": "TOOL", "gen_ai.operation.name": "chat"}, "tool"),
    ({"gen_ai.operation.name": "invoke_agent", "tool.id": "c", "output.value": "x"}, "other"),
    ({"tool.id": "c"} | ANSWER, "tool"), (ANSWER, "model"),
    ({"gen_ai.completion.0.content": "Yes"}, "model"), ({"output.value": "Yes"}, "other"),
    ({"llm.token_count.total": 3, "output.value": "x"}, "model"),
    ({"gen_ai.usage.input_tokens": 3, "output.value": "x"}, "model"),
    ({"gen_ai.usage.input_tokens": 3, "openinference.span.kind": "AGENT"}, "other"),
    ({"gcp.vertex.agent.llm_response": {"text": "x"}}, "model"),
]  # fmt: skip


def test_what_a_span_stands_for(write):
    for attributes, kind in KINDS:
        run = read(write, model(), span("2", attributes, name="f"))
        n_calls = sum(len(step.tool_calls) for step in run.steps)
        got = "tool" if n_calls else "model" if len(run.steps) == 3 else "other"
        assert got == kind, attributes


def test_all_fields_of_a_call_of_a_model(write):
    attributes = {
        "gen_ai.response.model": "m", "gen_ai.response.finish_reasons": ["stop"],
        "gen_ai.usage.input_tokens": 9, "gen_ai.usage.output_tokens": 2, "gen_ai.usage.cost": 0.5,
        "team": "red", "gen_ai.system": "s", "servers": "x", "tags": ["a"], "session.id": "a",
        "gen_ai.system_instructions": "Be kind.",
    }  # fmt: skip
    run = read(write, model(**attributes), span("2", {"gen_ai.conversation.id": "b"}))
    assert (run.id, said(run)) == ("t", [("system", "Be kind."), *BOTH])
    turn = run.steps[1]
    assert (turn.cost, run.meta["session"]) == (0.5, "a")
    assert turn.extra == {
        "model": "m", "finish_reason": "stop", "tokens": {"input": 9, "output": 2}, "team": "red",
        "servers": "x",
    }  # fmt: skip
    assert (run.meta["input_tokens"], run.meta["output_tokens"]) == (9, 2)
    assert run.extra["attributes"] == {"team": "red", "servers": "x"}
    # an attribute on which all spans agree is the run's
    others = span("2", {"a": 1, "b": 2, "c": 3}), span("3", {"gen_ai.x": 1})
    run = read(write, model(a=1, b=1), *others)
    assert run.extra["attributes"] == {"a": 1, "c": 3}
    for value, kept in ((["a", "b"], ["a", "b"]), ('["a"]', "a"), ("a", "a"), (None, None)):
        run = read(write, model(**{"gen_ai.response.finish_reasons": value}))
        assert run.steps[1].extra.get("finish_reason") == kept
    for costs, cost in (
        ({"gen_ai.usage.input_cost": 1, "gen_ai.usage.output_cost": 0.5}, 1.5),
        ({"gen_ai.usage.input_cost": 1, "llm.cost.total": 3}, 3.0),
        ({"llm.cost.total": "3", "gen_ai.usage.cost": 2}, 2.0), ({"gen_ai.usage.cost": True}, None),
    ):  # fmt: skip
        assert read(write, model(**costs)).steps[1].cost == cost, costs


def test_a_span_of_a_tool_answers_a_call(write):
    call = [{"role": "assistant", "content": "", "tool_calls": [{"id": "c", "name": "f"}]}]
    attributes = {
        "openinference.span.kind": "TOOL", "tool_call.id": "c", "gen_ai.tool.call.result": "42",
        "gen_ai.tool.call.arguments": {"x": 1},
    }  # fmt: skip
    for status, error in (
        ({"code": 2}, True), ({"code": "STATUS_CODE_ERROR"}, True), ("ERROR", True), (2, True),
        ({"status_code": "error"}, True), ({"code": 1}, None), ({"code": 12}, None), (None, None),
    ):  # fmt: skip
        run = read(write, model(answer=call), span("2", attributes, status=status))
        (made,) = run.steps[1].tool_calls
        assert (made.name, made.result, made.error) == ("f", "42", error), status
    (made,) = read(write, span("2", attributes, name="named")).steps[0].tool_calls
    assert (made.name, made.arguments, made.result, made.id) == ("named", {"x": 1}, "42", "c")
    own = "gcp.vertex.agent."  # Google's ADK calls the tool within the call of the model
    tool = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "f",
            f"{own}tool_call_args": '{"n": 3}', f"{own}tool_response": '{"result": 9}',
            f"{own}llm_response": "{}", f"{own}session_id": "s"}  # fmt: skip
    content = {"role": "model", "parts": [{"function_call": {"name": "f", "args": {"n": 3}}}]}
    call = {f"{own}llm_response": {"content": content}}
    inner = span("2", tool, "1", startTimeUnixNano=2)
    run = read(write, inner, span("1", call, startTimeUnixNano=1))
    assert (said(run), run.meta["session"]) == ([("f", {"n": 3}, '{"result": 9}')], "s")


def test_the_first_input_with_messages_counts(write):
    for given in ("nan", {"n": 1}):
        inputs = {"gen_ai.input.messages": given, "input.value": json.dumps({"messages": HI})}
        assert turns(read(write, model(**inputs))) == BOTH
    assert turns(read(write, model(given={"n": 1}))) == BOTH[1:]


def test_judgements_go_to_the_run_or_to_the_turn(write):
    attributes = {
        f"{of}evaluations.{k}.evaluation.{part}": value
        for of, k, key, score in (
            ("", 0, "turn", 0.1), ("trace.", 0, "a", 0.2), ("session.", 0, "b", 0.3),
        )
        for part, value in (("name", key), ("score", score), ("label", "x"))
    }  # fmt: skip
    attributes |= {"evaluations.1.evaluation.name": "word", "evaluations.1.evaluation.label": "y"}
    attributes["evaluations.2.evaluation.score"] = 1  # of no name
    events = [judged("c", 0.4), judged("d", "good", "label"), judged("trajscore.flag", 1)]
    run = read(write, model(fields={"events": events}, **attributes))
    assert run.scores == {"a": 0.2, "b": 0.3}
    assert run.steps[1].scores == {"turn": 0.1, "word": "y", "c": 0.4, "d": "good"}
    record = judged("c", 0.5) | {"traceId": "t", "body": {}}  # a log record of a span, or of none
    assert read(write, model(), record | {"spanId": "1"}).steps[1].scores == {"c": 0.5}
    assert read(write, model(), record | {"spanId": "9"}).scores == {"c": 0.5}


def test_messages_in_events(write):
    chat = {"gen_ai.operation.name": "chat"}
    body = {"kvlistValue": {"values": [{"key": "content", "value": {"stringValue": "Hi"}}]}}
    choice = event("gen_ai.choice", message=YES[0])
    for first in (
        event("gen_ai.user.message", content="Hi"),
        {"event_name": "gen_ai.user.message", "body": body},
        {"eventName": "gen_ai.user.message", "name": "x", "body": {"content": "Hi"}},
        {"attributes": {"event.name": "gen_ai.user.message", "content": "Hi"}},
        event("gen_ai.content.prompt", **{"gen_ai.prompt": HI}),
        event("x", **{"llm.input_messages": HI}),
    ):  # fmt: skip
        events = [first, choice, event("other", content="no"), "x"]
        run = read(write, span("1", chat, events=events))
        assert turns(run) == BOTH, first
    outer = {"event_name": "gen_ai.user.message", "body": {"content": "Hi"}, "span_id": "1"}
    lines = [outer | {"trace_id": "t"}, span("1", chat | ANSWER)]
    assert turns(io.read_runs(write("log.jsonl", lines, lines=True))[0]) == BOTH
    lost = lines[0] | {"span_id": "9"}  # of a span that is not there
    assert turns(read(write, model(), lost)) == BOTH
    system = event("gen_ai.system.message", content="Be kind.")
    added = event("gen_ai.user.message", content="please")
    assert said(read(write, model(fields={"events": [system, added]}))) == [
        ("system", "Be kind."), BOTH[0], ("user", "please"), BOTH[1],
    ]  # fmt: skip
    done = event("gen_ai.content.completion", **{"gen_ai.completion": YES})
    assert turns(read(write, span("1", chat, events=[done]))) == BOTH[1:]


def test_events_whose_content_is_the_json_of_parts(write):
    def of(name, content, **more):
        field = "message" if name == "choice" else "content"
        return {"name": f"gen_ai.{name}", "attributes": {field: content} | more}

    ask = of("user.message", '[{"text": "Hi"}]')
    call = '[{"text": "Look."}, {"toolUse": {"toolUseId": "c", "name": "f", "input": {"n": 3}}}]'
    result = '[{"toolResult": {"toolUseId": "c", "content": [{"text": "9"}]}}]'
    chat, tool = {"gen_ai.operation.name": "chat"}, {"gen_ai.operation.name": "execute_tool"}
    tool |= {"gen_ai.tool.name": "f", "gen_ai.tool.call.id": "c"}
    ran = [of("tool.message", '{"n": 3}', role="tool"), of("choice", '[{"text": "9"}]')]
    history = [ask, of("assistant.message", call), of("tool.message", result)]
    spans = [
        span("1", chat, events=[ask, of("choice", call)], start_time=1),
        span("2", tool, events=ran, start_time=2),
        span("3", chat, events=[*history, of("choice", '[{"text": "Nine."}]')], start_time=3),
    ]
    for some in (spans, spans[::2]):
        run = read(write, *some)
        assert said(run) == [BOTH[0], ("agent", "Look."), ("f", {"n": 3}, "9"), ("agent", "Nine.")]
        assert "unmatched_results" not in run.extra


def test_what_is_refused_or_noted(write):
    for fields in (
        {"attributes": {}}, {"spanId": "1"}, {"body": "x"}, {"attributesx": 1, "spanId": "s"},
        {"spans": []},
    ):  # fmt: skip
        with pytest.raises(ValueError, match=r"log\.json"):
            io.read_runs(write("log.json", fields))
    with pytest.raises(ValueError, match="run 't'.*no content"):
        io.read_runs(write("log.json", [span("1", {"gen_ai.operation.name": "chat"})]))
    with pytest.raises(ValueError, match="add llm_chat_callback"):  # as LlamaIndex prints it
        io.read_runs(write("log.json", [span("1", {"output.value": "AgentOutput(response=1)"})]))
    lines = "".join(json.dumps(one) + "\n" for one in (model(), [], 3))
    with pytest.warns(UserWarning, match="2 of 3 runs"):
        assert len(io.read_runs(write("log.jsonl", lines))) == 1


def test_real_traces_by_the_genai_convention(public_file):
    for name, n_agent, tools, tokens in (
        ("GOOGLE", 3, ["get_current_time", "write_file", "final_output"], (2251, 86)),
        ("LANGCHAIN", 4, ["get_current_time", "write_file"], (1262, 125)),
        ("OPENAI", 3, ["get_current_time", "write_file"], (1020, 76)),
        ("SMOLAGENTS", 3, ["get_current_time", "write_file", "final_answer"], (2294, 87)),
    ):
        (run,) = io.read_runs(public_file("traces", "otel_genai", f"{name}_trace.json"))
        assert [step.actor for step in run.steps] == ["user", *["agent"] * n_agent], name
        calls = [call for step in run.steps for call in step.tool_calls]
        assert [call.name for call in calls] == tools, name
        assert all(call.result is not None and isinstance(call.arguments, dict) for call in calls)
        assert (run.meta["input_tokens"], run.meta["output_tokens"]) == tokens, name
        assert len(run.extra["system"]) == 1


def test_one_real_call_by_every_convention(public_file):
    for name in (
        "openinference_client_span_input_output_only", "openinference_client_span_tool_calls",
        "otel_genai_client_span_tool_calls", "otel_genai_deprecated_client_span_tool_calls",
    ):  # fmt: skip
        (run,) = io.read_runs(public_file("traces", "openinference", f"{name}.json"))
        assert said(run)[-4:] == [
            ("user", "Weather in Paris?"),
            ("agent", "Absolutely! Let me check the weather for you."),
            ("get_weather", {"location": "Paris"}, "rainy, 57°F"),
            ("agent", "The weather in Paris is currently rainy with a temperature of 57°F."),
        ], name  # fmt: skip
        assert (run.meta["input_tokens"], run.meta["output_tokens"]) == (97, 52), name
