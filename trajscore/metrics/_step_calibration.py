"""How far the forecasts of steps are from what happened, weighted as the score is."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from trajscore.core.checks import check_sample_weight
from trajscore.core.type_aliases import IntArray
from trajscore.core.values import as_count, check_choice
from trajscore.core.weights import Weights
from trajscore.metrics._binning import check_strategy, quantile_bins, uniform_bins
from trajscore.metrics._statistics import CalibrationError
from trajscore.metrics._tps import check_scored, row_chunks
from trajscore.metrics._weighted_steps import WeightedSteps, weighted_steps

PARTS_OF_A_RUN = ("early", "middle", "late")


def step_calibration_error(
    y_true: ArrayLike,
    traces: Any,
    *,
    weights: Weights = "linear_front",
    n_bins: int = 10,
    strategy: str = "quantile",
    part: str | None = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    """Calibration error of the forecasts of all steps, weighted as the score is; lower is better.

    The forecasts of all steps fall into bins by their size; the error is the weighted mean, over
    bins, of how far the mean forecast is from the share of successes. The steps of a run weigh as
    in `tps_score`. T-ECE of `trajectory_diagnostics` asks the same of one number a run, and may
    rise where this falls: a mean of calibrated forecasts is no calibrated forecast.

    Parameters
    ----------
    y_true, traces, weights : array-likes and step weights
        As in `tps_score`.
    n_bins : int, default=10
        Number of bins.
    strategy : {"quantile", "uniform"}, default="quantile"
        Bins of equal weight, or of equal width over [0, 1], closed on the left. Forecasts that
        tie, to 12 significant digits, share a bin: that of their middle rank, and on an edge the
        lower one.
    part : {"early", "middle", "late"}, optional
        The third of each run's horizon whose steps alone count, the middle of a step deciding: of
        two steps one is early and one late, and the only step of a run is in the middle. The bins
        are then those of these steps. Default: all steps.
    sample_weight : array-like of shape (n_runs,), optional
        Weight of each run.

    Returns
    -------
    float
        The error in [0, 1]; NaN where no step of that part has a weight. Within a bin errors of
        opposite sign cancel, so it is at least 0 for any number of runs, more than 0 by chance
        even for true probabilities, and not proper: the base rate has an error of 0.

    Raises
    ------
    ValueError
        If there are no runs, a forecast lies outside [0, 1], an outcome was not observed, or a
        parameter is unknown.

    See Also
    --------
    tps_decomposition : Its miscalibration has no bins, and is in units of the score.
    trajectory_diagnostics : The calibration error of traces that are collapsed to a number.

    References
    ----------
    Naeini, Cooper and Hauskrecht (2015), Obtaining Well Calibrated Probabilities Using Bayesian
    Binning, AAAI, for the error; the weights are those of Raghu et al. (2026), Eq. 2.

    Examples
    --------
    >>> y, traces = [1, 0], [[0.5, 0.9], [0.5, 0.3]]
    >>> round(step_calibration_error(y, traces, weights="uniform"), 3)
    0.1
    >>> step_calibration_error(y, traces, part="early")
    0.0
    """
    y, X = check_scored(y_true, traces)
    if not len(X):
        raise ValueError("there are no runs to score; give at least one")
    weight = check_sample_weight(sample_weight, len(X))
    statistic = step_calibration_statistic(
        weighted_steps(y.astype(np.float64), X, weights, weight),
        n_bins=as_count(n_bins, "n_bins"),
        strategy=check_strategy(strategy),
        part=_check_part(part),
    )
    return float(statistic(np.ones(len(X))))


def step_calibration_statistic(
    steps: WeightedSteps,
    *,
    n_bins: int = 10,
    strategy: str = "quantile",
    part: str | None = None,
    rows: IntArray | None = None,
) -> CalibrationError:
    """Return the error as a function of counts of trusted runs, all of which fix the bins."""
    X, weight = steps.X, steps.weight
    if part is not None:
        weight = weight * (steps.third == PARTS_OF_A_RUN.index(part))
    if strategy == "quantile":
        # small numbers, as they are looked up often
        of_tie = quantile_bins(steps.by_tie(weight), n_bins).astype(np.min_scalar_type(n_bins))
        bins = of_tie[steps.tie]
    else:
        bins = uniform_bins(X.cells, n_bins)
    filled = np.bincount(bins, weight, n_bins) > 0  # of a constant forecast one bin is
    gaps = np.empty((len(X), int(filled.sum())))
    total = np.empty(len(X))
    for chunk in row_chunks(X.offsets):
        cells, lengths = slice(X.offsets[chunk.start], X.offsets[chunk.stop]), X.lengths[chunk]
        gap = weight[cells] * (np.repeat(steps.success[chunk], lengths) - X.cells[cells])
        place = np.repeat(np.arange(len(lengths)) * n_bins, lengths) + bins[cells]
        of_bins = np.bincount(place, gap, len(lengths) * n_bins).reshape(-1, n_bins)
        gaps[chunk] = of_bins[:, filled]
        total[chunk] = np.add.reduceat(weight[cells], X.offsets[chunk] - cells.start)
    return CalibrationError(gaps, total, rows)


def _check_part(part: str | None) -> str | None:
    if part is not None:
        check_choice(part, "part", PARTS_OF_A_RUN)
    return part
