"""Intervals from the influence of each run: one pass, no replicate."""

from __future__ import annotations

import warnings
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit
from scipy.stats import norm

from trajscore.core.policy import MIN_EFFECTIVE_CLUSTERS
from trajscore.core.ties import ROUNDING, SUM_ROUNDING
from trajscore.core.type_aliases import BoolArray, FloatArray
from trajscore.inference.units import Units

_BLOCK = 4096
_DRAWS = 4_000


def left_out_factor(sizes: NDArray[Any]) -> FloatArray:
    """Return what turns a unit's total into the change when it is left out (CR3).

    The squares of these changes add up to the squared error.
    """
    n = np.count_nonzero(sizes)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.sqrt((n - 1) / n) / (1 - sizes / sizes.sum()))


class Spread:
    """How statistics vary, by the influences of runs, of shape (n_runs, n_statistics)."""

    def __init__(self, influence: FloatArray, units: Units) -> None:
        self.n_runs = len(influence)
        self._units = units
        self.totals = units.sums(influence)

    @cached_property
    def _powers(self) -> FloatArray:
        """Sums of the second, third and fourth powers of the totals, in blocks that stay cached."""
        sums = np.zeros((3, self.totals.shape[1]))
        for start in range(0, len(self.totals), _BLOCK):
            totals = self.totals[start : start + _BLOCK]
            squares = totals * totals
            sums[0] += np.einsum("ij->j", squares)
            sums[1] += np.einsum("ij,ij->j", squares, totals)
            sums[2] += np.einsum("ij,ij->j", squares, squares)
        return sums

    def left_out(self) -> FloatArray:
        """Change of each statistic, times n_runs, when a unit is left out (CR3), to be squared."""
        return left_out_factor(self._units.sizes)[:, None] * self.totals

    def half_width(self, quantile: float) -> FloatArray:
        """Quantile times the standard error; 0 where nothing varies, infinite of one unit."""
        if self._units.n_units < 2:
            return np.full(self.totals.shape[1], np.inf)
        if self._units.codes is None:  # what `left_out` gives, as its factor is one number
            error = np.sqrt(self._powers[0] / (self.n_runs * (self.n_runs - 1)))
        else:
            error = np.sqrt((self.left_out() ** 2).sum(axis=0)) / self.n_runs
        return np.where(error > 0, quantile, 0.0) * error

    def draw(self) -> FloatArray:
        """Draw normal errors of all statistics, of the covariance that units have left out."""
        # given the clusters, sums of them with normal weights have just this covariance; its
        # symmetric root, and so every draw, moves with it, and does not jump as others do
        if self._units.codes is None:
            square = self.totals.T @ self.totals / (self.n_runs * (self.n_runs - 1))
        else:
            changes = self.left_out() / self.n_runs
            square = changes.T @ changes
        values, vectors = np.linalg.eigh(square)
        root = vectors * np.sqrt(np.maximum(values, 0)) @ vectors.T
        return np.random.default_rng(0).standard_normal((_DRAWS, len(root))) @ root

    def n_carrying(self) -> FloatArray:
        """Count the units that carry the variance: n if all are alike, k if k of them are far.

        Of a rare outcome it is the number of times that it occurs, of a normal sample n / 3.
        """
        total, _, fourth = self._powers
        varies = total > ROUNDING**2 * self.n_runs
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(varies, total**2 / fourth, np.inf)

    def acceleration(self) -> FloatArray:
        """Return sum U^3 / (6 (sum U^2)^(3/2)) over units; 0 for a statistic that no unit moves."""
        total, third, _ = self._powers
        spread = total**1.5
        return np.divide(third, 6 * spread, out=np.zeros_like(third), where=spread > 0)


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
        UserWarning,
        stacklevel=3,
    )


def bounds(
    value: FloatArray, half_width: FloatArray, on_logit: BoolArray
) -> tuple[FloatArray, FloatArray]:
    """Bounds on either side, on the logit scale where asked for and the value allows it."""
    low = value - half_width
    high = value + half_width
    with np.errstate(divide="ignore", invalid="ignore"):
        slope = value * (1 - value)
        inside = on_logit & (slope > 0)
        low = np.where(inside, expit(logit(value) - half_width / slope), low)
        high = np.where(inside, expit(logit(value) + half_width / slope), high)
    return low, high


class BinMeans(NamedTuple):
    """Means of shape (n_bins,) and the influences of runs on them, of shape (n_runs, n_bins)."""

    mean: FloatArray
    influence: FloatArray


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
    quantile = units.t_quantile(confidence_level)
    errors = quantile / norm.ppf(tail) * spread.draw()
    below, above = _reach(ours, errors[:, : len(ours.mean)])
    estimate = np.abs(ours.mean).sum()
    if theirs is None:
        low = float(estimate - np.quantile(above, tail))
        return max(low, 0.0), min(float(estimate - np.quantile(below, 1 - tail)), 1.0)
    below_theirs, above_theirs = _reach(theirs, errors[:, len(ours.mean) :])
    estimate -= np.abs(theirs.mean).sum()
    low = estimate - np.quantile(above - below_theirs, tail)
    return float(low), float(estimate + np.quantile(above_theirs - below, tail))


def _reach(parts: BinMeans, errors: FloatArray) -> tuple[FloatArray, FloatArray]:
    """How far the estimate lies above the truth: at least, and at most, for each draw of errors."""
    # a mean of 0 may have come from either side: the sign that it has by rounding says nothing
    sign = np.where(parts.mean < -SUM_ROUNDING, -1.0, 1.0)
    return errors @ sign, np.abs(errors).sum(axis=1)
