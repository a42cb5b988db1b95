"""The rows of the report and their metrics: predictors as given or recalibrated, references."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from typing import Any

import numpy as np
import pandas as pd

from trajscore.calibration import AliveRate
from trajscore.calibration.calibrators import CalibratorMaker
from trajscore.calibration.cross_fit import cross_fit_sample, folds_of
from trajscore.core import ranking
from trajscore.core.array import TrajectoryArray
from trajscore.core.checks import check_trajectories, check_values
from trajscore.core.outcomes import FAILURE, opposite
from trajscore.core.run_sums import collapse, run_sums, weighted_steps
from trajscore.core.sample import Sample
from trajscore.core.statistics import MeanOfRuns, OfTies, Statistic
from trajscore.core.ties import group_ties, only_value
from trajscore.core.type_aliases import BoolArray, FloatArray
from trajscore.core.values import are_probabilities, outside_unit
from trajscore.core.weights import StepWeights
from trajscore.evaluation.options import (
    ALIVE,
    ALIVE_END,
    AS_GIVEN,
    BASE_RATE,
    CONSTANT,
    RECALIBRATED,
    RUN_METRICS,
    STEP_ERRORS,
    Note,
    Options,
)
from trajscore.evaluation.runs import EvaluatedRuns
from trajscore.metrics.decomposition import recalibrated_sums
from trajscore.metrics.run_metrics import CollapsedRuns, statistics_of
from trajscore.metrics.steps import step_calibration_statistics

Metrics = Mapping[str, Statistic]


@dataclass(frozen=True)
class Row:
    """A predictor in one form, on the runs that count or a group of them."""

    predictor: str
    form: str  # as given, recalibrated or constant
    traces: TrajectoryArray
    runs: EvaluatedRuns
    is_probability: bool
    calibrator: Any = None  # what made a recalibrated row
    rate: float | None = None  # of the base rate: the best constant for one number a run

    @property
    def key(self) -> tuple[str, str]:
        """Its place in the tables."""
        return self.predictor, self.form

    def score(self, score: Any, weights: StepWeights) -> MeanOfRuns:
        """Return a score of its runs, and what it were, had each ended the other way."""
        labels = self.runs.labels
        sums = run_sums(labels, self.traces, score, weights)
        other = run_sums(opposite(labels), self.traces, score, weights)
        return MeanOfRuns(sums.total, None, other.total, sums.divisor)

    @property
    def outside(self) -> BoolArray:
        """Whether each value lies outside [0, 1] by more than rounding."""
        return np.asarray(outside_unit(self.traces.cells))

    @property
    def only_value(self) -> float:
        """The value at every step of every run; NaN where values vary."""
        return only_value(self.traces.cells)


@dataclass(frozen=True)
class Rows:
    """All rows of a report, of the same runs: predictors in each form, and the references."""

    predictors: list[Row]
    base: Row

    @cached_property
    def counting(self) -> list[Row]:
        """What counting steps is worth, out of fold: the end of a run not known, and known."""
        runs = self.runs
        trace = self.base.traces
        # the end of some runs alone would tell which outcomes are missing, and count as failures
        trace = trace.with_ended(trace.ended | (runs.labels == FAILURE))
        return [
            Row(name, AS_GIVEN, out_of_fold(forecaster, trace, runs), runs, is_probability=True)
            for name, forecaster in ((ALIVE, AliveRate()), (ALIVE_END, AliveRate(end="step")))
        ]

    def __iter__(self) -> Iterator[Row]:
        return iter((*self.predictors, self.base, *self.counting))

    @property
    def runs(self) -> EvaluatedRuns:
        """The runs that all rows are of."""
        return self.base.runs


def make_rows(
    runs: EvaluatedRuns, maker: CalibratorMaker | None, options: Options, notes: list[Note]
) -> Rows:
    """Return the rows of all predictors, whose runs have no missing value, and of references."""
    base = base_rate(next(iter(runs.traces.values())), runs, options.weights)
    as_given: list[Row] = []
    for name, trace in runs.traces.items():
        is_probability = are_probabilities(trace.cells)
        # what rounding puts outside becomes 0 or 1
        X = check_trajectories(trace, probabilities=is_probability)
        as_given.append(Row(name, AS_GIVEN, X, runs, is_probability))
    if maker is None:
        return Rows(as_given, base)
    rows: list[Row] = []
    jobs = options.work.share(lambda row: recalibrated(row, maker(row.is_probability)), as_given)
    for row, (others, row_notes) in zip(as_given, jobs, strict=True):
        rows += [row, *others]
        notes += row_notes
    return Rows(rows, base)


def base_rate(trace: TrajectoryArray, runs: EvaluatedRuns, weights: StepWeights) -> Row:
    """Return the best constant: the success rate over forecasts, and over runs."""
    constant = trace.with_cells(np.full(len(trace.cells), weights.of(trace).rate(runs.labels)))
    rate = float(runs.labels.mean())
    return Row(BASE_RATE, CONSTANT, constant, runs, is_probability=True, rate=rate)


def n_alive_folds(trace: TrajectoryArray, runs: EvaluatedRuns) -> int:
    """Return the number of folds in which the alive rate is learnt: 5 or 2.

    0 where two folds would need more runs of one outcome, or more clusters: then it is learnt from
    the same runs.
    """
    is_success = runs.labels >= 0.5
    n_distinct = max(len(pd.unique(trace.ids[rows])) for rows in (is_success, ~is_success))
    most = min(n_distinct, runs.units.n_units)
    return next((n_folds for n_folds in (5, 2) if n_folds <= most), 0)


def out_of_fold(
    forecaster: AliveRate, trace: TrajectoryArray, runs: EvaluatedRuns
) -> TrajectoryArray:
    """Return the forecasts of each run by a fit on other runs, if there are enough for folds."""
    n_folds = n_alive_folds(trace, runs)
    if not n_folds:
        return trace.with_cells(forecaster.fit(trace, runs.labels).transform(trace).cells)
    sample = Sample({"": trace}, runs.labels, np.ones(len(runs)), runs.groups)
    with warnings.catch_warnings():  # of an outcome that some folds do not have
        warnings.filterwarnings("ignore", "The least populated class", UserWarning)
        return cross_fit_sample(forecaster, sample, n_folds)


# -------------------------------------------------------------------- calibration


def recalibrated(raw: Row, calibrator: Any) -> tuple[list[Row], list[Note]]:
    """Return the row of out-of-fold traces; where there can be none, a note says why."""
    runs = raw.runs
    # by the labels that everything is scored with, whatever a calibrator makes of -1
    sample = Sample({"": raw.traces}, runs.labels, np.ones(len(runs)), runs.groups)
    try:
        traces = cross_fit_sample(calibrator, sample)
        check_values(traces, probabilities=True)
    except ValueError as error:
        if isinstance(error, TypeError):  # scikit-learn's error of a wrong parameter is both
            raise
        return [], [Note(raw.predictor, "text", {"text": f"not recalibrated; {error}"})]
    notes = []
    maps = getattr(calibrator, "maps_", {})
    constant = [name for name, map_ in maps.items() if getattr(map_, "fallback", False)]
    if constant and np.isnan(raw.only_value):
        notes.append(Note(raw.predictor, "constant maps", {"maps": constant}))
    return [Row(raw.predictor, RECALIBRATED, traces, runs, True, calibrator)], notes


# -------------------------------------------------------------------- metrics


def row_metrics(row: Row, options: Options) -> Metrics:
    """Return all metrics of a row."""
    labels = row.runs.labels
    counts_steps = row.predictor in (ALIVE, ALIVE_END)
    metrics: dict[str, Statistic] = {}
    if row.is_probability:
        scores = [row.score(score, options.weights) for score in options.scores]
        shared = [replace(score, divisor=scores[0].divisor) for score in scores]
        metrics |= zip(options.score_names, shared, strict=True)
    confidence = np.full(len(labels), row.rate)
    if row.rate is None:
        confidence = collapse(row.traces, options.settings.phi, options.weights)
    collapsed = CollapsedRuns(confidence, labels)
    of_runs = statistics_of(RUN_METRICS, collapsed, is_probability=row.is_probability)
    if counts_steps:
        ties = _ties_of_counting(row, confidence)
        for name, statistic in of_runs.items():
            if isinstance(statistic, OfTies):
                of_runs[name] = replace(statistic, ties=ties)
    metrics |= of_runs
    if counts_steps or not row.is_probability:  # nobody recalibrates what counting steps gives
        return metrics
    steps = weighted_steps(labels, row.traces, options.weights)
    errors = step_calibration_statistics(steps), step_calibration_statistics(steps, by_part=True)
    metrics |= zip(STEP_ERRORS, chain(*errors), strict=True)
    # the recalibration stays what it is: to first order the best one gains nothing by moving
    leading = scores[0]
    best = recalibrated_sums(steps, options.scores[0]).total
    other = None if leading.other is None else best - leading.other
    gained = MeanOfRuns(best - leading.samples, None, other, leading.divisor)
    return metrics | {options.miscalibration: gained}


def _ties_of_counting(alive: Row, confidence: FloatArray) -> ranking.TieGroups:
    """Rank runs by the alive rate within folds; where that is worse than chance, by nothing."""
    labels = alive.runs.labels
    fold = folds_of(alive.traces)
    ranks = pd.Series(group_ties(confidence, fold)[1]).groupby(fold).rank(pct=True)
    ties = ranking.TieGroups(ranks.to_numpy(), labels)
    if not ranking.auroc(*ties.sums(np.ones(len(labels)))) >= 0.5:
        ties = ranking.TieGroups(np.zeros(len(labels)), labels)
    return ties
