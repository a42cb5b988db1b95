"""What counting steps is worth: the success rate among the runs that are still going."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from trajscore.calibration.cross_fit import LearnedForecaster
from trajscore.calibration.fixed_step import length_bins
from trajscore.core.array import TrajectoryArray
from trajscore.core.score_families import CLIP
from trajscore.core.type_aliases import BoolArray, FloatArray, IntArray
from trajscore.core.values import is_number
from trajscore.core.weights import Horizon, Weights, as_step_weights
from trajscore.core.within_runs import end_mask, step_numbers


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
    _reads = {"probabilities": False, "single_channel": False, "allow_missing": True}  # noqa: RUF012

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
        traces, labels, weight = self._training_runs(X, y, sample_weight)
        if not weight.any():
            raise ValueError("no training run counts; give runs with an observed outcome")
        counted = np.repeat(weight, traces.lengths)
        mass = as_step_weights(self.weights, self.horizon).of(traces).cells() * counted
        label = np.repeat(labels.value, traces.lengths)
        ended = traces.ended
        if not ended.any():
            ended = labels.observed
        is_end = end_mask(traces, ended & (self.end is not None))
        step = step_numbers(traces)
        bins = length_bins(step)
        n_runs = np.bincount(bins, counted)
        weighed = np.bincount(bins, mass)
        # weights say which steps of a bin count more; together they weigh as many as they are, as
        # the prior is a number of runs
        mass *= np.divide(n_runs, weighed, out=np.ones_like(weighed), where=weighed > 0)[bins]
        # a run that goes on is in a bin as often as that has steps, and ends in one only once
        width = np.bincount(length_bins(np.arange(1, step.max() + 1)))
        rate = float(np.average(labels.value, weights=weight))
        going = _counts(bins, mass, label, ~is_end) / np.maximum(width, 1)
        self.going_ = np.empty(going.shape[1])
        for k, (won, total) in enumerate(going.T):  # each rate leans towards the one before
            rate = (won + self.prior * rate) / (total + self.prior)
            self.going_[k] = rate
        ends = _counts(bins, mass, label, is_end)
        self.ended_ = (ends[0] + self.prior * self.going_) / (ends[1] + self.prior)
        return self

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.end not in ("step", None):
            raise ValueError(f"end must be 'step' or None, got {self.end!r}")
        if not is_number(self.prior) or not 0 < self.prior < np.inf:
            raise ValueError(f"prior must be a positive number of runs, got {self.prior!r}")
        as_step_weights(self.weights, self.horizon)

    def _begin(self, n: int) -> int:
        return 0

    def _advance(
        self, state: int, scores: FloatArray, done: BoolArray | None
    ) -> tuple[int, FloatArray]:
        if done is None:
            done = np.zeros(len(scores), dtype=bool)
        return state + 1, self._rates(np.full(len(scores), state + 1), done)

    def _forecasts(self, X: TrajectoryArray) -> FloatArray:
        return self._rates(step_numbers(X), end_mask(X, X.ended))

    def _rates(self, step: IntArray, is_end: BoolArray) -> FloatArray:
        bins = np.minimum(length_bins(step), len(self.going_) - 1)
        rates = self.going_[bins]
        if self.end is not None:
            rates = np.where(is_end, self.ended_[bins], rates)
        return np.clip(rates, CLIP, 1 - CLIP)


def _counts(bins: IntArray, mass: FloatArray, label: FloatArray, used: BoolArray) -> FloatArray:
    """Weight of successes and of all runs in each bin of steps."""
    size = int(bins.max()) + 1
    sums = [np.bincount(bins[used], part[used], size) for part in (mass * label, mass)]
    return np.stack(sums)
