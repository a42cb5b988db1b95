"""Metrics as functions of how often each run counts: a bootstrap replicate is one more weighting.

A metric of many runs is a mean of one number a run (`MeanOfRuns`), a function of the failures and
successes at each confidence (`OfTies`), or a sum of absolute means (`CalibrationError`). All are
called with run weights of shape (..., n_runs) and return one value for each weighting;
`all_at_once` does so for a whole table of them.

The influence of a run is n_runs times the derivative of the metric in the logarithm of the run's
weight, by default where all runs weigh 1: of a mean, the run's deviation from it.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

import numpy as np

from trajscore.core.ranking import GRADIENTS, TieGroups
from trajscore.core.values import FloatArray, FloatPair, undefined_is_nan
from trajscore.core.weights import RunSums


@dataclass(frozen=True)
class MeanOfRuns:
    """Mean of one number a run, or sum of it over that of a divisor; arrays of shape (n_runs,)."""

    samples: FloatArray
    other: Any = None  # the numbers, had each run ended the other way, where that is asked for
    divisor: FloatArray | None = None  # such as the weight of a run's steps; None for one each

    def __call__(self, run_weight: FloatArray) -> FloatArray:
        """Return the mean for each weighting, NaN where no run counts."""
        with undefined_is_nan():
            return np.asarray((run_weight @ self.samples) / (run_weight @ self._sizes))

    @property
    def mean(self) -> float:
        """Mean over all runs, each of which counts once."""
        return float(self(np.ones(len(self.samples))))

    @property
    def _sizes(self) -> FloatArray:
        return np.ones(len(self.samples)) if self.divisor is None else self.divisor

    def influence(self, weight: FloatArray) -> FloatArray:
        """Return the influence of each run, of which these weights count."""
        total = (weight * self._sizes).sum()
        mean = (weight * self.samples).sum() / total
        deviations = weight * (self.samples - mean * self._sizes) / total
        return len(weight) * deviations

    def change(self, weight: FloatArray) -> FloatArray:
        """Return what each run would add to the mean, had it ended the other way."""
        return weight * (self.other - self.samples) / (weight * self._sizes).sum()

    def __sub__(self, reference: Self) -> Self:
        """Return what it is above another one of the same runs, with the same divisor."""
        samples = self.samples - reference.samples
        return replace(self, samples=samples, other=self.other - reference.other)

    def pseudo_values(self) -> FloatArray:
        """Return numbers whose plain mean is this one, and which vary as it does."""
        return RunSums(self.samples, self._sizes).samples()


@dataclass(frozen=True)
class OfTies:
    """Function of the weight of failures and of successes in each group of tied runs.

    Functions are those of `ranking`, which has their derivatives, too.
    """

    ties: TieGroups
    function: Callable[[FloatArray, FloatArray], FloatArray]

    def __call__(self, run_weight: FloatArray) -> FloatArray:
        """Return the value for each weighting, NaN where it does not exist."""
        return self.function(*self.ties.sums(run_weight))

    def influence(self, weight: FloatArray) -> FloatArray:
        """Return the influence of each run; NaN where the value does not exist."""
        derivatives = GRADIENTS[self.function](*self.ties.sums(weight))
        return len(weight) * weight * self.ties.to_runs(*derivatives)


class BinMeans(NamedTuple):
    """Means of shape (n_bins,) and the influences of runs on them, of shape (n_runs, n_bins)."""

    mean: FloatArray
    influence: FloatArray


@dataclass(frozen=True)
class CalibrationError:
    """Sum over bins of the absolute value of the mean gap between outcomes and forecasts.

    `gaps`, of shape (n_runs, n_bins), are the weighted sums of a run's gaps (outcome less forecast)
    in each bin that is not empty.
    """

    gaps: FloatArray
    weight: FloatArray  # of shape (n_runs,): the sums of these weights

    def __call__(self, run_weight: FloatArray) -> FloatArray:
        """Return the value for each weighting, NaN where nothing has a weight; bins stay."""
        with undefined_is_nan():
            return np.abs(run_weight @ self.gaps).sum(axis=-1) / (run_weight @ self.weight)

    def bins(self, weight: FloatArray) -> BinMeans:
        """Return the mean gap of each bin; the influences on them take as much memory as `gaps`."""
        total = weight @ self.weight
        with undefined_is_nan():  # NaN where nothing has a weight
            mean = weight @ self.gaps / total
            deviations = self.weight[:, None] * mean
            np.subtract(self.gaps, deviations, out=deviations)
            deviations *= (len(weight) / total) * weight[:, None]
        return BinMeans(mean, deviations)


Statistic = MeanOfRuns | OfTies | CalibrationError


def all_at_once(metrics: Mapping[Any, Statistic]) -> Callable[[FloatArray], FloatArray]:
    """Return a function from run weights (..., n_runs) to metrics (..., n_metrics), in their order.

    Runs are added up once for metrics of the same `ties`: the same object, not an equal one.
    """

    def values(run_weight: FloatArray) -> FloatArray:
        out = np.empty((*run_weight.shape[:-1], len(metrics)))
        sums: dict[int, FloatPair] = {}
        for place, statistic in enumerate(metrics.values()):
            if isinstance(statistic, OfTies):
                ties = statistic.ties
                if id(ties) not in sums:
                    sums[id(ties)] = ties.sums(run_weight)
                out[..., place] = statistic.function(*sums[id(ties)])
            else:
                out[..., place] = statistic(run_weight)
        return out

    return values
