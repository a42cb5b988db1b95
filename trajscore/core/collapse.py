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
    """Collapse each trace to a scalar.

    Parameters
    ----------
    traces : TrajectoryArray or array-like of shape (n_runs, T_max)
        One value a step.
    phi : {"last", "mean", "min", "weighted"}, default="weighted"
        The aggregator; "weighted" is the mean over the observed steps with `weights`.
    weights, horizon : str or callable, and int, "own" or None
        Step weights as in `trajscore.metrics.tps_score`, read for "weighted" only.

    Returns
    -------
    ndarray of shape (n_runs,)
        One number a run.

    Raises
    ------
    ValueError
        If the aggregator is unknown, or there is more than one value a step.

    Notes
    -----
    No scalar of a trace elicits the whole trace: a proper score of the mean or the minimum can
    rank a distorted trace above the true one (Theorem B).

    References
    ----------
    Raghu et al. (2026), Proper Scoring Rules for Agentic Uncertainty Quantification, Theorem B and
    Appendices B.2, B.3 and F.2.

    Examples
    --------
    >>> [float(aggregate([[0.9, 0.6]], phi)[0]) for phi in ("last", "mean", "min", "weighted")]
    [0.6, 0.75, 0.6, 0.775...]
    """
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
