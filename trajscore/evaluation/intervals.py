"""Intervals of every metric of every row, and of what it is above references on the same runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from trajscore.core.policy import MIN_RUNS_FOR_DIFFERENCE
from trajscore.core.statistics import CalibrationError, MeanOfRuns, all_at_once
from trajscore.core.ties import ROUNDING
from trajscore.core.values import AnyArray, FloatArray
from trajscore.core.weights import MANY
from trajscore.evaluation.options import (
    ALIVE,
    ALIVE_END,
    AS_GIVEN,
    BASE_RATE,
    BOOTSTRAP,
    BOUNDS,
    CONSTANT,
    INFLUENCE,
    LEVELS,
    MARGIN,
    OVER_ALIVE,
    OVER_ALIVE_END,
    RANK_METRICS,
    RECALIBRATED,
    REFERENCES,
    VALUE,
    Options,
)
from trajscore.evaluation.rows import Metrics, Row, Rows, row_metrics
from trajscore.inference.intervals import absolute_interval, with_unseen
from trajscore.inference.mean_intervals import (
    bootstrap_units,
    by_bootstrap,
    by_influence,
    is_rare,
    n_of_rarer_outcome,
)


def interval_table(rows: Rows, options: Options) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return every row and metric with its differences and intervals, and how these were made.

    The references are the base rate, the alive rate (what counting steps is worth, the end of a run
    known or not), and the predictor as it was given.
    """
    settings = options.settings
    every = list(rows)
    n_runs = len(rows.runs)
    cells = _Cells(every, options)
    estimates: dict[int, Estimates] = {}  # by row, as long as needed
    metrics: dict[int, Metrics] = {}

    def judge(places: list[int]) -> None:
        """Fill in the rows of a predictor; keep what is drawn, and what others are held against."""
        for place in places:
            metrics[place] = row_metrics(every[place], options)
            estimates[place] = _estimates_of(metrics[place], n_runs)
            cells.fill(place, estimates, metrics)
        if every[places[0]].predictor in REFERENCES:
            return
        marked = cells.marked(places)
        for place in places:
            del estimates[place]
            of_row = metrics[place].items()
            metrics[place] = {name: statistic for name, statistic in of_row if name in marked}

    by_predictor = groupby(range(len(every)), key=lambda place: every[place].predictor)
    jobs = {predictor: list(places) for predictor, places in by_predictor}
    for name in REFERENCES:
        judge(jobs.pop(name))
    work = options.work
    one_by_one = work
    # memory would not hold the metrics of two predictors with very many steps
    if max(len(row.traces.cells) for row in every) > MANY:
        one_by_one = replace(work, n_jobs=1)
    list(one_by_one.share(judge, list(jobs.values())))
    resampled = [place for place in range(len(every)) if cells.marked([place])]
    if resampled:
        marked = cells.marked(resampled)
        involved = {at for place in resampled for at in cells.references[place].values()}
        statistics = {
            (at, name): statistic
            for at in involved
            for name, statistic in metrics[at].items()
            if name in marked
        }
        of_runs = all_at_once(statistics)
        replicates = bootstrap_units(
            lambda counts: of_runs(cells.units.to_runs(counts)),
            cells.units,
            n_resamples=settings.n_resamples,
            random_state=settings.random_state,
            n_jobs=work.n_jobs,
            progress=work.progress,
        )
        drawn = np.full((len(replicates), len(every), len(cells.names)), np.nan)
        for (at, name), values in zip(statistics, replicates.T, strict=True):
            drawn[:, at, cells.names.index(name)] = values
        for place in resampled:
            cells.resample(place, drawn)
    return cells.tables()


class _Estimate(NamedTuple):
    """Value of a metric, or of a difference of two; an error in bins has NaN for the others."""

    value: float
    influence: Any = np.nan  # of each run
    change: Any = np.nan  # of a mean, had each run ended the other way

    def minus(self, other: _Estimate) -> _Estimate:
        """Return the estimate of the difference."""
        return _Estimate(*(ours - theirs for ours, theirs in zip(self, other, strict=True)))


Estimates = dict[str, _Estimate]


def _estimates_of(metrics: Metrics, n_runs: int) -> Estimates:
    alike = np.ones(n_runs)
    estimates = {}
    for (name, statistic), value in zip(metrics.items(), all_at_once(metrics)(alike), strict=True):
        estimate = _Estimate(value)
        if not isinstance(statistic, CalibrationError):
            influence = np.nan_to_num(statistic.influence(alike), copy=False)
            estimate = estimate._replace(influence=influence)
        if isinstance(statistic, MeanOfRuns):
            estimate = estimate._replace(change=statistic.change(alike))
        estimates[name] = estimate
    return estimates


class _Cells:
    """Estimates with their intervals, of shape (n_levels, n_rows, n_metrics)."""

    def __init__(self, rows: list[Row], options: Options) -> None:
        self.rows = rows
        self.options = options
        self.units = rows[0].runs.units
        self.settings = options.settings
        self.names = options.metrics
        labels = rows[0].runs.labels
        self.is_rare = is_rare(labels)
        n_rarer = n_of_rarer_outcome(labels.sum(), len(labels))
        self.has_differences = n_rarer >= MIN_RUNS_FOR_DIFFERENCE
        shape = len(LEVELS), len(rows), len(self.names)
        self.estimate, self.low, self.high, self.skewness = np.full((4, *shape), np.nan)
        self.method: AnyArray = np.full(shape, "", dtype=object)
        # by level, the row that each row is held against; of its own values, itself
        places = {row.key: place for place, row in enumerate(rows)}
        self.references: list[dict[int, int]] = []
        for place, row in enumerate(rows):
            references = {0: place, 1: places[BASE_RATE, CONSTANT]}
            if row.predictor not in REFERENCES:
                references[2] = places[ALIVE, AS_GIVEN]
                references[3] = places[ALIVE_END, AS_GIVEN]
            if row.form == RECALIBRATED and not row.signals:
                references[4] = places[row.predictor, AS_GIVEN]
            self.references.append(references)

    def fill(
        self, place: int, estimates: Mapping[int, Estimates], metrics: Mapping[int, Metrics]
    ) -> None:
        """Fill in the intervals of a row that need no replicates, and mark the others."""
        ours = estimates[place]
        for level, at in self.references[place].items():
            numbers = ours
            if level:
                names = self.names
                if LEVELS[level] in (OVER_ALIVE, OVER_ALIVE_END):
                    names = [*self.options.score_names, "AUROC"]
                theirs = estimates[at]
                shared = [name for name in names if name in ours and name in theirs]
                numbers = {name: ours[name].minus(theirs[name]) for name in shared}
            self._fill_means(level, place, numbers)
        self._fill_errors(place, metrics)

    def _fill_means(self, level: int, place: int, numbers: Estimates) -> None:
        """Fill in the intervals of what a row is, or is above a reference, by influences."""
        units = self.units
        settings = self.settings
        estimate = self.estimate[level, place]
        low = self.low[level, place]
        high = self.high[level, place]
        method = self.method[level, place]
        for name, each in numbers.items():
            estimate[self.names.index(name)] = each.value
        names = [
            name
            for name, each in numbers.items()
            if np.ndim(each.influence) and not np.isnan(each.value)
        ]
        columns = [self.names.index(name) for name in names]
        intervals = by_influence(
            estimate[columns],
            np.stack([numbers[name].influence for name in names]).T,
            units,
            settings.confidence_level,
            on_logit=[level == 0 and name in RANK_METRICS for name in names],
        )
        holds = intervals.holds & (not self.is_rare)
        if settings.intervals != "auto":
            holds = np.array(settings.intervals == INFLUENCE)
        low[columns] = intervals.low
        high[columns] = intervals.high
        self.skewness[level, place, columns] = intervals.skewness
        method[columns] = np.where(holds, INFLUENCE, BOOTSTRAP)
        means = [name for name in names if np.ndim(numbers[name].change)]
        columns = [self.names.index(name) for name in means]
        low[columns], high[columns] = with_unseen(
            low[columns],
            high[columns],
            estimate[columns],
            [numbers[name].change for name in means],
            units,
            settings.confidence_level,
        )
        column = self.names.index(self.options.miscalibration)
        # the interval starts at zero: in sample it is too large, by how much is not known
        if LEVELS[level] in (VALUE, MARGIN) and not np.isnan(estimate[column]):
            low[column] = 0.0
            method[column] = BOUNDS

    def _fill_errors(self, place: int, metrics: Mapping[int, Metrics]) -> None:
        """Fill in the bounds of a row's calibration errors, and of what they are above others."""
        alike = np.ones(len(self.rows[place].runs))
        for name, error in metrics[place].items():
            if not isinstance(error, CalibrationError):
                continue
            bins = error.bins(alike)
            column = self.names.index(name)
            values = self.estimate[0, :, column]
            for level, at in self.references[place].items():
                cell = level, place, column
                if np.isnan(self.estimate[cell]):
                    continue
                ends = (0.0, 0.0)
                if values[place] > ROUNDING:  # not calibrated by construction
                    other = None
                    theirs = metrics[at][name]
                    if level and isinstance(theirs, CalibrationError) and values[at] > ROUNDING:
                        other = theirs.bins(alike)
                    ends = absolute_interval(
                        bins, other, self.units, self.settings.confidence_level
                    )
                self.low[cell], self.high[cell] = ends
                self.method[cell] = BOUNDS

    def marked(self, places: Sequence[int]) -> list[str]:
        """Return the metrics of rows some of whose intervals are to be made by bootstrap."""
        of_names = (self.method[:, places] == BOOTSTRAP).any(axis=(0, 1))
        return [self.names[column] for column in np.flatnonzero(of_names)]

    def resample(self, place: int, drawn: FloatArray) -> None:
        """Fill in a row's marked intervals by replicates (n_replicates, n_rows, n_metrics)."""
        replicates = np.repeat(drawn[:, [place]], len(LEVELS), axis=1)
        for of_level, at in self.references[place].items():
            if of_level:
                replicates[:, of_level] -= drawn[:, at]
        marked = self.method[:, place] == BOOTSTRAP
        estimate = self.estimate[:, place][marked]
        skewness = self.skewness[:, place][marked]
        level = self.units.expanded_level(self.settings.confidence_level)
        low, high = by_bootstrap(replicates[:, marked], estimate, skewness, level)
        # never shorter than by influences: few runs hide what is rare
        self.low[:, place][marked] = np.fmin(self.low[:, place][marked], low)
        self.high[:, place][marked] = np.fmax(self.high[:, place][marked], high)

    def tables(self) -> tuple[pd.DataFrame, pd.DataFrame]:
        """Return the intervals, and how each was made, by predictor, form and metric."""
        index = pd.MultiIndex.from_tuples(
            [(*row.key, name) for row in self.rows for name in self.names],
            names=["predictor", "form", "metric"],
        )
        # they would hold too seldom: of differences of very few runs of an outcome, and of
        # ECUAS_128, which the few forecasts near 0 decide
        withheld = self.method != ""
        withheld[0] = False
        if self.has_differences:
            withheld[1:] &= np.array(self.names) == "ECUAS_128"
        self.low[withheld] = self.high[withheld] = np.nan
        numbers = np.stack([self.estimate, self.low, self.high], axis=1)
        columns = np.concatenate(LEVELS)
        table = pd.DataFrame(numbers.reshape(len(columns), -1).T, index, columns)
        methods = pd.DataFrame(self.method.reshape(len(LEVELS), -1).T, index, columns[::3])
        exists = table["value"].notna()
        return table[exists], methods[exists]
