"""What all displays share."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

COLORS = {"raw": "#c8553d", "calibrated": "#28666e", "constant": "#7a7a7a"}
SERIES = ("#28666e", "#c8553d", "#e0a458", "#5f5aa2", "#7a7a7a", "#3f8f4f")


def new_axes(ax: Any) -> Any:
    """Return the axes to draw on, with their figure; matplotlib is imported only here.

    Parameters
    ----------
    ax : matplotlib Axes or None
        Given axes, or None for new ones.

    Returns
    -------
    matplotlib Axes
        The axes.

    Raises
    ------
    ImportError
        If matplotlib is not installed.
    """
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError(
            'plots need matplotlib; run `pip install "scikit-trajscore[plots]"`'
        ) from error
    if ax is None:
        _, ax = plt.subplots()
    return ax


def wilson_interval(
    rate: ArrayLike, n: ArrayLike, z: float = 1.959963984540054
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Interval of a binomial rate (Wilson score), honest with few observations.

    Parameters
    ----------
    rate : array-like
        Observed rates.
    n : array-like
        Numbers of observations.
    z : float
        Normal quantile of the level; the default is for 95%.

    Returns
    -------
    low, high : ndarray
        Ends of the intervals.

    Examples
    --------
    >>> low, high = wilson_interval(0.5, 10)
    >>> print(f"{low:.3f} {high:.3f}")
    0.237 0.763
    """
    p, size = np.asarray(rate, dtype=np.float64), np.asarray(n, dtype=np.float64)
    center = (p + z**2 / (2 * size)) / (1 + z**2 / size)
    half = z * np.sqrt(p * (1 - p) / size + z**2 / (4 * size**2)) / (1 + z**2 / size)
    return np.maximum(center - half, 0.0), np.minimum(center + half, 1.0)
