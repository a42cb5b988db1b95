"""Traces of Langfuse: a trace is a run, a generation a turn, a score one of its turn or run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from trajscore.io._attributes import TOOL_CALL, TOOL_NAME, attributes_of, first
from trajscore.io._conversation import Conversation
from trajscore.io._grouping import SESSIONS, gather
from trajscore.io._payloads import unnested
from trajscore.io._run import MalformedRunError, Run, as_object, as_objects, leftover
from trajscore.io._spans import Kind, Span, add_spans
from trajscore.io.files import LogFile, Place
from trajscore.io.registry import Format, Head, register

_KINDS: dict[str, Kind] = {"GENERATION": "model", "TOOL": "tool"}
_TRACE = frozenset({"id", "trace", "observations", "scores", "corrections"})
_VALUES = ("input", "output", "metadata")  # which may be written as text


@register
class Langfuse(Format):
    name, holds = "langfuse", "observations"
    cut_runs = "score"

    def recognise(self, head: Head) -> bool:
        fields = head.fields
        if head.listed or head.whole or "data" in fields:
            first = fields["data"] if _is_page(fields) else [fields]
            return any(_is_record(one) for one in first[:1])
        return "observations" in fields and bool({"trace", "timestamp", "scores"} & fields.keys())

    def runs(self, file: LogFile, options: Any) -> Iterator[tuple[Place, Any]]:
        """Yield traces as they come; with other files beside it, once all of these are there."""
        at_once = file.n_files == 1 and file.fields.id not in SESSIONS
        apart: list[tuple[Any, Any]] = []
        for index, record in enumerate(_records(file)):
            if at_once and isinstance(record, Mapping) and _is_trace(record):
                yield file.place(index), [record]
            else:
                apart.append((_trace_of(record), record))
        for place, records in gather(file, apart, _session_of):
            if not isinstance(records, list) or any(map(_has_observations, records)):
                yield place, records

    def run(self, raw: Any, place: Place, options: Any) -> Run:
        run = Run("", meta={"file": str(place.file), "session": _session_of(raw)})
        observations: list[Mapping[str, Any]] = []
        scores: list[Mapping[str, Any]] = []
        names = []
        for record in as_objects(raw):
            names.append(_trace_of(record))
            if _is_observation(record):
                observations.append(record)
            elif _is_score(record):
                scores.append(record)
            else:
                trace = _fields_of(record)
                if _is_trace(record):
                    observations += _objects(record["observations"])
                    scores += _objects(trace.get("scores"))
                run.extra |= leftover(trace, _TRACE)
                run.extra |= {name: unnested(trace[name]) for name in _VALUES if trace.get(name)}
        run.id = place.name(*names[:1])
        spans = [_span(one) for one in observations]
        _add_scores(run, {one.id: one for one in spans}, scores)
        return add_spans(Conversation(place), spans, run)


def _is_page(fields: Mapping[str, Any]) -> bool:
    """Tell a page of what the interface lists."""
    return isinstance(fields.get("data"), list) and "meta" in fields


def _is_record(record: Any) -> bool:
    return isinstance(record, Mapping) and (
        _is_trace(record) or _is_observation(record) or _is_score(record)
    )


def _is_trace(record: Mapping[str, Any]) -> bool:
    """Tell a trace with its observations; in lists of traces there are only their identifiers."""
    listed = record.get("observations")
    return isinstance(listed, list) and all(isinstance(one, Mapping) for one in listed)


def _is_observation(record: Mapping[str, Any]) -> bool:
    return "type" in record and None not in (_at(record, "traceId"), _at(record, "startTime"))


def _is_score(record: Mapping[str, Any]) -> bool:
    named = _at(record, "traceId") is not None and "name" in record
    return named and ("value" in record or _at(record, "stringValue") is not None)


def _records(file: LogFile) -> Iterator[Any]:
    """Yield what a file lists, or the one object that it is."""
    fields: dict[str, Any] = {}
    for key, index, value in file.items({"data"}):
        if index is None:
            fields[str(key)] = value
        else:
            yield value
    if fields and fields.keys() != {"meta"}:
        yield fields


def _has_observations(record: Any) -> bool:
    return not isinstance(record, Mapping) or _is_trace(record) or _is_observation(record)


def _fields_of(record: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what is said of a trace, beside its observations or around them."""
    inner = record.get("trace")
    return {**record, **inner} if isinstance(inner, Mapping) else record


def _trace_of(record: Any) -> Any:
    if not isinstance(record, Mapping):
        return None
    return str(_at(record, "traceId") or _fields_of(record).get("id"))


def _session_of(records: list[Any]) -> Any:
    found = (_at(_fields_of(one), "sessionId") for one in records if isinstance(one, Mapping))
    return next((one for one in found if one is not None), None)


def _objects(values: Any) -> list[Mapping[str, Any]]:
    if values is not None and not isinstance(values, list):
        raise MalformedRunError(f"its observations or scores are {type(values).__name__}, no list")
    return [as_object(one) for one in values or []]


def _span(observation: Mapping[str, Any]) -> Span:
    attributes = unnested(observation.get("metadata"))
    attributes = attributes if isinstance(attributes, Mapping) else {}
    attributes = attributes_of(attributes) if "attributes" in attributes else attributes
    usage = _at(observation, "usageDetails") or observation.get("usage")
    usage = usage if isinstance(usage, Mapping) else {}
    return Span(
        id=observation.get("id"),
        kind=_KINDS.get(str(observation.get("type")).upper(), "other"),
        parent=_at(observation, "parentObservationId"),
        start=_at(observation, "startTime"),
        name=first(attributes, TOOL_NAME) or observation.get("name"),
        call=first(attributes, TOOL_CALL),
        given=observation.get("input"),
        answer=observation.get("output"),
        error=True if observation.get("level") == "ERROR" else None,
        cost=_at(observation, "totalCost") or _at(observation, "calculatedTotalCost"),
        tokens={side: usage.get(side) for side in ("input", "output")},
        extra={name: observation.get(name) for name in ("model", "latency")},
    )


def _add_scores(run: Run, spans: Mapping[str, Span], scores: list[Mapping[str, Any]]) -> None:
    """Give each score to the observation that it judges, or to the run."""
    for score in scores:
        judged = spans.get(str(_at(score, "observationId")))
        of = run.scores if judged is None else judged.scores
        of[str(score.get("name"))] = _value(score)


def _value(score: Mapping[str, Any]) -> Any:
    """Return the value of a score, which is a word where its data are categories."""
    value, word = score.get("value"), _at(score, "stringValue")
    kind = str(_at(score, "dataType")).upper()
    if kind == "BOOLEAN" and isinstance(value, (int, float)):
        return bool(value)
    return word if kind == "CATEGORICAL" or value is None else value


def _at(record: Mapping[str, Any], name: str) -> Any:
    """Return a field that exports call traceId or trace_id."""
    if name in record:
        return record[name]
    return record.get("".join(f"_{c.lower()}" if c.isupper() else c for c in name))
