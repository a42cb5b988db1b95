"""Intervals of sums of absolute means, such as calibration errors, that hold near zero too."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.stats import norm

from trajscore.core.ties import SUM_ROUNDING
from trajscore.core.type_aliases import FloatArray
from trajscore.inference.influence import Spread
from trajscore.inference.units import Units

_DRAWS = 4_000


class Parts(NamedTuple):
    """Means of shape (n_bins,) and the influences of runs on them, of shape (n_runs, n_bins)."""

    mean: FloatArray
    influence: FloatArray


def absolute_interval(
    ours: Parts, theirs: Parts | None, units: Units, confidence_level: float
) -> tuple[float, float]:
    """Bounds of the sum of absolute means, or of how far it exceeds another on the same runs.

    The estimate is too large by chance, the more so the closer the truth is to zero, where it is
    not differentiable: neither influences nor a bootstrap cover it there. But with errors e of the
    means d it lies, as a convex function, above the truth plus sign(d) e, and by the triangle
    inequality below the truth plus the sum of abs(e). Quantiles of these, for normal errors of the
    same covariance, make bounds that hold wherever the truth is: the lower one is wide.
    """
    blocks = [ours] if theirs is None else [ours, theirs]
    spread = Spread(np.concatenate([block.influence for block in blocks], axis=1), units)
    tail = (1 + confidence_level) / 2
    quantile = units.t_quantile(spread.n_runs, confidence_level)
    errors = quantile / norm.ppf(tail) * spread.draw(_DRAWS)
    below, above = _reach(ours, errors[:, : len(ours.mean)])
    estimate = np.abs(ours.mean).sum()
    if theirs is None:
        low, high = estimate - np.quantile(above, tail), estimate - np.quantile(below, 1 - tail)
        return max(float(low), 0.0), min(float(high), 1.0)
    below_theirs, above_theirs = _reach(theirs, errors[:, len(ours.mean) :])
    estimate -= np.abs(theirs.mean).sum()
    low = estimate - np.quantile(above - below_theirs, tail)
    return float(low), float(estimate + np.quantile(above_theirs - below, tail))


def _reach(parts: Parts, errors: FloatArray) -> tuple[FloatArray, FloatArray]:
    """How far the estimate lies above the truth: at least, and at most, for each draw of errors."""
    # a mean of 0 may have come from either side: the sign that it has by rounding says nothing
    sign = np.where(parts.mean < -SUM_ROUNDING, -1.0, 1.0)
    return errors @ sign, np.abs(errors).sum(axis=1)
