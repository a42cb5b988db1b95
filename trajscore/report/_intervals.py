"""Intervals of every metric of every row, and of what it is above references on the same runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from trajscore.core.statistics import CalibrationError, MeanOfRuns, all_at_once
from trajscore.core.ties import ROUNDING
from trajscore.core.type_aliases import FloatArray
from trajscore.core.weighted_steps import MANY, weighted_steps
from trajscore.inference._bootstrap import bootstrap_many_means, bootstrap_units, check_resamples
from trajscore.inference.absolute_errors import Parts, absolute_interval
from trajscore.inference.mean_intervals import (
    FEWEST_OF_DIFFERENCES,
    by_bootstrap,
    by_influence,
    is_rare,
    n_of_rarer_outcome,
)
from trajscore.inference.units import Units, units_of
from trajscore.inference.unseen_losses import unseen_reach
from trajscore.report._data import (
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
    RANK_METRICS,
    REFERENCES,
    VALUE,
    Options,
)
from trajscore.report._rows import Metrics, Row, row_metrics

# With more runs, bootstrap means are those of `bootstrap_many_means`.
_MANY_RUNS = 1 << 16


def interval_table(rows: list[Row], options: Options) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return every row and metric with its differences and intervals, and how these were made.

    The references are the base rate, the alive rate (what counting steps is worth, the end of a run
    known or not), and the predictor as it was given.
    """
    draws, names = options.draws, options.metrics
    check_resamples(draws.n_resamples)
    by_key = {row.key: row for row in rows}
    base = by_key[BASE_RATE, CONSTANT]
    runs, held_against = base.runs, (*options.score_names, "AUROC")
    steps = weighted_steps(runs.labels, base.traces, options.weights)
    of_base = row_metrics(base, options, steps)
    of_alive = [row_metrics(by_key[name, AS_GIVEN], options) for name in (ALIVE, ALIVE_END)]
    units = units_of(runs.groups, len(runs))
    cells = _Cells(rows, options, units)
    nothing, constant = (_Known(metrics, len(runs), names) for metrics in ({}, of_base))
    alive = [
        _Known({name: metrics[name] for name in held_against}, len(runs), names)
        for metrics in of_alive
    ]

    def judge(places: list[int]) -> dict[int, list[Metrics]]:
        """Fill in the rows of a predictor; return the metrics of which replicates are needed."""
        needed, before = {}, nothing
        for place in places:
            # the same object, so that the base rate is above itself by exactly nothing
            own = constant
            if (row := rows[place]) is not base:
                own = _Known(row_metrics(row, options, steps), len(runs), names)
            others = [nothing] * 2 if row.predictor in REFERENCES else alive
            levels = [own, constant, *others, before]
            cells.fill(place, levels)
            if marked := cells.marked(place):
                needed[place] = [known.keep(marked) for known in levels]
            before = own
        return needed

    needed: dict[int, list[Metrics]] = {}
    # memory would not hold the metrics of two predictors with very many steps
    is_large = max(len(row.traces.cells) for row in rows) > MANY
    by_predictor = groupby(range(len(rows)), key=lambda place: rows[place].predictor)
    jobs = [list(places) for _, places in by_predictor]
    work = replace(options.work, n_jobs=1) if is_large else options.work
    for more in work.share(judge, jobs):
        needed |= more
    needed = {
        place: levels
        for place, levels in needed.items()
        if not _drawn_quickly(cells, place, levels)
    }
    if needed:
        statistic = _as_one_function(list(needed.values()), names)
        replicates = bootstrap_units(
            lambda counts: statistic(units.to_runs(counts)),
            units,
            n_resamples=draws.n_resamples,
            random_state=draws.random_state,
            n_jobs=options.work.n_jobs,
            progress=options.work.progress,
        )
        expanded = units.expanded_level(len(runs), draws.confidence_level)
        for place, drawn in zip(needed, np.moveaxis(replicates, 1, 0), strict=True):
            cells.resample(place, drawn, expanded)
    return cells.tables()


def _drawn_quickly(cells: _Cells, place: int, levels: Sequence[Metrics]) -> bool:
    """Fill in a row's marked intervals, if all are of means over very many runs, no clusters."""
    runs = cells.rows[place].runs
    if runs.groups is not None or len(runs) <= _MANY_RUNS:
        return False
    # what a row is worth must not depend on what is drawn for others
    marked, draws, at, columns = cells.marked(place), cells.draws, [], []
    for level, metrics in enumerate(levels):
        for name in marked:
            if (statistic := metrics.get(name)) is None:
                continue
            if not isinstance(statistic, MeanOfRuns):
                return False
            at.append((level, cells.names.index(name)))
            columns.append(statistic.pseudo_values())
    drawn = np.full((draws.n_resamples, len(levels), len(cells.names)), np.nan)
    level_of, column_of = np.transpose(at)
    drawn[:, level_of, column_of] = bootstrap_many_means(
        np.stack(columns, axis=1), n_resamples=draws.n_resamples, random_state=draws.random_state
    )
    cells.resample(place, drawn, draws.confidence_level)
    return True


def _as_one_function(
    rows: Sequence[Sequence[Metrics]], names: list[str]
) -> Callable[[FloatArray], FloatArray]:
    """Compute the metrics of each row and reference once, and put them wherever they belong.

    The function maps counts of shape (n_replicates, n_runs) to (n_replicates, n_rows, n_levels,
    n_metrics); NaN where there is no such metric.
    """
    distinct = {
        id(metrics): {name: metrics[name] for name in names if name in metrics}
        for levels in rows
        for metrics in levels
    }
    # row by row: what a row is worth must not depend, in its last digit, on the other rows
    values_of = {key: all_at_once(metrics) for key, metrics in distinct.items()}

    def table(counts: FloatArray) -> FloatArray:
        filled = {key: np.full((len(counts), len(names)), np.nan) for key in distinct}
        for key, metrics in distinct.items():
            filled[key][:, [names.index(name) for name in metrics]] = values_of[key](counts)
        of_rows = [np.stack([filled[id(each)] for each in levels], axis=1) for levels in rows]
        return np.stack(of_rows, axis=1)

    return table


class _Known:
    """Values of the metrics of a row, influences of its runs on them, its calibration errors."""

    def __init__(self, metrics: Metrics, n_runs: int, names: list[str]) -> None:
        self.values = np.full(len(names), np.nan)
        places = [names.index(name) for name in metrics]
        self.values[places] = all_at_once(metrics)(np.ones(n_runs))
        self.influence: dict[str, FloatArray] = {}
        self.errors: dict[str, CalibrationError] = {}
        self.change: dict[str, FloatArray] = {}
        self._n_runs, self._metrics, self._kept = n_runs, metrics, dict[str, Any]()
        for name, statistic in metrics.items():
            if isinstance(statistic, CalibrationError):
                self.errors[name] = statistic
                continue
            self.influence[name] = np.nan_to_num(statistic.influence(n_runs), copy=False)
            if isinstance(statistic, MeanOfRuns):
                self.change[name] = statistic.change(n_runs)

    def parts(self, name: str) -> Parts:
        """Return the gaps of a calibration error, and the influences on them, which is as much."""
        return Parts(*self.errors[name].parts(self._n_runs))

    def keep(self, names: Iterable[str]) -> Metrics:
        """Keep these metrics (where there are) until replicates are drawn, with earlier ones."""
        self._kept |= {name: self._metrics[name] for name in names if name in self._metrics}
        return self._kept


class _Cells:
    """Estimates with their intervals, of shape (n_levels, n_rows, n_metrics)."""

    def __init__(self, rows: list[Row], options: Options, units: Units) -> None:
        self.rows, self.options, self.units = rows, options, units
        self.draws, self.names = options.draws, options.metrics
        n_runs, n_success = len(rows[0].runs), rows[0].runs.labels.sum()
        self.is_rare = is_rare(rows[0].runs.labels)
        self.has_differences = n_of_rarer_outcome(n_success, n_runs) >= FEWEST_OF_DIFFERENCES
        self.shape = len(LEVELS), len(rows), len(self.names)
        self.estimate, self.low, self.high, self.skewness = np.full((4, *self.shape), np.nan)
        self.method: NDArray[Any] = np.full(self.shape, "", dtype=object)
        # how far below and above an estimate the truth may lie by what has not happened yet
        self.unseen = np.full((2, *self.shape), -np.inf)

    def fill(self, place: int, levels: Sequence[_Known]) -> None:
        """Fill in the intervals of a row that need no replicates, and mark the others."""
        own, *others = levels
        for level, reference in enumerate([None, *others]):
            self._fill_means(level, place, own, reference)
        self._fill_errors(place, own, others)
        if self.draws.intervals == "auto" and self.is_rare:
            of_row = self.method[:, place]
            of_row[of_row == INFLUENCE] = BOOTSTRAP

    def _fill_means(self, level: int, place: int, own: _Known, reference: _Known | None) -> None:
        """Fill in the intervals of what a row is, or is above a reference, by influences."""
        at, names, units, draws = (level, place), self.names, self.units, self.draws
        self.estimate[at] = own.values if reference is None else own.values - reference.values
        known = np.flatnonzero(~np.isnan(self.estimate[at]))
        if not len(known):
            return
        columns = np.array([column for column in known if names[column] not in own.errors])
        influence = np.stack([own.influence[names[column]] for column in columns])
        if reference is not None:
            for ours, column in zip(influence, columns, strict=True):
                np.subtract(ours, reference.influence[names[column]], out=ours)
        intervals = by_influence(
            self.estimate[at][columns],
            influence.T,
            units,
            draws.confidence_level,
            on_logit=[reference is None and names[column] in RANK_METRICS for column in columns],
        )
        holds = intervals.holds
        if draws.intervals != "auto":
            holds = np.array(draws.intervals == INFLUENCE)
        self.low[at][columns], self.high[at][columns] = intervals.low, intervals.high
        self.skewness[at][columns] = intervals.skewness
        self.method[at][columns] = np.where(holds, INFLUENCE, BOOTSTRAP)
        for column, width in zip(columns, (intervals.high - intervals.low) / 2, strict=True):
            if (change := own.change.get(names[column])) is not None:
                if reference is not None:
                    change = change - reference.change[names[column]]
                alpha = 1 - draws.confidence_level
                self.unseen[:, level, place, column] = unseen_reach(change, units, alpha, width)
        column = names.index(self.options.miscalibration)
        # the interval starts at zero: in sample it is too large, by how much is not known
        if LEVELS[level] in (VALUE, MARGIN) and not np.isnan(self.estimate[at][column]):
            self.low[at][column], self.method[at][column] = 0.0, BOUNDS
            self.unseen[0][at][column] = -np.inf

    def _fill_errors(self, place: int, own: _Known, references: list[_Known]) -> None:
        """Fill in the bounds of a row's calibration errors, and of what they are above others."""
        for column, name in enumerate(self.names):
            if name not in own.errors:
                continue
            ours = own.parts(name)
            for level, reference in enumerate([None, *references]):
                cell = level, place, column
                if np.isnan(self.estimate[cell]):
                    continue
                ends = (0.0, 0.0)
                if own.values[column] > ROUNDING:  # not calibrated by construction
                    is_zero = reference is None or reference.values[column] <= ROUNDING
                    theirs = None if reference is None or is_zero else reference.parts(name)
                    ends = absolute_interval(ours, theirs, self.units, self.draws.confidence_level)
                self.low[cell], self.high[cell], self.method[cell] = *ends, BOUNDS

    def marked(self, place: int) -> list[str]:
        """Return the metrics of a row some of whose intervals are to be made by bootstrap."""
        of_names = (self.method[:, place] == BOOTSTRAP).any(axis=0)
        return [self.names[column] for column in np.flatnonzero(of_names)]

    def resample(self, place: int, drawn: FloatArray, level: float) -> None:
        """Fill in a row's marked intervals by replicates (n_replicates, n_levels, n_metrics)."""
        drawn = np.concatenate([drawn[:, :1], drawn[:, :1] - drawn[:, 1:]], axis=1)
        marked = self.method[:, place] == BOOTSTRAP
        estimate, skewness = self.estimate[:, place][marked], self.skewness[:, place][marked]
        low, high = by_bootstrap(drawn[:, marked], estimate, skewness, level)
        # never shorter than by influences: few runs hide what is rare
        self.low[:, place][marked] = np.fmin(self.low[:, place][marked], low)
        self.high[:, place][marked] = np.fmax(self.high[:, place][marked], high)

    def tables(self) -> tuple[pd.DataFrame, pd.DataFrame]:
        """Return the intervals, and how each was made, by predictor, form and metric."""
        index = pd.MultiIndex.from_tuples(
            [(*row.key, name) for row in self.rows for name in self.names],
            names=["predictor", "form", "metric"],
        )
        table, methods = pd.DataFrame(index=index), pd.DataFrame(index=index)
        low = np.fmin(self.low, self.estimate - self.unseen[0])
        high = np.fmax(self.high, self.estimate + self.unseen[1])
        low, high = (np.where(self._withheld(), np.nan, end) for end in (low, high))
        for level, columns in enumerate(LEVELS):
            ends = (self.estimate, low, high)
            for column, numbers in zip(columns, ends, strict=True):
                table[column] = numbers[level].ravel()
            methods[columns[0]] = self.method[level].ravel()
        exists = table["value"].notna()
        return table[exists], methods[exists]

    def _withheld(self) -> NDArray[np.bool_]:
        """Whether intervals would hold too seldom: of differences of very few runs of an outcome,
        and of ECUAS_128, which the few forecasts near 0 decide.
        """
        withheld = np.zeros(self.shape, dtype=bool)
        withheld[1:] = not self.has_differences
        withheld[1:, :, self.names.index("ECUAS_128")] = True
        return withheld & (self.method != "")
