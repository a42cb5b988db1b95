"""Runs of LangSmith, as its client lists them: a trace is a run, feedback a score."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from trajscore.io._attributes import first
from trajscore.io._conversation import Conversation
from trajscore.io._grouping import gather, records_of
from trajscore.io._payloads import unnested
from trajscore.io._run import Run, as_objects
from trajscore.io._spans import Kind, Span, add_spans
from trajscore.io.files import LogFile, Place
from trajscore.io.registry import Format, Head, register

_KINDS: dict[str, Kind] = {"llm": "model", "tool": "tool"}
_THREADS = ("session_id", "thread_id", "conversation_id")
_TOKENS = {"input": "prompt_tokens", "output": "completion_tokens"}


@register
class LangSmith(Format):
    name, holds = "langsmith", "run_type"
    cut_runs = "score"

    def recognise(self, head: Head) -> bool:
        return head.whole and {"run_type", "inputs"} <= head.fields.keys()

    def runs(self, file: LogFile, options: Any) -> Iterator[tuple[Place, Any]]:
        """Yield what belongs to each trace, in the order in which they begin."""
        yield from gather(file, records_of(file, {"runs"}, "run_type", _trace_of), _session_of)

    def run(self, raw: Any, place: Place, options: Any) -> Run:
        records = as_objects(raw)
        run = Run(place.name(_trace_of(records[0])), meta={"file": str(place.file)})
        root = next((one for one in records if not one.get("parent_run_id")), records[0])
        run.extra["metadata"] = dict(_metadata(root))
        run.meta["session"] = _session_of(records)
        run.extra["name"] = root.get("name")
        spans = [_span(one) for one in records]
        for span, record in zip(spans, records, strict=True):
            if record is root:
                run.scores, span.scores = span.scores, {}
        return add_spans(Conversation(place), spans, run)


def _session_of(records: list[Any]) -> Any:
    """Return the thread of a trace, by the names that LangSmith looks for."""
    found = (first(_metadata(one), _THREADS) for one in records)
    return next((one for one in found if one is not None), None)


def _metadata(record: Any) -> Mapping[str, Any]:
    extra = record.get("extra") if isinstance(record, Mapping) else None
    found = extra.get("metadata") if isinstance(extra, Mapping) else None
    return found if isinstance(found, Mapping) else {}


def _trace_of(record: Any) -> str:
    fields = record if isinstance(record, Mapping) else {}
    return str(first(fields, ("trace_id", "id")))


def _span(record: Mapping[str, Any]) -> Span:
    judged = unnested(record.get("feedback_stats"))
    return Span(
        id=record.get("id"),
        kind=_KINDS.get(str(record.get("run_type")), "other"),
        parent=record.get("parent_run_id"),
        start=first(record, ("start_time", "dotted_order")),
        name=record.get("name"),
        given=record.get("inputs"),
        answer=record.get("outputs"),
        error=True if record.get("error") else None,
        cost=record.get("total_cost"),
        tokens={side: record.get(name) for side, name in _TOKENS.items()},
        scores=dict(judged) if isinstance(judged, Mapping) else {},
    )
