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

from trajscore.calibration.calibrators import CALIBRATORS, calibrator_maker
from trajscore.core.array import TrajectoryArray
from trajscore.core.checks import Sample, check_values
from trajscore.core.errors import RowError
from trajscore.core.stops import UNKNOWN, read_stops
from trajscore.core.values import (
    AnyArray,
    FloatArray,
    one_per_run,
    outside_unit,
    run_label,
    unknown_name,
)
from trajscore.core.weights import collapse
from trajscore.evaluation.doubts import stop_notes
from trajscore.evaluation.evaluation import Evaluation
from trajscore.evaluation.options import (
    AS_GIVEN,
    BASE_RATE,
    CONSTANT,
    FRACTIONS,
    INFLUENCE,
    MARGIN,
    OVER_AS_GIVEN,
    RECALIBRATED,
    RUN_METRICS,
    STEP_ERRORS,
    VALUE,
    Note,
    Options,
)
from trajscore.evaluation.runs import (
    Counts,
    EvaluatedRuns,
    Exclusion,
    leave_out_incomplete,
    select_runs,
)
from trajscore.metrics.run_metrics import CostMetric
from trajscore.streaming import CalibrationAccumulator, RankingAccumulator, TPSAccumulator
from trajscore.streaming.accumulator import LabelledRuns
from trajscore.streaming.batches import Batch

AnyEvaluation = TypeVar("AnyEvaluation", bound=Evaluation)
SAMPLE_RUNS = 20_000
"""Runs that intervals, pictures and all tables but the first are made of."""


@dataclass(frozen=True)
class BatchSelection:
    """Which runs count, and as what; q_z and stop reasons are columns of `meta`."""

    censored: str
    q_z: str | None
    stop_reason: str | None

    def apply(self, y: AnyArray, X: TrajectoryArray) -> EvaluatedRuns:
        """Select the runs that count."""
        q_z = None
        if self.q_z is not None:
            q_z = one_per_run(X.meta[self.q_z], "q_z", len(X))
        traces = {name: X[name] for name in X.channels or ()}
        sample = Sample(traces, y, np.ones(len(X)), q_z=q_z)
        try:
            stops = read_stops(y, X.meta, X.meta.get(self.stop_reason))
            return select_runs(sample, stops, self.censored)
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


@dataclass
class RowSums:
    """Metrics of one row of the report, added up."""

    options: Options
    scores: TPSAccumulator
    steps: CalibrationAccumulator
    runs: RankingAccumulator
    costs: Any = 0.0

    @classmethod
    def of_none(cls, options: Options) -> Self:
        """Return the sums of no runs."""
        return cls(
            options,
            TPSAccumulator(options.scores, options.weights),
            CalibrationAccumulator(options.weights),
            RankingAccumulator(options.settings.phi, options.weights),
        )

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
        confidence = collapse(X, self.options.settings.phi, runs.weights)
        self.runs.add_collapsed(runs.label, confidence)
        self.steps.add(runs, X.cells)
        self.scores.add(runs, X.cells)
        self.costs = self.costs + _costs(runs.label, confidence)

    def of_base_rate(self) -> RowSums:
        """Return the sums of the best constants, for steps and for runs, as the only forecasts."""
        n_runs = self.runs.sums[:2].sum(axis=1)  # successes, failures
        rate = float(n_runs[0] / n_runs.sum())
        of_steps = self.scores.success_rate
        if self.options.weights.is_own:
            of_steps = rate
        success, failure = (_costs(np.array([label]), np.array([rate])) for label in (1, 0))
        return RowSums(
            self.options,
            self.scores.constant(of_steps),
            self.steps.constant(of_steps),
            self.runs.constant(rate),
            n_runs[0] * success + n_runs[1] * failure,
        )

    def merge(self, other: Self) -> None:
        """Add another's sums."""
        self.scores.merge(other.scores)
        self.steps.merge(other.steps)
        self.runs.merge(other.runs)
        self.costs = self.costs + other.costs

    def table(self) -> pd.DataFrame:
        """Return all metrics by name, of which the scores have intervals."""
        options = self.options
        scores = self.scores.compute(options.settings.confidence_level)
        scores = scores.set_axis(options.score_names)[[*VALUE, *MARGIN]]
        steps = self.steps.compute(options.scores[0])
        steps = steps.rename({"miscalibration": options.miscalibration})
        errors = steps.reindex([*STEP_ERRORS, options.miscalibration])
        others = [errors, self.runs.compute()["value"], self.costs / self.scores.n_runs]
        return pd.concat([scores, pd.concat(others).to_frame(VALUE[0])])


def _costs(label: FloatArray, confidence: FloatArray) -> pd.Series:
    """Add up what each run costs by each metric."""
    return pd.Series(
        {
            name: metric.cost(confidence, label).sum()
            for name, metric in RUN_METRICS.items()
            if isinstance(metric, CostMetric)
        }
    )


def smallest(parts: Sequence[Batch]) -> list[Batch]:
    """Draw whole clusters of the smallest hashes, the same however the runs come."""
    hashes = [part.hashes() for part in parts]
    every = np.sort(np.concatenate(hashes))
    limit = every[min(SAMPLE_RUNS, len(every)) - 1]  # at least one cluster
    return [
        part.take(np.flatnonzero(of_runs <= limit))
        for part, of_runs in zip(parts, hashes, strict=True)
        if (of_runs <= limit).any()
    ]


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
        self.rows = {(name, half): RowSums.of_none(options) for name in names for half in (0, 1)}
        self.parts: list[Batch] = []  # of which the sample is drawn
        self.exclusions: Counter[Exclusion] = Counter()
        self.stops: Counter[tuple[str, str]] = Counter()  # by what a stop made of them
        self.filled: Counter[str] = Counter()  # values that were not stated, of all steps
        self.n_cells = 0  # steps of all runs, those that do not count among them
        self.counts = Counts()

    def update(self, y: AnyArray, X: TrajectoryArray, groups: AnyArray | None) -> None:
        """Add a batch."""
        if self.options.settings.missing == "ffill":
            filled = X.ffill()
            n_filled = (np.isnan(X.cells) & ~np.isnan(filled.cells)).sum(axis=0)
            X = filled
            self.filled.update(dict(zip(X.channels or (), n_filled.tolist(), strict=True)))
            self.n_cells += len(X.cells)
        counted = self.selection.apply(y, X)
        scored = leave_out_incomplete(counted)
        self.exclusions.update(scored.exclusions)
        if counted.stops is not None:
            self.stops.update(counted.stops.stop_counts)
        self.counts += Counts.of(counted, scored, self.options.weights)
        if not len(scored):
            return
        batch = Batch(y, X, groups).take(scored.source_rows)._replace(y=scored.y)
        if self.maps is None:
            self._keep([batch])
        half = batch.hashes() & 1  # another bit than the sample's
        for k in np.unique(half).tolist():
            rows = np.flatnonzero(half == k)
            part = batch.take(rows)
            labels = scored.labels[rows]
            runs = LabelledRuns(labels, part.X, self.options.weights, part.groups)
            for name in X.channels or ():
                trace = part.X[name]
                if self.maps is not None:
                    trace = trace.with_cells(self.maps[name, 1 - k](trace.cells))
                self.rows[name, k].add(runs, trace)

    def _keep(self, parts: list[Batch]) -> None:
        self.parts = self.parts + parts
        if sum(len(part.y) for part in self.parts) > 2 * SAMPLE_RUNS:
            self.parts = smallest(self.parts)

    def sample(self) -> Batch:
        """Return the runs that were drawn."""
        y, X, groups = zip(*smallest(self.parts), strict=True)
        clusters = None
        if groups[0] is not None:
            clusters = np.concatenate(groups)
        return Batch(np.concatenate(y), TrajectoryArray.concat(X), clusters)

    def merge(self, other: Self) -> None:
        """Add another's sums."""
        for name in ("exclusions", "stops", "filled", "n_cells", "counts"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self._keep(other.parts)
        for key, sums in self.rows.items():
            sums.merge(other.rows[key])

    def of_all(self) -> dict[str, RowSums]:
        """Return the sums of each predictor over both halves."""
        of_all = {name: deepcopy(sums) for (name, half), sums in self.rows.items() if half == 0}
        for name, sums in of_all.items():
            sums.merge(self.rows[name, 1])
        return of_all

    def notes(self, n_drawn: int) -> list[Note]:
        """Return what a reader should know of the runs."""
        notes = stop_notes(self.stops)
        n_runs = self.counts.n_runs
        if n_drawn < n_runs:
            notes.insert(0, Note("all", "sampled", {"n": n_drawn, "n_runs": n_runs}))
        filled = {name: {"share": n / self.n_cells} for name, n in self.filled.items() if n}
        return notes + [Note(name, "filled", facts) for name, facts in filled.items()]


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
    y, X, groups = first.sample()
    censored = X.meta.get(selection.q_z, selection.censored)
    reasons = X.meta.get(selection.stop_reason)
    report = evaluate(X, y, groups=groups, censored=censored, stop_reason=reasons)
    passes = {AS_GIVEN: first}
    if maker is not None:
        maps = {key: sums.steps.fit(maker(True)) for key, sums in first.rows.items()}
        second: Pass = batches.reduce(Pass(options, selection, names, maps))
        passes[RECALIBRATED] = second
        if second.counts.n_runs != first.counts.n_runs:
            raise ValueError(
                f"the source had {first.counts.n_runs} runs at first and {second.counts.n_runs} "
                f"when it was read again to calibrate; give one that can be read twice, such as a "
                f"folder, or pass calibrator=None"
            )
    rows = {(name, form): sums for form, of in passes.items() for name, sums in of.of_all().items()}
    sums = next(iter(rows.values()))
    rows[BASE_RATE, CONSTANT] = sums.of_base_rate()
    rate = sums.scores.success_rate
    table = pd.concat(
        {key: sums.table() for key, sums in rows.items()}, names=report.intervals.index.names
    )
    shrink = np.sqrt(len(X) / first.counts.n_runs)
    intervals = _of_all(report.intervals, table[VALUE[0]], shrink)
    scores = table[[*VALUE[1:], *MARGIN[1:]]].dropna()
    intervals.update(scores)
    methods = report.interval_methods.copy()
    methods.loc[scores.index, [VALUE[0], MARGIN[0]]] = INFLUENCE
    n_unknown = sum(n for (kind, _), n in first.stops.items() if kind == UNKNOWN)
    n_of = {"observed": first.counts.n_censored, "unknown": n_unknown}
    others = report.otherwise.items()
    return replace(
        report,
        intervals=intervals,
        interval_methods=methods,
        exclusions=first.exclusions,
        options=options,
        # of stop reasons that a log noted as unknown, at least those of the sample
        otherwise={choice: (max(n, n_of[choice]), best) for choice, (n, best) in others},
        facts=replace(report.facts, rate=rate, **asdict(first.counts)),
        remarks=[
            *first.notes(len(y)),
            *(note for note in report.remarks if note.kind != "stops"),
        ],
    )


def _of_all(sampled: pd.DataFrame, every: pd.Series, shrink: float) -> pd.DataFrame:
    """Put the values of all runs in place of the sample's, and shrink the intervals around them.

    What is above the alive rates stays that of the sample.
    """
    intervals = sampled.copy()
    of_all = every.reindex(sampled.index)
    metric = sampled.index.get_level_values("metric")
    base = every.xs(CONSTANT, level="form").droplevel("predictor").reindex(metric).to_numpy()
    as_given = every.xs(AS_GIVEN, level="form").reindex(sampled.index.droplevel("form")).to_numpy()
    for columns, other in ((VALUE, 0.0), (MARGIN, base), (OVER_AS_GIVEN, as_given)):
        estimate = sampled[columns[0]]
        new = of_all - other
        moved = sampled[columns].sub(estimate, axis=0).mul(shrink).add(new, axis=0)
        is_bound = sampled[columns[1]] == 0  # as of the miscalibration
        moved[columns[1]] = moved[columns[1]].mask(is_bound, 0.0)
        intervals[columns] = moved.where(new.notna() & estimate.notna(), sampled[columns])
    is_fraction = metric.isin(FRACTIONS) & of_all.notna().to_numpy()
    intervals.loc[is_fraction, VALUE] = intervals.loc[is_fraction, VALUE].clip(0, 1)
    return intervals
