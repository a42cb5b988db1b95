"""All forecasts of some runs with the weights of a score, sorted once for several metrics."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trajscore.core.array import TrajectoryArray
from trajscore.core.ties import group_ties
from trajscore.core.type_aliases import FloatArray
from trajscore.core.weights import StepWeights, as_step_weights
from trajscore.core.within_runs import step_numbers

# With more steps, forecasts that share one of as many cells are ties, so that none need be sorted:
# that moves metrics by less than 2e-6 (benchmarks/scale.py), unless many are in one cell.
MANY = 1 << 22
_N_CELLS = 1 << 20
_MOST_IN_A_CELL = 1e-3

PARTS = {"early": 1, "middle": 4, "late": 11}
"""First step of each part of a run; never thirds of it, as its length is not known before its end.
"""


@dataclass(frozen=True)
class WeightedSteps:
    """Steps in the order of their runs: weight (step times run weight), part, and tie."""

    X: TrajectoryArray
    success: FloatArray  # of the runs
    weights: StepWeights
    weight: FloatArray
    part: NDArray[Any]  # 0 early, 1 middle, 2 late: see `step_parts`
    tie: NDArray[Any]  # place among the distinct forecasts
    n_ties: int

    def by_tie(self, values: FloatArray) -> FloatArray:
        """Add up values of the steps by their forecast."""
        return np.bincount(self.tie, values, self.n_ties).astype(np.float64, copy=False)


def weighted_steps(
    success: FloatArray,
    X: TrajectoryArray,
    weights: StepWeights | None = None,
    run_weight: FloatArray | None = None,
) -> WeightedSteps:
    """Gather the steps of trusted runs; `success` and `run_weight` (None: ones) are of runs."""
    how = as_step_weights() if weights is None else weights
    w = how.of(X).cells()
    if run_weight is not None:
        w *= np.repeat(run_weight, X.lengths)
    return WeightedSteps(X, success, how, w, step_parts(X), *_ties(X.cells))


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


def step_parts(X: TrajectoryArray) -> NDArray[Any]:
    """Return the place in `PARTS` of each step, which depends on its number alone."""
    place = np.searchsorted(list(PARTS.values()), step_numbers(X), side="right")
    return place.astype(np.int8) - np.int8(1)
