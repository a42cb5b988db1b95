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

from trajscore.core.errors import ArgumentError
from trajscore.core.type_aliases import FloatArray, IntArray
from trajscore.core.values import (
    LARGEST_HORIZON,
    as_horizon,
    as_lengths,
    is_count,
    number_of,
    refuse_first,
    several,
)
from trajscore.core.within_runs import offsets_of

OWN = "own"
"""The horizon of each run is its own length, or its own horizon: the paper's convention."""

_RAMPS: dict[str, Callable[[FloatArray], FloatArray]] = {
    "early": lambda t: 1 / np.sqrt(t),
    "uniform": np.ones_like,
    "linear_front": lambda t: t,  # of steps counted from the horizon back
    "exponential_front": lambda t: np.exp2(1 - t),
    "linear_back": lambda t: t,
}
_FROM_END = "linear_front"

WEIGHT_SCHEDULES = tuple(_RAMPS)
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
        if isinstance(self.schedule, str):
            return self.schedule
        return str(getattr(self.schedule, "__name__", repr(self.schedule)))

    @property
    def name(self) -> str:
        """The name under which they are reported."""
        if self.horizon is None:
            return self.schedule_name
        return f"{self.schedule_name}, horizon={self.horizon!r}"

    def ramp(self, n: int) -> FloatArray:
        """Return the weights of steps 1, ..., n before they are divided by their sum."""
        if callable(self.schedule):
            return _called(self.schedule, n)
        return _RAMPS[self.schedule](np.arange(1.0, n + 1))

    def table(self, longest: int) -> FloatArray:
        """Weights of steps 1, ..., `longest`; not for ``horizon="own"``."""
        if self.horizon is None:
            return self.ramp(longest)
        weights = self.ramp(int(self.horizon))
        weights = weights / weights.sum()
        if self.schedule == _FROM_END:
            weights = weights[::-1]
        return np.append(weights, np.zeros(longest))[:longest]

    def of(self, X: Any) -> RunWeights:
        """Weights of the steps of a container's runs."""
        return RunWeights(self, X.lengths, X.horizon)


Weights = str | Callable[[Any], Any] | StepWeights


class RunWeights:
    """Weights of the steps of some runs, which have `lengths`."""

    def __init__(
        self, weights: StepWeights, lengths: IntArray, own_horizon: ArrayLike | None = None
    ) -> None:
        self._weights = weights
        self.lengths = lengths
        self._places = np.arange(0, dtype=np.int32)  # kept from one slice of runs to the next
        self._horizon = lengths
        if weights.is_own:
            self._horizon = as_horizon(own_horizon, lengths)

    @cached_property
    def _table(self) -> FloatArray:
        """Weight of each step number, over the own horizons before it is divided by their sum."""
        longest = int(self._horizon.max(initial=0))
        if self._weights.is_own:
            return self._weights.ramp(longest)
        return self._weights.table(longest)

    @cached_property
    def _sums(self) -> FloatArray:
        """Sum of the table up to each run's horizon, or its length."""
        sums = np.append(0.0, np.cumsum(self._table))[self._horizon]
        if self._weights.is_own and not sums.all():
            T = int(self._horizon[np.argmin(sums)])
            raise ValueError(f"weights are all zero over a horizon of {T}; one step must count")
        return sums

    def cells(self, rows: slice = slice(None)) -> FloatArray:
        """Weight of each step, run after run; `rows` is a slice of the runs."""
        lengths = self.lengths[rows]
        offsets = offsets_of(lengths)
        index = np.arange(offsets[-1])
        index -= np.repeat(offsets[:-1], lengths)
        if not self._weights.is_own:
            return self._table[index]
        if self._weights.schedule == _FROM_END:
            index = np.repeat(self._horizon[rows] - 1, lengths) - index
        return self._table[index] / np.repeat(self._sums[rows], lengths)

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
        return matrix @ self._table

    @property
    def total(self) -> FloatArray:
        """Sum of the weights of each run's steps."""
        if self._weights.is_own:
            return self.sums(np.ones(int(self.lengths.sum())))
        return self._sums

    def divisor(self, normalize: bool = True) -> FloatArray:
        """What a run adds to the divisor of a set's score: its weight, or one run.

        By the paper's convention, and without `normalize`, a score is a mean over runs.
        """
        if self._weights.is_own or not normalize:
            return np.ones(len(self.lengths))
        return self.total

    @property
    def n_unscored(self) -> int:
        """Number of steps beyond the horizon, which do not count."""
        horizon = self._weights.horizon
        if horizon is None or self._weights.is_own:
            return 0
        return int(np.maximum(self.lengths - int(horizon), 0).sum())

    def warn_unscored(self, stacklevel: int = 3) -> None:
        """Warn of steps beyond the horizon."""
        if n := self.n_unscored:
            horizon = int(self._weights.horizon)  # type: ignore[arg-type]
            n_runs = int((self.lengths > horizon).sum())
            warnings.warn(
                f"horizon={horizon} leaves {number_of(n, 'step')} of "
                f"{number_of(n_runs, 'run')} unscored; give a horizon "
                f"of {int(self.lengths.max())} to score them all",
                stacklevel=stacklevel + 1,
            )

    def rate(self, y: FloatArray, run_weight: FloatArray | None = None) -> float:
        """Success rate over forecasts, the best constant; by the paper's convention, over runs."""
        mass = self.divisor()
        if run_weight is not None:
            mass = mass * run_weight
        return float(np.average(y, weights=mass))


def as_step_weights(weights: Weights = "early", horizon: Any = None) -> StepWeights:
    """Return what `weights` and `horizon` stand for; an error says what they may be."""
    if isinstance(weights, StepWeights):
        if horizon is not None:
            raise ValueError(
                f"weights={weights!r} has its own horizon, so horizon={horizon!r} cannot be used "
                f"with it; leave horizon out, or pass weights={weights.schedule!r}"
            )
        return weights
    if not callable(weights) and (not isinstance(weights, str) or weights not in _RAMPS):
        raise ValueError(
            f"unknown weights {weights!r:.80}; use one of {', '.join(_RAMPS)}, or a function of "
            f"the array of step numbers"
        )
    is_word = horizon is None or (isinstance(horizon, str) and horizon == OWN)
    if not is_word and not (is_count(horizon) and horizon <= LARGEST_HORIZON):
        raise ValueError(
            f"horizon must be a number of steps up to {LARGEST_HORIZON:,}, 'own' or None, got "
            f"{horizon!r}"
        )
    if horizon is None and weights == _FROM_END:
        raise ArgumentError(
            f"the weights {weights!r} fall to zero over a number of steps and need it; give "
            f"{{argument}}, say, or {{argument:horizon=own}} for the paper's convention, over each "
            f"run's length",
            "horizon",
            30,
        )
    return StepWeights(weights, horizon if is_word else int(horizon))


def schedules_of(weights: Any, horizon: Horizon) -> list[StepWeights]:
    """Return several schedules over one horizon, each once; None stands for all that it allows."""
    if weights is None:
        weights = [w for w in WEIGHT_SCHEDULES if horizon is not None or w != _FROM_END]
    schedules = several(
        weights, lambda schedule: as_step_weights(schedule, horizon).schedule_name, "weights"
    )
    return [as_step_weights(schedule, horizon) for schedule in schedules]


def _called(function: Callable[[Any], Any], n: int) -> FloatArray:
    """Weights of steps 1, ..., n by a function of the array of steps."""
    if not n:
        return np.empty(0)
    weights = _as_weights(function, n)
    half = (n + 1) // 2
    again = _as_weights(function, half)
    refuse_first(
        ~np.isclose(weights[:half], again, rtol=1e-9, atol=0),
        lambda step: (
            f"weights must depend on the step alone, but the function gives step {step + 1} "
            f"{weights[step]:g} among {n} steps and {again[step]:g} among {half}"
        ),
    )
    if not weights.any():
        raise ValueError(f"weights for steps 1 to {n} are all zero; at least one step must count")
    if not weights.all():
        warnings.warn(
            f"weights for steps 1 to {n} are zero at step {int(np.argmin(weights)) + 1}: forecasts "
            f"there do not count, so the truth is not the only best trace (Theorem 4.1 needs "
            f"weights above zero)",
            stacklevel=2,
        )
    return weights


def _as_weights(function: Callable[[Any], Any], n: int) -> FloatArray:
    """Call a function for n steps, and return n numbers, none negative."""
    returned = function(np.arange(1, n + 1))
    try:
        array = np.asarray(returned, dtype=float)
    except (TypeError, ValueError):
        array = np.empty(0)
    if array.shape != (n,) or not np.isfinite(array).all() or (array < 0).any():
        raise ValueError(
            f"weights for steps 1 to {n} must be {n} finite numbers, none negative, got "
            f"{returned!r:.120}; a function takes the array of steps"
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
        2t/(T(T+1)). One number a run is the same with the horizons T that are given, of which a run
        that was cut off keeps its first steps.

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
    own_horizon = None
    if np.ndim(horizon) > 0:  # type: ignore[arg-type]
        own_horizon = as_horizon(horizon, run_lengths)
        horizon = OWN
    return RunWeights(as_step_weights(weights, horizon), run_lengths, own_horizon).cells()
