"""Runs of LangSmith, as its client lists them: a trace is a run, feedback a score."""

from trajscore.io._run import Run
from trajscore.io._spans import Span, read_span
from trajscore.io._traces import TraceFormat
from trajscore.io.registry import Head, register
from trajscore.io.vocabulary import Record, as_fields, unnested


@register
class LangSmith(TraceFormat):
    name = "langsmith"
    holds = "run_type"
    mark = "run_type"
    lists = ("runs",)

    def recognise(self, head: Head) -> bool:
        return head.whole and {"run_type", "inputs"} <= head.fields.keys()

    def spans(self, records: list[Record], run: Run) -> list[Span]:
        root = next((k for k, record in enumerate(records) if not record.get("parent_run_id")), 0)
        spans = [
            read_span(
                "langsmith",
                record,
                scores=dict(as_fields(unnested(record.get("feedback_stats")))),
            )
            for record in records
        ]
        run.extra = {
            "metadata": dict(as_fields(records[root], "extra", "metadata")),
            "name": records[root].get("name"),
        }
        run.scores = spans[root].scores
        spans[root].scores = {}
        return spans
