"""Tables with one row a run: its id, its outcome, and possibly its stop reason."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from trajscore.core.errors import ArgumentError
from trajscore.core.frame import joined_ids
from trajscore.core.meanings import bare_name, turned_note
from trajscore.core.stops import Rule, reasons_in_rows, stop_columns
from trajscore.core.values import as_path, unknown_name
from trajscore.io.fields import Fields, usual_names
from trajscore.io.tables import read_table


class OutcomeTable(dict[str, dict[str, Any]]):
    """Rows by run id; `is_turned` if high values of their outcomes are failures."""

    is_turned = False


JOINED = "outcome in the table of outcomes"
"""Name of the column that outcomes of another table are joined as."""
_MAX_EXAMPLES = 3


def read_outcomes(source: Any, names: Fields, rule: Rule | None = None) -> OutcomeTable | None:
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
    outcome = _outcome_column(frame, names)
    own_reason = names.stop_reason in frame.columns
    stops = [names.stop_reason] if own_reason else stop_columns(frame)
    reasons = reasons_in_rows(frame, stops, np.arange(len(frame)), rule) if stops else None
    ends = pd.DataFrame({"outcome": frame[outcome].to_numpy(dtype=object), "stop_reason": reasons})
    rows = [
        {part: value for part, value in row.items() if pd.notna(value)}
        for row in ends.to_dict("records")
    ]
    table = OutcomeTable(zip(ids, rows, strict=True))
    table.is_turned = outcome != (names.outcome or outcome)
    return table


def join_outcomes(
    frame: pd.DataFrame, names: Fields, source: Any, rule: Rule | None = None
) -> tuple[pd.DataFrame, Fields, tuple[str, ...]]:
    """Add the outcomes of another table to a long table, by id; also return notes on both."""
    table = read_outcomes(source, names, rule)
    if table is None:
        return frame, names, ()
    ids = joined_ids(frame, _id_columns(frame, names)).astype(str)
    runs = set(ids)
    n_missing = len(runs - table.keys())
    if n_missing == len(runs):
        raise ArgumentError(
            f"{{argument}}: no run id of the table ({examples(ids)}) is in the table of outcomes "
            f"({examples(table)}); name the column of run ids that both have with {{argument:id}}",
            "outcomes",
        )
    frame = frame.assign(**{JOINED: [table.get(run, {}).get("outcome") for run in ids]})
    if any("stop_reason" in row for row in table.values()):
        frame = frame.assign(stop_reason=[table.get(run, {}).get("stop_reason") for run in ids])
    notes = tuple(unmatched(len(table.keys() - runs), n_missing))
    if not table.is_turned:
        return frame, replace(names, outcome=JOINED), notes
    notes = (turned_note(bare_name(str(names.outcome))), *notes)
    return frame, replace(names, outcome=f"not {JOINED}"), notes


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


def _outcome_column(frame: pd.DataFrame, names: Fields) -> Any:
    name = None if names.outcome is None else bare_name(names.outcome, frame.columns)
    usual = (name,) if name in frame.columns else usual_names("outcome", frame.columns)
    if usual and name in (None, usual[0]):
        return usual[0]
    columns = list(map(str, frame.columns))
    if name is not None:
        problem = unknown_name("column", name, columns)
        raise ArgumentError(f"the table of outcomes: {{argument}}: {problem}", "outcome")
    raise ArgumentError(
        f"the table of outcomes has no column of outcomes; name one of its columns "
        f"({', '.join(columns)}) with {{argument}}",
        "outcome",
    )
