"""Step weights: how much the forecast at each step counts.

A weight is a function of the step's number. It is known when the forecast is made, so a set of runs
of any lengths is scored properly (docs/theorem.rst). Only ``horizon="own"``, the convention of the
paper, divides the weights of a run by their sum over its own length, which nobody knows before the
run ends.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_array

from trajscore.core.type_aliases import FloatArray, IntArray
from trajscore.core.values import (
    LARGEST_HORIZON,
    as_horizon,
    as_lengths,
    is_count,
    number_of,
    several,
)
from trajscore.core.within_runs import offsets_of

OWN = "own"
"""The horizon of each run is its own: the paper's convention."""

# Below it the total of "early" weights is added up, from it on a series has all 15 digits.
_FROM_SERIES = 64
_ZETA_OF_HALF = -1.4603545088095868


def _early_total(T: FloatArray) -> FloatArray:
    """Sum of 1/sqrt(t) up to T, by its Euler-Maclaurin series where T is large."""
    small = np.append(0.0, np.cumsum(1 / np.sqrt(np.arange(1.0, _FROM_SERIES))))
    root = np.sqrt(T)
    series = 2 * root + _ZETA_OF_HALF + 1 / (2 * root) - 1 / (24 * root**3) + 1 / (384 * root**7)
    index = np.minimum(T, _FROM_SERIES - 1).astype(np.int64)
    return np.where(T < _FROM_SERIES, small[index], series)


@dataclass(frozen=True)
class Schedule:
    """A schedule as a ramp over steps, and the sum of the ramp over a horizon."""

    ramp: Callable[[FloatArray], FloatArray]  # of steps from 1
    total: Callable[[FloatArray], FloatArray]  # of horizons
    from_end: bool = False  # whether the ramp is of T + 1 - t instead of t


_SCHEDULES = {
    "early": Schedule(lambda t: 1 / np.sqrt(t), _early_total),
    "uniform": Schedule(np.ones_like, lambda T: T),
    "linear_front": Schedule(lambda t: t, lambda T: T * (T + 1) / 2, from_end=True),
    "exponential_front": Schedule(lambda t: np.exp2(1 - t), lambda T: 2 - np.exp2(1 - T)),
    "linear_back": Schedule(lambda t: t, lambda T: T * (T + 1) / 2),
}

WEIGHT_SCHEDULES = tuple(_SCHEDULES)
"""Names of the built-in schedules."""

Horizon = int | str | None


@dataclass(frozen=True)
class StepWeights:
    """How much each step counts: a schedule, and the horizon over which it is taken."""

    schedule: str | Callable[[Any], Any] = "early"
    horizon: Horizon = None

    @property
    def is_own(self) -> bool:
        """Whether the weights of a run add up to one over its own horizon."""
        return self.horizon == OWN

    @property
    def schedule_name(self) -> str:
        """The name of the schedule."""
        named = self.schedule
        return named if isinstance(named, str) else str(getattr(named, "__name__", repr(named)))

    @property
    def name(self) -> str:
        """The name under which they are reported."""
        own = self.schedule_name
        return own if self.horizon is None else f"{own}, horizon={self.horizon!r}"

    def table(self, longest: int) -> FloatArray:
        """Weights of steps 1, ..., `longest`; not for ``horizon="own"``."""
        H = self.horizon
        within = longest if H is None else min(longest, int(H))
        if callable(self.schedule):
            weights = _called(self.schedule, longest if H is None else int(H))
            if H is not None:
                weights = weights[:within] / weights.sum()
        else:
            schedule, steps = _SCHEDULES[self.schedule], np.arange(1.0, within + 1)
            if H is None:
                weights = schedule.ramp(steps)
            else:
                count = float(H) + 1 - steps if schedule.from_end else steps
                weights = schedule.ramp(count) / schedule.total(np.array([float(H)]))
        return np.append(weights, np.zeros(longest - within))

    def of(self, X: Any) -> RunWeights:
        """Weights of the steps of a container's runs."""
        return RunWeights(self, X.lengths, X.horizon)

    def n_unscored(self, lengths: IntArray) -> int:
        """Number of steps beyond the horizon, which do not count."""
        if self.horizon is None or self.is_own:
            return 0
        return int(np.maximum(lengths - int(self.horizon), 0).sum())

    def warn_unscored(self, lengths: IntArray, stacklevel: int = 3) -> None:
        """Warn of steps beyond the horizon."""
        if n := self.n_unscored(lengths):
            n_runs = int((lengths > int(self.horizon)).sum())  # type: ignore[arg-type]
            warnings.warn(
                f"horizon={self.horizon} leaves {number_of(n, 'step')} of "
                f"{number_of(n_runs, 'run')} unscored; give a horizon of {int(lengths.max())} to "
                f"score them all",
                UserWarning,
                stacklevel=stacklevel + 1,
            )


Weights = str | Callable[[Any], Any] | StepWeights


class RunWeights:
    """Weights of the steps of some runs, which have `lengths`."""

    def __init__(
        self, weights: StepWeights, lengths: IntArray, own_horizon: ArrayLike | None = None
    ) -> None:
        self._weights, self.lengths = weights, lengths
        self._longest = int(lengths.max(initial=0))
        self._places = np.arange(0, dtype=np.int32)  # kept from one slice of runs to the next
        if weights.is_own:
            self._own = as_horizon(own_horizon, lengths).astype(np.float64)
            self._of_horizon: dict[int, FloatArray] = {}  # by a function, each called once

    @cached_property
    def _table(self) -> FloatArray:
        return self._weights.table(self._longest)

    def cells(self, rows: slice = slice(None)) -> FloatArray:
        """Weight of each step, run after run; `rows` is a slice of the runs."""
        lengths = self.lengths[rows]
        offsets = offsets_of(lengths)
        index = np.arange(offsets[-1])
        index -= np.repeat(offsets[:-1], lengths)
        if not self._weights.is_own:
            return self._table[index]
        return self._own_cells(index, lengths, self._own[rows])

    def sums(self, values: FloatArray, rows: slice = slice(None)) -> FloatArray:
        """Weighted sum of each run's values, one a step of these runs."""
        lengths = self.lengths[rows]
        offsets = offsets_of(lengths)
        if self._weights.is_own:
            weighted = self.cells(rows) * values
            return np.add.reduceat(weighted, offsets[:-1]) if len(lengths) else np.empty(0)
        # as a sparse matrix of runs by steps, times the weights of the steps: one pass
        n_cells = int(offsets[-1])
        if len(self._places) < n_cells:
            self._places = np.arange(n_cells, dtype=np.int32)
        starts = offsets.astype(np.int32)
        step = self._places[:n_cells] - np.repeat(starts[:-1], lengths)
        matrix = csr_array((values, step, starts), shape=(len(lengths), len(self._table)))
        return np.asarray(matrix @ self._table)

    def _own_cells(self, index: IntArray, lengths: IntArray, horizon: FloatArray) -> FloatArray:
        named = self._weights.schedule
        if callable(named):
            out, of_cell = np.empty(len(index)), np.repeat(horizon, lengths)
            for T in np.unique(horizon).astype(int).tolist():
                if T not in self._of_horizon:
                    weights = _checked(named(T), T, f"a horizon of {T}", bool(self._of_horizon))
                    self._of_horizon[T] = weights / weights.sum()
                here = of_cell == T
                out[here] = self._of_horizon[T][index[here]]
            return out
        schedule = _SCHEDULES[named]
        steps: Any = index + 1.0
        if schedule.from_end:
            steps = np.repeat(horizon, lengths) - index
        return np.asarray(schedule.ramp(steps) / np.repeat(schedule.total(horizon), lengths))

    @cached_property
    def total(self) -> FloatArray:
        """Sum of the weights of each run's steps."""
        if not self._weights.is_own:
            return np.append(0.0, np.cumsum(self._table))[self.lengths]
        return self.sums(np.ones(int(self.lengths.sum())))

    def divisor(self, normalize: bool = True) -> FloatArray:
        """What a run adds to the divisor of a set's score: its weight, or one run.

        By the paper's convention, and without `normalize`, a score is a mean over runs.
        """
        if self._weights.is_own or not normalize:
            return np.ones(len(self.lengths))
        return self.total

    def rate(self, y: FloatArray, run_weight: FloatArray | None = None) -> float:
        """Success rate over forecasts, the best constant; by the paper's convention, over runs."""
        mass = self.divisor() if run_weight is None else run_weight * self.divisor()
        return float(np.average(y, weights=mass))


def as_step_weights(weights: Weights = "early", horizon: Any = None) -> StepWeights:
    """Return what `weights` and `horizon` stand for; an error says what they may be."""
    if isinstance(weights, StepWeights):
        return weights
    if not callable(weights) and (not isinstance(weights, str) or weights not in _SCHEDULES):
        simple = weights is None or isinstance(weights, (str, int, float))
        shown = repr(weights) if simple else f"of type {type(weights).__name__}"
        raise ValueError(
            f"unknown weights {shown}; use one of {', '.join(_SCHEDULES)}, or a function of the "
            f"array of step numbers"
        )
    if isinstance(horizon, str) or not (horizon is None or is_count(horizon)):
        if not (isinstance(horizon, str) and horizon == OWN):
            raise ValueError(
                f"horizon must be a number of steps, such as 30, 'own' or None, got {horizon!r}"
            )
    elif horizon is not None and horizon > LARGEST_HORIZON:
        raise ValueError(f"horizon={horizon} is too large; give at most {LARGEST_HORIZON}")
    if horizon is None and isinstance(weights, str) and _SCHEDULES[weights].from_end:
        raise ValueError(
            f"weights={weights!r} fall to zero over a number of steps and need it; give "
            f"horizon=30, say, or horizon='own' for the paper's convention, over each run's length"
        )
    return StepWeights(weights, horizon if horizon is None or horizon == OWN else int(horizon))


def schedules_of(weights: Any, horizon: Horizon) -> list[StepWeights]:
    """Return several schedules over one horizon, each once; None stands for all that it allows."""
    if weights is None:
        named = WEIGHT_SCHEDULES
        weights = [w for w in named if horizon is not None or not _SCHEDULES[w].from_end]
    schedules = several(
        weights, lambda schedule: as_step_weights(schedule, horizon).schedule_name, "weights"
    )
    return [as_step_weights(schedule, horizon) for schedule in schedules]


def _called(function: Callable[[Any], Any], longest: int) -> FloatArray:
    """Weights of steps 1, ..., `longest` by a function of the array of steps."""
    if not longest:
        return np.empty(0)
    weights = _checked(function(np.arange(1, longest + 1)), longest, f"steps 1 to {longest}")
    half = (longest + 1) // 2
    again = _as_weights(function(np.arange(1, half + 1)), half, f"steps 1 to {half}")
    if not np.allclose(weights[:half], again, rtol=1e-9, atol=0):
        step = int(np.argmin(np.isclose(weights[:half], again, rtol=1e-9, atol=0))) + 1
        raise ValueError(
            f"weights must depend on the step alone, but the function gives step {step} "
            f"{weights[step - 1]:g} among {longest} steps and {again[step - 1]:g} among {half}; a "
            f"function of a run's length needs horizon='own'"
        )
    return weights


def _as_weights(returned: Any, n: int, of_what: str) -> FloatArray:
    """Return what a function gave for n steps as n numbers, none negative."""
    try:
        array = np.asarray(returned, dtype=np.float64)
    except (TypeError, ValueError):
        array = np.empty(0)
    if array.shape != (n,) or not np.isfinite(array).all() or (array < 0).any():
        raise ValueError(
            f"weights for {of_what} must be {n} finite numbers, none negative, got "
            f"{returned!r:.120}; a function takes the array of steps, or with horizon='own' a "
            f"number of steps"
        )
    return array


def _checked(returned: Any, n: int, of_what: str, is_warned: bool = False) -> FloatArray:
    """Refuse weights that are all zero, and warn of some that are."""
    array = _as_weights(returned, n, of_what)
    if not array.any():
        raise ValueError(f"weights for {of_what} are all zero; at least one step must count")
    if not array.all() and not is_warned:
        warnings.warn(
            f"weights for {of_what} are zero at step {int(np.argmin(array)) + 1}: forecasts there "
            f"do not count, so the truth is not the only best trace (Theorem 4.1 needs weights "
            f"above zero)",
            UserWarning,
            stacklevel=2,
        )
    return array


def step_weights(
    lengths: ArrayLike, weights: Weights = "early", horizon: Horizon | ArrayLike = None
) -> FloatArray:
    """Return the weight of every step of every run, flat.

    Parameters
    ----------
    lengths : array-like of int of shape (n_runs,)
        Number of steps of each run.
    weights : str or callable, default="early"
        The weight of step t: "early" 1/sqrt(t), "uniform" 1, "exponential_front" 2^(1-t),
        "linear_back" t, or a function from the array of steps to as many numbers >= 0; zeros are
        warned of, as the truth then is no longer the only best forecast. "linear_front" H-t+1
        needs a horizon.
    horizon : int, "own" or array-like of int of shape (n_runs,), optional
        None: weights depend on the step alone. A number of steps H: they are divided by their sum
        over H steps, and steps beyond it weigh nothing. "own" is the paper's convention, in which
        the weights of each run are divided by their sum over its own length: linear_front
        2(T-t+1)/(T(T+1)), uniform 1/T, exponential_front 2^-(t-1)/(2(1-2^-T)), linear_back
        2t/(T(T+1)), or what a function gives for the number T. One number a run is the same with
        the horizons T that are given, of which a run that was cut off keeps its first steps.

    Returns
    -------
    ndarray of shape (sum of lengths,)
        w_1, ..., w_Z of each run after the other.

    Raises
    ------
    ValueError
        If a length is not a whole number of at least 1, a horizon is shorter than its run, the
        schedule is unknown or needs a horizon, or a function gives other than one finite number
        >= 0 a step, not all zero, or numbers that depend on how many steps there are.

    Notes
    -----
    Weights that depend on the step alone make the score of a set proper for runs of any length.
    Those of ``horizon="own"`` do so only where the forecaster knows the length of a run at its
    start (Remark A.4 of the paper).

    References
    ----------
    Raghu et al. (2026), Proper Scoring Rules for Agentic Uncertainty Quantification, Section 4.1
    and Appendix I, for the schedules over a horizon.

    Examples
    --------
    >>> step_weights([4, 1]).round(3)
    array([1.   , 0.707, 0.577, 0.5  , 1.   ])
    >>> step_weights([2, 1], "linear_front", horizon="own").round(3)
    array([0.667, 0.333, 1.   ])
    >>> step_weights([2, 1], "uniform", horizon=[2, 2])
    array([0.5, 0.5, 0.5])
    """
    run_lengths = as_lengths(lengths)
    own = None
    if not (horizon is None or isinstance(horizon, str) or np.ndim(horizon) == 0):
        own, horizon = as_horizon(horizon, run_lengths), OWN
    return RunWeights(as_step_weights(weights, horizon), run_lengths, own).cells()
