"""Collapsing traces to one number a run."""

from __future__ import annotations

import numpy as np

from trajscore.core.array import TrajectoryArray
from trajscore.core.type_aliases import FloatArray
from trajscore.core.values import run_label
from trajscore.core.weights import StepWeights
from trajscore.core.within_runs import last_cells

AGGREGATORS = ("last", "mean", "min", "weighted")
_EARLY, _UNIFORM = StepWeights("early"), StepWeights("uniform")


def collapse(X: TrajectoryArray, phi: str, weights: StepWeights = _EARLY) -> FloatArray:
    """Collapse trusted traces of one channel (Appendix F.2 of the TPS paper)."""
    if not len(X):
        return np.empty(0)
    if phi == "last":
        return X.cells[last_cells(X)]
    if phi == "min":
        return np.minimum.reduceat(X.cells, X.offsets[:-1])
    return weighted_mean(X, (_UNIFORM if phi == "mean" else weights).of(X).cells())


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
