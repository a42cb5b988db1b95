"""Where the score comes from: calibration, discrimination and uncertainty."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from sklearn.isotonic import isotonic_regression

from trajscore.core.run_sums import NOTHING_COUNTS, RunSums, WeightedSteps, run_sums, weighted_score
from trajscore.core.sample import Sample
from trajscore.core.score_families import get_family
from trajscore.core.ties import group_ties
from trajscore.core.type_aliases import FloatArray, IntArray
from trajscore.core.values import check_choice
from trajscore.core.weights import Horizon, StepWeights, Weights, as_step_weights
from trajscore.core.within_runs import step_numbers
from trajscore.metrics._tps import check_scored

TERMS = ("miscalibration", "discrimination", "uncertainty")


@dataclass(frozen=True)
class TPSDecomposition:
    """Parts of a Trajectory Proper Score, as `tps_decomposition` describes them."""

    score: float
    miscalibration: float
    discrimination: float
    uncertainty: float


@dataclass(frozen=True)
class Mass:
    """Weight of successes and failures at each distinct forecast, ascending within each group.

    Never are both weights of an entry zero; groups are numbered from 0, ascending, none empty.
    """

    forecast: FloatArray
    success: FloatArray
    failure: FloatArray
    group: IntArray

    def recalibrated(self) -> Self:
        """Isotonic regression of outcomes on forecasts, group by group: one entry a block."""
        total = self.success + self.failure
        # rates lie in [0, 1], so shifted by 2 a group no block spans two of them: one pass does all
        shifted = isotonic_regression(self.success / total + 2.0 * self.group, sample_weight=total)
        return self._pooled(_starts(shifted))

    def constant(self) -> Self:
        """Each group with its success rate as the only forecast."""
        return self._pooled(_starts(self.group))

    def score(self, family: Any) -> FloatArray:
        """Total score of each group, times the weights."""
        scored = weighted_score(self.success, family.success(self.forecast))
        scored += weighted_score(self.failure, family.failure(self.forecast))
        return np.add.reduceat(scored, _starts(self.group))

    def parts(self, family: Any) -> dict[str, FloatArray]:
        """Score of each group and its parts, by name."""
        forecast = self.score(family)
        best = self.recalibrated().score(family)
        constant = self.constant().score(family)
        parts = (best - forecast, best - constant, -constant)
        return {"score": forecast} | dict(zip(TERMS, parts, strict=True))

    def _pooled(self, starts: IntArray) -> Self:
        success = np.add.reduceat(self.success, starts)
        failure = np.add.reduceat(self.failure, starts)
        return type(self)(success / (success + failure), success, failure, self.group[starts])


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
    how = as_step_weights(weights, horizon)
    runs = check_scored(y_true, traces, how, sample_weight)
    mass, steps, counts = weighted_mass(runs, how, by == "step")
    parts = mass.parts(family)
    if by == "pooled":
        return TPSDecomposition(**{name: float(part[0]) for name, part in parts.items()})
    share = np.add.reduceat(mass.success + mass.failure, _starts(mass.group))
    columns = {"n_runs": counts, "weight": share}
    columns |= {name: part / share for name, part in parts.items()}
    return pd.DataFrame(columns, index=pd.Index(steps, name="step"))


def recalibrated_sums(steps: WeightedSteps, score: Any) -> RunSums:
    """Scores of trusted runs with the best monotone recalibration of all their forecasts."""
    total = steps.by_tie(steps.weight)
    success = steps.by_tie(steps.weight * np.repeat(steps.success, steps.X.lengths))
    used = total > 0
    best = np.full(len(total), 0.5)  # where nothing weighs, any
    best[used] = isotonic_regression(success[used] / total[used], sample_weight=total[used])
    recalibrated = steps.X.with_cells(best[steps.tie])
    return run_sums(steps.success, recalibrated, score, steps.weights)


def weighted_mass(
    runs: Sample, weights: StepWeights, by_step: bool
) -> tuple[Mass, IntArray, IntArray]:
    """Gather checked runs' outcomes at each distinct forecast, with the weights of the score.

    All steps are one group, or with `by_step` each is one. Returned beside the mass: the step of
    each group (from 1, zero where all are one) and how many forecasts it has.
    """
    X = runs.X
    of_runs = weights.of(runs.X)
    w = of_runs.cells()
    w *= np.repeat(runs.weight, X.lengths)
    if not w.any():
        raise ValueError(NOTHING_COUNTS if len(runs) else "there are no runs; give at least one")
    w /= runs.weight @ of_runs.divisor()
    step = step_numbers(X) * by_step
    used = np.flatnonzero(w)
    w = w[used]
    step = step[used]
    forecast, tie = group_ties(X.cells[used], step)
    step_of_tie = np.empty(len(forecast), dtype=np.int64)
    step_of_tie[tie] = step
    steps, group = np.unique(step_of_tie, return_inverse=True)
    success = w * np.repeat(runs.y.astype(np.float64), X.lengths)[used]
    mass = Mass(
        forecast=forecast,
        success=np.bincount(tie, success).astype(np.float64),
        failure=np.bincount(tie, w - success).astype(np.float64),
        group=group,
    )
    return mass, steps, np.bincount(step)[steps]


def _starts(values: NDArray[Any]) -> IntArray:
    """Where a new value begins."""
    return np.flatnonzero(np.append(True, values[1:] != values[:-1]))
