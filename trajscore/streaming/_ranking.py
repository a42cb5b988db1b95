"""Ranking of more runs than memory holds, from counts on a fine grid."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from trajscore.core import ranking
from trajscore.core.binning import quantile_bins
from trajscore.core.collapse import AGGREGATORS, collapse
from trajscore.core.gradients import GRADIENTS
from trajscore.core.type_aliases import FloatArray
from trajscore.core.values import check_choice
from trajscore.core.weights import Horizon, Weights, as_step_weights
from trajscore.inference._influence import bounds as interval_bounds
from trajscore.inference._units import any_units
from trajscore.streaming._batches import check_batch, check_mergeable
from trajscore.streaming._grid import Grid

_STATISTICS = {"AUROC": ranking.auroc, "AUPRC": ranking.auprc, "AURC": ranking.aurc}

# With 16,384 the AUPRC of calibrated forecasts, which lie closer, was off by 2e-4.
_N_CELLS = 1 << 16


class RankingAccumulator:
    """AUROC, AUPRC, AURC and T-ECE of collapsed traces, in one pass, with the error of the grid.

    Parameters
    ----------
    phi : {"last", "mean", "min", "weighted"}, default="weighted"
        How a trace is collapsed, see `trajscore.metrics.aggregate`.
    weights, horizon : str or callable, and int, "own" or None
        Step weights as in `trajscore.metrics.tps_score`, for ``phi="weighted"``.
    bounds : tuple of float, optional
        Smallest and largest value of a signal that is no probability. Default: forecasts in [0, 1].

    See Also
    --------
    iter_batches : Batches of whole runs to update with.
    trajscore.metrics.trajectory_diagnostics : Of runs in memory.

    Notes
    -----
    Confidences are counted in 65,536 cells (of log-odds, 0.0004 wide) and are ties in a cell. In
    truth the failures of a cell may lie before or behind its successes: ``least`` and ``most`` are
    the values of these two cases, between which lies that of all runs in memory.

    Examples
    --------
    >>> from trajscore.streaming import RankingAccumulator
    >>> counts = RankingAccumulator().update([1, 0, 0, 1], [[0.9], [0.9], [0.1], [0.6]])
    >>> counts.compute()["value"].round(3)
    AUROC    0.625
    AUPRC    0.750
    AURC     0.458
    T-ECE    0.325
    Name: value, dtype: float64
    """

    def __init__(
        self,
        phi: str = "weighted",
        weights: Weights = "early",
        horizon: Horizon = None,
        bounds: tuple[float, float] | None = None,
    ) -> None:
        check_choice(phi, "phi", AGGREGATORS)
        self.phi, self.weights = phi, as_step_weights(weights, horizon)
        self.grid = Grid.between(bounds, _N_CELLS)
        self.sums: FloatArray = np.zeros((3, _N_CELLS))  # failures, successes, confidence

    def update(self, y: ArrayLike, X: Any, groups: ArrayLike | None = None) -> Self:
        """Add some runs.

        Parameters
        ----------
        y : array-like of shape (n_runs,)
            Outcomes: 1 success, 0 failure, or a grade in [0, 1].
        X : TrajectoryArray or array-like of shape (n_runs, T_max)
            Confidences, one a step.
        groups : array-like, optional
            Not used; for `iter_batches`' sake.

        Returns
        -------
        RankingAccumulator
            Itself.

        Raises
        ------
        ValueError
            If an outcome was not observed, or a confidence lies outside [0, 1] unless `bounds` say
            otherwise.
        """
        runs = check_batch(y, X, self.weights, probabilities=self.grid.is_probability)
        return self._add(runs.label, collapse(runs.X, self.phi, self.weights))

    def _add(self, label: FloatArray, confidence: FloatArray) -> Self:
        """Add trusted runs whose traces were collapsed."""
        cells = self.grid.cells(confidence)
        for place, values in enumerate((1 - label, label, confidence)):
            self.sums[place] += np.bincount(cells, values, _N_CELLS)
        return self

    def _constant(self, forecast: float) -> RankingAccumulator:
        """Return what the same runs add up to with one number as the forecast of every step."""
        found = RankingAccumulator(self.phi, self.weights)
        (cell,) = found.grid.cells(np.array([forecast]))
        n_runs = self.sums[:2].sum(axis=1)
        found.sums[:, cell] = [*n_runs, n_runs.sum() * forecast]
        return found

    def merge(self, other: Self) -> Self:
        """Add what another accumulator has added up.

        Parameters
        ----------
        other : RankingAccumulator
            Of the same parameters.

        Returns
        -------
        RankingAccumulator
            Itself.

        Raises
        ------
        ValueError
            If the other has other parameters.
        """
        check_mergeable(self, other, "phi", "weights", "grid")
        self.sums = self.sums + other.sums
        return self

    def compute(self, confidence_level: float = 0.95) -> pd.DataFrame:
        """Return the statistics so far.

        Parameters
        ----------
        confidence_level : float, default=0.95
            Level of the intervals.

        Returns
        -------
        DataFrame indexed by statistic
            value; low and high, an interval from the influence of each run (none of T-ECE); least
            and most, bounds of the value without a grid (of T-ECE without the rounding of bins).

        Raises
        ------
        ValueError
            If there are no runs so far.
        """
        if not self.sums[:2].any():
            raise ValueError("there are no runs so far; add some")
        failures, successes, confidence = self.sums[:, self.sums[:2].sum(axis=0) > 0]
        n = float((failures + successes).sum())
        rows = {}
        for name, statistic in _STATISTICS.items():
            value = float(statistic(failures, successes))
            cases = [float(statistic(*_apart(failures, successes, k))) for k in (0, 1)]
            of_failure, of_success = GRADIENTS[statistic](failures, successes)
            squares = (failures * of_failure**2 + successes * of_success**2).sum()
            half = any_units(None, int(n)).t_quantile(int(n), confidence_level) * np.sqrt(squares)
            ends = interval_bounds(np.array([value]), np.array([half]), np.array([True]))
            rows[name] = value, float(ends[0][0]), float(ends[1][0]), min(cases), max(cases)
        total = failures + successes
        if self.grid.is_probability:
            gap = np.bincount(quantile_bins(total, 10), successes - confidence, 10)
            error = float(np.abs(gap).sum() / n)
            rows["T-ECE"] = error, np.nan, np.nan, error, error
        return pd.DataFrame.from_dict(
            rows, orient="index", columns=["value", "low", "high", "least", "most"]
        )


def _apart(
    failures: FloatArray, successes: FloatArray, first: int
) -> tuple[FloatArray, FloatArray]:
    """Split each cell in two, of failures and of successes; `first` says which are below."""
    split = np.zeros((2, len(failures), 2))
    split[0, :, first], split[1, :, 1 - first] = failures, successes
    return split[0].ravel(), split[1].ravel()
