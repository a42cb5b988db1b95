"""Which values are equal, and in which bin they are.

Two values that agree to 12 significant digits differ by rounding only. Sums over runs and steps,
and statistics of replicates, have lost more digits: 9 must agree. Bins are those of calibration
errors: one rule for whole runs, for steps and for answers. Outliers are values that lie far from
all others.
"""

from typing import Any, NamedTuple, Self

import numpy as np

from trajscore.core.values import AnyArray, BoolArray, FloatArray, IntArray, outside_unit

ROUNDING = 1e-12
"""Relative difference up to which two values are the same."""
SUM_ROUNDING = 1e-9
"""The same of sums over runs and steps, of replicates, and of numbers that should be whole."""


def rises(ascending: AnyArray) -> BoolArray:
    """Whether each of ascending values is more than rounding above the one before; the first is.

    >>> rises(np.array([0.3, 0.1 + 0.2, 0.4]))
    array([ True, False,  True])
    """
    below = ascending[:-1]
    above = ascending[1:]
    least = np.where(above > 0, above * (1 - ROUNDING), above)
    new = np.ones(len(ascending), dtype=bool)
    # towards 0, where an infinity stays one
    new[1:] = np.where(above < 0, below * (1 - ROUNDING), below) < least
    return new


def only_value(values: AnyArray) -> float:
    """Return the value that all have; NaN where they vary, or where there is none.

    >>> only_value(np.array([0.3, 0.1 + 0.2])), only_value(np.array([0.3, 0.4]))
    (0.3, nan)
    """
    if not len(values) or rises(np.array([values.min(), values.max()]))[1]:
        return np.nan
    return float(values[0])


def group_ties(values: AnyArray, stratum: IntArray | None = None) -> tuple[FloatArray, IntArray]:
    """Return the smallest value of each group of ties, ascending, and the group of each value.

    With strata, numbered from 0, there are groups of each of them, one stratum after the other.

    >>> group_ties(np.array([0.1 + 0.2, 0.4, 0.3]))
    (array([0.3, 0.4]), array([0, 1, 0]))
    >>> group_ties(np.array([0.1 + 0.2, 0.4, 0.3]), np.array([1, 0, 1]))
    (array([0.4, 0.3]), array([1, 0, 1]))
    """
    order = np.argsort(values)
    if stratum is not None:
        # 16-bit integers are sorted in one pass
        numbers = stratum.astype(np.min_scalar_type(int(stratum.max(initial=0))))
        order = order[np.argsort(numbers[order], kind="stable")]
    ascending = values[order]
    new = rises(ascending)
    if stratum is not None:
        new[1:] |= np.diff(stratum[order]) > 0
    group = np.empty(len(values), dtype=np.int64)
    group[order] = np.cumsum(new) - 1
    return ascending[new], group


STRATEGIES = ("quantile", "uniform")


def bins_of(values: FloatArray, weight: FloatArray, n_bins: int, strategy: str) -> IntArray:
    """Bin of each value; `weight` says how much each counts for the quantiles."""
    if strategy == "uniform":
        return uniform_bins(values, n_bins)
    group = group_ties(values)[1]
    size = np.bincount(group, weight).astype(float)
    return quantile_bins(size, n_bins)[group]


def binned_error(size: FloatArray, gap: FloatArray, n_bins: int) -> float:
    """Calibration error over bins of equal weight; `gap` is outcome less forecast of each group."""
    total = size.sum()
    if not total:
        return float("nan")
    gaps = np.bincount(quantile_bins(size, n_bins), gap, n_bins)
    return float(np.abs(gaps).sum() / total)


def uniform_bins(values: FloatArray, n_bins: int) -> IntArray:
    """Bins of equal width over [0, 1], closed on the left, the last one on both sides."""
    # rounding must not carry what lies on the edge of a bin into the bin below it
    return np.clip(np.floor(values * n_bins + SUM_ROUNDING).astype(np.int64), 0, n_bins - 1)


def quantile_bins(size: FloatArray, n_bins: int) -> IntArray:
    """Bins of equal weight from weights (..., n_groups) of ties, ascending; none is split.

    A tie goes where its middle rank is, on an edge into the lower bin.
    """
    middle = np.cumsum(size, axis=-1)
    total = middle[..., -1:].copy()
    middle -= size / 2
    middle *= n_bins / np.where(total > 0, total, np.inf)
    middle -= SUM_ROUNDING
    return np.minimum(middle.astype(np.int64), n_bins - 1)  # above -1, so that 0 is the least


# An outlier lies so many times as far from the median as any ordinary value. One of 100 lognormal
# values (sigma 1) does in 1 of 1,000 samples; one of 200 normal ones would double their deviation.
_FACTOR = 10.0
_VALUES_PER_OUTLIER = 20  # where more lie outside, they are a mode of the signal


class OrdinaryRange(NamedTuple):
    """Smallest and largest ordinary value of a signal, and the limits beyond which outliers lie."""

    low: Any = -np.inf  # numbers, or arrays of shape (n_channels,)
    high: Any = np.inf
    least: Any = -np.inf
    most: Any = np.inf

    @classmethod
    def of(cls, values: FloatArray) -> Self:
        """Return the range of a signal, or of each of several channels; NaN is left out.

        Probabilities have no outliers, nor have fewer than 20 values, or what does not vary.

        >>> OrdinaryRange.of(np.append(np.arange(40.0), 1e9))
        OrdinaryRange(low=0.0, high=39.0, least=-180.0, most=220.0)
        """
        if values.ndim > 1:
            return cls(*np.array([cls.of(channel) for channel in values.T]).T)
        values = values[~np.isnan(values)]
        if not len(values):
            return cls(np.nan, np.nan)
        ends = values.min(), values.max()
        n_outliers = len(values) // _VALUES_PER_OUTLIER  # at most
        if not n_outliers or not outside_unit(np.array(ends)).any():
            return cls(*ends)
        ascending = np.sort(values)
        middle = float(ascending[len(ascending) // 2])
        with np.errstate(over="ignore"):
            distance = np.abs(ascending - middle)
        farthest = np.sort(distance)[-n_outliers - 1 :]  # the first is of an ordinary value
        varies = farthest > ROUNDING * max(abs(middle), 1.0)
        is_last = varies[:-1] & (farthest[1:] / _FACTOR > farthest[:-1])
        last = int(np.argmax(np.append(is_last, True)))
        if not varies[last]:
            return cls(*ends)
        reach = float(farthest[last])
        low, high = ascending[distance <= reach][[0, -1]].tolist()
        return cls(low, high, middle - _FACTOR * reach, middle + _FACTOR * reach)

    @property
    def may_be_percent(self) -> bool:
        """Whether the ordinary values may be shares of a scale that ends at up to 100."""
        return bool(self.low >= 0 and outside_unit(self.high) and self.high <= 100)

    def is_outlier(self, values: FloatArray) -> BoolArray:
        """Tell which values lie far outside all others."""
        return (values < self.least) | (values > self.most)

    def nearest(self, values: FloatArray) -> FloatArray:
        """Return values, outliers as the nearest ordinary one."""
        return np.where(self.is_outlier(values), np.clip(values, self.low, self.high), values)
