"""Calibration of more forecasts than memory holds, from counts on a fine grid."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from trajscore.calibration._cross_fit import CrossFitCalibrator
from trajscore.calibration.training import CalibrationSample
from trajscore.core.run_sums import PARTS
from trajscore.core.score_families import get_family
from trajscore.core.ties import binned_error
from trajscore.core.type_aliases import FloatArray
from trajscore.core.values import as_count
from trajscore.core.weights import Horizon, Weights, as_step_weights
from trajscore.metrics._decomposition import TERMS, Mass
from trajscore.streaming.accumulator import Accumulator, Grid, LabelledRuns

_N_CELLS = 1 << 14


class CalibrationAccumulator(Accumulator):
    """Calibration errors, the parts of a score, and fitted calibrators, in one pass.

    Steps are counted, with the weights of the score, in 16,384 cells of log-odds that are 0.0017
    wide. The mean forecast of each cell is kept.

    Parameters
    ----------
    weights, horizon : str or callable, and int, "own" or None
        Step weights, as in `trajscore.metrics.tps_score`.
    bounds : tuple of float, optional
        Smallest and largest value of a signal that is not a probability; the cells between them
        have equal widths. Default: forecasts in [0, 1].

    See Also
    --------
    iter_batches : Batches of whole runs to update with.
    trajscore.metrics.tps_decomposition : Of runs in memory.
    trajscore.metrics.step_calibration_error : Of runs in memory.

    Notes
    -----
    Forecasts in one cell count as equal. A probability of Platt's map changes by less than 1e-6,
    and a forecast changes its bin of the calibration error only within 0.0005 of the edge. The
    miscalibration within cells is lost: 1e-5 for ten million steps.

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

    settings = ("weights", "grid")
    added = ("sums", "n_runs", "divisor")

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

    def _add(self, runs: LabelledRuns, values: FloatArray) -> None:
        """Add trusted runs with one value a step."""
        self.n_runs += len(runs.label)
        self.divisor += float(runs.of_runs.divisor().sum())
        key = runs.part * _N_CELLS + self.grid.cells(values)
        parts = (runs.success, runs.failure, runs.success * values, runs.failure * values)
        for place, part in enumerate(parts):
            self.sums[place] += np.bincount(key, part, 3 * _N_CELLS).reshape(3, _N_CELLS)

    def _constant(self, forecast: float) -> CalibrationAccumulator:
        """Return the sums of the same runs with one number as the forecast of every step."""
        constant = CalibrationAccumulator(self.weights)
        (cell,) = constant.grid.cells(np.array([forecast]))
        weight = self.sums[:2].sum(axis=2)
        constant.n_runs, constant.divisor = self.n_runs, self.divisor
        constant.sums[:, :, cell] = [*weight, *(weight * forecast)]
        return constant

    def _pooled(self) -> CalibrationSample:
        """Return outcomes at the mean value of each cell."""
        success, failure, *moments = self.sums.sum(axis=1)
        used = success + failure > 0
        values = np.add(*moments)[used] / (success + failure)[used]
        return CalibrationSample(values, success[used], failure[used], self.n_runs)

    def _by_outcome(self) -> CalibrationSample:
        """Return successes and failures of each cell at their own mean values."""
        weight, moments = np.split(self.sums.sum(axis=1), 2)
        outcome, cell = np.nonzero(weight)
        total = weight[outcome, cell]
        values = moments[outcome, cell] / total
        order = np.argsort(values)
        success, failure = (np.where(outcome == k, total, 0.0)[order] for k in (0, 1))
        return CalibrationSample(values[order], success, failure, self.n_runs)

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
            If all runs so far succeeded or all failed, or the weights differ.
        """
        if not isinstance(calibrator, CrossFitCalibrator):
            raise ValueError(
                f"calibrator must be a cross-fit calibrator such as PlattCrossFitCalibrator(), "
                f"got {calibrator!r}"
            )
        theirs = as_step_weights(calibrator.weights, calibrator.horizon)
        if theirs != self.weights:
            raise ValueError(
                f"The calibrator has weights {theirs.name}, the accumulator {self.weights.name}; "
                f"give both the same weights"
            )
        # a step function would otherwise separate the successes and failures of one cell
        sample = self._pooled() if calibrator._is_stepwise else self._by_outcome()
        if not (sample.success.any() and sample.failure.any()):
            raise ValueError("Calibration needs both successes and failures; add more runs")
        # as in memory, the weights of a run add up to one on average: penalties mean the same
        return calibrator._fit_map(sample.scaled(self.n_runs / self.divisor))

    def compute(self, score: Any = "log", n_bins: int = 10) -> pd.Series:
        """Return calibration errors and the parts of a score so far.

        Parameters
        ----------
        score : score family, default="log"
            The score to decompose.
        n_bins : int, default=10
            Number of bins of equal weight for the calibration errors.

        Returns
        -------
        Series
            S-ECE, also of steps 1 to 3, 4 to 10 and from 11 on; miscalibration, discrimination
            and uncertainty, as in `trajscore.metrics.tps_decomposition`; and success_rate,
            weighted by step.
        """
        if not self.n_runs:
            raise ValueError("There are no runs yet; add some with update")
        n_bins = as_count(n_bins, "n_bins")
        errors = {"S-ECE": self.sums.sum(axis=1)}
        errors |= {f"S-ECE {part}": self.sums[:, k] for k, part in enumerate(PARTS)}
        values = {
            name: binned_error(success + failure, success - np.add(*moments), n_bins)
            for name, (success, failure, *moments) in errors.items()
        }
        family, sample = get_family(score), self._pooled()
        mass = Mass(
            sample.values,
            sample.success / self.divisor,
            sample.failure / self.divisor,
            np.zeros(len(sample.values), dtype=np.int64),
        )
        parts = mass.parts(family)
        values |= {name: parts[name][0] for name in TERMS} | {"success_rate": sample.base_rate}
        return pd.Series(values)
