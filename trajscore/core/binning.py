"""The bins of calibration errors: one rule for whole runs, for steps and for answers."""

from __future__ import annotations

import numpy as np

from trajscore.core.ties import SUM_ROUNDING, group_ties
from trajscore.core.type_aliases import FloatArray, IntArray

STRATEGIES = ("quantile", "uniform")


def bins_of(values: FloatArray, weight: FloatArray, n_bins: int, strategy: str) -> IntArray:
    """Bin of each value; `weight` says how much each counts for the quantiles."""
    if strategy == "uniform":
        return uniform_bins(values, n_bins)
    distinct, group = group_ties(values)
    size = np.bincount(group, weight, len(distinct)).astype(np.float64)
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
