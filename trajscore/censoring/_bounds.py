"""How far a score, or a verdict, may be off because q_Z is estimated, or not known at all."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone

from trajscore.censoring._monte_carlo import ConstantOutcomeError, MonteCarloContinuation
from trajscore.core.checks import Sample, check_forecasts, check_trajectories
from trajscore.core.outcomes import CENSORED, as_labels
from trajscore.core.stops import refuse_own_stops
from trajscore.core.values import ArrayLike, FloatArray, refuse_first
from trajscore.core.weights import (
    Horizon,
    RunSums,
    Weights,
    as_step_weights,
    contrasts,
    run_sums,
)
from trajscore.inference import bootstrap
from trajscore.inference.intervals import percentile_interval


class TPSBounds(NamedTuple):
    """Smallest and largest score that some q_Z in the range gives, as `tps_bounds` describes."""

    low: float
    high: float
    q_low: FloatArray
    q_high: FloatArray


class BreakEven(NamedTuple):
    """The q_Z, common to all unobserved runs, at which two predictors score alike."""

    q: float
    difference_at_0: float
    difference_at_1: float

    @property
    def flips(self) -> bool:
        """Whether some common q_Z in [0, 1] changes the verdict."""
        return bool(np.isfinite(self.q))


def tps_bounds(
    y_true: ArrayLike,
    traces: Any,
    low: ArrayLike = 0.0,
    high: ArrayLike = 1.0,
    *,
    reference: Any = None,
    score: Any = "log",
    weights: Weights = "early",
    horizon: Horizon = None,
    sample_weight: ArrayLike | None = None,
) -> TPSBounds:
    """Sharp bounds of the mean censored score for q_Z anywhere in a range, run by run.

    The score is linear in each q_Z, so it is extreme at the ends of the ranges; which end is
    which depends on the sign of the run's sum of w_t {S(F_t, 1) - S(F_t, 0)}.

    Parameters
    ----------
    y_true, traces : array-like and TrajectoryArray
        Outcomes and forecasts, as in `trajscore.metrics.censored_tps_score`.
    low, high : float or array-like of shape (n_runs,), default=0.0, 1.0
        Range of q_Z of each unobserved run; other entries are not read.
    reference : TrajectoryArray or array-like of shape (n_runs, T_max), optional
        Another predictor's forecasts of the same runs, in the same order: bounds of the
        *difference* from its score. They are tighter than the difference of bounds, as both are
        scored with the same q_Z.
    score, weights, horizon : score family and step weights
        As in `trajscore.metrics.tps_score`.
    sample_weight : array-like of shape (n_runs,), optional
        Weight of each run.

    Returns
    -------
    TPSBounds
        low and high, both of which are attained; q_low and q_high, the q_Z that attain them, NaN
        for observed runs.

    Raises
    ------
    ValueError
        If a range is empty or leaves [0, 1], or the reference is of other runs.

    Notes
    -----
    No assumption on the stops is made if the ranges are [0, 1]. Sampling error comes on top.

    References
    ----------
    Manski (2003), Partial Identification of Probability Distributions.

    Examples
    --------
    >>> bounds = tps_bounds([1, -1], [[0.8, 0.8], [0.6, 0.6]], score="brier")
    >>> round(bounds.low, 3), round(bounds.high, 3), bounds.q_high
    (-0.2, -0.1, array([nan,  1.]))
    """
    sample = _predictors(y_true, traces, reference, sample_weight)
    base, slope = _linear_form(sample, score, weights, horizon)
    lower, upper = (as_labels(sample.y, censored="q_z", q_z=end).value for end in (low, high))
    refuse_first(
        lower > upper,
        lambda row: (
            f"row {row}: q_z cannot be at least {lower[row]:g} and at most {upper[row]:g}; give "
            f"low <= high"
        ),
    )
    worst = np.where(slope > 0, lower, upper)
    best = np.where(slope > 0, upper, lower)
    least, most = (
        RunSums(base.total + q * slope, base.divisor).mean(sample.weight) for q in (worst, best)
    )
    return TPSBounds(
        least, most, *(np.where(sample.y == CENSORED, q, np.nan) for q in (worst, best))
    )


def break_even_q(
    y_true: ArrayLike,
    traces: Any,
    other: Any,
    *,
    score: Any = "log",
    weights: Weights = "early",
    horizon: Horizon = None,
    sample_weight: ArrayLike | None = None,
) -> BreakEven:
    """Find the common q_Z at which the verdict between two predictors flips.

    Parameters
    ----------
    y_true : array-like of shape (n_runs,)
        Outcomes: 1 success, 0 failure, -1 not observed, or a grade in [0, 1].
    traces, other : TrajectoryArray or array-like of shape (n_runs, T_max)
        Forecasts of the two predictors, of the same runs in the same order.
    score, weights, horizon : score family and step weights
        As in `trajscore.metrics.tps_score`.
    sample_weight : array-like of shape (n_runs,), optional
        Weight of each run.

    Returns
    -------
    BreakEven
        q, the break-even point, NaN if there is none in [0, 1]; difference_at_0 and
        difference_at_1, the score of the first minus that of the second if all unobserved runs had
        failed, and if all had succeeded (linear in between); flips, whether there is such a point.

    Raises
    ------
    ValueError
        If every outcome was observed, or the predictors are of different runs.

    See Also
    --------
    tps_bounds : With ``reference=``, for q_Z that differ from run to run.

    Examples
    --------
    >>> break_even_q([1, -1], [[0.8], [0.6]], [[0.7], [0.3]], score="brier").q
    0.366...
    """
    sample = _predictors(y_true, traces, other, sample_weight)
    if not (sample.y == CENSORED).any():
        raise ValueError("every outcome was observed; the verdict does not depend on any q_Z")
    base, slope = _linear_form(sample, score, weights, horizon)
    at_0 = base.mean(sample.weight)
    at_1 = at_0 + RunSums(slope, base.divisor).mean(sample.weight)
    q = np.nan
    if at_0 * at_1 <= 0 and at_0 != at_1:
        q = at_0 / (at_0 - at_1)
    return BreakEven(q, at_0, at_1)


def _predictors(
    y_true: ArrayLike, traces: Any, other: Any, sample_weight: ArrayLike | None
) -> Sample:
    """Check outcomes and the forecasts of one predictor, or of two."""
    predictors = {"traces": traces}
    if other is not None:
        predictors["other"] = other
    return check_forecasts(
        y_true, predictors, allow_censored=True, sample_weight=sample_weight, several=True
    )


def _linear_form(
    sample: Sample, score: Any, weights: Weights, horizon: Horizon
) -> tuple[RunSums, FloatArray]:
    """Return sums of runs at q_Z = 0, and what these gain per q_Z, 0 where it is not read.

    With two predictors they are differences of both.
    """
    how = as_step_weights(weights, horizon)
    failed = as_labels(sample.y).value
    base, slope = np.zeros((2, len(sample)))
    for sign, X in zip((1, -1), sample.traces.values(), strict=False):
        base += sign * run_sums(failed, X, score, how).total
        slope += sign * contrasts(X, score, how)
    divisor = how.of(sample.X).divisor()
    return RunSums(base, divisor), np.where(sample.y == CENSORED, slope, 0.0)


class ScoreInterval(NamedTuple):
    """A score with its interval, and its bootstrap standard error."""

    value: float
    low: float
    high: float
    std_error: float


def censored_tps_interval(
    y_true: ArrayLike,
    traces: Any,
    *,
    q_z: Any = 0.0,
    history: Any = None,
    branches: Any = None,
    score: Any = "log",
    weights: Weights = "early",
    horizon: Horizon = None,
    groups: ArrayLike | None = None,
    confidence_level: float = 0.95,
    **bootstrap_options: Any,
) -> ScoreInterval:
    """Bootstrap interval of the mean censored score; an estimator of q_Z is refitted each time.

    Parameters
    ----------
    y_true, traces : array-like and TrajectoryArray
        Outcomes and forecasts, as in `trajscore.metrics.censored_tps_score`.
    q_z : float, array-like of shape (n_runs,) or estimator, default=0.0
        Continuation-success probabilities, or an unfitted `ContinuationModel`. Shares
        of continuations (`MonteCarloContinuation`) are given as an array: their error is
        independent from run to run, so that resampling runs includes it.
    history : TrajectoryArray or array-like of shape (n_runs, T_max[, n_channels]), optional
        What the estimator learns from.
    branches : sequence of n_runs array-likes, optional
        Continuations for the estimator to learn from. Default: it learns from `y_true`.
    score, weights, horizon : score family and step weights
        As in `trajscore.metrics.tps_score`.
    groups : array-like of shape (n_runs,), optional
        Clusters of runs that are drawn together.
    confidence_level : float, default=0.95
        Level of the percentile interval.
    **bootstrap_options
        n_resamples, random_state and n_jobs of `trajscore.inference.bootstrap`.

    Returns
    -------
    ScoreInterval
        value; low and high, quantiles of the replicates; and std_error, their standard deviation.

    Raises
    ------
    ValueError
        If the runs to learn q_Z from have a constant outcome, or a replicate draws none of them;
        if history or branches come without an estimator; or if the forecast stopped some of the
        runs itself.

    Notes
    -----
    In a replicate in which the runs to learn q_Z from have a constant outcome, their share, 0 or
    1, stands for what the estimator would have learnt; a warning counts these replicates.

    Examples
    --------
    >>> from trajscore.datasets import make_trajectories
    >>> runs = make_trajectories(300, budget=6, random_state=0)
    >>> interval = censored_tps_interval(runs.target, runs.data, score="brier", random_state=0)
    >>> interval.low < interval.value < interval.high
    True
    """
    sample = check_forecasts(y_true, traces, allow_censored=True, groups=groups)
    refuse_own_stops(sample.traces)
    if isinstance(q_z, MonteCarloContinuation):
        raise ValueError("give the shares of continuations themselves: q_z=estimator.predict(X)")
    base, slope = _linear_form(sample, score, weights, horizon)
    q, learn = _learn_q_z(q_z, sample, history, branches)
    # runs are drawn in the order of their ids, so that the order of rows cannot matter
    place = np.arange(len(sample))
    if groups is None:
        place = np.argsort(sample.id_order())

    constant = []  # shares that stood for what could not be learnt

    def score_of_draws(in_order: FloatArray) -> FloatArray:
        counts = np.take(in_order, place, axis=1)
        totals = np.empty(counts.shape)
        for k, weight in enumerate(counts):
            try:
                learnt: Any = learn(weight)
            except ConstantOutcomeError as error:
                learnt = error.share
                constant.append(learnt)
            totals[k] = base.total + learnt * slope
        return (counts * totals).sum(axis=1) / (counts @ base.divisor)

    replicates = bootstrap(score_of_draws, len(sample), groups=sample.groups, **bootstrap_options)
    if constant:
        warnings.warn(
            f"in {len(constant)} of {len(replicates)} replicates, all runs to learn q_z "
            f"from had the same outcome, which was used as q_z; the interval is rough, so learn "
            f"from more runs",
            stacklevel=2,
        )
    value = RunSums(base.total + q * slope, base.divisor).mean(np.ones(len(sample)))
    std_error = float(replicates.std(ddof=1))
    low, high = percentile_interval(replicates, confidence_level)
    return ScoreInterval(value, float(low), float(high), std_error)


def _learn_q_z(
    q_z: Any, sample: Sample, history: Any, branches: Any
) -> tuple[FloatArray, Callable[..., FloatArray]]:
    """Return the q_Z of all runs, and a function that learns it from a draw of them."""
    if not hasattr(q_z, "fit"):
        if history is not None or branches is not None:
            raise ValueError("only an estimator of q_z learns from history and branches")
        estimates = as_labels(sample.y, censored="q_z", q_z=q_z).value
        return estimates, lambda weight: estimates
    if history is None:
        raise ValueError("an estimator of q_z needs history=, what it is to learn from")
    runs = check_trajectories(history)
    if len(runs) != len(sample):
        raise ValueError(f"there are {len(runs)} histories for {len(sample)} traces")
    model = clone(q_z).set_params(cv=None)  # held-out estimates are not read here
    censored = sample.y == CENSORED

    def learn(weight: FloatArray | None, predictor: Any = None) -> FloatArray:
        fitted = clone(model).fit(
            runs, sample.y, sample_weight=weight, predictor=predictor, branches=branches
        )
        q = np.zeros(len(censored))
        q[censored] = fitted.predict(runs[censored])
        return q

    of_all = learn(None, predictor=sample.X)
    model.set_params(allow_predictor=True)  # the fit to all runs has checked it
    return of_all, learn
