"""A folder of Parquet files, which memory need not hold: read in batches."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from trajscore.cli.inputs import progress_bar
from trajscore.core.array import TrajectoryArray
from trajscore.core.errors import ArgumentError
from trajscore.core.meanings import bare_name, turned_note
from trajscore.evaluation.doubts import without_leaky_columns
from trajscore.io.fields import ROWS, Fields
from trajscore.io.files import NO_READAHEAD, parquet_dataset
from trajscore.io.tables import agent_rows, choose_columns, guess_first_step
from trajscore.loading.tables import (
    LoadRequest,
    Note,
    check_by,
    note_on_guesses,
    note_on_unused,
    task_column,
)
from trajscore.streaming import iter_batches
from trajscore.streaming.batches import BATCH_ROWS, RunBatches

_HEAD = 10_000  # rows by which columns are chosen


def batches_of(path: Path, request: LoadRequest) -> tuple[RunBatches, str | None, list[Note]]:
    """Return batches of a folder, the column of stop reasons, and what was guessed."""
    fields = request.fields
    unusable = {part: getattr(fields, part) for part in ("risks", "scales", "wide")}
    unusable |= {part: getattr(request, part) for part in ("outcome_map", "outcomes", "rule")}
    unusable["step"] = fields.step == ROWS
    for part, value in unusable.items():
        if value:
            raise ArgumentError(
                "{argument} is not for a folder of Parquet files; write columns of step numbers, "
                "of forecasts, and of outcomes as 1, 0 or empty",
                part,
            )
    files = parquet_dataset(path)
    chosen, first_step, notes = _choose_columns(files, request)
    reason = chosen.stop_reason
    meta = list(request.by)
    if reason is not None and reason not in meta:
        meta.append(reason)
    batches = iter_batches(
        str(path),
        id=chosen.ids[0],
        step=str(chosen.step),
        value=list(chosen.scores),
        outcome=str(chosen.outcome),
        group=chosen.group,
        meta=meta,
        first_step=first_step,
        progress=progress_bar(1 + files.count_rows() // BATCH_ROWS),
    )
    return batches, reason, notes


def _choose_columns(files: Any, request: LoadRequest) -> tuple[Fields, int, list[Note]]:
    """Return columns and first step, by the first rows as for a table, and what was guessed."""
    import pyarrow.compute as pc

    head = files.head(_HEAD, batch_size=_HEAD, **NO_READAHEAD).to_pandas()
    check_by(request.by, list(head.columns))
    chosen, guessed = choose_columns(head, request.fields)
    if len(chosen.ids) > 1:
        raise ArgumentError("{argument}: name one column, of a folder of Parquet files", "id")
    if agent_rows(head, chosen)[1]:
        raise ValueError("not all rows are the agent's, by a column of roles; write these alone")
    task = task_column(head, chosen)
    if task is not None and files.count_rows(filter=pc.field(task).is_null(nan_is_null=True)):
        task = None
    chosen = replace(chosen, group=chosen.group or task)
    notes = note_on_unused(head.drop(columns=list(request.by)), chosen)
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
        chosen = replace(chosen, scores=guessed["scores"])
        notes = [*map(ArgumentError, leaks), *notes]
    first_step = request.first_step
    if first_step is None:
        first_step = guess_first_step(head, chosen)
    notes = [*note_on_guesses(guessed, first_step, request.first_step), *notes]
    outcome = str(chosen.outcome)
    if (bare := bare_name(outcome, head.columns)) != outcome:
        notes.append(turned_note(bare))
    if chosen.group is not None:
        notes.append(f"clusters of runs by {chosen.group!r}")
    return chosen, first_step, notes
