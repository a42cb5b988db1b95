"""What a trace loses against the truth, where the truth is known."""

from __future__ import annotations

from typing import Any

import numpy as np

from trajscore.core.checks import check_trajectories
from trajscore.core.ids import check_same_runs
from trajscore.core.score_families import get_family
from trajscore.core.type_aliases import FloatArray
from trajscore.core.weights import Horizon, Weights, as_step_weights


def regret(
    q_true: Any,
    traces: Any,
    *,
    score: Any = "log",
    weights: Weights = "early",
    horizon: Horizon = None,
) -> FloatArray:
    """Expected loss of each trace against the true success probabilities.

    Parameters
    ----------
    q_true : TrajectoryArray or array-like of shape (n_runs, T_max)
        True q_t = P(Y=1 | history up to t).
    traces : TrajectoryArray or array-like of shape (n_runs, T_max)
        Forecasts, for the same steps.
    score, weights, horizon : score family and step weights
        As in `tps_score`.

    Returns
    -------
    ndarray of shape (n_runs,)
        Sum over t of w_t {q (S(q,1) - S(F,1)) + (1-q) (S(q,0) - S(F,0))}, divided by the mean
        weight of a run, so that the mean over runs is what the score of the set loses; zero if and
        only if F = q at every step with a positive weight, never negative.

    Raises
    ------
    ValueError
        If the two have other runs or lengths, a probability lies outside [0, 1], or the score or
        the weights are unknown.

    References
    ----------
    Raghu et al. (2026), Proper Scoring Rules for Agentic Uncertainty Quantification, Eq. 8 and 9.

    Examples
    --------
    >>> regret([[0.5, 0.7]], [[0.5, 0.7]]), regret([[0.5]], [[0.6]], score="brier")
    (array([0.]), array([0.01]))
    """
    q, F = (
        check_trajectories(X, probabilities=True, single_channel=True) for X in (q_true, traces)
    )
    check_same_runs(q, F, "q_true", "traces")
    how, family = as_step_weights(weights, horizon), get_family(score)
    how.warn_unscored(F.lengths, stacklevel=2)
    if not len(F):
        return np.empty(0)
    success = family.success(q.cells) - family.success(F.cells)
    failure = family.failure(q.cells) - family.failure(F.cells)
    of_runs = how.of(F)
    w = of_runs.cells() / of_runs.divisor().mean()
    return np.add.reduceat(w * (q.cells * success + (1 - q.cells) * failure), F.offsets[:-1])
