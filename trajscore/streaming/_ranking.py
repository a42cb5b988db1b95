"""Ranking of more runs than memory holds, from counts on a fine grid."""

from __future__ import annotations

import numpy as np
import pandas as pd

from trajscore.core.ranking import GRADIENTS, harmonic
from trajscore.core.run_sums import AGGREGATORS, collapse
from trajscore.core.ties import binned_error
from trajscore.core.type_aliases import FloatArray
from trajscore.core.values import check_choice
from trajscore.core.weights import Horizon, Weights, as_step_weights
from trajscore.inference.influence import bounds as interval_bounds
from trajscore.inference.units import t_quantile
from trajscore.metrics.run_metrics import DIAGNOSTICS, RankMetric
from trajscore.streaming.accumulator import Accumulator, Grid, LabelledRuns

_N_CELLS = 1 << 16  # with 16,384, the AUPRC of calibrated forecasts was off by 2e-4


class RankingAccumulator(Accumulator):
    """AUROC, AUPRC, AURC and T-ECE of collapsed traces, in one pass, with the error of the grid.

    Parameters
    ----------
    phi : {"last", "mean", "min", "weighted"}, default="weighted"
        How a trace is collapsed, see `trajscore.TraceAggregator`.
    weights, horizon : str or callable, and int, "own" or None
        Step weights as in `trajscore.metrics.tps_score`, for ``phi="weighted"``.
    bounds : tuple of float, optional
        Smallest and largest value of a signal that is not a probability. Default: forecasts in
        [0, 1].

    See Also
    --------
    iter_batches : Batches of whole runs to update with.
    trajscore.metrics.trajectory_diagnostics : Of runs in memory.

    Notes
    -----
    Confidences are counted in 65,536 cells of log-odds, 0.0004 wide; those in one cell count as
    ties. In truth the failures of a cell may rank before or after its successes. ``least`` and
    ``most`` are the values for these two cases; that for all runs in memory lies between. With
    grades between 0 and 1 as outcomes, the least AUPRC is approximate.

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

    settings = ("phi", "weights", "grid")

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

    def _add(self, runs: LabelledRuns, values: FloatArray) -> None:
        confidence = collapse(runs.X.with_cells(values), self.phi, self.weights)
        self._add_collapsed(runs.label, confidence)

    def _add_collapsed(self, label: FloatArray, confidence: FloatArray) -> None:
        """Add trusted runs with one confidence each."""
        cells = self.grid.cells(confidence)
        for place, values in enumerate((1 - label, label, confidence)):
            self.sums[place] += np.bincount(cells, values, _N_CELLS)

    def _constant(self, forecast: float) -> RankingAccumulator:
        """Return the sums of the same runs with one number as the forecast of every step."""
        constant = RankingAccumulator(self.phi, self.weights)
        (cell,) = constant.grid.cells(np.array([forecast]))
        n_runs = self.sums[:2].sum(axis=1)
        constant.sums[:, cell] = [*n_runs, n_runs.sum() * forecast]
        return constant

    def compute(self, confidence_level: float = 0.95) -> pd.DataFrame:
        """Return the statistics so far.

        Parameters
        ----------
        confidence_level : float, default=0.95
            Level of the intervals.

        Returns
        -------
        DataFrame indexed by statistic
            value; low and high, an interval from the influence of each run; least and most, bounds
            on the value without a grid. T-ECE has neither: both are NaN.

        Raises
        ------
        ValueError
            If there are no runs so far.
        """
        if not self.sums[:2].any():
            raise ValueError("There are no runs yet; add some with update")
        failures, successes, confidence = self.sums[:, self.sums[:2].sum(axis=0) > 0]
        total = failures + successes
        rows = {}
        ranked = {k: m.function for k, m in DIAGNOSTICS.items() if isinstance(m, RankMetric)}
        for name, statistic in ranked.items():
            value = float(statistic(failures, successes))
            cases = [float(statistic(*_split_cells(failures, successes, k))) for k in (0, 1)]
            if name == "AUPRC":
                cases.append(_least_auprc(failures, successes))
            of_failure, of_success = GRADIENTS[statistic](failures, successes)
            squares = (failures * of_failure**2 + successes * of_success**2).sum()
            half = t_quantile(int(total.sum()) - 1, confidence_level) * np.sqrt(squares)
            ends = interval_bounds(np.array([value]), np.array([half]), np.array([True]))
            rows[name] = value, float(ends[0][0]), float(ends[1][0]), min(cases), max(cases)
        if self.grid.is_probability:
            error = binned_error(total, successes - confidence, 10)
            rows["T-ECE"] = error, np.nan, np.nan, np.nan, np.nan
        columns = ["value", "low", "high", "least", "most"]
        return pd.DataFrame.from_dict(rows, orient="index", columns=columns)


def _split_cells(
    failures: FloatArray, successes: FloatArray, first: int
) -> tuple[FloatArray, FloatArray]:
    """Split each cell in two; the failures are the lower half where `first` is 0."""
    split = np.zeros((2, len(failures), 2))
    split[0, :, first], split[1, :, 1 - first] = failures, successes
    return split[0].ravel(), split[1].ravel()


def _least_auprc(failures: FloatArray, successes: FloatArray) -> float:
    """Return the AUPRC where the failures of a cell come after its successes, and none are tied."""
    passed = np.cumsum(successes)
    before = np.cumsum(failures) - failures + passed
    # the k-th failure of a cell has precision 1 - passed / (before + k)
    area = failures - passed * (harmonic(before + failures) - harmonic(before))
    return float(area.sum() / failures.sum()) if failures.any() else np.nan
