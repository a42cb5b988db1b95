"""Spans of Braintrust, as its interface and its exports list them: a root span is a run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trajscore.io._messages import tools_of
from trajscore.io._payloads import messages_in
from trajscore.io._run import Run, leftover
from trajscore.io._spans import Span
from trajscore.io._traces import TraceFormat
from trajscore.io._vocabulary import as_fields, as_list, first, parsed, span_kind, token_counts
from trajscore.io.registry import Head, register

_LISTS = ("rows", "events", "data", "objects")
_OF_SPANS = {
    "id", "span_id", "root_span_id", "span_parents", "span_attributes", "is_root", "scores",
    "metrics", "_xact_id", "_pagination_key", "context", "origin",
}  # fmt: skip


@register
class Braintrust(TraceFormat):
    name, holds = "braintrust", "root_span_id"
    beside = ("span_id", "span_parents", "span_attributes", "scores")
    mark, _lists = "root_span_id", _LISTS

    def recognise(self, head: Head) -> bool:
        starts = (next(iter(as_list(head.fields.get(name))), None) for name in _LISTS)
        records = map(as_fields, (head.fields, *starts))
        return any({"span_id", "root_span_id"} <= record.keys() for record in records)

    def trace_of(self, record: Any) -> str:
        return str(first(as_fields(record), ("root_span_id", "span_id")))

    def session_of(self, record: Mapping[str, Any]) -> Any:
        return first(as_fields(record.get("metadata")), ("session_id",))

    def spans(self, records: list[Mapping[str, Any]], run: Run) -> list[Span]:
        # of a table, objects are JSON text
        records = [{k: parsed(v) for k, v in record.items()} for record in records]
        root = next((record for record in records if not record.get("span_parents")), records[0])
        run.extra = leftover(root, _OF_SPANS)
        answers = (messages_in(record.get("output"), None) for record in records)
        called = {name for messages in answers for m in messages for name in tools_of(m)}
        spans = [_span(record, called) for record in records]
        kinds = {span.id: _kind(record) for span, record in zip(spans, records, strict=True)}
        judges = {name for name, kind in kinds.items() if kind == "score"}
        while inner := {span.id for span in spans if span.parent in judges} - judges:
            judges |= inner  # such as the calls of a model that judges
        for span, record in zip(spans, records, strict=True):
            if record is root or span.id in judges:
                run.scores |= span.scores
                span.scores = {}
        return [span for span in spans if span.id not in judges]


def _kind(record: Mapping[str, Any]) -> Any:
    return as_fields(record.get("span_attributes")).get("type")


def _span(record: Mapping[str, Any], called: set[Any]) -> Span:
    """Return a span; any that is named like a tool that was called is that tool's."""
    metrics = as_fields(record.get("metrics"))
    name, began = as_fields(record.get("span_attributes")).get("name"), metrics.get("start")
    kind = "other" if _kind(record) == "function" else span_kind(_kind(record))
    return Span(
        id=record.get("span_id"),
        kind="tool" if str(name) in called and kind == "other" else kind,
        parent=next(iter(as_list(record.get("span_parents"))), None),
        start=began * 1e6 if isinstance(began, (int, float)) else record.get("created"),
        name=name,
        inputs=record.get("input"),
        outputs=record.get("output"),
        error=True if record.get("error") else None,
        cost=first(metrics, ("estimated_cost", "cost")),
        tokens=token_counts(metrics),
        scores={k: v for k, v in as_fields(record.get("scores")).items() if v is not None},
        extra={"model": as_fields(record.get("metadata")).get("model")},
    )
