"""Forecasts step by step: how calibrated they are, and where a trace earns or loses its score."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy.sparse import csr_matrix

from trajscore.core.outcomes import CENSORED, as_labels
from trajscore.core.run_sums import (
    PART_STARTS,
    WeightedSteps,
    score_cells,
    weighted_steps,
)
from trajscore.core.sample import check_forecasts
from trajscore.core.score_families import get_family
from trajscore.core.statistics import CalibrationError
from trajscore.core.ties import STRATEGIES, quantile_bins, uniform_bins
from trajscore.core.type_aliases import FloatArray, IntArray
from trajscore.core.values import as_count, check_choice, undefined_is_nan
from trajscore.core.weights import Horizon, Weights
from trajscore.core.within_runs import step_numbers
from trajscore.metrics._tps import check_scored


def step_calibration_error(
    y_true: ArrayLike,
    traces: Any,
    *,
    weights: Weights = "early",
    horizon: Horizon = None,
    n_bins: int = 10,
    strategy: str = "quantile",
    part: str | None = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    """Calibration error of the forecasts of all steps, weighted as the score is; lower is better.

    The forecasts of all steps fall into bins by their size; the error is the weighted mean, over
    bins, of how far the mean forecast is from the share of successes. The steps of a run weigh as
    in `tps_score`. T-ECE of `trajectory_diagnostics` asks the same of one number a run, and may
    rise where this falls: a mean of calibrated forecasts is not a calibrated one.

    Parameters
    ----------
    y_true, traces, weights, horizon : array-likes and step weights
        As in `tps_score`.
    n_bins : int, default=10
        Number of bins.
    strategy : {"quantile", "uniform"}, default="quantile"
        Bins of equal weight, or of equal width over [0, 1], closed on the left. Forecasts that
        tie, to 12 significant digits, share a bin: that of their middle rank, and on an edge the
        lower one.
    part : {"early", "middle", "late"}, optional
        The steps that alone count: 1 to 3, 4 to 10, or from 11 on. The bins are then those of
        these steps. Default: all steps.
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
    how, runs = check_scored(y_true, traces, weights, horizon, sample_weight)
    if not len(runs):
        raise ValueError("there are no runs to score; give at least one")
    check_choice(strategy, "strategy", STRATEGIES)
    place = 0
    if part is not None:
        check_choice(part, "part", tuple(PART_STARTS))
        place = list(PART_STARTS).index(part)
    statistics = step_calibration_statistics(
        weighted_steps(runs.y.astype(float), runs.X, how, runs.weight),
        n_bins=as_count(n_bins, "n_bins"),
        strategy=strategy,
        by_part=part is not None,
    )
    return float(statistics[place](np.ones(len(runs))))


def step_calibration_statistics(
    steps: WeightedSteps,
    *,
    n_bins: int = 10,
    strategy: str = "quantile",
    by_part: bool = False,
) -> list[CalibrationError]:
    """Return the error as a function of counts of trusted runs, all of which fix the bins.

    With `by_part`, return that of the early, of the middle and of the late steps.
    """
    X = steps.X
    n_parts = 1
    part = np.zeros(len(X.cells), dtype=np.int64)
    if by_part:
        n_parts = len(PART_STARTS)
        part += steps.part
    if strategy == "quantile":
        tie = part * steps.n_ties + steps.tie  # of the forecasts of each part by themselves
        sizes = np.bincount(tie, steps.weight, n_parts * steps.n_ties).reshape(n_parts, -1)
        # small numbers, as they are looked up often
        bin_of_tie = quantile_bins(sizes.astype(float), n_bins)
        bins = bin_of_tie.astype(np.min_scalar_type(n_bins)).ravel()[tie]
    else:
        bins = uniform_bins(X.cells, n_bins)
    place = part * n_bins + bins  # of each step among the bins of all parts
    size = np.bincount(place, steps.weight, n_parts * n_bins).reshape(n_parts, n_bins)
    filled = size > 0  # of a constant forecast one bin is
    gap = steps.weight * (np.repeat(steps.success, X.lengths) - X.cells)
    # a row for each run, in which the steps of one bin, or part, are added up
    of_bins = csr_matrix((gap, place, X.offsets), (len(X), size.size))
    total = csr_matrix((steps.weight, part, X.offsets), (len(X), n_parts)).toarray()
    return [
        CalibrationError(of_bins[:, k * n_bins + np.flatnonzero(filled[k])].toarray(), total[:, k])
        for k in range(n_parts)
    ]


def step_profile(
    y_true: ArrayLike,
    traces: Any,
    *,
    score: Any = "log",
    q_z: ArrayLike = 0.0,
    sample_weight: ArrayLike | None = None,
) -> pd.DataFrame:
    """Mean score at every step, over the runs that are at least that long.

    Parameters
    ----------
    y_true, traces, score, q_z, sample_weight : array-likes and score family
        As in `censored_tps_score`.

    Returns
    -------
    DataFrame indexed by step (from 1)
        n_runs: runs alive, or the sum of their weights; score: their mean score;
        std_error: its standard error (NaN up to a single run); forecast: their mean forecast;
        success_rate: their mean outcome. And of those among them whose outcome was observed:
        n_observed, score_observed and std_error_observed (NaN at steps that none reaches).

    Raises
    ------
    ValueError
        If a forecast lies outside [0, 1], or q_z does for a run that was not observed.

    Notes
    -----
    Later steps are reached by other runs than early ones: compare predictors at the same step,
    not steps with one another. At the budget that stopped them, unobserved runs may be most of
    those alive: a fall there is one of what they are counted as, unless ``score_observed`` falls
    too.

    A weight says how often a run counts: weight 2 is the run twice, in the counts and the
    standard errors too. Weights that are only proportional to that, as those that add up to one,
    have to be scaled first, to a mean of one for example.

    References
    ----------
    Raghu et al. (2026), Proper Scoring Rules for Agentic Uncertainty Quantification,
    Eq. 2, of which these are the terms before they are weighted over the steps.

    Examples
    --------
    >>> step_profile([1, 0], [[0.5, 0.9], [0.5, float("nan")]], score="brier")[["n_runs", "score"]]
          n_runs  score
    step
    1          2  -0.25
    2          1  -0.01
    """
    runs = check_forecasts(
        y_true, traces, allow_censored=True, sample_weight=sample_weight, q_z=q_z
    )
    X = runs.X
    family = get_family(score)
    step = step_numbers(X) - 1
    w = np.repeat(runs.weight, X.lengths)
    labels = as_labels(runs.y, censored="q_z", q_z=runs.q_z).value
    scored = score_cells(family, X.cells, labels, X.lengths)

    observed = w * np.repeat(runs.y != CENSORED, X.lengths)
    n_runs, mean, std_error = mean_by_step(step, w, scored)
    n_observed, observed_mean, observed_error = mean_by_step(step, observed, scored)
    table = pd.DataFrame(
        {
            "n_runs": n_runs,
            "score": mean,
            "std_error": std_error,
            "forecast": mean_by_step(step, w, X.cells)[1],
            "success_rate": mean_by_step(step, w, np.repeat(labels, X.lengths))[1],
            "n_observed": n_observed,
            "score_observed": observed_mean,
            "std_error_observed": observed_error,
        },
        index=pd.RangeIndex(1, len(n_runs) + 1, name="step"),
    )
    counts = ["n_runs", "n_observed"]
    if (table[counts] == np.floor(table[counts])).all(axis=None):
        table[counts] = table[counts].astype(np.int64)
    return table[table["n_runs"] > 0]


def mean_by_step(
    step: IntArray, w: FloatArray, x: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the weight of each step, the weighted mean of x, and its standard error."""
    total = np.bincount(step, w).astype(float)
    with undefined_is_nan():
        mean = np.bincount(step, w * x) / total
        variance = np.bincount(step, w * (x - np.nan_to_num(mean)[step]) ** 2) / (total - 1)
        return total, mean, np.where(total > 1, np.sqrt(variance / total), np.nan)
