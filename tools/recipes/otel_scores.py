"""OpenTelemetry: a logger writes what a guard says of finished runs as evaluation events."""

from opentelemetry import trace
from opentelemetry._logs import Logger

from trajscore import io
from trajscore.integrations import Guard


def write_scores(logger: Logger, runs: list[io.Run], guard: Guard) -> None:
    """Give each turn the p-value of its run so far."""
    for run, looks in zip(runs, guard.looks(runs), strict=True):
        turns = [step for step in run.steps if step.actor in ("agent", "user")]
        for turn, look in zip(turns, looks, strict=True):
            if turn.span is not None:
                ids = trace.SpanContext(int(run.id, 16), int(turn.span, 16), is_remote=True)
                span = trace.set_span_in_context(trace.NonRecordingSpan(ids))
                score = {"name": "trajscore_p", "score.value": 1 - look.suspicion}
                attributes = {f"gen_ai.evaluation.{key}": value for key, value in score.items()}
                event = "gen_ai.evaluation.result"
                logger.emit(context=span, attributes=attributes, event_name=event)


# ------------------------------------------------------------------ your log and your guard

if __name__ == "__main__":
    from opentelemetry._logs import get_logger_provider

    logger = get_logger_provider().get_logger("trajscore")
    write_scores(logger, io.read_runs("traces.jsonl"), Guard.load("guard.skops"))
