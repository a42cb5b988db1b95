"""Which runs are judged: checked at the door, without those that no budget stopped."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from trajscore.core.array import TrajectoryArray
from trajscore.core.errors import ArgumentError
from trajscore.core.estimator import parts_of
from trajscore.core.outcomes import CENSORED, FAILURE, SUCCESS, as_labels, opposite, outcomes_vary
from trajscore.core.sample import Sample, check_sample
from trajscore.core.stops import (
    COMPLETE,
    EXCLUDED,
    Stops,
    is_scored,
    normalize_reasons,
    settle_stops,
)
from trajscore.core.type_aliases import BoolArray, FloatArray, IntArray
from trajscore.core.values import check_choice, number_of
from trajscore.core.within_runs import whole_runs
from trajscore.evaluation.options import REFERENCES, Note
from trajscore.inference.units import Units, any_units

RecordedStops = tuple[NDArray[Any] | None, NDArray[Any] | None]
"""Stop reasons of runs and what they were taken to mean, as `recorded_stops` returns them."""
MISSING = ("same_runs", "ffill")
"""What to do with runs that have missing values."""
FFILL = ("EvaluationOptions.missing", "ffill")
"""The argument that repeats the value before, and its value."""

# why runs are left out
LOST = "lost by the harness: {}"
STOPPED = "no outcome; stopped by {}, not by a budget"
UNSTATED = "no outcome and no stop reason"
UNOBSERVED = "the outcome was not observed"  # with ``censored="drop"``
# why runs that count are not scored, where no value is missing
NO_STEP = "ended before the first step"


@dataclass(frozen=True)
class Coverage:
    """The runs that rows of the report are of."""

    y: NDArray[Any]  # -1 where not observed
    labels: FloatArray  # the same in [0, 1], behind every number: what unobserved runs stand for
    groups: IntArray | None
    source_rows: IntArray  # row of each run in the input

    def __len__(self) -> int:
        return len(self.y)

    @cached_property
    def observed(self) -> BoolArray:
        """Whether each run's outcome was observed."""
        return np.asarray(self.y != CENSORED)

    @property
    def is_mixed(self) -> bool:
        """Whether outcomes differ among the runs that were observed."""
        return outcomes_vary(self.y)

    @cached_property
    def opposite_labels(self) -> FloatArray:
        """The outcomes that did not happen."""
        return opposite(self.labels)

    @cached_property
    def units(self) -> Units:
        """The units that vary: runs, or clusters of them."""
        return any_units(self.groups, len(self))

    def take(self, rows: IntArray | BoolArray) -> Coverage:
        """Cover some of these runs, as if there were no others."""
        groups = None if self.groups is None else self.groups[rows]
        return Coverage(self.y[rows], self.labels[rows], groups, self.source_rows[rows])


@dataclass(frozen=True)
class Judged:
    """The runs that count in the order of their ids, and how many were left out, by reason."""

    traces: dict[str, TrajectoryArray]
    runs: Coverage
    excluded: dict[str, int]  # runs left out, by reason
    stops: Stops | None  # how all runs given ended; None: not known
    # runs that count, but whose forecasts are not scored, by reason
    unscored: dict[str, int] = field(default_factory=dict)

    def take(self, rows: IntArray) -> Judged:
        """Keep some of the runs, as if there were no others."""
        if len(rows) == len(self.runs):
            return self
        traces = {name: trace[rows] for name, trace in self.traces.items()}
        return replace(self, traces=traces, runs=self.runs.take(rows))


def check_predictors(X: Any, y: ArrayLike | None, groups: Any, q_z: Any) -> Sample:
    """Check what `evaluate` is given, and name each predictor's traces."""
    return check_sample(
        X, y, groups=groups, q_z=q_z, several=True, reserved=REFERENCES,
        single_channel=True, allow_missing=True, allow_empty=True,
    )  # fmt: skip


def censored_as(censored: Any) -> tuple[str, Any]:
    """Return what unobserved runs stand for, and the q_z where these are given."""
    if censored is None or isinstance(censored, (str, bool)):
        check_choice(censored, "censored", ("failure", "drop"))
        return str(censored), None
    return "q_z", censored


def choose_runs(
    sample: Sample, stops: RecordedStops, censored: str, *, needs_both: bool = True
) -> Judged:
    """Leave out runs that no budget stopped, and put the others in the order of their ids."""
    # before rows are put in another order, so that a message names the row that was given
    ended = counted(sample.y, *stops, censored, sample.q_z)
    if problem := outcome_problem(ended.y[ended.counts], needs_both):
        lost = (f"; left out: {number_of_runs(n)} ({why})" for why, n in ended.excluded.items())
        raise ValueError(problem + "".join(lost))
    order = sample.id_order()
    order = order[ended.counts[order]]
    chosen = sample.take(order)
    runs = Coverage(ended.y[order], ended.label[order], chosen.groups, order)
    return Judged(chosen.traces, runs, ended.excluded, ended.stops)


def under_other_choices(
    sample: Sample, reasons: NDArray[Any] | None, censored: str, judged: Judged
) -> dict[str, tuple[int, Judged | None]]:
    """Return how many runs could be counted otherwise, and the runs that would be judged then.

    None where these would not do. Of "observed", runs without an outcome are left out; of "lost",
    those that the harness lost count as recorded; of "unknown", those are left out that count
    although their stop reason is not known.
    """
    observed = judged.runs.observed
    others: dict[str, tuple[int, Judged | None]] = {}
    if n_hidden := int((~observed).sum()):
        others["observed"] = n_hidden, judged.take(np.flatnonzero(observed))
    stops = judged.stops
    if stops is None:
        return others
    lost = (stops.mechanism == EXCLUDED) & (stops.y != CENSORED)
    for name, rows, kind in (("lost", lost, COMPLETE), ("unknown", stops.unknown, EXCLUDED)):
        if n := int(rows.sum()):
            otherwise = reasons, np.where(rows, kind, stops.mechanism)
            try:
                other = leave_out_missing(choose_runs(sample, otherwise, censored), [])
            except ValueError:  # there are too few runs then
                other = None
            others[name] = n, other
    return others


class Counted(NamedTuple):
    """Which runs count, and as what, after the rule of `trajscore.core.stops`."""

    y: NDArray[Any]
    label: FloatArray
    counts: BoolArray
    excluded: dict[str, int]  # runs left out, by reason
    stops: Stops | None  # how they ended; None: not known


def counted(
    y: NDArray[Any],
    reasons: NDArray[Any] | None,
    kinds: NDArray[Any] | None,
    censored: str = "failure",
    q_z: FloatArray | None = None,
) -> Counted:
    """Return the outcomes of runs, whether each counts, and how many do not, by what stopped it."""
    counts, excluded = np.ones(len(y), dtype=bool), {}
    stops = None
    if reasons is not None:
        stops = settle_stops(y, reasons, kinds=kinds)
        y, counts = stops.y, is_scored(stops.mechanism)
        lost = stops.mechanism == EXCLUDED
        unseen = ~counts & ~lost
        stated = normalize_reasons(reasons) != ""
        excluded = {
            say.format(name): n
            for rows, say in ((lost, LOST), (unseen & stated, STOPPED))
            for name, n in sorted(Counter(reasons[rows].tolist()).items(), key=str)
        }
        excluded[UNSTATED] = int((unseen & ~stated).sum())
    labels = as_labels(np.where(counts, y, FAILURE), censored=censored, q_z=q_z)
    excluded[UNOBSERVED] = int((~labels.is_counted).sum())
    excluded = {why: n for why, n in excluded.items() if n}
    return Counted(y, labels.value, counts & labels.is_counted, excluded, stops)


def number_of_runs(n: int) -> str:
    """Write a number of runs: "1 run", "2,000 runs"."""
    return number_of(n, "run")


def outcome_problem(y: NDArray[Any], needs_both: bool = True) -> str:
    """Say why these outcomes cannot be evaluated; empty if they can."""
    observed = y[y != CENSORED]
    if len(y) < 2:
        return f"evaluation needs at least 2 runs, got {len(y)}"
    if not len(observed):
        return f"none of the {len(y)} runs has an observed outcome; give outcomes for some of them"
    if needs_both and not outcomes_vary(y):
        n = len(y) - len(observed)
        hidden = f", and {number_of_runs(n)} without an outcome" if n else ""
        if n and observed[0] == SUCCESS:
            hidden += " (if such a run failed, its outcome is 0, not -1 or missing)"
        same = f"every observed outcome ({len(observed)}) is {observed[0]:g}"
        return f"{same}{hidden}; an evaluation needs both outcomes"
    return ""


def fill_forward(sample: Sample, missing: str, notes: list[Note]) -> Sample:
    """Let a stated value hold until the next one is, if that is wanted."""
    if missing != "ffill":
        return sample
    filled = {name: X.ffill() for name, X in sample.traces.items()}
    for name, X in sample.traces.items():
        if n_filled := int((np.isnan(X.cells) & ~np.isnan(filled[name].cells)).sum()):
            notes.append(Note(name, "filled", {"share": n_filled / len(X.cells)}))
    return replace(sample, traces=filled)


def leave_out_missing(judged: Judged, notes: list[Note], *, may_fill: bool = True) -> Judged:
    """Leave out predictors with too few complete runs, then the forecasts of incomplete runs.

    An error proposes to repeat values, if that `may_fill` enough runs.
    """
    whole = {name: whole_runs(X) for name, X in judged.traces.items()}
    for name in [name for name, rows in whole.items() if not judged.runs.take(rows).is_mixed]:
        text = "left out; it has too few complete runs of both outcomes"
        notes.append(Note(name, "text", {"text": text}))
        del whole[name]
    if not whole:
        filled = [whole_runs(X.ffill()) for X in judged.traces.values()]
        remedy = "give runs a value at every step"
        if may_fill and any(judged.runs.take(rows).is_mixed for rows in filled):
            remedy = "{argument} repeats the value before"
        raise ArgumentError(
            f"no predictor has enough runs without missing values; each of "
            f"{', '.join(judged.traces)} needs complete runs of both outcomes; {remedy}",
            *FFILL,
        )
    common = np.logical_and.reduce(list(whole.values()))
    if not judged.runs.take(common).is_mixed:
        filled = [whole_runs(X.ffill()) for X in judged.traces.values()]
        helps = may_fill and judged.runs.take(np.logical_and.reduce(filled)).is_mixed
        raise ArgumentError(
            f"{int(common.sum())} of {len(common)} runs have a value of every predictor at every "
            f"step, and they do not include both a success and a failure; judge one predictor at a "
            f"time" + ", or pass {argument} to let a value hold until the next one" * helps,
            *FFILL,
        )
    traces = {name: judged.traces[name] for name in whole}
    has_step = next(iter(traces.values())).lengths > 0
    unscored = unscored_runs(whole, has_step)
    return replace(judged, traces=traces, unscored=unscored).take(np.flatnonzero(common))


def unscored_runs(whole: dict[str, BoolArray], has_step: BoolArray) -> dict[str, int]:
    """Count the runs without a step, and those with missing values by whose are missing."""
    lost = np.stack([~rows for rows in whole.values()], axis=1)
    patterns, counts = np.unique(lost[lost.any(axis=1) & has_step], axis=0, return_counts=True)
    n_without = int(len(has_step) - has_step.sum())
    unscored = {NO_STEP: n_without} if n_without else {}
    for pattern, n in zip(patterns[::-1], counts[::-1], strict=True):
        *others, last = (name for name, is_lost in zip(whole, pattern, strict=True) if is_lost)
        of_several = f"values of {', '.join(others)} and {last} are missing"
        unscored[of_several if others else f"a value of {last} is missing"] = int(n)
    return unscored


def knows_end(end: Any, calibrator: Any) -> bool | None:
    """Return whether predictors know that a run has ended; None: not known."""
    if end is None:
        ends = [part.end for part in parts_of(calibrator) if hasattr(part, "end")]
        return any(own is not None for own in ends) if ends else None
    if not isinstance(end, (bool, np.bool_)):
        raise ValueError(
            f"end must be True, False or None, got {end!r}; True says that predictors know which "
            f"step is the last"
        )
    return bool(end)
