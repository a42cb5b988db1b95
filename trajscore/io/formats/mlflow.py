"""Traces of MLflow: a trace is a run, a call of a chat model a turn, feedback a score."""

import base64
from typing import Any

from trajscore.io._payloads import attributes_of
from trajscore.io._run import Run, as_object, check_list, leftover
from trajscore.io._spans import Span, add_score, add_spans, read_span
from trajscore.io.fields import dig
from trajscore.io.files import Place
from trajscore.io.registry import Format, Head, register
from trajscore.io.vocabulary import (
    Record,
    as_fields,
    as_list,
    first,
    unnested,
)


@register
class MLflow(Format):
    name = "mlflow"
    holds = "info"
    lists = ("traces",)

    def recognise(self, head: Head) -> bool:
        fields = head.fields
        inner = fields.get("data")
        if isinstance(fields.get("info"), dict) and isinstance(inner, dict):
            return "spans" in inner
        return "spans" in fields and ("assessments" in fields or "trace_metadata" in fields)

    def _is_run(self, fields: Record) -> bool:
        return "spans" in fields or "data" in fields

    def run(self, raw: Any, place: Place) -> Run:
        raw = as_object(raw)
        if "trace" in raw:
            raw = as_object(unnested(raw["trace"]))
        info, data = (as_fields(raw, name) or raw for name in ("info", "data"))
        run = Run(place.name(first(info, ("trace_id", "request_id"))))
        records = check_list(unnested(data.get("spans")), "its spans are")
        spans = [_span(as_object(record)) for record in records]
        metadata = as_fields(first(info, ("trace_metadata", "request_metadata")))
        run.meta = leftover({"session": metadata.get("mlflow.trace.session")})
        for name, value in (("metadata", metadata), ("tags", as_fields(info, "tags"))):
            run.extra[name] = {k: v for k, v in value.items() if not str(k).startswith("mlflow.")}
        if str(first(info, ("state", "status"))).upper() == "ERROR":
            run.stop_reason = "error"
        _add_assessments(run, spans, unnested(info.get("assessments")))
        return add_spans(place, spans, run)


def _span(record: Record) -> Span:
    attributes = {name: unnested(value) for name, value in attributes_of(record).items()}
    fields = {**as_fields(record, "context"), **record, **attributes}
    span = read_span("mlflow", fields)
    span.id, span.parent = map(_hex, (span.id, span.parent))
    span.cost = as_fields(attributes, "mlflow.llm.cost").get("total_cost")
    return span


def _hex(name: Any) -> Any:
    """Return the id of a span in hexadecimal digits; traces in files hold it in base 64."""
    text = str(name)
    if name is None:
        return None
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
            run.extra.setdefault("expectations", {})[name] = dig(assessment, "expectation.value")
        elif assessment.get("valid") is not False:
            span_id = _hex(assessment.get("span_id"))
            add_score(owners.get(span_id, run), name, feedback.get("value"), run)
