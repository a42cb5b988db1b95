"""Percentile and BCa intervals from bootstrap replicates."""

from __future__ import annotations

import numpy as np
from scipy.special import ndtr, ndtri

from trajscore.core.ties import ROUNDING
from trajscore.core.type_aliases import FloatArray
from trajscore.core.values import as_fraction


def percentile_interval(
    replicates: FloatArray, confidence_level: float = 0.95
) -> tuple[FloatArray, FloatArray]:
    """Return quantiles of replicates along the first axis; undefined ones (NaN) are ignored."""
    as_fraction(confidence_level, "confidence_level")
    tail = (1 - confidence_level) / 2
    if not np.isnan(replicates).any():
        low, high = np.quantile(replicates, [tail, 1 - tail], axis=0)
        return low, high
    undefined = np.isnan(replicates).all(axis=0)
    filled = np.where(undefined, 0.0, replicates)
    low, high = np.nanquantile(filled, [tail, 1 - tail], axis=0)
    return np.where(undefined, np.nan, low), np.where(undefined, np.nan, high)


def bca_interval(
    replicates: FloatArray,
    estimate: FloatArray,
    acceleration: FloatArray,
    confidence_level: float = 0.95,
) -> tuple[FloatArray, FloatArray]:
    """Return bias-corrected and accelerated intervals of the columns of replicates."""
    as_fraction(confidence_level, "confidence_level")
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
    levels = ndtr(z0 + (z0 + z) / (1 - acceleration * (z0 + z)))
    return np.quantile(defined, levels)
