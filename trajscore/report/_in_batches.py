"""A report of more runs than memory holds: values of all runs, all else of runs drawn by hash.

A first pass adds up the metrics of forecasts as given and the counts that calibrators are fitted
from, and draws a sample, the runs of the smallest hashes. A second one adds up the metrics of
calibrated forecasts. Of the sample a usual report is made; then its values make room for those of
all runs, and its intervals shrink to their number. Those of scores are of all runs, too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from trajscore.calibration import PlattCrossFitCalibrator
from trajscore.core.array import TrajectoryArray
from trajscore.core.outcomes import CENSORED, as_labels
from trajscore.core.type_aliases import BoolArray, FloatArray, IntArray
from trajscore.metrics._aggregate import collapse
from trajscore.report._data import (
    BASE_RATE,
    CALIBRATED,
    CONSTANT,
    ECUAS_METRICS,
    LENGTH,
    LEVELS,
    MARGIN,
    OVER_LENGTH,
    RAW,
    REFERENCES,
    VALUE,
    Note,
    Options,
)
from trajscore.report._disclosures import UNOBSERVED
from trajscore.report._margins import cost_of_reliance
from trajscore.report._missing import whole_runs
from trajscore.report._report import Report
from trajscore.report._tables import gain_table
from trajscore.streaming import CalibrationAccumulator, RankingAccumulator, TPSAccumulator
from trajscore.streaming._batches import hashed

Key = tuple[str, str]
SAMPLE_RUNS = 20_000
"""Runs that intervals, pictures and all tables but the first are made of."""


class RowSums:
    """Metrics of one row of the report, added up."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self.scores = TPSAccumulator(options.scores, options.weights)
        self.steps = CalibrationAccumulator(options.weights)
        self.runs = RankingAccumulator(options.phi, options.weights)
        self.costs = np.zeros(len(ECUAS_METRICS) + 1)  # and squared errors

    def update(
        self, label: FloatArray, X: TrajectoryArray, groups: Any, with_steps: bool = True
    ) -> None:
        """Add runs with forecasts; without steps where these are added up elsewhere."""
        self.scores.update(label, X, groups)
        if with_steps:
            self.steps.update(label, X)
        confidence = collapse(X, self.options.phi, self.options.weights)
        self.runs._add(label, confidence)
        squared = label * (1 - confidence) ** 2 + (1 - label) * confidence**2
        costs = [cost_of_reliance(confidence, label, n).sum() for n in ECUAS_METRICS.values()]
        self.costs += [*costs, squared.sum()]

    def merge(self, other: Self) -> None:
        """Add another's sums."""
        self.scores.merge(other.scores)
        self.steps.merge(other.steps)
        self.runs.merge(other.runs)
        self.costs = self.costs + other.costs

    def ends(self, level: float) -> dict[str, FloatArray]:
        """Return the ends of each score's interval, and of its margin's."""
        table = self.scores.compute(level)[["low", "high", "margin_low", "margin_high"]]
        return dict(zip(self.options.score_names, table.to_numpy(), strict=True))

    def values(self) -> dict[str, float]:
        """Return all metrics by name."""
        options, n_runs = self.options, self.scores.n_runs
        scores = self.scores.compute()["value"].to_numpy()
        found = dict(zip(options.score_names, scores.tolist(), strict=True))
        steps = self.steps.compute(options.scores[0])
        found |= {name: steps[name] for name in steps.index if name.startswith("S-ECE")}
        found[options.miscalibration] = steps["miscalibration"]
        found |= self.runs.compute()["value"].to_dict()
        means = (self.costs / n_runs).tolist()
        return found | dict(zip([*ECUAS_METRICS, "T-Brier"], means, strict=True))


class HashSample:
    """Whole clusters of the smallest hashes, up to a number of runs: the same however they come."""

    def __init__(self, size: int) -> None:
        self.size, self.limit = size, np.iinfo(np.int64).max
        self.parts: list[tuple[IntArray, NDArray[Any], TrajectoryArray, NDArray[Any] | None]] = []

    def update(self, y: NDArray[Any], X: TrajectoryArray, groups: NDArray[Any] | None) -> None:
        """Take in what may be of the sample."""
        key = hashed(X.ids if groups is None else groups)
        rows = np.flatnonzero(key <= self.limit)
        if len(rows):
            self.parts.append(
                (key[rows], y[rows], X[rows], None if groups is None else groups[rows])
            )
        if sum(len(part[0]) for part in self.parts) > 2 * self.size:
            self._tighten()

    def merge(self, other: Self) -> None:
        """Take in another's sample."""
        self.parts = self.parts + other.parts
        self.limit = min(self.limit, other.limit)
        self._tighten()

    def _tighten(self) -> None:
        keys = np.sort(np.concatenate([part[0] for part in self.parts]))
        if len(keys) > self.size:  # whole clusters, at least one
            self.limit = min(self.limit, int(keys[self.size - 1]))
        kept = []
        for key, y, X, groups in self.parts:
            rows = np.flatnonzero(key <= self.limit)
            if len(rows):
                kept.append((key[rows], y[rows], X[rows], None if groups is None else groups[rows]))
        self.parts = kept

    def runs(self) -> tuple[NDArray[Any], TrajectoryArray, NDArray[Any] | None]:
        """Return outcomes, traces and clusters."""
        self._tighten()
        groups = [part[3] for part in self.parts]
        return (
            np.concatenate([part[1] for part in self.parts]),
            TrajectoryArray.concat([part[2] for part in self.parts]),
            None if groups[0] is None else np.concatenate(groups),  # type: ignore[arg-type]
        )


class _Pass:
    """What both passes share: which runs count, and as what."""

    def __init__(self, options: Options, censored: str) -> None:
        self.options, self.censored = options, censored

    def _counted(
        self, y: NDArray[Any], X: TrajectoryArray
    ) -> tuple[BoolArray, FloatArray, BoolArray]:
        """Return which runs count, labels of all, and which lack a value."""
        labels, whole = as_labels(y, censored=self.censored), whole_of_all(X)
        return labels.counts & whole, labels.value, ~whole


def whole_of_all(X: TrajectoryArray) -> BoolArray:
    """Tell which runs lack no value of any channel."""
    return np.logical_and.reduce([whole_runs(X[name]) for name in X.channels or ()])


def halves(X: TrajectoryArray, groups: NDArray[Any] | None) -> IntArray:
    """Return the half in which each run's cluster lies, by another bit than the sample's."""
    return hashed(X.ids if groups is None else groups) & 1


class FirstPass(_Pass):
    """The sample, the halves' counts, and the metrics of forecasts as given."""

    def __init__(self, options: Options, censored: str, names: tuple[str, ...]) -> None:
        super().__init__(options, censored)
        self.sample = HashSample(SAMPLE_RUNS)
        self.raw = {name: RowSums(options) for name in names}
        self.halves = {
            (name, k): CalibrationAccumulator(options.weights) for name in names for k in (0, 1)
        }
        self.length = RankingAccumulator("last", bounds=(-float(1 << 14), 0.0))
        self.counts = np.zeros(5)  # runs, observed, successes, lacking a value, unobserved left out

    def update(self, y: NDArray[Any], X: TrajectoryArray, groups: NDArray[Any] | None) -> None:
        """Add a batch."""
        counts, label, lacks = self._counted(y, X)
        observed = y != CENSORED
        numbers = (counts, counts & observed, counts & observed & (y == 1), lacks)
        self.counts += [*(one.sum() for one in numbers), (~counts & ~lacks).sum()]
        if not counts.any():
            return
        rows = np.flatnonzero(counts)
        X, label = X[rows], label[rows]
        groups = None if groups is None else groups[rows]
        self.sample.update(y[rows], X, groups)
        half = halves(X, groups)
        for name, sums in self.raw.items():
            sums.update(label, X[name], groups, with_steps=False)
            for k in (0, 1):
                self.halves[name, k].update(label[half == k], X[name][half == k])
        self.length.update(label, TrajectoryArray(-X.lengths.astype(float), np.ones(len(X), int)))

    def merge(self, other: Self) -> None:
        """Add another's sums."""
        self.sample.merge(other.sample)
        self.length.merge(other.length)
        self.counts = self.counts + other.counts
        for name, sums in self.raw.items():
            sums.merge(other.raw[name])
        for key, counts in self.halves.items():
            counts.merge(other.halves[key])


class SecondPass(_Pass):
    """The metrics of forecasts calibrated by the map of the other half, and of the base rate."""

    def __init__(
        self, options: Options, censored: str, maps: Mapping[tuple[str, int], Any], rate: float
    ) -> None:
        super().__init__(options, censored)
        self.maps, self.rate = maps, rate
        self.rows = {name: RowSums(options) for name in dict.fromkeys(name for name, _ in maps)}
        self.base = RowSums(options)

    def update(self, y: NDArray[Any], X: TrajectoryArray, groups: NDArray[Any] | None) -> None:
        """Add a batch."""
        counts, label, _ = self._counted(y, X)
        if not counts.any():
            return
        rows = np.flatnonzero(counts)
        X, label = X[rows], label[rows]
        groups = None if groups is None else groups[rows]
        half = np.repeat(halves(X, groups), X.lengths)
        for name, sums in self.rows.items():
            cells, calibrated = X[name].cells, np.empty(len(half))
            for k in (0, 1):
                steps = np.flatnonzero(half == k)
                calibrated[steps] = self.maps[name, 1 - k](cells[steps])
            sums.update(label, X[name].with_cells(calibrated), groups)
        flat = X[next(iter(X.channels or ()))]
        self.base.update(label, flat.with_cells(np.full(len(flat.cells), self.rate)), groups)

    def merge(self, other: Self) -> None:
        """Add another's sums."""
        for name, sums in self.rows.items():
            sums.merge(other.rows[name])
        self.base.merge(other.base)


def evaluate_batches(
    batches: Any, options: Options, censored: str, is_calibrated: bool, evaluate: Any
) -> Report:
    """Go through the batches twice; `evaluate` makes the report of the sample."""
    first = batches.reduce(FirstPass(options, censored, batches.columns.values))
    if not first.counts[0]:
        raise ValueError("no run counts; give runs with a value of every predictor")
    y, X, groups = first.sample.runs()
    report: Report = evaluate(X, y, groups=groups)
    maps = {}
    if is_calibrated:
        maker = PlattCrossFitCalibrator(weights=options.weights)
        maps = {key: counts.fit(maker) for key, counts in first.halves.items()}
    n_runs, n_observed, n_won, n_lacking, n_left = first.counts.tolist()
    failures, successes, _ = first.length.sums.sum(axis=1)
    rate = successes / (failures + successes)
    second = batches.reduce(SecondPass(options, censored, maps, rate))
    for (name, _), counts in first.halves.items():
        first.raw[name].steps.merge(counts)
    rows = {(name, RAW): sums for name, sums in first.raw.items()}
    rows |= {(name, CALIBRATED): sums for name, sums in second.rows.items()}
    rows[BASE_RATE, CONSTANT] = second.base
    found = {key: sums.values() for key, sums in rows.items()}
    area = first.length.compute().loc["AUROC", "value"]
    found[LENGTH, RAW] = {"AUROC": max(area, 1 - area)}
    intervals = _of_all(report.intervals, found, np.sqrt(len(X) / n_runs))
    for key, sums in rows.items():
        for metric, ends in sums.ends(report.facts.intervals.confidence_level).items():
            intervals.loc[(*key, metric), [*VALUE[1:], *MARGIN[1:]]] = ends
    lost = {"a value is missing": n_lacking, UNOBSERVED: n_left}
    excluded = pd.DataFrame(
        [("all", reason, int(n)) for reason, n in lost.items() if n],
        columns=["predictor", "reason", "n_runs"],
    )
    sampled = Note("all", "sampled", {"n": len(X), "n_runs": int(n_runs)})
    return replace(
        report,
        table=_row_table(report.table, intervals, options, int(n_runs), int(n_runs - n_observed)),
        intervals=intervals,
        excluded=excluded,
        calibration_gain=gain_table(options, intervals),
        facts=replace(
            report.facts,
            n_runs=int(n_runs),
            n_observed=int(n_observed),
            success_rate=n_won / n_observed,
        ),
        remarks=[sampled, *report.remarks],
    )


def _of_all(
    sampled: pd.DataFrame, found: Mapping[Key, Mapping[str, float]], shrink: float
) -> pd.DataFrame:
    """Put the values of all runs in place of the sample's, and shrink the intervals around them."""
    columns = [list(sampled.columns).index(name) for level in LEVELS for name in level]
    numbers = sampled.to_numpy(dtype=float).copy()
    for row, (predictor, form, metric) in zip(numbers, sampled.index, strict=True):
        own = found.get((predictor, form), {}).get(metric)
        if own is None:
            continue
        raw = found.get((predictor, RAW), {}) if form == CALIBRATED else {}
        others: list[Mapping[str, float]] = [
            {metric: 0.0},
            found[BASE_RATE, CONSTANT],
            found[LENGTH, RAW],
            {} if predictor in REFERENCES else raw,
        ]
        cells = row[columns].reshape(len(LEVELS), 3)
        for level, other in enumerate(others):
            if metric in other:
                cells[level] = _moved(cells[level], own - other[metric], shrink)
        if "ECE" in metric:
            cells[0] = np.clip(cells[0], 0, 1)
        row[columns] = cells.ravel()
    return pd.DataFrame(numbers, sampled.index, sampled.columns)


def _moved(cell: FloatArray, value: float, shrink: float) -> FloatArray:
    """Return another value with an interval as wide as this one's, but for the number of runs."""
    ends = value + (cell[1:] - cell[0]) * shrink
    if cell[1] == 0:  # a bound, as of the miscalibration
        ends[0] = 0.0
    return np.array([value, *ends]) if not np.isnan(cell[0]) else cell


def _row_table(
    sampled: pd.DataFrame, intervals: pd.DataFrame, options: Options, n_runs: int, n_censored: int
) -> pd.DataFrame:
    table = sampled.copy()
    values = intervals["value"].unstack("metric").reindex(index=table.index)
    for name in options.metrics:
        table[name] = values[name]
    of_all = table.index.get_level_values("predictor") != LENGTH
    table.loc[of_all, ["n_runs", "n_censored"]] = n_runs, n_censored
    columns = [(name, MARGIN) for name in options.score_names] + [("AUROC", OVER_LENGTH)]
    for metric, ends in columns:
        differences = intervals.xs(metric, level="metric")
        for column in ends:
            table[f"{metric} {column}"] = differences[column]
    return table
