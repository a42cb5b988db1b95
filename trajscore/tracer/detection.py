"""How early a risk, watched step by step, predicts failure."""

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd
from sklearn.metrics import roc_curve

from trajscore.calibration import PlattCrossFitCalibrator
from trajscore.calibration.cross_fit import cross_fit_sample
from trajscore.calibration.fixed_step import has_both, step_table
from trajscore.core.checks import Sample, check_sample
from trajscore.core.outcomes import CENSORED, FAILURE, SUCCESS
from trajscore.core.values import AnyArray, ArrayLike, FloatArray, is_number, undefined_is_nan
from trajscore.core.within_runs import first_step_above, last_cells

_ROUNDING = 1e-12


@dataclass(frozen=True)
class EarlyWarning:
    """When the risk of each run first reached a threshold, and its worth at each step.

    A time is the share of a run's steps that lay behind it when it was flagged, (step - 1) /
    (N - 1), 0 at the first step and 1 at the last; NaN where it never was. The paper has step / N,
    the share of the total length. Times of successful runs are false alarms.

    `by_step` is of the runs that are at least that long, at steps that 10 runs of each outcome
    reach: n_runs, success_rate; AUROC of the risk of that step, with its interval; score, the mean
    log score of the risk calibrated out of fold, and its margin over the success rate of just these
    runs, with its interval. Runs that have no risk at a step yet are left out there; then there is
    no score.
    """

    threshold: float  # a run is flagged at the first step whose risk is at least this
    failure_times: FloatArray
    success_times: FloatArray
    by_step: pd.DataFrame = field(repr=False)

    def detected_within(self, progress: float = 0.2) -> float:
        """Return the share of failed runs flagged by that share of a run; NaN if none failed."""
        return self._share_within(self.failure_times, progress)

    def false_alarms_within(self, progress: float = 1.0) -> float:
        """Return the share of successful runs flagged by then; NaN if none succeeded."""
        return self._share_within(self.success_times, progress)

    def curve(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return shares of a run (0, 0.01, ..., 1), detection and false alarms by then."""
        grid = np.linspace(0, 1, 101)
        detected = np.array([self.detected_within(share) for share in grid])
        return grid, detected, np.array([self.false_alarms_within(share) for share in grid])

    def _share_within(self, times: FloatArray, progress: float) -> float:
        if not len(times):
            return float("nan")
        with undefined_is_nan():
            return float((times <= progress + _ROUNDING).mean())


def early_warning(
    y: ArrayLike, risk: Any, *, threshold: float | None = None, groups: ArrayLike | None = None
) -> EarlyWarning:
    """Find when the risk of each run first reaches a threshold, and what it is worth by step.

    Parameters
    ----------
    y : array-like of shape (n_runs,)
        Outcomes: 1 success, 0 failure; runs with -1, and those whose risk is NaN, are left out.
    risk : TrajectoryArray or array-like of shape (n_runs, T_max)
        Risk of the run so far, as `TracerScorer.transform` gives it.
    threshold : float, optional
        Default: the one that separates the final risks best, by Youden's index, the share of
        failures flagged minus that of successes; it has then seen the runs that it judges.
    groups : array-like of shape (n_runs,), optional
        Clusters of runs (trials of one task), for the intervals and the calibration by step.

    Returns
    -------
    EarlyWarning
        ``threshold``, ``failure_times`` and ``success_times``;
        ``detected_within(progress)`` and ``false_alarms_within(progress)`` are shares of failures
        and of successes flagged in the first part of their runs, up to (step - 1) / (N - 1);
        ``curve()`` has all of both;
        ``by_step`` judges the risk of one step at a time, where run length carries no information.

    Notes
    -----
    Shares of a run compare steps of long runs, which fail more often, with earlier ones of short
    runs, and a run's length is not known before its end: ``by_step`` is free of both. Risks that
    were made out of fold (`trajscore.calibration.cross_fit_traces`) are compared within folds.

    References
    ----------
    Tayebati et al. (2026), TRACER, Section IV-B, which divides the step by the length N.

    Examples
    --------
    >>> from trajscore.tracer import early_warning
    >>> warning = early_warning([0, 0, 1], [[0.1, 0.9, 0.9], [0.2, 0.2, 0.8], [0.1, 0.3, 0.4]])
    >>> warning.threshold, warning.failure_times
    (0.8, array([0.5, 1. ]))
    """
    if threshold is not None and not (is_number(threshold) and threshold == threshold):
        raise ValueError(f"threshold must be a number or None, got {threshold!r}")
    sample = check_sample(
        risk, y, groups=groups, allow_soft=False, single_channel=True, allow_missing=True
    )
    final = sample.X.cells[last_cells(sample.X)].ravel()
    rows = np.flatnonzero((sample.y != CENSORED) & ~np.isnan(final))
    sample = sample.take(rows)
    final = final[rows]
    codes = sample.y
    if threshold is None:
        threshold = _youden_threshold(codes, final)
    # at the threshold a run is flagged, and a crossing is strict
    limits = np.full(len(sample), np.nextafter(threshold, -np.inf))
    step = first_step_above(sample.X, sample.X.cells.ravel(), limits)
    times = np.where(step > 0, (step - 1) / np.maximum(sample.X.lengths - 1, 1), np.nan)
    return EarlyWarning(
        float(threshold), times[codes == FAILURE], times[codes == SUCCESS], _by_step(sample)
    )


def _by_step(sample: Sample) -> pd.DataFrame:
    """Judge minus the risk as a confidence at each step, and its calibrated form."""
    runs = sample.in_id_order()
    confidence = runs.X.with_cells(-runs.X.cells.ravel())
    success = runs.y.astype(float)
    forecasts = None
    if has_both(success):
        platt = PlattCrossFitCalibrator(link="identity", increasing=True)
        # before a run's first risk, which the table leaves out, the smallest one stands for it
        cells = confidence.ffill().cells
        filled = confidence.with_cells(np.where(np.isnan(cells), np.nanmax(cells), cells))
        forecasts = cross_fit_sample(platt, replace(runs, traces={"": filled}))
    return step_table(confidence, success, runs.groups, forecasts=forecasts)


def _youden_threshold(y: AnyArray, final: FloatArray) -> float:
    """Return the largest threshold of those that separate final risks best."""
    if len(np.unique(y)) < 2:
        raise ValueError(
            "Youden's threshold needs failures and successes; pass threshold= to use another one"
        )
    false, detected, thresholds = roc_curve(y == FAILURE, final, drop_intermediate=False)
    index = (detected - false)[1:]  # the first threshold flags no run
    return float(thresholds[1:][np.argmax(index.round(12))])
