"""Simultaneous comparison of predictors on the same runs, and how many runs it needs."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from itertools import combinations, pairwise
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import betaincinv, ndtri

from trajscore.core.ties import ROUNDING, SUM_ROUNDING
from trajscore.core.values import (
    ArrayLike,
    FloatArray,
    FloatPair,
    IntArray,
    as_fraction,
    as_numbers,
    as_within,
    is_number,
    number_of,
    undefined_is_nan,
)
from trajscore.inference.intervals import Units, resampling_units
from trajscore.inference.mean_intervals import (
    bootstrap_units,
    check_resamples,
    scores_table,
)

# The most of the error that intervals by range take: to them a tenth is nearly as good as all.
_RANGE_SHARE = 0.1
_SIDES = np.array([[-1.0], [1.0]])


def compare_predictors(
    samples: Mapping[Any, ArrayLike] | pd.DataFrame,
    *,
    reference: Hashable | None = None,
    n_resamples: int = 10_000,
    confidence_level: float = 0.95,
    groups: ArrayLike | None = None,
    random_state: Any = None,
    n_jobs: int | None = None,
) -> pd.DataFrame:
    r"""Compare the mean scores of predictors, all pairs or all against one, at one error rate.

    Parameters
    ----------
    samples : dict or DataFrame of shape (n_runs, n_predictors)
        One score a run for each predictor, such as `trajscore.metrics.tps_samples` gives; a dict
        maps names to arrays of shape (n_runs,). Entries are paired by position; where several are
        Series, their indexes must be equal.
    reference : hashable, optional
        Name of the predictor that all others are compared with; by default all pairs are.
    n_resamples : int, default=10000
        Number of replicates.
    confidence_level : float, default=0.95
        Chance that all intervals hold their difference at once.
    groups, random_state, n_jobs : optional
        As in `bootstrap`; the standard errors are those of clusters where there are any.

    Returns
    -------
    DataFrame with one row a comparison
        predictor, reference, difference (of the means, predictor less reference), low, high,
        std_error, p_value (of this comparison alone) and p_holm (Holm's adjustment for all).

    Raises
    ------
    ValueError
        If predictors have scores of different runs, a score is missing, there are fewer than two
        runs or clusters, or too few replicates for the number of comparisons.

    Notes
    -----
    With the difference :math:`d`, its standard error :math:`s` over clusters, and
    :math:`t^* = (d^* - d) / s^*` in each replicate, the intervals are :math:`d \pm c\,s`. Each
    comparison has its own quantile :math:`c` of :math:`|t^*|`. All quantiles are at one level, such
    that all intervals hold at once (Beran 1988). So a predictor that seldom differs from the others
    does not widen their intervals. The p-value is
    :math:`(1 + \#\{|t^*| \ge |d / s|\}) / (1 + B)` for :math:`B` replicates.

    Where so few runs differ that :math:`c` is infinite, or the interval very wide, it rests on the
    range :math:`R` of both predictors' scores instead, and on Clopper-Pearson bounds on the shares
    of runs (or clusters) whose difference lies below and above the median one. It holds as long as
    scores of other runs lie in the same range. So two predictors with the same scores in all
    :math:`n` runs have difference 0, standard error 0 and p-value 1, but an interval that ends at
    about :math:`\pm 6 R / n` at a level of .95, as they may differ in other runs.

    References
    ----------
    Beran (1988), Balanced Simultaneous Confidence Sets; Clopper and Pearson (1934), The Use of
    Confidence or Fiducial Limits Illustrated in the Case of the Binomial; Holm (1979), A Simple
    Sequentially Rejective Multiple Test Procedure.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> a = rng.normal(size=200)
    >>> scores = {"a": a, "b": a + rng.normal(0.5, 1, size=200), "c": rng.normal(size=200)}
    >>> compare_predictors(scores, random_state=0).round(2)[
    ...     ["predictor", "reference", "difference", "low", "high", "p_holm"]
    ... ]
      predictor reference  difference   low  high  p_holm
    0         a         b       -0.41 -0.58 -0.24    0.00
    1         a         c        0.01 -0.21  0.23    0.91
    2         b         c        0.42  0.15  0.70    0.00
    """
    table = _checked_table(samples)
    pairs = _pairs(list(table.columns), reference)
    check_resamples(n_resamples)
    error = 1 - as_fraction(confidence_level, "confidence_level")
    if (n_resamples + 1) * error < len(pairs) * (1 - SUM_ROUNDING):
        raise ValueError(
            f"n_resamples={n_resamples} is too few for {number_of(len(pairs), 'comparison')} at "
            f"a level of {confidence_level:g}; at least "
            f"{int(np.ceil(len(pairs) / error - SUM_ROUNDING)) - 1} are needed"
        )
    units = resampling_units(len(table), groups)
    moments = _Moments(table.to_numpy(), pairs, units)
    t = bootstrap_units(
        moments.studentised,
        units,
        n_resamples=n_resamples,
        random_state=random_state,
        n_jobs=n_jobs,
    )
    low, high = _intervals(moments, t, error)
    p = _p_values(moments, t)
    names = table.columns.to_numpy()
    return pd.DataFrame(
        {
            "predictor": names[pairs[:, 0]],
            "reference": names[pairs[:, 1]],
            "difference": moments.difference,
            "low": low,
            "high": high,
            "std_error": moments.std_error,
            "p_value": p,
            "p_holm": _holm(p),
        }
    )


class _Moments:
    """Numbers of units, whose sums over a draw give the studentised differences of all pairs."""

    def __init__(self, values: FloatArray, pairs: IntArray, units: Units) -> None:
        mean = values.mean(axis=0)
        self._pairs = pairs
        self._units = units
        width = values.max(axis=0)[pairs].max(axis=1) - values.min(axis=0)[pairs].min(axis=1)
        self.ranges = _Ranges(self._contrast(values), width, units)
        sizes = units.sizes[:, None]
        residuals = units.sums(values - mean)
        squares = self._contrast(residuals) ** 2
        # side by side, so that counts are read once
        columns = (sizes, sizes**2, residuals, residuals * sizes, squares)
        self._columns = np.hstack(columns)
        self._ends = np.cumsum([part.shape[1] for part in columns[:-1]])
        self.difference = self._contrast(mean)
        scale = abs(values).max(axis=0)[pairs].max(axis=1)
        variance = self._moments(np.ones((1, units.n_units)))[1][0]
        self.is_constant = variance <= (ROUNDING * scale) ** 2
        self._floor = np.where(self.is_constant, np.inf, ROUNDING * variance)
        self.std_error = np.where(self.is_constant, 0.0, np.sqrt(np.maximum(variance, 0.0)))

    def studentised(self, counts: FloatArray) -> FloatArray:
        """Return abs(t) of each replicate and pair; infinite where a replicate does not vary."""
        shift, variance = self._moments(counts)
        varies = variance > self._floor
        return np.where(varies, abs(shift) / np.sqrt(np.where(varies, variance, 1.0)), np.inf)

    def _moments(self, counts: FloatArray) -> FloatPair:
        """Return the shift from the sample's difference and its variance, per replicate."""
        n_units = self._units.n_units
        sums = np.split(counts @ self._columns, self._ends, axis=1)
        n_runs, of_sizes, residuals, crossed, squares = sums
        shift = self._contrast(residuals) / n_runs
        # sum over units of (residual - size * shift)^2: residuals about the replicate's own mean
        spread = squares + shift**2 * of_sizes - 2 * shift * self._contrast(crossed)
        return shift, spread * n_units / (n_units - 1) / n_runs**2

    def _contrast(self, sums: FloatArray) -> FloatArray:
        return sums[..., self._pairs[:, 0]] - sums[..., self._pairs[:, 1]]


class _Ranges:
    """How many units are far from the usual difference of each pair, and how far any can be.

    The means of units lie within +- `width`, those of units that are not far within `near` of the
    usual one, which is less than width / n_units.
    """

    def __init__(self, differences: FloatArray, width: FloatArray, units: Units) -> None:
        means = units.sums(differences) / units.sizes[:, None]
        self.usual = np.median(means, axis=0)
        self.width = width
        self.n_units = units.n_units
        self.largest = units.sizes.max() / units.sizes.mean()  # unit
        apart = means - self.usual
        far = np.where(abs(apart) > width / self.n_units, apart, 0.0)
        self.near = abs(apart - far).max(axis=0)
        self.n_far = (_SIDES[:, None] * far > 0).sum(axis=1)

    def intervals(self, error: float) -> FloatArray:
        """Bound the means by the share of units that may be far, and the farthest they can be."""
        share = betaincinv(self.n_far + 1, self.n_units - self.n_far, 1 - error / 2)
        farthest = _SIDES * self.width - self.usual
        bounds = self.usual + _SIDES * self.near + np.minimum(1.0, self.largest * share) * farthest
        return np.clip(bounds, -self.width, self.width)

    @undefined_is_nan()  # where all scores are equal
    def p_values(self) -> FloatArray:
        """Return the error of the interval that ends at 0, where all units have one difference."""
        usual = abs(self.usual)
        share = usual / ((usual + self.width) * self.largest)
        return np.fmin(1.0, 2 * (1 - share) ** self.n_units)


def _intervals(moments: _Moments, t: FloatArray, error: float) -> FloatPair:
    """Return bounds of all differences that hold at once."""
    n_pairs = t.shape[1]
    of_one = error / n_pairs
    quantile = np.sort(t, axis=0)[-_n_replicates(len(t), of_one)]
    widths = np.ptp(moments.ranges.intervals(of_one), axis=0)
    with undefined_is_nan():  # intervals by range are narrower, be it as no quantile is finite
        by_range = ~(2 * quantile * moments.std_error <= widths)
    error_by_range = error
    critical = np.zeros(n_pairs)
    if not by_range.all():
        error_by_range *= min(by_range.mean(), _RANGE_SHARE)
        critical[~by_range] = _critical_values(t[:, ~by_range], error - error_by_range)
    ends = moments.ranges.intervals(error_by_range / max(by_range.sum(), 1))
    half_width = critical * moments.std_error
    low, high = np.where(by_range, ends, moments.difference + _SIDES * half_width)
    return low, high


def _n_replicates(n_resamples: int, error: float) -> int:
    """Count the replicates that may lie outside at a level."""
    return min(int(error * (n_resamples + 1) + SUM_ROUNDING), n_resamples)


def _critical_values(t: FloatArray, error: float) -> FloatArray:
    """Return the quantile of each column, at a level common to all with which all hold at once."""
    n_resamples = len(t)
    n_outside = min(_n_replicates(n_resamples, error), n_resamples - 1)
    ascending = np.sort(t, axis=0)
    # of each replicate, its rank from above in the comparison where it is most extreme
    rank = np.full(n_resamples, n_outside + 1)
    for column, values in zip(t.T, ascending.T, strict=True):
        below = np.searchsorted(values, column * (1 - SUM_ROUNDING))
        np.minimum(rank, n_resamples - below, out=rank)
    return ascending[-max(1, np.sort(rank)[n_outside] - 1)]


def _p_values(moments: _Moments, t: FloatArray) -> FloatArray:
    constant = moments.is_constant
    size = abs(moments.difference) / np.where(constant, 1.0, moments.std_error)
    least = 1 / (1 + len(t))
    p = least * (1 + (t >= size * (1 - SUM_ROUNDING)).sum(axis=0))
    return np.where(constant, np.maximum(moments.ranges.p_values(), least), p)


def _holm(p: FloatArray) -> FloatArray:
    """Return Holm's step-down adjustment of p-values."""
    order = np.argsort(p, kind="stable")
    steps = np.minimum(1.0, p[order] * np.arange(len(p), 0, -1))
    return np.maximum.accumulate(steps)[np.argsort(order)]


def _checked_table(samples: Mapping[Any, ArrayLike] | pd.DataFrame) -> pd.DataFrame:
    if isinstance(samples, Mapping):
        samples = _from_mapping(samples)
    table = scores_table(samples)
    if table.shape[1] < 2:
        raise ValueError(f"a comparison needs at least 2 predictors, got {table.shape[1]}")
    if not table.columns.is_unique:
        twice = table.columns[table.columns.duplicated()][0]
        raise ValueError(f"two predictors are called {twice!r}; give each a name of its own")
    return table


def _from_mapping(samples: Mapping[Any, ArrayLike]) -> pd.DataFrame:
    """Put scores side by side, by position, if nothing says that they are of other runs."""
    columns = {name: as_numbers(values, f"scores of {name!r}") for name, values in samples.items()}
    shapes = {column.shape for column in columns.values()}
    if len(shapes) > 1 or any(len(shape) != 1 for shape in shapes):
        sizes = ", ".join(f"{name!r} {column.shape}" for name, column in columns.items())
        raise ValueError(
            f"the predictors have scores of different numbers, or several a run ({sizes}); give "
            f"one a run"
        )
    series = {name: values for name, values in samples.items() if isinstance(values, pd.Series)}
    for (name, scores), (other_name, other) in pairwise(series.items()):
        if not scores.index.equals(other.index):
            raise ValueError(
                f"the scores of {name!r} and {other_name!r} have different indexes; put both in "
                f"one order of runs, or give arrays, which are paired by position"
            )
    return pd.DataFrame(columns)


def _pairs(names: list[Hashable], reference: Hashable | None) -> IntArray:
    if reference is None:
        return np.array(list(combinations(range(len(names)), 2)))
    if not isinstance(reference, Hashable) or reference not in names:
        raise ValueError(f"reference {reference!r} is not one of the predictors {names}")
    base = names.index(reference)
    return np.array([(k, base) for k in range(len(names)) if k != base])


ONE_DIGIT: FloatArray = np.outer(10.0 ** np.arange(12), np.arange(1, 10)).ravel()
"""Numbers of one significant digit; no forecast of a sample size is more precise than that."""


def up_to_one_digit(n: float) -> int:
    """Round a number of runs up to one significant digit.

    >>> up_to_one_digit(3), up_to_one_digit(1155), up_to_one_digit(20)
    (3, 2000, 20)
    """
    return int(ONE_DIGIT[np.searchsorted(ONE_DIGIT, n)])


def runs_needed(
    difference: float,
    samples: ArrayLike | None = None,
    *,
    sd: float | None = None,
    groups: ArrayLike | None = None,
    power: float = 0.8,
    alpha: float = 0.05,
) -> int:
    r"""Return how many runs it takes to see a difference of two mean scores.

    Parameters
    ----------
    difference : float
        Difference to be seen, such as 0.01 of TPS.
    samples : array-like of shape (n_runs,), optional
        Paired differences of the scores of a pilot.
    sd : float, optional
        Standard deviation of the paired differences, instead of a pilot.
    groups : array-like of shape (n_runs,), optional
        Clusters of the pilot, such as tasks: the design effect is estimated from them, and
        taken as 1 where the estimate is below.
    power : float, default=0.8
        Chance that the test sees the difference.
    alpha : float, default=0.05
        Two-sided level of the test.

    Returns
    -------
    int
        Number of runs, with as many in each cluster as in the pilot. More trials of the same tasks
        raise the design effect; more tasks do not.

    Notes
    -----
    With the standard deviation :math:`\sigma` and the design effect :math:`D`, and the last term
    for the variance being estimated (Guenther 1981),

    .. math:: n = D \left[(z_{1-\alpha/2} + z_{power})^2 \sigma^2 / \delta^2
              + z_{1-\alpha/2}^2 / 2\right].

    A pilot's standard deviation has an error of its own: about 7% from 100 runs, so 14% in n.

    References
    ----------
    Guenther (1981), Sample Size Formulas for Normal Theory T Tests; Kish (1965), Survey Sampling.

    Examples
    --------
    >>> runs_needed(0.02, sd=0.15)
    444
    """
    power = as_fraction(power, "power")
    alpha = as_fraction(alpha, "alpha")
    if not is_number(difference) or not 0 < abs(difference) < math.inf:
        raise ValueError(f"difference must be finite and not zero, got {difference!r}")
    if (samples is None) == (sd is None):
        raise ValueError("give either the samples of a pilot or sd, the deviation of differences")
    if groups is not None and samples is None:
        raise ValueError("groups go with the samples of a pilot")
    design_effect = 1.0
    if samples is not None:
        values = as_numbers(samples, "samples")
        if values.ndim != 1 or len(values) < 2:
            raise ValueError("samples must be the difference of each run, for 2 runs or more")
        scores_table(pd.DataFrame({"difference": values}))
        if np.ptp(values) <= ROUNDING * abs(values).max():
            raise ValueError(
                "the difference does not vary, so the runs needed cannot be computed; give more "
                "runs"
            )
        sd = float(values.std(ddof=1))
        if groups is not None:
            units = resampling_units(len(values), groups)
            if units.n_units == len(values):
                raise ValueError(
                    "every cluster has one run, so there is no design effect to estimate"
                )
            # the variance of the mean over clusters, over that of independent runs
            residuals = units.sums(values - values.mean())
            clustered = (residuals**2).sum() * units.n_units / (units.n_units - 1)
            design_effect = max(1.0, clustered / (len(values) * sd**2))
    sd = as_within(sd, "sd", 0, math.inf)
    z = float(ndtri(1 - alpha / 2))
    simple = (z + float(ndtri(power))) ** 2 * (sd / difference) ** 2 + z**2 / 2
    if not math.isfinite(design_effect * simple):
        raise ValueError("no number of runs is large enough; ask for a larger difference")
    return math.ceil(design_effect * simple)
