"""Derivatives of the rank statistics in the failures and successes of each tie group.

The influence of a run on a statistic is the derivative of the statistic in the run's weight. All
functions take one weighting, failures and successes of shape (n_groups,) in ascending order of
confidence as in `ranking`, and return the derivatives in both, of the same shapes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from trajscore.core import ranking
from trajscore.core.type_aliases import FloatArray

Gradient = Callable[[FloatArray, FloatArray], tuple[FloatArray, FloatArray]]


def auroc(failures: FloatArray, successes: FloatArray) -> tuple[FloatArray, FloatArray]:
    """A failure counts by the share of successes above it, a success by that of failures below."""
    F, S, A = failures.sum(), successes.sum(), ranking.auroc(failures, successes)
    above = np.cumsum(successes[::-1])[::-1] - successes / 2
    below = np.cumsum(failures) - failures / 2
    with np.errstate(invalid="ignore", divide="ignore"):  # NaN where only one outcome occurs
        return (above / S - A) / F, (below / F - A) / S


def auprc(failures: FloatArray, successes: FloatArray) -> tuple[FloatArray, FloatArray]:
    """A failure adds its precision; it and every success change the precision of later ones."""
    F, P = failures.sum(), ranking.auprc(failures, successes)
    hits, flagged = np.cumsum(failures), np.cumsum(failures + successes)
    with np.errstate(invalid="ignore", divide="ignore"):
        precision = np.where(flagged > 0, hits / flagged, 0.0)
        later = np.where(flagged > 0, failures / flagged, 0.0)
    missed = _sum_from(later * (1 - precision))
    wrong = _sum_from(later * precision)
    with np.errstate(invalid="ignore", divide="ignore"):  # NaN where no failure occurs
        return (precision + missed - P) / F, -wrong / F


def aurc(failures: FloatArray, successes: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Differentiate the area of each group in its errors, size, and what is accepted before it."""
    e, m = failures[::-1], (failures + successes)[::-1]
    n = np.cumsum(m)
    b, B = n - m, np.cumsum(e) - e
    r = np.divide(e, m, out=np.zeros_like(e), where=m > 0)
    q = np.divide(b, m, out=np.zeros_like(e), where=m > 0)
    D = ranking.harmonic(n) - ranking.harmonic(b)
    slope = ranking.harmonic_slope(n)
    # area of a group: e + (B - b r) D
    in_errors = 1 - q * D
    in_size = q * r * D + (B - b * r) * slope
    in_before = -r * D + (B - b * r) * (slope - ranking.harmonic_slope(b))
    area = (e + (B - b * r) * D).sum() / n[-1]
    after_failure = _sum_after(in_before + D)
    after_success = _sum_after(in_before)
    failure = (in_errors + in_size + after_failure - area) / n[-1]
    success = (in_size + after_success - area) / n[-1]
    return failure[::-1], success[::-1]


def _sum_from(values: FloatArray) -> FloatArray:
    return np.cumsum(values[::-1])[::-1]


def _sum_after(values: FloatArray) -> FloatArray:
    return _sum_from(values) - values


GRADIENTS: dict[Any, Gradient] = {
    ranking.auroc: auroc,
    ranking.auprc: auprc,
    ranking.aurc: aurc,
}
