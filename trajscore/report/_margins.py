"""Metrics of rows, as functions of how often each run counts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import chain

import numpy as np

from trajscore.calibration._cross_fit import folds_of
from trajscore.core import ranking
from trajscore.core.collapse import collapse
from trajscore.core.statistics import MeanOfRuns, OfTies, Statistic, all_at_once
from trajscore.core.ties import group_ties
from trajscore.core.type_aliases import FloatArray, IntArray
from trajscore.core.weighted_steps import WeightedSteps, weighted_steps
from trajscore.metrics._decomposition import recalibrated_sums
from trajscore.metrics._step_calibration import step_calibration_statistics
from trajscore.metrics.run_metrics import CollapsedRuns, statistics_of
from trajscore.report._data import (
    ALIVE,
    ALIVE_END,
    RUN_METRICS,
    STEP_ERRORS,
    Options,
)
from trajscore.report._rows import Row

Metrics = Mapping[str, Statistic]
Statistics = Callable[[FloatArray], FloatArray]


def row_metrics(row: Row, options: Options, steps: WeightedSteps | None = None) -> Metrics:
    """Return all metrics of a row; `steps` may come from other forecasts of these runs."""
    labels, confidence = row.runs.labels, _confidence_of(row, options)
    collapsed = CollapsedRuns(confidence, labels)
    metrics = statistics_of(RUN_METRICS, collapsed, is_probability=row.is_probability)
    if row.predictor in (ALIVE, ALIVE_END):
        ties = _ties_of_counting(row, confidence)
        for name, statistic in metrics.items():
            if isinstance(statistic, OfTies):
                metrics[name] = replace(statistic, ties=ties)
    if not row.is_probability:
        return metrics
    divisor = None  # which the scores share
    for name, score in zip(options.score_names, options.scores, strict=True):
        statistic = row.score(score, options.weights)
        divisor = statistic.divisor if divisor is None else divisor
        metrics[name] = replace(statistic, divisor=divisor)
    if row.predictor in (ALIVE, ALIVE_END):  # which nobody recalibrates
        return metrics
    if steps is None:
        steps = weighted_steps(labels, row.traces, options.weights)
    else:
        steps = steps.of(row.traces)
    errors = step_calibration_statistics(steps), step_calibration_statistics(steps, by_part=True)
    metrics |= zip(STEP_ERRORS, chain(*errors), strict=True)
    # the recalibration stays what it is: to first order the best one gains nothing by moving
    leading = metrics[options.score_names[0]]
    assert isinstance(leading, MeanOfRuns)
    best = recalibrated_sums(steps, options.scores[0]).total
    other = None if leading.other is None else best - leading.other
    gained = best - leading.samples
    metrics[options.miscalibration] = MeanOfRuns(gained, None, other, leading.divisor)
    return metrics


def _confidence_of(row: Row, options: Options) -> FloatArray:
    """Return one number a run: the collapsed trace, or the best constant."""
    if row.rate is not None:
        return np.full(len(row.runs), row.rate)
    return collapse(row.traces, options.phi, options.weights)


def _ties_of_counting(alive: Row, confidence: FloatArray) -> ranking.TieGroups:
    """Rank runs by the alive rate within folds; where that is worse than chance, by nothing."""
    labels = alive.runs.labels
    ties = ranking.TieGroups(_places_in_folds(confidence, folds_of(alive.traces)), labels)
    if not ranking.auroc(*ties.sums(np.ones(len(labels)))) >= 0.5:
        ties = ranking.TieGroups(np.zeros(len(labels)), labels)
    return ties


def _places_in_folds(confidence: FloatArray, fold: IntArray) -> FloatArray:
    """Middle rank of each run within its fold, as a share: other folds have other rates."""
    places = np.empty(len(confidence))
    for k in np.unique(fold):
        rows = np.flatnonzero(fold == k)
        _, tie = group_ties(confidence[rows])
        size = np.bincount(tie)
        places[rows] = ((np.cumsum(size) - (size - 1) / 2) / len(rows))[tie]
    return places


def as_one_function(levels: Sequence[Sequence[Metrics]], names: list[str]) -> Statistics:
    """Compute the metrics of each row and reference once, and put them wherever they belong.

    The function maps counts of shape (n_replicates, n_runs) to (n_replicates, n_levels, n_rows,
    n_metrics); NaN where there is no such metric.
    """
    distinct = {
        id(metrics): {name: metrics[name] for name in names if name in metrics}
        for rows in levels
        for metrics in rows
    }
    # row by row: what a row is worth must not depend, in its last digit, on the other rows
    values_of = {key: all_at_once(metrics) for key, metrics in distinct.items()}
    places = {key: [names.index(name) for name in known] for key, known in distinct.items()}

    def table(counts: FloatArray) -> FloatArray:
        filled = {key: np.full((len(counts), len(names)), np.nan) for key in distinct}
        for key, values in filled.items():
            values[:, places[key]] = values_of[key](counts)
        return np.stack([np.stack([filled[id(row)] for row in rows], 1) for rows in levels], 1)

    return table
