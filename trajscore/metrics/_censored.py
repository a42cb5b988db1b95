"""Trajectory Proper Scores of runs whose outcome was not observed."""

from __future__ import annotations

from typing import Any

from numpy.typing import ArrayLike

from trajscore.core.checks import check_sample_weight
from trajscore.core.outcomes import soft_outcomes
from trajscore.core.run_sums import run_sums
from trajscore.core.type_aliases import FloatArray
from trajscore.core.values import as_flag
from trajscore.core.weights import Horizon, Weights, as_step_weights
from trajscore.metrics._tps import check_scored


def censored_tps_score(
    y_true: ArrayLike,
    traces: Any,
    *,
    q_z: ArrayLike = 0.0,
    score: Any = "log",
    weights: Weights = "early",
    horizon: Horizon = None,
    normalize: bool = True,
    sample_weight: ArrayLike | None = None,
) -> float:
    """Censored Trajectory Proper Score of a set of runs; higher is better.

    A run whose outcome was observed is scored as by `tps_score`. One that was stopped at step
    Z before its outcome showed is scored on its prefix with the soft outcome q_Z, the chance
    that it would have succeeded, given its history and that it was still going when it was stopped.

    Parameters
    ----------
    y_true : array-like of shape (n_runs,)
        Outcomes: 1 success, 0 failure, -1 not observed, or a grade in [0, 1].
    traces : TrajectoryArray or array-like of shape (n_runs, T_max)
        Forecasts of success in [0, 1], one a step.
    q_z : float or array-like of shape (n_runs,), default=0.0
        P(success | history, stopped, still going) of the runs that were not observed; other
        entries are not read and may be NaN. 0 is the *simple* score, the true q_Z gives the *exact*
        one, and the mean outcome of a run's continuations the *abstract* one.
    score, weights, horizon, normalize, sample_weight : score family, step weights, array-like
        As in `tps_score`. Only the steps up to the stop are scored, with weights that depend on the
        step: no run needs a horizon. With ``horizon="own"`` the weights are those of the horizon
        that the container holds, cut off at the stop and not renormalised, as in the paper.

    Returns
    -------
    float
        The score.

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
    The exact score is proper for q_t if stops are administrative, so that a stop says nothing of
    the outcome given the history, or if q_Z is told of the stop; a run that ended by itself was
    not stopped, so q_Z is learnt from runs that went on. The simple score elicits
    m_t = P(observed and success | H_t) instead (Proposition C.3). Forecasts that stop their own
    runs cannot be judged on these runs: replay all predictors on the same logs.

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
    how = as_step_weights(weights, horizon)
    y, X = check_scored(y_true, traces, how, allow_censored=True)
    weight = check_sample_weight(sample_weight, len(X))
    labels, normalize = soft_outcomes(y, q_z), as_flag(normalize, "normalize")
    return run_sums(labels, X, score, how, normalize=normalize).mean(weight)


def censored_tps_samples(
    y_true: ArrayLike,
    traces: Any,
    *,
    q_z: ArrayLike = 0.0,
    score: Any = "log",
    weights: Weights = "early",
    horizon: Horizon = None,
    normalize: bool = True,
    sample_weight: ArrayLike | None = None,
) -> FloatArray:
    """Return one number a run whose mean is the censored score; higher is better.

    Parameters
    ----------
    y_true, traces, q_z, score, weights, horizon, normalize : array-likes, score and step weights
        As in `censored_tps_score`.
    sample_weight : array-like of shape (n_runs,), optional
        Weight of each run in that mean.

    Returns
    -------
    ndarray of shape (n_runs,)
        Pseudo-values, as of `tps_samples`.

    Examples
    --------
    The outcomes of continuations enter through their mean:

    >>> traces, continued = [[0.8, 0.8], [0.6, 0.6]], [None, [1, 0]]
    >>> q_z = [sum(made) / len(made) if made else None for made in continued]
    >>> censored_tps_samples([1, -1], traces, q_z=q_z, score="brier")
    array([-0.04, -0.26])
    """
    how = as_step_weights(weights, horizon)
    y, X = check_scored(y_true, traces, how, allow_censored=True)
    weight = check_sample_weight(sample_weight, len(X))
    labels, normalize = soft_outcomes(y, q_z), as_flag(normalize, "normalize")
    return run_sums(labels, X, score, how, normalize=normalize).samples(weight)
