"""Collapsing a trace to one number a run."""

from __future__ import annotations

from typing import Any

from trajscore.core.checks import check_trajectories
from trajscore.core.collapse import AGGREGATORS, collapse
from trajscore.core.type_aliases import FloatArray
from trajscore.core.values import check_choice
from trajscore.core.weights import Horizon, Weights, as_step_weights


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
    [0.6, 0.75, 0.6, 0.775...]
    """
    X = check_trajectories(traces, single_channel=True)
    check_choice(phi, "phi", AGGREGATORS)
    return collapse(X, phi, as_step_weights(weights, horizon))
