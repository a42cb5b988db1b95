"""Where a score comes from: calibration and discrimination, over all steps and step by step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from sklearn.isotonic import isotonic_regression

from trajscore.core.checks import check_forecasts
from trajscore.core.outcomes import CENSORED, as_labels
from trajscore.core.score_families import get_family
from trajscore.core.statistics import CalibrationError
from trajscore.core.ties import STRATEGIES, group_ties, quantile_bins, uniform_bins
from trajscore.core.values import (
    ArrayLike,
    FloatArray,
    IntArray,
    as_count,
    check_choice,
    undefined_is_nan,
)
from trajscore.core.weights import (
    NOTHING_COUNTS,
    PART_STARTS,
    Horizon,
    RunSums,
    WeightedSteps,
    Weights,
    run_sums,
    score_cells,
    step_parts,
    weighted_score,
)
from trajscore.core.within_runs import run_numbers, step_numbers
from trajscore.metrics.tps import check_scored


@dataclass(frozen=True)
class TPSDecomposition:
    """Parts of a Trajectory Proper Score, as `tps_decomposition` describes them."""

    score: float
    miscalibration: float
    discrimination: float
    uncertainty: float


def score_parts(
    family: Any, forecast: FloatArray, success: FloatArray, failure: FloatArray
) -> dict[str, float]:
    """Return a total score and its parts, from the outcomes' weights at each distinct forecast.

    Forecasts ascend, and never are both weights of one zero.
    """
    total = success + failure

    def score(p: FloatArray) -> float:
        scored = weighted_score(success, family.success(p))
        return float((scored + weighted_score(failure, family.failure(p))).sum())

    of_forecast = score(forecast)
    best = score(isotonic_regression(success / total, sample_weight=total))
    constant = score(np.full(len(total), success.sum() / total.sum()))
    return {
        "score": of_forecast,
        "miscalibration": best - of_forecast,
        "discrimination": best - constant,
        "uncertainty": -constant,
    }


def tps_decomposition(
    y_true: ArrayLike,
    traces: Any,
    *,
    score: Any = "log",
    weights: Weights = "early",
    horizon: Horizon = None,
    by: str = "pooled",
    sample_weight: ArrayLike | None = None,
) -> Any:
    """Split a Trajectory Proper Score into miscalibration, discrimination and uncertainty.

    The forecasts are compared with the best monotone function of themselves (the isotonic
    regression of outcomes on forecasts) and with the best constant, all three scored alike::

        miscalibration = S(recalibrated) - S(forecast)
        discrimination = S(recalibrated) - S(constant)
        uncertainty    = -S(constant)

    so score = -(miscalibration - discrimination + uncertainty), whatever the score family.

    Parameters
    ----------
    y_true, traces, score, weights, horizon : array-likes, score family and step weights
        As in `tps_score`. For runs that were cut off, give their continuation-success probability.
    by : {"pooled", "step"}, default="pooled"
        "pooled" recalibrates all steps with one function and compares with one constant; "step"
        has one function and one constant a step.
    sample_weight : array-like of shape (n_runs,), optional
        Weight of each run.

    Returns
    -------
    object with attributes, or DataFrame indexed by step (from 1)
        score: as `tps_score` gives it; higher is better.
        miscalibration: what the best monotone recalibration would gain; not negative, smaller is
        better. discrimination: what the recalibrated forecast gains over the constant one; not
        negative, larger is better. uncertainty: minus the score of the constant forecast, the
        success rate over forecasts, each with its weight; the same for every forecast of the same
        runs.

        With ``by="step"`` a table of their means at each step, and beside them n_runs, the runs
        that count there, and weight, their share of the score: weight times score sums to the
        total. Steps without weight are left out.

    Raises
    ------
    ValueError
        If a forecast lies outside [0, 1], an outcome was not observed, or nothing has a weight.

    See Also
    --------
    step_profile : Mean scores by step, every run counted alike.

    Notes
    -----
    Miscalibration and discrimination are not negative for any proper score. Both are measured in
    sample: the isotonic regression also fits noise, so with few runs both are too large, by the
    same amount. Forecasts that tie are recalibrated together; the order of rows does not matter.

    Eq. 11 of Raghu et al. (2026) takes the mean outcome at each forecast in place of a monotone
    function; where outcomes do not rise with forecasts, its reliability and resolution are both
    larger by the same amount (:doc:`/equations` has an example).

    The uncertainty by step is never larger, on average, than the pooled one: long runs succeed at
    another rate, and a constant a step may know that.

    References
    ----------
    Dimitriadis, Gneiting and Jordan (2021), Stable reliability diagrams for probabilistic
    classifiers, PNAS 118(8): the CORP approach.

    Examples
    --------
    >>> y, traces = [1, 0, 1, 0], [[0.9, 0.9], [0.9, 0.3], [0.6, 0.9], [0.3, 0.1]]
    >>> parts = tps_decomposition(y, traces, score="brier", weights="uniform")
    >>> print(f"{parts.miscalibration:.4f} {parts.discrimination:.4f} {parts.uncertainty:.4f}")
    0.0488 0.1500 0.2500
    >>> table = tps_decomposition(y, traces, score="brier", weights="uniform", by="step")
    >>> table[["weight", "score", "miscalibration", "discrimination"]].round(3)
          weight  score  miscalibration  discrimination
    step
    1        0.5 -0.268           0.101           0.083
    2        0.5 -0.030           0.030           0.250
    """
    check_choice(by, "by", ("pooled", "step"))
    family = get_family(score)
    how, runs = check_scored(y_true, traces, weights, horizon, sample_weight)
    X = runs.X
    w = WeightedSteps(X, runs.y.astype(float), how, runs.weight).weight
    if not w.any():
        raise ValueError(NOTHING_COUNTS if len(runs) else "there are no runs; give at least one")
    w /= runs.weight @ how.of(X).divisor()
    success = w * np.repeat(runs.y.astype(float), X.lengths)

    def parts(cells: IntArray) -> dict[str, float]:
        forecast, tie = group_ties(X.cells[cells])
        won, lost = (
            np.bincount(tie, mass).astype(float)
            for mass in (success[cells], w[cells] - success[cells])
        )
        return score_parts(family, forecast, won, lost)

    used = np.flatnonzero(w)
    if by == "pooled":
        return TPSDecomposition(**parts(used))
    rows = {}
    for step, cells in pd.Series(used).groupby(step_numbers(X)[used]):
        share = w[cells].sum()
        means = {name: part / share for name, part in parts(cells).items()}
        rows[step] = {"n_runs": len(cells), "weight": share} | means
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis("step")


def recalibrated_sums(steps: WeightedSteps, score: Any) -> RunSums:
    """Scores of trusted runs with the best monotone recalibration of all their forecasts."""
    total = steps.by_tie(steps.weight)
    success = steps.by_tie(steps.weight * np.repeat(steps.success, steps.X.lengths))
    used = total > 0
    best = np.full(len(total), 0.5)  # where nothing weighs, any
    best[used] = isotonic_regression(success[used] / total[used], sample_weight=total[used])
    recalibrated = steps.X.with_cells(best[steps.tie])
    return run_sums(steps.success, recalibrated, score, steps.weights)


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
    >>> round(step_calibration_error(y, traces, part="early"), 3)
    0.083
    """
    how, runs = check_scored(y_true, traces, weights, horizon, sample_weight)
    if not len(runs):
        raise ValueError("there are no runs to score; give at least one")
    check_choice(strategy, "strategy", STRATEGIES)
    if part is not None:
        check_choice(part, "part", tuple(PART_STARTS))
    steps = WeightedSteps(runs.X, runs.y.astype(float), how, runs.weight)
    error = step_calibration_statistic(steps, part, as_count(n_bins, "n_bins"), strategy)
    return float(error(np.ones(len(runs))))


def step_calibration_statistic(
    steps: WeightedSteps, part: str | None = None, n_bins: int = 10, strategy: str = "quantile"
) -> CalibrationError:
    """Return the error as a function of counts of trusted runs, all of which fix the bins.

    Steps of other parts weigh nothing.
    """
    X = steps.X
    weight = steps.weight
    if part is not None:
        weight = weight * (step_parts(X) == list(PART_STARTS).index(part))
    if strategy == "quantile":
        bins = quantile_bins(steps.by_tie(weight), n_bins)[steps.tie]
    else:
        bins = uniform_bins(X.cells, n_bins)
    bins = pd.factorize(bins, sort=True)[0]  # of many bins most are empty
    gap = weight * (np.repeat(steps.success, X.lengths) - X.cells)
    run = run_numbers(X)
    filled = np.bincount(bins, weight) > 0  # of a constant forecast one bin is
    of_bins = np.bincount(run * len(filled) + bins, gap, len(X) * len(filled))
    of_filled = of_bins.reshape(len(X), -1).compress(filled, axis=1)
    return CalibrationError(of_filled, np.bincount(run, weight).astype(float))


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
