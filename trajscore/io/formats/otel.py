"""Spans of OpenTelemetry, by the GenAI convention or by OpenInference: a trace is a run.

As OTLP in JSON, as the SDKs print them, or in a list; the attributes of one span alone will do.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from trajscore.io._attributes import TOOL_CALL, TOOL_NAME, attributes_of, find, first, plain
from trajscore.io._conversation import Conversation
from trajscore.io._grouping import gather
from trajscore.io._payloads import unnested
from trajscore.io._run import Run, as_objects
from trajscore.io._spans import Kind, Span, add_spans
from trajscore.io.files import LogFile, Place
from trajscore.io.registry import Format, Head, register

_OURS = ("gen_ai.", "openinference.", "llm.", "traceloop.", "ai.", "langfuse.", "gcp.vertex.agent.")
_KINDS: dict[str, Kind] = {
    "chat": "model",
    "call_llm": "model",
    "completion": "model",
    "text_completion": "model",
    "generate_content": "model",
    "llm": "model",
    "generation": "model",
    "dogenerate": "model",
    "dostream": "model",
    "execute_tool": "tool",
    "tool": "tool",
    "toolcall": "tool",
}
# Where what is listed hides within one another.
_LISTS = (
    "resourceSpans", "resource_spans", "batches", "scopeSpans", "scope_spans",
    "instrumentationLibrarySpans", "spans", "resourceLogs", "scopeLogs", "logRecords",
)  # fmt: skip

# Where each part of a span stands, the most telling name first.
_KIND = (
    "openinference.span.kind", "gen_ai.operation.name", "ai.operationId", "llm.request.type",
    "traceloop.span.kind", "langfuse.observation.type", "span_kind",
)  # fmt: skip
_GIVEN = (
    "gen_ai.input.messages", "llm.input_messages", "gen_ai.prompt", "ai.prompt.messages",
    "traceloop.entity.input", "input.value", "input", "langfuse.observation.input",
    "gcp.vertex.agent.llm_request",
)  # fmt: skip
_ANSWER = (
    "gen_ai.output.messages", "llm.output_messages", "gen_ai.completion", "gen_ai.output",
    "traceloop.entity.output", "output.value", "output", "langfuse.observation.output",
    "gcp.vertex.agent.llm_response",
)  # fmt: skip
_ARGUMENTS = (
    "gen_ai.tool.call.arguments", "gen_ai.tool.args", "tool_arguments", "ai.toolCall.args",
    "traceloop.entity.input", "input.value", "input", "tool.parameters",
    "langfuse.observation.input", "gcp.vertex.agent.tool_call_args",
)  # fmt: skip
_RESULT = (
    "gen_ai.tool.call.result", "tool_response", "ai.toolCall.result", "gen_ai.output",
    "traceloop.entity.output", "output.value", "output", "langfuse.observation.output",
    "gcp.vertex.agent.tool_response",
)  # fmt: skip
_MODEL = ("gen_ai.response.model", "gen_ai.request.model", "llm.model_name")
_ENDED = ("gen_ai.response.finish_reasons", "llm.finish_reason")
_SESSION = ("gen_ai.conversation.id", "session.id")
_COSTS = (
    ("gen_ai.usage.input_cost", "gen_ai.usage.output_cost"),
    ("llm.cost.total",),
    ("gen_ai.usage.cost",),
)
_TOKENS = {
    "input": ("gen_ai.usage.input_tokens", "llm.token_count.prompt", "gen_ai.usage.prompt_tokens"),
    "output": (
        "gen_ai.usage.output_tokens", "llm.token_count.completion",
        "gen_ai.usage.completion_tokens",
    ),
}  # fmt: skip
# Attributes of these say nothing that a user would.
_CONVENTIONS = (
    *_OURS, "input", "output", "tool", "server.", "http.", "net.", "error.", "otel.", "logfire.",
    "telemetry.", "service.", "session.", "trace.evaluations", "evaluations", "model_name",
    "agent_name", "final_result", "model_request_parameters", "pydantic_ai.",
)  # fmt: skip
_GIVEN_EVENTS = ("gen_ai.system.message", "gen_ai.user.message", "gen_ai.assistant.message",
                 "gen_ai.tool.message", "gen_ai.content.prompt")  # fmt: skip
_ANSWER_EVENTS = ("gen_ai.choice", "gen_ai.content.completion")
_EVALUATION = "gen_ai.evaluation.result"


@register
class OpenTelemetry(Format):
    name, holds = "otel", "attributes"
    cut_runs = "score"
    lax = True

    def recognise(self, head: Head) -> bool:
        fields = head.fields
        if any(name in fields for name in ("resourceSpans", "resource_spans", "resourceLogs")):
            return True
        if not head.whole:
            return False
        first = fields.get("spans")
        first = first[0] if isinstance(first, list) and first else first
        return any(
            _is_span(one) or _is_log(one) for one in (first, fields) if isinstance(one, Mapping)
        )

    def runs(self, file: LogFile, options: Any) -> Iterator[tuple[Place, Any]]:
        """Yield the spans and events of each trace."""
        yield from gather(file, _records(file), _session_of)

    def run(self, raw: Any, place: Place, options: Any) -> Run:
        records = as_objects(raw)
        traces = [trace for trace, *_ in map(_ids, records) if trace is not None]
        run = Run(place.name(*traces[:1]), meta={"file": str(place.file)})
        spans: dict[str, Span] = {}
        events: list[tuple[str, str, Mapping[str, Any]]] = []
        said: dict[str, list[Any]] = {}
        for index, record in enumerate(records):
            _, identifier, parent = _ids(record)
            own = str(index if identifier is None else identifier)
            attributes = attributes_of(record)
            inner = [one for one in _list(record, "events") if isinstance(one, Mapping)]
            events += [(own, *_event(one, attributes_of(one))) for one in inner]
            if _is_log(record):
                events.append((own, *_event(record, attributes)))
                continue
            spans[own] = _span(record, attributes, own, parent)
            _note(run, spans[own], attributes, said)
        for own, name, fields in events:
            _add_event(run, spans.get(own), name, fields)
        # what the spans of a trace agree on is said of the run
        agreed = {name: values[0] for name, values in said.items() if _all_same(values)}
        run.extra |= {"attributes": agreed} if agreed else {}
        return add_spans(Conversation(place), spans.values(), run)


def _is_span(record: Mapping[str, Any]) -> bool:
    if any(str(name).startswith(_OURS) for name in record):  # the attributes alone
        return True
    return "attributes" in record and _ids(record)[1] is not None


def _is_log(record: Mapping[str, Any]) -> bool:
    return "body" in record and _ids(record)[1] is not None


def _records(file: LogFile) -> Iterator[tuple[Any, Any]]:
    """Yield the spans and events of a file, each with the name of its trace."""
    own: dict[str, Any] = {}
    n_found = 0
    for key, index, value in file.items(_LISTS):
        if index is None:
            own[str(key)] = value
            continue
        for record in _leaves(value):
            n_found += 1
            # a line without the name of its trace is one
            alone = (str(file.path), index if key is None else None)
            trace = _ids(record)[0]
            yield alone if trace is None else str(trace), record
    if own and not n_found:
        yield str(file.path), own
    else:
        file.info.update(own)


def _session_of(records: list[Any]) -> Any:
    spans = (attributes_of(one) for one in records if isinstance(one, Mapping))
    return next((found for one in spans if (found := first(one, _SESSION)) is not None), None)


def _leaves(value: Any) -> Iterator[Any]:
    """Yield the spans and events that a batch holds, at any depth."""
    inner = [one for name in _LISTS for one in _list(value, name)]
    if not inner:
        yield value
    for one in inner:
        yield from _leaves(one)


def _list(value: Any, name: str) -> list[Any]:
    listed = value.get(name) if isinstance(value, Mapping) else None
    return listed if isinstance(listed, list) else []


# ------------------------------------------------------------------ a trace


def _ids(record: Any) -> tuple[Any, Any, Any]:
    """Return the identifiers of a record's trace, of its span and of the span around it."""
    if not isinstance(record, Mapping):
        return None, None, None
    context = record.get("context")
    within = {**record, **context} if isinstance(context, Mapping) else record
    parent = record.get("parent")
    above = parent.get("span_id") if isinstance(parent, Mapping) else None
    return (
        first(within, ("traceId", "trace_id", "context.trace_id")),
        first(within, ("spanId", "span_id", "context.span_id")),
        above or first(record, ("parentSpanId", "parent_span_id", "parent_id")),
    )


def _span(record: Mapping[str, Any], attributes: dict[str, Any], name: str, parent: Any) -> Span:
    kind = _kind(attributes)
    system = first(attributes, ("gen_ai.system_instructions",))
    return Span(
        id=name,
        kind=kind,
        parent=parent,
        start=first(
            record, ("startTimeUnixNano", "start_time_unix_nano", "start_time", "startTime")
        ),
        name=first(attributes, TOOL_NAME) or record.get("name"),
        given=_with_system(find(attributes, _ARGUMENTS if kind == "tool" else _GIVEN), system),
        answer=find(attributes, _RESULT if kind == "tool" else _ANSWER) or _said(attributes),
        call=first(attributes, TOOL_CALL),
        error=True if _failed(record.get("status")) else None,
        cost=_cost(attributes),
        tokens={side: first(attributes, names) for side, names in _TOKENS.items()},
        scores=_evaluations(attributes, "evaluations"),
        extra={"model": first(attributes, _MODEL), "finish_reason": _ended(attributes)},
    )


def _kind(attributes: Mapping[str, Any]) -> Kind:
    """Return what a span stands for, as it says or by what it has."""
    name = str(first(attributes, _KIND) or "").lower()
    if name or any(tool in attributes for tool in TOOL_CALL):
        return _KINDS.get(name.rpartition(".")[2], "other" if name else "tool")
    return "model" if find(attributes, _ANSWER[:3]) is not None else "other"


def _said(attributes: Mapping[str, Any]) -> Any:
    """Return the answer that the AI SDK spreads over attributes."""
    calls = unnested(attributes.get("ai.response.toolCalls"))
    said = {"text": attributes.get("ai.response.text"), "toolCalls": calls}
    return {name: value for name, value in said.items() if value is not None} or None


def _with_system(given: Any, system: Any) -> Any:
    return given if system is None else {"instructions": system, "messages": unnested(given)}


def _ended(attributes: Mapping[str, Any]) -> Any:
    found = unnested(first(attributes, _ENDED))
    return found[0] if isinstance(found, list) and len(found) == 1 else found


def _failed(status: Any) -> bool:
    code = status.get("status_code", status.get("code")) if isinstance(status, Mapping) else status
    return str(code).upper().endswith("ERROR") or code == 2


def _cost(attributes: Mapping[str, Any]) -> float | None:
    for names in _COSTS:
        parts: list[Any] = [attributes.get(name) for name in names]
        if all(map(_is_number, parts)):
            return float(sum(parts))
    return None


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _note(run: Run, span: Span, attributes: dict[str, Any], said: dict[str, list[Any]]) -> None:
    """Note what is said of the whole trace, and attributes that no convention has."""
    for name in ("trace.evaluations", "session.evaluations"):
        run.scores |= _evaluations(attributes, name)
    session = first(attributes, _SESSION)
    if session is not None:
        run.meta.setdefault("session", session)
    own = {
        name: value
        for name, value in attributes.items()
        if not name.startswith(_CONVENTIONS) and not isinstance(value, (list, Mapping))
    }
    span.extra = {**own, **span.extra}
    for name, value in own.items():
        said.setdefault(name, []).append(value)


def _all_same(values: list[Any]) -> bool:
    return all(value == values[0] for value in values)


def _evaluations(attributes: Mapping[str, Any], family: str) -> dict[str, Any]:
    """Return the judgements of OpenInference by name: their scores, or else their labels."""
    found = find(attributes, (family,))
    rows = [one for one in found if isinstance(one, Mapping)] if isinstance(found, list) else []
    return {str(one.get("name")): first(one, ("score", "label")) for one in rows if "name" in one}


# ------------------------------------------------------------------ events


def _event(record: Mapping[str, Any], attributes: dict[str, Any]) -> tuple[str, Mapping[str, Any]]:
    """Return the name of an event and what it says."""
    name = first(record, ("event_name", "eventName", "name")) or attributes.get("event.name")
    body = plain(record.get("body"))
    return str(name), {**attributes, **(body if isinstance(body, Mapping) else {})}


def _add_event(run: Run, span: Span | None, name: str, fields: Mapping[str, Any]) -> None:
    """Add a message or a judgement that an event of a span says."""
    if name == _EVALUATION:
        value = first(fields, ("gen_ai.evaluation.score.value", "gen_ai.evaluation.score.label"))
        of = run.scores if span is None else span.scores
        of[str(fields.get("gen_ai.evaluation.name"))] = value
        return
    if span is None:
        return
    given, answer = find(fields, _GIVEN[:3]), find(fields, _ANSWER[:3])
    if name in _GIVEN_EVENTS and given is None:
        role = name.split(".")[1]
        given = [{"role": role, "tool_call_id": fields.get("id"), **fields}]
    if name in _ANSWER_EVENTS and answer is None:
        answer = [fields.get("message", dict(fields))]
    span.given = _joined(span.given, given)
    span.answer = _joined(span.answer, answer)


def _joined(before: Any, after: Any) -> Any:
    if after is None:
        return before
    before, after = unnested(before), unnested(after)
    before = before if isinstance(before, list) else [] if before is None else [before]
    return [*before, *(after if isinstance(after, list) else [after])]
