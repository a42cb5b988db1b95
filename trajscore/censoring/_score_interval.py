"""Intervals for censored scores that include the error of an estimated q_Z."""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone

from trajscore.censoring._monte_carlo import MonteCarloContinuation
from trajscore.censoring._shares import ConstantOutcomeError
from trajscore.core.checks import check_trajectories
from trajscore.core.outcomes import CENSORED, as_labels
from trajscore.core.run_sums import RunSums, contrast_sums, run_sums
from trajscore.core.sample import Sample, check_sample, refuse_own_stops
from trajscore.core.type_aliases import FloatArray
from trajscore.core.weights import Horizon, Weights, as_step_weights
from trajscore.inference import bootstrap
from trajscore.inference.bootstrap_intervals import percentile_interval


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
    sample = check_sample(traces, y_true, groups=groups, probabilities=True, single_channel=True)
    refuse_own_stops({"": sample.X})
    if isinstance(q_z, MonteCarloContinuation):
        raise ValueError("give the shares of continuations themselves: q_z=estimator.predict(X)")
    y = sample.y
    how = as_step_weights(weights, horizon)
    base = run_sums(as_labels(y).value, sample.X, score, how)
    slope = np.where(y == CENSORED, contrast_sums(sample.X, score, how).total, 0.0)
    learns = hasattr(q_z, "fit")
    if not learns and (history is not None or branches is not None):
        raise ValueError("only an estimator of q_z learns from history and branches")
    refitted = _Refitted(q_z, sample, history, branches, base, slope) if learns else None
    q = as_labels(y, censored="q_z", q_z=q_z).value if refitted is None else refitted.q
    sums = RunSums(base.total + q * slope, base.divisor)
    # runs are drawn in the order of their ids, so that the order of rows cannot matter
    place = np.arange(len(sample)) if groups is not None else np.argsort(sample.id_order())

    def score_of_draws(in_order: FloatArray) -> FloatArray:
        counts = np.take(in_order, place, axis=1)
        if refitted is not None:
            return refitted(counts)
        return np.asarray(counts @ sums.total / (counts @ sums.divisor))

    replicates = bootstrap(score_of_draws, len(sample), groups=sample.groups, **bootstrap_options)
    if refitted is not None and refitted.constant:
        warnings.warn(
            f"in {len(refitted.constant)} of {len(replicates)} replicates, all runs to learn q_z "
            f"from had the same outcome, which was used as q_z; the interval is rough, so learn "
            f"from more runs",
            stacklevel=2,
        )
    value, std_error = sums.mean(np.ones(len(sample))), float(replicates.std(ddof=1))
    low, high = percentile_interval(replicates, confidence_level)
    return ScoreInterval(value, float(low), float(high), std_error)


class _Refitted:
    """Score of draws of runs, where q_Z is learnt anew from each draw."""

    def __init__(
        self,
        estimator: Any,
        sample: Sample,
        history: Any,
        branches: Any,
        base: RunSums,
        slope: FloatArray,
    ) -> None:
        if history is None:
            raise ValueError("an estimator of q_z needs history=, what it is to learn from")
        self._history = check_trajectories(history)
        if len(self._history) != len(sample):
            raise ValueError(f"there are {len(self._history)} histories for {len(sample)} traces")
        self._model = clone(estimator)
        if "cv" in self._model.get_params():
            self._model.set_params(cv=None)  # held-out estimates are not read here
        self._y, self._branches = sample.y, {} if branches is None else {"branches": branches}
        self._base, self._slope = base, slope
        self._censored = sample.y == CENSORED
        self.q = self._learnt(None, predictor=sample.X)  # of all runs
        if "allow_predictor" in self._model.get_params():
            self._model.set_params(allow_predictor=True)  # the fit to all runs has checked it
        self.constant: list[float] = []  # shares that stood for what could not be learnt

    def __call__(self, counts: FloatArray) -> FloatArray:
        values = np.empty(counts.shape)
        for k, weight in enumerate(counts):
            try:
                q = self._learnt(weight)
            except ConstantOutcomeError as error:
                self.constant.append(error.share)
                q = np.where(self._censored, error.share, 0.0)
            values[k] = self._base.total + q * self._slope
        return np.asarray((counts * values).sum(axis=1) / (counts @ self._base.divisor))

    def _learnt(self, weight: FloatArray | None, predictor: Any = None) -> FloatArray:
        q = np.zeros(len(self._censored))
        model = clone(self._model).fit(
            self._history, self._y, sample_weight=weight, predictor=predictor, **self._branches
        )
        q[self._censored] = model.predict(self._history[self._censored])
        return q
