"""Ranking and calibration of more forecasts than memory holds, from counts on a fine grid."""

from copy import deepcopy
from typing import Any, Self

import numpy as np
import pandas as pd

from trajscore.calibration.cross_fit import CrossFitCalibrator
from trajscore.calibration.training import CalibrationSample
from trajscore.core.ranking import GRADIENTS, harmonic
from trajscore.core.score_families import get_family
from trajscore.core.ties import binned_error
from trajscore.core.values import (
    FloatArray,
    FloatPair,
    IntArray,
    as_count,
    check_choice,
    undefined_is_nan,
)
from trajscore.core.weights import (
    AGGREGATORS,
    PART_STARTS,
    Horizon,
    Weights,
    as_step_weights,
    collapse,
    step_parts,
)
from trajscore.inference.intervals import bounds as interval_bounds
from trajscore.inference.intervals import t_quantile
from trajscore.metrics.run_metrics import DIAGNOSTICS, RankMetric
from trajscore.metrics.steps import score_parts
from trajscore.streaming.accumulator import Accumulator, Grid, LabelledRuns

_N_RANK_CELLS = 1 << 16  # with 16,384, the AUPRC of calibrated forecasts was off by 2e-4


class _GridAccumulator(Accumulator):
    """Weights of successes and of failures, and either times the values, by cell of the grid."""

    sums: FloatArray  # these four, with the cells as the last axis

    def _count(
        self, keys: IntArray, weight: FloatArray | float, label: FloatArray, values: FloatArray
    ) -> None:
        """Add values with weights and outcomes at places of one of the four."""
        success = weight * label
        failure = weight * (1 - label)
        sums = self.sums.reshape(4, -1)  # a view
        for place, part in enumerate((success, failure, success * values, failure * values)):
            sums[place] += np.bincount(keys, part, sums.shape[1])

    def constant(self, forecast: float) -> Self:
        constant = deepcopy(self)
        constant.sums = np.zeros_like(self.sums)
        (cell,) = self.grid.cells(np.array([forecast]))
        weight = self.sums[:2].sum(axis=-1)
        constant.sums[..., cell] = [*weight, *(weight * forecast)]
        return constant


class RankingAccumulator(_GridAccumulator):
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
        self.phi = phi
        self.weights = as_step_weights(weights, horizon)
        self.grid = Grid.between(bounds, _N_RANK_CELLS)
        self.sums = np.zeros((4, _N_RANK_CELLS))

    def add(self, runs: LabelledRuns, values: FloatArray) -> None:
        """Add trusted runs with one value a step."""
        confidence = collapse(runs.X.with_cells(values), self.phi, self.weights)
        self.add_collapsed(runs.label, confidence)

    def add_collapsed(self, label: FloatArray, confidence: FloatArray) -> None:
        """Add trusted runs with one confidence each."""
        self._count(self.grid.cells(confidence), 1.0, label, confidence)

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
        successes, failures, *moments = self.sums[:, self.sums[:2].sum(axis=0) > 0]
        total = failures + successes
        rows: dict[str, tuple[Any, ...]] = {}
        for name, metric in DIAGNOSTICS.items():
            if not isinstance(metric, RankMetric):
                continue
            statistic: Any = metric.function
            value = statistic(failures, successes)
            cases = [statistic(*_split_cells(failures, successes, k)) for k in (0, 1)]
            if name == "AUPRC":
                cases.append(_least_auprc(failures, successes))
            failure_gradient, success_gradient = GRADIENTS[statistic](failures, successes)
            squares = (failures * failure_gradient**2 + successes * success_gradient**2).sum()
            half_width = t_quantile(int(total.sum()) - 1, confidence_level) * np.sqrt(squares)
            low, high = interval_bounds(value, half_width, True)
            rows[name] = value, low, high, min(cases), max(cases)
        if self.grid.is_probability:
            error = binned_error(total, successes - np.add(*moments), 10)
            rows["T-ECE"] = error, np.nan, np.nan, np.nan, np.nan
        columns = ["value", "low", "high", "least", "most"]
        return pd.DataFrame.from_dict(rows, "index", columns=columns)


def _split_cells(failures: FloatArray, successes: FloatArray, first: int) -> FloatPair:
    """Split each cell in two; the failures are the lower half where `first` is 0."""
    split = np.zeros((2, len(failures), 2))
    split[0, :, first] = failures
    split[1, :, 1 - first] = successes
    return split[0].ravel(), split[1].ravel()


def _least_auprc(failures: FloatArray, successes: FloatArray) -> float:
    """Return the AUPRC where the failures of a cell come after its successes, and none are tied."""
    passed = np.cumsum(successes)
    before = np.cumsum(failures) - failures + passed
    # the k-th failure of a cell has precision 1 - passed / (before + k)
    area = failures - passed * (harmonic(before + failures) - harmonic(before))
    with undefined_is_nan():  # NaN without failures
        return float(area.sum() / failures.sum())


_N_CELLS = 1 << 14


class CalibrationAccumulator(_GridAccumulator):
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
        self.n_runs = 0
        self.divisor = 0.0
        self.sums = np.zeros((4, 3, _N_CELLS))  # by part of the steps and cell

    def add(self, runs: LabelledRuns, values: FloatArray) -> None:
        """Add trusted runs with one value a step."""
        self.n_runs += len(runs.label)
        self.divisor += float(runs.of_runs.divisor().sum())
        key = step_parts(runs.X).astype(np.int64) * _N_CELLS + self.grid.cells(values)
        self._count(key, runs.weight, runs.step_label, values)

    def _pooled(self) -> CalibrationSample:
        """Return outcomes at the mean value of each cell."""
        success, failure, *moments = self.sums.sum(axis=1)
        used = success + failure > 0
        values = np.add(*moments)[used] / (success + failure)[used]
        return CalibrationSample(values, success[used], failure[used], self.n_runs)

    def _by_outcome(self) -> CalibrationSample:
        """Return successes and failures of each cell at their own mean values."""
        weight, moments = np.split(self.sums.sum(axis=1), 2)
        used = np.nonzero(weight)
        values = moments[used] / weight[used]
        order = np.argsort(values)
        success, failure = ((weight[used] * (used[0] == k))[order] for k in (0, 1))
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
        weights = as_step_weights(calibrator.weights, calibrator.horizon)
        if weights != self.weights:
            raise ValueError(
                f"The calibrator has weights {weights.name}, the accumulator {self.weights.name}; "
                f"give both the same weights"
            )
        # a step function would otherwise separate the successes and failures of one cell
        sample = self._by_outcome()
        if calibrator._is_stepwise:
            sample = self._pooled()
        if not (sample.success.any() and sample.failure.any()):
            raise ValueError("Calibration needs both successes and failures; add more runs")
        # as in memory, the weights of a run add up to one on average: penalties mean the same
        factor = self.n_runs / self.divisor
        weighted = sample.success * factor, sample.failure * factor
        return calibrator._fit_map(CalibrationSample(sample.values, *weighted, self.n_runs))

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
        errors |= {f"S-ECE {part}": self.sums[:, k] for k, part in enumerate(PART_STARTS)}
        values = {
            name: binned_error(success + failure, success - np.add(*moments), n_bins)
            for name, (success, failure, *moments) in errors.items()
        }
        sample = self._pooled()
        masses = (sample.success / self.divisor, sample.failure / self.divisor)
        parts = score_parts(get_family(score), sample.values, *masses)
        del parts["score"]
        values |= parts | {"success_rate": sample.base_rate}
        return pd.Series(values)
