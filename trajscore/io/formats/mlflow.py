"""Traces of MLflow: a trace is a run, a call of a chat model a turn, feedback a score."""

import base64
from collections.abc import Mapping
from typing import Any

from trajscore.io._conversation import Conversation
from trajscore.io._payloads import attributes_of
from trajscore.io._run import Run, as_object, check_list
from trajscore.io._spans import Span, add_score, add_spans
from trajscore.io.fields import dig
from trajscore.io.files import Place
from trajscore.io.registry import Format, Head, register
from trajscore.io.vocabulary import (
    Record,
    as_fields,
    as_list,
    first,
    span_kind,
    token_counts,
    unnested,
)


@register
class MLflow(Format):
    name = "mlflow"
    holds = "info"
    beside = ("data", "spans", "trace_metadata")
    lists = ("traces",)

    def recognise(self, head: Head) -> bool:
        fields = head.fields
        inner = fields.get("data")
        if isinstance(fields.get("info"), Mapping) and isinstance(inner, Mapping):
            return "spans" in inner
        return "spans" in fields and ("assessments" in fields or "trace_metadata" in fields)

    def _is_run(self, fields: Record) -> bool:
        return "spans" in fields or "data" in fields

    def run(self, raw: Any, place: Place, options: Any) -> Run:
        raw = as_object(raw)
        if "trace" in raw:
            raw = as_object(unnested(raw["trace"]))
        info, data = (as_fields(raw, name) or raw for name in ("info", "data"))
        run = Run(place.name(first(info, ("trace_id", "request_id"))))
        records = check_list(unnested(data.get("spans")), "its spans are")
        spans = [_span(as_object(record)) for record in records]
        metadata = as_fields(first(info, ("trace_metadata", "request_metadata")))
        if metadata.get("mlflow.trace.session") is not None:
            run.meta["session"] = metadata["mlflow.trace.session"]
        for name, value in (("metadata", metadata), ("tags", as_fields(info, "tags"))):
            run.extra[name] = {k: v for k, v in value.items() if not str(k).startswith("mlflow.")}
        if str(first(info, ("state", "status"))).upper() == "ERROR":
            run.stop_reason = "error"
        _add_assessments(run, spans, unnested(info.get("assessments")))
        return add_spans(Conversation(place), spans, run)


def _span(record: Record) -> Span:
    attributes = {name: unnested(value) for name, value in attributes_of(record).items()}
    parent = first(record, ("parent_span_id", "parent_id"))
    context = as_fields(record, "context")
    return Span(
        id=_hex(record.get("span_id", context.get("span_id"))),
        kind=span_kind(attributes.get("mlflow.spanType", record.get("span_type"))),
        parent=None if parent is None else _hex(parent),
        start=first(record, ("start_time_unix_nano", "start_time_ns", "start_time")),
        end=first(record, ("end_time_unix_nano", "end_time_ns", "end_time")),
        name=record.get("name"),
        inputs=attributes.get("mlflow.spanInputs"),
        outputs=attributes.get("mlflow.spanOutputs"),
        error=True if "ERROR" in str(record.get("status", record.get("status_code"))) else None,
        cost=as_fields(attributes, "mlflow.llm.cost").get("total_cost"),
        tokens=token_counts(attributes.get("mlflow.chat.tokenUsage")),
        extra={"model": attributes.get("mlflow.llm.model")},
    )


def _hex(name: Any) -> str:
    """Return the id of a span in hexadecimal digits; traces in files hold it in base 64."""
    text = str(name)
    if text.endswith("="):
        try:
            return base64.b64decode(text, validate=True).hex()
        except ValueError:
            return text
    return text.removeprefix("0x")


def _add_assessments(run: Run, spans: list[Span], assessments: Any) -> None:
    """Give each judgement to its span, or to the run; an expectation is not a judgement."""
    owners = {span.id: span for span in spans}
    for assessment in map(as_object, as_list(assessments)):
        name = str(first(assessment, ("assessment_name", "name")))
        feedback = as_fields(assessment, "feedback")
        if not feedback:
            expected = dig(assessment, "expectation.value")
            run.extra.setdefault("expectations", {})[name] = expected
        elif assessment.get("valid") is not False:
            owner = owners.get(_hex(assessment.get("span_id")), run)
            add_score(owner, name, feedback.get("value"), run)
