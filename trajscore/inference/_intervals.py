"""Percentile and BCa intervals from bootstrap replicates."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtr, ndtri

from trajscore.inference._units import FloatArray, Units, resampling_units

# Units left out at a time.
_BLOCK = 64


def percentile_interval(
    replicates: FloatArray, confidence_level: float = 0.95
) -> tuple[FloatArray, FloatArray]:
    """Return the percentile interval of replicates along the first axis.

    Parameters
    ----------
    replicates : ndarray of shape (n_resamples, ...)
        Values; NaN, where a statistic was not defined in a replicate, is passed over.
    confidence_level : float, default=0.95
        Level.

    Returns
    -------
    low, high : ndarray of shape (...)
        Ends of the interval; NaN where no replicate was defined.

    Examples
    --------
    >>> import numpy as np
    >>> [float(end) for end in percentile_interval(np.arange(101.0))]
    [2.5, 97.5]
    """
    if not 0 < confidence_level < 1:
        raise ValueError(f"confidence_level must lie in (0, 1), got {confidence_level}")
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
    estimate: ArrayLike,
    influence: FloatArray,
    confidence_level: float = 0.95,
) -> tuple[FloatArray, FloatArray]:
    r"""Return the bias-corrected and accelerated interval of replicates along the first axis.

    Parameters
    ----------
    replicates : ndarray of shape (n_resamples, ...)
        Values; NaN, where a statistic was not defined in a replicate, is passed over.
    estimate : array-like of shape (...)
        The statistic of the sample itself.
    influence : ndarray of shape (n_units, ...)
        Jackknife influence of each run, or cluster, as `jackknife_influence` gives it.
    confidence_level : float, default=0.95
        Level.

    Returns
    -------
    low, high : ndarray of shape (...)
        Ends of the interval; NaN where no replicate was defined, or where all of them lie on one
        side of the estimate.

    Notes
    -----
    The ends are the quantiles at :math:`\Phi(z_0 + (z_0 + z) / (1 - a (z_0 + z)))` for the normal
    quantiles z of the level; z_0 is the normal quantile of the share of replicates below the
    estimate (ties count half), and the acceleration is
    :math:`a = \sum U^3 / (6 (\sum U^2)^{3/2})` over the influences U.

    References
    ----------
    Efron (1987), Better Bootstrap Confidence Intervals; Davison and Hinkley (1997), Bootstrap
    Methods and Their Application, Section 5.3, for strata.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.array([0.1, 0.2, 0.2, 0.3, 0.4, 2.0])
    >>> def mean(counts):
    ...     return counts @ x / counts.sum(axis=1)
    >>> from trajscore.inference import bootstrap
    >>> replicates = bootstrap(mean, 6, n_resamples=2000, random_state=0)
    >>> low, high = bca_interval(replicates, x.mean(), jackknife_influence(mean, 6))
    >>> bool(high - x.mean() > 2 * (x.mean() - low))
    True
    """
    if not 0 < confidence_level < 1:
        raise ValueError(f"confidence_level must lie in (0, 1), got {confidence_level}")
    values = np.asarray(replicates, dtype=np.float64)
    shape = values.shape[1:]
    columns = values.reshape(len(values), -1).T
    centres = np.broadcast_to(np.asarray(estimate, dtype=np.float64), shape).ravel()
    accelerations = _acceleration(influence).ravel()
    z = ndtri((1 - confidence_level) / 2) * np.array([1.0, -1.0])
    ends = np.array(
        [_bca_ends(*parts, z) for parts in zip(columns, centres, accelerations, strict=True)]
    )
    return ends[:, 0].reshape(shape)[()], ends[:, 1].reshape(shape)[()]


def jackknife_influence(
    statistic: Callable[[FloatArray], FloatArray],
    n_runs: int,
    *,
    groups: ArrayLike | None = None,
    strata: ArrayLike | None = None,
) -> FloatArray:
    """Return how far each run, or cluster, moves a statistic.

    Parameters
    ----------
    statistic : callable
        As for `bootstrap`: maps counts of shape (n_replicates, n_runs) to values of shape
        (n_replicates, ...).
    n_runs : int
        Number of runs.
    groups : array-like of shape (n_runs,), optional
        Clusters of runs; whole clusters are left out.
    strata : array-like of shape (n_runs,), optional
        Strata; influences are centred within each.

    Returns
    -------
    ndarray of shape (n_units, ...)
        (G - 1) / G times the mean over the stratum of the left-one-out values less the unit's
        own, for a stratum of G units; clusters are sorted by stratum and name.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.array([1.0, 2.0, 6.0])
    >>> jackknife_influence(lambda counts: counts @ x / counts.sum(axis=1), 3).round(3)
    array([-0.667, -0.333, 1. ])
    """
    units = resampling_units(n_runs, groups, strata)
    blocks = []
    for start in range(0, units.n_units, _BLOCK):
        left_out = np.arange(start, min(start + _BLOCK, units.n_units))
        counts = np.ones((len(left_out), units.n_units))
        counts[np.arange(len(left_out)), left_out] = 0
        blocks.append(statistic(units.to_runs(counts)))
    return stratum_influence(np.concatenate(blocks), units)


def stratum_influence(left_out: FloatArray, units: Units) -> FloatArray:
    """Turn left-one-out values of shape (n_units, ...) into influences, stratum by stratum."""
    parts = []
    for stratum in units.strata:
        values = left_out[stratum]
        parts.append((values.mean(axis=0) - values) * (1 - 1 / len(values)))
    return np.concatenate(parts)


def _acceleration(influence: FloatArray) -> FloatArray:
    """Return the acceleration; 0 for a statistic that no unit moves."""
    spread = (influence**2).sum(axis=0) ** 1.5
    moved = spread > 0
    cubes = (influence**3).sum(axis=0)
    return np.where(moved, cubes / (6 * np.where(moved, spread, 1.0)), 0.0)


def _bca_ends(
    replicates: FloatArray, estimate: float, acceleration: float, z: FloatArray
) -> FloatArray:
    defined = replicates[~np.isnan(replicates)]
    if not len(defined):
        return np.full(2, np.nan)
    rounding = 1e-12 * abs(estimate)
    below = (defined < estimate - rounding).mean() / 2 + (defined <= estimate + rounding).mean() / 2
    z0 = ndtri(below)
    if not np.isfinite(z0):
        return np.full(2, np.nan)
    levels = ndtr(z0 + (z0 + z) / (1 - acceleration * (z0 + z)))
    return np.quantile(defined, levels)
