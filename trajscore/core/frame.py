"""From a long table, one row a step in any order, to the parts of a container."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pandas.api.types import is_list_like

from trajscore.core.errors import ArgumentError
from trajscore.core.type_aliases import BoolArray, FloatArray, IntArray
from trajscore.core.values import refuse_kind, run_label, unknown_name


class _Rows:
    """The order of the rows, as Python and a command line say it."""

    def __repr__(self) -> str:
        return "None"

    def __str__(self) -> str:
        return "rows"


ROWS = _Rows()

# Above it a float no longer tells neighbouring whole numbers apart.
_LARGEST_WHOLE = 2**53


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
) -> tuple[dict[str, Any], pd.Series | None]:
    """Return the parts of a container, see `convert`, and the outcome of each run, if asked."""
    single = not is_list_like(value)  # a column's name may be a number
    values: list[Any] = [value] if single else list(value)
    if not values:
        raise ValueError("value names no column; give at least one column of values")
    in_meta = list(meta) if is_list_like(meta) else [meta]
    per_run = [*in_meta, *(name for name in (outcome, horizon) if name is not None)]
    names: list[Any] = list(id) if is_list_like(id) else [id]
    numbered = [] if step is None else [step]
    frame = select_columns(df, [*names, *numbered, *values, *per_run])
    if not len(frame):
        raise ValueError("the table has no rows; give at least one step of one run")

    codes, ids = _run_codes(joined_ids(frame, names), " and ".join(map(str, names)))
    if step is None or _are_times(frame[step]):
        steps = _count_steps(codes, frame, step, ids)
        order = _run_order(codes, steps)
        lengths = np.bincount(codes)
    else:
        steps = _step_numbers(frame[step], step)
        order = _run_order(codes, steps)
        lengths = np.bincount(codes)
        _check_steps(steps[order], codes[order], ids, lengths, first_step, step)
    columns = [_numbers(frame[name], name, ids, codes, steps) for name in values]
    once = {name: _one_per_run(frame[name], name, codes, ids) for name in per_run}
    parts = {
        "cells": columns[0][order] if single else np.stack(columns, axis=1)[order],
        "lengths": lengths,
        "channels": [str(name) for name in values],
        "ids": ids,
        "horizon": None if horizon is None else _horizons(once[horizon], horizon, ids),
        "meta": {name: once[name] for name in in_meta} if in_meta else None,
    }
    return parts, None if outcome is None else once[outcome]


def joined_ids(frame: pd.DataFrame, names: Sequence[str]) -> pd.Series:
    """Return the column of ids; of several, all values of a row with dashes between."""
    if len(names) == 1:
        return frame[names[0]]
    for name in names:
        if frame[name].isna().any():
            row = int(np.argmax(frame[name].isna()))
            raise ValueError(f"row {row}: column {name!r} is empty; every step needs its run's id")
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
    if column.dtype.kind not in "OUT" or pd.to_numeric(column, errors="coerce").notna().any():
        return False
    return bool(as_times(column).notna().all())


def as_times(column: pd.Series) -> pd.Series:
    """Return dates and times, NaT where there is none; those without a zone are taken for UTC."""
    return pd.to_datetime(column, errors="coerce", utc=True, format="ISO8601")


def _times(column: pd.Series) -> NDArray[Any]:
    times = as_times(column)
    if times.isna().any():
        row = int(np.argmax(times.isna()))
        raise ValueError(f"row {row}: column {column.name!r} has no time; every step needs one")
    return times.to_numpy(dtype="datetime64[ns]")


def _count_steps(
    codes: IntArray, frame: pd.DataFrame, step: str | None, ids: NDArray[Any]
) -> IntArray:
    """Number the rows of each run by their times, or as they stand in the table."""
    times = np.arange(len(codes)) if step is None else _times(frame[step])
    order = np.lexsort((times, codes))
    same = (np.diff(codes[order]) == 0) & (times[order][1:] == times[order][:-1])
    if same.any():
        row = int(order[int(np.argmax(same))])
        raise ArgumentError(
            f"run {run_label(ids[codes[row]])} has two rows with the same time in column {step!r}, "
            f"{frame[step].iloc[row]}; for the order of the rows pass {{argument}}",
            "step",
            ROWS,
        )
    starts = np.cumsum(np.bincount(codes)) - np.bincount(codes)
    steps = np.empty(len(codes), dtype=np.int64)
    steps[order] = np.arange(len(codes)) - np.repeat(starts, np.bincount(codes)) + 1
    return steps


def _run_order(codes: IntArray, steps: IntArray) -> Any:
    """Order of the rows by run and step; tables that are in order, the common case, not copied."""
    new_run, jump = np.diff(codes), np.diff(steps)
    if ((new_run > 0) | ((new_run == 0) & (jump >= 0))).all():
        return slice(None)
    return np.lexsort((steps, codes))


def select_columns(df: Any, names: Sequence[str]) -> pd.DataFrame:
    """Return the named columns of any dataframe that narwhals reads as a pandas one."""
    if isinstance(df, pd.DataFrame):
        _check_columns(names, list(df.columns))
        return df[list(dict.fromkeys(names))].reset_index(drop=True)
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
        raise TypeError(
            f"expected a dataframe with one row a step, got {type(df).__name__}"
        ) from error
    _check_columns(names, frame.columns)
    return pd.DataFrame({name: frame[name].to_numpy() for name in dict.fromkeys(names)})


def _check_columns(names: Sequence[str], have: Sequence[Any]) -> None:
    for name in names:
        if name not in have:
            raise ValueError(unknown_name("column", name, have))
        if list(have).count(name) > 1:
            raise ValueError(
                f"the table has {list(have).count(name)} columns named {name!r}; rename all but "
                f"the one that is meant"
            )


def _run_codes(column: pd.Series, name: str) -> tuple[IntArray, NDArray[Any]]:
    """Number the runs in the order in which the table first names them."""
    if column.isna().any():
        row = int(np.argmax(column.isna()))
        raise ValueError(f"row {row}: column {name!r} is empty; every step needs its run's id")
    codes, uniques = pd.factorize(column)
    ids = np.asarray(uniques, dtype=object)
    if ids.size and all(isinstance(one, (float, np.floating)) for one in ids):
        ids = _whole_ids(ids.astype(np.float64), ids, name)
    kinds = {type(one).__name__ for one in ids if not isinstance(one, (int, np.integer))}
    kinds |= {"int" for one in ids if isinstance(one, (int, np.integer))}
    if not kinds <= {"int"} and not kinds <= {"str", "str_"}:
        raise ValueError(
            f"column {name!r} mixes or holds run ids of type {', '.join(sorted(kinds))}; make them "
            f"all whole numbers or all text, for example with df[{name!r}].astype(str)"
        )
    return codes.astype(np.int64), ids


def _whole_ids(numbers: FloatArray, ids: NDArray[Any], name: str) -> NDArray[Any]:
    """Return integers that an empty row once made floats as integers again."""
    if not np.isfinite(numbers).all() or (numbers != np.floor(numbers)).any():
        return ids
    large = np.abs(numbers) > _LARGEST_WHOLE
    if large.any():
        raise ValueError(
            f"run id {run_label(numbers[large][0])} in column {name!r} is too large for a float to "
            f"tell it from its neighbours; read the column as text, or convert it with "
            f"df[{name!r}].astype(str)"
        )
    return numbers.astype(np.int64).astype(object)


def _step_numbers(column: pd.Series, name: str) -> IntArray:
    numbers = _to_numbers(column, name)
    bad = _not_whole(numbers)
    if bad.any():
        row = int(np.argmax(bad))
        raise ValueError(
            f"row {row}: step {run_label(column.iloc[row])} in column {name!r} is not a whole "
            f"number{_below(numbers[row])}; number the steps of each run 1, 2, 3, ..."
        )
    return numbers.astype(np.int64)


def _horizons(column: pd.Series, name: str, ids: NDArray[Any]) -> IntArray:
    """Return the horizon of each run; `column` holds one value a run."""
    numbers = _to_numbers(column, name)
    bad = _not_whole(numbers)
    if bad.any():
        row = int(np.argmax(bad))
        raise ValueError(
            f"run {run_label(ids[row])}: horizon {run_label(column.iloc[row])} in column {name!r} "
            f"is not a whole number{_below(numbers[row])}; give the number of steps over which "
            f"the run is weighted"
        )
    return numbers.astype(np.int64)


def _to_numbers(column: pd.Series, name: str) -> FloatArray:
    """Return a column as floats, NaN where it holds no number; refuse dates and the like."""
    numbers = pd.to_numeric(column, errors="coerce") if column.dtype.kind not in "mMc" else column
    try:
        refuse_kind(numbers.dtype)  # objects may turn out to be complex numbers
    except ValueError as error:
        raise ValueError(f"column {name!r} must hold real numbers, but {error}") from error
    return numbers.to_numpy(dtype=np.float64, na_value=np.nan)


def _not_whole(numbers: FloatArray) -> BoolArray:
    return ~(np.abs(numbers) <= _LARGEST_WHOLE) | (numbers != np.floor(numbers))


def _below(number: float) -> str:
    return " below 2**53" if abs(number) > _LARGEST_WHOLE else ""


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
    _check_first(steps[np.cumsum(lengths) - lengths], ids, first_step, name)
    if gap.any():
        at = int(np.argmax(gap))
        raise ValueError(
            f"run {run_label(ids[codes[at]])} has no step {steps[at] + 1} in column {name!r}, "
            f"only {steps[at]} and then {steps[at + 1]}; add the missing steps or renumber them"
        )


def _check_first(first: IntArray, ids: NDArray[Any], wanted: int, name: str) -> None:
    if (first == wanted).all():
        return
    row = int(np.argmax(first != wanted))
    common = (first == first[row]).all()
    remedy = (
        "if that is how you count, pass {argument}"
        if common
        else "renumber the steps of each run from there, or add the missing ones"
    )
    raise ArgumentError(
        f"run {run_label(ids[row])} starts at step {first[row]} in column {name!r}, not at "
        f"{wanted}; {remedy}",
        "first_step",
        int(first[row]),
    )


def _numbers(
    column: pd.Series,
    name: str,
    ids: NDArray[Any],
    codes: IntArray,
    steps: IntArray,
) -> FloatArray:
    numbers = _to_numbers(column, name)
    bad = np.isnan(numbers) & column.notna().to_numpy()
    if bad.any():
        row = int(np.argmax(bad))
        place = f"run {run_label(ids[codes[row]])}, step {steps[row]}"
        raise ValueError(
            f"{place}: {run_label(column.iloc[row])} in column {name!r} is not a number; correct "
            f"it or leave the run out"
        )
    return numbers


def _one_per_run(column: pd.Series, name: str, codes: IntArray, ids: NDArray[Any]) -> pd.Series:
    """Return a column's value for each run: that of its rows which have one, all the same."""
    values, kinds = pd.factorize(column)
    known = np.flatnonzero(values >= 0)
    first = np.full(len(ids), -1, dtype=np.int64)
    first[codes[known][::-1]] = values[known][::-1]
    differs = values[known] != first[codes[known]]
    if differs.any():
        row = int(known[np.argmax(differs)])
        one, other = kinds[first[codes[row]]], kinds[values[row]]
        raise ValueError(
            f"run {run_label(ids[codes[row]])} has two values in column {name!r}, "
            f"{run_label(one)} and {run_label(other)}; a run has one, so correct its rows"
        )
    rows = np.flatnonzero(np.diff(np.maximum.accumulate(codes), prepend=-1))  # each run's first
    rows[codes[known][::-1]] = known[::-1]
    return column.iloc[rows].reset_index(drop=True)
