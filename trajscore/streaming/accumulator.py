"""What all accumulators share: labelled runs, a fine grid, checks, merging; and scores added up.

Counts on the grid need the same memory for any number of runs.
"""

from abc import ABC, abstractmethod
from copy import deepcopy
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
import pandas as pd

from trajscore.core.array import TrajectoryArray
from trajscore.core.checks import check_labels, check_sample
from trajscore.core.score_families import CLIP, get_family, several_families
from trajscore.core.values import AnyArray, ArrayLike, FloatArray, IntArray, as_numbers
from trajscore.core.weights import (
    Horizon,
    RunWeights,
    StepWeights,
    Weights,
    as_step_weights,
    score_cells,
)
from trajscore.inference.intervals import Units, left_out_factor, n_equal, t_quantile
from trajscore.streaming.batches import hashed


@dataclass(frozen=True)
class LabelledRuns:
    """Checked runs, at least one, with outcomes in [0, 1]; forecasts are kept elsewhere.

    >>> X = TrajectoryArray.from_list([[0.5, 0.8], [0.2]])
    >>> runs = LabelledRuns(np.array([1.0, 0.0]), X, StepWeights("early"))
    >>> runs.of_runs.sums(runs.X.cells).round(3)
    array([1.066, 0.2  ])
    """

    label: FloatArray
    X: TrajectoryArray  # only its layout is read, not its values
    weights: StepWeights
    groups: AnyArray | None = None

    @cached_property
    def of_runs(self) -> RunWeights:
        """Step weights of these runs, and what each adds to the divisor of a set's score."""
        return self.weights.of(self.X)

    @cached_property
    def weight(self) -> FloatArray:
        """Weight of each step."""
        return self.of_runs.cells()

    @cached_property
    def step_label(self) -> FloatArray:
        """Outcome of the run of each step."""
        return np.repeat(self.label, self.X.lengths)


_END = float(np.log((1 - CLIP) / CLIP))


@dataclass(frozen=True)
class Grid:
    """Equal cells of log-odds, or of the values of a signal between two bounds."""

    low: float = -_END
    high: float = _END
    is_probability: bool = True
    n_cells: int = 1 << 14

    @classmethod
    def between(cls, bounds: Any, n_cells: int) -> Self:
        """Return a grid between two bounds, or that of forecasts for None."""
        if bounds is None:
            return cls(n_cells=n_cells)
        ends = as_numbers(bounds, "bounds")
        if ends.shape != (2,) or not np.isfinite(ends).all() or ends[0] > ends[1]:
            raise ValueError(f"bounds must be two finite numbers, smaller first, got {bounds!r}")
        low, high = ends.tolist()
        return cls(low, high, False, n_cells)

    def cells(self, values: FloatArray) -> IntArray:
        """Return the cell of each value; a value beyond the ends falls into the outermost cell."""
        if self.is_probability:
            p = np.clip(values, CLIP, 1 - CLIP)
            values = np.log(p / (1 - p))  # an eighth of the time of scipy's logit
        width = (self.high - self.low) / self.n_cells or 1.0
        cells = ((values - self.low) / width).astype(np.int64)
        return np.clip(cells, 0, self.n_cells - 1)


class Accumulator(ABC):
    """Sums over runs that can be updated, and merged in any order."""

    weights: StepWeights
    grid = Grid()
    settings: ClassVar[tuple[str, ...]]  # attributes that two accumulators must share to be merged
    added: ClassVar[tuple[str, ...]] = ("sums",)  # attributes that are sums over runs

    @abstractmethod
    def add(self, runs: LabelledRuns, values: FloatArray) -> None:
        """Add trusted runs, at least one, with one value a step."""

    @abstractmethod
    def constant(self, forecast: float) -> Self:
        """Return the sums of the same runs with one number as the forecast of every step."""

    def update(self, y: ArrayLike, X: Any, groups: ArrayLike | None = None) -> Self:
        """Add some runs.

        Parameters
        ----------
        y : array-like of shape (n_runs,)
            Outcomes: 1 success, 0 failure, or a grade in [0, 1].
        X : TrajectoryArray or array-like of shape (n_runs, T_max)
            Forecasts of success, or a signal where the accumulator has `bounds`; one a step.
        groups : array-like of shape (n_runs,), optional
            Clusters of runs, for the intervals of `TPSAccumulator`; in all updates or in none.

        Returns
        -------
        object
            The accumulator itself.

        Raises
        ------
        ValueError
            If an outcome is not observed, a forecast lies outside [0, 1], or some updates of a
            `TPSAccumulator` have groups and others have none.
        """
        sample = check_sample(
            X, y, allow_censored=False, probabilities=self.grid.is_probability, single_channel=True
        )
        if len(sample):
            if groups is not None:
                groups = check_labels(groups, len(sample))
            labels = np.asarray(sample.y, dtype=float)
            self.add(LabelledRuns(labels, sample.X, self.weights, groups), sample.X.cells)
        return self

    def merge(self, other: Self) -> Self:
        """Add what another accumulator has added up.

        Parameters
        ----------
        other : accumulator
            An accumulator of the same class and parameters.

        Returns
        -------
        object
            The accumulator itself.

        Raises
        ------
        ValueError
            If the other accumulator has another class or other parameters, or if only one of two
            `TPSAccumulator` has clusters.
        """
        kind = type(self).__name__
        if type(other) is not type(self):
            raise ValueError(f"other must be a {kind}, got a {type(other).__name__}")
        if different := [n for n in self.settings if getattr(self, n) != getattr(other, n)]:
            raise ValueError(
                f"The two {kind}s differ in {' and '.join(different)}; merge only accumulators "
                f"with the same parameters"
            )
        for name in self.added:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        return self


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
        self.by_cluster: FloatArray = np.zeros((1, n_sums))  # one row: without clusters

    def add(self, runs: LabelledRuns, forecasts: FloatArray) -> None:
        """Add trusted runs with one forecast a step."""
        self._refuse_some_groups(runs.groups is not None)
        scores = [
            runs.of_runs.sums(score_cells(family, forecasts, runs.step_label))
            for family in self.scores
        ]
        total = runs.of_runs.total
        success = total * runs.label
        columns = [runs.of_runs.divisor(), success, total - success, np.ones(len(total))]
        sums = np.column_stack([*scores, *columns])
        self.moments += sums.T @ sums
        if runs.groups is not None:
            clusters = Units(hashed(runs.groups) % _BUCKETS, _BUCKETS)
            self.by_cluster = self.by_cluster + clusters.sums(sums)

    def constant(self, forecast: float) -> Self:
        """Return the sums of the same runs with one number as the forecast of every step."""
        k = len(self.scores)
        onto = np.eye(len(self.moments))
        onto[:, :k] = 0.0
        onto[_BY_OUTCOME, :k] = self._constant_scores(forecast)
        constant = deepcopy(self)
        constant.moments = onto.T @ self.moments @ onto
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

    def merge(self, other: Self) -> Self:  # noqa: D102 - as of any accumulator
        if isinstance(other, TPSAccumulator) and other.n_runs:
            self._refuse_some_groups(len(other.by_cluster) > 1)
        return super().merge(other)

    def _refuse_some_groups(self, is_grouped: bool) -> None:
        if self.n_runs and (len(self.by_cluster) > 1) != is_grouped:
            raise ValueError("groups must be given in all updates of all accumulators, or in none")

    def _constant_scores(self, forecast: float) -> FloatArray:
        """Scores of a forecast for a success, and in a second row for a failure."""
        p = np.array([forecast])
        return np.column_stack([[*f.success(p), *f.failure(p)] for f in self.scores])

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
        # from sums to influences on values and margins
        directions = np.tile(np.eye(len(mean))[:, :k], 2)
        # that the rate is estimated changes nothing to first order: it is the best constant
        directions[_BY_OUTCOME, k:] = -np.nan_to_num(self._constant_scores(self.success_rate))
        directions /= mean[_DIVISOR]  # a score is a ratio of sums
        value = mean @ directions
        directions[_DIVISOR] -= value / mean[_DIVISOR]
        error, quantile = self._error(directions, confidence_level)
        low = value - quantile * error
        high = value + quantile * error
        table = {
            "n_runs": n, "value": value[:k], "low": low[:k], "high": high[:k],
            "base_rate": value[:k] - value[k:],
            "margin": value[k:], "margin_low": low[k:], "margin_high": high[k:],
        }  # fmt: skip
        return pd.DataFrame(table, index=[family.name for family in self.scores])

    def _error(self, directions: FloatArray, level: float) -> tuple[FloatArray, float]:
        """Return standard errors, and the quantile of t for the number of runs or clusters."""
        n = self.n_runs
        if len(self.by_cluster) == 1:
            squares = np.einsum("ij,ik,kj->j", directions, self.moments, directions)
            error = np.sqrt(np.maximum(squares, 0) / (n * (n - 1)))
            return error, t_quantile(n - 1, level)
        sums = self.by_cluster[self.by_cluster[:, _N_RUNS] > 0]
        sizes = sums[:, _N_RUNS]
        influence = left_out_factor(sizes)[:, None] * (sums @ directions)
        error = np.sqrt((influence**2).sum(axis=0)) / n
        return error, t_quantile(n_equal(sizes) - 1, level)
