"""A report of more runs than memory holds: values of all runs, all else of runs drawn by hash.

A first pass adds up the metrics of forecasts as given and the counts that calibrators are fitted
from, and draws a sample, the runs of the smallest hashes. A second one adds up the metrics of
calibrated forecasts. Of the sample a usual report is made; then its values make room for those of
all runs, and its intervals shrink to their number. Those of scores are of all runs, too; what is
held against counting steps stays that of the sample.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import asdict, dataclass, replace
from typing import Any, Self, TypeVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from trajscore.calibration.calibrators import CALIBRATORS, calibrator_maker
from trajscore.core.array import TrajectoryArray
from trajscore.core.checks import check_values
from trajscore.core.errors import RowError
from trajscore.core.run_sums import collapse, weighted_mean
from trajscore.core.sample import Sample
from trajscore.core.stops import UNKNOWN, recorded_stops
from trajscore.core.type_aliases import FloatArray, IntArray
from trajscore.core.values import one_per_run, outside_unit, run_label, unknown_name
from trajscore.evaluation.doubts import stop_notes
from trajscore.evaluation.evaluation import Counts, Evaluation
from trajscore.evaluation.options import (
    AS_GIVEN,
    BASE_RATE,
    CONSTANT,
    INFLUENCE,
    LEVELS,
    MARGIN,
    RECALIBRATED,
    RUN_METRICS,
    VALUE,
    Note,
    Options,
)
from trajscore.evaluation.runs import EvaluatedRuns, Exclusion, leave_out_incomplete, select_runs
from trajscore.metrics.run_metrics import CostMetric
from trajscore.streaming import CalibrationAccumulator, RankingAccumulator, TPSAccumulator
from trajscore.streaming.accumulator import LabelledRuns
from trajscore.streaming.batches import Batch

Key = tuple[str, str]
AnyEvaluation = TypeVar("AnyEvaluation", bound=Evaluation)
SAMPLE_RUNS = 20_000
"""Runs that intervals, pictures and all tables but the first are made of."""
_COSTS = {name: metric for name, metric in RUN_METRICS.items() if isinstance(metric, CostMetric)}


@dataclass(frozen=True)
class BatchSelection:
    """Which runs count, and as what; q_z and stop reasons are columns of `meta`."""

    censored: str
    q_z: str | None
    stop_reason: str | None

    def apply(self, y: NDArray[Any], X: TrajectoryArray) -> EvaluatedRuns:
        """Select the runs that count."""
        meta = X.meta
        reasons = q_z = None
        if self.stop_reason is not None:
            reasons = meta[self.stop_reason].to_numpy()
        if self.q_z is not None:
            q_z = one_per_run(meta[self.q_z].to_numpy(), "q_z", len(X))
        traces = {name: X[name] for name in X.channels or ()}
        sample = Sample(traces, y, np.ones(len(X)), q_z=q_z)
        try:
            return select_runs(sample, recorded_stops(meta, reasons), self.censored)
        except RowError as error:  # rows of a batch are not rows of the source
            raise ValueError(f"run {run_label(X.ids[error.row])}: {error.text}") from error


def batch_selection(
    batches: Any,
    calibrator: Any,
    censored: Any,
    stop_reason: Any,
    by: Any,
) -> BatchSelection:
    """Check that what is given of single runs is columns that the batches keep."""
    if calibrator is not None and not isinstance(calibrator, str):
        raise ValueError(
            f"batches are calibrated by {', '.join(map(repr, CALIBRATORS))} or None, got "
            f"calibrator={calibrator!r}"
        )
    columns = batches.columns.meta
    q_z = None
    if not (isinstance(censored, str) and censored in ("failure", "drop")):
        q_z = censored
        censored = "q_z"
    named = [("censored", q_z), ("stop_reason", stop_reason)]
    named += [("by", name) for name in (by.values() if isinstance(by, Mapping) else [by])]
    for part, name in named:
        if name is not None and not isinstance(name, str):
            raise ValueError(f"{part} of batches is a column, got {type(name).__name__}")
        if name is not None and name not in columns:
            raise ValueError(
                f"{part}: {unknown_name('column', name, columns)}; iter_batches(meta=...) "
                f"says which are read"
            )
    return BatchSelection(censored, q_z, stop_reason)


class RowSums:
    """Metrics of one row of the report, added up."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self.scores = TPSAccumulator(options.scores, options.weights)
        self.steps = CalibrationAccumulator(options.weights)
        self.runs = RankingAccumulator(options.settings.phi, options.weights)
        self.costs = np.zeros(len(_COSTS))

    def add(self, runs: LabelledRuns, X: TrajectoryArray) -> None:
        """Add trusted runs with forecasts."""
        is_outside = outside_unit(X.cells)
        if is_outside.any():
            cell = int(np.argmax(is_outside))
            raise ValueError(
                f"{X.place(cell, with_row=False)}: forecast {X.cells[cell]:g} lies outside [0, 1]. "
                f"Batches hold probabilities; divide percentages by 100, or turn the signal into "
                f"probabilities first"
            )
        X = check_values(X, probabilities=True)
        phi = self.options.settings.phi
        if phi == "weighted":  # by what is at hand
            confidence = weighted_mean(X, runs.weight)
        else:
            confidence = collapse(X, phi, self.options.weights)
        self.runs._add_collapsed(runs.label, confidence)
        self.steps._add(runs, X.cells)
        self.scores._add(runs, X.cells)
        self.costs += _costs(runs.label, confidence)

    def of_base_rate(self) -> RowSums:
        """Return the sums of the best constants, for steps and for runs, as the only forecasts."""
        n_runs = self.runs.sums[:2].sum(axis=1)  # failures, successes
        rate = float(n_runs[1] / n_runs.sum())
        of_steps = self.scores.success_rate
        if self.options.weights.is_own:
            of_steps = rate
        base = RowSums(self.options)
        base.scores = self.scores._constant(of_steps)
        base.steps = self.steps._constant(of_steps)
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
        options = self.options
        scores = self.scores.compute()["value"].to_numpy()
        metrics = dict(zip(options.score_names, scores.tolist(), strict=True))
        steps = self.steps.compute(options.scores[0])
        metrics |= {name: steps[name] for name in steps.index if name.startswith("S-ECE")}
        metrics[options.miscalibration] = steps["miscalibration"]
        metrics |= self.runs.compute()["value"].to_dict()
        return metrics | dict(zip(_COSTS, (self.costs / self.scores.n_runs).tolist(), strict=True))


def _costs(label: FloatArray, confidence: FloatArray) -> FloatArray:
    """Add up what each run costs by each metric."""
    return np.array([metric.cost(confidence, label).sum() for metric in _COSTS.values()])


class HashSample:
    """Whole clusters of the smallest hashes, up to a number of runs: the same however they come."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.parts: list[tuple[IntArray, Batch]] = []  # hashes, and runs

    def add(self, parts: list[tuple[IntArray, Batch]]) -> None:
        """Take in runs with their hashes."""
        self.parts = self.parts + parts
        if sum(len(hashes) for hashes, _ in self.parts) > 2 * self.size:
            self.parts = self._smallest()

    def _smallest(self) -> list[tuple[IntArray, Batch]]:
        every = np.sort(np.concatenate([hashes for hashes, _ in self.parts]))
        limit = every[min(self.size, len(every)) - 1]  # whole clusters, at least one
        rows = [np.flatnonzero(hashes <= limit) for hashes, _ in self.parts]
        return [
            (hashes[drawn], runs.take(drawn))
            for (hashes, runs), drawn in zip(self.parts, rows, strict=True)
            if len(drawn)
        ]

    def runs(self) -> Batch:
        """Return the runs of the sample."""
        y, X, groups = zip(*(runs for _, runs in self._smallest()), strict=True)
        clusters = None
        if groups[0] is not None:
            clusters = np.concatenate(groups)
        return Batch(np.concatenate(y), TrajectoryArray.concat(X), clusters)


class Pass:
    """Metrics of each predictor, added up by halves of the runs; which half goes by a hash.

    Without `maps` they are of forecasts as given, and runs are counted and drawn; with them, of
    forecasts calibrated by the map of the other half.
    """

    def __init__(
        self,
        options: Options,
        selection: BatchSelection,
        names: Sequence[str],
        maps: Mapping[tuple[str, int], Any] | None = None,
    ) -> None:
        self.options = options
        self.selection = selection
        self.maps = maps
        self.rows = {(name, half): RowSums(options) for name in names for half in (0, 1)}
        self.sample = HashSample(SAMPLE_RUNS)
        self.exclusions: Counter[Exclusion] = Counter()
        self.stops: Counter[tuple[str, str]] = Counter()  # by what a stop made of them
        self.filled: Counter[str] = Counter()  # values that were not stated, of all steps
        self.n_cells = 0  # steps of all runs, those that do not count among them
        self.counts = Counts()

    def update(self, y: NDArray[Any], X: TrajectoryArray, groups: NDArray[Any] | None) -> None:
        """Add a batch."""
        if self.options.settings.missing == "ffill":
            filled = X.ffill()
            n_filled = (np.isnan(X.cells) & ~np.isnan(filled.cells)).sum(axis=0)
            X = filled
            self.filled.update(dict(zip(X.channels or (), n_filled.tolist(), strict=True)))
            self.n_cells += len(X.cells)
        counted = self.selection.apply(y, X)
        scored = leave_out_incomplete(counted, counted.complete())
        self.exclusions.update(scored.exclusions)
        self.counts += Counts.of_outcomes(counted.y, counted.labels)
        if counted.stops is not None:
            self.stops.update(counted.stops.stop_counts)
        batch = Batch(y, X, groups).take(scored.source_rows)._replace(y=scored.y)
        half = batch.hashes() & 1  # another bit than the sample's
        for k in (0, 1):
            rows = np.flatnonzero(half == k)
            if len(rows):
                self._add(batch.take(rows), scored.labels[rows], k)

    def _add(self, batch: Batch, label: FloatArray, half: int) -> None:
        """Add runs of one half that are scored."""
        runs = LabelledRuns(label, batch.X, self.options.weights, batch.groups)
        for (name, k), sums in self.rows.items():
            if k == half:
                X = batch.X[name]
                if self.maps is not None:
                    X = X.with_cells(self.maps[name, 1 - half](X.cells))
                sums.add(runs, X)
        self.counts += Counts.of_scored(batch.y, batch.X, self.options.weights)
        if self.maps is None:
            self.sample.add([(batch.hashes(), batch)])

    def merge(self, other: Self) -> None:
        """Add another's sums."""
        self.exclusions = self.exclusions + other.exclusions
        self.stops = self.stops + other.stops
        self.filled = self.filled + other.filled
        self.n_cells += other.n_cells
        self.counts += other.counts
        self.sample.add(other.sample.parts)
        for key, sums in self.rows.items():
            sums.merge(other.rows[key])

    def of_all(self) -> dict[str, RowSums]:
        """Return the sums of each predictor over both halves."""
        of_all = {name: deepcopy(sums) for (name, half), sums in self.rows.items() if half == 0}
        for name, sums in of_all.items():
            sums.merge(self.rows[name, 1])
        return of_all

    def notes(self) -> list[Note]:
        """Return what a reader should know of the runs."""
        facts = {"n": len(self.sample.runs().y), "n_runs": self.counts.n_runs}
        filled = {name: n / self.n_cells for name, n in self.filled.items() if n}
        notes = stop_notes(self.stops)
        if facts["n"] < facts["n_runs"]:
            notes.insert(0, Note("all", "sampled", facts))
        return notes + [Note(name, "filled", {"share": share}) for name, share in filled.items()]


def evaluate_batches(
    batches: Any,
    options: Options,
    selection: BatchSelection,
    calibrator: str | None,
    evaluate: Callable[..., AnyEvaluation],
) -> AnyEvaluation:
    """Go through the batches once or twice; `evaluate` makes the report of the sample."""
    maker = calibrator_maker(calibrator, options.weights)
    names = batches.columns.values
    first: Pass = batches.reduce(Pass(options, selection, names))
    if not first.counts.n_runs:
        raise ValueError("no run counts; give runs with a value of every predictor")
    y, X, groups = first.sample.runs()
    reasons = None
    censored: Any = selection.censored
    if selection.stop_reason is not None:
        reasons = X.meta[selection.stop_reason].to_numpy()
    if selection.q_z is not None:
        censored = X.meta[selection.q_z].to_numpy()
    report = evaluate(X, y, groups=groups, censored=censored, stop_reason=reasons)
    raw = first.of_all()
    calibrated: dict[str, RowSums] = {}
    if maker is not None:
        maps = {key: sums.steps.fit(maker(True)) for key, sums in first.rows.items()}
        second: Pass = batches.reduce(Pass(options, selection, names, maps))
        calibrated = second.of_all()
        if second.counts.n_runs != first.counts.n_runs:
            raise ValueError(
                f"the source had {first.counts.n_runs} runs at first and {second.counts.n_runs} "
                f"when it was read again to calibrate; give one that can be read twice, such as a "
                f"folder, or pass calibrator=None"
            )
    rows = {(name, AS_GIVEN): sums for name, sums in raw.items()}
    rows |= {(name, RECALIBRATED): sums for name, sums in calibrated.items()}
    sums = next(iter(raw.values()))
    rows[BASE_RATE, CONSTANT] = sums.of_base_rate()
    rate = sums.scores.success_rate
    values = {key: sums.values() for key, sums in rows.items()}
    intervals = _of_all(report.intervals, values, np.sqrt(len(X) / first.counts.n_runs))
    methods = report.interval_methods.copy()
    for key, sums in rows.items():
        for metric, ends in sums.ends(options.settings.confidence_level).items():
            intervals.loc[(*key, metric), [*VALUE[1:], *MARGIN[1:]]] = ends
            methods.loc[(*key, metric), [VALUE[0], MARGIN[0]]] = INFLUENCE
    n_unknown = sum(n for (kind, _), n in first.stops.items() if kind == UNKNOWN)
    n_of = {"observed": first.counts.n_censored, "unknown": n_unknown}
    others = report.other_choices.items()
    return replace(
        report,
        intervals=intervals,
        interval_methods=methods,
        exclusions=first.exclusions,
        # of stop reasons that a log noted as unknown, at least those of the sample
        other_choices={choice: (max(n, n_of[choice]), cards) for choice, (n, cards) in others},
        facts=replace(report.facts, rate=rate, **asdict(first.counts)),
        remarks=[
            *first.notes(),
            *(note for note in report.remarks if (note.predictor, note.kind) != ("stops", "text")),
        ],
    )


def _of_all(
    sampled: pd.DataFrame, values: Mapping[Key, Mapping[str, float]], shrink: float
) -> pd.DataFrame:
    """Put the values of all runs in place of the sample's, and shrink the intervals around them."""
    place = {level[0]: sampled.columns.get_indexer(level) for level in LEVELS}
    numbers = sampled.to_numpy(dtype=float).copy()
    for row, (predictor, form, metric) in zip(numbers, sampled.index, strict=True):
        value = values.get((predictor, form), {}).get(metric)
        if value is None:
            continue
        # what is above the alive rates stays that of the sample
        others = {"value": {metric: 0.0}, "margin": values[BASE_RATE, CONSTANT]}
        if form == RECALIBRATED:
            others["over_as_given"] = values[predictor, AS_GIVEN]
        for level, other in others.items():
            if metric in other:
                row[place[level]] = _moved(row[place[level]], value - other[metric], shrink)
        if "ECE" in metric:
            row[place["value"]] = np.clip(row[place["value"]], 0, 1)
    return pd.DataFrame(numbers, sampled.index, sampled.columns)


def _moved(cell: FloatArray, value: float, shrink: float) -> FloatArray:
    """Return another value with an interval as wide as this one's, but for the number of runs."""
    if np.isnan(cell[0]):
        return cell
    ends = value + (cell[1:] - cell[0]) * shrink
    if cell[1] == 0:  # a bound, as of the miscalibration
        ends[0] = 0.0
    return np.array([value, *ends])
