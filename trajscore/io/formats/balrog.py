"""Episodes of BALROG: a JSON file of each, and beside it a CSV file of its moves."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

from trajscore.io._run import (
    MalformedRunError,
    Run,
    Step,
    ToolCall,
    as_object,
    as_outcome,
    leftover,
)
from trajscore.io._vocabulary import as_fields
from trajscore.io.files import Place, stem
from trajscore.io.registry import Format, Head, register

_TOKENS = ("input_tokens", "output_tokens")
_RUN = ("task", "progression", "done", *_TOKENS)


@register
class Balrog(Format):
    name, holds = "balrog", "progression"
    beside = ("episode_return", "num_steps", "action_frequency")
    cut_runs = "score"

    def recognise(self, head: Head) -> bool:
        return {"progression", "episode_return"} <= head.fields.keys()

    def folder(self, place: Path) -> list[Path]:
        """List the episodes of a folder, without its summaries."""
        files = sorted(place.glob("**/*_run_*.json"))
        return [path for path in files if path.with_suffix(".csv").exists()]

    def run(self, raw: Any, place: Place, options: Any) -> Run:
        raw = as_object(raw)
        model = as_fields(raw.get("client")).get("model_id")
        progression, task = raw.get("progression"), raw.get("task")
        name = place.name("/".join(str(part) for part in (model, task, stem(place.file)) if part))
        return Run(
            name,
            _moves(place.file.with_suffix(".csv")),
            outcome=as_outcome(progression),
            stop_reason=None if raw.get("done") else "max_steps",
            task=task,
            scores={} if progression is None else {"progression": progression},
            meta={"model": model} | {name: raw.get(name) for name in _TOKENS},
            extra=leftover(raw, _RUN),
        )


def _moves(path: Path) -> list[Step]:
    """Read moves; the observation in the row of a move is what the game answered to it."""
    if not path.exists():
        raise MalformedRunError(f"its moves are not there: {path.name}, beside it")
    text = path.read_text("utf-8", errors="replace").replace("\0", "")
    return [
        Step(
            "agent",
            row.get("Reasoning") or "",
            tool_calls=[ToolCall("move", {"to": row.get("Action")}, result=row.get("Observation"))],
            observation=row.get("Observation"),
        )
        for row in csv.DictReader(text.splitlines(keepends=True))
    ]
