"""Where the score comes from: calibration, discrimination and uncertainty."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from sklearn.isotonic import isotonic_regression

from trajscore.core.run_sums import NOTHING_COUNTS, RunSums, WeightedSteps, run_sums, weighted_score
from trajscore.core.score_families import get_family
from trajscore.core.ties import group_ties
from trajscore.core.type_aliases import FloatArray, IntArray
from trajscore.core.values import check_choice
from trajscore.core.weights import Horizon, Weights
from trajscore.core.within_runs import cells_by_step
from trajscore.metrics._tps import check_scored

TERMS = ("miscalibration", "discrimination", "uncertainty")


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
    parts = (best - of_forecast, best - constant, -constant)
    return {"score": of_forecast} | dict(zip(TERMS, parts, strict=True))


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
    of_runs = how.of(X)
    w = of_runs.cells()
    w *= np.repeat(runs.weight, X.lengths)
    if not w.any():
        raise ValueError(NOTHING_COUNTS if len(runs) else "there are no runs; give at least one")
    w /= runs.weight @ of_runs.divisor()
    success = w * np.repeat(runs.y.astype(float), X.lengths)

    def parts(cells: IntArray) -> dict[str, float]:
        forecast, tie = group_ties(X.cells[cells])
        won, lost = (
            np.bincount(tie, mass).astype(float)
            for mass in (success[cells], w[cells] - success[cells])
        )
        return score_parts(family, forecast, won, lost)

    if by == "pooled":
        return TPSDecomposition(**parts(np.flatnonzero(w)))
    rows = {}
    for step, (reached, _) in enumerate(cells_by_step(X), start=1):
        cells = reached[w[reached] > 0]
        share = w[cells].sum()
        if share > 0:
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
