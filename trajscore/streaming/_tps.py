"""Trajectory Proper Scores of more runs than memory holds."""

from copy import deepcopy
from typing import Any, Self

import numpy as np
import pandas as pd

from trajscore.core.run_sums import score_cells
from trajscore.core.score_families import ScoreFamily, get_family, several_families
from trajscore.core.type_aliases import FloatArray
from trajscore.core.weights import Horizon, Weights, as_step_weights
from trajscore.inference.influence import left_out_factor, n_equal, t_quantile
from trajscore.streaming.accumulator import Accumulator, LabelledRuns
from trajscore.streaming.batches import hashed

_BUCKETS = 4096  # hashes of clusters; clusters with the same hash count as one
# places of sums behind those of the scores
_DIVISOR = -4
_BY_OUTCOME = slice(-3, -1)
_N_RUNS = -1


class TPSAccumulator(Accumulator):
    """Mean Trajectory Proper Scores, their margin over the base rate, and intervals, in one pass.

    It keeps sums only. Accumulators can be merged in any order.

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
    Intervals are those of `trajscore.evaluate`, from second moments of the
    runs. With clusters, whose runs may come in different batches, they come from sums over 4,096
    hashes of the clusters' names. Clusters with the same hash count as one, which widens the
    intervals a little where there are thousands of clusters.

    Examples
    --------
    >>> from trajscore.streaming import TPSAccumulator
    >>> one = TPSAccumulator("brier").update([1, 0], [[0.9, 0.8], [0.3]])
    >>> both = one.merge(TPSAccumulator("brier").update([1], [[0.6]]))
    >>> both.compute()[["n_runs", "value", "base_rate"]].round(4)
           n_runs   value  base_rate
    brier       3 -0.0778     -0.197
    """

    settings = ("scores", "weights")
    added = ("moments", "by_cluster")

    def __init__(
        self, score: Any = "log", weights: Weights = "early", horizon: Horizon = None
    ) -> None:
        self.scores = tuple(map(get_family, several_families(score)))
        self.weights = as_step_weights(weights, horizon)
        # products, summed over runs, of scores, divisor, weights of success and failure, and 1
        n_sums = len(self.scores) + 4
        self.moments: FloatArray = np.zeros((n_sums, n_sums))
        self.by_cluster: FloatArray | float = 0.0  # without clusters

    def add(self, runs: LabelledRuns, forecasts: FloatArray) -> None:
        """Add trusted runs with one forecast a step."""
        self._refuse_some_groups(runs.groups is not None)
        cells = (score_cells(family, forecasts, runs.step_label) for family in self.scores)
        scores = [runs.of_runs.sums(scored) for scored in cells]
        total = runs.of_runs.total
        success = total * runs.label
        columns = [runs.of_runs.divisor(), success, total - success, np.ones(len(total))]
        sums = np.column_stack([*scores, *columns])
        self.moments += sums.T @ sums
        if runs.groups is not None:
            by_cluster = np.zeros((_BUCKETS, sums.shape[1]))
            np.add.at(by_cluster, hashed(runs.groups) % _BUCKETS, sums)
            self.by_cluster = self.by_cluster + by_cluster

    def constant(self, forecast: float) -> Self:
        """Return the sums of the same runs with one number as the forecast of every step."""
        onto = np.eye(len(self.moments))
        for j, family in enumerate(self.scores):
            onto[:, j] = 0.0
            onto[_BY_OUTCOME, j] = _constant_scores(family, forecast)
        constant = deepcopy(self)
        constant.moments = onto.T @ self.moments @ onto
        if isinstance(self.by_cluster, np.ndarray):
            constant.by_cluster = self.by_cluster @ onto
        return constant

    @property
    def n_runs(self) -> int:
        """Number of runs so far."""
        return int(self.moments[_N_RUNS, _N_RUNS])

    @property
    def success_rate(self) -> float:
        """Success rate over steps, each with its weight."""
        success, failure = self.moments[_N_RUNS, _BY_OUTCOME]
        return float(success / (success + failure))

    def merge(self, other: Self) -> Self:
        if isinstance(other, TPSAccumulator) and other.n_runs:
            self._refuse_some_groups(np.ndim(other.by_cluster) > 0)
        return super().merge(other)

    def _refuse_some_groups(self, is_grouped: bool) -> None:
        if self.n_runs and (np.ndim(self.by_cluster) > 0) != is_grouped:
            raise ValueError("groups must be given in all updates of all accumulators, or in none")

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
            raise ValueError(f"An interval needs at least 2 runs, got {n}; add more with update")
        mean = self.moments[_N_RUNS] / n
        k = len(self.scores)
        directions = np.zeros((len(mean), 2 * k))  # from sums to influences on values and margins
        for j, family in enumerate(self.scores):
            directions[j, [j, k + j]] = 1.0
            # that the rate is estimated changes nothing to first order: it is the best constant
            constant = _constant_scores(family, self.success_rate)
            directions[_BY_OUTCOME, k + j] = -np.nan_to_num(constant)
        directions /= mean[_DIVISOR]  # a score is a ratio of sums
        value = mean @ directions
        directions[_DIVISOR] -= value / mean[_DIVISOR]
        error, quantile = self._error(directions, confidence_level)
        low = value - quantile * error
        high = value + quantile * error
        table = {"n_runs": n, "value": value[:k], "low": low[:k], "high": high[:k]}
        table |= {"base_rate": value[:k] - value[k:], "margin": value[k:]}
        table |= {"margin_low": low[k:], "margin_high": high[k:]}
        return pd.DataFrame(table, index=[family.name for family in self.scores])

    def _error(self, directions: FloatArray, level: float) -> tuple[FloatArray, float]:
        """Return standard errors, and the quantile of t for the number of runs or clusters."""
        n = self.n_runs
        if not isinstance(self.by_cluster, np.ndarray):
            squares = np.einsum("ij,ik,kj->j", directions, self.moments, directions)
            error = np.sqrt(np.maximum(squares, 0) / (n * (n - 1)))
            return error, t_quantile(n - 1, level)
        sums = self.by_cluster[self.by_cluster[:, _N_RUNS] > 0]
        sizes = sums[:, _N_RUNS]
        influence = left_out_factor(sizes)[:, None] * (sums @ directions)
        error = np.sqrt((influence**2).sum(axis=0)) / n
        return error, t_quantile(n_equal(sizes) - 1, level)


def _constant_scores(family: ScoreFamily, forecast: float) -> tuple[float, float]:
    """Return the score of a forecast for a success and for a failure."""
    p = np.array([forecast])
    return family.success(p)[0], family.failure(p)[0]
