"""How a run ended: success, failure, not observed, or a grade between."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from trajscore.core.errors import RowError
from trajscore.core.ids import check_index
from trajscore.core.type_aliases import AnyArray, BoolArray, FloatArray, IntArray, RunsLike
from trajscore.core.values import (
    as_array,
    check_choice,
    first_true,
    is_number,
    number_of,
    one_per_run,
    outside_unit,
    run_label,
    to_unit,
)

SUCCESS = 1
FAILURE = 0
CENSORED = -1
"""The outcome was not observed; -1 is also scikit-learn's code for "unlabelled"."""


def check_outcomes(
    y: ArrayLike,
    runs: int | RunsLike | None = None,
    *,
    allow_censored: bool = True,
    allow_soft: bool = True,
) -> AnyArray:
    """Return outcomes as codes: 1 success, 0 failure, -1 not observed, or grades in [0, 1].

    Parameters
    ----------
    y : array-like of shape (n_runs,)
        Numbers, booleans, or missing values (NaN, None, pd.NA, or masked), which mean "not
        observed".
    runs : int or container, optional
        How many outcomes there must be, or the runs that they are of.
    allow_censored : bool, default=True
        Whether outcomes may be unobserved.
    allow_soft : bool, default=True
        Whether outcomes strictly between 0 and 1 may occur.

    Returns
    -------
    ndarray of shape (n_runs,)
        int64 codes in {-1, 0, 1}; float64 where some outcome lies between 0 and 1.

    Raises
    ------
    ValueError
        If an outcome is anything else, with its run and the remedy; or if a Series names the runs,
        by its index, in another order.

    Examples
    --------
    >>> check_outcomes([True, False, None])
    array([ 1,  0, -1])
    >>> check_outcomes([1, 0.25, float("nan")])
    array([ 1.  ,  0.25, -1.  ])
    """
    ids = getattr(runs, "ids", None)
    values = _as_numbers(y, ids)
    n_runs = len(values)
    if isinstance(runs, (int, np.integer)):
        n_runs = int(runs)
    elif runs is not None:
        n_runs = len(runs)
    if len(values) != n_runs:
        raise ValueError(
            f"y has {number_of(len(values), 'outcome')} for {number_of(n_runs, 'run')}; give one "
            f"for each run. TrajectoryArray.from_frame(df, ..., outcome=NAME) returns X and such "
            f"a y from a table with a row for each step"
        )
    if ids is not None:
        check_index(y, ids, "y")
    values = values.astype(float)
    values[np.isnan(values)] = CENSORED
    censored = values == CENSORED
    _check_range(values, ~censored, ids)
    values = to_unit(values)
    row = first_true(censored)
    if not allow_censored and row is not None:
        raise ValueError(
            f"{_place(row, ids)}: the outcome is not observed ({int(censored.sum())} of "
            f"{len(values)} are not); leave these runs out, or score them with censored_tps_score"
        )
    row = first_true((values != np.floor(values)) & ~censored)
    if row is None:
        return values.astype(np.int64)
    if not allow_soft:
        raise ValueError(
            f"{_place(row, ids)}: outcome {values[row]:g} must be 0 or 1; leave out graded runs"
        )
    return values


def outcomes_vary(y: AnyArray) -> bool:
    """Tell whether two of the observed outcomes differ."""
    observed = y[y != CENSORED]
    return bool((observed != observed[:1]).any())


CENSORED_AS = ("failure", "drop", "q_z")
"""What a run without an observed outcome can be taken for."""


@dataclass(frozen=True)
class Labels:
    """One vector of outcomes in [0, 1], behind every number that is computed from it."""

    value: FloatArray  # those of unobserved runs as `censored` says
    is_counted: BoolArray  # whether a run counts: only censored="drop" leaves runs out
    observed: BoolArray  # whether the outcome was observed

    @property
    def stratum(self) -> IntArray:
        """1 success, 0 failure, for a soft outcome the likelier one: folds are balanced by it."""
        return (self.value >= 0.5).astype(np.int64)


def as_labels(y: ArrayLike, *, censored: str = "failure", q_z: ArrayLike | None = None) -> Labels:
    """Give the runs whose outcome was not observed one to be scored and fitted with.

    They are failures (the simple censored score), do not count ("drop"), or have the soft outcome
    `q_z`, the chance that they would have succeeded (the exact score).
    """
    check_choice(censored, "censored", CENSORED_AS)
    codes = np.asarray(y)
    observed = codes != CENSORED
    if censored == "q_z" and q_z is None and not observed.all():
        raise ValueError('censored="q_z" needs q_z, one for each run')
    if censored != "q_z" and q_z is not None:
        raise ValueError(f'q_z is read only with censored="q_z", not {censored!r}')
    value = np.where(observed, codes, 0.0)
    if q_z is not None:
        value = _filled(codes, observed, q_z)
    return Labels(value, observed | (censored != "drop"), observed)


def _filled(codes: AnyArray, observed: BoolArray, q_z: ArrayLike) -> FloatArray:
    q = one_per_run(q_z, "q_z", len(codes))
    row = first_true(~observed & (np.isnan(q) | outside_unit(q)))
    if row is not None:
        raise RowError(
            f"its outcome was not observed and q_z is {q[row]:g}; give the chance in [0, 1] that "
            f"it would have succeeded",
            row,
        )
    return np.where(observed, codes, to_unit(q))


def _place(row: int, ids: AnyArray | None) -> str:
    """Name the run of an outcome: by its id, or where there are no ids by its number from 0."""
    if ids is None or row >= len(ids):
        return f"run {row}"
    return f"run {run_label(ids[row])}"


def _as_numbers(y: ArrayLike, ids: AnyArray | None) -> AnyArray:
    if y is None:
        raise ValueError("there are no outcomes: y is None; give one for each run")
    if isinstance(y, np.ma.MaskedArray):
        y = np.ma.filled(y.astype(object), np.nan)  # not observed
    array = as_array(y, "outcomes")
    if array.dtype.kind in "US":  # name the first outcome, not what NumPy made of it
        array = np.asarray(y, dtype=object)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1:
        raise ValueError(f"outcomes must be one-dimensional, got shape {array.shape}")
    if array.dtype.kind in "biuf":
        return array
    return np.array([_as_number(value, row, ids) for row, value in enumerate(array)], float)


def _as_number(value: Any, row: int, ids: AnyArray | None) -> float:
    if value is None or value is pd.NA or value is pd.NaT:
        return np.nan
    if isinstance(value, (bool, np.bool_)) or is_number(value):
        return float(value)
    raise ValueError(
        f"{_place(row, ids)}: outcome {run_label(value)} is not a number; use 1 or True for "
        f"success, 0 or False for failure, and -1 or an empty value where it was not observed, of "
        f"words by pandas.Series(y).map({{'pass': 1, 'fail': 0}})"
    )


def _check_range(values: FloatArray, observed: BoolArray, ids: AnyArray | None) -> None:
    row = first_true(observed & outside_unit(values))
    if row is None:
        return
    remedy = (
        "use 1 for success, 0 for failure, -1 where it was not observed, or a grade between 0 and 1"
    )
    if values[row] == 2:
        remedy += (
            "; if a meta-estimator re-coded -1, 0, 1 as 0, 1, 2, leave unobserved runs out first"
        )
    raise ValueError(f"{_place(row, ids)}: outcome {values[row]:g} lies outside [0, 1]; {remedy}")


def opposite(labels: FloatArray) -> FloatArray:
    """Return the outcomes that did not happen; of a graded one, the one further away.

    >>> opposite(np.array([0.0, 1.0, 0.7]))
    array([1., 0., 0.])
    """
    return (labels < 0.5).astype(float)
