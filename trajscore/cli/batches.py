"""A folder of Parquet files, which memory need not hold: read in batches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from trajscore.cli.inputs import progress_bar
from trajscore.core.array import TrajectoryArray
from trajscore.core.errors import ArgumentError
from trajscore.core.meanings import bare_name, turned_note
from trajscore.core.visible import visible
from trajscore.evaluation.doubts import without_leaky_columns
from trajscore.io.fields import ROWS, Fields
from trajscore.io.files import NO_READAHEAD, parquet_dataset
from trajscore.io.tables import agent_rows, choose_columns, guess_first_step
from trajscore.report._inputs import (
    check_by,
    guesses,
    note_on_unused,
    task_column,
)
from trajscore.streaming import iter_batches
from trajscore.streaming.batches import BATCH_ROWS

_HEAD = 10_000  # rows by which columns are chosen


def batches_of(
    path: Path, known: dict[str, Any], by: Sequence[str], scattered: bool
) -> tuple[Any, str | None, str]:
    """Return batches of a folder, the column of stop reasons, and what was guessed, for people."""
    fields: Fields = known["fields"]
    options = {part: getattr(fields, part) for part in ("risks", "scales", "wide")}
    options |= {part: known[part] for part in ("outcome_map", "outcomes", "rule")}
    options["step"] = fields.step == ROWS
    for part, value in options.items():
        if value:
            raise ArgumentError(
                "{argument} is not for a folder of Parquet files; write columns of step numbers, "
                "of forecasts, and of outcomes as 1, 0 or empty",
                part,
            )
    files = parquet_dataset(path)
    chosen, first_step, notes = _columns_of(files, fields, by, known["first_step"])
    reason = chosen.stop_reason
    batches = iter_batches(
        str(path),
        id=chosen.ids[0],
        step=str(chosen.step),
        value=list(chosen.scores),
        outcome=str(chosen.outcome),
        group=chosen.group,
        meta=[*by, *(() if reason is None or reason in by else (reason,))],
        first_step=first_step,
        scattered=scattered,
        progress=progress_bar(1 + files.count_rows() // BATCH_ROWS),
    )
    return batches, reason, visible("\n".join(notes))


def _columns_of(
    files: Any, fields: Fields, by: Sequence[str], first_step: int | None
) -> tuple[Fields, int, list[str]]:
    """Return columns and first step, by the first rows as for a table, and what was guessed."""
    head = files.head(_HEAD, batch_size=_HEAD, **NO_READAHEAD).to_pandas()
    check_by(by, list(head.columns))
    chosen, guessed = choose_columns(head, fields)
    if len(chosen.ids) > 1:
        raise ArgumentError("{argument}: name one column, of a folder of Parquet files", "id")
    if agent_rows(head, chosen)[1]:
        raise ValueError("not all rows are the agent's, by a column of roles; write these alone")
    task = task_column(head, chosen)
    if task is not None and _has_missing(files, task):
        task = None
    chosen = replace(chosen, group=chosen.group or task)
    unused = note_on_unused(head.drop(columns=list(by)), chosen)
    leaks: list[str] = []
    if "scores" in guessed:
        X, y = TrajectoryArray.from_frame(
            head,
            id=chosen.ids[0],
            step=None,  # the first rows may not have all steps of a run
            value=list(chosen.scores),
            outcome=chosen.outcome,
            missing="allow",
            stop_reason=(),
        )
        X, leaks = without_leaky_columns(X, y, np.ones(len(y), dtype=bool))
        guessed["scores"] = X.channels or ()
    chosen = replace(chosen, scores=guessed.get("scores", chosen.scores))
    first = guess_first_step(head, chosen) if first_step is None else first_step
    notes = [*guesses(guessed, first if first_step is None else None), *leaks, *unused]
    outcome = str(chosen.outcome)
    if (bare := bare_name(outcome, head.columns)) != outcome:
        notes.append(turned_note(bare))
    if chosen.group is not None:
        notes.append(f"clusters of runs by {chosen.group!r}")
    return chosen, first, notes


def _has_missing(files: Any, name: str) -> bool:
    import pyarrow.compute as pc

    return bool(files.count_rows(filter=pc.field(name).is_null(nan_is_null=True)))
