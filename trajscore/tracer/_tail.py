"""The tail functional: the mean of a run's K largest risks, mixed with the largest one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from trajscore.core.array import TrajectoryArray
from trajscore.core.type_aliases import FloatArray, IntArray
from trajscore.core.values import is_number
from trajscore.core.within_runs import run_maxima, running_max

# Cells of the prefixes that are sorted at a time.
_CHUNK_CELLS = 1 << 20
# floor(k N) is meant for the number k as written: 0.29 * 100 is 29
_ROUNDING = 1e-9


def tail_size(lengths: ArrayLike, k: float) -> IntArray:
    """Return K = max(1, floor(k N)) for each length N."""
    whole = np.floor(k * np.asarray(lengths, dtype=np.float64) + _ROUNDING)
    return np.maximum(whole, 1).astype(np.int64)


def check_tail(k: Any, w: Any) -> None:
    """Refuse a tail fraction outside (0, 1] or a weight outside [0, 1]."""
    if not is_number(k) or not 0 < k <= 1:
        raise ValueError(f"k must be a fraction in (0, 1], got {k!r}")
    if not is_number(w) or not 0 <= w <= 1:
        raise ValueError(f"w must be a weight in [0, 1], got {w!r}")


def mixed(mean: FloatArray, largest: FloatArray, w: float | FloatArray) -> FloatArray:
    """Return (1 - w) mean + w largest."""
    return (1 - w) * mean + w * largest


def top_means(X: TrajectoryArray, risk: FloatArray, k: float) -> tuple[FloatArray, FloatArray]:
    """Return for each run the mean of its K largest cells, and the largest one."""
    mean = np.empty(len(X))
    lengths, starts = X.lengths, X.offsets[:-1]
    for length in np.unique(lengths).tolist():
        for runs in _batches(np.flatnonzero(lengths == length), length):
            mean[runs] = _mean_of_largest(risk, starts[runs], length, k)
    return mean, run_maxima(X, risk)


def running_top_means(
    X: TrajectoryArray, risk: FloatArray, k: float
) -> tuple[FloatArray, FloatArray]:
    """Return the same for each prefix of each run, one value a cell."""
    mean = np.empty(len(risk))
    lengths = np.sort(X.lengths)
    starts = X.offsets[np.argsort(X.lengths)]
    for length in range(1, int(lengths[-1]) + 1):  # all prefixes of one length have the same K
        alive = starts[np.searchsorted(lengths, length) :]
        for batch in _batches(alive, length):
            mean[batch + length - 1] = _mean_of_largest(risk, batch, length, k)
    return mean, running_max(X, risk)


def _mean_of_largest(risk: FloatArray, starts: IntArray, length: int, k: float) -> FloatArray:
    """Return the mean of the K largest of the `length` cells from each start."""
    size = int(tail_size(length, k))
    cells = risk[starts[:, None] + np.arange(length)]
    largest = np.partition(cells, length - size, axis=1)[:, length - size :]
    # added up from the largest on: the same digits in whatever company a run is computed
    return np.asarray(np.cumsum(-np.sort(-largest, axis=1), axis=1)[:, -1] / size)


def _batches(runs: IntArray, length: int) -> Iterator[IntArray]:
    """Cut runs into batches of which a bounded number of cells is looked at."""
    n_runs = max(1, _CHUNK_CELLS // length)
    for start in range(0, len(runs), n_runs):
        yield runs[start : start + n_runs]
