"""Intervals from bootstrap replicates, of binomial rates, and for losses not seen yet."""

from collections.abc import Iterable

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy.special import betaincinv, gammaincinv, ndtr, ndtri

from trajscore.core.ties import ROUNDING, SUM_ROUNDING
from trajscore.core.type_aliases import FloatArray, FloatPair, IntArray
from trajscore.core.values import as_fraction, undefined_is_nan
from trajscore.inference.influence import Units


def percentile_interval(replicates: FloatArray, confidence_level: float) -> FloatPair:
    """Return quantiles of replicates along the first axis; undefined ones (NaN) are ignored."""
    as_fraction(confidence_level, "confidence_level")
    tail = (1 - confidence_level) / 2
    undefined = np.isnan(replicates).all(axis=0)
    filled = np.where(undefined, 0.0, replicates)
    low, high = np.nanquantile(filled, [tail, 1 - tail], axis=0)
    return np.where(undefined, np.nan, low), np.where(undefined, np.nan, high)


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
    levels = ndtr(z0 + (z0 + z) / (1 - acceleration * (z0 + z)))
    return np.quantile(defined, levels)


Z = 1.959963984540054
"""Quantile of a normal 95% interval."""


def wilson_interval(rate: ArrayLike, n: ArrayLike, quantile: float = Z) -> FloatPair:
    """Return the ends of a binomial rate's 95% interval (Wilson score), honest with few trials."""
    p = np.asarray(rate, dtype=float)
    size = np.asarray(n, dtype=float)
    z = quantile
    center = (p + z**2 / (2 * size)) / (1 + z**2 / size)
    half = z * np.sqrt(p * (1 - p) / size + z**2 / (4 * size**2)) / (1 + z**2 / size)
    return np.maximum(center - half, 0.0), np.minimum(center + half, 1.0)


def clopper_pearson_excess(n_events: ArrayLike, n_others: ArrayLike, level: float) -> FloatArray:
    """Return how far a rate's upper bound (Clopper and Pearson 1934) lies above what was seen."""
    events = np.asarray(n_events, dtype=float)
    others = np.asarray(n_others, dtype=float)
    with undefined_is_nan():
        upper = np.where(others > 0, betaincinv(events + 1, np.maximum(others, 1e-300), level), 1.0)
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
    largest = np.abs(change).max(initial=0.0)
    if units.codes is not None:
        largest = np.bincount(units.codes, np.abs(change)).max()
    # no loss is larger, and of 0 to _FEW losses Poisson's bound exceeds those of _FEW the most
    if (float(gammaincinv(_FEW + 1, 1 - alpha)) - _FEW) * largest < half_width:
        return 0.0, 0.0
    return _reach(-change, units.codes, alpha), _reach(change, units.codes, alpha)


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
    below, above = np.array(reaches).T
    return np.minimum(low, mean - below), np.maximum(high, mean + above)


def _reach(loss: FloatArray, codes: IntArray | None, alpha: float) -> float:
    """Bound the losses that were not seen; a run that has suffered its own has `loss` below 0.

    Of runs in the order of their losses, as long as none has suffered its own, and of blocks of
    equal losses with up to three that have: the Clopper-Pearson excess of their share.
    """
    if not loss.any():
        return 0.0
    order = np.argsort(-np.abs(loss), kind="stable")
    loss = loss[order]
    size = np.abs(loss)
    bad = loss < 0
    is_start = np.append(True, size[1:] < size[:-1] * (1 - SUM_ROUNDING))
    block = np.cumsum(is_start) - 1
    ends = np.flatnonzero(np.append(is_start[1:], True))
    first_bad = int(np.append(block[bad], len(ends))[0])
    n_before = ends + 1
    clusters = None
    if codes is not None:
        clusters = codes[order]
        n_before = np.cumsum(~pd.Series(clusters).duplicated().to_numpy())[ends]
    of_all = clopper_pearson_excess(0, n_before[:first_bad], 1 - alpha)
    prefix = of_all * np.cumsum(size)[ends[:first_bad]]
    n = _n_units(block, clusters, len(ends))
    n_bad = _n_units(block[bad], None if clusters is None else clusters[bad], len(ends))
    few = n_bad <= _FEW
    excess = clopper_pearson_excess(n_bad[few], (n - n_bad)[few], 1 - alpha)
    alone = excess * np.bincount(block, size)[few]
    return float(max(prefix.max(initial=0.0), alone.max(initial=0.0)))


def _n_units(block: IntArray, clusters: IntArray | None, n_blocks: int) -> FloatArray:
    """Count the clusters of each block; its runs, where there are none."""
    if clusters is not None:
        block = block[~pd.DataFrame({"block": block, "cluster": clusters}).duplicated()]
    return np.bincount(block, minlength=n_blocks).astype(float)
