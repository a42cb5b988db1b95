"""Spans of OpenTelemetry: what a span stands for, each of its fields, events, and judgements."""

import json

import pytest

from trajscore import io
from trajscore.io._run import Run
from trajscore.io._spans import Span
from trajscore.io.formats.otel import (
    OpenTelemetry,
    _add_event,
    _answer,
    _asked,
    _columns_of_scores,
    _cost,
    _evaluations,
    _event,
    _failed,
    _ids,
    _is_log,
    _is_span,
    _joined,
    _kind,
    _vercel_answer,
)
from trajscore.io.registry import Head

ASK = [{"role": "user", "content": "Hi"}]
ANSWER = [{"role": "assistant", "content": "Yes"}]


def span(key, attributes, parent=None, trace="t", **fields):
    ids = {"traceId": trace, "spanId": key, "parentSpanId": parent}
    return ids | {"attributes": attributes} | fields


def model(key="1", given=ASK, answer=ANSWER, parent=None, fields=None, **attributes):
    own = {"gen_ai.operation.name": "chat", "gen_ai.input.messages": given}
    own |= {"gen_ai.output.messages": answer} | attributes
    return span(key, own, parent, **fields or {})


def event(name, **attributes):
    return {"name": name, "attributes": attributes}


def judged(name, value, kind="value"):
    fields = {"gen_ai.evaluation.name": name, f"gen_ai.evaluation.score.{kind}": value}
    return {"name": "gen_ai.evaluation.result", "attributes": fields}


@pytest.fixture
def read(write):
    """Read one trace of some spans."""

    def read_one(*spans):
        (run,) = io.read_runs(write("log.json", list(spans)), format="otel")
        return run

    return read_one


def texts(run):
    return [(step.actor, step.text) for step in run.steps]


BOTH = [("user", "Hi"), ("agent", "Yes")]


# ------------------------------------------------------------------ files


@pytest.mark.parametrize(
    ("fields", "whole", "recognised"),
    [
        ({"resourceSpans": []}, False, True),
        ({"resource_spans": []}, False, True),
        ({"resourceLogs": []}, False, True),
        ({"attributes": {}, "spanId": "1"}, True, True),
        ({"attributes": {}, "spanId": "1"}, False, False),
        ({"attributes": {}}, True, False),
        ({"spanId": "1"}, True, False),
        ({"body": "x", "span_id": "1"}, True, True),
        ({"body": "x"}, True, False),
        ({"llm.model_name": "m"}, True, True),
        ({"spans": [{"attributes": {}, "context": {"span_id": "1"}}]}, True, True),
        ({"spans": {"gen_ai.system": "m"}}, True, True),
        ({"spans": [], "gen_ai.system": "m"}, True, True),
        ({"spans": []}, True, False),
    ],
)
def test_files_of_the_format(fields, whole, recognised):
    assert OpenTelemetry().recognise(Head(fields, whole=whole)) == recognised


@pytest.mark.parametrize(
    ("record", "ids"),
    [
        ({"traceId": "t", "spanId": "s", "parentSpanId": "p"}, ("t", "s", "p")),
        ({"trace_id": "t", "span_id": "s", "parent_id": "p"}, ("t", "s", "p")),
        (
            {"context": {"trace_id": "t", "span_id": "s"}, "parent": {"span_id": "p"}},
            ("t", "s", "p"),
        ),
        ({"context.trace_id": "t", "context.span_id": "s", "parent_span_id": ""}, ("t", "s", None)),
        ({"trace_id": "o", "context": {"trace_id": "t"}, "parent": "p"}, ("t", None, None)),
        ("x", (None, None, None)),
    ],
)
def test_ids(record, ids):
    assert _ids(record) == ids


@pytest.mark.parametrize("form", ["otlp", "deep", "list", "one", "lines"])
def test_forms_of_files(write, form):
    spans = [model("1"), model("2", fields={"traceId": "u"})]
    batch = {"scopeSpans": [{"spans": spans[:1]}, {"spans": spans[1:]}], "resource": {}}
    content = {
        "otlp": {"resourceSpans": [batch], "note": "n"},
        "deep": {"batches": [{"resourceSpans": [batch]}]},
        "list": spans,
        "one": spans[0],
        "lines": spans,
    }[form]
    name = "log.jsonl" if form == "lines" else "log.json"
    runs = io.read_runs(write(name, content, lines=form == "lines"), format="otel")
    assert [run.id for run in runs] == (["t"] if form == "one" else ["t", "u"])
    assert all(texts(run) == BOTH for run in runs)
    (info,) = runs.info.values()
    assert info == ({"note": "n"} if form == "otlp" else {})


def test_lines_without_a_trace_are_traces_of_their_own(write):
    lines = [model()["attributes"] for _ in range(2)]
    runs = io.read_runs(write("log.jsonl", lines, lines=True))
    assert [run.id for run in runs] == ["log-0", "log-1"]
    assert len(io.read_runs(write("log.json", {"resourceSpans": lines}))) == 1


# ------------------------------------------------------------------ spans


@pytest.mark.parametrize(
    ("attributes", "kind"),
    [
        ({"gen_ai.operation.name": "chat"}, "model"),
        ({"openinference.span.kind": "TOOL", "gen_ai.operation.name": "chat"}, "tool"),
        ({"ai.operationId": "ai.generateText.doGenerate"}, "model"),
        ({"gen_ai.operation.name": "invoke_agent", "tool.id": "c"}, "other"),
        ({"tool.id": "c", "gen_ai.output.messages": ANSWER}, "tool"),
        ({"gen_ai.output.messages": ANSWER}, "model"),
        ({"gen_ai.completion.0.content": "Yes"}, "model"),
        ({"output.value": "Yes"}, "other"),
    ],
)
def test_kinds(attributes, kind):
    assert _kind(attributes) == kind


@pytest.mark.parametrize(
    ("attributes", "cost"),
    [
        ({"gen_ai.usage.input_cost": 1, "gen_ai.usage.output_cost": 0.5}, 1.5),
        ({"gen_ai.usage.input_cost": 1, "llm.cost.total": 3}, 3.0),
        ({"llm.cost.total": "3", "gen_ai.usage.cost": 2}, 2.0),
        ({"gen_ai.usage.cost": True}, None),
        ({}, None),
    ],
)
def test_costs(attributes, cost):
    assert _cost(attributes) == cost


@pytest.mark.parametrize(
    ("status", "failed"),
    [
        ({"code": 2}, True), ({"code": "STATUS_CODE_ERROR"}, True), ("ERROR", True), (2, True),
        ({"status_code": "error"}, True), ({"code": 1}, False), ({"code": "OK"}, False),
        ({}, False), (None, False), ({"code": 12}, False),
    ],
)  # fmt: skip
def test_failures(status, failed):
    assert _failed(status) == failed


@pytest.mark.parametrize(
    ("attributes", "answer"),
    [
        ({"ai.response.text": "Yes"}, {"text": "Yes"}),
        ({"ai.response.toolCalls": '[{"toolName": "f"}]'}, {"toolCalls": [{"toolName": "f"}]}),
        ({}, None),
    ],
)
def test_answers_of_the_ai_sdk(attributes, answer):
    assert _vercel_answer(attributes) == answer


def test_all_fields_of_a_call_of_a_model(read):
    attributes = {
        "gen_ai.response.model": "m", "gen_ai.response.finish_reasons": ["stop"],
        "gen_ai.usage.input_tokens": 9, "gen_ai.usage.output_tokens": 2, "gen_ai.usage.cost": 0.5,
        "team": "red", "gen_ai.system": "s", "servers": "x", "tags": ["a"],
        "gen_ai.system_instructions": "Be kind.",
    }  # fmt: skip
    run = read(model(**attributes))
    assert run.id == "t"
    assert texts(run) == BOTH
    turn = run.steps[1]
    assert turn.cost == 0.5
    assert turn.extra == {
        "model": "m", "finish_reason": "stop", "tokens": {"input": 9, "output": 2}, "team": "red",
        "servers": "x",
    }  # fmt: skip
    assert (run.meta["input_tokens"], run.meta["output_tokens"]) == (9, 2)
    assert run.extra["system"] == ["Be kind."]
    assert run.extra["attributes"] == {"team": "red", "servers": "x"}


@pytest.mark.parametrize(
    ("reasons", "kept"), [(["a", "b"], ["a", "b"]), ('["a"]', "a"), ("a", "a"), (None, None)]
)
def test_reasons_to_finish(read, reasons, kept):
    run = read(model(**{"gen_ai.response.finish_reasons": reasons}))
    assert run.steps[1].extra.get("finish_reason") == kept


def test_a_span_of_a_tool_answers_a_call(read):
    call = [{"role": "assistant", "content": "", "tool_calls": [{"id": "c", "name": "f"}]}]
    attributes = {
        "openinference.span.kind": "TOOL", "tool_call.id": "c", "gen_ai.tool.call.result": "42",
        "gen_ai.tool.call.arguments": {"x": 1},
    }  # fmt: skip
    for status, error in (({"code": 2}, True), (None, None)):
        run = read(model(answer=call), span("2", attributes, status=status))
        (made,) = run.steps[1].tool_calls
        assert (made.name, made.result, made.error) == ("f", "42", error)
    alone = read(span("2", attributes, name="named"))
    (made,) = alone.steps[0].tool_calls
    assert (made.name, made.arguments, made.result, made.id) == ("named", {"x": 1}, "42", "c")


def test_spans_are_put_in_the_order_of_their_starts(read):
    later = [*ASK, *ANSWER, {"role": "user", "content": "And?"}]
    second = model("2", later, [{"role": "assistant", "content": "No"}])
    for name in ("startTimeUnixNano", "start_time_unix_nano", "start_time", "startTime"):
        run = read(second | {name: 2}, model() | {name: 1})
        assert [step.text for step in run.steps] == ["Hi", "Yes", "And?", "No"], name
        assert run.steps[1].index < run.steps[3].index


def test_attributes_on_which_all_spans_agree_belong_to_the_run(read):
    run = read(model(a=1, b=1), span("2", {"a": 1, "b": 2, "c": 3}), span("3", {"gen_ai.x": 1}))
    assert run.extra["attributes"] == {"a": 1, "c": 3}
    assert "attributes" not in read(model()).extra


def test_the_first_session_is_that_of_the_run(read):
    session = {"session.id": "a"}
    run = read(model(**session), span("2", {"gen_ai.conversation.id": "b"}))
    assert run.meta["session"] == "a"
    assert "session" not in read(model()).meta
    spans = [span("1", {}), "x", span("2", session)]
    assert OpenTelemetry()._session(spans) == "a"
    assert OpenTelemetry()._session(spans[:2]) is None


# ------------------------------------------------------------------ judgements and events


def test_evaluations():
    attributes = {
        "evaluations.0.evaluation.name": "a", "evaluations.0.evaluation.score": 0.5,
        "evaluations.0.evaluation.label": "x", "evaluations.1.evaluation.name": "b",
        "evaluations.1.evaluation.label": "y", "evaluations.2.evaluation.score": 1,
    }  # fmt: skip
    assert _evaluations(attributes, "evaluations") == {"a": 0.5, "b": "y"}
    assert _evaluations({"evaluations": "x"}, "evaluations") == {}
    assert _evaluations(attributes, "trace.evaluations") == {}


def test_judgements_go_to_the_run_or_to_the_turn(read):
    name = "evaluations.0.evaluation"
    attributes = {
        f"{of}{name}.{part}": value
        for of, key, score in (("", "turn", 0.1), ("trace.", "a", 0.2), ("session.", "b", 0.3))
        for part, value in (("name", key), ("score", score))
    }
    run = read(
        model(
            fields={
                "events": [
                    judged("c", 0.4), judged("d", "good", "label"), judged("trajscore.flag", 1),
                ]
            },
            **attributes,
        )
    )  # fmt: skip
    assert run.scores == {"a": 0.2, "b": 0.3}
    assert run.steps[1].scores == {"turn": 0.1, "c": 0.4, "d": "good"}


def test_a_log_record_belongs_to_its_span_or_else_to_the_run(read):
    def record(key, **fields):
        return judged("c", 0.5) | {"spanId": key, "traceId": "t", "body": {}} | fields

    assert read(model(), record("1")).steps[1].scores == {"c": 0.5}
    assert read(model(), record("9")).scores == {"c": 0.5}


@pytest.mark.parametrize(
    ("record", "name"),
    [
        ({"event_name": "a", "eventName": "b", "name": "c"}, "a"),
        ({"eventName": "b", "name": "c"}, "b"),
        ({"name": "c"}, "c"),
        ({}, "d"),
    ],
)
def test_names_and_fields_of_events(record, name):
    attributes = {"event.name": "d", "x": 1}
    assert _event(record, attributes) == (name, attributes)
    body = {"kvlistValue": {"values": [{"key": "x", "value": {"intValue": "2"}}]}}
    assert _event(record | {"body": body}, attributes) == (name, attributes | {"x": 2})


def test_messages_in_events(read):
    events = [
        event("gen_ai.system.message", content="Be kind."),
        event("gen_ai.user.message", content="Hi"),
        event("gen_ai.choice", message={"role": "assistant", "content": "Yes"}),
        event("other", content="no message"),
    ]
    run = read(span("1", {"gen_ai.operation.name": "chat"}, events=[*events, "x"]))
    assert texts(run) == BOTH
    assert run.extra["system"] == ["Be kind."]
    content = [event("gen_ai.content.prompt", **{"gen_ai.prompt": ASK})]
    content += [event("gen_ai.content.completion", **{"gen_ai.completion": ANSWER})]
    assert texts(read(span("1", {"gen_ai.operation.name": "chat"}, events=content))) == BOTH


def test_events_come_after_the_messages_of_attributes(read):
    added = event("gen_ai.user.message", content="please")
    assert texts(read(model(fields={"events": [added]}))) == [
        ("user", "Hi"), ("user", "please"), ("agent", "Yes"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("earlier", "later", "joined"),
    [
        ([1], None, [1]), (None, None, None), (None, [1], [1]), ([1], [2], [1, 2]),
        ("x", "y", ["x", "y"]), ("[1]", '[{"a": 2}]', [1, {"a": 2}]), (None, {"a": 1}, [{"a": 1}]),
    ],
)  # fmt: skip
def test_inputs_and_outputs_are_joined(earlier, later, joined):
    assert _joined(earlier, later) == joined


# ------------------------------------------------------------------ as SDKs write them


def test_vercel_objects_as_the_console_shows_them(write):
    prompt = '{"system":"Be kind.","prompt":"Hi"}'
    answer = '{"answer": "Yes", "confidence": 0.8}'
    base = {"traceId": "t", "kind": 0, "status": {"code": 0}}
    outer = {"ai.operationId": "ai.generateObject", "ai.prompt": prompt}
    inner = {"ai.operationId": "ai.generateObject.doGenerate", "ai.prompt.messages": ASK}
    ends = {"ai.response.object": answer}
    spans = [
        base
        | {"id": "2", "timestamp": 2, "parentSpanContext": {"spanId": "1"}}
        | {"attributes": inner | ends},
        base | {"id": "1", "timestamp": 1, "attributes": outer | ends},
        {**base, "traceId": "u", "id": "3", "timestamp": 3, "attributes": outer | ends},
    ]
    for run in io.read_runs(write("log.json", spans)):
        assert [(s.actor, s.text) for s in run.steps] == [("user", "Hi"), ("agent", answer)]


def test_google_adk_calls_the_tool_within_the_call_of_the_model(write):
    def content(role, *parts):
        return {"role": role, "parts": list(parts)}

    start = content("user", {"text": "Hi"})
    call = content("model", {"text": "I look."}, {"function_call": {"name": "f", "args": {"n": 3}}})
    own = "gcp.vertex.agent."
    tool = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "f",
        "gen_ai.tool.call.id": "adk-1",
        f"{own}tool_call_args": '{"n": 3}',
        f"{own}tool_response": '{"result": 9}',
        f"{own}llm_response": "{}",
    }
    asked = {f"{own}llm_request": json.dumps({"contents": [start]}), f"{own}session_id": "s"}
    spans = [
        span("2", tool, "1", startTimeUnixNano=2),
        span("1", asked | {f"{own}llm_response": {"content": call}}, startTimeUnixNano=1),
    ]
    (run,) = io.read_runs(write("log.json", spans))
    assert [(s.actor, s.text) for s in run.steps] == [("user", "Hi"), ("agent", "I look.")]
    (call,) = run.steps[1].tool_calls
    assert (call.name, call.arguments, call.result) == ("f", {"n": 3}, '{"result": 9}')
    assert run.meta["session"] == "s"


def test_messages_as_python_prints_them_are_not_the_users(write):
    printed = {
        "messages": ["ChatMessage(role=<MessageRole.USER: 'user'>)", "role='user' content='a'"]
    }
    (run,) = io.read_runs(write("log.json", [model(given=printed)]))
    assert [step.actor for step in run.steps] == ["agent"]


def test_the_words_of_a_turn_with_calls_may_be_in_another_attribute(write):
    call = {"id": "1", "name": "f", "arguments": "{}"}
    start = "llm.output_messages.0.message."
    attributes = {
        "openinference.span.kind": "LLM",
        "output.value": json.dumps({"content": [call], "thought": "I look."}),
        f"{start}role": "assistant",
        f"{start}tool_calls.0.tool_call.id": "1",
        f"{start}tool_calls.0.tool_call.function.name": "f",
    }
    wrapped = {"id": "1", "name": "f", "response": {"result": 9}}
    tool = {"openinference.span.kind": "TOOL", "tool.name": "f", "output.value": wrapped}
    (run,) = io.read_runs(write("log.json", [span("1", attributes), span("2", tool)]))
    (step,) = run.steps
    assert step.text == "I look."
    assert [(c.name, c.result) for c in step.tool_calls] == [("f", '{"result": 9}')]


def test_events_whose_content_is_the_json_of_parts(write):
    def event(name, content, **more):
        field = "message" if name == "choice" else "content"
        return {"name": f"gen_ai.{name}", "attributes": {field: content} | more}

    ask = event("user.message", '[{"text": "Hi"}]')
    call = '[{"text": "I look."}, {"toolUse": {"toolUseId": "c", "name": "f", "input": {"n": 3}}}]'
    result = '[{"toolResult": {"toolUseId": "c", "content": [{"text": "9"}]}}]'
    chat, tool = {"gen_ai.operation.name": "chat"}, {"gen_ai.operation.name": "execute_tool"}
    tool |= {"gen_ai.tool.name": "f", "gen_ai.tool.call.id": "c"}
    ran = [event("tool.message", '{"n": 3}', role="tool"), event("choice", '[{"text": "9"}]')]
    history = [ask, event("assistant.message", call), event("tool.message", result)]
    spans = [
        span("1", chat, events=[ask, event("choice", call)], start_time=1),
        span("2", tool, events=ran, start_time=2),
        span("3", chat, events=[*history, event("choice", '[{"text": "Nine."}]')], start_time=3),
    ]
    for some in (spans, spans[::2]):
        (run,) = io.read_runs(write("log.json", some))
        turns = [(step.actor, step.text) for step in run.steps]
        assert turns == [("user", "Hi"), ("agent", "I look."), ("agent", "Nine.")]
        (call_,) = run.steps[1].tool_calls
        assert (call_.name, call_.arguments, call_.result) == ("f", {"n": 3}, "9")
        assert "unmatched_results" not in run.extra


def test_spans_of_models_without_a_kind():
    assert _kind({"llm.token_count.total": 3}) == "model"
    assert _kind({"gen_ai.usage.input_tokens": 3, "output.value": "x"}) == "model"
    assert _kind({"gen_ai.usage.input_tokens": 3, "openinference.span.kind": "AGENT"}) == "other"
    assert _kind({"output.value": "x"}) == "other"


def test_rows_of_spans_as_tables_and_services_have_them(write):
    """Attributes in columns, messages as Python writes them; or in pages of an interface."""
    rows = [
        {"name": "chat", "context.span_id": "s", "context.trace_id": "t", "parent_id": None,
         "attributes.openinference.span.kind": "LLM", "span_kind": "LLM", "start_time": 1,
         "attributes.llm.input_messages": str([{"message.role": "user", "message.content": "Hi"}]),
         "attributes.llm.output_messages":
             str([{"message.role": "assistant", "message.content": "Yes"}])}
    ]  # fmt: skip
    (run,) = io.read_runs(write("rows.jsonl", rows, lines=True))
    assert [(step.actor, step.text) for step in run.steps] == [("user", "Hi"), ("agent", "Yes")]
    attributes = {
        "openinference.span.kind": "LLM", "metadata": json.dumps({"success": True}),
        "llm.input_messages.0.message.role": "user", "llm.input_messages.0.message.content": "Hi",
        "llm.output_messages.0.message.role": "assistant",
        "llm.output_messages.0.message.content": "Yes",
    }  # fmt: skip
    context = {"trace_id": "t", "span_id": "s"}
    one = {"name": "chat", "context": context, "parent_id": None, "attributes": attributes}
    (run,) = io.read_runs(write("page.json", {"data": [one], "next_cursor": None}))
    assert ([step.text for step in run.steps], run.outcome) == (["Hi", "Yes"], 1)


def test_the_first_input_with_messages_counts(write):
    inputs = {"gen_ai.input.messages": "nan", "input.value": json.dumps({"messages": ASK})}
    attributes = inputs | {"gen_ai.operation.name": "chat", "gen_ai.output.messages": ANSWER}
    (run,) = io.read_runs(write("a.json", [span("a", attributes)]))
    assert [step.text for step in run.steps] == ["Hi", "Yes"]


def test_columns_of_judgements(write):
    """Rows of spans may have what judged them beside their attributes."""
    attributes = {"attributes.input.value": "Hi", "attributes.output.value": "Yes",
                  "attributes.openinference.span.kind": "LLM"}  # fmt: skip
    ids = {"context.span_id": "s", "context.trace_id": "t", "name": "chat"}
    judged = {"eval.success.score": 1.0, "eval.success.label": "ok", "eval.tone.score": None}
    (run,) = io.read_runs(write("a.jsonl", [ids | attributes | judged], lines=True))
    assert (run.outcome, run.meta["reward"]) == (1, 1.0)


def test_a_message_of_a_span_that_is_not_there_is_left_out(read):
    event = {"name": "gen_ai.user.message", "spanId": "9", "traceId": "t", "body": {"content": "x"}}
    assert texts(read(model(), event)) == BOTH


@pytest.mark.parametrize(
    ("record", "is_span", "is_log"),
    [
        ({"attributes": {}, "spanId": "s"}, True, False), ({"attributes": {}}, False, False),
        ({"attributes.x": 1, "span_id": "s"}, True, False), ({"spanId": "s"}, False, False),
        ({"attributes": {"ai.x": 1}}, True, False), ({"ai.x": 1}, True, False),
        ({"attributesx": 1, "spanId": "s"}, False, False),
        ({"body": 1, "spanId": "s"}, False, True), ({"body": 1}, False, False),
        ({"eventName": "n", "spanId": "s", "attributes": {}}, True, True),
    ],
)  # fmt: skip
def test_spans_and_log_records(record, is_span, is_log):
    assert (_is_span(record), _is_log(record)) == (is_span, is_log)


CALLS = [{"id": "c", "name": "f", "arguments": "{}"}]


def turn(content, calls=None):
    return [{"role": "assistant", "content": content, "tool_calls": calls}]


@pytest.mark.parametrize(
    ("first", "second", "answer"),
    [
        (turn("a", CALLS), turn("b", CALLS), "a"), (turn("", CALLS), turn("b", CALLS), "b"),
        (turn("", CALLS), turn("b", CALLS * 2), ""), (turn("", CALLS), turn("b"), ""),
        (turn("", CALLS), turn("", CALLS), ""), (turn(""), turn("b", CALLS), ""),
        (turn(""), turn("b"), ""), (turn("", CALLS), None, ""), (None, turn("b"), "b"),
    ],
)  # fmt: skip
def test_the_words_of_an_answer_with_calls(first, second, answer):
    found = _answer({"gen_ai.output.messages": first, "output.value": second})
    assert found[0]["content"] == answer


def test_the_first_input_that_is_there():
    first, messages = {"n": 1}, [{"role": "user", "content": "Hi"}]
    assert _asked({"gen_ai.input.messages": first, "input.value": messages}) == messages
    assert _asked({"gen_ai.input.messages": first, "input.value": "x"}) == first
    assert _asked({}) is None


def test_columns_of_scores_by_their_names():
    row = {"eval.a.b.score": 0, "eval.c.score": None, "eval.d.label": 1, "x.eval.e.score": 1}
    assert _columns_of_scores(row) == {"a.b": 0}


@pytest.mark.parametrize(
    ("name", "side", "is_read"),
    [
        ("gen_ai.input.messages", "inputs", True), ("llm.input_messages", "inputs", True),
        ("gen_ai.prompt", "inputs", True), ("ai.prompt.messages", "inputs", False),
        ("traceloop.entity.input", "inputs", False), ("input.value", "inputs", False),
        ("gen_ai.output.messages", "outputs", True), ("llm.output_messages", "outputs", True),
        ("gen_ai.completion", "outputs", True), ("gen_ai.output", "outputs", False),
        ("output.value", "outputs", False),
    ],
)  # fmt: skip
def test_messages_in_the_attributes_of_an_event(name, side, is_read):
    span = Span("s")
    _add_event(Run("r"), span, "other", {name: ASK})
    found = {"inputs": span.inputs, "outputs": span.outputs}
    assert found == {"inputs": None, "outputs": None} | ({side: ASK} if is_read else {})


@pytest.mark.parametrize(
    ("kind", "role", "given", "inputs"),
    [
        ("tool", "tool", None, {"n": 3}), ("tool", "tool", "x", "x"),
        ("tool", "user", None, [{"role": "user", "tool_call_id": None, "content": '{"n": 3}'}]),
        ("model", "tool", None, [{"role": "tool", "tool_call_id": None, "content": '{"n": 3}'}]),
        ("model", "user", "x",
         ["x", {"role": "user", "tool_call_id": None, "content": '{"n": 3}'}]),
    ],
)  # fmt: skip
def test_messages_of_events_are_inputs(kind, role, given, inputs):
    span = Span("s", kind, inputs=given)
    _add_event(Run("r"), span, f"gen_ai.{role}.message", {"content": '{"n": 3}'})
    assert (span.inputs, span.outputs) == (inputs, None)


def test_a_trace_of_one_object_without_lists(write):
    both = {"a": 1, "b": 2} | model()["attributes"]
    (run,) = io.read_runs(write("log.json", both), format="otel")
    assert texts(run) == BOTH
    for spans in ([model()], [model(), model("2", fields={"traceId": "u"})]):
        runs = io.read_runs(write("log.json", {"spans": spans, "note": 1}), format="otel")
        assert len(runs) == len(spans)
        assert next(iter(runs.info.values())) == {"note": 1}
