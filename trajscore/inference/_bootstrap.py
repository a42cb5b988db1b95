"""Paired bootstrap over runs or clusters of runs, vectorised over replicates."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state

FloatArray = NDArray[np.float64]

# Replicates drawn at a time, each block from a seed of its own: results do not depend on n_jobs.
_BLOCK = 64


def bootstrap(
    statistic: Callable[[FloatArray], FloatArray],
    n_runs: int,
    *,
    n_resamples: int = 1000,
    groups: ArrayLike | None = None,
    random_state: Any = None,
    n_jobs: int | None = None,
    progress: Callable[[Iterator[Any]], Any] | None = None,
) -> FloatArray:
    """Evaluate a statistic on bootstrap replicates, given as weightings of the runs.

    Parameters
    ----------
    statistic : callable
        Maps counts of shape (n_replicates, n_runs), how often each run was drawn, to values of
        shape (n_replicates, ...).
    n_runs : int
        Number of runs.
    n_resamples : int, default=1000
        Number of replicates.
    groups : array-like of shape (n_runs,), optional
        Clusters (say, tasks that several runs tried): whole clusters are drawn.
    random_state : int, RandomState instance or None, default=None
        Seed.
    n_jobs : int, optional
        Threads; the result does not depend on it.
    progress : callable, optional
        Wraps the iterator over blocks of replicates, as ``tqdm`` does.

    Returns
    -------
    ndarray of shape (n_resamples, ...)
        The statistic of each replicate. All come from the same draws, so differences are paired.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.array([1.0, 2.0, 3.0, 4.0])
    >>> means = bootstrap(lambda counts: counts @ x / 4, 4, n_resamples=200, random_state=0)
    >>> means.shape
    (200,)
    """
    if n_runs < 2:
        raise ValueError(f"a bootstrap needs at least 2 runs, got {n_runs}")
    codes, n_units = _clusters(groups, n_runs)
    seed = check_random_state(random_state).randint(np.iinfo(np.int32).max)
    sizes = [min(_BLOCK, n_resamples - start) for start in range(0, n_resamples, _BLOCK)]
    seeds = np.random.SeedSequence(seed).spawn(len(sizes))

    def block(size: int, own_seed: np.random.SeedSequence) -> FloatArray:
        counts = _draw(size, n_units, np.random.default_rng(own_seed))
        return statistic(counts if codes is None else counts[:, codes])

    jobs = zip(sizes, seeds, strict=True)
    blocks = Parallel(n_jobs=n_jobs, prefer="threads")(
        delayed(block)(size, own_seed) for size, own_seed in (progress(jobs) if progress else jobs)
    )
    return np.concatenate(blocks)


def paired_bootstrap(
    samples: ArrayLike,
    *,
    reference: int | None = None,
    n_resamples: int = 10_000,
    confidence_level: float = 0.95,
    groups: ArrayLike | None = None,
    random_state: Any = None,
    n_jobs: int | None = None,
) -> pd.DataFrame:
    """Percentile intervals of means, or of differences from a reference column.

    Parameters
    ----------
    samples : array-like of shape (n_runs, n_columns)
        One score a run and predictor, such as columns of `trajscore.metrics.tps_samples`.
    reference : int, optional
        Column that is subtracted from all columns, run by run.
    n_resamples : int, default=10000
        Number of replicates.
    confidence_level : float, default=0.95
        Level of the intervals.
    groups : array-like of shape (n_runs,), optional
        Clusters of runs that are drawn together.
    random_state : int, RandomState instance or None, default=None
        Seed.
    n_jobs : int, optional
        Threads; the result does not depend on it.

    Returns
    -------
    DataFrame with n_columns rows
        mean, low, high and std_error.

    Examples
    --------
    >>> import numpy as np
    >>> samples = np.array([[-0.2, -0.3], [-0.1, -0.3], [-0.3, -0.3], [-0.2, -0.3]])
    >>> paired_bootstrap(samples, reference=1, random_state=0).round(2)[["mean", "low", "high"]]
       mean   low  high
    0   0.1  0.02  0.18
    1   0.0  0.00  0.00
    """
    values = np.asarray(samples, dtype=np.float64)
    if values.ndim != 2 or not np.isfinite(values).all():
        raise ValueError("samples must be a finite array of shape (n_runs, n_columns)")
    if reference is not None:
        values = values - values[:, [reference]]
    replicates = bootstrap(
        lambda counts: counts @ values / counts.sum(axis=1, keepdims=True),
        len(values),
        n_resamples=n_resamples,
        groups=groups,
        random_state=random_state,
        n_jobs=n_jobs,
    )
    low, high = percentile_interval(replicates, confidence_level)
    return pd.DataFrame(
        {
            "mean": values.mean(axis=0),
            "low": low,
            "high": high,
            "std_error": replicates.std(axis=0, ddof=1),
        }
    )


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


def _clusters(groups: ArrayLike | None, n_runs: int) -> tuple[NDArray[np.int64] | None, int]:
    if groups is None:
        return None, n_runs
    codes, names = pd.factorize(np.asarray(groups), sort=True)
    if len(codes) != n_runs or (codes < 0).any():
        raise ValueError(f"groups must name the cluster of each of the {n_runs} runs")
    if len(names) < 2:
        raise ValueError("all runs are of one cluster; a cluster bootstrap needs at least two")
    return codes, len(names)


def _draw(size: int, n_units: int, rng: np.random.Generator) -> FloatArray:
    """Count how often each unit is drawn, in `size` samples with replacement."""
    drawn = rng.integers(n_units, size=(size, n_units))
    drawn += n_units * np.arange(size)[:, None]
    counts = np.bincount(drawn.ravel(), minlength=size * n_units)
    return counts.reshape(size, n_units).astype(np.float64)
