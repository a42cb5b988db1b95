"""Intervals of every metric of every row, and of what it is above references on the same runs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from trajscore.core.parallel import Work
from trajscore.core.statistics import CalibrationError, MeanOfRuns, all_at_once
from trajscore.core.ties import ROUNDING
from trajscore.core.type_aliases import FloatArray
from trajscore.core.weighted_steps import MANY
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
from trajscore.report._margins import Metrics, References, as_one_function
from trajscore.report._rows import Row
from trajscore.report._runs import Coverage

# With more runs, bootstrap means are those of `bootstrap_many_means`.
_MANY_RUNS = 1 << 16


def interval_table(
    rows: list[Row], runs: Coverage, options: Options, draws: IntervalOptions, work: Work
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return every row and metric with its differences and intervals, and how these were made."""
    check_resamples(draws.n_resamples)
    names = options.metrics
    cells = _Cells((len(LEVELS), len(rows), len(names)))
    sizes = [len(row.runs) for row in rows]
    units = [units_of(row.runs.groups, size) for row, size in zip(rows, sizes, strict=True)]
    references = References(rows, options, lambda metrics, n: _Known(metrics, n, names))

    def judge(places: list[int]) -> dict[int, list[Metrics]]:
        """Fill in the rows of a predictor; return the metrics of which replicates are needed."""
        needed = {}
        of_rows = references.of([rows[place] for place in places])
        for place, (own, *others) in zip(places, of_rows, strict=True):
            for level, other in enumerate([None, *others]):
                cells.fill(level, place, own, other, units[place], options, draws)
            cells.fill_errors(place, own, others, units[place], options, draws)
            if draws.method == "auto" and is_rare(rows[place].runs.labels):
                cells.draw_all(place)
            if marked := cells.marked(place, names):
                needed[place] = [known.keep(marked) for known in (own, *others)]
        return needed

    needed: dict[int, list[Metrics]] = {}
    # memory would not hold the metrics of two predictors with very many steps
    is_large = max(len(row.traces.cells) for row in rows) > MANY
    for more in (replace(work, n_jobs=1) if is_large else work).share(judge, _by_predictor(rows)):
        needed |= more
    needed = {
        place: levels
        for place, levels in needed.items()
        if not _drawn_quickly(cells, place, levels, runs, names, draws)
    }
    if needed:
        levels = list(zip(*needed.values(), strict=True))
        replicates = _replicates(levels, runs, names, draws, work)
        for place, drawn in zip(needed, np.moveaxis(replicates, 2, 0), strict=True):
            expanded = units[place].expanded_level(sizes[place], draws.confidence_level)
            cells.resample(place, drawn, expanded)
    return cells.tables(rows, names)


def _by_predictor(rows: list[Row]) -> list[list[int]]:
    """Return the places of each predictor's rows."""
    places: dict[str, list[int]] = {}
    for place, row in enumerate(rows):
        places.setdefault(row.predictor, []).append(place)
    return list(places.values())


class _Known:
    """Values of the metrics of a row, influences of its runs on them, its calibration errors."""

    def __init__(self, metrics: Metrics, n_runs: int, names: list[str]) -> None:
        covered = {name: replace(statistic, rows=None) for name, statistic in metrics.items()}
        self.values = np.full(len(names), np.nan)
        places = [names.index(name) for name in covered]
        self.values[places] = all_at_once(covered)(np.ones(n_runs))
        self.influence: dict[str, FloatArray] = {}
        self.errors: dict[str, CalibrationError] = {}
        self.change: dict[str, FloatArray] = {}
        self._n_runs, self._metrics, self._kept = n_runs, metrics, dict[str, Any]()
        for name, statistic in covered.items():
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


@dataclass
class _Cells:
    """Estimates with their intervals, of shape (n_levels, n_rows, n_metrics)."""

    shape: tuple[int, int, int]

    def __post_init__(self) -> None:
        self.estimate, self.low, self.high, self.skewness = (
            np.full(self.shape, np.nan) for _ in range(4)
        )
        self.method: NDArray[Any] = np.full(self.shape, "", dtype=object)
        # how far below and above an estimate the truth may lie by what has not happened yet
        self.unseen = np.full((2, *self.shape), -np.inf)

    def fill(
        self,
        level: int,
        place: int,
        own: _Known,
        reference: _Known | None,
        units: Units,
        options: Options,
        draws: IntervalOptions,
    ) -> None:
        """Fill in the intervals of a row that need no replicates, and mark the others."""
        at, names = (level, place), options.metrics
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
        if draws.method != "auto":
            holds = np.array(draws.method == INFLUENCE)
        self.low[at][columns], self.high[at][columns] = intervals.low, intervals.high
        self.skewness[at][columns] = intervals.skewness
        self.method[at][columns] = np.where(holds, INFLUENCE, BOOTSTRAP)
        for column, width in zip(columns, (intervals.high - intervals.low) / 2, strict=True):
            if (change := own.change.get(names[column])) is not None:
                if reference is not None:
                    change = change - reference.change[names[column]]
                alpha = 1 - draws.confidence_level
                self.unseen[:, level, place, column] = unseen_reach(change, units, alpha, width)
        column = names.index(options.miscalibration)
        # the interval starts at zero: in sample it is too large, by how much is not known
        if LEVELS[level] in (VALUE, MARGIN) and not np.isnan(self.estimate[at][column]):
            self.low[at][column], self.method[at][column] = 0.0, BOUNDS
            self.unseen[0][at][column] = -np.inf

    def fill_errors(
        self,
        place: int,
        own: _Known,
        references: list[_Known],
        units: Units,
        options: Options,
        draws: IntervalOptions,
    ) -> None:
        """Fill in the bounds of a row's calibration errors, and of what they are above others."""
        for column, name in enumerate(options.metrics):
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
                    ends = absolute_interval(ours, theirs, units, draws.confidence_level)
                self.low[cell], self.high[cell], self.method[cell] = *ends, BOUNDS

    def draw_all(self, place: int) -> None:
        """Mark all of a row's intervals by influences to be made by bootstrap."""
        of_row = self.method[:, place]
        of_row[of_row == INFLUENCE] = BOOTSTRAP

    def marked(self, place: int, names: list[str]) -> list[str]:
        """Return the metrics of a row some of whose intervals are to be made by bootstrap."""
        of_names = (self.method[:, place] == BOOTSTRAP).any(axis=0)
        return [name for name, is_one in zip(names, of_names, strict=True) if is_one]

    def resample(self, place: int, drawn: FloatArray, level: float) -> None:
        """Fill in a row's marked intervals by replicates (n_replicates, n_levels, n_metrics)."""
        drawn = np.concatenate([drawn[:, :1], drawn[:, :1] - drawn[:, 1:]], axis=1)
        marked = self.method[:, place] == BOOTSTRAP
        estimate, skewness = self.estimate[:, place][marked], self.skewness[:, place][marked]
        low, high = by_bootstrap(drawn[:, marked], estimate, skewness, level)
        # never shorter than by influences: few runs hide what is rare
        self.low[:, place][marked] = np.fmin(self.low[:, place][marked], low)
        self.high[:, place][marked] = np.fmax(self.high[:, place][marked], high)

    def tables(self, rows: list[Row], names: list[str]) -> tuple[pd.DataFrame, pd.DataFrame]:
        """Return the intervals, and how each was made, by predictor, form and metric."""
        index = pd.MultiIndex.from_tuples(
            [(*row.key, name) for row in rows for name in names],
            names=["predictor", "form", "metric"],
        )
        table, methods = pd.DataFrame(index=index), pd.DataFrame(index=index)
        low = np.fmin(self.low, self.estimate - self.unseen[0])
        high = np.fmax(self.high, self.estimate + self.unseen[1])
        low, high = (np.where(self._withheld(rows, names), np.nan, end) for end in (low, high))
        for level, columns in enumerate(LEVELS):
            ends = (self.estimate, low, high)
            for column, numbers in zip(columns, ends, strict=True):
                table[column] = numbers[level].ravel()
            methods[columns[0]] = self.method[level].ravel()
        exists = table["value"].notna()
        return table[exists], methods[exists]

    def _withheld(self, rows: list[Row], names: list[str]) -> NDArray[np.bool_]:
        """Whether intervals would hold too seldom: of differences of very few runs of an outcome,
        and of ECUAS_128, which the few forecasts near 0 decide.
        """
        n_success = np.array([row.runs.labels.sum() for row in rows])
        n_rarer = n_of_rarer_outcome(n_success, np.array([len(row.runs) for row in rows]))
        withheld = np.zeros(self.shape, dtype=bool)
        withheld[1:] = (n_rarer < FEWEST_OF_DIFFERENCES)[:, None]
        withheld[1:, :, names.index("ECUAS_128")] = True
        return withheld & (self.method != "")


def _drawn_quickly(
    cells: _Cells,
    place: int,
    levels: Sequence[Metrics],
    runs: Coverage,
    names: list[str],
    draws: IntervalOptions,
) -> bool:
    """Fill in a row's marked intervals, if all are of means over very many runs, no clusters."""
    # what a row is worth must not depend on what is drawn for others
    marked = cells.marked(place, names)
    own = [{name: known[name] for name in marked if name in known} for known in levels]
    used = [statistic for metrics in own for statistic in metrics.values()]
    means = all(isinstance(metric, MeanOfRuns) and metric.rows is None for metric in used)
    if not means or runs.groups is not None or len(runs) <= _MANY_RUNS:
        return False
    cells.resample(place, _replicates_of_means(own, names, draws), draws.confidence_level)
    return True


def _replicates_of_means(
    levels: Sequence[Metrics], names: list[str], draws: IntervalOptions
) -> FloatArray:
    """Return replicates of shape (n_replicates, n_levels, n_metrics) of one row."""
    level = [k for k, metrics in enumerate(levels) for _ in metrics]
    place = [names.index(name) for metrics in levels for name in metrics]
    every = [statistic for metrics in levels for statistic in metrics.values()]
    columns = [
        statistic.pseudo_values() for statistic in every if isinstance(statistic, MeanOfRuns)
    ]
    out = np.full((draws.n_resamples, len(levels), len(names)), np.nan)
    out[:, level, place] = bootstrap_many_means(
        np.stack(columns, axis=1), n_resamples=draws.n_resamples, random_state=draws.random_state
    )
    return out


def _replicates(
    levels: Sequence[Sequence[Metrics]],
    runs: Coverage,
    names: list[str],
    draws: IntervalOptions,
    work: Work,
) -> FloatArray:
    statistic, units = as_one_function(levels, names), units_of(runs.groups, len(runs))
    return bootstrap_units(
        lambda counts: statistic(units.to_runs(counts)),
        units,
        n_resamples=draws.n_resamples,
        random_state=draws.random_state,
        n_jobs=work.n_jobs,
        progress=work.progress,
    )
