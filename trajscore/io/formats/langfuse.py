"""Traces of Langfuse: a trace is a run, a generation a turn, a score one of its turn or run."""

from typing import Any

from trajscore.io._payloads import attributes_of
from trajscore.io._run import Run, as_object, check_list, leftover
from trajscore.io._spans import Span, add_score, read_span
from trajscore.io._traces import TraceFormat
from trajscore.io.fields import scalar
from trajscore.io.files import LogFile
from trajscore.io.registry import Head, RawRuns, register
from trajscore.io.vocabulary import FORMATS, SPANS, Record, as_fields, first, first_object, unnested

_WORDS = FORMATS["langfuse"]


@register
class Langfuse(TraceFormat):
    name = "langfuse"
    holds = "observations"
    lists = ("data",)

    def recognise(self, head: Head) -> bool:
        fields = head.fields
        if head.listed or head.whole or "data" in fields:
            is_page = isinstance(fields.get("data"), list) and "meta" in fields
            record = first_object(fields["data"]) if is_page else fields
            return _is_trace(record) or _is_observation(record) or _is_score(record)
        return "observations" in fields and bool({"trace", "timestamp", "scores"} & fields.keys())

    def trace_of(self, record: Any) -> Any:
        fields = as_fields(record)
        return str(_get(fields, "trace_id") or _trace_fields(fields).get("id"))

    def _is_run(self, fields: Record) -> bool:
        return bool(fields) and fields.keys() != {"meta"}

    def runs(self, file: LogFile) -> RawRuns:
        """Yield whole traces at once, and records that stand apart after the last file."""
        at_once = file.n_files == 1 and file.fields.id not in SPANS["session"]
        apart: list[tuple[Any, Any]] = []
        for index, (trace, record) in enumerate(self.records(file)):
            if at_once and _is_trace(as_fields(record)):
                yield file.place(index), [record]
            else:
                apart.append((trace, record))
        for place, records in self.grouped(file, iter(apart)):
            is_run = not isinstance(records, list) or any(
                _is_trace(record) or _is_observation(record) for record in records
            )
            if is_run:
                yield place, records

    def spans(self, records: list[Record], run: Run) -> list[Span]:
        observations: list[Record] = []
        scores: list[Record] = []
        for record in records:
            if _is_observation(record):
                observations.append(record)
            elif _is_score(record):
                scores.append(record)
            else:
                trace = _trace_fields(record)
                if _is_trace(record):
                    observations += record["observations"]
                    listed = check_list(trace.get("scores") or [], "its observations or scores are")
                    scores += map(as_object, listed)
                run.extra |= leftover(trace, _WORDS["trace"])
                run.extra |= {k: unnested(trace[k]) for k in _WORDS["texts"] if trace.get(k)}
        spans = list(map(_span, observations))
        owners = {span.id: span for span in spans}
        for score in scores:
            owner = owners.get(str(_get(score, "observation_id")), run)
            if str(_get(score, "data_type")).upper() != "CORRECTION":  # what it should have said
                add_score(owner, score.get("name"), scalar(score), run)
        return spans


def _get(record: Record, part: str) -> Any:
    return first(record, _WORDS[part])


def _is_trace(record: Record) -> bool:
    """Tell a trace with its observations; in lists of traces there are only their identifiers."""
    observations = record.get("observations")
    return isinstance(observations, list) and all(isinstance(o, dict) for o in observations)


def _is_observation(record: Record) -> bool:
    return "type" in record and None not in (_get(record, "trace_id"), _get(record, "start_time"))


def _is_score(record: Record) -> bool:
    named = _get(record, "trace_id") is not None and "name" in record
    return named and ("value" in record or _get(record, "string_value") is not None)


def _trace_fields(record: Record) -> Record:
    """Return the fields of a trace, which stand beside its observations or around them."""
    return {**record, **as_fields(record, "trace")}


def _span(observation: Record) -> Span:
    attributes = as_fields(unnested(observation.get("metadata")))
    if "attributes" in attributes:
        attributes = attributes_of(attributes)
    return read_span("langfuse", {**attributes, **observation})
