"""Metrics of one confidence a run.

What is a line in `DIAGNOSTICS` is in `trajectory_diagnostics`, reports of tables and of batches,
and gates, with its influence, its weights, its direction and its line in the glossary.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from trajscore.core import ranking
from trajscore.core.outcomes import opposite
from trajscore.core.run_sums import score_cells
from trajscore.core.score_families import BrierScore
from trajscore.core.statistics import CalibrationError, MeanOfRuns, OfTies, Statistic
from trajscore.core.ties import bins_of
from trajscore.core.type_aliases import FloatArray, IntArray

_BRIER = BrierScore()


@dataclass(frozen=True)
class CollapsedRuns:
    """One confidence a run, and its outcome in [0, 1]; `weight` is for the quantiles of bins."""

    confidence: FloatArray
    success: FloatArray
    weight: FloatArray | None = None
    rows: IntArray | None = None  # which runs of the set these are; None for all

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
        return OfTies(runs.ties, self.function, runs.rows)


@dataclass(frozen=True)
class CostMetric(RunMetric):
    """Mean of what a forecast costs each run, a function of confidence and success."""

    cost: Callable[[FloatArray, FloatArray], FloatArray]

    def statistic(self, runs: CollapsedRuns) -> MeanOfRuns:
        """Return the mean, with what each run would cost, had it ended the other way."""
        costs = self.cost(runs.confidence, runs.success)
        return MeanOfRuns(costs, runs.rows, self.cost(runs.confidence, opposite(runs.success)))


@dataclass(frozen=True)
class BinnedError(RunMetric):
    """Calibration error over bins of equal weight, or of equal width."""

    n_bins: int = 10
    strategy: str = "quantile"

    def statistic(self, runs: CollapsedRuns) -> CalibrationError:
        """Return the error over the bins that are not empty."""
        ones = np.ones(len(runs.confidence))
        weight = ones if runs.weight is None else runs.weight
        bins = bins_of(runs.confidence, weight, self.n_bins, self.strategy)
        gaps = (runs.success - runs.confidence)[:, None] * (bins[:, None] == np.unique(bins))
        return CalibrationError(gaps, ones, runs.rows)


def squared_error(confidence: FloatArray, success: FloatArray) -> FloatArray:
    """Squared error of each run; of a graded outcome, that of a success and a failure by weight."""
    return -score_cells(_BRIER, confidence, success)


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
