"""Interval of a binomial rate."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from trajscore.core.type_aliases import FloatArray

Z = 1.959963984540054
"""Quantile of a normal 95% interval."""


def wilson_interval(rate: ArrayLike, n: ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Return the ends of a binomial rate's 95% interval (Wilson score), honest with few trials.

    >>> low, high = wilson_interval(0.5, 10)
    >>> print(f"{low:.3f} {high:.3f}")
    0.237 0.763
    """
    p, size = np.asarray(rate, dtype=np.float64), np.asarray(n, dtype=np.float64)
    center = (p + Z**2 / (2 * size)) / (1 + Z**2 / size)
    half = Z * np.sqrt(p * (1 - p) / size + Z**2 / (4 * size**2)) / (1 + Z**2 / size)
    return np.maximum(center - half, 0.0), np.minimum(center + half, 1.0)
