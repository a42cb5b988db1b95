"""Spans of OpenTelemetry, by the GenAI convention or by OpenInference: a trace is a run.

The spans may be OTLP in JSON, what the SDKs print, or a list; the attributes of a span will do.
"""

from collections.abc import Iterable, Iterator
from typing import Any

from trajscore.io._payloads import attributes_of, messages_in, plain, read_attribute, with_parts
from trajscore.io._run import Run, leftover
from trajscore.io._spans import Span, add_score, read_span
from trajscore.io._traces import TraceFormat
from trajscore.io.files import LogFile
from trajscore.io.registry import Head, register
from trajscore.io.vocabulary import (
    SPANS,
    Kind,
    Record,
    Values,
    as_fields,
    as_list,
    first,
    first_object,
    is_amount,
    span_kind,
    token_counts,
    unnested,
)

_PREFIXES = tuple(SPANS["prefixes"])
_OF_CONVENTIONS = (*_PREFIXES, *SPANS["of_conventions"])
_OF_MODELS = tuple(SPANS["of_models"])


@register
class OpenTelemetry(TraceFormat):
    name = "otel"
    holds = "attributes"
    lax = True
    lists = tuple(SPANS["batches"])

    def recognise(self, head: Head) -> bool:
        fields = head.fields
        if not fields.keys().isdisjoint(SPANS["of_files"]):
            return True
        if not head.whole:
            return False
        inner = fields.get("spans", fields.get("data"))
        records = (fields, as_fields(inner), first_object(inner))
        return any(_is_span(record) or _is_log(record) for record in records)

    def trace_of(self, record: Any) -> Any:
        return _ids(record)[0]

    def session_of(self, record: Record) -> Any:
        return first(attributes_of(record), SPANS["session_id"])

    def records(self, file: LogFile) -> Iterator[tuple[Any, Any]]:
        """Yield the spans and events of a file, each with its trace."""
        has_records = False
        for key, index, value in file.items(self.lists):
            if index is None:
                file.info[str(key)] = value
                continue
            for record in self._leaves(value):
                has_records = True
                # a line without the name of its trace is a trace of its own
                alone = (str(file.path), index if key is None else None)
                trace = self.trace_of(record)
                yield alone if trace is None else str(trace), record
        if file.info and not has_records:
            yield str(file.path), file.others.pop(str(file.path))

    def _leaves(self, value: Any) -> Iterator[Any]:
        """Yield the spans and events that a batch holds, at any depth."""
        fields = as_fields(value)
        inner = [record for name in self.lists for record in as_list(fields.get(name))]
        if not inner:
            yield value
        for record in inner:
            yield from self._leaves(record)

    def spans(self, records: list[Record], run: Run) -> Iterable[Span]:
        spans: dict[str, Span] = {}
        events: list[tuple[str, str, Record]] = []
        values: dict[str, Values] = {}
        for index, record in enumerate(records):
            _, span_id, parent = _ids(record)
            key = str(index if span_id is None else span_id)
            attributes = attributes_of(record)
            events += [(key, *_event(as_fields(event))) for event in as_list(record.get("events"))]
            if _is_log(record):
                events.append((key, *_event(record)))
                continue
            spans[key] = _span(record, attributes, key, parent)
            _add_attributes(run, spans[key], attributes, values)
        for key, name, fields in events:
            _add_event(run, spans.get(key), name, fields)
        # an attribute on which the spans of a trace agree belongs to the run
        agreed = {k: v[0] for k, v in values.items() if all(value == v[0] for value in v)}
        if agreed:
            run.extra["attributes"] = agreed
        return spans.values()


def _is_span(record: Record) -> bool:
    has_some = any(str(name).partition(".")[0] == "attributes" for name in record)
    if has_some and _ids(record)[1] is not None:
        return True
    return any(str(name).startswith(_PREFIXES) for name in attributes_of(record))


def _is_log(record: Record) -> bool:
    return not record.keys().isdisjoint(SPANS["of_logs"]) and _ids(record)[1] is not None


def _ids(record: Any) -> tuple[Any, Any, Any]:
    """Return the ids of a record's trace, of its span and of the span around it."""
    outermost = as_fields(record)
    fields = {**outermost, **as_fields(record, "context")}
    trace = first(fields, SPANS["trace_id"])
    id_names = [*SPANS["span_id"], *["id"] * (trace is not None)]
    outer = as_fields(record, "parent") or as_fields(record, "parentSpanContext")
    return (
        trace,
        first(fields, id_names),
        first(outer, SPANS["span_id"]) or first(outermost, SPANS["parent_id"]),
    )


def _span(record: Record, attributes: Record, key: str, parent: Any) -> Span:
    kind = _kind(attributes)
    if kind == "tool":
        inputs = read_attribute(attributes, SPANS["tool_input"])
        outputs = read_attribute(attributes, SPANS["tool_output"])
    else:
        inputs = _asked(attributes)
        outputs = read_attribute(attributes, SPANS["output"])
    system = first(attributes, ("gen_ai.system_instructions",))
    if system is not None:
        inputs = {"instructions": system, "messages": unnested(inputs)}
    reason = unnested(first(attributes, SPANS["finish_reason"]))
    if isinstance(reason, list) and len(reason) == 1:
        reason = reason[0]
    name = str(record.get("name")).removesuffix(".__call__")
    return read_span(
        "otel",
        {**attributes, **record, "name": name},
        id=key,
        kind=kind,
        parent=parent,
        inputs=inputs,
        outputs=outputs or _vercel_answer(attributes),
        cost=_cost(attributes),
        tokens=token_counts(attributes, SPANS["tokens"]),
        scores=_evaluations(attributes, "evaluations"),
        extra={"model": first(attributes, SPANS["model"]), "finish_reason": reason},
    )


def _asked(attributes: Record) -> Any:
    """Return the input of a span: the first with messages, or else the first there is."""
    values = (read_attribute(attributes, (name,)) for name in SPANS["input"])
    there = [value for value in values if value is not None]
    return next((value for value in there if messages_in(value, None)), next(iter(there), None))


def _kind(attributes: Record) -> Kind:
    """Return what a span stands for, by its kind or by the attributes that it has."""
    name = first(attributes, SPANS["kind"])
    if name:
        return span_kind(name)
    if any(tool in attributes for tool in SPANS["tool_call_id"]):
        return "tool"
    if attributes.get("gcp.vertex.agent.llm_response") not in (None, "", "{}"):
        return "model"
    has_answer = read_attribute(attributes, SPANS["output"][:3]) is not None
    if has_answer or any(name.startswith(_OF_MODELS) for name in attributes):
        return "model"
    return "other"


def _vercel_answer(attributes: Record) -> Any:
    """Return the answer that the AI SDK spreads over attributes."""
    calls = unnested(attributes.get("ai.response.toolCalls"))
    text = first(attributes, SPANS["vercel_text"])
    return leftover({"text": text, "toolCalls": calls}) or None


def _cost(attributes: Record) -> float | None:
    for names in SPANS["costs"]:
        parts: Values = [attributes.get(name) for name in names]
        if all(map(is_amount, parts)):
            return float(sum(parts))
    return None


def _add_attributes(run: Run, span: Span, attributes: Record, values: dict[str, Values]) -> None:
    """Add judgements to the run, and the user's own attributes to the span."""
    for name in SPANS["evaluations"]:
        run.scores |= _evaluations(attributes, name)
    metadata = unnested(attributes.get("metadata"))
    if isinstance(metadata, dict):  # of OpenInference, as text
        run.extra["metadata"] = {**run.extra.get("metadata", {}), **metadata}
    agreeing = {
        name: value
        for name, value in attributes.items()
        if not name.startswith(_OF_CONVENTIONS) and not isinstance(value, (list, dict))
    }
    span.extra = {**agreeing, **span.extra}
    for name, value in agreeing.items():
        values.setdefault(name, []).append(value)


def _evaluations(attributes: Record, family: str) -> Record:
    """Return the judgements of OpenInference by name: their scores, or else their labels."""
    rows = map(as_fields, as_list(read_attribute(attributes, (family,))))
    return {str(row.get("name")): first(row, ("score", "label")) for row in rows if "name" in row}


def _event(record: Record) -> tuple[str, Record]:
    """Return the name of an event and its fields."""
    attributes = attributes_of(record)
    name = first(record, SPANS["event_name"]) or attributes.get("event.name")
    return str(name), {**attributes, **as_fields(plain(record.get("body")))}


def _add_event(run: Run, span: Span | None, name: str, fields: Record) -> None:
    """Add the message or the judgement of an event."""
    if name == "gen_ai.evaluation.result":
        value = first(fields, SPANS["evaluation"])
        add_score(span or run, fields.get("gen_ai.evaluation.name"), value, run)
        return
    if span is None:
        return
    inputs = read_attribute(fields, SPANS["input"][:3])
    outputs = read_attribute(fields, SPANS["output"][:3])
    if name in SPANS["input_events"] and inputs is None:
        role = name.split(".")[1]
        if role == "tool" == span.kind:  # what the tool was given
            if span.inputs is None:
                span.inputs = unnested(fields.get("content"))
            return
        inputs = [with_parts({"role": role, "tool_call_id": fields.get("id"), **fields})]
    if name in SPANS["output_events"] and outputs is None:
        outputs = [fields.get("message", dict(fields))]
    span.inputs = _joined(span.inputs, inputs)
    span.outputs = _joined(span.outputs, outputs)


def _joined(earlier: Any, later: Any) -> Any:
    if later is None:
        return earlier
    lists = (unnested(value) for value in (earlier, later) if value is not None)
    return [item for value in lists for item in (value if isinstance(value, list) else [value])]
