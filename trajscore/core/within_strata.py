"""AUROC over pairs of runs of one stratum, so that the stratum carries no information.

Runs of one length, of one log, or held out in one fold: a forecast gets nothing for what is the
same for both runs of every pair. With one stratum it is AUROC.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from trajscore.core.ranking import TieGroups
from trajscore.core.type_aliases import FloatArray, IntArray


@dataclass(frozen=True)
class AurocWithin:
    """Share of the pairs of a failure and a success of one stratum in which the failure is lower.

    Ties count half. A statistic as those of `statistics`, of runs that all count.
    """

    ties: TieGroups  # groups of runs of one stratum that are tied, stratum after stratum

    @classmethod
    def of(cls, confidence: FloatArray, success: FloatArray, stratum: IntArray) -> AurocWithin:
        """Group runs by stratum and confidence (higher: success is more likely)."""
        stratum = pd.factorize(stratum, sort=True)[0]
        return cls(TieGroups(confidence, success, stratum))

    def __call__(self, counts: FloatArray) -> FloatArray:
        """Return the share for each weighting (..., n_runs), NaN where there is no pair."""
        failures, successes = self.ties.sums(counts)
        right = (failures * self._above(successes)).sum(axis=-1)
        with np.errstate(invalid="ignore"):
            return np.asarray(right / self._n_pairs(failures, successes))

    def influence(self, n_runs: int) -> FloatArray:
        """Return the influence of each of the n_runs runs."""
        counts = np.ones(n_runs)
        failures, successes = self.ties.sums(counts)
        share, total = self(counts), self._n_pairs(failures, successes)
        with np.errstate(invalid="ignore"):
            of_failure = (self._above(successes) - share * self._all(successes)) / total
            of_success = (self._below(failures) - share * self._all(failures)) / total
        return n_runs * self.ties.to_runs(of_failure, of_success)

    def _n_pairs(self, failures: FloatArray, successes: FloatArray) -> FloatArray:
        starts = self.ties.starts
        of_each = [np.add.reduceat(part, starts, axis=-1) for part in (failures, successes)]
        return np.asarray((of_each[0] * of_each[1]).sum(axis=-1))

    def _all(self, part: FloatArray) -> FloatArray:
        """Sum over the stratum of each group."""
        sizes = np.diff(self.ties.starts, append=len(self.ties.confidence))
        return np.repeat(np.add.reduceat(part, self.ties.starts, axis=-1), sizes, axis=-1)

    def _below(self, part: FloatArray) -> FloatArray:
        """Sum over the groups of the stratum that lie below each, and half of its own."""
        total = np.cumsum(part, axis=-1)
        before = (total - part)[..., self.ties.starts]
        sizes = np.diff(self.ties.starts, append=len(self.ties.confidence))
        return np.asarray(total - np.repeat(before, sizes, axis=-1) - part / 2)

    def _above(self, part: FloatArray) -> FloatArray:
        return np.asarray(self._all(part) - self._below(part))
