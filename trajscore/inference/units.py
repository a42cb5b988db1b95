"""Units of resampling: runs, or clusters of runs, ordered by stratum."""

from __future__ import annotations

from dataclasses import dataclass
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


@dataclass(frozen=True)
class Units:
    """Which unit each run belongs to, and which units make up each stratum."""

    codes: IntArray | None  # unit of each run; None where each run is its own unit
    strata: tuple[slice, ...]  # units of each stratum; they lie side by side

    @property
    def n_units(self) -> int:
        """Number of units."""
        return int(self.strata[-1].stop)

    def sums(self, values: FloatArray) -> FloatArray:
        """Add up the rows of each unit, for an array of shape (n_runs, n_columns)."""
        if self.codes is None:
            return values
        columns = [np.bincount(self.codes, column, self.n_units) for column in values.T]
        return np.stack(columns, axis=1)

    def sizes(self, n_runs: int) -> FloatArray:
        """Count the runs of each unit."""
        return self.sums(np.ones((n_runs, 1)))[:, 0]

    def n_effective(self, n_runs: int) -> float:
        """Count the equally large clusters that these are equivalent to."""
        return n_equal(self.sizes(n_runs))

    def t_quantile(self, n_runs: int, confidence_level: float) -> float:
        """Quantile of the t distribution of as many degrees of freedom as units leave."""
        return t_quantile(self.n_effective(n_runs) - len(self.strata), confidence_level)

    def expanded_level(self, n_runs: int, confidence_level: float) -> float:
        """Level of a bootstrap interval as wide as one of t, for few units (Hesterberg 2015)."""
        correction = np.sqrt(self.n_units / (self.n_units - len(self.strata)))
        z = correction * self.t_quantile(n_runs, confidence_level)
        return min(float(2 * ndtr(z) - 1), _HIGHEST_LEVEL)

    def to_runs(self, counts: FloatArray) -> FloatArray:
        """Spread counts of units along the second axis to their runs."""
        return counts if self.codes is None else counts[:, self.codes]


def resampling_units(
    n_runs: int, groups: ArrayLike | None = None, strata: ArrayLike | None = None
) -> Units:
    """Return the units of n_runs runs: clusters by sorted name within strata by sorted name."""
    units = units_of(None if groups is None else check_groups(groups, n_runs), n_runs)
    if strata is None:
        return units
    codes = np.arange(n_runs) if units.codes is None else units.codes
    of_run = check_groups(strata, n_runs, "strata")
    of_unit = np.empty(units.n_units, dtype=np.int64)
    of_unit[codes] = of_run
    torn = of_unit[codes] != of_run
    if torn.any():
        raise ValueError(
            f"row {int(np.argmax(torn))}: its cluster lies in more than one stratum; "
            f"a stratum must be made of whole clusters"
        )
    sizes = np.bincount(of_unit)
    if sizes.min() < 2:
        name = np.asarray(strata, dtype=object)[int(np.argmax(of_run == np.argmin(sizes)))]
        raise ValueError(f"stratum {name!r} has one run or cluster only; merge it with another")
    order = np.argsort(of_unit, kind="stable")
    rank = np.empty(len(of_unit), dtype=np.int64)
    rank[order] = np.arange(len(of_unit))
    ends = np.cumsum(sizes).tolist()
    slices = tuple(slice(start, stop) for start, stop in zip([0, *ends[:-1]], ends, strict=True))
    return Units(rank[codes], slices)


def units_of(groups: IntArray | None, n_runs: int) -> Units:
    """Return the units of runs whose clusters were checked; their codes may have gaps."""
    if not is_count(n_runs, 2):
        raise ValueError(f"an interval needs at least 2 runs, got {n_runs!r}")
    units = any_units(groups, n_runs)
    if units.n_units < 2:
        raise ValueError("all runs are of one cluster; an interval needs at least two")
    return units


def any_units(groups: IntArray | None, n_runs: int) -> Units:
    """Return units as `units_of`, be it one alone."""
    if groups is None:
        return Units(None, (slice(0, n_runs),))
    names, codes = np.unique(groups, return_inverse=True)
    return Units(codes, (slice(0, len(names)),))


def n_equal(sizes: NDArray[Any]) -> float:
    """Effective number of units: n^2 over the sum of squares."""
    return float(sizes.sum() ** 2 / (sizes**2).sum())


def t_quantile(freedom: float, confidence_level: float) -> float:
    """Quantile of a two-sided interval by t; infinite, as no interval of one unit is bounded."""
    level = as_fraction(confidence_level, "confidence_level")
    return float(t.ppf((1 + level) / 2, freedom)) if freedom > 1e-9 else np.inf


def left_out_factor(sizes: NDArray[Any]) -> FloatArray:
    """Turn totals of units into changes when one is left out (CR3), whose squares add up."""
    n = np.count_nonzero(sizes)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.sqrt((n - 1) / n) / (1 - sizes / sizes.sum()))


def draw_counts(size: int, units: Units, rng: np.random.Generator) -> FloatArray:
    """Count how often each unit is drawn, in `size` samples with replacement in each stratum."""
    counts = np.empty((size, units.n_units))
    for stratum in units.strata:
        n = stratum.stop - stratum.start
        for row, drawn in enumerate(rng.integers(n, size=(size, n))):
            counts[row, stratum] = np.bincount(drawn, minlength=n)
    return counts
