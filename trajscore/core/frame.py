"""From a long table, one row a step in any order, to the parts of a container."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pandas.api.extensions import ExtensionDtype
from pandas.api.types import infer_dtype, is_list_like

from trajscore.core.errors import ArgumentError
from trajscore.core.ids import as_ids
from trajscore.core.stops import Rule, reasons_in_rows, stop_columns, stop_names
from trajscore.core.type_aliases import BoolArray, FloatArray, IntArray
from trajscore.core.values import refuse_kind, run_label, unknown_name


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
    numbered = [] if step is None else [step]
    given: list[Any] = [stop_reason] if isinstance(stop_reason, str) else list(stop_reason or ())
    usual = () if stop_reason is not None else stop_names(column_names(df))
    taken = {*names, *numbered, *values, outcome, horizon}
    of_stops = [name for name in usual if name not in taken] if stop_reason is None else given
    frame = select_columns(df, [*names, *numbered, *values, *per_run, *of_stops])
    if not len(frame):
        raise ValueError("the table has no rows; give at least one step of one run")

    layout = _layout(joined_ids(frame, names), " and ".join(map(str, names)))
    if step is None or _are_times(frame[step]):
        steps = _count_steps(layout, frame, step)
        order = layout.order(steps, 1, str(step))
    else:
        steps = _step_numbers(frame[step], step)
        order = layout.order(steps, first_step, step)
    columns = [_numbers(frame[name], name, layout, steps) for name in values]
    of_runs = [name for name in per_run if not (name == "stop_reason" and name in of_stops)]
    once = {name: _one_per_run(frame[name], name, layout) for name in of_runs}
    cells = columns[0] if single else np.stack(columns, axis=1)
    if stop_reason is None:
        of_stops = stop_columns(frame[of_stops])
    if of_stops:
        rows = frame[of_stops] if order is None else frame[of_stops].iloc[order]
        starts = np.cumsum(layout.lengths) - layout.lengths
        once["stop_reason"] = pd.Series(reasons_in_rows(rows, of_stops, starts, rule))
        in_meta = list(dict.fromkeys([*in_meta, "stop_reason"]))
    parts = {
        "cells": cells if order is None else cells[order],
        "lengths": layout.lengths,
        "channels": [str(name) for name in values],
        "ids": layout.ids,
        "horizon": None if horizon is None else _horizons(once[horizon], horizon, layout.ids),
        "meta": {name: once[name] for name in in_meta} or None,
    }
    return parts, None if outcome is None else once[outcome]


@dataclass(frozen=True)
class _Layout:
    """Which run each row of a table belongs to; runs are numbered as the table first names them."""

    ids: NDArray[Any]  # of the runs
    first: IntArray  # row of each run that comes first
    lengths: IntArray  # of the runs
    codes: IntArray | None  # run of each row; None where the rows of each run lie together

    def run(self, row: int) -> Any:
        """Return the id of a row's run."""
        if self.codes is not None:
            return self.ids[self.codes[row]]
        return self.ids[np.searchsorted(self.first, row, side="right") - 1]

    def spread(self, values: NDArray[Any]) -> NDArray[Any]:
        """Give each row what its run has."""
        return np.repeat(values, self.lengths) if self.codes is None else values[self.codes]

    def codes_of_rows(self) -> IntArray:
        """Return the number of each row's run."""
        return self.spread(np.arange(len(self.ids)))

    def order(self, steps: IntArray, first_step: int, name: str) -> IntArray | None:
        """Order of the rows by run and step; None for tables that are in order, the common case."""
        if self.codes is None:
            rises = np.diff(steps) == 1
            rises[self.first[1:] - 1] = True
            if rises.all() and (steps[self.first] == first_step).all():
                return None
        starts, rows = np.cumsum(self.lengths) - self.lengths, np.arange(len(steps))
        # each row has its place, as the steps of a run are numbered without gap or repeat
        place = steps - first_step
        inside = (place >= 0) & (place < self.spread(self.lengths))
        place += self.spread(starts)
        order = np.full(len(steps), -1)
        order[place[inside]] = rows[inside]
        if order.min() < 0:  # and then some row has no place of its own
            codes = self.codes_of_rows()
            by_run = np.lexsort((steps, codes))
            _check_steps(steps[by_run], codes[by_run], self.ids, self.lengths, first_step, name)
        return order


def _layout(column: pd.Series, name: str) -> _Layout:
    """Find the runs: from where the id changes if each run's rows lie together, else from all."""
    changes = np.append(True, _changes(column))
    first = np.flatnonzero(changes)
    codes, uniques = _factorized(column.iloc[first], name, first)
    if len(uniques) == len(first):
        lengths = np.diff(np.append(first, len(column)))
        return _Layout(_as_run_ids(uniques, name), first, lengths, None)
    codes = codes[np.cumsum(changes) - 1]
    row_of_run = np.empty(len(uniques), dtype=np.int64)
    row_of_run[codes[::-1]] = np.arange(len(codes) - 1, -1, -1)
    return _Layout(_as_run_ids(uniques, name), row_of_run, np.bincount(codes), codes)


def _changes(column: pd.Series) -> BoolArray:
    """Whether each value but the first differs from the one above; a missing one may."""
    if column.dtype == object and column.hasnans:  # some missing objects cannot be compared
        return np.ones(len(column) - 1, dtype=bool)
    is_extension = isinstance(column.dtype, ExtensionDtype)
    if is_extension and column.isna().all():
        return np.zeros(len(column) - 1, dtype=bool)
    values: Any = column.array if is_extension else column.to_numpy()
    differs = values[1:] != values[:-1]
    if hasattr(differs, "to_numpy"):
        differs = differs.to_numpy(dtype=bool, na_value=True)
    return np.asarray(differs, dtype=bool)


def _factorized(
    column: pd.Series, name: str, rows: IntArray
) -> tuple[IntArray, NDArray[Any] | pd.Index]:
    """Number the different values; `rows` are those of the table."""
    if column.dtype.kind == "i" and not column.hasnans:
        numbers = column.to_numpy(dtype=np.int64)
        if (numbers[1:] > numbers[:-1]).all():  # sorted by run, the common case
            return rows, numbers
    codes, uniques = pd.factorize(column)
    if codes.min() < 0:
        row = int(rows[np.argmax(codes < 0)])
        raise _no_run_id(row, name)
    return codes.astype(np.int64, copy=False), uniques


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
        if frame[name].isna().any():
            row = int(np.argmax(frame[name].isna()))
            raise _no_run_id(row, name)
    joined = frame[names[0]].astype(str)
    for name in names[1:]:
        joined = joined + "-" + frame[name].astype(str)
    if joined.nunique() < len(frame[list(names)].drop_duplicates()):
        raise ValueError(
            f"two runs have the same id when the columns {' and '.join(map(repr, names))} are "
            f"joined by dashes; change the values that hold dashes"
        )
    return joined


def _are_times(column: pd.Series) -> bool:
    """Tell a column of dates and times, also as text, from one of numbers."""
    if column.dtype.kind == "M":
        return True
    if column.dtype.kind not in "OUT" or parse_numbers(column).notna().any():
        return False
    return bool(as_times(column).notna().all())


def parse_numbers(column: pd.Series) -> pd.Series:
    """Return numbers, NaN where a cell holds none, infinity where it is beyond float64."""
    try:
        return pd.to_numeric(column, errors="coerce")
    except OverflowError:  # of an integer of hundreds of digits
        return pd.to_numeric(column.map(_within_floats), errors="coerce")


def _within_floats(cell: Any) -> Any:
    if not isinstance(cell, int) or abs(cell) <= sys.float_info.max:
        return cell
    return np.inf if cell > 0 else -np.inf


def as_times(column: pd.Series) -> pd.Series:
    """Return dates and times, NaT where there is none; those without a zone are taken for UTC."""
    return pd.to_datetime(column, errors="coerce", utc=True, format="ISO8601")


def _times(column: pd.Series) -> NDArray[Any]:
    times = as_times(column)
    if times.isna().any():
        row = int(np.argmax(times.isna()))
        raise ValueError(f"row {row}: column {column.name!r} has no time; every step needs one")
    return times.to_numpy(dtype="datetime64[ns]")


def _count_steps(layout: _Layout, frame: pd.DataFrame, step: str | None) -> IntArray:
    """Number the rows of each run by their times, or as they stand in the table."""
    codes = layout.codes_of_rows()
    times = np.arange(len(codes)) if step is None else _times(frame[step])
    order = np.lexsort((times, codes))
    same = (np.diff(codes[order]) == 0) & (times[order][1:] == times[order][:-1])
    if same.any():
        row = int(order[int(np.argmax(same))])
        raise ArgumentError(
            f"run {run_label(layout.run(row))} has two rows with the same time in column {step!r}, "
            f"{frame[step].iloc[row]}; for the order of the rows pass {{argument}}",
            "step",
            ROWS,
        )
    starts = np.cumsum(layout.lengths) - layout.lengths
    steps = np.empty(len(codes), dtype=np.int64)
    steps[order] = np.arange(len(codes)) - np.repeat(starts, layout.lengths) + 1
    return steps


def select_columns(df: Any, names: Sequence[str]) -> pd.DataFrame:
    """Return the named columns of any dataframe that narwhals reads as a pandas one."""
    if isinstance(df, pd.DataFrame):
        _check_columns(names, list(df.columns), df.index.names)
        chosen = df[list(dict.fromkeys(names))]
        index = chosen.index
        is_plain = isinstance(index, pd.RangeIndex) and index.start == 0 and index.step == 1
        return chosen if is_plain else chosen.reset_index(drop=True)
    if hasattr(df, "__arrow_c_stream__") and (table := _arrow_table(df)) is not None:
        _check_columns(names, table.column_names)
        chosen = table.select(list(dict.fromkeys(names)))
        return chosen.combine_chunks().to_pandas(types_mapper=pd.ArrowDtype)
    try:
        import narwhals as nw
    except ImportError as error:
        raise ImportError(
            f"a {type(df).__name__} is read with narwhals; run `pip install narwhals`, or pass a "
            f"pandas DataFrame"
        ) from error
    try:
        frame = nw.from_native(df, eager_only=True)
    except TypeError as error:
        name = type(df).__name__
        hint = {
            "LazyFrame": "; give what its .collect() returns",
            "str": f"; read the file first: pandas.read_csv({df!r})",
        }.get(name, "")
        raise TypeError(f"expected a dataframe with one row a step, got {name}{hint}") from error
    _check_columns(names, frame.columns)
    return pd.DataFrame({name: frame[name].to_numpy() for name in dict.fromkeys(names)})


def column_names(df: Any) -> list[Any]:
    """Return the names of the columns of any dataframe."""
    return list(getattr(df, "column_names", getattr(df, "columns", ())))


def _arrow_table(df: Any) -> Any:
    """Return what hands out Arrow data as a table; None where pyarrow is not installed."""
    try:
        import pyarrow as pa
    except ImportError:
        return None
    table = df if isinstance(df, pa.Table) else pa.table(df)
    # pyarrow takes no rows of the strings that polars hands out
    for column, field in enumerate(table.schema):
        if str(field.type) == "string_view":
            strings = table.column(column).cast(pa.large_string())
            table = table.set_column(column, field.name, strings)
    return table


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


def _step_numbers(column: pd.Series, name: str) -> IntArray:
    if column.dtype.kind == "i" and not column.hasnans:
        return column.to_numpy(dtype=np.int64, copy=True)
    remedy = "number the steps of each run 1, 2, 3, ..."
    return _whole_numbers(column, name, "step", remedy, lambda row: f"row {row}")


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
    try:
        refuse_kind(numbers.dtype)  # objects may turn out to be complex numbers
    except ValueError as error:
        raise ValueError(f"column {name!r} must hold real numbers, but {error}") from error
    return numbers.to_numpy(dtype=np.float64, na_value=np.nan)


def _check_steps(
    steps: IntArray,
    codes: IntArray,
    ids: NDArray[Any],
    lengths: IntArray,
    first_step: int,
    name: str,
) -> None:
    """Refuse a repeat, a gap or another start; `steps` and `codes` are sorted."""
    same_run, jump = codes[1:] == codes[:-1], np.diff(steps)
    repeated, gap = same_run & (jump == 0), same_run & (jump > 1)
    if repeated.any():
        at = int(np.argmax(repeated))
        raise ValueError(
            f"run {run_label(ids[codes[at]])} has step {steps[at]} more than once in "
            f"column {name!r}; keep one row for each step"
        )
    first = steps[np.cumsum(lengths) - lengths]
    if (first != first_step).any():
        row = int(np.argmax(first != first_step))
        raise ArgumentError(
            f"run {run_label(ids[row])} starts at step {first[row]} in column {name!r}, not at "
            f"{first_step}; renumber its steps, or if all runs start there, pass {{argument}}",
            "first_step",
            int(first[row]),
        )
    if gap.any():
        at = int(np.argmax(gap))
        raise ValueError(
            f"run {run_label(ids[codes[at]])} has no step {steps[at] + 1} in column {name!r}, "
            f"only {steps[at]} and then {steps[at + 1]}; add the missing steps or renumber them"
        )


def _numbers(column: pd.Series, name: str, layout: _Layout, steps: IntArray) -> FloatArray:
    numbers = _to_numbers(column, name)
    if column.dtype.kind in "biuf":
        return numbers
    bad = np.isnan(numbers) & column.notna().to_numpy()
    if bad.any():
        row = int(np.argmax(bad))
        place, text = f"run {run_label(layout.run(row))}, step {steps[row]}", column.iloc[row]
        remedy = "correct it or leave the run out"
        if isinstance(text, str) and text.strip().endswith("%"):
            remedy = f"write fractions: df[{name!r}].str.rstrip('%').astype(float) / 100"
        raise ValueError(f"{place}: {run_label(text)} in column {name!r} is not a number; {remedy}")
    return numbers


def _one_per_run(column: pd.Series, name: str, layout: _Layout) -> pd.Series:
    """Return a column's value for each run: that of its rows which have one, all the same."""
    rows = layout.first
    if not _is_one_per_run(column, layout):
        rows = _rows_with_values(column, name, layout)
    once = column.iloc[rows].reset_index(drop=True)
    if isinstance(column.dtype, pd.ArrowDtype):
        import pyarrow as pa  # which made the column

        return pa.array(once).to_pandas()
    return once


def _is_one_per_run(column: pd.Series, layout: _Layout) -> bool:
    """Whether each run has one value, none missing; False also where that takes a closer look."""
    if layout.codes is None:
        differs = _changes(column)
        differs[layout.first[1:] - 1] = False
        return not differs.any()
    if column.dtype.kind not in "biu" or column.hasnans:
        return False
    values = column.to_numpy()
    return np.array_equal(values, layout.spread(values[layout.first]))


def _rows_with_values(column: pd.Series, name: str, layout: _Layout) -> IntArray:
    """Return a row of each run that has a value, if one does; refuse runs that have two."""
    codes, rows = layout.codes_of_rows(), layout.first.copy()
    try:
        values, kinds = pd.factorize(column)
    except TypeError:
        raise ValueError(
            f"column {name!r} holds a list or an object; give one value a run"
        ) from None
    known = np.flatnonzero(values >= 0)
    first = np.full(len(rows), -1, dtype=np.int64)
    first[codes[known][::-1]] = values[known][::-1]
    differs = values[known] != first[codes[known]]
    if differs.any():
        row = int(known[np.argmax(differs)])
        first_value, second = kinds[first[codes[row]]], kinds[values[row]]
        raise ValueError(
            f"run {run_label(layout.run(row))} has two values in column {name!r}, "
            f"{run_label(first_value)} and {run_label(second)}; a run has one: correct its rows, "
            f"or name a column that has one value a run"
        )
    rows[codes[known][::-1]] = known[::-1]
    return rows
