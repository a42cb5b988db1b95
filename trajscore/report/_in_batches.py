"""A report of more runs than memory holds: values of all runs, all else of runs drawn by hash.

A first pass adds up the metrics of forecasts as given and the counts that calibrators are fitted
from, and draws a sample, the runs of the smallest hashes. A second one adds up the metrics of
calibrated forecasts. Of the sample a usual report is made; then its values make room for those of
all runs, and its intervals shrink to their number. Those of scores are of all runs, too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from trajscore.calibration import PlattCrossFitCalibrator
from trajscore.core.array import TrajectoryArray
from trajscore.core.checks import check_values
from trajscore.core.outcomes import CENSORED, as_labels
from trajscore.core.type_aliases import FloatArray, IntArray
from trajscore.metrics._aggregate import collapse, weighted_mean
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
from trajscore.streaming._labelled import LabelledRuns

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

    def add(self, runs: LabelledRuns, X: TrajectoryArray) -> None:
        """Add trusted runs with forecasts."""
        self.scores._add(runs, X.cells)
        self.steps._add(runs, X.cells)
        phi, weights = self.options.phi, self.options.weights
        is_weighted = phi == "weighted"  # by what is at hand
        confidence = weighted_mean(X, runs.weight) if is_weighted else collapse(X, phi, weights)
        self.runs._add(runs.label, confidence)
        self.costs += _costs(runs.label, confidence)

    def of_base_rate(self) -> RowSums:
        """Return the sums of the success rate as the only forecast of the same runs."""
        n_runs = self.runs.sums[:2].sum(axis=1)  # failures, successes
        rate = float(n_runs[1] / n_runs.sum())
        base = RowSums(self.options)
        base.scores = self.scores._constant(rate)
        base.steps = self.steps._constant(rate)
        base.runs = self.runs._constant(rate)
        base.costs = sum(
            n * _costs(np.array([label]), np.array([rate])) for label, n in enumerate(n_runs)
        )
        return base

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


def _costs(label: FloatArray, confidence: FloatArray) -> FloatArray:
    """Add up the cost of relying on each run's forecast, and its squared error."""
    squared = label * (1 - confidence) ** 2 + (1 - label) * confidence**2
    costs = [cost_of_reliance(confidence, label, n).sum() for n in ECUAS_METRICS.values()]
    return np.array([*costs, squared.sum()])


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


class Pass:
    """Metrics of each predictor, added up by halves of the runs; which half goes by a hash."""

    def __init__(self, options: Options, censored: str, names: Sequence[str]) -> None:
        self.options, self.censored = options, censored
        self.rows = {(name, half): RowSums(options) for name in names for half in (0, 1)}
        self.excluded: Counter[str] = Counter()  # runs left out, by reason

    def update(self, y: NDArray[Any], X: TrajectoryArray, groups: NDArray[Any] | None) -> None:
        """Add a batch."""
        labels = as_labels(y, censored=self.censored)
        whole = np.logical_and.reduce([whole_runs(X[name]) for name in X.channels or ()])
        lost = {"a value is missing": ~whole, UNOBSERVED: whole & ~labels.counts}
        self.excluded.update({reason: int(rows.sum()) for reason, rows in lost.items()})
        half = hashed(X.ids if groups is None else groups) & 1  # another bit than the sample's
        for k in (0, 1):
            rows = np.flatnonzero(whole & labels.counts & (half == k))
            if len(rows):
                chosen, of_rows = X[rows], None if groups is None else groups[rows]
                runs = LabelledRuns(labels.value[rows], chosen, self.options.weights, of_rows)
                self.add(runs, y[rows], k)

    def add(self, runs: LabelledRuns, y: NDArray[Any], half: int) -> None:
        """Add runs of one half that count."""
        for name in runs.X.channels or ():
            traces = runs.X[name]
            check_values(traces, probabilities=True)
            self.rows[name, half].add(runs, self.forecasts(traces, name, half))

    def forecasts(self, X: TrajectoryArray, name: str, half: int) -> TrajectoryArray:
        """Return the forecasts that are added up of a predictor."""
        return X

    def merge(self, other: Self) -> None:
        """Add another's sums."""
        self.excluded += other.excluded
        for key, sums in self.rows.items():
            sums.merge(other.rows[key])

    def of_all(self) -> dict[str, RowSums]:
        """Return the sums of each predictor over both halves."""
        found = {name: deepcopy(sums) for (name, half), sums in self.rows.items() if half == 0}
        for name, sums in found.items():
            sums.merge(self.rows[name, 1])
        return found


class FirstPass(Pass):
    """Forecasts as given, and a sample of the runs."""

    def __init__(self, options: Options, censored: str, names: Sequence[str]) -> None:
        super().__init__(options, censored, names)
        self.sample = HashSample(SAMPLE_RUNS)
        self.length = RankingAccumulator("last", bounds=(-float(1 << 14), 0.0))
        self.counts = np.zeros(3)  # runs, those with an observed outcome, and its sum

    def add(self, runs: LabelledRuns, y: NDArray[Any], half: int) -> None:
        """Add runs of one half that count."""
        super().add(runs, y, half)
        self.sample.update(y, runs.X, runs.groups)
        self.length._add(runs.label, -runs.X.lengths.astype(np.float64))
        observed = y != CENSORED
        self.counts += [len(y), observed.sum(), y[observed].sum()]

    def merge(self, other: Self) -> None:
        """Add another's sums."""
        super().merge(other)
        self.sample.merge(other.sample)
        self.length.merge(other.length)
        self.counts = self.counts + other.counts


class SecondPass(Pass):
    """Forecasts calibrated by the map of the other half."""

    def __init__(
        self, options: Options, censored: str, names: Sequence[str], maps: Mapping[Any, Any]
    ) -> None:
        super().__init__(options, censored, names)
        self.maps = maps

    def forecasts(self, X: TrajectoryArray, name: str, half: int) -> TrajectoryArray:
        """Return the forecasts that are added up of a predictor."""
        return X.with_cells(self.maps[name, 1 - half](X.cells))


def evaluate_batches(
    batches: Any, options: Options, censored: str, is_calibrated: bool, evaluate: Any
) -> Report:
    """Go through the batches once or twice; `evaluate` makes the report of the sample."""
    names = batches.columns.values
    first = batches.reduce(FirstPass(options, censored, names))
    if not first.counts[0]:
        raise ValueError("no run counts; give runs with a value of every predictor")
    y, X, groups = first.sample.runs()
    report: Report = evaluate(X, y, groups=groups)
    raw, calibrated = first.of_all(), {}
    if is_calibrated:
        maker = PlattCrossFitCalibrator(weights=options.weights)
        maps = {key: sums.steps.fit(maker) for key, sums in first.rows.items()}
        calibrated = batches.reduce(SecondPass(options, censored, names, maps)).of_all()
    rows = {(name, RAW): sums for name, sums in raw.items()}
    rows |= {(name, CALIBRATED): sums for name, sums in calibrated.items()}
    rows[BASE_RATE, CONSTANT] = raw[names[0]].of_base_rate()
    found = {key: sums.values() for key, sums in rows.items()}
    area = first.length.compute().loc["AUROC", "value"]
    found[LENGTH, RAW] = {"AUROC": max(area, 1 - area)}
    n_runs, n_observed, total = first.counts.tolist()
    intervals = _of_all(report.intervals, found, np.sqrt(len(X) / n_runs))
    for key, sums in rows.items():
        for metric, ends in sums.ends(report.facts.intervals.confidence_level).items():
            intervals.loc[(*key, metric), [*VALUE[1:], *MARGIN[1:]]] = ends
    lost = [("all", reason, n) for reason, n in first.excluded.items() if n]
    sampled = Note("all", "sampled", {"n": len(X), "n_runs": int(n_runs)})
    return replace(
        report,
        table=_row_table(report.table, intervals, options, int(n_runs), int(n_runs - n_observed)),
        intervals=intervals,
        excluded=pd.DataFrame(lost, columns=["predictor", "reason", "n_runs"]),
        calibration_gain=gain_table(options, intervals),
        facts=replace(
            report.facts,
            n_runs=int(n_runs),
            n_observed=int(n_observed),
            success_rate=total / n_observed,
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
