"""From a long table, one row a step in any order, to the parts of a container."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pandas.api.types import infer_dtype, is_list_like

from trajscore.core.errors import ArgumentError, MissingStepError
from trajscore.core.ids import as_ids
from trajscore.core.optional import optional
from trajscore.core.stops import Rule, reasons_in_rows, stop_columns, stop_names
from trajscore.core.times import as_times, zone_problem
from trajscore.core.type_aliases import BoolArray, FloatArray, IntArray
from trajscore.core.values import parse_numbers, refuse_kind, run_label, unknown_name
from trajscore.core.within_runs import offsets_of


class _Rows:
    """The order of the rows, as Python and a command line say it."""

    def __repr__(self) -> str:
        return "None"

    def __str__(self) -> str:
        return "rows"


ROWS = _Rows()

# Above it the same float stands for several whole numbers.
_LARGEST_WHOLE = 2**53 - 1


def parts_of_frame(
    df: Any,
    *,
    id: str | Sequence[str],  # noqa: A002 - as in TrajectoryArray.from_frame
    step: str | None,
    value: str | Sequence[str],
    outcome: str | None,
    horizon: str | None,
    meta: str | Sequence[str],
    first_step: int,
    stop_reason: str | Sequence[str] | None = (),
    rule: Rule | None = None,
) -> tuple[dict[str, Any], pd.Series | None]:
    """Return the parts of a container, see `convert`, and the outcome of each run, if asked."""
    single = not is_list_like(value)  # a column's name may be a number
    values: list[Any] = [value] if single else list(value)
    if not values:
        raise ValueError("value is empty; name at least one column")
    in_meta = list(meta) if is_list_like(meta) else [meta]
    per_run = [*in_meta, *(name for name in (outcome, horizon) if name is not None)]
    names: list[Any] = list(id) if is_list_like(id) else [id]
    for name in values:
        if name in names:
            raise ValueError(f"column {name!r} holds the run ids, not scores; name another")
    numbered = [] if step is None else [step]
    given: list[Any] = [stop_reason] if isinstance(stop_reason, str) else list(stop_reason or ())
    usual = () if stop_reason is not None else stop_names(column_names(df))
    taken = {*names, *numbered, *values, outcome, horizon}
    of_stops = [name for name in usual if name not in taken] if stop_reason is None else given
    frame = select_columns(df, [*names, *numbered, *values, *per_run, *of_stops])
    if not len(frame):
        raise ValueError("the table has no rows; give at least one step of one run")

    codes, ids = _number_runs(joined_ids(frame, names), " and ".join(map(str, names)))
    runs = _Runs(ids, np.bincount(codes))
    steps, has_step = None if step is None else frame[step], np.ones(len(frame), dtype=bool)
    if steps is not None and steps.hasnans:
        alone = runs.lengths[codes] == 1
        has_step = ~(alone & frame[[step, *values]].isna().all(axis=1).to_numpy())
        steps = _fill_steps(steps, has_step, first_step)
    order = _order(steps, first_step, codes, runs)
    if order is not None:
        has_step = has_step[order]
        frame = frame[list(dict.fromkeys([*values, *per_run, *of_stops]))].iloc[order]
    columns = [_values(frame[name], runs, first_step)[has_step] for name in values]
    of_runs = [name for name in per_run if not (name == "stop_reason" and name in of_stops)]
    once = {name: _one_per_run(frame[name], runs) for name in of_runs}
    if stop_reason is None:
        of_stops = stop_columns(frame[of_stops])
    if of_stops:
        reasons = reasons_in_rows(frame[of_stops], of_stops, runs.starts, rule)
        once["stop_reason"] = pd.Series(reasons)
        in_meta = list(dict.fromkeys([*in_meta, "stop_reason"]))
    parts = {
        "cells": columns[0] if single else np.stack(columns, axis=1),
        "lengths": np.add.reduceat(has_step, runs.starts, dtype=np.int64),
        "channels": [str(name) for name in values],
        "ids": ids,
        "horizon": None if horizon is None else _horizons(once[horizon], horizon, ids),
        "meta": {name: once[name] for name in in_meta} or None,
    }
    return parts, None if outcome is None else once[outcome]


class _Runs:
    """The runs of a table, as their rows are put in the order of runs and steps."""

    def __init__(self, ids: NDArray[Any], lengths: IntArray) -> None:
        self.ids, self.lengths = ids, lengths
        self.starts = offsets_of(lengths)[:-1]

    def label(self, row: int) -> str:
        """Name a row's run for messages."""
        return f"run {run_label(self.ids[np.flatnonzero(self.starts <= row)[-1]])}"


def _fill_steps(steps: pd.Series, has_step: BoolArray, first_step: int) -> pd.Series:
    """Give a place to the single rows of runs without a step, which are taken out later."""
    others = steps[has_step]
    are_numbers = steps.dtype.kind != "M" and parse_numbers(others).notna().all()
    return steps.where(has_step, first_step if are_numbers else others.iloc[0])


def _number_runs(column: pd.Series, name: str) -> tuple[IntArray, NDArray[Any]]:
    """Return the number of each row's run, as the table first names them, and the runs' ids."""
    codes, uniques = _factorized(column)
    if codes.min() < 0:
        raise _no_run_id(int(np.argmax(codes < 0)), name)
    return codes, _as_run_ids(uniques, name)


def _no_run_id(row: int, name: str) -> ValueError:
    return ValueError(
        f"row {row}: column {name!r} is empty or NA; every step needs a run id. If an empty cell "
        f"repeats that above it, fill it, in pandas: df[{name!r}] = df[{name!r}].ffill()"
    )


def _as_run_ids(uniques: NDArray[Any] | pd.Index, name: str) -> NDArray[Any]:
    """Return the ids of the runs: whole numbers or text."""
    ids = np.asarray(uniques)
    if ids.dtype.kind in "fO" and infer_dtype(ids, skipna=False) == "floating":
        remedy = f"make them text, for example with df[{name!r}].astype(str)"
        ids = _whole_numbers(
            pd.Series(ids), name, "run id", remedy, lambda row: f"run number {row}"
        )
    try:
        return as_ids(ids, len(ids))
    except ValueError as error:
        raise ValueError(f"column {name!r} of the table: {error}") from None


def joined_ids(frame: pd.DataFrame, names: Sequence[str]) -> pd.Series:
    """Return the column of ids; of several, all values of a row with dashes between."""
    if len(names) == 1:
        return frame[names[0]]
    for name in names:
        codes, _ = _factorized(frame[name])
        if codes.min(initial=0) < 0:
            raise _no_run_id(int(np.argmax(codes < 0)), name)
    joined = frame[names[0]].astype(str)
    for name in names[1:]:
        joined = joined + "-" + frame[name].astype(str)
    if joined.nunique() < len(frame[list(names)].drop_duplicates()):
        raise ValueError(
            f"two runs have the same id when the columns {' and '.join(map(repr, names))} are "
            f"joined by dashes; change the values that hold dashes"
        )
    return joined


def _order(
    column: pd.Series | None, first_step: int, codes: IntArray, runs: _Runs
) -> IntArray | None:
    """Return the rows in the order of runs and steps, None where they are; no column: as given."""
    rows = np.arange(len(codes))
    places, are_times = (rows, True) if column is None else step_places(column)
    number = places - first_step
    if not are_times and ((number >= 0) & (number < runs.lengths[codes])).all():
        # a step that is numbered has its place: nothing need be sorted
        number += runs.starts[codes]
        if np.array_equal(number, rows):
            return None
        order = np.full(len(rows), -1)
        order[number] = rows
        if (order >= 0).all():
            return order
    order = np.lexsort((places, codes))
    if column is not None:
        _check_places(column.iloc[order], places[order], are_times, first_step, runs)
    return order


def step_places(column: pd.Series) -> tuple[IntArray, bool]:
    """Return the step numbers of rows, or their times as whole numbers, and which it is."""
    times = as_times(column)
    if times is not None:
        texts = column.to_numpy(dtype=str) if column.dtype.kind in "OUT" else ()
        if problem := zone_problem(texts, "row", column.index):
            raise ArgumentError(
                f"column {column.name!r}: {problem}, or pass {{argument}}, the order of the rows",
                "step",
                ROWS,
            )
        return times, True
    if column.dtype.kind == "i" and not column.hasnans:
        return column.to_numpy(dtype=np.int64), False
    remedy = "number the steps of each run 1, 2, 3, ..."
    numbers = _whole_numbers(
        column, str(column.name), "step", remedy, lambda row: f"row {column.index[row]}"
    )
    return numbers, False


def _check_places(
    column: pd.Series, places: IntArray, are_times: bool, first_step: int, runs: _Runs
) -> None:
    """Refuse a repeat and, of step numbers, a gap or another start."""
    jump, first = np.diff(places), places[runs.starts]
    jump[runs.starts[1:] - 1] = 1  # from run to run
    if not jump.all():
        row = int(np.argmin(jump != 0))
        raise ArgumentError(
            f"{runs.label(row)} has step {column.iloc[row]} more than once in column "
            f"{column.name!r}; keep one row for each step, or for the order of the rows pass "
            f"{{argument}}",
            "step",
            ROWS,
        )
    if are_times:
        return
    if (first != first_step).any():
        run = int(np.argmax(first != first_step))
        is_first = bool((first == first[0]).all())
        raise MissingStepError(
            f"{runs.label(runs.starts[run])} starts at step {first[run]} in column "
            f"{column.name!r}, not at {first_step}; renumber its steps"
            + ", or if all runs start there, pass {argument}"
            * is_first,
            "first_step",
            int(first[run]),
        )
    row = int(np.argmax(jump > 1))
    raise MissingStepError(
        f"{runs.label(row)} has no step {places[row] + 1} in column {column.name!r}, only "
        f"{places[row]} and then {places[row + 1]}; add the missing steps or renumber them"
    )


def select_columns(df: Any, names: Sequence[str]) -> pd.DataFrame:
    """Return the named columns of a pandas DataFrame, or of what hands out Arrow data."""
    wanted = list(dict.fromkeys(names))
    if isinstance(df, pd.DataFrame):
        _check_columns(names, list(df.columns), df.index.names)
        return df[wanted].reset_index(drop=True)
    if not hasattr(df, "__arrow_c_stream__"):
        name = type(df).__name__
        hint = f"read the file first: pandas.read_csv({df!r})"
        if not isinstance(df, str):
            hint = "make one of it, as by its .to_pandas() or .collect()"
        raise TypeError(f"expected a dataframe with one row a step, got {name}; {hint}")
    pa = optional("pyarrow", "dataframes other than those of pandas need pyarrow", "data")
    table = df if isinstance(df, pa.Table) else pa.table(df)
    _check_columns(names, table.column_names)
    table = table.select(wanted)
    # pyarrow takes no rows of the strings that polars hands out
    for column, field in enumerate(table.schema):
        if str(field.type) == "string_view":
            strings = table.column(column).cast(pa.large_string())
            table = table.set_column(column, field.name, strings)
    return table.combine_chunks().to_pandas(types_mapper=pd.ArrowDtype)


def column_names(df: Any) -> list[Any]:
    """Return the names of the columns of any dataframe."""
    return list(getattr(df, "column_names", getattr(df, "columns", ())))


def _check_columns(names: Sequence[str], have: Sequence[Any], index: Sequence[Any] = ()) -> None:
    for name in names:
        if name not in have and name in index:
            raise ValueError(f"{name!r} is in the index, not a column; give df.reset_index()")
        if name not in have:
            raise ValueError(unknown_name("column", name, have))
        if list(have).count(name) > 1:
            raise ValueError(
                f"the table has {list(have).count(name)} columns named {name!r}; rename all but "
                f"the one that is meant"
            )


def _horizons(column: pd.Series, name: str, ids: NDArray[Any]) -> IntArray:
    """Return the horizon of each run; `column` holds one value a run."""
    remedy = "give the number of steps over which the run is weighted"
    return _whole_numbers(column, name, "horizon", remedy, lambda row: f"run {run_label(ids[row])}")


def _whole_numbers(
    column: pd.Series, name: str, kind: str, remedy: str, place: Callable[[int], str]
) -> IntArray:
    numbers = _to_numbers(column, name)
    bad = ~(np.abs(numbers) <= _LARGEST_WHOLE) | (numbers != np.floor(numbers))
    if bad.any():
        row = int(np.argmax(bad))
        below = " below 2**53" if abs(numbers[row]) > _LARGEST_WHOLE else ""
        raise ValueError(
            f"{place(row)}: {kind} {run_label(column.iloc[row])} in column {name!r} is not a whole "
            f"number{below}; {remedy}"
        )
    return numbers.astype(np.int64)


def _to_numbers(column: pd.Series, name: str) -> FloatArray:
    """Return a column as floats, NaN where it holds no number; refuse dates and the like."""
    if column.dtype.kind in "biuf":
        return column.to_numpy(dtype=np.float64, na_value=np.nan)
    numbers = parse_numbers(column) if column.dtype.kind not in "mMc" else column
    refuse_kind(numbers.dtype, name)  # objects may turn out to be complex numbers
    return numbers.to_numpy(dtype=np.float64, na_value=np.nan)


def _values(column: pd.Series, runs: _Runs, first_step: int) -> FloatArray:
    """Return the numbers of a column, NaN where a cell is empty."""
    numbers, name = _to_numbers(column, str(column.name)), column.name
    bad = np.isnan(numbers) & column.notna().to_numpy() & (column.dtype.kind not in "biuf")
    if bad.any():
        row = int(np.argmax(bad))
        step, text = row - runs.starts[runs.starts <= row][-1] + first_step, column.iloc[row]
        remedy = "correct it or leave the run out"
        if isinstance(text, str) and text.strip().endswith("%"):
            remedy = f"write fractions: df[{name!r}].str.rstrip('%').astype(float) / 100"
        raise ValueError(
            f"{runs.label(row)}, step {step}: {run_label(text)} in column {name!r} is not a "
            f"number; {remedy}"
        )
    return numbers


def _is_constant(column: pd.Series, runs: _Runs) -> bool:
    """Whether a column is of numbers which are the same in all rows of each run."""
    if column.dtype.kind not in "biuf" or column.hasnans:
        return False
    values = column.to_numpy()
    return bool((values == np.repeat(values[runs.starts], runs.lengths)).all())


def _factorized(column: pd.Series) -> tuple[IntArray, Any]:
    """Number the values of a column, -1 where there is none."""
    try:
        return pd.factorize(column)
    except TypeError:
        raise ValueError(
            f"column {column.name!r} holds a list or an object; give one value a run"
        ) from None


def _one_per_run(column: pd.Series, runs: _Runs) -> pd.Series:
    """Return a column's value for each run: that of its rows which have one, all the same."""
    rows = runs.starts
    if not _is_constant(column, runs):
        values, kinds = _factorized(column)
        known = np.flatnonzero(values >= 0)
        of_run, value = np.repeat(np.arange(len(rows)), runs.lengths)[known], values[known]
        is_first = np.append(True, of_run[1:] != of_run[:-1])[: len(known)]
        differs = np.flatnonzero((value[1:] != value[:-1]) & ~is_first[1:])
        if len(differs):
            row = int(known[differs[0]])
            first, second = (kinds[code] for code in value[differs[0] : differs[0] + 2])
            raise ValueError(
                f"{runs.label(row)} has two values in column {column.name!r}, {run_label(first)} "
                f"and {run_label(second)}; a run has one: correct its rows, or name a column that "
                f"has one value a run"
            )
        rows = rows.copy()
        rows[of_run[is_first]] = known[is_first]
    once = column.iloc[rows].reset_index(drop=True)
    if isinstance(column.dtype, pd.ArrowDtype):
        import pyarrow as pa  # which made the column

        return pa.array(once).to_pandas()
    return once
