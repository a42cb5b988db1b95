"""Step weights: which prefixes of a run count how much.

A schedule gives each run of horizon T the weights w_1, ..., w_T, which add up to one; the built-in
ones are positive. The horizon of a run that came to its end is its length. One that is cut short at
step Z keeps its first Z weights: they are never renormalised.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from trajscore.core.type_aliases import FloatArray, IntArray
from trajscore.core.values import as_horizon, as_lengths

Weights = str | Callable[[int], Any]


# Kept, because making it anew for every chunk takes a tenth of the time of a score.
_POSITIONS = np.arange(1 << 17, dtype=np.float64)
_POSITIONS.flags.writeable = False


def _positions(n: int) -> FloatArray:
    return _POSITIONS[:n] if n <= len(_POSITIONS) else np.arange(n, dtype=np.float64)


def _n_cells(starts: IntArray, lengths: IntArray) -> int:
    return int(starts[-1] + lengths[-1]) if len(starts) else 0


@dataclass(frozen=True)
class WeightSchedule:
    """A schedule as a ramp over steps and its total over the horizon: w_t = ramp / total."""

    name: str
    ramp: Callable[[FloatArray], FloatArray]  # of step counts from 1
    total: Callable[[FloatArray], FloatArray]  # of horizons
    from_end: bool = False  # whether the ramp is of T + 1 - t instead of t

    def cell_ramp(self, starts: IntArray, lengths: IntArray, horizon: FloatArray) -> FloatArray:
        """Return the ramp of every step of every run, flat; the runs follow one another."""
        position = _positions(_n_cells(starts, lengths))
        if self.from_end:
            count = np.repeat(starts + horizon, lengths)
            np.subtract(count, position, out=count)
        else:
            count = np.repeat(starts - 1.0, lengths)
            np.subtract(position, count, out=count)
        return self.ramp(count)


class CustomSchedule:
    """A schedule given as a function from a horizon T to T weights, divided by their sum."""

    def __init__(self, function: Callable[[int], Any]) -> None:
        self.name: str = getattr(function, "__name__", repr(function))
        self._function = function
        self._weights: dict[int, FloatArray] = {}
        self._warned = False

    def total(self, horizon: FloatArray) -> FloatArray:
        """Return ones: the ramp is divided already."""
        return np.ones_like(horizon)

    def cell_ramp(self, starts: IntArray, lengths: IntArray, horizon: FloatArray) -> FloatArray:
        """Return the weight of every step of every run, flat; the runs follow one another."""
        out = np.empty(_n_cells(starts, lengths))
        step = np.arange(len(out)) - np.repeat(starts, lengths)
        for T in np.unique(horizon).astype(int).tolist():
            if T not in self._weights:
                self._weights[T] = self._checked(T)
            here = np.repeat(horizon == T, lengths)
            out[here] = self._weights[T][step[here]]
        return out

    def _checked(self, T: int) -> FloatArray:
        array = np.asarray(self._function(T), dtype=np.float64)
        if array.shape != (T,) or not np.isfinite(array).all() or (array < 0).any():
            raise ValueError(
                f"weights({T}) must be {T} finite numbers, none negative, got {array!r:.120}"
            )
        if not array.any():
            raise ValueError(f"weights({T}) are all zero; at least one step must count")
        if not array.all() and not self._warned:
            self._warned = True
            warnings.warn(
                f"weights({T}) are zero at step {int(np.argmin(array)) + 1}: forecasts there do "
                f"not count, so the truth is not the only best trace (Theorem 4.1 needs weights "
                f"above zero)",
                UserWarning,
                stacklevel=2,
            )
        return np.asarray(array / array.sum())


_SCHEDULES = {
    schedule.name: schedule
    for schedule in (
        WeightSchedule("linear_front", lambda count: count, lambda T: T * (T + 1) / 2, True),
        WeightSchedule("uniform", np.ones_like, lambda T: T),
        WeightSchedule(
            "exponential_front", lambda count: np.exp2(1 - count), lambda T: 2 - np.exp2(1 - T)
        ),
        WeightSchedule("linear_back", lambda count: count, lambda T: T * (T + 1) / 2),
    )
}

WEIGHT_SCHEDULES = tuple(_SCHEDULES)
"""Names of the built-in schedules."""


def get_schedule(weights: Weights) -> WeightSchedule | CustomSchedule:
    """Return the schedule that a name stands for, or a callable from horizons T to T weights."""
    if callable(weights):
        return CustomSchedule(weights)
    if not isinstance(weights, str) or weights not in _SCHEDULES:
        simple = weights is None or isinstance(weights, (str, int, float))
        given = repr(weights) if simple else f"of type {type(weights).__name__}"
        raise ValueError(
            f"unknown weights {given}; use one of {', '.join(_SCHEDULES)}, or a function that "
            f"maps a horizon T to T weights"
        )
    return _SCHEDULES[weights]


def schedule_name(weights: Weights) -> str:
    """Return the name under which a schedule is reported."""
    return get_schedule(weights).name


def step_weights(
    lengths: ArrayLike, horizon: ArrayLike | None = None, weights: Weights = "linear_front"
) -> FloatArray:
    """Return the weight of every step of every run, flat.

    Parameters
    ----------
    lengths : array-like of int of shape (n_runs,)
        Observed steps Z_i of each run.
    horizon : array-like of int of shape (n_runs,), optional
        Horizon T_i of each run, over which weights add up to one. Default: the length, which it
        is for every run that came to its end; that of a run that was cut off may be larger.
    weights : str or callable, default="linear_front"
        The schedule: linear_front 2(T-t+1)/(T(T+1)), uniform 1/T,
        exponential_front 2^-(t-1)/(2(1-2^-T)), linear_back 2t/(T(T+1)), or a function from a
        horizon T to T numbers >= 0, which are divided by their sum. Zeros are warned of: the
        truth then is no longer the only best forecast.

    Returns
    -------
    ndarray of shape (sum of lengths,)
        w_1, ..., w_Z of each run after the other.

    Raises
    ------
    ValueError
        If a length is not a whole number of at least 1, a horizon is shorter than its run, the
        schedule is unknown, or a function gives other than T finite numbers >= 0, not all zero.

    References
    ----------
    Raghu et al. (2026), Proper Scoring Rules for Agentic Uncertainty Quantification, Section 4.1
    and Appendix I.

    Examples
    --------
    >>> step_weights([2, 1], horizon=[2, 2], weights="uniform")
    array([0.5, 0.5, 0.5])
    """
    run_lengths = as_lengths(lengths)
    starts = np.cumsum(run_lengths) - run_lengths
    horizons = as_horizon(horizon, run_lengths).astype(np.float64)
    schedule = get_schedule(weights)
    weight = schedule.cell_ramp(starts, run_lengths, horizons)
    weight /= np.repeat(schedule.total(horizons), run_lengths)
    return weight
