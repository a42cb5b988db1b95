"""All forecasts of some runs with the weights of a score, sorted once for several metrics."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trajscore.core.array import TrajectoryArray
from trajscore.core.type_aliases import FloatArray, IntArray
from trajscore.core.values import as_horizon
from trajscore.core.weights import Weights, step_weights
from trajscore.metrics._ties import group_ties

# With more steps, forecasts that share one of as many cells are ties, so that none need be sorted:
# that moves metrics by less than 2e-6 (benchmarks/scale.py), unless many are in one cell.
MANY = 1 << 22
_N_CELLS = 1 << 20
_MOST_IN_A_CELL = 1e-3


@dataclass(frozen=True)
class WeightedSteps:
    """Steps in the order of their runs: weight (step times run weight), third, and tie.

    >>> steps = weighted_steps(np.array([1.0, 0.0]), TrajectoryArray.from_list([[0.5], [0.9, 0.4]]))
    >>> steps.weight.round(3), steps.tie, steps.by_tie(steps.weight).round(3)
    (array([1.   , 0.667, 0.333]), array([1, 2, 0]), array([0.333, 1.   , 0.667]))
    """

    X: TrajectoryArray
    success: FloatArray  # of the runs
    weights: Weights
    weight: FloatArray
    third: NDArray[Any]  # 0, 1, 2: the third of its run's horizon that the middle of a step lies in
    tie: NDArray[Any]  # place among the distinct forecasts
    n_ties: int

    def of(self, X: TrajectoryArray) -> WeightedSteps:
        """Return other forecasts of the same steps."""
        if X is self.X:
            return self
        tie, n_ties = _ties(X.cells)
        return replace(self, X=X, tie=tie, n_ties=n_ties)

    def by_tie(self, values: FloatArray) -> FloatArray:
        """Add up values of the steps by their forecast."""
        return np.bincount(self.tie, values, self.n_ties).astype(np.float64, copy=False)


def weighted_steps(
    success: FloatArray,
    X: TrajectoryArray,
    weights: Weights = "linear_front",
    run_weight: FloatArray | None = None,
) -> WeightedSteps:
    """Gather the steps of trusted runs; `success` and `run_weight` (None: ones) are of runs."""
    w = step_weights(X.lengths, X.horizon, weights)
    if run_weight is not None:
        w *= np.repeat(run_weight, X.lengths)
    tie, n_ties = _ties(X.cells)
    return WeightedSteps(X, success, weights, w, step_thirds(X.lengths, X.horizon), tie, n_ties)


def _ties(forecasts: FloatArray) -> tuple[NDArray[Any], int]:
    """Return the place of each forecast among the distinct ones, and their number."""
    if len(forecasts) > MANY:
        # on this scale chances are as easily told apart near 0 and 1 as elsewhere
        cells = np.arcsin(np.sqrt(forecasts))
        cells *= _N_CELLS / (np.pi / 2)
        cell = cells.astype(np.int32)
        if np.bincount(cell).max() <= _MOST_IN_A_CELL * len(cell):
            return cell, _N_CELLS + 1
    distinct, tie = group_ties(forecasts)
    return tie, len(distinct)


def step_thirds(lengths: IntArray, horizon: IntArray | None) -> NDArray[Any]:
    """Return 0, 1 or 2: the third of its run's horizon that the middle of each step lies in."""
    step = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    middle = (step + 0.5) * np.repeat(3 / as_horizon(horizon, lengths), lengths)
    return middle.astype(np.int8)
