"""Traces of OpenAI's Agents SDK, as its exporter writes them: a line a trace or a span of one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trajscore.io._run import MalformedRunError, Run, leftover
from trajscore.io._spans import Span
from trajscore.io._traces import TraceFormat
from trajscore.io._vocabulary import as_fields, span_kind, token_counts
from trajscore.io.registry import Head, register

_TRACE = frozenset({"object", "id", "workflow_name", "group_id", "metadata"})


@register
class AgentsSDK(TraceFormat):
    name, holds = "agents_sdk", "span_data"
    beside = ("object", "trace_id", "workflow_name")
    mark, _lists = "object", ("data",)

    def recognise(self, head: Head) -> bool:
        return str(head.fields.get("object", "")) in ("trace", "trace.span") and head.whole

    def trace_of(self, record: Any) -> str:
        return str(as_fields(record).get("trace_id", as_fields(record).get("id")))

    def session_of(self, record: Mapping[str, Any]) -> Any:
        return record.get("group_id")

    def spans(self, records: list[Mapping[str, Any]], run: Run) -> list[Span]:
        spans = []
        for record in records:
            if record.get("object") == "trace":
                run.extra |= leftover(record, _TRACE)
                run.extra["metadata"] = record.get("metadata") or {}
            else:
                spans.append(_span(record))
                if "max turns" in str(record.get("error")).lower():
                    run.stop_reason = "max_turns"
        models = [span for span in spans if span.kind == "model"]
        if models and all(span.inputs is None and span.outputs is None for span in models):
            raise MalformedRunError(
                "its spans of responses hold no messages, as the SDK exports only their ids; in a "
                "TracingProcessor, add span.span_data.input and span.span_data.response.model_dump"
                "(), or save result.to_input_list()"
            )
        return spans


def _span(record: Mapping[str, Any]) -> Span:
    data = as_fields(record.get("span_data"))
    return Span(
        id=record.get("id"),
        kind=span_kind(data.get("type")),
        parent=record.get("parent_id"),
        start=record.get("started_at"),
        name=data.get("name"),
        inputs=data.get("input"),
        outputs=data.get("output", data.get("response")),
        error=True if record.get("error") else None,
        tokens=token_counts(data.get("usage")),
        extra={"model": data.get("model")},
    )
