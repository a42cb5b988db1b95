"""Numbers, counts and names that a caller gives: read them, or say in one sentence why not.

And the types of them that signatures share.
"""

import math
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Literal, Protocol

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike as ArrayLike
from numpy.typing import NDArray

from trajscore.core.errors import ArgumentError

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]
AnyArray = NDArray[Any]
FloatPair = tuple[FloatArray, FloatArray]
"""Two arrays, such as the ends of intervals, or the weights of failures and of successes."""

ByName = dict[str, Any]
"""Anything by name: arguments, fields of JSON, what a template shows."""

Missing = Literal["raise", "allow", "ffill"]
"""Missing values are an error, were not recorded, or repeat the last one recorded in their run."""


class RunsLike(Protocol):
    """What is read of a container by the modules below it; `ragged.Ragged` is one."""

    def __len__(self) -> int: ...
    @property
    def lengths(self) -> IntArray: ...

    cells: FloatArray
    offsets: IntArray
    ids: AnyArray


UNIT_ROUNDING = 1e-6
"""By how much a probability may miss [0, 1], and its logarithm 0: a few roundings of float32.

One of them is 1.2e-7 at 1, of float64 2e-16. So near 0 and 1, scores clip forecasts anyway.
"""
LARGEST_HORIZON = 10_000_000
"""Number of steps that no run has: weights are added up over as many."""
_LARGEST_NUMBER = 2**1000
_LARGEST_COUNT = 2**63  # what arrays are indexed with
_MOST_JOBS = 4096


def run_label(identifier: Any) -> str:
    """Write a run identifier, maybe a NumPy scalar, as a user would, within a line: 'r7' or 7."""
    try:
        label = repr(getattr(identifier, "item", lambda: identifier)())
    except ValueError:  # Python writes no more than 4,300 digits
        label = "<a whole number of thousands of digits>"
    if len(label) > 200:
        return f"{label[:200]}..."
    return label


def number_of(n: int, noun: str) -> str:
    """Write a number of things.

    >>> number_of(1, "run"), number_of(2000, "run"), number_of(0, "success")
    ('1 run', '2,000 runs', '0 successes')
    """
    if n == 1:
        return f"1 {noun}"
    return f"{n:,} {noun}{'es' if noun.endswith('s') else 's'}"


def unknown_name(kind: str, name: str, have: Sequence[Any]) -> str:
    """Say that there is no such column, channel ..., with the nearest one that there is."""
    return f"no {kind} named {name!r}; {known_names(name, have)}"


def known_names(name: str, have: Sequence[Any]) -> str:
    """Ask whether the nearest name was meant or, where none is near, say which there are."""
    names = list(map(str, have))
    near = get_close_matches(str(name), names, n=1, cutoff=0.5)  # as run_id is to id
    if near:
        return f"did you mean {near[0]!r}?"
    return f"there are: {', '.join(names[:20]) or 'none'}"


def check_known(names: Iterable[Any], have: Iterable[Any], kind: str, argument: str) -> None:
    """Refuse names that an argument gives and that are not there; show the nearest that is.

    >>> check_known(["tex"], ["text", "cost"], "part", "fields")
    Traceback (most recent call last):
    ...
    trajscore.core.errors.ArgumentError: fields: no part named 'tex'; did you mean 'text'?
    """
    names_there = list(have)
    for name in names:
        if name not in names_there:
            raise ArgumentError(f"{{argument}}: {unknown_name(kind, name, names_there)}", argument)


def check_choice(value: Any, name: str, choices: tuple[str | None, ...]) -> None:
    """Refuse a value that is not one of the words, or the None, of an argument."""
    if not isinstance(value, (str, type(None))) or value not in choices:
        raise ValueError(f"{name} must be {either(choices)}, got {value!r}")


def either(choices: Iterable[str | None]) -> str:
    """Write words as 'a', 'b' or 'c'."""
    *others, last = map(repr, choices)
    if not others:
        return last
    return f"{', '.join(others)} or {last}"


def first_true(mask: Any) -> int | None:
    """Return the place of the first true value, None where there is none.

    >>> first_true(np.array([False, True, True])), first_true([])
    (1, None)
    """
    places = np.flatnonzero(mask)
    return int(places[0]) if len(places) else None


def undefined_is_nan() -> np.errstate:
    """Compute without warnings what may be undefined: 0 / 0 is NaN."""
    return np.errstate(divide="ignore", invalid="ignore")


def refuse_first(bad: Any, problem: Callable[[int], str]) -> None:
    """Refuse an input where some of it is bad, by what is to be said of the place of the first.

    >>> refuse_first([False, True], lambda row: f"row {row} is empty; leave it out")
    Traceback (most recent call last):
    ...
    ValueError: row 1 is empty; leave it out
    """
    place = first_true(bad)
    if place is not None:
        raise ValueError(problem(place))


def check_rows(values: AnyArray, valid: AnyArray, name: str, remedy: str) -> None:
    """Refuse numbers of runs of which some are not valid; name the first."""
    refuse_first(~valid, lambda row: f"row {row}: {name} is {values[row]:g}; {remedy}")


def check_amounts(values: FloatArray, name: str) -> None:
    """Refuse numbers of runs that are negative, infinite or missing."""
    check_rows(values, (values >= 0) & (values < np.inf), name, "it must be finite and >= 0")


def several(items: Any, name_of: Callable[[Any], str], argument: str) -> list[Any]:
    """Return what is given as a list, of which nothing occurs twice."""
    if isinstance(items, str) or not is_iterable(items) or not (listed := list(items)):
        raise ValueError(f"{argument} must be a list with at least one item, got {items!r}")
    names = [name_of(item) for item in listed]
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"{argument} names {name} more than once; name each once")
    return listed


def as_array(values: Any, name: str) -> AnyArray:
    """Return an array, or say that what `name` holds, such as lists of several lengths, is none."""
    try:
        return np.asarray(values)
    except ValueError as error:
        raise ValueError(f"{name} must be an array: {error}") from error


def check_jobs(n_jobs: Any) -> None:
    """Refuse a number of jobs that joblib cannot read."""
    if n_jobs is None or (is_count(n_jobs, -_MOST_JOBS) and 0 != n_jobs <= _MOST_JOBS):
        return
    raise ValueError(f"n_jobs must be None or a whole number, such as 2 or -1, got {n_jobs!r}")


def as_flag(value: Any, name: str) -> bool:
    """Return a truth value, also 0 or 1, or say that `name` is none."""
    if isinstance(value, (bool, np.bool_)) or (is_number(value) and value in (0, 1)):
        return bool(value)
    raise ValueError(f"{name} must be True or False, got {value!r}")


def is_number(value: Any) -> bool:
    """Tell a number from text, None, arrays: from what cannot be compared with one."""
    if isinstance(value, int):  # of hundreds of digits it is none that a float can hold
        return abs(value) < _LARGEST_NUMBER
    real = isinstance(value, (float, np.integer, np.floating))
    return real and not isinstance(value, np.timedelta64)


def split_pairs(text: str) -> list[tuple[str, str]]:
    """Return the names and values of a text; a name may hold "=" itself.

    >>> split_pairs("pass=1,a=b=0")
    [('pass', '1'), ('a=b', '0')]
    """
    pairs = (pair.rpartition("=") for pair in text.split(","))
    return [(name, value) for name, _, value in pairs]


def as_pairs(value: Any) -> Any:
    """Return the dict of a text such as "pass=1,fail=0"; anything else as it is."""
    return dict(split_pairs(value)) if isinstance(value, str) else value


def is_iterable(value: Any) -> bool:
    """Whether one can go through it; arrays without a dimension only look as if."""
    return isinstance(value, Iterable) and getattr(value, "ndim", 1) > 0


def as_path(value: Any, name: str = "path") -> Path:
    """Return a path, or say that `name` is none."""
    if not isinstance(value, (str, os.PathLike)):
        raise ValueError(f"{name} must be the name of a file, got {value!r}")
    return Path(value)


def check_file(path: Path) -> None:
    """Refuse what is there but not a file."""
    if path.exists() and not path.is_file():
        raise ValueError(f"{path} is a folder, a pipe or a device; name a file")


def is_count(value: Any, least: int = 1) -> bool:
    """Tell a whole number that is not too small from anything else: 2.5, True, "2"."""
    whole = isinstance(value, (int, np.integer)) and not isinstance(value, (bool, np.timedelta64))
    return whole and bool(least <= value < _LARGEST_COUNT)


def as_count(value: Any, name: str, least: int = 1) -> int:
    """Return a whole number that is not too small, or say that `name` is not one."""
    if not is_count(value, least):
        raise ValueError(f"{name} must be a whole number of at least {least}, got {value!r}")
    return int(value)


def as_fraction(value: Any, name: str) -> float:
    """Return a number strictly between 0 and 1, or say that `name` is not one."""
    return as_within(value, name, 0, 1)


def as_amount(value: Any, name: str) -> float:
    """Return a finite number of at least 0, or say that `name` is not one."""
    return as_within(value, name, 0, np.inf, "left")


def as_within(value: Any, name: str, low: float, high: float, closed: Any = "neither") -> float:
    """Return a number of an interval, closed as `pandas.Interval` says, or refuse it.

    >>> as_within(0, "k", 0, 1, closed="right")
    Traceback (most recent call last):
    ...
    ValueError: k must be a number in (0, 1], got 0
    """
    interval = pd.Interval(low, high, closed)
    if not is_number(value) or value not in interval:
        raise ValueError(f"{name} must be a number in {interval}, got {value!r}")
    return float(value)


def refuse_kind(dtype: Any, column: Any = None) -> None:
    """Refuse dates, durations and complex numbers, which would pass for real numbers."""
    kind = getattr(dtype, "kind", "O")
    if kind not in "cmM":
        return
    # in scikit-learn's words, which its own checks look for
    problem = "Complex data not supported; take real parts or absolute values first"
    if kind != "c":
        noun = "dates" if kind == "M" else "durations"
        problem = f"{noun} ({dtype}) are not numbers; convert them to numbers first"
    if column is not None:
        problem = f"column {column!r} must hold real numbers, but {problem}"
    raise ValueError(problem)


def refuse_kinds(table: pd.DataFrame) -> None:
    """Refuse a table with a column that `refuse_kind` refuses."""
    for column, dtype in table.dtypes.items():
        refuse_kind(dtype, column)


def outside_unit(values: Any) -> Any:
    """Whether each value lies outside [0, 1] by more than rounding; NaN does not.

    >>> outside_unit(-1e-9), outside_unit(1.0000001), outside_unit(-0.1)
    (False, False, True)
    """
    return (values < -UNIT_ROUNDING) | (values > 1 + UNIT_ROUNDING)


def are_probabilities(values: FloatArray) -> bool:
    """Whether values are within [0, 1]; minus a small risk, which is never above 0, is not.

    >>> are_probabilities(np.array([-2.2e-16, 0.5])), are_probabilities(np.array([-1e-12, -2e-12]))
    (True, False)
    """
    return bool(not outside_unit(values).any() and (values.min() >= 0 or values.max() > 0))


def to_unit(values: Any) -> FloatArray:
    """Return values, those that rounding alone puts outside [0, 1] as 0 or 1.

    >>> to_unit([-2.2e-16, 0.5, 1.1]).tolist()
    [0.0, 0.5, 1.1]
    """
    numbers = np.asarray(values)
    if ((numbers >= 0) & (numbers <= 1)).all():
        return numbers
    return np.where(outside_unit(numbers), numbers, np.clip(numbers, 0, 1))


def parse_number(text: str) -> float | None:
    """Read a number, also per cent, out of text; None where it is something else.

    >>> parse_number("85%"), parse_number(" 0.5"), parse_number("nan")
    (0.85, 0.5, None)
    """
    text = text.strip()
    try:
        number = float(text.removesuffix("%"))
    except ValueError:
        return None
    if math.isnan(number):
        return None
    if text.endswith("%"):
        number /= 100
    return number


def parse_numbers(column: pd.Series) -> pd.Series:
    """Return numbers, NaN where a cell holds none, infinity where it is beyond float64."""
    try:
        return pd.to_numeric(column, errors="coerce")
    except OverflowError:  # of integers of hundreds of digits
        beyond = [isinstance(cell, int) and abs(cell) > sys.float_info.max for cell in column]
        return pd.to_numeric(column.mask(beyond, np.inf), errors="coerce")


def as_numbers(values: ArrayLike | None, name: str) -> FloatArray:
    """Read an argument that holds numbers, missing ones as NaN, or say that `name` does not.

    Numbers are not copied if they are floats already.
    """
    if hasattr(values, "offsets"):
        raise ValueError(
            f"{name} must be one number for each run, but these are runs of steps; take the last "
            f"step, say, by TraceAggregator('last').fit(X).predict_proba(X)[:, 1]"
        )
    if isinstance(values, pd.DataFrame):
        refuse_kinds(values)
    try:
        if isinstance(values, (pd.Series, pd.DataFrame)):
            refuse_kind(getattr(values, "dtype", None))
            return values.to_numpy(dtype=float, na_value=np.nan)
        array = np.asarray(values)
        refuse_kind(array.dtype)
        if array.dtype.kind in "US":  # let NumPy's message show the text as it was given
            array = np.asarray(values, dtype=object)
        numbers = array.astype(float, copy=False)
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"{name} must be numbers: {error}") from error
    if isinstance(values, np.ma.MaskedArray):
        return np.where(np.ma.getmaskarray(values), np.nan, numbers)
    return numbers


def one_per_run(values: ArrayLike, name: str, n_runs: int) -> FloatArray:
    """Read one number for each run, or one for all."""
    numbers = as_numbers(values, name)
    if not numbers.ndim:
        return np.full(n_runs, numbers)
    if numbers.shape != (n_runs,):
        raise ValueError(
            f"{name} must be one number or {n_runs}, one for each run, got shape {numbers.shape}"
        )
    return numbers


def as_float(values: ArrayLike, ndims: tuple[int, ...] = (1, 2)) -> FloatArray:
    """Return the cells of a container: floats to which the caller cannot write."""
    array = as_numbers(values, "values (runs of several lengths go to TrajectoryArray.from_list)")
    if array.ndim not in ndims:
        raise ValueError(
            f"Expected {' or '.join(f'{n}D' for n in ndims)} array, got {array.ndim}D array instead"
        )
    # what the caller can still write to is copied, so that nothing changes under our hands
    if array.flags.writeable and (array is values or array.base is not None):
        array = array.copy()
    return np.ascontiguousarray(array)


def as_lengths(lengths: ArrayLike, n_cells: int | None = None, least: int = 1) -> IntArray:
    """Return the number of steps of each run, which add up to the number of cells."""
    array = as_array(lengths, "lengths")
    if array.size == 0:
        array = array.astype(np.int64)
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise ValueError("lengths must be whole numbers, one for each run")
    refuse_first(
        array < least, lambda row: f"row {row} has no steps; leave runs without a step out"
    )
    if n_cells is not None and array.sum() != n_cells:
        raise ValueError(f"the lengths add up to {array.sum()}, but there are {n_cells} cells")
    return array.astype(np.int64)


def as_horizon(horizon: ArrayLike | None, lengths: IntArray) -> IntArray:
    """Return the horizon of each run, never less than its length, and that where none is given."""
    if horizon is None:
        return lengths.copy()
    array = np.asarray(horizon)
    if array.shape != lengths.shape or array.dtype.kind not in "iu":
        raise ValueError(f"horizon must be {len(lengths)} whole numbers, one for each run")
    refuse_first(
        (array < lengths) | (array > LARGEST_HORIZON),
        lambda row: (
            f"row {row}: horizon {array[row]} is not from the run's {lengths[row]} steps up to "
            f"{LARGEST_HORIZON:,}; give the number of steps over which the run is weighted"
        ),
    )
    return array.astype(np.int64)
