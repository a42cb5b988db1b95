"""How many more runs would settle what to do with a predictor, and what a map of many would gain.

Assurance is the chance, as forecast from the runs at hand, that an interval of more runs will
decide. With a flat prior, the true margin given n runs is normal around their estimate m, with
variance s^2 / n. The estimate of these and k more runs then varies around m with variance

    (s^2 / n) k / (n + k),

as the k new ones have the mean (true margin) + noise of s^2 / k and the weight k / (n + k). What is
needed is the smallest k with which an interval around that estimate, whose half width shrinks to
z s / sqrt(n + k), lies above zero and the estimate above what matters, or wholly below what
matters, with a chance of at least `MIN_ASSURANCE`.

References
----------
O'Hagan, Stevens and Campbell (2005), Assurance in clinical trial design, Pharmaceutical Statistics
4: the chance of a conclusion, over what is not known of the effect.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import gammaincinv, logit, ndtr, ndtri

from trajscore.core.policy import MIN_ASSURANCE, MIN_RUNS_PER_OUTCOME
from trajscore.core.score_families import ScoreFamily
from trajscore.core.statistics import MeanOfRuns
from trajscore.core.ties import SUM_ROUNDING
from trajscore.core.weights import StepWeights
from trajscore.evaluation.rows import Row
from trajscore.inference.comparison import ONE_DIGIT
from trajscore.inference.intervals import Spread, Units

# Expected number with which a Poisson number is at least MIN_RUNS_PER_OUTCOME with a chance of 0.8.
_EXPECTED_PER_OUTCOME = float(gammaincinv(MIN_RUNS_PER_OUTCOME, 0.8))
# Log-odds of forecasts closer to 0 or 1 would drown those of others.
_SMALLEST_FORECAST = 0.01
# More than so many times the runs that there are is no advice.
_MAX_TIMES = 100


def runs_needed(
    n_runs: int,
    n_rarer: float,
    *,
    margin: Sequence[float] = (0.0, 0.0, 0.0),
    spread: float = 0.0,
    matters: float = 0.0,
    level: float = 0.95,
    slope: Slope | None = None,
    learns: bool = False,
) -> int:
    """Return about how many more runs decide about a predictor, in one digit.

    Parameters
    ----------
    n_runs, n_rarer
        Runs at hand, and how many of them have the rarer outcome.
    margin : (estimate, low, high)
        Margin over the base rate, with its interval.
    spread : float
        Standard deviation of that margin between runs.
    matters : float
        The smallest margin that matters.
    level : float
        Level of the interval.
    slope : Slope, optional
        What an increasing map of many runs would gain, which may rule the predictor out as well.
    learns : bool
        Whether the margin is that of a map, which gains from having more runs.
    """
    n, (estimate, low, high) = n_runs, margin
    least = max(_EXPECTED_PER_OUTCOME * (n + 1) / (n_rarer + 0.5) - n, n / 10)
    more = ONE_DIGIT[least <= ONE_DIGIT]
    more = more[: 1 + np.searchsorted(more, _MAX_TIMES * n)]
    if spread <= SUM_ROUNDING * matters:
        return int(more[0])
    share = more / (n + more)
    expected = np.full(len(more), estimate)
    if slope is not None and learns:
        expected = expected + share * max(slope.worth - estimate, 0.0)
    error = spread / np.sqrt(n) * np.sqrt(share)
    reach = spread / np.sqrt(n + more) * float(ndtri((1 + level) / 2))
    # what is wider, by skewness or by losses not seen yet, narrows with the number of runs
    below = np.fmax(reach, (1 - share) * (estimate - low))
    above = np.fmax(reach, (1 - share) * (high - estimate))
    is_useful = ndtr((expected - np.maximum(below, matters)) / error)
    is_useless = ndtr((matters - above - expected) / error)
    if slope is not None and slope.curvature > 0:
        largest = np.sqrt(2 * matters / slope.curvature)
        highest = slope.value + float(ndtri(level)) * slope.error * np.sqrt(1 - share)
        may_be_small = ndtr((largest - highest) / (slope.error * np.sqrt(share)))
        is_useless = np.minimum(is_useless, may_be_small)
    decided = np.maximum.accumulate(is_useful + is_useless) >= MIN_ASSURANCE
    return int(more[np.flatnonzero(decided)[0]] if decided.any() else more[-1])


def spread_of(mean: MeanOfRuns, units: Units) -> float:
    """Return the standard deviation of runs that counts: of clusters, what they add to it."""
    n_runs = len(mean.samples)
    influence = mean.influence(np.ones(n_runs))[:, None]
    return float(Spread(influence, units).half_width(1.0)[0] * np.sqrt(n_runs))


@dataclass(frozen=True)
class Slope:
    """Slope of the log-odds of success in a signal, to first order, and what it is worth.

    A map fitted to few runs loses more than the signal is worth to a map of many, so that the
    recalibrated form alone says too little of the signal.
    """

    value: float
    error: float  # standard error, over runs or clusters
    curvature: float  # of the score in the slope

    @property
    def worth(self) -> float:
        """Estimate of what an increasing map of many runs gains over the base rate."""
        unbiased = self.value * abs(self.value) - self.error**2
        return self.curvature / 2 * max(unbiased, 0.0)

    @property
    def noise(self) -> float:
        """Twice what maps fitted to one half each lose by their slopes and intercepts."""
        return 4 * self.curvature * self.error**2

    def most(self, level: float, recalibrated: float) -> float:
        """Upper bound of what an increasing map of many runs gains over the base rate.

        `recalibrated` is that of the map fitted to these runs; NaN where there is none.
        """
        highest = self.value + float(ndtri(level)) * self.error
        by_slope = self.curvature / 2 * max(highest, 0.0) ** 2
        return float(np.fmin(by_slope, recalibrated + self.noise))


def slope_of(row: Row, family: ScoreFamily, weights: StepWeights) -> Slope:
    """Return the slope of a row as given: that of one Newton step from the best constant."""
    X, of_runs = row.traces, weights.of(row.traces)
    cells = (
        logit(X.cells.clip(_SMALLEST_FORECAST, 1 - _SMALLEST_FORECAST))
        if row.is_probability
        else X.cells
    )
    w = of_runs.cells() / of_runs.divisor().sum()
    x = cells - np.average(cells, weights=w)
    p = of_runs.rate(row.runs.labels)
    information = p * (1 - p) * float(w @ x**2)
    if not information > 0:
        return Slope(0.0, 0.0, 0.0)
    step = 1e-4 * p * (1 - p)
    success = family.success(np.array([p - step, p + step]))
    relative = float(np.diff(success)[0]) / (2 * step) * p  # to that of the log score
    moved = np.add.reduceat(w * x, X.offsets[:-1])  # by a run's gap
    totals = moved * (row.runs.labels - p)
    of_units = row.runs.units.sums(totals)
    error = float(np.sqrt((of_units**2).sum())) / information
    return Slope(float(totals.sum()) / information, error, relative * information)
