"""Interval of a binomial rate."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from trajscore.core.type_aliases import FloatArray


def wilson_interval(rate: ArrayLike, n: ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Return the ends of a binomial rate's 95% interval (Wilson score), honest with few trials.

    >>> low, high = wilson_interval(0.5, 10)
    >>> print(f"{low:.3f} {high:.3f}")
    0.237 0.763
    """
    z = 1.959963984540054
    p, size = np.asarray(rate, dtype=np.float64), np.asarray(n, dtype=np.float64)
    center = (p + z**2 / (2 * size)) / (1 + z**2 / size)
    half = z * np.sqrt(p * (1 - p) / size + z**2 / (4 * size**2)) / (1 + z**2 / size)
    return np.maximum(center - half, 0.0), np.minimum(center + half, 1.0)
