"""Comparisons free of the length of runs: at one step, among runs of one length."""

from __future__ import annotations

import numpy as np

from trajscore.core.array import TrajectoryArray
from trajscore.core.type_aliases import FloatArray, IntArray

# With so few, 95% intervals hold in 98 of 100 sets of runs, and are .5 wide; with more they come to
# 95, and where strata are many and small they stay above.
FEWEST = 10
"""Runs of each outcome below which no interval is believed."""
# Up to 10 steps a bin is one length; lengths of one bin differ by a tenth at most.
_WIDTH = 0.1
_FIRST_STEPS = (1, 2, 3, 4, 6, 8)


def length_bins(lengths: IntArray) -> IntArray:
    """Return the bin of each length: runs of one bin are equally long, or nearly so.

    >>> length_bins(np.array([9, 10, 11, 12, 13, 14])).tolist()
    [9, 10, 10, 11, 11, 12]
    """
    edges, longest = [1], int(lengths.max(initial=0))
    while edges[-1] <= longest:
        edges.append(int(edges[-1] * (1 + _WIDTH)) + 1)
    return np.searchsorted(edges, lengths, side="right")


def round_steps(longest: int) -> list[int]:
    """Return the steps at which forecasts are judged.

    >>> round_steps(60)
    [1, 2, 3, 4, 6, 8, 10, 15, 20, 30, 50]
    """
    decades = 10 ** np.arange(1, len(str(longest)))
    later = np.multiply.outer(decades, (1.0, 1.5, 2.0, 3.0, 5.0)).ravel().astype(int).tolist()
    return [t for t in [*_FIRST_STEPS, *later] if t <= longest]


def has_both(success: FloatArray) -> bool:
    """Whether there are enough runs of each outcome."""
    return bool(min(success.sum(), (1 - success).sum()) >= FEWEST)


def at_step(X: TrajectoryArray, t: int) -> tuple[IntArray, FloatArray]:
    """Return the runs of at least t steps that have a value after step t, and these values."""
    rows = np.flatnonzero(X.lengths >= t)
    values = X.cells.ravel()[X.offsets[rows] + t - 1]
    there = ~np.isnan(values)
    return rows[there], values[there]


def runs_with_a_partner(success: FloatArray, stratum: IntArray) -> IntArray:
    """Return the runs that have one of another outcome in their stratum.

    >>> runs_with_a_partner(np.array([1.0, 0, 1, 0]), np.array([5, 5, 7, 8]))
    array([0, 1])
    """
    _, code = np.unique(stratum, return_inverse=True)
    successes, failures = (np.bincount(code, part) for part in (success, 1 - success))
    return np.flatnonzero((np.minimum(successes, failures) > 0)[code])
