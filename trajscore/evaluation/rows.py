"""The rows of the report and their metrics: predictors as given or recalibrated, references."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from trajscore.calibration import AliveRate
from trajscore.calibration.calibrators import CalibratorMaker
from trajscore.calibration.cross_fit import cross_fit_sample, folds_of
from trajscore.calibration.fixed_step import (
    auroc_interval,
    has_both,
    length_bins,
    runs_with_a_partner,
)
from trajscore.core.array import TrajectoryArray
from trajscore.core.checks import check_values
from trajscore.core.ids import pair_codes
from trajscore.core.outcomes import FAILURE
from trajscore.core.ranking import TieGroups, auroc, auroc_within
from trajscore.core.statistics import MeanOfRuns, OfTies, Statistic
from trajscore.core.ties import group_ties, only_value
from trajscore.core.values import BoolArray, FloatArray, IntArray, outside_unit
from trajscore.core.weights import StepWeights, WeightedSteps, collapse, run_sums
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
    RowKey,
)
from trajscore.evaluation.runs import EvaluatedRuns
from trajscore.inference.mean_intervals import interval_of
from trajscore.metrics.run_metrics import CollapsedRuns, statistics_of
from trajscore.metrics.steps import recalibrated_sums, step_calibration_statistic

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
    signals: tuple[str, ...] = ()  # what it combines, if it does

    @property
    def key(self) -> RowKey:
        """Its place in the tables."""
        return self.predictor, self.form

    def score(self, score: Any, weights: StepWeights) -> MeanOfRuns:
        """Return a score of its runs, and what it were, had each ended the other way."""
        sums = run_sums(self.runs.labels, self.traces, score, weights)
        other = run_sums(self.runs.opposite_labels, self.traces, score, weights)
        return MeanOfRuns(sums.total, other.total, sums.divisor)

    def overconfidence(self, weights: StepWeights, part: Any = True) -> MeanOfRuns:
        """Return how much more success all steps, or a part, forecast than happens.

        With it, what that were, had each run ended the other way.
        """
        of_runs = weights.of(self.traces)
        cells = self.traces.cells
        divisor = of_runs.sums(np.ones(len(cells)) * part)
        forecast = of_runs.sums(cells * part)
        labels = self.runs.labels
        other = forecast - self.runs.opposite_labels * divisor
        return MeanOfRuns(forecast - labels * divisor, other, divisor)

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
    runs: EvaluatedRuns
    weights: StepWeights

    @cached_property
    def base(self) -> Row:
        """The best constant, the success rate over forecasts."""
        trace = self.runs.X
        rate = self.weights.of(trace).rate(self.runs.labels)
        constant = trace.with_cells(np.full(len(trace.cells), rate))
        return Row(BASE_RATE, CONSTANT, constant, self.runs, is_probability=True)

    @cached_property
    def n_alive_folds(self) -> int:
        """Number of folds in which the alive rate is learnt: 5 or 2.

        0 where two folds would need more runs of one outcome, or more clusters: then it is learnt
        from the same runs.
        """
        ids = self.base.traces.ids
        is_success = self.runs.labels >= 0.5
        n_distinct = max(len(pd.unique(ids[rows])) for rows in (is_success, ~is_success))
        most = min(n_distinct, self.runs.units.n_units)
        return next((n_folds for n_folds in (5, 2) if n_folds <= most), 0)

    @cached_property
    def counting(self) -> list[Row]:
        """What counting steps is worth, out of fold: the end of a run not known, and known."""
        runs = self.runs
        trace = self.base.traces
        # the end of some runs alone would tell which outcomes are missing, and count as failures
        sample = runs.sample_of(trace.with_ended(trace.ended | (runs.labels == FAILURE)))
        rows = []
        for name, forecaster in ((ALIVE, AliveRate()), (ALIVE_END, AliveRate(end="step"))):
            if self.n_alive_folds:
                with warnings.catch_warnings():  # of an outcome that some folds do not have
                    warnings.filterwarnings("ignore", "The least populated class", UserWarning)
                    traces = cross_fit_sample(forecaster, sample, self.n_alive_folds)
            else:
                fitted = forecaster.fit(sample.X, sample.y)
                traces = sample.X.with_cells(fitted.transform(sample.X).cells)
            rows.append(Row(name, AS_GIVEN, traces, runs, is_probability=True))
        return rows

    def within(self, places: IntArray) -> Rows:
        """Keep the runs of one group, with their own base rate."""
        runs = self.runs.take(places)
        inside = [replace(row, traces=row.traces[places], runs=runs) for row in self.predictors]
        return Rows(inside, runs, self.weights)

    def __iter__(self) -> Iterator[Row]:
        return iter((*self.predictors, self.base, *self.counting))

    @property
    def recalibrated(self) -> dict[str, Row]:
        """The recalibrated row of each predictor that has one."""
        return {row.predictor: row for row in self.predictors if row.form == RECALIBRATED}


def row_index(rows: Iterable[Row]) -> pd.MultiIndex:
    """Return the index of a table of rows."""
    return pd.MultiIndex.from_tuples([row.key for row in rows], names=["predictor", "form"])


def make_rows(
    runs: EvaluatedRuns, maker: CalibratorMaker | None, options: Options, notes: list[Note]
) -> Rows:
    """Return the rows of all predictors, whose runs have no missing value, and of references."""
    as_given: list[Row] = []
    for name, X in runs.traces.items():
        as_given.append(Row(name, AS_GIVEN, X, runs, is_probability=X.is_within_unit()))
    if maker is None:
        return Rows(as_given, runs, options.weights)
    rows: list[Row] = []
    jobs = options.work.share(lambda row: recalibrated(row, maker(row.is_probability)), as_given)
    for of_row, row_notes in jobs:
        rows += of_row
        notes += row_notes
    return Rows(rows, runs, options.weights)


# -------------------------------------------------------------------- calibration


def recalibrated(raw: Row, calibrator: Any) -> tuple[list[Row], list[Note]]:
    """Add the row of out-of-fold traces to one; where there can be none, a note says why."""
    runs = raw.runs
    try:
        # by the labels that everything is scored with, whatever a calibrator makes of -1
        forecasts = cross_fit_sample(calibrator, runs.sample_of(raw.traces))
        traces = check_values(forecasts, probabilities=True)
    except TypeError:  # scikit-learn's error of a wrong parameter is a ValueError, too
        raise
    except ValueError as error:
        return [raw], [Note(raw.predictor, text=f"not recalibrated; {error}")]
    notes = []
    maps = getattr(calibrator, "maps_", {})
    constant = [name for name, map_ in maps.items() if getattr(map_, "fallback", False)]
    if constant and np.isnan(raw.only_value):
        notes.append(Note(raw.predictor, "constant maps", {"maps": constant}))
    return [raw, Row(raw.predictor, RECALIBRATED, traces, runs, True, calibrator)], notes


# -------------------------------------------------------------------- metrics


def row_metrics(row: Row, options: Options) -> Metrics:
    """Return all metrics of a row."""
    labels = row.runs.labels
    counts_steps = row.predictor in (ALIVE, ALIVE_END)
    metrics: dict[str, Statistic] = {}
    if row.is_probability:
        scores = [row.score(score, options.weights) for score in options.scores]
        metrics |= zip(options.score_names, scores, strict=True)
    if row.form == CONSTANT:  # the best one for one number a run
        confidence = np.full(len(labels), labels.mean())
    else:
        confidence = collapse(row.traces, options.settings.phi, options.weights)
    collapsed = CollapsedRuns(confidence, labels, np.ones(len(labels)))
    of_runs = statistics_of(RUN_METRICS, collapsed, is_probability=row.is_probability)
    if counts_steps:
        ties = _ties_of_counting(row, confidence)
        for name, statistic in of_runs.items():
            if isinstance(statistic, OfTies):
                of_runs[name] = replace(statistic, ties=ties)
    metrics |= of_runs
    if counts_steps or not row.is_probability:  # nobody recalibrates what counting steps gives
        return metrics
    steps = WeightedSteps(row.traces, labels, options.weights, np.ones(len(labels)))
    for name, part in STEP_ERRORS.items():
        metrics[name] = step_calibration_statistic(steps, part)
    # the recalibration stays what it is: to first order the best one gains nothing by moving
    leading = scores[0]
    best = recalibrated_sums(steps, options.scores[0]).total
    gained = MeanOfRuns(best - leading.samples, best - leading.other, leading.divisor)
    return metrics | {options.miscalibration: gained}


def _ties_of_counting(alive: Row, confidence: FloatArray) -> TieGroups:
    """Rank runs by the alive rate within folds; where that is worse than chance, by nothing."""
    labels = alive.runs.labels
    fold = folds_of(alive.traces)
    ranks = pd.Series(group_ties(confidence, fold)[1]).groupby(fold).rank(pct=True)
    ties = TieGroups(ranks.to_numpy(), labels)
    if not auroc(*ties.sums(np.ones(len(labels)))) >= 0.5:
        ties = TieGroups(np.zeros(len(labels)), labels)
    return ties


# -------------------------------------------------------------------- among runs of equal length


def among_equals(row: Row, options: Options) -> tuple[Any, ...]:
    """Return runs, AUROC over pairs of equal length, and what it is above that of length there."""
    level = options.settings.confidence_level
    confidence = collapse(row.traces, options.settings.phi, options.weights)
    lengths = row.traces.lengths.astype(float)
    # with the sign with which it ranks all runs better
    area, _ = auroc_within(lengths, row.runs.labels, np.zeros(len(lengths), dtype=np.int64))
    if area <= 0.5:
        lengths = -lengths
    stratum = pair_codes(length_bins(row.traces.lengths), folds_of(row.traces))
    rows = runs_with_a_partner(row.runs.labels, stratum)
    runs = row.runs.take(rows)
    if not has_both(runs.labels):
        return len(rows), *[np.nan] * 6
    of_runs = runs.labels, stratum[rows]
    estimate, influence = auroc_within(confidence[rows], *of_runs)
    # within a bin of lengths something may be left of them
    of_length, influence_of_length = auroc_within(lengths[rows], *of_runs)
    return (
        len(rows),
        *auroc_interval(confidence[rows], *of_runs, runs.groups, level),
        *interval_of(estimate - of_length, influence - influence_of_length, runs.groups, level),
    )
