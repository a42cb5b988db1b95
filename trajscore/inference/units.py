"""Units of resampling: runs, or clusters of runs."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr
from scipy.stats import t

from trajscore.core.checks import check_groups
from trajscore.core.type_aliases import FloatArray, IntArray
from trajscore.core.values import as_fraction, is_count

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
        """Add up the rows of each unit, for an array of shape (n_runs, n_columns)."""
        if self.codes is None:
            return values
        columns = [np.bincount(self.codes, column, self.n_units) for column in values.T]
        return np.stack(columns, axis=1)

    @cached_property
    def sizes(self) -> FloatArray:
        """Number of runs of each unit."""
        if self.codes is None:
            return np.ones(self.n_units)
        return np.bincount(self.codes, minlength=self.n_units).astype(np.float64)

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
        if self.codes is None:
            return counts
        return counts[:, self.codes]


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


def n_equal(sizes: NDArray[Any]) -> float:
    """Effective number of units: n^2 over the sum of squares."""
    return float(sizes.sum() ** 2 / (sizes**2).sum())


def t_quantile(freedom: float, confidence_level: float) -> float:
    """Quantile of a two-sided interval by t; infinite for one unit, which bounds nothing."""
    level = as_fraction(confidence_level, "confidence_level")
    return float(t.ppf((1 + level) / 2, freedom)) if freedom > 1e-9 else np.inf
