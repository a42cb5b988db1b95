"""Traces of MLflow: a trace is a run, a call of a chat model a turn, feedback a score."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator, Mapping
from typing import Any

from trajscore.io._attributes import attributes_of, first
from trajscore.io._conversation import Conversation
from trajscore.io._payloads import unnested
from trajscore.io._run import MalformedRunError, Run, as_object
from trajscore.io._spans import Kind, Span, add_spans
from trajscore.io.files import LogFile, Place
from trajscore.io.registry import Format, Head, register

_KINDS: dict[str, Kind] = {
    "CHAT_MODEL": "model",
    "LLM": "model",
    "COMPLETION": "model",
    "TOOL": "tool",
}


@register
class MLflow(Format):
    name, holds = "mlflow", "info"
    cut_runs = "score"

    def recognise(self, head: Head) -> bool:
        fields = head.fields
        inner = fields.get("data")
        if isinstance(fields.get("info"), Mapping) and isinstance(inner, Mapping):
            return "spans" in inner
        return "spans" in fields and ("assessments" in fields or "trace_metadata" in fields)

    def runs(self, file: LogFile, options: Any) -> Iterator[tuple[Place, Any]]:
        """Yield each trace, in a list, one a line, on a page of them or alone."""
        own: dict[str, Any] = {}
        for key, index, value in file.items({"traces"}):
            if index is None:
                own[str(key)] = value
            else:
                yield file.place(index), value
        if "spans" in own or "data" in own:
            yield file.place(0), own

    def run(self, raw: Any, place: Place, options: Any) -> Run:
        raw = as_object(raw)
        raw = as_object(unnested(raw["trace"])) if "trace" in raw else raw
        info, data = (_object(raw.get(name)) or raw for name in ("info", "data"))
        run = Run(
            place.name(first(info, ("trace_id", "request_id"))), meta={"file": str(place.file)}
        )
        listed = unnested(data.get("spans"))
        if not isinstance(listed, list):
            raise MalformedRunError("its spans are no list")
        spans = [_span(as_object(one)) for one in listed]
        said = _object(first(info, ("trace_metadata", "request_metadata")))
        if said.get("mlflow.trace.session") is not None:
            run.meta["session"] = said["mlflow.trace.session"]
        for name, value in (("metadata", said), ("tags", _object(info.get("tags")))):
            run.extra[name] = {k: v for k, v in value.items() if not str(k).startswith("mlflow.")}
        if str(first(info, ("state", "status"))).upper() == "ERROR":
            run.stop_reason = "error"
        _add_assessments(run, {one.id: one for one in spans}, unnested(info.get("assessments")))
        return add_spans(Conversation(place), spans, run)


def _span(record: Mapping[str, Any]) -> Span:
    attributes = {name: unnested(value) for name, value in attributes_of(record).items()}
    context = _object(record.get("context"))
    usage = _object(attributes.get("mlflow.chat.tokenUsage"))
    kind = str(attributes.get("mlflow.spanType", record.get("span_type"))).upper()
    parent = first(record, ("parent_span_id", "parent_id"))
    cost = _object(attributes.get("mlflow.llm.cost")).get("total_cost")
    return Span(
        id=_hex(record.get("span_id", context.get("span_id"))),
        kind=_KINDS.get(kind, "other"),
        parent=None if parent is None else _hex(parent),
        start=first(record, ("start_time_unix_nano", "start_time_ns", "start_time")),
        name=record.get("name"),
        given=attributes.get("mlflow.spanInputs"),
        answer=attributes.get("mlflow.spanOutputs"),
        error=True if "ERROR" in str(record.get("status", record.get("status_code"))) else None,
        cost=cost,
        tokens={side: usage.get(f"{side}_tokens") for side in ("input", "output")},
        extra={"model": attributes.get("mlflow.llm.model")},
    )


def _hex(name: Any) -> str:
    """Return the identifier of a span as assessments write it; traces as files hold its bytes."""
    text = str(name)
    if text.endswith("="):
        try:
            return base64.b64decode(text, validate=True).hex()
        except (ValueError, binascii.Error):
            return text
    return text.removeprefix("0x")


def _object(value: Any) -> dict[str, Any]:
    return dict(value) if isinstance(value, Mapping) else {}


def _add_assessments(run: Run, spans: Mapping[str, Span], assessments: Any) -> None:
    """Give each judgement to its span, or to the run; what was expected is no judgement."""
    for one in map(as_object, assessments if isinstance(assessments, list) else []):
        name = str(first(one, ("assessment_name", "name")))
        feedback = _object(one.get("feedback"))
        if not feedback:
            expected = _object(one.get("expectation"))
            run.extra.setdefault("expectations", {})[name] = expected.get("value")
        elif one.get("valid") is not False:
            span = spans.get(_hex(one.get("span_id")))
            (run.scores if span is None else span.scores)[name] = feedback.get("value")
