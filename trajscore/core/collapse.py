"""Collapsing traces to one number a run."""

from __future__ import annotations

from typing import Any

import numpy as np

from trajscore.core.array import TrajectoryArray
from trajscore.core.checks import check_trajectories
from trajscore.core.type_aliases import FloatArray
from trajscore.core.values import check_choice, run_label
from trajscore.core.weights import Horizon, StepWeights, Weights, as_step_weights
from trajscore.core.within_runs import last_cells

AGGREGATORS = ("last", "mean", "min", "weighted")
_MEAN = as_step_weights("uniform")


def aggregate(
    traces: Any, phi: str = "weighted", *, weights: Weights = "early", horizon: Horizon = None
) -> FloatArray:
    """Collapse each trace to one number (Appendix F.2 of the paper on Trajectory Proper Scores)."""
    X = check_trajectories(traces, single_channel=True)
    check_choice(phi, "phi", AGGREGATORS)
    return collapse(X, phi, as_step_weights(weights, horizon))


def collapse(X: TrajectoryArray, phi: str, weights: StepWeights) -> FloatArray:
    """Collapse trusted traces of one channel."""
    if not len(X):
        return np.empty(0)
    if phi == "last":
        return X.cells[last_cells(X)]
    if phi == "min":
        return np.minimum.reduceat(X.cells, X.offsets[:-1])
    return weighted_mean(X, (_MEAN if phi == "mean" else weights).of(X).cells())


def weighted_mean(X: TrajectoryArray, w: FloatArray) -> FloatArray:
    """Mean of each trusted run's values, which have the weights w."""
    starts = X.offsets[:-1]
    total = np.add.reduceat(w, starts)
    if not total.all():
        row = int(np.argmin(total))
        raise ValueError(
            f"run {run_label(X.ids[row])} (row {row}): its steps weigh nothing, so they have no "
            f"weighted mean; give weights above zero at step 1, or another aggregator"
        )
    mean = np.add.reduceat(w * X.cells, starts) / total
    # rounding must not carry a mean outside the values it averages, nor split ties of constants
    low, high = np.minimum.reduceat(X.cells, starts), np.maximum.reduceat(X.cells, starts)
    return np.clip(mean, low, high)
