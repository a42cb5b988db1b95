"""A folder of Parquet files, which memory need not hold: read in batches."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from trajscore.core.errors import ArgumentError
from trajscore.core.meanings import bare_name, turned_note
from trajscore.io.fields import Fields
from trajscore.io.files import NO_READAHEAD, parquet_dataset
from trajscore.io.tables import choose_columns, guess_first_step
from trajscore.report._inputs import check_by, guesses, task_column

_HEAD = 10_000


def batches_of(
    path: Path, known: dict[str, Any], by: Sequence[str], scattered: bool
) -> tuple[Any, str | None, str]:
    """Return batches of a folder, the column of stop reasons, and what was guessed, for people."""
    from trajscore.streaming import iter_batches

    fields: Fields = known["fields"]
    options = {part: getattr(fields, part) for part in ("risks", "scales", "wide")}
    options |= {part: known[part] for part in ("outcome_map", "outcomes", "rule")}
    for part, value in options.items():
        if value:
            raise ArgumentError(
                "{argument} is not for a folder of Parquet files; write columns of forecasts, "
                "and of outcomes as 1, 0 or empty",
                part,
            )
    files = parquet_dataset(path)
    head = files.head(_HEAD, batch_size=_HEAD, **NO_READAHEAD).to_pandas()
    chosen, guessed = choose_columns(head, fields)
    if len(chosen.ids) > 1:
        raise ArgumentError("a folder of Parquet files needs one column of {argument}s", "id")
    check_by(by, list(head.columns))
    reason = chosen.stop_reason
    group = chosen.group or task_column(head, chosen)
    named_first = known.get("first_step")
    first_step = guess_first_step(head, chosen) if named_first is None else named_first
    batches = iter_batches(
        str(path),
        id=chosen.ids[0],
        step=str(chosen.step),
        value=list(chosen.scores),
        outcome=str(chosen.outcome),
        group=group,
        meta=[*by, *(() if reason is None or reason in by else (reason,))],
        first_step=first_step,
        scattered=scattered,
        progress=_progress(files.count_rows()),
    )
    notes = guesses(guessed, first_step if named_first is None else None)
    outcome = str(chosen.outcome)
    if (bare := bare_name(outcome, head.columns)) != outcome:
        notes.append(turned_note(bare))
    if group is not None:
        notes.append(f"clusters of runs by {group!r}")
    return batches, reason, "\n".join(notes)


def _progress(n_rows: int) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """Return what shows how many rows of a pass are read, where tqdm and a terminal are."""

    def over(tables: Iterator[Any]) -> Iterator[Any]:
        try:
            from tqdm import tqdm
        except ImportError:
            yield from tables
            return
        with tqdm(total=n_rows, unit=" rows", unit_scale=True, leave=False,
                  disable=not sys.stderr.isatty()) as bar:  # fmt: skip
            for table in tables:
                yield table
                bar.update(len(table))

    return over
