"""Comparisons free of the length of runs: at one step, among runs of one length.

Forecasts that were made out of fold are compared within folds. And what counting steps is worth:
the success rate among the runs that are still going.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import pandas as pd

from trajscore.calibration.cross_fit import LearnedForecaster, folds_of
from trajscore.calibration.forecaster import ANY_SCORES
from trajscore.core.array import TrajectoryArray
from trajscore.core.outcomes import opposite
from trajscore.core.policy import MIN_RUNS_PER_OUTCOME
from trajscore.core.ranking import auroc_within
from trajscore.core.score_families import CLIP, get_family
from trajscore.core.statistics import MeanOfRuns
from trajscore.core.values import (
    ArrayLike,
    BoolArray,
    FloatArray,
    IntArray,
    as_within,
    check_choice,
)
from trajscore.core.weights import Horizon, Weights, as_step_weights, score_cells
from trajscore.core.within_runs import end_mask, step_numbers
from trajscore.inference.intervals import any_units
from trajscore.inference.mean_intervals import interval_of, intervals_of_means

# Up to 10 steps a bin is one length; lengths of one bin differ by a tenth at most.
_WIDTH = 0.1
_FIRST_STEPS = (1, 2, 3, 4, 6, 8)


def length_bins(lengths: IntArray) -> IntArray:
    """Return the bin of each length: runs of one bin are equally long, or nearly so.

    >>> length_bins(np.array([9, 10, 11, 12, 13, 14])).tolist()
    [9, 10, 10, 11, 11, 12]
    """
    edges = [1]
    longest = int(lengths.max(initial=0))
    while edges[-1] <= longest:
        edges.append(int(edges[-1] * (1 + _WIDTH)) + 1)
    return np.searchsorted(edges, lengths, side="right")


def round_steps(longest: int) -> list[int]:
    """Return the steps at which forecasts are judged.

    >>> round_steps(60)
    [1, 2, 3, 4, 6, 8, 10, 15, 20, 30, 50]
    """
    decades = 10 ** np.arange(1, len(str(longest)))
    later = np.multiply.outer(decades, (1.0, 1.5, 2.0, 3.0, 5.0)).ravel().astype(int).tolist()
    return [t for t in [*_FIRST_STEPS, *later] if t <= longest]


def has_both(success: FloatArray) -> bool:
    """Whether there are enough runs of each outcome."""
    return bool(min(success.sum(), (1 - success).sum()) >= MIN_RUNS_PER_OUTCOME)


def at_step(X: TrajectoryArray, t: int) -> tuple[IntArray, FloatArray]:
    """Return the runs of at least t steps that have a value after step t, and these values."""
    rows = np.flatnonzero(X.lengths >= t)
    values = X.cells.ravel()[X.offsets[rows] + t - 1]
    there = ~np.isnan(values)
    return rows[there], values[there]


def runs_with_a_partner(success: FloatArray, stratum: IntArray) -> IntArray:
    """Return the runs that have one of another outcome in their stratum.

    >>> runs_with_a_partner(np.array([1.0, 0, 1, 0]), np.array([5, 5, 7, 8]))
    array([0, 1])
    """
    code = np.unique(stratum, return_inverse=True)[1]
    successes, failures = (np.bincount(code, part) for part in (success, 1 - success))
    return np.flatnonzero((np.minimum(successes, failures) > 0)[code])


AUROC = ("AUROC", "AUROC_low", "AUROC_high")
MARGIN = ("margin", "margin_low", "margin_high")
COLUMNS = ["n_runs", "success_rate", *AUROC, "score", *MARGIN]


def step_table(
    X: TrajectoryArray,
    success: FloatArray,
    groups: IntArray | None,
    forecasts: TrajectoryArray | None,
    score: Any = "log",
    confidence_level: float = 0.95,
) -> pd.DataFrame:
    """Return AUROC of traces and the score of forecasts at steps that enough runs reach.

    The score's margin is over the success rate of the runs that reach the step. A run without a
    value at a step is left out there; forecasts have all that the traces have.
    """
    rows = {}
    for t in round_steps(int(X.lengths.max(initial=0))):
        runs, values = at_step(X, t)
        labels = success[runs]
        units = None if groups is None else groups[runs]
        if not has_both(labels):
            continue
        ends = auroc_interval(values, labels, folds_of(X)[runs], units, confidence_level)
        scored = (np.nan,) * (1 + len(MARGIN))
        if forecasts is not None:
            p = forecasts.cells.ravel()[X.offsets[runs] + t - 1]
            of_run, constant = (
                _both_ways(of, labels, score) for of in (p, np.full(len(p), labels.mean()))
            )
            (three,) = intervals_of_means(
                [of_run - constant], any_units(units, len(p)), confidence_level
            )
            scored = of_run.mean, *three
        rows[t] = len(runs), labels.mean(), *ends, *scored
    index = pd.Index(list(rows), name="step", dtype=np.int64)
    table = pd.DataFrame(list(rows.values()), index=index, columns=COLUMNS, dtype=float)
    return table.astype({"n_runs": np.int64})


def auroc_interval(
    confidence: FloatArray,
    success: FloatArray,
    stratum: IntArray,
    groups: IntArray | None,
    confidence_level: float,
) -> tuple[float, float, float]:
    """Return AUROC within strata, with its interval.

    Where it is 0 or 1 nothing varies. Then m pairs of different runs are in order, with chance
    AUROC^m at most, so that the interval ends at (alpha / 2)^(1/m).
    """
    estimate = auroc_within(confidence, success, stratum)
    area, low, high = interval_of(*estimate, groups, confidence_level, on_logit=True)
    if area in (0.0, 1.0):
        unit = np.arange(len(success)) if groups is None else groups
        reach = ((1 - confidence_level) / 2) ** (1 / _disjoint_pairs(success, stratum, unit))
        if area:
            return area, min(low, reach), area
        return area, area, max(high, 1 - reach)
    return area, low, high


def _disjoint_pairs(success: FloatArray, stratum: IntArray, unit: IntArray) -> float:
    """Count pairs of a success and a failure within strata, of which none shares a unit."""
    won = success >= 0.5
    n_won, n_lost, n_units = (
        np.bincount(
            np.unique(np.stack([stratum[used], unit[used]]), axis=1)[0],
            minlength=int(stratum.max()) + 1,
        )
        for used in (won, ~won, np.ones_like(won))
    )
    pairs = np.minimum(np.minimum(n_won, n_lost), n_units // 2).sum()
    return float(max(1, min(pairs, len(np.unique(unit)) // 2)))


def _both_ways(p: FloatArray, success: FloatArray, score: Any) -> MeanOfRuns:
    """Return the score of forecasts, and what it were, had each run ended the other way."""
    family = get_family(score)
    return MeanOfRuns(*(score_cells(family, p, y) for y in (success, opposite(success))))


class AliveRate(LearnedForecaster):
    """Forecast the success rate of the runs that are still going, P(Y = 1 | still running at t).

    It reads nothing but the number of steps, so a forecast that is worth its cost has a better
    score. Beyond 10 steps, steps that differ by a tenth share a rate. Where few runs are left, the
    rate leans towards the one before.

    Parameters
    ----------
    end : {"step"} or None, default=None
        Whether it is known, with the last step of a run, that the run has ended. There are then
        two rates at a step, of the runs that end there and of those that go on. In fitting, runs
        with an observed outcome have ended unless ``X.ended`` says which; of new ones ``X.ended``
        says so.
    prior : float, default=5.0
        Number of runs with which a rate leans towards the one before.
    weights, horizon : str or callable, and int, "own" or None
        Weights of the steps in the rates. Those that depend on the step alone change hardly
        anything; ``weights="linear_front", horizon="own"`` tilts the rate towards the outcome of
        short runs, as the weights of the paper reward.
    censored : {"failure", "drop"}, default="failure"
        What runs with outcome -1 are in fitting.

    Attributes
    ----------
    going_, ended_ : ndarray of shape (n_bins,)
        Rates by bin of steps, of runs that go on (without `end`: of all) and of runs that end.
    n_censored_, n_dropped_ : int
        Training runs without an observed outcome, and those of them (or of weight zero) left out.
    n_channels_in_ : int
        Number of channels, which are not read.

    See Also
    --------
    PrefixForecaster : Reads the scores, too.
    trajscore.calibration.cross_fit_traces : Gives its forecasts out of fold.

    Examples
    --------
    >>> from trajscore.calibration import AliveRate
    >>> X, y = [[0.5], [0.5, 0.5], [0.5, 0.5]], [1, 0, 0]
    >>> AliveRate(prior=1).fit(X, y).transform(X).padded().round(2)
    array([[0.33,  nan],
           [0.33, 0.11],
           [0.33, 0.11]])
    """

    _output_channels = ("probability",)
    _reads = ANY_SCORES

    def __init__(
        self,
        end: str | None = None,
        prior: float = 5.0,
        weights: Weights = "uniform",
        horizon: Horizon = None,
        censored: str = "failure",
    ) -> None:
        self.end = end
        self.prior = prior
        self.weights = weights
        self.horizon = horizon
        self.censored = censored

    def fit(
        self,
        X: Any,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
    ) -> Self:
        """Count successes among the runs that are still going.

        Parameters
        ----------
        X : TrajectoryArray or array-like of shape (n_runs, T_max)
            Runs, of which the lengths alone are read.
        y : array-like of shape (n_runs,)
            Outcomes: 1 success, 0 failure, -1 not observed, or a grade in [0, 1].
        sample_weight : array-like of shape (n_runs,), optional
            Weight of each run.
        groups : array-like of shape (n_runs,), optional
            Not read here: ``fit_transform`` keeps runs of one group in one fold.

        Returns
        -------
        AliveRate
            The fitted forecaster.

        Raises
        ------
        ValueError
            If a parameter cannot be used, or no run counts.
        """
        training = self._training_runs(X, y, sample_weight)
        runs, label, weight, _, success, failure = training.steps(
            as_step_weights(self.weights, self.horizon)
        )
        ended = training.X.ended
        if not ended.any():
            ended = training.labels.observed
        is_end = end_mask(runs, (ended & (self.end is not None))[training.rows])
        step = step_numbers(runs)
        bins = length_bins(step)
        n_runs = np.bincount(bins, np.repeat(weight, runs.lengths))
        weighed = np.bincount(bins, success + failure)
        # weights say which steps of a bin count more; together they weigh as many as they are, as
        # the prior is a number of runs
        scale = np.divide(n_runs, weighed, out=np.ones_like(weighed), where=weighed > 0)[bins]
        # a run that goes on is in a bin as often as that has steps, and ends in one only once
        width = np.bincount(length_bins(np.arange(1, step.max() + 1)))
        rate = float(np.average(label, weights=weight))
        won, total = (  # of runs that go on, and of those that end
            [np.bincount(bins[used], part[used], len(width)) for used in (~is_end, is_end)]
            for part in (success * scale, (success + failure) * scale)
        )
        self.going_ = np.empty(len(width))
        for k, n_steps in enumerate(np.maximum(width, 1)):
            # each rate leans towards the one before
            rate = (won[0][k] / n_steps + self.prior * rate) / (total[0][k] / n_steps + self.prior)
            self.going_[k] = rate
        self.ended_ = (won[1] + self.prior * self.going_) / (total[1] + self.prior)
        return self

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_choice(self.end, "end", ("step", None))
        as_within(self.prior, "prior", 0, np.inf)
        as_step_weights(self.weights, self.horizon)

    def _begin(self, n: int) -> int:
        return 0

    def _advance(
        self, state: int, scores: FloatArray, done: BoolArray | None
    ) -> tuple[int, FloatArray]:
        is_end = False if done is None else done
        return state + 1, self._rates(np.full(len(scores), state + 1), is_end)

    def _forecasts(self, X: TrajectoryArray) -> FloatArray:
        return self._rates(step_numbers(X), end_mask(X, X.ended))

    def _rates(self, step: IntArray, is_end: BoolArray | bool) -> FloatArray:
        bins = np.minimum(length_bins(step), len(self.going_) - 1)
        rates = self.going_[bins]
        if self.end is not None:
            rates = np.where(is_end, self.ended_[bins], rates)
        return np.clip(rates, CLIP, 1 - CLIP)
