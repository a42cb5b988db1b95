"""Traces of Langfuse: a trace is a run, a generation a turn, a score one of its turn or run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from trajscore.io._attributes import TOOL_CALL, TOOL_NAME, attributes_of, first
from trajscore.io._conversation import Conversation
from trajscore.io._files import JSON_ENDINGS, LINES_ENDINGS, LogFile, Place, has_ending
from trajscore.io._format import Format, Head, register
from trajscore.io._payloads import unnested
from trajscore.io._run import MalformedRunError, Run, as_object, leftover
from trajscore.io._spans import Kind, Span, add_spans

_KINDS: dict[str, Kind] = {"GENERATION": "model", "TOOL": "tool"}
_TRACE = frozenset({"id", "trace", "observations", "scores", "scores_beside", "corrections"})


def _recognise(head: Head) -> bool:
    fields = head.fields
    if head.listed or head.whole or "data" in fields:
        first = fields["data"] if _is_page(fields) else [fields]
        return any(_is_record(one) for one in first[:1])
    return "observations" in fields and bool({"trace", "timestamp", "scores"} & fields.keys())


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


def _folder(place: Path) -> list[Path]:
    """List the files of a folder in which some hold scores of the traces in others."""
    if not place.is_dir():
        return []
    found = [path for path in place.iterdir() if has_ending(path, (*JSON_ENDINGS, *LINES_ENDINGS))]
    scores = [path for path in found if "score" in path.name.lower()]
    if not scores or len(scores) == len(found) or not _is_score(_first(scores[0])):
        return []
    return [*sorted(scores), *sorted(set(found) - set(scores))]


def _first(path: Path) -> Mapping[str, Any]:
    record = next(_records(LogFile(path)), None)
    return record if isinstance(record, Mapping) else {}


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


def _runs(file: LogFile, options: Any) -> Iterator[tuple[Place, Any]]:
    """Yield the traces of a file, with the scores that it or a file before it has of them."""
    traces: dict[str, dict[str, Any]] = {}
    scores: dict[str, list[Any]] = {}
    for found in file.others.values():
        scores.update(found.get("scores", {}))
    index = 0
    for record in _records(file):
        if not isinstance(record, Mapping) or _is_trace(record):
            yield file.place(index), _with_scores(record, scores)
            index += 1
        elif _is_observation(record):
            _listed(traces, _at(record, "traceId"), "observations").append(record)
        elif _is_score(record):
            scores.setdefault(str(_at(record, "traceId")), []).append(record)
        else:
            _add_fields(traces, record)
    for name, trace in traces.items():
        yield file.place(index), _with_scores({"id": name, **trace}, scores)
        index += 1
    file.info["scores"] = scores
    file.is_head = bool(scores) and not index


def _with_scores(record: Any, scores: Mapping[str, list[Any]]) -> Any:
    """Add the scores of a trace that stand beside it."""
    if not isinstance(record, Mapping):
        return record
    inner = record.get("trace")
    trace = inner if isinstance(inner, Mapping) else record
    return {**record, "scores_beside": scores.get(str(trace.get("id")), [])}


def _add_fields(traces: dict[str, dict[str, Any]], record: Mapping[str, Any]) -> None:
    """Add what a list of traces says of one; of its observations there are only the names."""
    own = {name: value for name, value in record.items() if name not in ("observations", "scores")}
    traces.setdefault(str(record.get("id")), {}).update(own)


def _listed(traces: dict[str, dict[str, Any]], trace: Any, part: str) -> list[Any]:
    found: list[Any] = traces.setdefault(str(trace), {}).setdefault(part, [])
    return found


def _run(raw: Any, place: Place, options: Any) -> Run:
    raw = as_object(raw)
    inner = raw.get("trace")
    trace = {**raw, **inner} if isinstance(inner, Mapping) else raw
    name = place.name(trace.get("id"))
    spans = [_span(one) for one in _objects(raw.get("observations") or trace.get("observations"))]
    run = Run(name, meta={"file": str(place.file)}, extra=leftover(trace, _TRACE))
    run.meta["session"] = _at(trace, "sessionId")
    for part in ("input", "output", "metadata"):
        if trace.get(part) is not None:
            run.extra[part] = unnested(trace[part])
    scores = [*_objects(trace.get("scores")), *_objects(raw.get("scores_beside"))]
    _add_scores(run, {one.id: one for one in spans}, scores)
    return add_spans(Conversation(place), spans, run)


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


register(
    Format(
        name="langfuse",
        holds="observations",
        recognise=_recognise,
        runs=_runs,
        run=_run,
        folder=_folder,
        cut_runs="score",
    )
)
