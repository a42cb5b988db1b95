"""Collapsing a trace to one number a run."""

from __future__ import annotations

from typing import Any

import numpy as np

from trajscore.core.array import TrajectoryArray
from trajscore.core.checks import check_trajectories
from trajscore.core.type_aliases import FloatArray
from trajscore.core.values import check_choice
from trajscore.core.weights import Weights, step_weights
from trajscore.core.within_runs import last_cells

AGGREGATORS = ("last", "mean", "min", "weighted")


def aggregate(
    traces: Any, phi: str = "weighted", *, weights: Weights = "linear_front"
) -> FloatArray:
    """Collapse each trace to a scalar.

    Parameters
    ----------
    traces : TrajectoryArray or array-like of shape (n_runs, T_max)
        One value a step.
    phi : {"last", "mean", "min", "weighted"}, default="weighted"
        The aggregator; "weighted" is the mean over the observed steps with `weights`.
    weights : str or callable, default="linear_front"
        Step weights as in `tps_score`, read for "weighted" only.

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
    [0.6, 0.75, 0.6, 0.8]
    """
    X = check_trajectories(traces, single_channel=True)
    check_choice(phi, "phi", AGGREGATORS)
    return collapse(X, phi, weights)


def collapse(X: TrajectoryArray, phi: str, weights: Weights) -> FloatArray:
    """Collapse trusted traces of one channel."""
    if not len(X):
        return np.empty(0)
    if phi == "last":
        return X.cells[last_cells(X)]
    if phi == "min":
        return np.minimum.reduceat(X.cells, X.offsets[:-1])
    schedule = "uniform" if phi == "mean" else weights
    return weighted_mean(X, step_weights(X.lengths, X.horizon, schedule))


def weighted_mean(X: TrajectoryArray, w: FloatArray) -> FloatArray:
    """Mean of each trusted run's values, which have the weights w."""
    starts = X.offsets[:-1]
    mean = np.add.reduceat(w * X.cells, starts) / np.add.reduceat(w, starts)
    # rounding must not carry a mean outside the values it averages, nor split ties of constants
    low, high = np.minimum.reduceat(X.cells, starts), np.maximum.reduceat(X.cells, starts)
    return np.clip(mean, low, high)
