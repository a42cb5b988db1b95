"""Few labels of many runs: forecasts of all outcomes, and what is fitted to these."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import clone

from trajscore.calibration._cross_fit import with_folds
from trajscore.core.array import TrajectoryArray
from trajscore.core.errors import ArgumentError
from trajscore.core.outcomes import CENSORED
from trajscore.core.weights import StepWeights
from trajscore.inference._labels import FewLabels, OutcomeRatio, rate_of
from trajscore.inference.units import any_units
from trajscore.report._runs import Coverage, Judged


def refuse_with_few_labels(*, by: bool, monitoring: Any, missing: str) -> None:
    """Refuse what needs the outcome of every run."""
    if by:
        raise ArgumentError(
            "{argument} needs an outcome of every run, and few are labelled; judge each group by "
            "itself, or leave it out",
            "by",
        )
    if monitoring is not None:
        raise ArgumentError(
            "{argument} needs an outcome of every run, and few are labelled; for a rule of your "
            "own pass what it flags to trajscore.inference.label_intervals(flagged=...)",
            "monitoring",
        )
    if missing == "own_runs":
        raise ArgumentError(
            "with few labels all predictors are judged on the same runs; leave out {argument}",
            "missing",
            missing,
        )


def with_few_labels(judged: Judged) -> Judged:
    """Forecast the outcomes of all runs, if few of them are labelled."""
    runs = judged.runs
    if (labelling := runs.labelling) is None:
        return judged
    groups, judge, probability = runs.groups, labelling.judge, labelling.probability
    drawn = np.flatnonzero(labelling.unlabelled | (runs.y != CENSORED))
    labelled = ~labelling.unlabelled[drawn]
    of_drawn = np.full(len(drawn), labelled.mean()) if probability is None else probability[drawn]
    few = FewLabels.of(
        [trace[drawn] for trace in judged.traces.values()],
        np.where(labelled, runs.y[drawn], CENSORED),
        of_drawn,
        None if judge is None else judge[drawn],
        None if groups is None else np.unique(groups[drawn], return_inverse=True)[1],
    )
    if len(drawn) < len(runs):
        few = _with_stopped(few, drawn, runs)
    expected = np.where(few.labelled, few.outcome, few.forecast)
    return replace(judged, runs=replace(runs, few=few, labels=expected))


def _with_stopped(few: FewLabels, drawn: Any, runs: Coverage) -> FewLabels:
    """Add runs that were stopped, which are known to be what they count as."""
    known, n_folds = runs.labels, len(few.by_fold)
    outcome, inverse, forecast = known.copy(), np.zeros(len(runs)), known.copy()
    fold, by_fold = np.arange(len(runs)) % n_folds, np.tile(known, (n_folds, 1))
    outcome[drawn], inverse[drawn], forecast[drawn] = few.outcome, few.inverse, few.forecast
    fold[drawn], by_fold[:, drawn] = few.fold, few.by_fold
    units = any_units(runs.groups, len(runs))
    return FewLabels(outcome, inverse, forecast, units, fold, by_fold)


# -------------------------------------------------------------------- rows


def success_rate(runs: Coverage) -> float:
    """Return the success rate of the runs with an outcome, or of all by the labels of few."""
    if runs.few is None:
        return float(runs.y[runs.observed].mean())
    observed = runs.observed.astype(np.float64)
    ratio = OutcomeRatio(observed, 0 * observed, observed, observed, is_rate=True)
    return min(max(runs.few.value(ratio), 0.0), 1.0)


def rates(few: FewLabels, trace: TrajectoryArray, weights: StepWeights) -> tuple[float, float]:
    """Return the success rate over forecasts, and over runs."""
    n, divisor = len(trace), weights.of(trace).divisor()
    of_steps = OutcomeRatio(divisor, np.zeros(n), divisor, divisor, is_rate=True)
    over_steps, over_runs = (
        min(max(few.value(ratio), 0.5 / n), 1 - 0.5 / n) for ratio in (of_steps, rate_of(n))
    )
    return over_steps, over_runs


def by_few_labels(forecaster: Any, trace: TrajectoryArray, few: FewLabels) -> TrajectoryArray:
    """Return traces out of fold, each by a fit that has not seen the labels of its fold.

    It is fitted to the outcomes that the labels of the other folds make one expect of all runs.
    """
    cells, fold_of_cell = np.empty(len(trace.cells)), np.repeat(few.fold, trace.lengths)
    for k, expected in enumerate(few.by_fold):
        train, held_out = np.flatnonzero(few.fold != k), np.flatnonzero(few.fold == k)
        fitted = clone(forecaster).fit(trace[train], expected[train])
        cells[fold_of_cell == k] = fitted.transform(trace[held_out]).cells
    return with_folds(trace.with_cells(cells), few.fold)
