"""All forecasts of some runs with the weights of a score, for several metrics."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trajscore.core.array import TrajectoryArray
from trajscore.core.type_aliases import BoolArray, FloatArray, IntArray
from trajscore.core.weights import Weights, step_weights
from trajscore.core.within_runs import run_numbers, step_numbers
from trajscore.metrics._ties import rises


@dataclass(frozen=True)
class WeightedSteps:
    """Steps in the order of their runs: run, forecast, weight (step times run weight), outcome.

    >>> steps = weighted_steps(np.array([1.0, 0.0]), TrajectoryArray.from_list([[0.5], [0.9, 0.4]]))
    >>> steps.run, steps.weight.round(3), steps.outcome
    (array([0, 1, 1]), array([1.   , 0.667, 0.333]), array([1., 0., 0.]))
    >>> steps.by_tie(steps.weight).round(3), steps.from_ties(np.array([3, 5, 7]))
    (array([0.333, 1.   , 0.667]), array([5, 7, 3]))
    """

    n_runs: int
    run: IntArray
    forecast: FloatArray
    weight: FloatArray
    outcome: FloatArray
    third: NDArray[Any]  # 0, 1, 2: the third of its run's horizon that the middle of a step lies in

    def take(self, counts: BoolArray) -> WeightedSteps:
        """Keep some of the steps."""
        kept = np.flatnonzero(counts)  # which is faster than a mask five times
        parts: Any = (self.run, self.forecast, self.weight, self.outcome, self.third)
        return WeightedSteps(self.n_runs, *(one[kept] for one in parts))

    @cached_property
    def _order(self) -> IntArray:
        return np.argsort(self.forecast)

    @cached_property
    def _starts(self) -> IntArray:
        """Where each distinct forecast begins, in the order of forecasts."""
        return np.flatnonzero(rises(self.forecast[self._order]))

    def by_tie(self, values: FloatArray) -> FloatArray:
        """Add up values of the steps by their forecast, in ascending order of these."""
        return np.add.reduceat(values[self._order], self._starts) if len(values) else np.empty(0)

    def from_ties(self, values: NDArray[Any]) -> NDArray[Any]:
        """Give each step what its forecast has."""
        out = np.empty(len(self.run), dtype=values.dtype)
        out[self._order] = np.repeat(values, np.diff(self._starts, append=len(out)))
        return out

    def by_run(self, values: FloatArray) -> FloatArray:
        """Add up values of the steps by their run."""
        return np.bincount(self.run, values, self.n_runs).astype(np.float64, copy=False)


def weighted_steps(
    success: FloatArray,
    X: TrajectoryArray,
    weights: Weights = "linear_front",
    run_weight: FloatArray | None = None,
) -> WeightedSteps:
    """Gather the steps of trusted runs; `success` and `run_weight` (None: ones) are of runs."""
    w, run = step_weights(X.lengths, X.horizon, weights), run_numbers(X)
    if run_weight is not None:
        w *= run_weight[run]
    return WeightedSteps(len(X), run, X.cells, w, success[run], step_thirds(X))


def step_thirds(X: TrajectoryArray) -> NDArray[Any]:
    """Return 0, 1 or 2: the third of its run's horizon that the middle of each step lies in."""
    middle = (step_numbers(X) - 0.5) * np.repeat(3 / X.horizon, X.lengths)
    return middle.astype(np.int8)
