"""What a guard says of finished runs, in the words in which platforms take scores."""

from __future__ import annotations

import hashlib
import json
import re
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from trajscore.core.optional import optional
from trajscore.core.version import __version__
from trajscore.integrations._guard import SEEN, Look
from trajscore.io import Run

# readers of logs leave out scores whose names begin with trajscore
FLAG, P_VALUE = "trajscore_flag", "trajscore_p_value"


class Score(NamedTuple):
    """What is written: of a turn its p-value, of a run whether it was flagged."""

    trace: str
    span: str | None  # None: of the whole run
    name: str
    value: bool | float
    comment: str


def scores_of(run: Run, looks: Sequence[Look]) -> Iterator[Score]:
    """Yield the scores of the turns of a run that have a span, and that of the run."""
    turns = [step for step in run.steps if step.actor in SEEN]
    for turn, look in zip(turns, looks, strict=True):
        if turn.span is not None:
            seen = f"step {look.step}: log M = {look.log_e_value:.3g}, {_limit(look)}"
            yield Score(run.id, turn.span, P_VALUE, p_value(look), seen)
    stop = looks[-1].flagged_step
    flagged = f"not flagged in {len(looks)} steps" if stop is None else f"flagged at step {stop}"
    yield Score(run.id, None, FLAG, stop is not None, f"{flagged}, {_limit(looks[-1])}")


def p_value(look: Look) -> float:
    """How rarely a run that would succeed looks as bad."""
    return float(f"{1 - look.suspicion:.6g}")


def _limit(look: Look) -> str:
    return f"threshold {look.log_threshold:.3g}"


# ------------------------------------------------------------------ lines of calls


def for_langfuse(scores: Sequence[Score]) -> list[dict[str, Any]]:
    """Bodies of ``POST /api/public/scores``; a second one with the same id replaces the first."""
    return [
        {
            "id": hashlib.sha256(f"{own.trace} {own.span} {own.name}".encode()).hexdigest()[:32],
            "traceId": own.trace,
            **({} if own.span is None else {"observationId": own.span}),
            "name": own.name,
            "value": float(own.value),
            "dataType": "BOOLEAN" if isinstance(own.value, bool) else "NUMERIC",
            "comment": own.comment,
        }
        for own in scores
    ]


def for_otel(scores: Sequence[Score]) -> list[dict[str, Any]]:
    """OTLP in JSON, as ``POST /v1/logs`` takes it: events that name the span they judge."""
    records = []
    for own in scores:
        is_flag = isinstance(own.value, bool)
        attributes: dict[str, dict[str, Any]] = {
            "gen_ai.evaluation.name": {"stringValue": own.name},
            "gen_ai.evaluation.score.value": {"doubleValue": float(own.value)},
            "gen_ai.evaluation.explanation": {"stringValue": own.comment},
        }
        if is_flag:
            label = {"stringValue": "flagged" if own.value else "not flagged"}
            attributes["gen_ai.evaluation.score.label"] = label
        records.append(
            {
                "observedTimeUnixNano": str(time.time_ns()),
                "eventName": "gen_ai.evaluation.result",
                "traceId": _in_hex(own.trace, 32),
                **({} if own.span is None else {"spanId": _in_hex(own.span, 16)}),
                "attributes": [{"key": key, "value": value} for key, value in attributes.items()],
            }
        )
    scope = {"name": "trajscore", "version": __version__}
    return [{"resourceLogs": [{"scopeLogs": [{"scope": scope, "logRecords": records}]}]}]


def _in_hex(name: str, n_digits: int) -> str:
    """Return an id as OTLP writes it."""
    digits = name.removeprefix("0x").lower()
    if not re.fullmatch(f"[0-9a-f]{{{n_digits}}}", digits):
        raise ValueError(
            f"run or span {name!r}: OTLP takes ids of {n_digits} hexadecimal digits; give spans as "
            f"OTLP or the SDKs write them, with their traceId and spanId"
        )
    return digits


def for_mlflow(scores: Sequence[Score]) -> list[dict[str, Any]]:
    """Arguments of ``mlflow.log_feedback``, with the source as that of an AssessmentSource."""
    return [
        {
            "trace_id": own.trace,
            **({} if own.span is None else {"span_id": own.span}),
            "name": own.name,
            "value": own.value,
            "rationale": own.comment,
            "source": {"source_type": "CODE", "source_id": f"trajscore {__version__}"},
        }
        for own in scores
    ]


LINES: dict[str, Callable[[Sequence[Score]], list[dict[str, Any]]]] = {
    "langfuse": for_langfuse,
    "otel": for_otel,
    "mlflow": for_mlflow,
}


# ------------------------------------------------------------------ a log of Inspect


def write_inspect(log: Path, out: Path, runs: Sequence[Run], looks: list[list[Look]]) -> None:
    """Write a copy of a log in which each sample has a score of ours."""
    need = "writing scores into logs of Inspect needs inspect-ai", "inspect"
    logs, scorer = optional("inspect_ai.log", *need), optional("inspect_ai.scorer", *need)
    content = logs.read_eval_log(str(log))
    ids: dict[Any, Any] = {(str(sample.id), sample.epoch): sample.id for sample in content.samples}
    for run, seen in zip(runs, looks, strict=True):
        if not seen:
            continue
        whole = list(scores_of(run, seen))[-1]
        steps = [
            {"step": look.step, "p_value": p_value(look), "log_e_value": look.log_e_value}
            for look in seen
        ]
        edit = scorer.ScoreEdit(
            value=whole.value,
            explanation=whole.comment,
            metadata={"steps": steps},
            provenance=scorer.ProvenanceData(author=f"trajscore {__version__}"),
        )
        sample = ids[run.task, run.trial]
        logs.edit_score(content, sample, FLAG, edit, recompute_metrics=False, epoch=run.trial)
    logs.write_eval_log(content, str(out))


def as_lines(records: Sequence[dict[str, Any]]) -> str:
    """Write records as JSON lines."""
    return "".join(f"{json.dumps(record, allow_nan=False)}\n" for record in records)
