"""Calibration of more forecasts than memory holds, from counts on a fine grid."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from trajscore.calibration import EnsembleCrossFitCalibrator, IsotonicCrossFitCalibrator
from trajscore.calibration._cross_fit import CrossFitCalibrator
from trajscore.calibration._training import CalibrationSample
from trajscore.core.binning import quantile_bins
from trajscore.core.score_families import get_family
from trajscore.core.type_aliases import FloatArray, IntArray
from trajscore.core.values import as_count
from trajscore.core.weighted_steps import PARTS as PARTS_OF_A_RUN
from trajscore.core.weights import Horizon, Weights, as_step_weights
from trajscore.metrics._decomposition import PARTS, Mass
from trajscore.streaming._batches import check_batch, check_mergeable
from trajscore.streaming._grid import Grid
from trajscore.streaming._labelled import LabelledRuns

_N_CELLS = 1 << 14


class CalibrationAccumulator:
    """Outcomes at each forecast, of all steps with the weights of the score, in one pass.

    From them come calibration errors, the parts of any score, and fitted calibrators. Forecasts are
    counted in 16,384 cells of log-odds, 0.0017 wide, and in each the mean forecast is kept.

    Parameters
    ----------
    weights, horizon : str or callable, and int, "own" or None
        Step weights, as in `trajscore.metrics.tps_score`.
    bounds : tuple of float, optional
        Smallest and largest value of a signal that is no probability, which is counted on an even
        grid between them. Default: forecasts in [0, 1].

    See Also
    --------
    iter_batches : Batches of whole runs to update with.
    trajscore.metrics.tps_decomposition : Of runs in memory.
    trajscore.metrics.step_calibration_error : Of runs in memory.

    Notes
    -----
    Forecasts in one cell count as equal. That moves a probability of Platt's map by less than 1e-6,
    and a forecast across the edge of a bin of the calibration error only where it is within 0.0005
    of it; the miscalibration loses what lies inside cells, 1e-5 of ten million steps.

    Examples
    --------
    >>> from trajscore import PlattCrossFitCalibrator
    >>> from trajscore.datasets import make_trajectories
    >>> from trajscore.streaming import CalibrationAccumulator
    >>> X, y = make_trajectories(400, random_state=0, return_X_y=True)
    >>> counts = CalibrationAccumulator().update(y[:200], X[:200]).update(y[200:], X[200:])
    >>> counts.compute()[["S-ECE", "miscalibration"]].round(3)
    S-ECE             0.032
    miscalibration    0.010
    dtype: float64
    >>> platt = counts.fit(PlattCrossFitCalibrator())
    >>> platt([0.5, 0.9]).round(2)
    array([0.54, 0.9 ])
    """

    def __init__(
        self,
        weights: Weights = "early",
        horizon: Horizon = None,
        bounds: tuple[float, float] | None = None,
    ) -> None:
        self.weights = as_step_weights(weights, horizon)
        self.grid = Grid.between(bounds, _N_CELLS)
        self.n_runs, self.divisor = 0, 0.0
        # weight of successes, of failures, and of either times the value; by part and cell
        self.sums: FloatArray = np.zeros((4, 3, _N_CELLS))

    def update(self, y: ArrayLike, X: Any, groups: ArrayLike | None = None) -> Self:
        """Add some runs.

        Parameters
        ----------
        y : array-like of shape (n_runs,)
            Outcomes: 1 success, 0 failure, or a grade in [0, 1].
        X : TrajectoryArray or array-like of shape (n_runs, T_max)
            Forecasts, or a signal, one a step.
        groups : array-like, optional
            Not used; for `iter_batches`' sake.

        Returns
        -------
        CalibrationAccumulator
            Itself.

        Raises
        ------
        ValueError
            If an outcome was not observed, or a forecast lies outside [0, 1] unless `bounds` say
            otherwise.
        """
        runs = check_batch(y, X, self.weights, probabilities=self.grid.is_probability)
        return self._add(runs, runs.X.cells) if len(runs.label) else self

    def _add(self, runs: LabelledRuns, values: FloatArray) -> Self:
        """Add trusted runs."""
        self.n_runs += len(runs.label)
        self.divisor += float(runs.divisor.sum())
        key = runs.part * _N_CELLS + self.grid.cells(values)
        parts = (runs.won, runs.lost, runs.won * values, runs.lost * values)
        for place, part in enumerate(parts):
            self.sums[place] += np.bincount(key, part, 3 * _N_CELLS).reshape(3, _N_CELLS)
        return self

    def _constant(self, forecast: float) -> CalibrationAccumulator:
        """Return what the same runs add up to with one number as the forecast of every step."""
        found = CalibrationAccumulator(self.weights)
        (cell,) = found.grid.cells(np.array([forecast]))
        weight = self.sums[:2].sum(axis=2)
        found.n_runs, found.divisor = self.n_runs, self.divisor
        found.sums[:, :, cell] = [*weight, *(weight * forecast)]
        return found

    def merge(self, other: Self) -> Self:
        """Add what another accumulator has added up.

        Parameters
        ----------
        other : CalibrationAccumulator
            Of the same weights and bounds.

        Returns
        -------
        CalibrationAccumulator
            Itself.

        Raises
        ------
        ValueError
            If the other has other weights or bounds.
        """
        check_mergeable(self, other, "weights", "grid")
        self.sums = self.sums + other.sums
        self.n_runs += other.n_runs
        self.divisor += other.divisor
        return self

    def _pooled(self) -> CalibrationSample:
        """Outcomes at the mean value of each cell."""
        won, lost, *moments = self.sums.sum(axis=1)
        used = won + lost > 0
        values = np.add(*moments)[used] / (won + lost)[used]
        return CalibrationSample(values, won[used], lost[used], self.n_runs)

    def _apart(self) -> CalibrationSample:
        """Successes and failures of each cell at their own means, so that no sum of them moves."""
        weight, moments = np.split(self.sums.sum(axis=1), 2)
        outcome, cell = np.nonzero(weight)
        total = weight[outcome, cell]
        values = moments[outcome, cell] / total
        order = np.argsort(values)
        won, lost = (np.where(outcome == k, total, 0.0)[order] for k in (0, 1))
        return CalibrationSample(values[order], won, lost, self.n_runs)

    def fit(self, calibrator: CrossFitCalibrator) -> Any:
        """Fit a calibrator's map to all runs so far.

        Parameters
        ----------
        calibrator : PlattCrossFitCalibrator, IsotonicCrossFitCalibrator or the like
            With the step weights of the accumulator.

        Returns
        -------
        map
            As the calibrator's ``full_map_``; called with values it returns probabilities.

        Raises
        ------
        ValueError
            If there are only successes or only failures so far, or the weights differ.
        """
        if not isinstance(calibrator, CrossFitCalibrator):
            raise ValueError(
                f"calibrator must be a PlattCrossFitCalibrator or the like, got {calibrator!r}"
            )
        theirs = as_step_weights(calibrator.weights, calibrator.horizon)
        if theirs != self.weights:
            raise ValueError(
                f"the calibrator has weights {theirs.name}, the counts {self.weights.name}; give "
                f"both the same"
            )
        # a step function would tell apart what lies in one cell
        steps = (EnsembleCrossFitCalibrator, IsotonicCrossFitCalibrator)
        sample = self._pooled() if isinstance(calibrator, steps) else self._apart()
        if not (sample.success.any() and sample.failure.any()):
            raise ValueError("calibration needs successes and failures; add more runs")
        # weights of a run add up to one on average, as in memory, so that penalties mean the same
        return calibrator._fit_map(sample.scaled(self.n_runs / self.divisor))

    def compute(self, score: Any = "log", n_bins: int = 10) -> pd.Series:
        """Return calibration errors and the parts of a score so far.

        Parameters
        ----------
        score : score family, default="log"
            Whose parts are wanted.
        n_bins : int, default=10
            Bins of equal weight of the calibration errors.

        Returns
        -------
        Series
            S-ECE and that of steps 1 to 3, 4 to 10 and from 11 on; miscalibration,
            discrimination and uncertainty, as in `trajscore.metrics.tps_decomposition`; and
            success_rate, weighted by step.
        """
        if not self.n_runs:
            raise ValueError("there are no runs so far; add some")
        n_bins = as_count(n_bins, "n_bins")
        errors = {"S-ECE": self.sums.sum(axis=1)}
        errors |= {f"S-ECE {part}": self.sums[:, k] for k, part in enumerate(PARTS_OF_A_RUN)}
        found = {name: _error(sums, n_bins) for name, sums in errors.items()}
        family, counted = get_family(score), self._pooled()
        mass = Mass(
            counted.values,
            counted.success / self.divisor,
            counted.failure / self.divisor,
            np.zeros(len(counted.values), dtype=np.int64),
        )
        parts = mass.parts(lambda one: one.score(family))
        found |= {name: parts[name][0] for name in PARTS} | {"success_rate": counted.base_rate}
        return pd.Series(found)


def _error(sums: FloatArray, n_bins: int) -> float:
    """Calibration error from sums by cell."""
    won, lost, *moments = sums
    total = won + lost
    if not total.any():
        return float("nan")
    used = total > 0
    bins: IntArray = quantile_bins(total[used], n_bins)
    gap = (won - np.add(*moments))[used]
    return float(np.abs(np.bincount(bins, gap, n_bins)).sum() / total.sum())
