"""Which interval holds: by influences where many runs carry the variance, else by bootstrap."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from trajscore.core.type_aliases import BoolArray, FloatArray, FloatPair, IntArray
from trajscore.inference.influence import Spread, Units, any_units, bounds
from trajscore.inference.intervals import bca_interval, percentile_interval, with_unseen
from trajscore.inference.resampling import bootstrap_many_means, bootstrap_means

METHODS = ("auto", "bootstrap", "influence")

# With fewer runs, or clusters, that carry the variance an interval by influences covers too little
# (benchmarks/intervals.py). Of few a quarter will do, as t allows for their number, and more where
# they are unequal.
ENOUGH = 30
_SHARE = 0.25
_MOST_DRAWS = 4000
# of means over more runs those of the largest deviations are drawn
_MANY = 1 << 13
# with so few of a rare outcome it is chance whether enough runs seem to carry the variance
_RARE = 0.1
_FEW = 60


def n_of_rarer_outcome(n_success: Any, n_runs: Any) -> Any:
    """Return the number of runs of the rarer outcome, of one set of runs or of several."""
    return np.round(np.minimum(n_success, n_runs - n_success), 9)  # rates may be off by rounding


def is_rare(labels: FloatArray) -> bool:
    """Whether there are few runs of an outcome that is rare."""
    return bool(n_of_rarer_outcome(labels.sum(), len(labels)) < min(_FEW, _RARE * len(labels)))


@dataclass(frozen=True)
class InfluenceIntervals:
    """Intervals by influences, where they hold, and the skewness that a bootstrap corrects for."""

    low: FloatArray
    high: FloatArray
    holds: BoolArray
    skewness: FloatArray


def by_influence(
    estimate: FloatArray,
    influence: FloatArray,
    units: Units,
    confidence_level: float,
    on_logit: ArrayLike = False,
) -> InfluenceIntervals:
    """Return intervals by influences, none of which may be NaN, and which intervals hold."""
    quantile = units.t_quantile(confidence_level)
    spread = Spread(influence, units)
    half_width = spread.half_width(quantile)
    low, high = bounds(estimate, half_width, np.asarray(on_logit))
    enough = min(ENOUGH, _SHARE * units.n_units**2 / units.n_effective)
    return InfluenceIntervals(low, high, spread.n_carrying() >= enough, spread.acceleration())


def by_bootstrap(
    replicates: FloatArray, estimate: FloatArray, skewness: FloatArray, confidence_level: float
) -> FloatPair:
    """Return BCa intervals, or percentiles where all replicates lie on one side."""
    low, high = bca_interval(replicates, estimate, skewness, confidence_level)
    plain_low, plain_high = percentile_interval(replicates, confidence_level)
    missing = np.isnan(low)
    return np.where(missing, plain_low, low), np.where(missing, plain_high, high)


def interval_of(
    estimate: float,
    influence: FloatArray,
    groups: IntArray | None,
    confidence_level: float,
    *,
    on_logit: bool = False,
) -> tuple[float, float, float]:
    """Return a statistic with its interval, by each run's influence; NaN: it does not count."""
    units = any_units(groups, len(influence))
    psi = np.nan_to_num(influence)[:, None]
    intervals = by_influence(np.array([estimate]), psi, units, confidence_level, on_logit)
    return estimate, float(intervals.low[0]), float(intervals.high[0])


def intervals_of_means(
    values: FloatArray,
    changes: Sequence[FloatArray],
    units: Units,
    confidence_level: float,
    *,
    n_resamples: int = 1000,
    random_state: Any = 0,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return means of the columns of `values` with intervals that know of losses not seen yet.

    By influences where these hold, else by bootstrap, never shorter than by influences: few runs
    hide what is rare. `changes` holds the `change` of `unseen_reach` for each column.
    """
    n = len(values)
    mean = values.mean(axis=0)
    intervals = by_influence(mean, values - mean, units, confidence_level)
    low = intervals.low
    high = intervals.high
    if not intervals.holds.all():
        # a tail of the level has to hold some replicates
        least = min(_MOST_DRAWS, math.ceil(40 / (1 - confidence_level)))
        options = {"n_resamples": max(n_resamples, least), "random_state": random_state}
        if units.codes is None and n > _MANY:
            drawn = bootstrap_many_means(values, **options)
        else:
            drawn = bootstrap_means(values, units, **options)
        expanded = units.expanded_level(confidence_level)
        ends = by_bootstrap(drawn, mean, intervals.skewness, expanded)
        low = np.where(intervals.holds, low, np.minimum(low, ends[0]))
        high = np.where(intervals.holds, high, np.maximum(high, ends[1]))
    return mean, *with_unseen(low, high, mean, changes, units, confidence_level)
