"""Runs of LangSmith, as its client lists them: a trace is a run, feedback a score.

Events of LangChain's `astream_events` are the same runs, written when each of them ends.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from trajscore.io._run import Run
from trajscore.io._spans import Span
from trajscore.io._traces import TraceFormat
from trajscore.io._vocabulary import as_fields, first, span_kind, token_counts, unnested
from trajscore.io.files import LogFile
from trajscore.io.registry import Format, Head, register

_THREAD = ("session_id", "thread_id", "conversation_id")  # names that LangSmith looks for


@register
class LangSmith(TraceFormat):
    name, holds = "langsmith", "run_type"
    beside = ("inputs", "outputs", "trace_id", "dotted_order")
    mark, _lists = "run_type", ("runs",)

    def recognise(self, head: Head) -> bool:
        is_event = {"event", "run_id", "parent_ids"} <= head.fields.keys()
        return head.whole and (is_event or {"run_type", "inputs"} <= head.fields.keys())

    def records(self, file: LogFile) -> Iterator[tuple[Any, Any]]:
        """Yield the runs that a file lists, or that its events end, each with its trace."""
        for _, record in Format.runs(self, file, None):
            is_event = "event" in as_fields(record)
            if is_event and not record.get("parent_ids") and _is_of_node(record):
                raise ValueError(
                    f"{file.path} holds events of a graph that do not name the events around them; "
                    f"write them with astream_events(..., version='v2')"
                )
            fields = _ended(record) if is_event else record
            if fields is not None:
                yield self.trace_of(fields), fields

    def trace_of(self, record: Any) -> str:
        return str(first(as_fields(record), ("trace_id", "id")))

    def session_of(self, record: Mapping[str, Any]) -> Any:
        return first(_metadata(record), _THREAD)

    def spans(self, records: list[Mapping[str, Any]], run: Run) -> list[Span]:
        root = next((k for k, record in enumerate(records) if not record.get("parent_run_id")), 0)
        spans = list(map(_span, records))
        run.extra = {"metadata": dict(_metadata(records[root])), "name": records[root].get("name")}
        run.scores, spans[root].scores = spans[root].scores, {}
        return spans


def _is_of_node(event: Mapping[str, Any]) -> bool:
    return "langgraph_node" in as_fields(event.get("metadata"))


def _ended(event: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the run that an event ends."""
    kind, _, moment = str(event["event"]).removeprefix("on_").rpartition("_")
    if moment not in ("end", "error"):
        return None
    parents, data = event.get("parent_ids") or [], as_fields(event.get("data"))
    path = [*parents, event.get("run_id")]
    return {
        "id": path[-1],
        "trace_id": path[0],
        "parent_run_id": path[-2] if parents else None,
        "run_type": kind,
        "name": event.get("name"),
        "inputs": data.get("input"),
        "outputs": data.get("output"),
        "error": data.get("error"),
        "extra": {"metadata": event.get("metadata")},
    }


def _metadata(record: Mapping[str, Any]) -> Mapping[str, Any]:
    return as_fields(as_fields(record.get("extra")).get("metadata"))


def _span(record: Mapping[str, Any]) -> Span:
    return Span(
        id=record.get("id"),
        kind=span_kind(record.get("run_type")),
        parent=record.get("parent_run_id"),
        start=first(record, ("start_time", "dotted_order")),
        name=record.get("name"),
        inputs=record.get("inputs"),
        outputs=record.get("outputs"),
        error=True if record.get("error") else None,
        cost=record.get("total_cost"),
        tokens=token_counts(record),
        scores=dict(as_fields(unnested(record.get("feedback_stats")))),
    )
