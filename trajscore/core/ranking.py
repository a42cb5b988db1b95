"""Tie-aware statistics of one confidence a run, for many weightings of the runs at once.

Runs that share a confidence form a tie group. Each statistic is a function of the weight of
failures and of successes in every group, arrays of shape (..., n_groups) in ascending order of
confidence, so it cannot depend on the order of rows; a bootstrap replicate is one more weighting.
The influence of a run on a statistic is the derivative of the statistic in the run's weight.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.sparse import csr_array
from scipy.special import digamma, polygamma

from trajscore.core.ties import group_ties
from trajscore.core.values import FloatArray, FloatPair, IntArray, undefined_is_nan


class TieGroups:
    """Runs sorted by confidence (higher: success is more likely) and grouped by ties."""

    def __init__(self, confidence: FloatArray, success: FloatArray) -> None:
        self.confidence, group = group_ties(confidence)
        n_groups = len(self.confidence)
        # a sparse matrix product sums any number of weightings, in one pass over the runs
        rows = np.arange(len(group)).repeat(2)
        columns = np.stack([group, group + n_groups], axis=1).ravel()
        share = np.stack([1.0 - success, success], axis=1).ravel()
        self._groups = csr_array((share, (rows, columns)), shape=(len(group), 2 * n_groups))
        self._groups.eliminate_zeros()

    def sums(self, weights: FloatArray) -> FloatPair:
        """Return the failures and the successes of each group, for weights (..., n_runs)."""
        flat = weights.reshape(-1, weights.shape[-1])
        both = np.ascontiguousarray(flat @ self._groups)
        both = both.reshape(*weights.shape[:-1], 2, len(self.confidence))
        return both[..., 0, :], both[..., 1, :]

    def to_runs(self, failures: FloatArray, successes: FloatArray) -> FloatArray:
        """Give each run what its group has for a failure or a success, a graded one of both."""
        return self._groups @ np.concatenate([failures, successes])


def auroc(failures: FloatArray, successes: FloatArray) -> FloatArray:
    """Probability that a failure has the lower confidence of a pair; ties count half."""
    above = _sum_from(successes) - successes / 2
    n_above = successes.sum(axis=-1, keepdims=True)
    with undefined_is_nan():  # NaN where only one outcome occurs
        # a share of the successes first: products of large weights would overflow
        return (failures * (above / n_above)).sum(axis=-1) / failures.sum(axis=-1)


def auprc(failures: FloatArray, successes: FloatArray) -> FloatArray:
    """Average precision of finding failures by low confidence, a tie group at a time."""
    hits = np.cumsum(failures, axis=-1)
    flagged = hits + np.cumsum(successes, axis=-1)
    with undefined_is_nan():  # NaN where no failure occurs
        precision = np.where(flagged > 0, hits / flagged, 0.0)
        return (failures * precision).sum(axis=-1) / failures.sum(axis=-1)


@undefined_is_nan()  # NaN where no run counts
def aurc(failures: FloatArray, successes: FloatArray) -> FloatArray:
    """Mean failure rate among the k most confident, over k = 1, ..., n and all orders of ties."""
    errors = failures[..., ::-1]
    size = (failures + successes)[..., ::-1]
    accepted = np.cumsum(size, axis=-1)
    before = accepted - size
    errors_before = np.cumsum(errors, axis=-1) - errors
    rate = np.where(size > 0, errors / size, 0.0)
    # sum over k of (E + (k - m) rate) / k for k = m + 1, ..., m + size
    between = np.diff(harmonic(accepted), prepend=0.0)
    area = size * rate + (errors_before - before * rate) * between
    return area.sum(axis=-1) / accepted[..., -1]


def harmonic(n: FloatArray) -> FloatArray:
    """Harmonic numbers, continued to weights that are not whole by the digamma function."""
    return digamma(n + 1) + np.euler_gamma


def auroc_gradient(failures: FloatArray, successes: FloatArray) -> FloatPair:
    """A failure counts by the share of successes above it, a success by that of failures below."""
    F = failures.sum()
    S = successes.sum()
    A = auroc(failures, successes)
    above = _sum_from(successes) - successes / 2
    below = np.cumsum(failures) - failures / 2
    with undefined_is_nan():  # NaN where only one outcome occurs
        return (above / S - A) / F, (below / F - A) / S


@undefined_is_nan()  # NaN where no failure occurs
def auprc_gradient(failures: FloatArray, successes: FloatArray) -> FloatPair:
    """A failure adds its precision; it and every success change the precision of later ones."""
    F = failures.sum()
    P = auprc(failures, successes)
    hits = np.cumsum(failures)
    flagged = np.cumsum(failures + successes)
    precision = np.where(flagged > 0, hits / flagged, 0.0)
    later = np.where(flagged > 0, failures / flagged, 0.0)
    missed = _sum_from(later * (1 - precision))
    wrong = _sum_from(later * precision)
    return (precision + missed - P) / F, -wrong / F


def aurc_gradient(failures: FloatArray, successes: FloatArray) -> FloatPair:
    """Differentiate the area of each group in its errors, size, and what is accepted before it."""
    e = failures[::-1]
    m = (failures + successes)[::-1]
    n = np.cumsum(m)
    b = n - m
    B = np.cumsum(e) - e
    r = np.divide(e, m, out=np.zeros_like(e), where=m > 0)
    q = np.divide(b, m, out=np.zeros_like(e), where=m > 0)
    D = harmonic(n) - harmonic(b)
    slope = polygamma(1, n + 1)  # of the harmonic numbers
    # area of a group: e + (B - b r) D
    in_errors = 1 - q * D
    in_size = q * r * D + (B - b * r) * slope
    in_before = -r * D + (B - b * r) * (slope - polygamma(1, b + 1))
    area = aurc(failures, successes)
    after_success = _sum_from(in_before) - in_before
    after_failure = after_success + _sum_from(D) - D
    failure = (in_errors + in_size + after_failure - area) / n[-1]
    success = (in_size + after_success - area) / n[-1]
    return failure[::-1], success[::-1]


def _sum_from(values: FloatArray) -> FloatArray:
    return np.cumsum(values[..., ::-1], axis=-1)[..., ::-1]


GRADIENTS: dict[Any, Callable[[FloatArray, FloatArray], FloatPair]] = {
    auroc: auroc_gradient,
    auprc: auprc_gradient,
    aurc: aurc_gradient,
}
"""Derivatives of each statistic in the failures and successes of each group, for one weighting."""


def auroc_within(
    confidence: FloatArray, success: FloatArray, stratum: IntArray
) -> tuple[float, FloatArray]:
    """Return AUROC over the pairs of one stratum, NaN without one, and the influence of each run.

    Runs of one length, of one log, or held out in one fold: a forecast gets nothing for what is the
    same for both runs of every pair. With one stratum it is `auroc`.
    """
    codes = np.unique(stratum, return_inverse=True)[1]
    distinct, group = group_ties(confidence, codes)
    failures = np.bincount(group, 1 - success)
    successes = np.bincount(group, success)
    of_group = np.zeros(len(distinct), dtype=np.int64)
    of_group[group] = codes

    def of_stratum(part: Any) -> Any:
        return np.bincount(of_group, part)

    def below(part: Any) -> Any:  # in its stratum, and half of its own
        lower_strata = np.cumsum(of_stratum(part)) - of_stratum(part)
        return np.cumsum(part) - lower_strata[of_group] - part / 2

    n_failures = of_stratum(failures)[of_group]
    n_successes = of_stratum(successes)[of_group]
    n_pairs = (successes * n_failures).sum()
    with undefined_is_nan():
        share = (successes * below(failures)).sum() / n_pairs
        of_failure = (n_successes - below(successes) - share * n_successes) / n_pairs
        of_success = (below(failures) - share * n_failures) / n_pairs
    influence = (1 - success) * of_failure[group] + success * of_success[group]
    return float(share), len(success) * influence
