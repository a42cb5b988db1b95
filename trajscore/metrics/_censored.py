"""Trajectory Proper Scores of runs whose outcome was not observed."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from trajscore.core.array import TrajectoryArray
from trajscore.core.checks import check_sample_weight
from trajscore.core.outcomes import soft_outcomes
from trajscore.core.type_aliases import FloatArray
from trajscore.core.weights import Weights
from trajscore.metrics._tps import average, check_scored, run_scores


def censored_tps_score(
    y_true: ArrayLike,
    traces: Any,
    *,
    q_z: ArrayLike = 0.0,
    score: Any = "log",
    weights: Weights = "linear_front",
    sample_weight: ArrayLike | None = None,
) -> float:
    """Mean censored Trajectory Proper Score; higher is better.

    A run whose outcome was observed is scored as by `tps_score`. One that was stopped at step
    Z before its outcome showed is scored on its prefix with the soft outcome q_Z, the chance
    that it would have succeeded. Step weights are those of the whole horizon, cut off at Z.

    Parameters
    ----------
    y_true : array-like of shape (n_runs,)
        Outcomes: 1 success, 0 failure, -1 not observed, or a grade in [0, 1].
    traces : TrajectoryArray or array-like of shape (n_runs, T_max)
        Forecasts of success in [0, 1], one a step.
    q_z : float or array-like of shape (n_runs,), default=0.0
        Continuation-success probability of the runs that were not observed; other entries are
        not read and may be NaN. 0 is the *simple* score, the true q_Z gives the *exact* one, and
        the mean outcome of a run's continuations the *abstract* one.
    score, weights, sample_weight : score family, step weights and array-like
        As in `tps_score`.

    Returns
    -------
    float
        The (weighted) mean over runs.

    Raises
    ------
    ValueError
        If there are no runs, a forecast lies outside [0, 1], or q_z is missing or outside [0, 1]
        for an unobserved run.

    See Also
    --------
    tps_score : For runs that are all observed.

    Notes
    -----
    The exact score is proper for q_t if stops are administrative: Y is independent of the stop
    given the stopped history. The simple score elicits m_t = P(observed and success | H_t)
    instead (Proposition C.3).

    References
    ----------
    Raghu et al. (2026), Proper Scoring Rules for Agentic Uncertainty Quantification,
    Sections 4.2 to 4.4, Eq. 3 to 6 and Proposition C.2.

    Examples
    --------
    >>> traces = [[0.8, 0.8], [0.6, 0.6]]
    >>> round(censored_tps_score([1, -1], traces, score="brier"), 4)
    -0.2
    >>> round(censored_tps_score([1, -1], traces, q_z=0.5, score="brier"), 4)
    -0.15
    """
    y, X = check_scored(y_true, traces, allow_censored=True)
    weight = check_sample_weight(sample_weight, len(X))
    return average(run_scores(soft_outcomes(y, q_z), X, score, weights), weight)


def censored_tps_samples(
    y_true: ArrayLike,
    traces: Any,
    *,
    q_z: ArrayLike = 0.0,
    score: Any = "log",
    weights: Weights = "linear_front",
) -> FloatArray:
    """Censored Trajectory Proper Score of every run; higher is better.

    Parameters
    ----------
    y_true, traces, q_z, score, weights : array-likes, score family and step weights
        As in `censored_tps_score`, which is the mean.

    Returns
    -------
    ndarray of shape (n_runs,)
        The score of each run.

    Raises
    ------
    ValueError
        If a forecast lies outside [0, 1], or q_z is missing or outside [0, 1] for an unobserved
        run.

    References
    ----------
    Raghu et al. (2026), Proper Scoring Rules for Agentic Uncertainty Quantification, Eq. 3 to 6
    and Proposition C.2.

    Examples
    --------
    The outcomes of continuations enter through their mean:

    >>> traces, continued = [[0.8, 0.8], [0.6, 0.6]], [None, [1, 0]]
    >>> q_z = [sum(made) / len(made) if made else None for made in continued]
    >>> censored_tps_samples([1, -1], traces, q_z=q_z, score="brier")
    array([-0.04, -0.26])
    """
    y, X = check_scored(y_true, traces, allow_censored=True)
    return run_scores(soft_outcomes(y, q_z), X, score, weights)


def contrast_samples(X: TrajectoryArray, score: Any, weights: Weights) -> FloatArray:
    """Return what success is worth over failure on each run's prefix: the score's slope in q_Z."""
    success = run_scores(np.ones(len(X)), X, score, weights)
    return success - run_scores(np.zeros(len(X)), X, score, weights)
