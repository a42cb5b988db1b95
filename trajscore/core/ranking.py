"""Tie-aware statistics of one confidence a run, for many weightings of the runs at once.

Runs that share a confidence form a tie group. Each statistic is a function of the weight of
failures and of successes in every group, arrays of shape (..., n_groups) in ascending order of
confidence, so it cannot depend on the order of rows; a bootstrap replicate is one more weighting.
The influence of a run on a statistic is the derivative of the statistic in the run's weight.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import csr_array
from scipy.special import digamma, polygamma

from trajscore.core.ties import group_ties
from trajscore.core.type_aliases import FloatArray, IntArray


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
        rows = np.arange(len(group)).repeat(2)
        columns = np.stack([group, group + n_groups], axis=1).ravel()
        share = np.stack([1.0 - success, success], axis=1).ravel()
        self._groups = csr_array((share, (rows, columns)), shape=(len(group), 2 * n_groups))
        self._groups.eliminate_zeros()

    def sums(self, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the failures and the successes of each group, for weights (..., n_runs)."""
        flat = weights.reshape(-1, weights.shape[-1])
        both = np.ascontiguousarray(flat @ self._groups)
        both = both.reshape(*weights.shape[:-1], 2, len(self.confidence))
        return both[..., 0, :], both[..., 1, :]

    def to_runs(self, failures: FloatArray, successes: FloatArray) -> FloatArray:
        """Give each run what its group has for a failure or a success, a graded one of both."""
        return np.asarray(self._groups @ np.concatenate([failures, successes]))


def auroc(failures: FloatArray, successes: FloatArray) -> FloatArray:
    """Probability that a failure has the lower confidence of a pair; ties count half."""
    above = np.cumsum(successes[..., ::-1], axis=-1)[..., ::-1] - successes / 2
    n_above = successes.sum(axis=-1, keepdims=True)
    with np.errstate(invalid="ignore", divide="ignore"):  # NaN where only one outcome occurs
        # a share of the successes first: products of large weights would overflow
        return np.asarray((failures * (above / n_above)).sum(axis=-1) / failures.sum(axis=-1))


def auprc(failures: FloatArray, successes: FloatArray) -> FloatArray:
    """Average precision of finding failures by low confidence, a tie group at a time."""
    hits = np.cumsum(failures, axis=-1)
    flagged = hits + np.cumsum(successes, axis=-1)
    with np.errstate(invalid="ignore", divide="ignore"):  # NaN where no failure occurs
        precision = np.where(flagged > 0, hits / flagged, 0.0)
        return np.asarray((failures * precision).sum(axis=-1) / failures.sum(axis=-1))


def aurc(failures: FloatArray, successes: FloatArray) -> FloatArray:
    """Mean failure rate among the k most confident, over k = 1, ..., n and all orders of ties."""
    errors = failures[..., ::-1]
    size = (failures + successes)[..., ::-1]
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
    return np.asarray(digamma(n + 1) + np.euler_gamma)


def auroc_gradient(failures: FloatArray, successes: FloatArray) -> tuple[FloatArray, FloatArray]:
    """A failure counts by the share of successes above it, a success by that of failures below."""
    F = failures.sum()
    S = successes.sum()
    A = auroc(failures, successes)
    above = np.cumsum(successes[::-1])[::-1] - successes / 2
    below = np.cumsum(failures) - failures / 2
    with np.errstate(invalid="ignore", divide="ignore"):  # NaN where only one outcome occurs
        return (above / S - A) / F, (below / F - A) / S


def auprc_gradient(failures: FloatArray, successes: FloatArray) -> tuple[FloatArray, FloatArray]:
    """A failure adds its precision; it and every success change the precision of later ones."""
    F = failures.sum()
    P = auprc(failures, successes)
    hits = np.cumsum(failures)
    flagged = np.cumsum(failures + successes)
    with np.errstate(invalid="ignore", divide="ignore"):
        precision = np.where(flagged > 0, hits / flagged, 0.0)
        later = np.where(flagged > 0, failures / flagged, 0.0)
    missed = _sum_from(later * (1 - precision))
    wrong = _sum_from(later * precision)
    with np.errstate(invalid="ignore", divide="ignore"):  # NaN where no failure occurs
        return (precision + missed - P) / F, -wrong / F


def aurc_gradient(failures: FloatArray, successes: FloatArray) -> tuple[FloatArray, FloatArray]:
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
    area = (e + (B - b * r) * D).sum() / n[-1]
    after_success = _sum_from(in_before) - in_before
    after_failure = after_success + _sum_from(D) - D
    failure = (in_errors + in_size + after_failure - area) / n[-1]
    success = (in_size + after_success - area) / n[-1]
    return failure[::-1], success[::-1]


def _sum_from(values: FloatArray) -> FloatArray:
    return np.cumsum(values[::-1])[::-1]


GRADIENTS: dict[Any, Callable[[FloatArray, FloatArray], tuple[FloatArray, FloatArray]]] = {
    auroc: auroc_gradient,
    auprc: auprc_gradient,
    aurc: aurc_gradient,
}
"""Derivatives of each statistic in the failures and successes of each group, for one weighting."""


@dataclass(frozen=True)
class AurocWithin:
    """Share of the pairs of a failure and a success of one stratum in which the failure is lower.

    Runs of one length, of one log, or held out in one fold: a forecast gets nothing for what is the
    same for both runs of every pair. With one stratum it is AUROC; ties count half. A statistic as
    those of `statistics`, of runs that all count.
    """

    ties: TieGroups  # groups of runs of one stratum that are tied, stratum after stratum

    @classmethod
    def of(cls, confidence: FloatArray, success: FloatArray, stratum: IntArray) -> AurocWithin:
        """Group runs by stratum and confidence (higher: success is more likely)."""
        codes = np.unique(stratum, return_inverse=True)[1]
        return cls(TieGroups(confidence, success, codes))

    def __call__(self, counts: FloatArray) -> FloatArray:
        """Return the share for each weighting (..., n_runs), NaN where there is no pair."""
        failures, successes = self.ties.sums(counts)
        right = (successes * self._below(failures)).sum(axis=-1)
        with np.errstate(invalid="ignore"):
            return np.asarray(right / (successes * self._all(failures)).sum(axis=-1))

    def influence(self, n_runs: int) -> FloatArray:
        """Return the influence of each of the n_runs runs."""
        counts = np.ones(n_runs)
        failures, successes = self.ties.sums(counts)
        n_failures = self._all(failures)
        n_successes = self._all(successes)
        share = self(counts)
        above = n_successes - self._below(successes)
        total = (successes * n_failures).sum()
        with np.errstate(invalid="ignore"):
            of_failure = (above - share * n_successes) / total
            of_success = (self._below(failures) - share * n_failures) / total
        return n_runs * self.ties.to_runs(of_failure, of_success)

    def _spread(self, of_strata: FloatArray) -> FloatArray:
        """Give each group what its stratum has."""
        sizes = np.diff(self.ties.starts, append=len(self.ties.confidence))
        return np.repeat(of_strata, sizes, axis=-1)

    def _all(self, part: FloatArray) -> FloatArray:
        """Sum over the stratum of each group."""
        return self._spread(np.add.reduceat(part, self.ties.starts, axis=-1))

    def _below(self, part: FloatArray) -> FloatArray:
        """Sum over the groups of the stratum that lie below each, and half of its own."""
        total = np.cumsum(part, axis=-1)
        before = (total - part)[..., self.ties.starts]
        return np.asarray(total - self._spread(before) - part / 2)
