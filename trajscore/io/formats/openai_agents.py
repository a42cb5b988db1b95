"""Traces of OpenAI's Agents SDK, as a processor exports them: a trace is a run."""

from trajscore.io._run import MalformedRunError, Run, leftover
from trajscore.io._spans import Span, read_span
from trajscore.io._traces import TraceFormat
from trajscore.io.registry import Head, register
from trajscore.io.vocabulary import Record, as_fields, first_object


@register
class OpenAIAgents(TraceFormat):
    name = "openai_agents"
    holds = "span_data"
    mark = "object"
    lists = ("data",)

    def recognise(self, head: Head) -> bool:
        records = (head.fields, first_object(head.fields.get("data")))
        return any(record.get("object") in ("trace", "trace.span") for record in records)

    def spans(self, records: list[Record], run: Run) -> list[Span]:
        spans = []
        for record in records:
            if "span_data" in record:
                spans.append(_span(record))
            else:  # of the trace itself
                run.extra |= leftover(record, ("object", "id"))
            if error := record.get("error"):
                run.extra.setdefault("span_errors", []).append(error)
            if as_fields(error).get("message") == "Max turns exceeded":
                run.stop_reason = "max_turns"
        if not any(span.kind == "model" and span.outputs for span in spans):
            raise MalformedRunError(
                "its spans hold no model's words; save result.to_input_list(), a run a line"
            )
        return spans


def _span(record: Record) -> Span:
    data = as_fields(record, "span_data")
    response = as_fields(data, "response")  # which a processor of the user's may add
    fields = {**{name: response.get(name) for name in ("output", "model")}, **data, **record}
    if response:
        fields["input"] = {
            "instructions": response.get("instructions"),
            "input": data.get("input"),
        }
    return read_span("openai_agents", fields)
