"""Traces of OpenAI's Agents SDK, as its exporter writes them: a line a trace or a span of one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from trajscore.io._conversation import Conversation
from trajscore.io._grouping import gather, records_of
from trajscore.io._run import Run, as_objects, leftover
from trajscore.io._spans import Kind, Span, add_spans
from trajscore.io.files import LogFile, Place
from trajscore.io.registry import Format, Head, register

_KINDS: dict[str, Kind] = {"generation": "model", "response": "model", "function": "tool"}
_TRACE = frozenset({"object", "id", "workflow_name", "group_id", "metadata"})


@register
class AgentsSDK(Format):
    name, holds = "agents_sdk", "span_data"
    cut_runs = "score"

    def recognise(self, head: Head) -> bool:
        return str(head.fields.get("object", "")) in ("trace", "trace.span") and head.whole

    def runs(self, file: LogFile, options: Any) -> Iterator[tuple[Place, Any]]:
        """Yield what belongs to each trace, in the order in which they begin."""
        yield from gather(file, records_of(file, {"data"}, "object", _trace_of), _session_of)

    def run(self, raw: Any, place: Place, options: Any) -> Run:
        records = as_objects(raw)
        run = Run(place.name(_trace_of(records[0])), meta={"file": str(place.file)})
        spans = []
        for record in records:
            if record.get("object") == "trace":
                run.meta["session"] = record.get("group_id")
                run.extra |= leftover(record, _TRACE)
                run.extra["metadata"] = record.get("metadata") or {}
            else:
                spans.append(_span(record))
                if spans[-1].error and "max turns" in str(record.get("error")).lower():
                    run.stop_reason = "max_turns"
        return add_spans(Conversation(place), spans, run)


def _session_of(records: list[Any]) -> Any:
    groups = (one.get("group_id") for one in records if isinstance(one, Mapping))
    return next((one for one in groups if one is not None), None)


def _trace_of(record: Any) -> str:
    if not isinstance(record, Mapping):
        return "None"
    return str(record.get("trace_id", record.get("id")))


def _span(record: Mapping[str, Any]) -> Span:
    data = record.get("span_data")
    data = data if isinstance(data, Mapping) else {}
    usage = data.get("usage")
    usage = usage if isinstance(usage, Mapping) else {}
    answer = data.get("output", data.get("response"))
    return Span(
        id=record.get("id"),
        kind=_KINDS.get(str(data.get("type")), "other"),
        parent=record.get("parent_id"),
        start=record.get("started_at"),
        name=data.get("name"),
        given=data.get("input"),
        answer=answer,
        error=True if record.get("error") else None,
        tokens={side: usage.get(f"{side}_tokens") for side in ("input", "output")},
        extra={"model": data.get("model")},
    )
