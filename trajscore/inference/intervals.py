"""Intervals: from influences, from bootstrap replicates, of rates, and for losses not seen yet."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from scipy.special import betaincinv, expit, gammaincinv, logit, ndtr, ndtri, stdtrit

from trajscore.core.checks import check_groups
from trajscore.core.policy import MIN_EFFECTIVE_CLUSTERS
from trajscore.core.statistics import BinMeans
from trajscore.core.ties import ROUNDING, SUM_ROUNDING
from trajscore.core.values import (
    AnyArray,
    ArrayLike,
    BoolArray,
    FloatArray,
    FloatPair,
    IntArray,
    as_fraction,
    is_count,
    undefined_is_nan,
)

_DRAWS = 4_000


def left_out_factor(sizes: AnyArray) -> FloatArray:
    """Return what turns a unit's total into the change when it is left out (CR3).

    The squares of these changes add up to the squared error.
    """
    n = np.count_nonzero(sizes)
    with undefined_is_nan():
        return np.sqrt((n - 1) / n) / (1 - sizes / sizes.sum())


class Spread:
    """How statistics vary, by the influences of runs, of shape (n_runs, n_statistics)."""

    def __init__(self, influence: FloatArray, units: Units) -> None:
        self.n_runs = len(influence)
        self._units = units
        self.totals = units.sums(influence)

    @cached_property
    def _powers(self) -> FloatArray:
        """Sums of the second, third and fourth powers of the totals."""
        squares = self.totals**2
        return np.stack([(squares * by).sum(axis=0) for by in (1, self.totals, squares)])

    def left_out(self) -> FloatArray:
        """Change of each statistic when a unit is left out (CR3), to be squared."""
        return left_out_factor(self._units.sizes)[:, None] * self.totals / self.n_runs

    def half_width(self, quantile: float) -> FloatArray:
        """Quantile times the standard error; 0 where nothing varies, infinite of one unit."""
        if self._units.n_units < 2:
            return np.full(self.totals.shape[1], np.inf)
        error = np.linalg.norm(self.left_out(), axis=0)
        return np.where(error > 0, quantile, 0.0) * error

    def draw(self) -> FloatArray:
        """Draw normal errors of all statistics, of the covariance that units have left out."""
        # given the clusters, sums of them with normal weights have just this covariance; its
        # symmetric root, and so every draw, moves with it, and does not jump as others do
        if self._units.codes is None:  # exactly, as the root of what is nearly 0 is not
            square = self.totals.T @ self.totals / (self.n_runs * (self.n_runs - 1))
        else:
            changes = self.left_out()
            square = changes.T @ changes
        values, vectors = np.linalg.eigh(square)
        root = vectors * np.sqrt(np.maximum(values, 0)) @ vectors.T
        return _normal_draws(len(root)) @ root

    def n_carrying(self) -> FloatArray:
        """Count the units that carry the variance: n if all are alike, k if k of them are far.

        Of a rare outcome it is the number of times that it occurs, of a normal sample n / 3.
        """
        total, _, fourth = self._powers
        varies = total > ROUNDING**2 * self.n_runs
        with undefined_is_nan():
            return np.where(varies, total**2 / fourth, np.inf)

    def acceleration(self) -> FloatArray:
        """Return sum U^3 / (6 (sum U^2)^(3/2)) over units; 0 for a statistic that no unit moves."""
        total, third, _ = self._powers
        spread = total**1.5
        return np.divide(third, 6 * spread, out=np.zeros_like(third), where=spread > 0)


@lru_cache(maxsize=8)
def _normal_draws(n: int) -> FloatArray:
    """Return the standard normal draws that all errors of n statistics come from."""
    return np.random.default_rng(0).standard_normal((_DRAWS, n))


def warn_few_clusters(units: Units) -> None:
    """Warn where there are fewer than 15 clusters, or they are equivalent to fewer equal ones."""
    effective = units.n_effective
    if units.codes is None or effective >= MIN_EFFECTIVE_CLUSTERS:
        return
    equal = "" if effective > units.n_units - 0.5 else f", equivalent to {effective:.1f} equal ones"
    warnings.warn(
        f"there are {units.n_units} clusters of runs{equal}; intervals from fewer than "
        f"{MIN_EFFECTIVE_CLUSTERS} are wide and may cover less than they say, so collect "
        f"runs of more tasks",
        stacklevel=3,
    )


def bounds(value: FloatArray, half_width: FloatArray, on_logit: BoolArray | bool) -> FloatPair:
    """Bounds on either side, on the logit scale where asked for and the value allows it."""
    half = np.stack([-half_width, half_width])
    with undefined_is_nan():
        slope = value * (1 - value)
        of_logit = expit(logit(value) + half / slope)
    low, high = np.where(on_logit & (slope > 0), of_logit, value + half)
    return low, high


def absolute_interval(
    ours: BinMeans, theirs: BinMeans | None, units: Units, confidence_level: float
) -> tuple[float, float]:
    """Bounds of the sum of absolute means, or of how far it exceeds another on the same runs.

    The estimate is too large by chance, the more so the closer the truth is to zero, where it is
    not differentiable: neither influences nor a bootstrap cover it there. But with errors e of the
    means d it lies, as a convex function, above the truth plus sign(d) e, and by the triangle
    inequality below the truth plus the sum of abs(e). Quantiles of these, for normal errors of the
    same covariance, make bounds that hold wherever the truth is: the lower one is wide.
    """
    influence = ours.influence
    if theirs is not None:
        influence = np.concatenate([influence, theirs.influence], axis=1)
    spread = Spread(influence, units)
    tail = (1 + confidence_level) / 2
    errors = units.t_quantile(confidence_level) / ndtri(tail) * spread.draw()
    below, above = _above_truth(ours, errors[:, : len(ours.mean)])
    estimate = abs(ours.mean).sum()
    if theirs is not None:
        below_theirs, above_theirs = _above_truth(theirs, errors[:, len(ours.mean) :])
        estimate -= abs(theirs.mean).sum()
        below = below - above_theirs
        above = above - below_theirs
    low = float(estimate - np.quantile(above, tail))
    high = float(estimate - np.quantile(below, 1 - tail))
    return (low, high) if theirs is not None else (max(low, 0.0), min(high, 1.0))


def _above_truth(parts: BinMeans, errors: FloatArray) -> FloatPair:
    """How far the estimate lies above the truth: at least, and at most, for each draw of errors."""
    # a mean of 0 may have come from either side: the sign that it has by rounding says nothing
    sign = np.where(parts.mean < -SUM_ROUNDING, -1.0, 1.0)
    return errors @ sign, abs(errors).sum(axis=1)


# The level of an interval that would be unbounded: that of the largest and smallest replicate.
_HIGHEST_LEVEL = 1 - 1e-12
ONE_CLUSTER = (
    "all runs are of one cluster, and an interval needs at least two; leave out groups to ask "
    "about more runs of this one"
)


@dataclass(frozen=True)
class Units:
    """Which unit each run belongs to, and how many there are."""

    codes: IntArray | None  # unit of each run; None where each run is its own unit
    n_units: int

    def sums(self, values: FloatArray) -> FloatArray:
        """Add up the values of each unit, of shape (n_runs,) or (n_runs, n_columns)."""
        codes = self.codes
        if codes is None:
            return values
        return np.apply_along_axis(
            lambda of_runs: np.bincount(codes, of_runs, self.n_units), 0, values
        )

    @property
    def of_runs(self) -> IntArray:
        """Unit of each run."""
        return np.arange(self.n_units) if self.codes is None else self.codes

    @cached_property
    def sizes(self) -> FloatArray:
        """Number of runs of each unit."""
        return np.bincount(self.of_runs, minlength=self.n_units).astype(float)

    @property
    def n_effective(self) -> float:
        """Number of equally large clusters that these are equivalent to."""
        return n_equal(self.sizes)

    def t_quantile(self, confidence_level: float) -> float:
        """Quantile of the t distribution; its degrees of freedom are the effective units less 1."""
        return t_quantile(self.n_effective - 1, confidence_level)

    def expanded_level(self, confidence_level: float) -> float:
        """Level of a bootstrap interval as wide as one of t, for few units (Hesterberg 2015)."""
        correction = np.sqrt(self.n_units / (self.n_units - 1))
        z = correction * self.t_quantile(confidence_level)
        return min(float(2 * ndtr(z) - 1), _HIGHEST_LEVEL)

    def to_runs(self, counts: FloatArray) -> FloatArray:
        """Spread counts of units along the second axis to their runs."""
        return counts if self.codes is None else counts[:, self.codes]


def resampling_units(n_runs: int, groups: ArrayLike | None) -> Units:
    """Return the units of n_runs runs, at least two: clusters by sorted name, or the runs."""
    codes = None if groups is None else check_groups(groups, n_runs)
    if not is_count(n_runs, 2):
        raise ValueError(f"an interval needs at least 2 runs, got {n_runs!r}")
    units = any_units(codes, n_runs)
    if units.n_units < 2:
        raise ValueError(ONE_CLUSTER)
    return units


def any_units(groups: IntArray | None, n_runs: int) -> Units:
    """Return the units of runs whose clusters were checked; one may be alone, codes have gaps."""
    if groups is None:
        return Units(None, n_runs)
    names, codes = np.unique(groups, return_inverse=True)
    return Units(codes, len(names))


def n_equal(sizes: AnyArray) -> float:
    """Effective number of units: n^2 over the sum of squares."""
    return float(sizes.sum() ** 2 / (sizes**2).sum())


def t_quantile(freedom: float, confidence_level: float) -> float:
    """Quantile of a two-sided interval by t; infinite for one unit, which bounds nothing."""
    level = as_fraction(confidence_level, "confidence_level")
    return float(stdtrit(freedom, (1 + level) / 2)) if freedom > 1e-9 else np.inf


def percentile_interval(replicates: FloatArray, confidence_level: float) -> FloatPair:
    """Return quantiles of replicates along the first axis; undefined ones (NaN) are ignored."""
    as_fraction(confidence_level, "confidence_level")
    tail = (1 - confidence_level) / 2
    undefined = np.isnan(replicates).all(axis=0)
    filled = np.where(undefined, 0.0, replicates)
    low, high = np.where(undefined, np.nan, np.nanquantile(filled, [tail, 1 - tail], axis=0))
    return low, high


def bca_interval(
    replicates: FloatArray,
    estimate: FloatArray,
    acceleration: FloatArray,
    confidence_level: float,
) -> FloatPair:
    """Return bias-corrected and accelerated intervals of the columns of replicates."""
    z = ndtri((1 - confidence_level) / 2) * np.array([1.0, -1.0])
    columns = zip(replicates.T, estimate, acceleration, strict=True)
    ends = np.array([_bca_ends(*column, z) for column in columns])
    return ends[:, 0], ends[:, 1]


def _bca_ends(
    replicates: FloatArray, estimate: float, acceleration: float, z: FloatArray
) -> FloatArray:
    """Return two quantiles; NaN if no replicate is defined, or all lie on one side."""
    defined = replicates[~np.isnan(replicates)]
    if not len(defined):
        return np.full(2, np.nan)
    rounding = ROUNDING * abs(estimate)  # ties count half
    below = (defined < estimate - rounding).mean() / 2 + (defined <= estimate + rounding).mean() / 2
    z0 = ndtri(below)
    if not np.isfinite(z0):
        return np.full(2, np.nan)
    return np.quantile(defined, ndtr(z0 + (z0 + z) / (1 - acceleration * (z0 + z))))


Z = 1.959963984540054
"""Quantile of a normal 95% interval."""


def wilson_interval(rate: ArrayLike, n: ArrayLike, z: float = Z) -> FloatPair:
    """Return the ends of a binomial rate's 95% interval (Wilson score), honest with few trials."""
    p = np.asarray(rate, float)
    size = np.asarray(n, float)
    center = (p + z**2 / (2 * size)) / (1 + z**2 / size)
    half = z * np.sqrt(p * (1 - p) / size + z**2 / (4 * size**2)) / (1 + z**2 / size)
    return np.maximum(center - half, 0.0), np.minimum(center + half, 1.0)


def clopper_pearson_excess(n_events: ArrayLike, n_others: ArrayLike, level: float) -> FloatArray:
    """Return how far a rate's upper bound (Clopper and Pearson 1934) lies above what was seen."""
    events = np.asarray(n_events, float)
    others = np.asarray(n_others, float)
    with undefined_is_nan():
        upper = np.where(others > 0, betaincinv(events + 1, others, level), 1.0)
    return upper - events / (events + others)


# Runs of one size of loss that suffered it; with more their variance is known well enough.
_FEW = 3


def unseen_reach(
    change: FloatArray, units: Units, alpha: float, half_width: float
) -> tuple[float, float]:
    """Return how far below and above its estimate a mean may lie, at level 1 - alpha.

    `change` is what each run would add to the mean, had it ended the other way. Zero where it is
    known without sorting that both lie within `half_width`.
    """
    largest = units.sums(abs(change)).max(initial=0.0)
    # no loss is larger, and of 0 to _FEW losses Poisson's bound exceeds those of _FEW the most
    if (gammaincinv(_FEW + 1, 1 - alpha) - _FEW) * largest < half_width:
        return 0.0, 0.0
    return _reach(-change, units.of_runs, alpha), _reach(change, units.of_runs, alpha)


def with_unseen(
    low: FloatArray,
    high: FloatArray,
    mean: FloatArray,
    changes: Iterable[FloatArray],
    units: Units,
    confidence_level: float,
) -> FloatPair:
    """Return intervals of means that hold losses not seen yet, by the `change` of each."""
    widths = np.minimum(mean - low, high - mean)
    reaches = [
        unseen_reach(change, units, 1 - confidence_level, width)
        for change, width in zip(changes, widths, strict=True)
    ]
    below, above = np.reshape(reaches, (-1, 2)).T
    return np.minimum(low, mean - below), np.maximum(high, mean + above)


def _reach(loss: FloatArray, clusters: IntArray, alpha: float) -> float:
    """Bound the losses that were not seen; a run that has suffered its own has `loss` below 0.

    Of runs in the order of their losses, as long as none has suffered its own, and of blocks of
    equal losses with up to three that have: the Clopper-Pearson excess of their share.
    """
    if not loss.any():
        return 0.0
    order = np.argsort(-abs(loss), kind="stable")
    loss = loss[order]
    clusters = clusters[order]
    size = abs(loss)
    bad = loss < 0
    is_start = np.append(True, size[1:] < size[:-1] * (1 - SUM_ROUNDING))
    block = np.cumsum(is_start) - 1
    ends = np.flatnonzero(np.append(is_start[1:], True))
    first_bad = np.append(block[bad], len(ends))[0]
    is_first = np.zeros(len(loss))
    is_first[np.unique(clusters, return_index=True)[1]] = 1
    n_before = np.cumsum(is_first)[ends]
    of_all = clopper_pearson_excess(0, n_before[:first_bad], 1 - alpha)
    prefix = of_all * np.cumsum(size)[ends[:first_bad]]
    n = _n_clusters(block, clusters, len(ends))
    n_bad = _n_clusters(block[bad], clusters[bad], len(ends))
    few = n_bad <= _FEW
    excess = clopper_pearson_excess(n_bad[few], (n - n_bad)[few], 1 - alpha)
    alone = excess * np.bincount(block, size)[few]
    return float(max(prefix.max(initial=0.0), alone.max(initial=0.0)))


def _n_clusters(block: IntArray, clusters: IntArray, n_blocks: int) -> FloatArray:
    """Count the clusters of each block."""
    n_clusters = clusters.max(initial=0) + 1
    pairs = np.unique(block * n_clusters + clusters)
    return np.bincount(pairs // n_clusters, minlength=n_blocks).astype(float)
