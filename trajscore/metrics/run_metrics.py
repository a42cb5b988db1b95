"""Metrics of one confidence a run; failures are the positive class.

What is a line in `DIAGNOSTICS` is in `trajectory_diagnostics`, reports of tables and of batches,
and gates, with its influence, its weights, its direction and its line in the glossary. They measure
ranking, binwise calibration, or a collapsed probability; none elicits the trace.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from trajscore.core import ranking
from trajscore.core.checks import check_sample
from trajscore.core.outcomes import opposite
from trajscore.core.score_families import BrierScore
from trajscore.core.statistics import CalibrationError, MeanOfRuns, OfTies, Statistic, all_at_once
from trajscore.core.ties import STRATEGIES, bins_of
from trajscore.core.values import ArrayLike, FloatArray, as_count, check_choice
from trajscore.core.weights import (
    AGGREGATORS,
    Horizon,
    Weights,
    as_step_weights,
    collapse,
    score_cells,
)


@dataclass(frozen=True)
class CollapsedRuns:
    """One confidence a run, and its outcome in [0, 1]; `weight` is for the quantiles of bins."""

    confidence: FloatArray
    success: FloatArray
    weight: FloatArray

    @cached_property
    def ties(self) -> ranking.TieGroups:
        """Runs of equal confidence."""
        return ranking.TieGroups(self.confidence, self.success)


@dataclass(frozen=True)
class RunMetric(ABC):
    """A metric of one confidence a run, and what its number means."""

    meaning: str
    lower_is_better: bool = field(default=True, kw_only=True)
    needs_probabilities: bool = field(default=True, kw_only=True)

    @abstractmethod
    def statistic(self, runs: CollapsedRuns) -> Statistic:
        """Return the metric as a function of how often each run counts."""


@dataclass(frozen=True)
class RankMetric(RunMetric):
    """Function of the failures and successes at each confidence; a line in `ranking.GRADIENTS`."""

    function: Callable[[FloatArray, FloatArray], FloatArray]
    needs_probabilities: bool = field(default=False, kw_only=True)

    def statistic(self, runs: CollapsedRuns) -> OfTies:
        """Return the metric of the tied runs."""
        return OfTies(runs.ties, self.function)


@dataclass(frozen=True)
class CostMetric(RunMetric):
    """Mean of what a forecast costs each run, a function of confidence and success."""

    cost: Callable[[FloatArray, FloatArray], FloatArray]

    def statistic(self, runs: CollapsedRuns) -> MeanOfRuns:
        """Return the mean, with what each run would cost, had it ended the other way."""
        costs = self.cost(runs.confidence, runs.success)
        other = self.cost(runs.confidence, opposite(runs.success))
        return MeanOfRuns(costs, other=other)


@dataclass(frozen=True)
class BinnedError(RunMetric):
    """Calibration error over bins of equal weight, or of equal width."""

    n_bins: int = 10
    strategy: str = "quantile"

    def statistic(self, runs: CollapsedRuns) -> CalibrationError:
        """Return the error over the bins that are not empty."""
        bins = bins_of(runs.confidence, runs.weight, self.n_bins, self.strategy)
        gaps = (runs.success - runs.confidence)[:, None] * (bins[:, None] == np.unique(bins))
        return CalibrationError(gaps, np.ones_like(runs.confidence))


def squared_error(confidence: FloatArray, success: FloatArray) -> FloatArray:
    """Squared error of each run; of a graded outcome, that of a success and a failure by weight."""
    return -score_cells(BrierScore(), confidence, success)


T_ECE = BinnedError(
    "Calibration error of one number a run; lower is better. It does not see skill: the base rate "
    "has none."
)
DIAGNOSTICS: dict[str, RunMetric] = {
    "AUROC": RankMetric(
        "Chance that a run that succeeds is ranked above one that fails; 0.5 is chance, 1 is best.",
        ranking.auroc,
        lower_is_better=False,
    ),
    "AUPRC": RankMetric(
        "Area under precision and recall, failures being what is looked for; the share of failures "
        "is chance, 1 is best.",
        ranking.auprc,
        lower_is_better=False,
    ),
    "AURC": RankMetric(
        "Mean share of failures among the accepted runs, over all shares accepted; lower is "
        "better.",
        ranking.aurc,
    ),
    "T-ECE": T_ECE,
    "T-Brier": CostMetric("Squared error of one number a run; lower is better.", squared_error),
}


def statistics_of(
    metrics: Mapping[str, RunMetric], runs: CollapsedRuns, *, is_probability: bool
) -> dict[str, Statistic]:
    """Return metrics by name; of values that are not probabilities, those that need none."""
    return {
        name: metric.statistic(runs)
        for name, metric in metrics.items()
        if is_probability or not metric.needs_probabilities
    }


def trajectory_diagnostics(
    y_true: ArrayLike,
    traces: Any,
    *,
    phi: str = "weighted",
    weights: Weights = "early",
    horizon: Horizon = None,
    sample_weight: ArrayLike | None = None,
    n_bins: int = 10,
    strategy: str = "quantile",
) -> pd.Series:
    """Table of the diagnostics of traces, each collapsed to one confidence.

    Parameters
    ----------
    y_true : array-like of shape (n_runs,)
        Outcomes: 1 success, 0 failure, or a grade in [0, 1].
    traces : TrajectoryArray or array-like of shape (n_runs, T_max)
        Any signal that is higher where success is more likely, one a step.
    phi : {"last", "mean", "min", "weighted"}, default="weighted"
        How a trace is collapsed, see `trajscore.TraceAggregator`.
    weights, horizon : str or callable, and int, "own" or None
        Step weights as in `tps_score`, for ``phi="weighted"``.
    sample_weight : array-like of shape (n_runs,), optional
        Weight of each run.
    n_bins, strategy : int, default=10, and {"quantile", "uniform"}, default="quantile"
        Bins of T-ECE: of equal weight, or of equal width over [0, 1] as in the paper's Eq. 10,
        closed on the left. Runs that tie share a bin: that of their middle rank, and on an edge
        the lower one.

    Returns
    -------
    Series
        AUROC: chance that a failed run has a lower confidence than a successful one, where ties
        count half; higher is better, 0.5 for a constant, NaN where all runs end alike.
        AUPRC: average precision of finding failed runs by low confidence; higher is better, the
        failure rate for a constant, NaN where no run fails.
        AURC: area under the risk-coverage curve, the mean failure rate among the k most confident
        runs over k = 1, ..., n and over all orders of ties; lower is better, the failure rate for
        a constant.
        T-ECE: calibration error; lower is better. It does not see resolution: a constant base rate
        scores 0 (Theorem A). NaN for signals with values outside [0, 1].
        T-Brier: squared error, of a graded outcome y that of a success with weight y and of a
        failure with weight 1 - y; lower is better. It elicits the collapsed scalar, not the trace
        (Theorem B). NaN for signals with values outside [0, 1].

    Raises
    ------
    ValueError
        If there are no runs, an outcome was not observed, `phi`, `weights` or `strategy` is
        unknown, or `n_bins` is not a whole number of at least 1.

    See Also
    --------
    tps_score : Elicits the whole trace.
    step_calibration_error : Calibration of the forecasts step by step, which T-ECE does not show.
    trajscore.TraceAggregator : Collapses traces, for scikit-learn's own metrics and scorers.

    Notes
    -----
    Confidences that agree to 12 significant digits are ties: means of a trace differ in the last
    digits where the numbers are equal. A run with the grade y counts as y of a success and 1 - y
    of a failure with the same confidence.

    References
    ----------
    Raghu et al. (2026), Proper Scoring Rules for Agentic Uncertainty Quantification,
    Section 5.1, Eq. 10, Theorems A and B and Appendix F.1.

    Examples
    --------
    >>> trajectory_diagnostics([1, 0, 0, 1], [[0.9], [0.9], [0.1], [0.6]]).round(3)
    AUROC      0.625
    AUPRC      0.750
    AURC       0.458
    T-ECE      0.325
    T-Brier    0.248
    dtype: float64
    """
    n_bins = as_count(n_bins, "n_bins")
    check_choice(phi, "phi", AGGREGATORS)
    check_choice(strategy, "strategy", STRATEGIES)
    runs = check_sample(
        traces, y_true, sample_weight=sample_weight, allow_censored=False, single_channel=True
    )
    if not len(runs):
        raise ValueError("there are no runs to score; give at least one")
    collapsed = CollapsedRuns(
        collapse(runs.X, phi, as_step_weights(weights, horizon)),
        np.asarray(runs.y, dtype=float),
        runs.weight,
    )
    errors = DIAGNOSTICS | {"T-ECE": replace(T_ECE, n_bins=n_bins, strategy=strategy)}
    metrics = statistics_of(errors, collapsed, is_probability=runs.X.is_within_unit())
    values = all_at_once(metrics)(runs.weight)
    return pd.Series(values, list(metrics)).reindex(list(DIAGNOSTICS))
