"""Which runs are evaluated, and why others are not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import astuple, dataclass, replace
from enum import Enum
from functools import cached_property
from itertools import compress
from operator import add
from typing import Any, Self

import numpy as np
import pandas as pd

from trajscore.core.array import TrajectoryArray
from trajscore.core.checks import Sample
from trajscore.core.errors import CannotMeasureError
from trajscore.core.estimator import parts_of
from trajscore.core.outcomes import (
    CENSORED,
    FAILURE,
    SUCCESS,
    as_labels,
    opposite,
    outcomes_vary,
)
from trajscore.core.stops import (
    COMPLETE,
    EXCLUDED,
    Stops,
    is_scored,
)
from trajscore.core.values import AnyArray, BoolArray, FloatArray, IntArray, check_choice, number_of
from trajscore.core.weights import StepWeights
from trajscore.core.within_runs import run_numbers, whole_runs
from trajscore.evaluation.options import Note
from trajscore.inference.intervals import Units, any_units

MISSING = ("same_runs", "ffill")
"""What to do with runs that have missing values."""
UNOBSERVED_AS = ("failure", "drop")
"""What to do with runs that have no outcome, unless their chances of success are given."""


@dataclass(frozen=True)
class _Kind:
    words: str
    is_of_scores: bool = False  # the runs count in success rates; their forecasts are not scored
    is_chosen: bool = False  # the user asked for it, as by ``censored="drop"``


class ExclusionKind(Enum):
    """Why runs are left out, of every number or of scores alone."""

    LOST = _Kind("lost by the harness: {reason}")
    STOPPED = _Kind("no outcome; stopped by {reason}, not by a budget")
    NO_STOP_REASON = _Kind("no outcome and no stop reason")
    UNOBSERVED = _Kind("the outcome was not observed", is_chosen=True)
    NO_STEP = _Kind("ended before the first step", is_of_scores=True)
    MISSING_VALUES = _Kind("{values} missing", is_of_scores=True)


@dataclass(frozen=True)
class Exclusion:
    """Why runs are left out, with the stop reason or the predictors that decide it."""

    kind: ExclusionKind
    stop_reason: str = ""
    predictors: tuple[str, ...] = ()  # of which values are missing

    def __str__(self) -> str:
        *others, last = self.predictors or ("",)
        values = f"a value of {last} is"
        if others:
            values = f"values of {', '.join(others)} and {last} are"
        return self.kind.value.words.format(reason=self.stop_reason, values=values)


def by_reason(exclusions: Mapping[Exclusion, int], of_scores: bool | None = None) -> dict[str, int]:
    """Return numbers of runs by reason: of those left out of every number, or of scores alone."""
    return {
        str(exclusion): n
        for exclusion, n in exclusions.items()
        if of_scores in (None, exclusion.kind.value.is_of_scores)
    }


@dataclass(frozen=True)
class EvaluatedRuns:
    """The runs that count, in the order of their ids, and how many runs are left out."""

    traces: dict[str, TrajectoryArray]  # of each predictor
    y: AnyArray  # -1 where not observed
    labels: FloatArray  # the same in [0, 1], behind every number: what unobserved runs stand for
    groups: IntArray | None
    source_rows: IntArray  # row of each run in the input
    exclusions: Counter[Exclusion]
    stops: Stops | None  # how all runs of the input ended; None: not recorded

    def __len__(self) -> int:
        return len(self.y)

    @cached_property
    def observed(self) -> BoolArray:
        """Whether each run's outcome was observed."""
        return np.asarray(self.y != CENSORED)

    @cached_property
    def units(self) -> Units:
        """The units that vary: runs, or clusters of them."""
        return any_units(self.groups, len(self))

    @cached_property
    def opposite_labels(self) -> FloatArray:
        """What each run would count as, had it ended the other way."""
        return opposite(self.labels)

    @property
    def X(self) -> TrajectoryArray:  # noqa: N802 - as everywhere
        """The first of the traces, which are equally long."""
        return next(iter(self.traces.values()))

    @property
    def ends(self) -> pd.DataFrame:
        """The outcome of each run and, where it is known, its stop reason."""
        meta = self.X.meta
        return meta.reindex(columns=meta.columns.intersection(["stop_reason"])).assign(y=self.y)

    def complete(self) -> dict[str, BoolArray]:
        """Whether each predictor has a value at every step of each run, of which there is one."""
        return {name: whole_runs(X) for name, X in self.traces.items()}

    def sample_of(self, trace: TrajectoryArray) -> Sample:
        """Return a trace of the runs with the labels that everything is scored with."""
        return Sample({"": trace}, self.labels, np.ones(len(self)), self.groups)

    def take(self, rows: IntArray) -> EvaluatedRuns:
        """Keep some of the runs, in their order, as if there were no others."""
        if np.array_equal(rows, np.arange(len(self))):
            return self
        return replace(
            self,
            traces={name: trace[rows] for name, trace in self.traces.items()},
            y=self.y[rows],
            labels=self.labels[rows],
            groups=None if self.groups is None else self.groups[rows],
            source_rows=self.source_rows[rows],
        )


@dataclass(frozen=True)
class Counts:
    """How many runs count and are scored, and how long they are."""

    n_runs: int = 0  # that are scored
    n_observed: int = 0  # of these, with an observed outcome
    n_steps: int = 0
    n_unscored: int = 0  # steps beyond the horizon
    n_beyond: int = 0  # runs with an observed outcome whose own horizon is longer than they are
    n_counted: int = 0  # that count, those without a step or with missing values among them
    n_outcomes: int = 0  # of these, that were observed
    success: float = 0.0  # sum of these outcomes
    label: float = 0.0  # sum over all that count, unobserved ones by what they stand for

    @classmethod
    def of(cls, counted: EvaluatedRuns, scored: EvaluatedRuns, weights: StepWeights) -> Self:
        """Count the runs that count, and those of them that are scored."""
        X = scored.X
        n_beyond = 0
        if X.horizon is not None:
            n_beyond = int((scored.observed & (X.horizon > X.lengths)).sum())
        return cls(
            n_runs=len(scored),
            n_observed=int(scored.observed.sum()),
            n_steps=int(X.lengths.sum()),
            n_unscored=weights.of(X).n_unscored,
            n_beyond=n_beyond,
            n_counted=len(counted),
            n_outcomes=int(counted.observed.sum()),
            success=float(counted.y[counted.observed].sum()),
            label=float(counted.labels.sum()),
        )

    def __add__(self, other: Counts) -> Self:
        return type(self)(*map(add, astuple(self), astuple(other)))

    @property
    def n_censored(self) -> int:
        """Runs that are scored without an observed outcome."""
        return self.n_runs - self.n_observed

    @property
    def success_rate(self) -> float:
        """Share of successes among the runs that count and have an observed outcome."""
        return self.success / self.n_outcomes

    @property
    def base_rate_of_runs(self) -> float:
        """Share of successes among all runs that count, as they are counted."""
        return self.label / self.n_counted


def censored_as(censored: Any) -> tuple[str, Any]:
    """Return what unobserved runs stand for, and the q_z where these are given."""
    if censored is None or isinstance(censored, (str, bool)):
        check_choice(censored, "censored", UNOBSERVED_AS)
        return str(censored), None
    return "q_z", censored


def select_runs(
    sample: Sample, stops: Stops | None, censored: str, *, keep_crashed: bool = False
) -> EvaluatedRuns:
    """Select the runs that count, in the order of their ids.

    Those do not count that the harness lost, that have no outcome although no budget stopped them
    or, with ``censored="drop"``, that have no outcome. With `keep_crashed`, runs without an outcome
    count alike whatever stopped them.
    """
    y = sample.y
    counts = np.ones(len(sample), dtype=bool)
    exclusions: Counter[Exclusion] = Counter()
    if stops is not None:
        y = stops.y
        is_lost = stops.mechanism == EXCLUDED
        counts = ~is_lost
        if not keep_crashed:
            counts = is_scored(stops.mechanism)
        is_unobserved = ~counts & ~is_lost
        for kind, rows in (
            (ExclusionKind.LOST, is_lost),
            (ExclusionKind.STOPPED, is_unobserved & stops.is_stated),
        ):
            for reason, n in sorted(Counter(map(str, stops.reasons[rows])).items()):
                exclusions[Exclusion(kind, reason)] = n
        n_unstated = int((is_unobserved & ~stops.is_stated).sum())
        exclusions[Exclusion(ExclusionKind.NO_STOP_REASON)] = n_unstated
    labels = as_labels(np.where(counts, y, FAILURE), censored=censored, q_z=sample.q_z)
    exclusions[Exclusion(ExclusionKind.UNOBSERVED)] = int((~labels.is_counted).sum())
    every = EvaluatedRuns(
        sample.traces, y, labels.value, sample.groups, np.arange(len(y)), +exclusions, stops
    )
    rows = sample.id_order()
    return every.take(rows[(counts & labels.is_counted)[rows]])


def under_other_choices(
    sample: Sample, censored: str, judged: EvaluatedRuns
) -> dict[str, tuple[int, EvaluatedRuns | None]]:
    """Return how many runs could be counted otherwise, and the runs that would be judged then.

    None where these would not do. Of "observed", runs without an outcome are left out; of "lost",
    those that the harness lost count as recorded; of "unknown", those are left out that count
    although their stop reason is not known.
    """
    others: dict[str, tuple[int, EvaluatedRuns | None]] = {}
    if n_unobserved := int((~judged.observed).sum()):
        others["observed"] = n_unobserved, judged.take(np.flatnonzero(judged.observed))
    stops = judged.stops
    if stops is None:
        return others
    lost = (stops.mechanism == EXCLUDED) & (stops.y != CENSORED)
    for name, rows, kind in (("lost", lost, COMPLETE), ("unknown", stops.unknown, EXCLUDED)):
        if n := int(rows.sum()):
            otherwise = stops._replace(mechanism=np.where(rows, kind, stops.mechanism))
            try:
                other = leave_out_missing(select_runs(sample, otherwise, censored), [])
            except CannotMeasureError:  # there are too few complete runs then
                other = None
            others[name] = n, other
    return others


def number_of_runs(n: int) -> str:
    """Write a number of runs: "1 run", "2,000 runs"."""
    return number_of(n, "run")


def _outcome_problem(y: AnyArray, needs_both: bool) -> str:
    observed = y[y != CENSORED]
    if len(y) < 2:
        return f"evaluation needs at least 2 runs, got {len(y)}"
    if not len(observed):
        return f"none of the {len(y)} runs has an observed outcome; give outcomes for some of them"
    if needs_both and not outcomes_vary(y):
        n = len(y) - len(observed)
        text = f"every observed outcome ({len(observed)}) is {observed[0]:g}"
        if n:
            text += f", and {number_of_runs(n)} without an outcome"
        if n and observed[0] == SUCCESS:
            text += " (if such a run failed, its outcome is 0, not -1 or missing)"
        return f"{text}; an evaluation needs both outcomes"
    return ""


def refuse_without_outcomes(
    runs: EvaluatedRuns, *, needs_both: bool = True, remedy: str = ""
) -> None:
    """Refuse runs whose outcomes cannot be evaluated, and say which runs were left out."""
    if problem := _outcome_problem(runs.y, needs_both):
        lost = (f"; left out: {number_of_runs(n)} ({why})" for why, n in runs.exclusions.items())
        raise CannotMeasureError(problem + remedy + "".join(lost))


def fill_forward(sample: Sample, missing: str, notes: list[Note]) -> Sample:
    """Let a stated value hold until the next one is, if that is wanted."""
    if missing != "ffill":
        return sample
    filled = {name: X.ffill() for name, X in sample.traces.items()}
    for name, X in sample.traces.items():
        if n_filled := int((np.isnan(X.cells) & ~np.isnan(filled[name].cells)).sum()):
            notes.append(Note(name, "filled", {"share": n_filled / len(X.cells)}))
    return replace(sample, traces=filled)


def leave_out_missing(
    runs: EvaluatedRuns, notes: list[Note], *, may_fill: bool = True
) -> EvaluatedRuns:
    """Leave out predictors with too few complete runs, then the forecasts of incomplete runs.

    An error proposes to repeat values, if that `may_fill` enough runs and does.
    """
    scored = _complete_runs(runs)
    text = "left out; it has too few complete runs of both outcomes"
    notes += (Note(name, text=text) for name in runs.traces if name not in scored.traces)
    if outcomes_vary(scored.y):
        return scored
    filled = replace(runs, traces={name: X.ffill() for name, X in runs.traces.items()})
    ffill_helps = may_fill and outcomes_vary(_complete_runs(filled).y)
    problem = _too_few_of_each(runs.traces, ffill_helps)
    if scored.traces:
        problem = _too_few_in_common(len(scored), len(runs), ffill_helps)
    raise CannotMeasureError(problem, "options=EvaluationOptions.missing", "ffill")


def _complete_runs(runs: EvaluatedRuns) -> EvaluatedRuns:
    """Return the complete runs of the predictors that have such runs of both outcomes."""
    complete = runs.complete()
    traces = {name: X for name, X in runs.traces.items() if outcomes_vary(runs.y[complete[name]])}
    enough = replace(runs, traces=traces)
    return leave_out_incomplete(enough) if traces else enough.take(np.arange(0))


def _too_few_in_common(n_complete: int, n_runs: int, ffill_helps: bool) -> str:
    """Say that predictors have too few complete runs in common."""
    text = (
        f"{n_complete} of {n_runs} runs have a value of every predictor at every step, and they do "
        f"not include both a success and a failure; judge one predictor at a time"
    )
    if ffill_helps:
        text += ", or pass {argument} to let a value hold until the next one"
    return text


def _too_few_of_each(traces: Mapping[str, TrajectoryArray], ffill_helps: bool) -> str:
    """Say that no predictor has enough complete runs."""
    remedy = "give runs a value at every step, such as the one before, or 0 before the first one"
    values = [run_numbers(X)[~np.isnan(X.cells)] for X in traces.values()]
    if ffill_helps:
        remedy = "{argument} repeats the value before"
    elif all(len(np.unique(of_runs)) == len(of_runs) > 0 for of_runs in values):
        remedy = "judge one number a run by metrics.Answers, such as its ECUAS"
    return (
        f"no predictor has enough runs without missing values; each of "
        f"{', '.join(traces)} needs complete runs of both outcomes; {remedy}"
    )


def leave_out_incomplete(runs: EvaluatedRuns) -> EvaluatedRuns:
    """Leave out the runs without a step, and those that some predictor has no complete trace of."""
    is_missing = np.stack([~whole for whole in runs.complete().values()], axis=1)
    has_step = runs.X.lengths > 0
    is_incomplete = is_missing.any(axis=1)
    exclusions = Counter({Exclusion(ExclusionKind.NO_STEP): int((~has_step).sum())})
    patterns, counts = np.unique(is_missing[is_incomplete & has_step], axis=0, return_counts=True)
    for pattern, n in zip(patterns[::-1], counts[::-1].tolist(), strict=True):
        names = tuple(compress(runs.traces, pattern))
        exclusions[Exclusion(ExclusionKind.MISSING_VALUES, predictors=names)] = n
    scored = runs.take(np.flatnonzero(~is_incomplete))
    return replace(scored, exclusions=runs.exclusions + exclusions)


def knows_end(end: Any, calibrator: Any) -> bool | None:
    """Return whether predictors know that a run has ended; None: not known."""
    if end is None:
        ends = [part.end for part in parts_of(calibrator) if hasattr(part, "end")]
        return any(value is not None for value in ends) if ends else None
    if not isinstance(end, (bool, np.bool_)):
        raise ValueError(
            f"end must be True, False or None, got {end!r}; True says that predictors know which "
            f"step is the last"
        )
    return bool(end)
