"""Tables with one row a run: its id, its outcome, and possibly its stop reason."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from trajscore.core.errors import ArgumentError
from trajscore.core.frame import joined_ids
from trajscore.core.meanings import (
    bare_name,
    check_map,
    map_outcomes,
    outcome_candidates,
    refuse_counts_in,
    turned_note,
)
from trajscore.core.outcomes import CENSORED, check_outcomes
from trajscore.core.type_aliases import FloatArray
from trajscore.core.values import as_numbers, as_path, number_of, unknown_name
from trajscore.io.fields import Fields, usual_names
from trajscore.io.tables import read_table


class OutcomeTable(dict[str, dict[str, Any]]):
    """Rows by run id; `is_turned` if high values of their outcomes are failures."""

    is_turned = False


JOINED = "outcome in the table of outcomes"
"""Name of the column that outcomes of another table are joined as."""
_MAX_EXAMPLES = 3


def read_outcomes(
    source: Any, names: Fields, meanings: Mapping[str, float] | None = None
) -> OutcomeTable | None:
    """Read a table of outcomes into rows by run id; None stays None."""
    if source is None:
        return None
    if isinstance(source, Mapping):
        return OutcomeTable((str(run), {"outcome": value}) for run, value in source.items())
    frame = source if isinstance(source, pd.DataFrame) else read_table(as_path(source, "outcomes"))
    ids = joined_ids(frame, _id_columns(frame, names)).astype(str)
    if ids.duplicated().any():
        run = ids[ids.duplicated()].iloc[0]
        raise ArgumentError(
            f"{{argument}}: run {run!r} has several rows in the table; keep one row a run",
            "outcomes",
        )
    columns = {part: _column(frame, names, part) for part in ("outcome", "stop_reason")}
    refuse_counts_in(frame, columns["outcome"], meanings or {})
    rows = [
        {
            part: row[name]
            for part, name in columns.items()
            if name is not None and pd.notna(row[name])
        }
        for row in frame.to_dict("records")
    ]
    table = OutcomeTable(zip(ids, rows, strict=True))
    table.is_turned = columns["outcome"] != (names.outcome or columns["outcome"])
    return table


def join_outcomes(
    frame: pd.DataFrame, names: Fields, source: Any, meanings: Mapping[str, float] | None = None
) -> tuple[pd.DataFrame, Fields, tuple[str, ...]]:
    """Add the outcomes of another table to a long table, by id; also return notes on both."""
    table = read_outcomes(source, names, meanings)
    if table is None:
        return frame, names, ()
    ids = joined_ids(frame, _id_columns(frame, names)).astype(str)
    runs = set(ids)
    n_missing = len(runs - table.keys())
    if n_missing == len(runs) and table:  # an empty one says that no run has an outcome
        raise ArgumentError(
            f"{{argument}}: no run id of the table ({examples(ids)}) is in the table of outcomes "
            f"({examples(table)}); name the column of run ids that both have with {{argument:id}}",
            "outcomes",
        )
    frame = frame.assign(**{JOINED: [table.get(run, {}).get("outcome") for run in ids]})
    notes = tuple(unmatched(len(table.keys() - runs), n_missing)) if table else ()
    if not table.is_turned:
        return frame, replace(names, outcome=JOINED), notes
    notes = (turned_note(bare_name(str(names.outcome))), *notes)
    return frame, replace(names, outcome=f"not {JOINED}"), notes


LABEL_PROBABILITY = "label_probability"
"""Column of a file of labels: the chance with which a run was chosen to be labelled."""


def read_labels(
    source: Any, names: Fields, ids: NDArray[Any], outcome_map: Any = None
) -> tuple[NDArray[Any], FloatArray | None, tuple[str, ...]]:
    """Return the outcome of each run, -1 without one, and the chances of being labelled.

    There are no chances without a column of them. Rows that have no outcome yet make those of the
    others smaller: these are taken for a random part of all that were chosen.
    """
    frame = source if isinstance(source, pd.DataFrame) else read_table(as_path(source, "labels"))
    try:
        table = read_outcomes(frame, names)
    except ArgumentError as error:
        problem = error.text.partition(";")[0].removeprefix("{argument}: ")
        hint = "give the file that trajscore label wrote"
        raise ArgumentError(f"{{argument}}: {problem}; {hint}", "labels") from error
    runs = list(map(str, ids))
    if table is None or not (table.keys() & set(runs)):
        raise ArgumentError(
            f"{{argument}}: none of its run ids ({examples(table or ())}) are in the data "
            f"({examples(runs)}); with {{argument:id}}, name the column of run ids that both have",
            "labels",
        )
    if lost := table.keys() - set(runs):
        raise ArgumentError(
            f"{{argument}} holds {number_of(len(lost), 'run')} missing from the data, such as "
            f"{min(lost)!r}; give the data that it was written for",
            "labels",
        )
    outcome = pd.Series([table.get(run, {}).get("outcome") for run in runs], name="outcome")
    codes = check_outcomes(map_outcomes(outcome, check_map(outcome_map)))
    if LABEL_PROBABILITY not in frame:
        return codes, None, ()
    of_run = dict(zip(table, as_numbers(frame[LABEL_PROBABILITY], LABEL_PROBABILITY), strict=True))
    probability = np.array([of_run.get(run, 1.0) for run in runs])
    chosen = np.array([run in table for run in runs])
    n_read, n_chosen = int((codes[chosen] != CENSORED).sum()), int(chosen.sum())
    if n_read == n_chosen:
        return codes, probability, ()
    note = (
        f"{n_chosen - n_read} of the {n_chosen} runs to label have no outcome; the others are "
        f"taken for a random part of them, so do not skip runs for how they look"
    )
    return codes, probability * (n_read / n_chosen), (note,)


def unmatched(n_rows: int, n_runs: int) -> Iterator[str]:
    """Say how many rows of the table, and how many runs, have no counterpart."""
    if n_rows:
        yield f"rows of the table of outcomes whose run is not in the log: {n_rows}"
    if n_runs:
        yield f"runs of the log that are not in the table of outcomes: {n_runs}"


def examples(ids: Iterable[Any]) -> str:
    """Return the first of some ids, for an error."""
    return ", ".join(map(repr, list(ids)[:_MAX_EXAMPLES]))


def _id_columns(frame: pd.DataFrame, names: Fields) -> list[str]:
    """Return the named columns of the id if the table has them, or else a usual one."""
    if names.ids and all(name in frame.columns for name in names.ids):
        return list(names.ids)
    usual = usual_names("id", frame.columns)
    if not usual:
        raise ArgumentError(
            f"{{argument}}: the table has no column of run ids; call one of its columns "
            f"({', '.join(map(str, frame.columns))}) 'id'",
            "outcomes",
        )
    return [usual[0]]


def _column(frame: pd.DataFrame, names: Fields, part: str) -> Any:
    name = getattr(names, part)
    if name is not None and part == "outcome":
        name = bare_name(name, frame.columns)
    if name is not None and name in frame.columns:
        return name
    usual = usual_names(part, frame.columns)
    if part != "outcome" or (usual and name is None):
        return usual[0] if usual else None
    columns = list(map(str, frame.columns))
    if name is not None:
        problem = unknown_name("column", name, columns)
        raise ArgumentError(f"the table of outcomes: {{argument}}: {problem}", part)
    hints = outcome_candidates({str(n): frame[n].dropna().unique().tolist() for n in frame.columns})
    hint = f", such as {hints[0]}" if hints else ""
    raise ArgumentError(
        f"the table of outcomes has no column of outcomes; name one of its columns "
        f"({', '.join(columns)}) with {{argument}}{hint}",
        part,
    )
