"""Trajectory Proper Scores: is a trace truthful at every step, whatever the family and weights?"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np
import pandas as pd

from trajscore.core.array import TrajectoryArray
from trajscore.core.checks import Sample, check_forecasts, check_traces
from trajscore.core.ids import check_same_runs
from trajscore.core.outcomes import CENSORED, as_labels
from trajscore.core.score_families import USUAL_SCORES, family_name, get_family
from trajscore.core.stops import refuse_own_stops
from trajscore.core.ties import group_ties
from trajscore.core.values import ArrayLike, FloatArray, IntArray, as_flag, number_of, several
from trajscore.core.weights import (
    Horizon,
    RunSums,
    StepWeights,
    Weights,
    as_step_weights,
    run_sums,
    schedules_of,
    score_cells,
)


def tps_score(
    y_true: ArrayLike,
    traces: Any,
    *,
    score: Any = "log",
    weights: Weights = "early",
    horizon: Horizon = None,
    normalize: bool = True,
    sample_weight: ArrayLike | None = None,
) -> float:
    """Trajectory Proper Score of a set of runs; higher is better.

    The score of the forecasts of all steps, in which the forecast at step t counts w_t::

        sum over runs and steps of w_t S(F_t, y) / sum over runs and steps of w_t

    For a graded outcome y in [0, 1] the score is y S(F_t, 1) + (1 - y) S(F_t, 0).

    Parameters
    ----------
    y_true : array-like of shape (n_runs,)
        Outcomes: 1 success, 0 failure, or a grade or probability in [0, 1].
    traces : TrajectoryArray or array-like of shape (n_runs, T_max)
        Forecasts of success in [0, 1], one a step; trailing NaN of a plain array is padding.
    score : "log", "brier", ("beta", a, b) or object, default="log"
        Score family, in nats for "log"; as text also "beta(4,2)" and "log(0.01)", with another
        clip. An object needs ``success(p)`` and ``failure(p)``, which give S(p, 1) and S(p, 0) for
        an array of forecasts.
    weights : str or callable, default="early"
        Weight of the forecast at step t: "early" 1/sqrt(t), so that early ones count more and a
        run four times as long counts about twice; "uniform" 1; "exponential_front" 2^(1-t);
        "linear_back" t; "linear_front" H-t+1, which needs a horizon; or a function from the array
        of step numbers to as many numbers >= 0.
    horizon : int, "own" or None, default=None
        A number of steps H, over which weights add up to one; steps beyond it are not scored, and
        a warning counts them. ``horizon="own"`` with ``weights="linear_front"`` gives the numbers
        of the paper: the weights of each run add up to one over its own length (or the horizon
        that the container holds), and the score is the mean over runs.
    normalize : bool, default=True
        Whether to divide by the weights of the set. False gives the mean over runs of the weighted
        sum of each, for sets of fewer than 20 runs, such as small folds whose scores are averaged.
    sample_weight : array-like of shape (n_runs,), optional
        Weight of each run, known at its start.

    Returns
    -------
    float
        The score.

    Raises
    ------
    ValueError
        If a forecast lies outside [0, 1], an outcome was not observed, there are no runs, or the
        score, the weights or the horizon are unknown.

    Warns
    -----
    UserWarning
        If steps lie beyond the horizon, or with ``horizon="own"`` the horizon of an observed run
        beyond its end.

    See Also
    --------
    tps_samples : One number a run, for intervals and comparisons.
    censored_tps_score : For runs whose outcome was not observed.
    make_tps_scorer : The same for model selection.

    Notes
    -----
    Weights that depend on the step are known when the forecast is made. The expected sum is then
    highest, and only highest, for the true q_t = P(Y = 1 | history, still running at t), whatever
    the law of lengths and outcomes, and all predictors of a set share the divisor. Weights divided
    by a sum over the run's own length reward leaning towards how short runs end, unless the
    forecaster knows the length at the start (Remark A.4 of the paper).

    References
    ----------
    Raghu et al. (2026), Proper Scoring Rules for Agentic Uncertainty Quantification, Eq. 2 and
    Theorem 4.1, for weights that are fixed exogenously.

    Examples
    --------
    A base-rate forecast on a set with 84.2% successes scores -0.436 nats:

    >>> import numpy as np
    >>> y = np.arange(1000) < 842
    >>> round(tps_score(y, np.full((1000, 5), 0.842)), 3)
    -0.436
    """
    how, runs = check_scored(y_true, traces, weights, horizon, sample_weight)
    sums = run_sums(runs.y, runs.X, score, how, normalize=as_flag(normalize, "normalize"))
    return sums.mean(runs.weight)


def tps_samples(
    y_true: ArrayLike,
    traces: Any,
    *,
    score: Any = "log",
    weights: Weights = "early",
    horizon: Horizon = None,
    normalize: bool = True,
    sample_weight: ArrayLike | None = None,
) -> FloatArray:
    """Return one number a run whose mean is the Trajectory Proper Score; higher is better.

    Parameters
    ----------
    y_true, traces, score, weights, horizon, normalize : array-likes, score and step weights
        As in `tps_score`.
    sample_weight : array-like of shape (n_runs,), optional
        Weight of each run in that mean.

    Returns
    -------
    ndarray of shape (n_runs,)
        Pseudo-values: with N_i the weighted sum of the scores of run i and D_i that of its weights,
        R + (N_i - R D_i) / mean(D) for the score R of the set. Their mean is R, differences of two
        predictors on the same runs have the right mean and spread, and so have means over clusters.
        With ``horizon="own"`` or ``normalize=False``: N_i.

    See Also
    --------
    trajscore.inference.compare_predictors : Compares predictors by such numbers.

    References
    ----------
    Raghu et al. (2026), Proper Scoring Rules for Agentic Uncertainty Quantification, Eq. 2.

    Examples
    --------
    >>> y, traces = [1, 0], [[0.5, 0.5], [0.9, 0.1]]
    >>> tps_samples(y, traces, score="brier", weights="uniform")
    array([-0.25, -0.41])
    """
    how, runs = check_scored(y_true, traces, weights, horizon, sample_weight)
    sums = run_sums(runs.y, runs.X, score, how, normalize=as_flag(normalize, "normalize"))
    return sums.samples(runs.weight)


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
    how, runs = check_scored(
        y_true, traces, weights, horizon, sample_weight, q_z=q_z, allow_censored=True
    )
    labels = as_labels(runs.y, censored="q_z", q_z=runs.q_z).value
    sums = run_sums(labels, runs.X, score, how, normalize=as_flag(normalize, "normalize"))
    return sums.mean(runs.weight)


def check_scored(
    y_true: ArrayLike,
    traces: Any,
    weights: Weights,
    horizon: Horizon,
    sample_weight: ArrayLike | None,
    **options: Any,
) -> tuple[StepWeights, Sample]:
    """Check what is scored; warn, two frames up, of steps that do not count or never came."""
    how = as_step_weights(weights, horizon)
    runs = check_forecasts(y_true, traces, sample_weight=sample_weight, **options)
    y = runs.y
    X = runs.X
    if (y == CENSORED).any():
        refuse_own_stops(runs.traces)
    how.of(X).warn_unscored()
    if how.is_own and X.horizon is not None:
        # a soft outcome may be of a run that was cut off
        beyond = (X.horizon > X.lengths) & ((y == 0) | (y == 1))
        if beyond.any():
            row = int(np.argmax(beyond))
            warnings.warn(
                f"row {row}: the run ended after {number_of(int(X.lengths[row]), 'step')}, but its "
                f"horizon is {X.horizon[row]} ({number_of(int(beyond.sum()), 'such run')}). With "
                f"horizon='own' its weights are spread over steps that never came. Set "
                f"the horizon of an ended run to its length",
                stacklevel=3,
            )
    return how, runs


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
    q, F = map(check_traces, (q_true, traces))
    check_same_runs(q, F, "q_true", "traces")
    how = as_step_weights(weights, horizon)
    family = get_family(score)
    of_runs = how.of(F)
    of_runs.warn_unscored(stacklevel=2)
    if not len(F):
        return np.empty(0)
    best, expected = (score_cells(family, X.cells, q.cells) for X in (q, F))
    w = of_runs.cells() / of_runs.divisor().mean()
    return np.add.reduceat(w * (best - expected), F.offsets[:-1])


BASE_RATE = "base rate"


def tps_sensitivity(
    y_true: ArrayLike,
    traces: Any,
    *,
    scores: Sequence[Any] = USUAL_SCORES,
    weights: Sequence[Weights] | None = None,
    horizon: Horizon = None,
    sample_weight: ArrayLike | None = None,
) -> pd.DataFrame:
    """Score and rank predictors by every score family and weight schedule.

    The schedule is the analyst's choice, and nothing in the data says which is right: a verdict
    that another schedule reverses is one about the schedule too.

    Parameters
    ----------
    y_true : array-like of shape (n_runs,)
        Outcomes: 1 success, 0 failure, or a grade in [0, 1].
    traces : dict of str to traces, or TrajectoryArray or array-like of shape (n_runs, T_max)
        Forecasts of success in [0, 1], one a step, for each predictor: the items of a dict, or the
        channels of a container.
    scores : sequence of score families, default=("log", "brier", ("beta", 4, 2))
        Families, as in `tps_score`.
    weights : sequence of str or callable, optional
        Step weights. Default: all schedules that need no horizon, or with one all.
    horizon : int, "own" or None, default=None
        Of all these, as in `tps_score`; "own" is the convention of the paper's tables.
    sample_weight : array-like of shape (n_runs,), optional
        Weight of each run.

    Returns
    -------
    DataFrame indexed by predictor, score, weights
        score: the Trajectory Proper Score; margin: what it is above that of the best constant, the
        base rate over forecasts, which is a predictor too; rank: 1 for the best, ties share a rank;
        rank_flip and sign_flip: whether the rank, or the sign of the margin, is another than under
        the first of `scores` and `weights`.

    Raises
    ------
    ValueError
        If there are no runs, a forecast lies outside [0, 1], an outcome was not observed, or
        predictors are not of the same runs in the same order.

    See Also
    --------
    trajscore.inference.compare_predictors : Tells whether a flip is more than chance.
    trajscore.censoring.practice_shift : The same where some outcomes were not observed.

    Notes
    -----
    Forecasts are taken as they are: one that was calibrated with the weights of one schedule is at
    home there.

    References
    ----------
    Raghu et al. (2026), Proper Scoring Rules for Agentic Uncertainty Quantification, Appendix I.

    Examples
    --------
    >>> late = {"early bird": [[0.9, 0.6], [0.2, 0.5]], "late riser": [[0.5, 0.9], [0.6, 0.1]]}
    >>> table = tps_sensitivity([1, 0], late, scores=["brier"], horizon="own")
    >>> table.loc["early bird", ["score", "rank", "rank_flip"]].round(3)
                             score  rank  rank_flip
    score weights
    brier early             -0.100     1      False
          uniform           -0.115     1      False
          linear_front      -0.085     1      False
          exponential_front -0.085     1      False
          linear_back       -0.145     2       True
    """
    sample = check_forecasts(
        y_true, traces, sample_weight=sample_weight, several=True, reserved=[BASE_RATE]
    )
    if not len(sample):
        raise ValueError("there are no runs to score; give at least one")
    scores = several(scores, family_name, "scores")
    schedules = schedules_of(weights, horizon)
    schedules[0].of(sample.X).warn_unscored(stacklevel=2)
    y = np.asarray(sample.y, dtype=float)
    forecasts = {name: [X] * len(schedules) for name, X in sample.traces.items()}
    index, sums = panel_sums(y, forecasts, scores, schedules, sample.weight)
    score = np.array([of_runs.mean(sample.weight) for of_runs in sums])
    score = score.reshape(len(forecasts), -1)
    rank = ranks(score)
    sign = rank[-1] - rank  # that of the margin, where rounding is no difference
    columns = {
        "score": score,
        "margin": score - score[-1],
        "rank": rank,
        "rank_flip": rank != rank[:, :1],
        "sign_flip": sign * sign[:, :1] < 0,
    }
    return pd.DataFrame({name: values.ravel() for name, values in columns.items()}, index=index)


def panel_sums(
    labels: FloatArray,
    forecasts: dict[str, list[TrajectoryArray]],
    scores: Sequence[Any],
    schedules: Sequence[StepWeights],
    run_weight: FloatArray | float = 1.0,
) -> tuple[pd.MultiIndex, list[RunSums]]:
    """Return sums of runs for each predictor, score and schedule, with their names.

    `forecasts` has the traces of a predictor for each schedule; those of the base rate are added.
    """
    X = next(iter(forecasts.values()))[0]
    forecasts[BASE_RATE] = [
        X.with_cells(np.full(len(X.cells), how.of(X).rate(labels, run_weight))) for how in schedules
    ]
    sums = [
        run_sums(labels, trace, score, how)
        for traces, score in product(forecasts.values(), scores)
        for trace, how in zip(traces, schedules, strict=True)
    ]
    # the order of names is the order of the levels
    names = [list(forecasts), [family_name(score) for score in scores]]
    names.append([how.schedule_name for how in schedules])
    codes = np.indices([len(level) for level in names]).reshape(len(names), -1)
    order = ["predictor", "score", "weights"]
    return pd.MultiIndex(levels=names, codes=list(codes), names=order), sums


def ranks(scores: FloatArray) -> IntArray:
    """Return the rank of each score in its column, 1 for the highest; ties have the best rank."""
    group = np.stack([group_ties(column)[1] for column in scores.T], axis=1)
    return 1 + (group > group[:, None]).sum(axis=1)
