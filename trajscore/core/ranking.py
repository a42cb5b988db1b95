"""Tie-aware statistics of one confidence a run, for many weightings of the runs at once.

Runs that share a confidence form a tie group. Each statistic is a function of the weight of
failures and of successes in every group, arrays of shape (..., n_groups) in ascending order of
confidence, so it cannot depend on the order of rows; a bootstrap replicate is one more weighting.
The influence of a run on a statistic is the derivative of the statistic in the run's weight.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.sparse import csr_array
from scipy.special import digamma, polygamma

from trajscore.core.ties import group_ties
from trajscore.core.type_aliases import FloatArray, IntArray

# Of whole numbers up to what most weights add up to; a table is faster than the digamma function.
_HARMONIC = np.concatenate([[0.0], np.cumsum(1.0 / np.arange(1, 1 << 16))])
_ONE_STRATUM = np.zeros(1, dtype=np.int64)


class TieGroups:
    """Runs sorted by confidence (higher: success is more likely) and grouped by ties.

    Where there are strata, numbered from 0, one comes after the other; `starts` has the first group
    of each.
    """

    def __init__(
        self, confidence: FloatArray, success: FloatArray, stratum: IntArray | None = None
    ) -> None:
        self.confidence, group = group_ties(confidence, stratum)
        n_groups = len(self.confidence)
        of_group = np.zeros(n_groups, dtype=np.int64)
        if stratum is not None:
            of_group[group] = stratum
        self.starts = np.flatnonzero(np.diff(of_group, prepend=-1))
        # a sparse matrix product sums any number of weightings, in one pass over the runs
        share = np.stack([1.0 - success, success], axis=1)
        used = share != 0
        self._groups = csr_array(
            (
                share[used],
                np.stack([group, group + n_groups], axis=1)[used],
                np.append(0, np.cumsum(used.sum(axis=1))),
            ),
            shape=(len(group), 2 * n_groups),
        )

    def sums(self, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the failures and the successes of each group, for weights (..., n_runs)."""
        flat = weights.reshape(-1, weights.shape[-1])
        both = np.ascontiguousarray(flat @ self._groups)
        both = both.reshape(*weights.shape[:-1], 2, len(self.confidence))
        return both[..., 0, :], both[..., 1, :]

    def to_runs(self, failures: FloatArray, successes: FloatArray) -> FloatArray:
        """Give each run what its group has for a failure or a success, a graded one of both."""
        return np.asarray(self._groups @ np.concatenate([failures, successes]))


def auroc(
    failures: FloatArray, successes: FloatArray, starts: IntArray = _ONE_STRATUM
) -> FloatArray:
    """Probability that a failure has the lower confidence of a pair; ties count half.

    Pairs are of one stratum, which begin at groups `starts`: runs of one length, of one log, or
    held out in one fold. A forecast gets nothing for what is the same for both runs of every pair.
    """
    with np.errstate(invalid="ignore", divide="ignore"):  # NaN where there is no pair
        # a share of the successes first: products of large weights would overflow
        share = successes / successes.sum(axis=-1, keepdims=True)
        right = (share * _below(failures, starts)).sum(axis=-1)
        return np.asarray(right / (share * _in_stratum(failures, starts)).sum(axis=-1))


def auprc(failures: FloatArray, successes: FloatArray) -> FloatArray:
    """Average precision of finding failures by low confidence, a tie group at a time."""
    hits = np.cumsum(failures, axis=-1)
    flagged = hits + np.cumsum(successes, axis=-1)
    with np.errstate(invalid="ignore", divide="ignore"):  # NaN where no failure occurs
        precision = np.where(flagged > 0, hits / flagged, 0.0)
        return np.asarray((failures * precision).sum(axis=-1) / failures.sum(axis=-1))


def aurc(failures: FloatArray, successes: FloatArray) -> FloatArray:
    """Mean failure rate among the k most confident, over k = 1, ..., n and all orders of ties."""
    errors, size = failures[..., ::-1], (failures + successes)[..., ::-1]
    accepted = np.cumsum(size, axis=-1)
    before = accepted - size
    errors_before = np.cumsum(errors, axis=-1) - errors
    with np.errstate(invalid="ignore", divide="ignore"):
        rate = np.where(size > 0, errors / size, 0.0)
    # sum over k of (E + (k - m) rate) / k for k = m + 1, ..., m + size
    between = harmonic(accepted) - harmonic(before)
    area = size * rate + (errors_before - before * rate) * between
    with np.errstate(invalid="ignore"):  # NaN where no run counts
        return np.asarray(area.sum(axis=-1) / accepted[..., -1])


def harmonic(n: FloatArray) -> FloatArray:
    """Harmonic numbers, continued to weights that are not whole by the digamma function."""
    # which way a number takes must not depend on those that are computed with it
    small = n < len(_HARMONIC)
    whole = np.where(small, n, 0).astype(np.int64)
    harmonic = _HARMONIC[whole]
    other = ~small | (whole != n)
    harmonic[other] = digamma(n[other] + 1) + np.euler_gamma
    return harmonic


def harmonic_slope(n: FloatArray) -> FloatArray:
    """Derivative of the harmonic numbers in n, the trigamma function of n + 1."""
    small = n < len(_HARMONIC)
    large = n[~small]
    slope = np.empty(n.shape)
    slope[small] = polygamma(1, n[small] + 1)
    slope[~small] = (1 - (0.5 - 1 / (6 * large)) / large) / large
    return slope


def auroc_gradient(
    failures: FloatArray, successes: FloatArray, starts: IntArray = _ONE_STRATUM
) -> tuple[FloatArray, FloatArray]:
    """A failure counts by the successes above it, a success by the failures below."""
    S, A = successes.sum(), auroc(failures, successes, starts)
    n_failures, n_successes = _in_stratum(failures, starts), _in_stratum(successes, starts)
    above = n_successes - _below(successes, starts)
    with np.errstate(invalid="ignore", divide="ignore"):  # NaN where there is no pair
        F = (successes / S * n_failures).sum()
        of_failure, of_success = above - A * n_successes, _below(failures, starts) - A * n_failures
        return of_failure / S / F, of_success / S / F


def auprc_gradient(failures: FloatArray, successes: FloatArray) -> tuple[FloatArray, FloatArray]:
    """A failure adds its precision; it and every success change the precision of later ones."""
    F, P = failures.sum(), auprc(failures, successes)
    hits, flagged = np.cumsum(failures), np.cumsum(failures + successes)
    with np.errstate(invalid="ignore", divide="ignore"):
        precision = np.where(flagged > 0, hits / flagged, 0.0)
        later = np.where(flagged > 0, failures / flagged, 0.0)
    missed = _sum_from(later * (1 - precision))
    wrong = _sum_from(later * precision)
    with np.errstate(invalid="ignore", divide="ignore"):  # NaN where no failure occurs
        return (precision + missed - P) / F, -wrong / F


def aurc_gradient(failures: FloatArray, successes: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Differentiate the area of each group in its errors, size, and what is accepted before it."""
    e, m = failures[::-1], (failures + successes)[::-1]
    n = np.cumsum(m)
    b, B = n - m, np.cumsum(e) - e
    r = np.divide(e, m, out=np.zeros_like(e), where=m > 0)
    q = np.divide(b, m, out=np.zeros_like(e), where=m > 0)
    D = harmonic(n) - harmonic(b)
    slope = harmonic_slope(n)
    # area of a group: e + (B - b r) D
    in_errors = 1 - q * D
    in_size = q * r * D + (B - b * r) * slope
    in_before = -r * D + (B - b * r) * (slope - harmonic_slope(b))
    area = (e + (B - b * r) * D).sum() / n[-1]
    after_failure = _sum_after(in_before + D)
    after_success = _sum_after(in_before)
    failure = (in_errors + in_size + after_failure - area) / n[-1]
    success = (in_size + after_success - area) / n[-1]
    return failure[::-1], success[::-1]


def _below(part: FloatArray, starts: IntArray) -> FloatArray:
    """Sum over the groups of the stratum that lie below each, and half of its own."""
    total = np.cumsum(part, axis=-1)
    if len(starts) > 1:
        total -= _spread((total - part)[..., starts], starts, part)
    total -= part / 2
    return total


def _in_stratum(part: FloatArray, starts: IntArray) -> FloatArray:
    """Sum over the stratum of each group."""
    if len(starts) == 1:
        return np.asarray(part.sum(axis=-1, keepdims=True))
    return _spread(np.add.reduceat(part, starts, axis=-1), starts, part)


def _spread(of_strata: FloatArray, starts: IntArray, part: FloatArray) -> FloatArray:
    """Give each group what its stratum has."""
    return np.repeat(of_strata, np.diff(starts, append=part.shape[-1]), axis=-1)


def _sum_from(values: FloatArray) -> FloatArray:
    return np.cumsum(values[::-1])[::-1]


def _sum_after(values: FloatArray) -> FloatArray:
    return _sum_from(values) - values


GRADIENTS: dict[Any, Callable[[FloatArray, FloatArray], tuple[FloatArray, FloatArray]]] = {
    auroc: auroc_gradient,
    auprc: auprc_gradient,
    aurc: aurc_gradient,
}
"""Derivatives of each statistic in the failures and successes of each group, for one weighting."""


def auroc_within(
    confidence: FloatArray, success: FloatArray, stratum: IntArray
) -> tuple[float, FloatArray]:
    """Return AUROC over pairs of runs of one stratum, and the influence of each run on it."""
    ties = TieGroups(confidence, success, np.unique(stratum, return_inverse=True)[1])
    sums = ties.sums(np.ones(len(success)))
    influence = len(success) * ties.to_runs(*auroc_gradient(*sums, ties.starts))
    return float(auroc(*sums, ties.starts)), influence
