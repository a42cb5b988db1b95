"""Trajectory Proper Scores of more runs than memory holds."""

from __future__ import annotations

from copy import deepcopy
from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from trajscore.core.run_sums import score_cells
from trajscore.core.score_families import family_name, get_family, several_families
from trajscore.core.type_aliases import FloatArray
from trajscore.core.weights import Horizon, Weights, as_step_weights
from trajscore.inference._units import left_out_factor, n_equal, t_quantile
from trajscore.streaming._batches import check_batch, check_mergeable, hashed
from trajscore.streaming._labelled import LabelledRuns

# Clusters are told apart by so many hashes; those of one hash count as one cluster.
_BUCKETS = 4096


class TPSAccumulator:
    """Mean Trajectory Proper Scores, their margin over the base rate, and intervals, in one pass.

    What was added up anywhere can be merged, in any order: sums and numbers of runs are all that
    is kept.

    Parameters
    ----------
    score : score family or sequence of them, default="log"
        As in `trajscore.metrics.tps_score`.
    weights, horizon : str or callable, and int, "own" or None
        Step weights, as in `trajscore.metrics.tps_score`.

    See Also
    --------
    iter_batches : Batches of whole runs to update with.
    trajscore.metrics.tps_score : Of runs in memory.

    Notes
    -----
    Intervals are those of `trajscore.inference.influence_interval`, from second moments of the
    runs. With clusters, whose runs may come in different batches, they are from sums over 4,096
    hashes of the clusters' names: clusters that share one count as one, which widens the intervals
    a little where there are thousands.

    Examples
    --------
    >>> from trajscore.streaming import TPSAccumulator
    >>> one = TPSAccumulator("brier").update([1, 0], [[0.9, 0.8], [0.3]])
    >>> both = one.merge(TPSAccumulator("brier").update([1], [[0.6]]))
    >>> both.compute()[["n_runs", "value", "base_rate"]].round(4)
           n_runs   value  base_rate
    brier       3 -0.0778     -0.197
    """

    def __init__(
        self, score: Any = "log", weights: Weights = "early", horizon: Horizon = None
    ) -> None:
        self.scores = several_families(score)
        self.weights = as_step_weights(weights, horizon)
        # and the divisor, weight of successes, of failures, number of runs
        n_sums = len(self.scores) + 4
        self.moments: FloatArray = np.zeros((n_sums, n_sums))
        self.by_cluster: FloatArray | None = None

    def update(self, y: ArrayLike, X: Any, groups: ArrayLike | None = None) -> Self:
        """Add some runs.

        Parameters
        ----------
        y : array-like of shape (n_runs,)
            Outcomes: 1 success, 0 failure, or a grade in [0, 1].
        X : TrajectoryArray or array-like of shape (n_runs, T_max)
            Forecasts of success, one a step.
        groups : array-like of shape (n_runs,), optional
            Clusters of runs; in all updates or in none.

        Returns
        -------
        TPSAccumulator
            Itself.

        Raises
        ------
        ValueError
            As in `trajscore.metrics.tps_score`, or if some updates have groups and others none.
        """
        runs = check_batch(y, X, self.weights, groups)
        return self._add(runs, runs.X.cells) if len(runs.label) else self

    def _add(self, runs: LabelledRuns, forecasts: FloatArray) -> Self:
        """Add trusted runs."""
        if (runs.groups is None) != (self.by_cluster is None) and self.n_runs:
            raise ValueError("groups must be given in all updates, or in none")
        families = [get_family(score) for score in self.scores]
        scored = [runs.sums(score_cells(one, forecasts, runs.step_label)) for one in families]
        won = runs.total * runs.label
        columns = [*scored, runs.divisor, won, runs.total - won, np.ones(len(won))]
        sums = np.stack(columns, axis=1)
        self.moments += sums.T @ sums
        if runs.groups is not None:
            if self.by_cluster is None:
                self.by_cluster = np.zeros((_BUCKETS, sums.shape[1]))
            np.add.at(self.by_cluster, hashed(runs.groups) % _BUCKETS, sums)
        return self

    def _constant(self, forecast: float) -> Self:
        """Return what the same runs add up to with one number as the forecast of every step."""
        onto = np.eye(len(self.moments))
        for j, score in enumerate(self.scores):
            onto[:, j] = 0.0
            onto[-3:-1, j] = _earned(score, forecast)
        found = deepcopy(self)
        found.moments = onto.T @ self.moments @ onto
        if self.by_cluster is not None:
            found.by_cluster = self.by_cluster @ onto
        return found

    @property
    def n_runs(self) -> int:
        """Number of runs so far."""
        return int(self.moments[-1, -1])

    @property
    def success_rate(self) -> float:
        """Success rate over forecasts, each with its weight."""
        won, lost = self.moments[-1, -3:-1]
        return float(won / (won + lost))

    def merge(self, other: Self) -> Self:
        """Add what another accumulator has added up.

        Parameters
        ----------
        other : TPSAccumulator
            Of the same scores and weights.

        Returns
        -------
        TPSAccumulator
            Itself.

        Raises
        ------
        ValueError
            If the other has other scores or weights, or only one of them has clusters.
        """
        check_mergeable(self, other, "scores", "weights")
        if self.n_runs and other.n_runs and (self.by_cluster is None) != (other.by_cluster is None):
            raise ValueError("one of the accumulators has clusters of runs, the other has none")
        self.moments = self.moments + other.moments
        if other.by_cluster is not None:
            mine = 0.0 if self.by_cluster is None else self.by_cluster
            self.by_cluster = mine + other.by_cluster
        return self

    def compute(self, confidence_level: float = 0.95) -> pd.DataFrame:
        """Return the scores so far.

        Parameters
        ----------
        confidence_level : float, default=0.95
            Level of the intervals.

        Returns
        -------
        DataFrame indexed by score
            n_runs; value, the mean score, with low and high; base_rate, the score of the success
            rate as the only forecast; margin over it, with margin_low and margin_high.

        Raises
        ------
        ValueError
            If there are fewer than two runs.
        """
        n = self.n_runs
        if n < 2:
            raise ValueError(f"an interval needs at least 2 runs, got {n}")
        mean = self.moments[-1] / n
        won, lost = mean[-3:-1]
        k = len(self.scores)
        directions = np.zeros((len(mean), 2 * k))  # from sums to influences on values and margins
        for j, score in enumerate(self.scores):
            directions[j, [j, k + j]] = 1.0
            # the rate itself may vary: to first order that changes nothing, as it is the best one
            directions[-3:-1, k + j] = -np.nan_to_num(_earned(score, won / (won + lost)))
        directions /= mean[-4]  # a score is a ratio of sums
        value = mean @ directions
        directions[-4] -= value / mean[-4]
        error, quantile = self._error(directions, confidence_level)
        low, high = value - quantile * error, value + quantile * error
        table = {"n_runs": n, "value": value[:k], "low": low[:k], "high": high[:k]}
        table |= {"base_rate": value[:k] - value[k:], "margin": value[k:]}
        table |= {"margin_low": low[k:], "margin_high": high[k:]}
        return pd.DataFrame(table, index=[family_name(score) for score in self.scores])

    def _error(self, directions: FloatArray, level: float) -> tuple[FloatArray, float]:
        """Return standard errors, and the quantile of t for the number of runs or clusters."""
        n = self.n_runs
        if self.by_cluster is None:
            squares = np.einsum("ij,ik,kj->j", directions, self.moments, directions)
            error = np.sqrt(np.maximum(squares, 0) / (n * (n - 1)))
            return error, t_quantile(n - 1, level)
        sums = self.by_cluster[self.by_cluster[:, -1] > 0]
        sizes = sums[:, -1]
        left_out = left_out_factor(sizes)[:, None] * (sums @ directions)
        error = np.sqrt((left_out**2).sum(axis=0)) / n
        return error, t_quantile(n_equal(sizes) - 1, level)


def _earned(score: Any, forecast: float) -> tuple[float, float]:
    """Score of a forecast where the run succeeds, and where it fails."""
    family, p = get_family(score), np.array([forecast])
    return family.success(p)[0], family.failure(p)[0]
