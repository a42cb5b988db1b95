"""Metrics of rows, and what they are above references on the same runs.

The references are the base rate, the alive rate (what counting steps is worth, the end of a run
known or not), and the predictor as it was given.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Generic, TypeVar

import numpy as np

from trajscore.calibration._cross_fit import folds_of
from trajscore.core import ranking
from trajscore.core.collapse import collapse
from trajscore.core.outcomes import opposite
from trajscore.core.run_sums import run_sums
from trajscore.core.statistics import MeanOfRuns, OfTies, Statistic, all_at_once
from trajscore.core.ties import group_ties
from trajscore.core.type_aliases import FloatArray, IntArray
from trajscore.core.weighted_steps import WeightedSteps, weighted_steps
from trajscore.core.weights import StepWeights
from trajscore.metrics._decomposition import recalibrated_sums
from trajscore.metrics._step_calibration import step_calibration_statistics
from trajscore.metrics.run_metrics import CollapsedRuns, statistics_of
from trajscore.report._data import (
    ALIVE,
    ALIVE_END,
    AS_GIVEN,
    BASE_RATE,
    CONSTANT,
    RECALIBRATED,
    REFERENCES,
    RUN_METRICS,
    STEP_ERRORS,
    Options,
)
from trajscore.report._rows import Row, base_rate
from trajscore.report._runs import Coverage

Metrics = Mapping[str, Statistic]
Statistics = Callable[[FloatArray], FloatArray]
Known = TypeVar("Known")


def row_metrics(row: Row, options: Options, steps: WeightedSteps | None = None) -> Metrics:
    """Return all metrics of a row; `steps` may come from other forecasts of these runs."""
    labels, rows = row.runs.labels, row.runs.rows
    confidence = _confidence_of(row, options)
    collapsed = CollapsedRuns(confidence, labels, rows=rows)
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
        statistic = score_of(row, score, options.weights)
        divisor = statistic.divisor if divisor is None else divisor
        metrics[name] = replace(statistic, rows=rows, divisor=divisor)
    if row.predictor in (ALIVE, ALIVE_END):  # which nobody recalibrates
        return metrics
    if steps is None:
        steps = weighted_steps(labels, row.traces, options.weights)
    else:
        steps = steps.of(row.traces)
    errors = [
        *step_calibration_statistics(steps, rows=rows),
        *step_calibration_statistics(steps, by_part=True, rows=rows),
    ]
    metrics |= zip(STEP_ERRORS, errors, strict=True)
    # the recalibration stays what it is: to first order the best one gains nothing by moving
    leading = metrics[options.score_names[0]]
    assert isinstance(leading, MeanOfRuns)
    best = recalibrated_sums(steps, options.scores[0]).total
    other = None if leading.other is None else best - leading.other
    gained = best - leading.samples
    metrics[options.miscalibration] = MeanOfRuns(gained, rows, other, leading.divisor)
    return metrics


def _confidence_of(row: Row, options: Options) -> FloatArray:
    """Return one number a run: the collapsed trace, or the best constant."""
    if row.rate is not None:
        return np.full(len(row.runs), row.rate)
    return collapse(row.traces, options.phi, options.weights)


def score_of(row: Row, score: Any, weights: StepWeights) -> MeanOfRuns:
    """Return the score of a row's runs, and what it were, had each ended the other way."""
    sums = run_sums(row.runs.labels, row.traces, score, weights)
    other = run_sums(opposite(row.runs.labels), row.traces, score, weights)
    return MeanOfRuns(sums.total, None, other.total, sums.divisor)


class References(Generic[Known]):
    """What is `known` of the metrics of the base rate and the alive rates, on the same runs."""

    def __init__(
        self, rows: list[Row], options: Options, known: Callable[[Metrics, int], Known]
    ) -> None:
        place = {row.key: row for row in rows}
        constant = place[BASE_RATE, CONSTANT]
        alive = [place[name, AS_GIVEN] for name in (ALIVE, ALIVE_END)]
        self._options, self._known = options, known
        self._steps: dict[int, WeightedSteps] = {}
        self._base_rates: dict[int, Known] = {}
        self._alive: dict[int, list[Known]] = {}
        for runs, row in {id(row.runs): (row.runs, row) for row in rows}.values():
            same = constant
            if runs is not constant.runs:
                same = base_rate(row.traces, runs, options.weights)
            steps = weighted_steps(runs.labels, same.traces, options.weights)
            self._steps[id(runs)] = steps
            self._base_rates[id(runs)] = known(row_metrics(same, options, steps), len(runs))
            held_against = (*options.score_names, "AUROC")
            of_steps = [row_metrics(_on(runs, row), options) for row in alive]
            self._alive[id(runs)] = [
                known({name: metrics[name] for name in held_against}, len(runs))
                for metrics in of_steps
            ]

    def of(self, rows: list[Row]) -> Iterator[list[Known]]:
        """Yield what is known of each row and of its references, as in `LEVELS`."""
        nothing, raw = self._known({}, 1), None
        for row in rows:
            # the same object, so that the base rate is above itself by exactly nothing
            own = constant = self._base_rates[id(row.runs)]
            if row.predictor != BASE_RATE:
                metrics = row_metrics(row, self._options, self._steps[id(row.runs)])
                own = self._known(metrics, len(row.runs))
            is_reference = row.predictor in REFERENCES
            alive = [nothing] * 2 if is_reference else self._alive[id(row.runs)]
            before = raw if row.form == RECALIBRATED and not is_reference and raw else nothing
            yield [own, constant, *alive, before]
            raw = own if row.form == AS_GIVEN else None


def _on(runs: Coverage, reference: Row) -> Row:
    """Take a reference, which covers all runs that count, on some of them."""
    if runs.rows is None:
        return reference
    return replace(reference, traces=reference.traces[runs.rows], runs=runs)


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
