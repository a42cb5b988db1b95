"""Tables with one row a run: its id, its outcome, and possibly its stop reason."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from trajscore.core.errors import ArgumentError
from trajscore.core.frame import joined_ids
from trajscore.core.outcomes import bare_name
from trajscore.core.stops import Rule, reasons_in_rows, stop_columns
from trajscore.core.values import as_path, run_label, unknown_name
from trajscore.io.fields import Fields
from trajscore.io.files import read_table
from trajscore.io.tables import usual_column


class OutcomeTable(dict[str, dict[str, Any]]):
    """Rows by run id; the column of outcomes, and whether its high values are failures."""

    column = "outcome"
    is_turned = False


_MAX_EXAMPLES = 3


def read_outcomes(
    source: Any, names: Fields, rule: Rule | None, max_size: int | None
) -> OutcomeTable | None:
    """Read a table of outcomes into rows by run id; None stays None."""
    if source is None:
        return None
    if isinstance(source, Mapping):
        return OutcomeTable((str(run), {"outcome": value}) for run, value in source.items())
    frame = source
    if not isinstance(source, pd.DataFrame):
        frame = read_table(as_path(source, "outcomes"), max_size)
    ids = joined_ids(frame, _columns_of(frame, "id", names.ids)).astype(str)
    if ids.duplicated().any():
        run = ids[ids.duplicated()].iloc[0]
        raise ArgumentError(
            f"{{argument}}: run {run_label(run)} has several rows in the table; keep one row a run",
            "outcomes",
        )
    named = filter(None, [names.outcome and bare_name(names.outcome, frame.columns)])
    (outcome,) = _columns_of(frame, "outcome", list(named))
    stops = [names.stop_reason] if names.stop_reason in frame.columns else stop_columns(frame)
    reasons = None
    if stops:
        reasons = reasons_in_rows(frame, stops, np.arange(len(frame)), rule)
    ends = pd.DataFrame({"outcome": frame[outcome].to_numpy(dtype=object), "stop_reason": reasons})
    rows = [
        {part: value for part, value in row.items() if pd.notna(value)}
        for row in ends.to_dict("records")
    ]
    table = OutcomeTable(zip(ids, rows, strict=True))
    table.column = str(outcome)
    table.is_turned = outcome != (names.outcome or outcome)
    return table


def join_outcomes(
    frame: pd.DataFrame,
    names: Fields,
    source: Any,
    rule: Rule | None,
    max_size: int | None,
) -> tuple[pd.DataFrame, Fields, tuple[str, ...]]:
    """Add the outcomes of another table to a long table, by id; also return notes on both."""
    table = read_outcomes(source, names, rule, max_size)
    if table is None:
        return frame, names, ()
    ids = joined_ids(frame, _columns_of(frame, "id", names.ids)).astype(str)
    runs = set(ids)
    n_missing = len(runs - table.keys())
    if table and n_missing == len(runs):
        raise ArgumentError(
            f"{{argument}}: no run id of the table ({examples(ids)}) is in the table of outcomes "
            f"({examples(table)}); name the column of run ids that both have with {{argument:id}}",
            "outcomes",
        )
    rows = [table.get(run, {}) for run in ids]
    column = f"{table.column} of the table of outcomes"
    if table.column not in frame:
        column = table.column
    frame = frame.assign(**{column: [row.get("outcome") for row in rows]})
    if any("stop_reason" in row for row in table.values()):
        frame = frame.assign(stop_reason=[row.get("stop_reason") for row in rows])
    notes = tuple(unmatched(len(table.keys() - runs), n_missing)) if table else ()
    return frame, replace(names, outcome="not " * table.is_turned + column), notes


def unmatched(n_rows: int, n_runs: int) -> Iterator[str]:
    """Say how many rows of the table, and how many runs, have no counterpart."""
    if n_rows:
        yield f"rows of the table of outcomes whose run is not in the log: {n_rows}"
    if n_runs:
        yield f"runs of the log that are not in the table of outcomes: {n_runs}"


def examples(ids: Iterable[Any]) -> str:
    """Return the first of some ids, for an error."""
    return ", ".join(map(repr, list(ids)[:_MAX_EXAMPLES]))


def _columns_of(frame: pd.DataFrame, part: str, named: Sequence[str]) -> list[Any]:
    """Return the named columns of a part if the table has them, else the one with a usual name."""
    if named and {*named} <= {*frame.columns}:
        return list(named)
    column = usual_column(frame, part)
    if column is None or (named and part == "outcome"):
        name = next(iter(named), part)
        problem = unknown_name("column", name, list(map(str, frame.columns)))
        remedy = "name one with {argument}"
        if part == "id":
            remedy = f"call that of the run ids {name!r}"
        raise ArgumentError(f"the table of outcomes has {problem}; {remedy}", part)
    return [column]
