"""Which values are equal: two that agree to 12 significant digits differ by rounding only."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from trajscore.core.type_aliases import BoolArray, FloatArray, IntArray

ROUNDING = 1e-12
"""Relative difference up to which two values are the same."""


def rises(ascending: NDArray[Any]) -> BoolArray:
    """Whether each of ascending values is more than rounding above the one before; the first is.

    >>> rises(np.array([0.3, 0.1 + 0.2, 0.4]))
    array([ True, False,  True])
    """
    below, above = ascending[:-1], ascending[1:]
    least = np.where(above > 0, above * (1 - ROUNDING), above)
    new = np.ones(len(ascending), dtype=bool)
    # towards 0, where an infinity stays one
    new[1:] = np.where(above < 0, below * (1 - ROUNDING), below) < least
    return new


def group_ties(values: NDArray[Any]) -> tuple[FloatArray, IntArray]:
    """Return the smallest value of each group of ties, ascending, and the group of each value.

    >>> group_ties(np.array([0.1 + 0.2, 0.4, 0.3]))
    (array([0.3, 0.4]), array([0, 1, 0]))
    """
    order = np.argsort(values)
    ascending = values[order]
    new = rises(ascending)
    group = np.empty(len(values), dtype=np.int64)
    group[order] = np.cumsum(new) - 1
    return ascending[new], group
