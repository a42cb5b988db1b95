"""Intervals of every metric of every row, and of what it is above references on the same runs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from trajscore.core.type_aliases import FloatArray
from trajscore.inference._absolute import Parts, absolute_interval
from trajscore.inference._bootstrap import bootstrap_units, check_resamples
from trajscore.inference._choice import by_bootstrap, by_influence, is_rare
from trajscore.inference._units import Units, units_of
from trajscore.metrics._statistics import CalibrationError, MeanOfRuns
from trajscore.report._data import (
    BOOTSTRAP,
    BOUNDS,
    INFLUENCE,
    LEVELS,
    MARGIN,
    RANK_METRICS,
    VALUE,
    IntervalOptions,
    Options,
)
from trajscore.report._margins import Metrics, as_one_function, metric_levels
from trajscore.report._rows import Row
from trajscore.report._runs import Coverage

# Gaps as small are those of a forecast that is calibrated by construction, as the base rate is.
_ROUNDING = 1e-12


def interval_table(
    rows: list[Row], runs: Coverage, options: Options, draws: IntervalOptions
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return every row and metric with its differences and intervals, and how these were made."""
    check_resamples(draws.n_resamples)
    names = options.metrics
    levels = metric_levels(rows, options)
    cells = _Cells(as_one_function(levels, names)(np.ones((1, len(runs))))[0])
    sizes = [len(row.runs) for row in rows]
    units = [units_of(row.runs.groups, size) for row, size in zip(rows, sizes, strict=True)]
    known = {
        id(one): _Influences(one, size, names)
        for level in levels
        for size, one in zip(sizes, level, strict=True)
    }
    for row, own_units in enumerate(units):
        own, *references = (known[id(level[row])] for level in levels)
        for number, reference in enumerate([None, *references]):
            cells.fill((number, row), own, reference, own_units, options, draws)
        if draws.method == "auto" and is_rare(rows[row].runs.labels):
            cells.draw_all(row)
    drawn_from = (cells.method == BOOTSTRAP).any(axis=0)
    needed = np.flatnonzero(drawn_from.any(axis=1)).tolist()
    if needed:
        marked = np.array(names)[drawn_from.any(axis=0)].tolist()
        some = _only(marked, [[level[place] for place in needed] for level in levels])
        replicates = _replicates(some, runs, names, draws)
        for place, drawn in zip(needed, np.moveaxis(replicates, 2, 0), strict=True):
            expanded = units[place].expanded_level(sizes[place], draws.confidence_level)
            cells.resample(place, drawn, expanded)
    return cells.tables(rows, names)


class _Influences:
    """Influences of the covered runs on the metrics of a row, and the gaps of its forecasts."""

    def __init__(self, metrics: Metrics, n_runs: int, names: list[str]) -> None:
        self.matrix = np.zeros((n_runs if metrics else 1, len(names)))
        self.gaps: dict[str, Parts] = {}
        self.has_unseen = np.zeros(len(names), dtype=bool)
        for name, one in metrics.items():
            covered = replace(one, rows=None)
            if isinstance(covered, CalibrationError):
                self.gaps[name] = Parts(*covered.parts(n_runs))
            else:
                self.matrix[:, names.index(name)] = covered.influence(n_runs)
            self.has_unseen[names.index(name)] = isinstance(one, MeanOfRuns) and one.has_unseen


@dataclass
class _Cells:
    """Estimates with their intervals, of shape (n_levels, n_rows, n_metrics)."""

    values: FloatArray  # of the rows, and of their references

    def __post_init__(self) -> None:
        self.estimate = np.concatenate([self.values[:1], self.values[0] - self.values[1:]])
        self.low, self.high, self.skewness = (np.full(self.estimate.shape, np.nan) for _ in "123")
        self.method: NDArray[Any] = np.full(self.estimate.shape, "", dtype=object)

    def fill(
        self,
        at: tuple[int, int],
        own: _Influences,
        reference: _Influences | None,
        units: Units,
        options: Options,
        draws: IntervalOptions,
    ) -> None:
        """Fill in the intervals of a row that need no replicates, and mark the others."""
        names, confidence = options.metrics, draws.confidence_level
        both = [own] if reference is None else [own, reference]
        found = by_influence(
            self.estimate[at],
            own.matrix if reference is None else own.matrix - reference.matrix,
            units,
            confidence,
            on_logit=[reference is None and name in RANK_METRICS for name in names],
        )
        holds = found.holds & ~np.any([one.has_unseen for one in both], axis=0)
        if draws.method != "auto":
            holds = np.array(draws.method == INFLUENCE)
        self.low[at], self.high[at], self.skewness[at] = found.low, found.high, found.skewness
        self.method[at] = np.where(holds, INFLUENCE, BOOTSTRAP)
        for name, gaps in own.gaps.items():
            place = *at, names.index(name)
            if not np.isnan(self.estimate[place]):
                theirs = None if reference is None else reference.gaps[name]
                ends = _calibration_interval(gaps, theirs, units, confidence)
                self.low[place], self.high[place], self.method[place] = *ends, BOUNDS
        if LEVELS[at[0]] in (VALUE, MARGIN):  # in sample it is too large, by how much is not known
            place = *at, names.index(options.miscalibration)
            self.low[place], self.method[place] = 0.0, BOUNDS
        missing = np.isnan(self.estimate[at])
        self.low[at][missing], self.high[at][missing], self.method[at][missing] = np.nan, np.nan, ""

    def draw_all(self, place: int) -> None:
        """Mark all of a row's intervals by influences to be made by bootstrap."""
        of_row = self.method[:, place]
        of_row[of_row == INFLUENCE] = BOOTSTRAP

    def resample(self, place: int, drawn: FloatArray, level: float) -> None:
        """Fill in a row's marked intervals by replicates (n_replicates, n_levels, n_metrics)."""
        drawn = np.concatenate([drawn[:, :1], drawn[:, :1] - drawn[:, 1:]], axis=1)
        marked = self.method[:, place] == BOOTSTRAP
        estimate, skewness = self.estimate[:, place][marked], self.skewness[:, place][marked]
        ends = by_bootstrap(drawn[:, marked], estimate, skewness, level)
        self.low[:, place][marked], self.high[:, place][marked] = ends

    def tables(self, rows: list[Row], names: list[str]) -> tuple[pd.DataFrame, pd.DataFrame]:
        """Return the intervals, and how each was made, by predictor, form and metric."""
        index = pd.MultiIndex.from_tuples(
            [(*row.key, name) for row in rows for name in names],
            names=["predictor", "form", "metric"],
        )
        table, methods = pd.DataFrame(index=index), pd.DataFrame(index=index)
        for level, columns in enumerate(LEVELS):
            ends = (self.estimate, self.low, self.high)
            for column, numbers in zip(columns, ends, strict=True):
                table[column] = numbers[level].ravel()
            methods[columns[0]] = self.method[level].ravel()
        exists = table["value"].notna()
        return table[exists], methods[exists]


def _only(names: list[str], levels: list[list[Metrics]]) -> list[list[Metrics]]:
    """Keep some metrics, of one object of metrics in one object."""
    kept: dict[int, Metrics] = {}
    for one in chain.from_iterable(levels):
        if id(one) not in kept:
            kept[id(one)] = {name: metric for name, metric in one.items() if name in names}
    return [[kept[id(one)] for one in level] for level in levels]


def _calibration_interval(
    ours: Parts, theirs: Parts | None, units: Units, confidence_level: float
) -> tuple[float, float]:
    if theirs is not None and np.abs(theirs.mean).max() <= _ROUNDING:
        theirs = None
    if np.abs(ours.mean).max() <= _ROUNDING:
        return 0.0, 0.0
    return absolute_interval(ours, theirs, units, confidence_level)


def _replicates(
    levels: list[list[Metrics]], runs: Coverage, names: list[str], draws: IntervalOptions
) -> FloatArray:
    statistic, units = as_one_function(levels, names), units_of(runs.groups, len(runs))
    return bootstrap_units(
        lambda counts: statistic(units.to_runs(counts)),
        units,
        n_resamples=draws.n_resamples,
        random_state=draws.random_state,
        n_jobs=draws.n_jobs,
        progress=draws.progress,
    )
