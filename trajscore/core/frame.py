"""From a long table, one row a step in any order, to runs with outcomes."""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pandas.api.types import infer_dtype, is_list_like

from trajscore.core.errors import ArgumentError, MissingStepError, optional
from trajscore.core.ids import as_ids
from trajscore.core.outcomes import (
    CENSORED,
    bare_name,
    check_map,
    check_outcomes,
    check_polarity,
    map_outcomes,
    turn,
    words_of,
)
from trajscore.core.stops import (
    EXCLUDED,
    UNKNOWN,
    Rule,
    Stops,
    reasons_in_rows,
    settle_stops,
    stop_names,
)
from trajscore.core.values import (
    LARGEST_HORIZON,
    AnyArray,
    ArrayLike,
    BoolArray,
    FloatArray,
    IntArray,
    first_true,
    parse_numbers,
    refuse_first,
    refuse_kind,
    run_label,
    unknown_name,
)
from trajscore.core.within_runs import offsets_of

TIME_WORDS = {"time", "timestamp", "ts", "at"}
"""Words in the names of columns and fields that hold times."""


def moment(value: Any) -> int | None:
    """Return a time as a whole number that can be compared with others of the same log.

    >>> moment("2026-01-01T00:00:00Z") < moment("2026-01-01T00:00:00.5Z"), moment("17"), moment("")
    (True, 17, None)
    """
    try:
        if isinstance(value, float) or str(value).isdigit():
            return int(value)
        time = datetime.fromisoformat(str(value))
    except (ValueError, OverflowError):  # NaN, infinite, too long, or no time
        return None
    if time.tzinfo is None:
        time = time.replace(tzinfo=UTC)
    return round(time.timestamp() * 1e6)


def zone_problem(times: ArrayLike, noun: str, places: Sequence[Any] | pd.Index) -> str:
    """Say which times have a zone and which have none, whose order nobody knows; else "".

    >>> zone_problem(["2026-01-01T01:00+02:00", "2026-01-01T00:00"], "line", [0, 1])
    'line 0 at 2026-01-01T01:00+02:00 has a zone, line 1 at 2026-01-01T00:00 has none; write the \
zone behind every time, such as Z for UTC'
    """
    texts = pd.Series(np.asarray(times, dtype=str))
    has_zone = texts.str.contains("[Zz+]|^.{10,}-")  # a "-" within the date is none
    if has_zone.nunique() < 2:
        return ""
    first, bare = (
        f"{noun} {places[k]} at {texts[k]}" for k in (has_zone.argmax(), has_zone.argmin())
    )
    return (
        f"{first} has a zone, {bare} has none; write the zone behind every time, such as Z for UTC"
    )


def as_times(column: pd.Series) -> NDArray[np.int64] | None:
    """Return a column of times as whole numbers in their order; None of anything else.

    Numbers are times if no run has as many steps, or if the column is called so; there 0, 1, 2 ...
    are step numbers all the same.
    """
    name = str(column.name)
    kind = column.dtype.kind
    if kind in "mc" or column.empty:
        return None
    if kind != "M":
        numbers = parse_numbers(column)
        if numbers.notna().any():
            values = numbers.to_numpy(dtype=float, na_value=np.nan)
            has_time_name = bool(words_of(name) & TIME_WORDS)
            is_count = values.min() in (0, 1) and bool((values == np.round(values)).all())
            is_time = values.min() > LARGEST_HORIZON or (has_time_name and not is_count)
            if not is_time or not np.isfinite(values).all():
                return None
            return pd.factorize(numbers, sort=True)[0]  # whatever the unit and the zero
    times = pd.to_datetime(column, errors="coerce", utc=True, format="ISO8601")
    if times.notna().all():
        return times.to_numpy(dtype="datetime64[ns]").view(np.int64)
    if kind == "M":
        row = int(np.argmax(times.isna()))
        raise ValueError(f"row {row}: column {name!r} has no time; every step needs one")
    return None


class _Rows:
    """The order of the rows, as Python and a command line say it."""

    def __repr__(self) -> str:
        return "None"

    def __str__(self) -> str:
        return "rows"


ROWS = _Rows()

# Above it the same float stands for several whole numbers.
_LARGEST_WHOLE = 2**53 - 1


def runs_of_table(
    make: Any,  # TrajectoryArray, or a subclass of it
    df: Any,
    *,
    outcome: str | None,
    outcome_map: Mapping[Any, float] | str | None,
    missing: Any,
    rule: Rule | None,
    keep_lost: bool = False,
    **columns: Any,
) -> tuple[Any, Any, Stops | None]:
    """Return the runs of a table, their outcomes, and how they ended if it says.

    Runs that the harness lost may be kept, with the outcome that was recorded.
    """
    meanings = check_map(outcome_map)
    column = outcome
    if isinstance(outcome, str):
        column = bare_name(outcome, column_names(df))
        check_polarity(outcome, meanings)
    parts, outcomes = parts_of_frame(df, outcome=column, rule=rule, **columns)
    X = make(**parts, missing=missing)
    if outcomes is None:
        return X, None, None
    y = check_outcomes(map_outcomes(outcomes, meanings, column != outcome), X)
    if column != outcome:
        y = turn(y)
    if columns["stop_reason"] == () or "stop_reason" not in X.meta:
        return X.with_ended(y != CENSORED), y, None
    stops = settle_stops(y, X.meta["stop_reason"].to_numpy(dtype=object), rule=rule)
    kinds = np.where(stops.unknown, UNKNOWN, stops.mechanism)
    rows = np.flatnonzero((kinds != EXCLUDED) | keep_lost)
    y = stops.y[rows]
    X = X._replace(meta=X.meta.assign(stop_kind=kinds))[rows]
    return X.with_ended(y != CENSORED), y, stops


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
    stop_reason: str | Sequence[str] | None,
    rule: Rule | None,
) -> tuple[dict[str, Any], pd.Series | None]:
    """Return the parts of a container, see `convert`, and the outcome of each run, if asked."""
    names = _listed(id)
    values = _listed(value)
    if not values:
        raise ValueError("value is empty; name at least one column")
    for name in values:
        if name in names:
            raise ValueError(f"column {name!r} holds the run ids, not scores; name another")
    in_meta = _listed(meta)
    per_run = [name for name in (*in_meta, outcome, horizon) if name is not None]
    if stop_reason is None:
        taken = {*names, step, *values, outcome, horizon}
        of_stops = [name for name in stop_names(column_names(df)) if name not in taken]
    else:
        of_stops = _listed(stop_reason)
    numbered = [] if step is None else [step]
    frame = select_columns(df, [*names, *numbered, *values, *per_run, *of_stops])
    if not len(frame):
        raise ValueError("the table has no rows; give at least one step of one run")

    codes, uniques = _number_runs(joined_ids(frame, names))
    ids = _as_run_ids(uniques, " and ".join(map(str, names)))
    runs = _Runs(ids, np.bincount(codes))
    has_step = np.ones(len(frame), dtype=bool)
    if step is not None and frame[step].hasnans:
        alone = runs.lengths[codes] == 1
        has_step = ~(alone & frame[[step, *values]].isna().all(axis=1).to_numpy())
    order = _order(frame.get(step), has_step, first_step, codes, runs)
    has_step = has_step[order]
    frame = frame[list(dict.fromkeys([*values, *per_run, *of_stops]))].iloc[order]
    columns = [_values(frame[name], runs, first_step)[has_step] for name in values]
    of_runs = [name for name in per_run if not (name == "stop_reason" and name in of_stops)]
    once = {name: _one_per_run(frame[name], runs) for name in of_runs}
    reasons = reasons_in_rows(frame[of_stops], of_stops, runs.starts, rule)
    if any(reasons) or (of_stops and stop_reason is not None):
        once["stop_reason"] = pd.Series(reasons)
        in_meta.append("stop_reason")
    horizons = None
    if horizon is not None:
        remedy = "give the number of steps over which the run is weighted"
        horizons = _whole_numbers(
            once[horizon], "horizon", remedy, lambda row: f"run {run_label(ids[row])}"
        )
    parts = {
        "cells": np.stack(columns, axis=1) if is_list_like(value) else columns[0],
        "lengths": np.add.reduceat(has_step, runs.starts, dtype=np.int64),
        "channels": values,
        "ids": ids,
        "horizon": horizons,
        "meta": {name: once[name] for name in in_meta if name in once},
    }
    return parts, once.get(outcome)


def _listed(names: Any) -> list[Any]:
    """Return the names of columns, of which one may stand alone and be a number."""
    return list(names) if is_list_like(names) else [names]


class _Runs:
    """The runs of a table, as their rows are put in the order of runs and steps."""

    def __init__(self, ids: AnyArray, lengths: IntArray) -> None:
        self.ids = ids
        self.lengths = lengths
        self.starts = offsets_of(lengths)[:-1]

    def label(self, row: int) -> str:
        """Name a row's run for messages."""
        return f"run {run_label(self.ids[np.flatnonzero(self.starts <= row)[-1]])}"


def _number_runs(column: pd.Series) -> tuple[IntArray, Any]:
    """Return the number of each row's run, as the table first names them, and the runs' ids."""
    codes, ids = _factorized(column)
    refuse_first(
        codes < 0,
        lambda row: (
            f"row {row}: column {column.name!r} is empty or NA; every step needs a run "
            f"id. If an empty cell repeats that above it, fill it, in pandas: "
            f"df[{column.name!r}] = df[{column.name!r}].ffill()"
        ),
    )
    return codes, ids


def _as_run_ids(uniques: AnyArray | pd.Index, name: str) -> AnyArray:
    """Return the ids of the runs: whole numbers or text."""
    ids = np.asarray(uniques)
    if infer_dtype(ids, skipna=False) == "floating":
        remedy = f"make them text, for example with df[{name!r}].astype(str)"
        ids = _whole_numbers(
            pd.Series(ids, name=name), "run id", remedy, lambda row: f"run number {row}"
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
        _number_runs(frame[name])
    first, *others = (frame[name].astype(str) for name in names)
    joined = first.str.cat(others, sep="-")
    if joined.nunique() < len(frame[list(names)].drop_duplicates()):
        raise ValueError(
            f"two runs have the same id when the columns {' and '.join(map(repr, names))} are "
            f"joined by dashes; change the values that hold dashes"
        )
    return joined


def _order(
    column: pd.Series | None, has_step: BoolArray, first_step: int, codes: IntArray, runs: _Runs
) -> IntArray:
    """Return the rows in the order of runs and steps, of which none is repeated or missing."""
    if column is None:
        return np.argsort(codes, kind="stable")
    places = np.full(len(codes), first_step)  # also of the single row of a run without a step
    places[has_step], are_times = step_places(column[has_step])
    number = places - first_step
    if not are_times and ((number >= 0) & (number < runs.lengths[codes])).all():
        # a step that is numbered has its place: nothing need be sorted
        order = np.full(len(codes), -1)
        order[runs.starts[codes] + number] = np.arange(len(codes))
        if (order >= 0).all():
            return order
    order = np.lexsort((places, codes))
    _check_places(column.iloc[order], places[order], are_times, first_step, runs)
    return order


def step_places(column: pd.Series) -> tuple[IntArray, bool]:
    """Return the step numbers of rows, or their times as whole numbers, and which it is."""
    times = as_times(column)
    if times is not None:
        is_text = column.dtype.kind in "OUT"
        if is_text and (problem := zone_problem(column.to_numpy(str), "row", column.index)):
            raise ArgumentError(
                f"column {column.name!r}: {problem}, or pass {{argument}}, the order of the rows",
                "step",
                ROWS,
            )
        return times, True
    if column.dtype.kind == "i" and not column.hasnans:
        return column.to_numpy(dtype=np.int64), False
    remedy = "number the steps of each run 1, 2, 3, ..."
    numbers = _whole_numbers(column, "step", remedy, lambda row: f"row {column.index[row]}")
    return numbers, False


def _check_places(
    column: pd.Series, places: IntArray, are_times: bool, first_step: int, runs: _Runs
) -> None:
    """Refuse a repeat and, of step numbers, a gap or another start."""
    jump = np.diff(places)
    first = places[runs.starts]
    jump[runs.starts[1:] - 1] = 1  # from run to run
    row = first_true(jump == 0)
    if row is not None:
        raise ArgumentError(
            f"{runs.label(row)} has step {column.iloc[row]} more than once in column "
            f"{column.name!r}; keep one row for each step, or for the order of the rows pass "
            f"{{argument}}",
            "step",
            ROWS,
        )
    if are_times:
        return
    run = first_true(first != first_step)
    if run is not None:
        is_first = bool((first == first[0]).all())
        raise MissingStepError(
            f"{runs.label(runs.starts[run])} starts at step {first[run]} in column "
            f"{column.name!r}, not at {first_step}; renumber its steps"
            + ", or if all runs start there, pass {argument}"
            * is_first,
            "first_step",
            int(first[run]),
        )
    row = first_true(jump > 1)
    if row is not None:
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
    table = pa.table(df)
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


def _check_columns(names: Sequence[str], have: list[Any], index: Sequence[Any] = ()) -> None:
    for name in names:
        if name not in have and name in index:
            raise ValueError(f"{name!r} is in the index, not a column; give df.reset_index()")
        if name not in have:
            raise ValueError(unknown_name("column", name, have))
        if have.count(name) > 1:
            raise ValueError(
                f"the table has {have.count(name)} columns named {name!r}; rename all but the one "
                f"that is meant"
            )


def _whole_numbers(
    column: pd.Series, kind: str, remedy: str, place: Callable[[int], str]
) -> IntArray:
    numbers = _to_numbers(column)
    refuse_first(
        ~(np.abs(numbers) <= _LARGEST_WHOLE) | (numbers != np.floor(numbers)),
        lambda row: (
            f"{place(row)}: {kind} {run_label(column.iloc[row])} in column "
            f"{str(column.name)!r} is not a whole number"
            f"{' below 2**53' * bool(abs(numbers[row]) > _LARGEST_WHOLE)}; {remedy}"
        ),
    )
    return numbers.astype(np.int64)


def _to_numbers(column: pd.Series) -> FloatArray:
    """Return a column as floats, NaN where it holds no number; refuse dates and the like."""
    name = str(column.name)
    refuse_kind(column.dtype, name)
    numbers = parse_numbers(column)
    refuse_kind(numbers.dtype, name)  # objects may turn out to be complex numbers
    return numbers.to_numpy(dtype=float, na_value=np.nan)


def _values(column: pd.Series, runs: _Runs, first_step: int) -> FloatArray:
    """Return the numbers of a column, NaN where a cell is empty."""
    numbers = _to_numbers(column)
    is_text = column.dtype.kind not in "biuf"
    row = first_true(np.isnan(numbers) & column.notna().to_numpy() & is_text)
    if row is not None:
        step = row - runs.starts[runs.starts <= row][-1] + first_step
        text = column.iloc[row]
        remedy = "correct it or leave the run out"
        if isinstance(text, str):
            if text.strip().endswith("%"):
                remedy = f"write fractions: df[{column.name!r}].str.rstrip('%').astype(float) / 100"
            elif "," in text:
                remedy = "write decimal points, or read the table by pandas.read_csv(decimal=',')"
        raise ValueError(
            f"{runs.label(row)}, step {step}: {run_label(text)} in column {column.name!r} is not a "
            f"number; {remedy}"
        )
    return numbers


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
    codes = column.to_numpy()
    if codes.dtype.kind not in "biuf":
        codes = _factorized(column)[0]
    has_one = column.notna().to_numpy()
    filled = np.where(has_one, np.arange(len(codes)), len(codes))
    first = np.minimum.reduceat(filled, runs.starts)
    first = np.where(first < len(codes), first, runs.starts)
    first_of_run = np.repeat(first, runs.lengths)
    refuse_first(
        has_one & (codes != codes[first_of_run]),
        lambda row: (
            f"{runs.label(row)} has two values in column {column.name!r}, "
            f"{run_label(column.iloc[first_of_run[row]])} and {run_label(column.iloc[row])}; a run "
            f"has one: correct its rows, or name a column that has one value a run"
        ),
    )
    once = column.iloc[first].reset_index(drop=True)
    if isinstance(column.dtype, pd.ArrowDtype):
        import pyarrow as pa  # which made the column

        return pa.array(once).to_pandas()
    return once
