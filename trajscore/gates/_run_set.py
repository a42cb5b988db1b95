"""A set of runs as it is compared: what was scored, how it ended, at what cost; and its metrics."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
import pandas as pd
from scipy.special import comb

from trajscore.calibration.calibrators import calibrator_maker
from trajscore.core.array import TrajectoryArray
from trajscore.core.checks import check_groups, check_predictors
from trajscore.core.errors import CannotMeasureError
from trajscore.core.ids import are_default_ids, check_index
from trajscore.core.outcomes import outcomes_vary
from trajscore.core.score_families import USUAL_SCORES, get_family
from trajscore.core.statistics import MeanOfRuns, Statistic
from trajscore.core.stops import read_stops
from trajscore.core.ties import only_value
from trajscore.core.values import (
    AnyArray,
    ArrayLike,
    FloatArray,
    IntArray,
    as_path,
    check_rows,
    known_names,
    number_of,
    one_per_run,
    unknown_name,
)
from trajscore.core.weights import as_step_weights
from trajscore.evaluation.options import FORMS, FRACTIONS, REFERENCES, Note, Options
from trajscore.evaluation.rows import make_rows, row_metrics
from trajscore.evaluation.runs import (
    Exclusion,
    ExclusionKind,
    leave_out_missing,
    refuse_without_outcomes,
    select_runs,
)
from trajscore.io.fields import USUAL_FIELDS, Fields
from trajscore.loading.load import load
from trajscore.loading.tables import Inputs, LoadRequest, describe_notes
from trajscore.report.verdicts import note_text, without_variation

_UNOBSERVED = Exclusion(ExclusionKind.UNOBSERVED)


class RunSet:
    """Runs of one agent, to be held against others by `compare` and `check`.

    Parameters
    ----------
    X : TrajectoryArray, dict of str to traces, array-like of shape (n_runs, T_max), or None
        One trace a run for each predictor, as `trajscore.evaluate` takes them. A trace with the
        name "" is not a predictor; it says only how many steps runs have. None if only outcomes
        are known.
    y : array-like of shape (n_runs,)
        Outcomes: 1 success, 0 failure, -1 (or missing) not observed.
    tasks : array-like of shape (n_runs,), optional
        What each run was about. Sets are paired by the tasks that both have, and the runs of a
        task are one cluster. Without them runs are paired by id, where both sets have the same ids.
    stop_reason : array-like of shape (n_runs,), optional
        Why each run ended. One that an infrastructure error ended is left out; one that crashed is
        a run of the agent like any other. But forecasts are judged, as by `trajscore.evaluate`,
        without unobserved runs that no budget stopped.
    spent : dict of str to array-like of shape (n_runs,), optional
        What each run took, such as ``{"cost": ..., "tokens": ...}``; NaN where that is not known.
    censored : {"failure", "drop"}, default="failure"
        What runs with outcome -1 count as, crashed ones too.

    Attributes
    ----------
    n_runs, n_left_out, n_unobserved : int
        Runs that count; runs that do not, those that were not read among them; and of both, runs
        without an observed outcome, other than by an infrastructure error.
    n_unread : int
        Runs that `read` left out, as they could not be read or ended by an infrastructure error.
    predictors : list of str
        Names of the predictors.
    notes : str
        What was guessed to read the runs.

    Raises
    ------
    ValueError
        If predictors are not of the same runs, or there is not one outcome, task and number of each
        kind for each run.

    Examples
    --------
    >>> from trajscore.gates import RunSet
    >>> RunSet([[0.9, 0.8], [0.4]], [1, 0], tasks=["a", "b"])
    <RunSet: 2 runs of 2 tasks, success 0.500>
    >>> RunSet(None, [1, 0, 1], tasks=["a", "b", "b"])
    <RunSet: 3 runs of 2 tasks, success 0.667>
    """

    def __init__(
        self,
        X: Any,
        y: ArrayLike,
        *,
        tasks: ArrayLike | None = None,
        stop_reason: ArrayLike | None = None,
        spent: Mapping[str, ArrayLike] | None = None,
        censored: str = "failure",
    ) -> None:
        if X is None:
            index = y.index if isinstance(y, pd.Series) else None
            n_runs = len(np.atleast_1d(y))
            X = {"": TrajectoryArray(np.zeros(n_runs), np.ones(n_runs, int), ids=index)}
        sample = check_predictors(X, y, reserved=REFERENCES)
        n_runs = len(sample)
        if tasks is not None:
            sample = replace(sample, groups=check_groups(tasks, n_runs, "tasks"))
        if spent is not None and not isinstance(spent, Mapping):
            raise ValueError(f"spent must be a dict of numbers by name, got {spent!r}")
        named = {str(name): values for name, values in (spent or {}).items()}
        for name, values in {"tasks": tasks, "stop_reason": stop_reason, **named}.items():
            check_index(values, sample.X.ids, name)
        stops = read_stops(sample.y, sample.X.meta, stop_reason)
        runs = select_runs(sample, stops, censored, keep_crashed=True)
        refuse_without_outcomes(runs, needs_both=False)
        self.evaluated = runs  # those that count
        # the runs on which forecasts are judged
        self.judged = select_runs(sample, stops, censored)
        self.censored = censored
        self.notes = ""
        self.n_unread = 0
        # of predictors, once asked for: by name and options, with notes on missing forms
        self.metrics: dict[tuple[str, Options], tuple[Measures, list[Note]]] = {}
        # whether the runs came with ids, by which two sets can be paired
        self.has_ids = not are_default_ids(sample.X.ids)
        self.traces = runs.traces
        self.ids = runs.X.ids
        self.lengths = runs.X.lengths.astype(float)
        self.y = runs.y
        self.labels = runs.labels
        self.tasks: AnyArray | None = None
        if tasks is not None:
            self.tasks = np.asarray(tasks)[runs.source_rows].astype(str)
        self.n_runs = len(runs)
        self.predictors = [name for name in runs.traces if name]
        self.spent = {}
        for name, values in named.items():
            numbers = one_per_run(values, f"spent[{name!r}]", n_runs)
            check_rows(
                numbers, ~np.isinf(numbers), f"spent[{name!r}]", "give NaN where it is not known"
            )
            self.spent[name] = numbers[runs.source_rows]

    @classmethod
    def read(
        cls,
        path: str | Path,
        fields: Fields = USUAL_FIELDS,
        *,
        censored: str = "failure",
        **reading: Any,
    ) -> Self:
        """Read a table or a log.

        Parameters
        ----------
        path : str or Path
            The file, as `trajscore report` takes it.
        fields : Fields
            Names of its columns.
        censored : {"failure", "drop"}, default="failure"
            What runs with outcome -1 count as.
        **reading
            Options of the reader, such as `format`, `outcome_map` and `rule`, as of
            `trajscore.io.read_runs`.

        Returns
        -------
        RunSet
            The runs; its `notes` say what was guessed.
        """
        request = LoadRequest(fields, needs_scores=False, **reading)
        return cls._from_inputs(load(as_path(path), request), censored)

    @classmethod
    def _from_inputs(cls, inputs: Inputs, censored: str) -> Self:
        runs = cls(
            inputs.predictors,
            inputs.y,
            tasks=inputs.groups,
            spent=inputs.costs,
            censored=censored,
        )
        runs.n_unread = inputs.n_left_out
        runs.notes = describe_notes(inputs.notes, {})
        runs.has_ids = inputs.has_ids
        return runs

    @property
    def amounts(self) -> dict[str, FloatArray]:
        """What each run took: its steps, and what it spent."""
        return {LENGTH: self.lengths} | self.spent

    @property
    def n_left_out(self) -> int:
        """Number of runs that do not count."""
        return self.n_unread + self.evaluated.exclusions.total()

    @property
    def n_unobserved(self) -> int:
        """Number of runs without an observed outcome, but for infrastructure errors."""
        return int((~self.evaluated.observed).sum()) + self.evaluated.exclusions[_UNOBSERVED]

    @property
    def success_rate(self) -> float:
        """Share of runs that succeed."""
        return float(self.labels.mean())

    @property
    def n_tasks(self) -> int:
        """Number of tasks among these runs; 0 where none are known."""
        return 0 if self.tasks is None else len(np.unique(self.tasks))

    @property
    def counted(self) -> str:
        """How many runs of how many tasks there are, and what those without an outcome count as."""
        excluded = self.evaluated.exclusions
        unobserved = "left out" if self.censored == "drop" else "counted as failures"
        counts = Counter({"not readable, left out": self.n_unread})
        for exclusion, n in excluded.items():
            reason = str(exclusion)
            if exclusion.kind == ExclusionKind.LOST:
                reason = "ended by an infrastructure error"
            counts[f"{reason}, left out"] += n * (exclusion != _UNOBSERVED)
        counts[f"without an outcome, {unobserved}"] = self.n_unobserved
        parts = [f"{n} {reason}" for reason, n in counts.items() if n]
        if self.predictors and self.censored != "drop":
            parts += [
                f"forecasts of {n} not judged ({exclusion})"
                for exclusion, n in (self.judged.exclusions - excluded).items()
            ]
        if n := (self.lengths == 0).sum():
            parts.append(f"{n} ended before the first step")
        tasks = f" of {number_of(self.n_tasks, 'task')}" if self.n_tasks else ""
        aside = f" ({'; '.join(parts)})" if parts else ""
        return f"{number_of(self.n_runs, 'run')}{tasks}{aside}"

    def __repr__(self) -> str:
        return f"<RunSet: {self.counted}, success {self.success_rate:.3f}>"


def check_run_set(name: str, runs: Any) -> None:
    """Refuse what is not a set of runs."""
    if not isinstance(runs, RunSet):
        raise ValueError(
            f"{name} must be a RunSet, got {type(runs).__name__}; make one: RunSet(X, y), or "
            f"RunSet.read(path)"
        )


@dataclass(frozen=True)
class Matching:
    """The unit of each run of two sets: its task, or else the run; paired where both have it."""

    base: IntArray
    new: IntArray
    n_units: int
    by: str = ""  # "task", "run", or "" where the sets are not paired
    n_common: int = 0  # units in both sets
    n_new: int = 0  # tasks, or runs of a paired set, in the new set alone
    n_gone: int = 0


def match(base: RunSet, new: RunSet) -> Matching:
    """Pair two sets by task where both have some in common, else by run where ids agree."""
    labels = [runs.ids.astype(str) if runs.tasks is None else runs.tasks for runs in (base, new)]
    ids = [runs.ids.astype(str) for runs in (base, new)]
    by = ""
    if base.tasks is not None and new.tasks is not None:
        by = "task"
    elif base.has_ids and new.has_ids and np.array_equal(ids[0], ids[1]):
        by = "run"
        labels = ids
    names, codes = np.unique(np.concatenate(labels), return_inverse=True)
    base_units, new_units = np.split(codes, [base.n_runs])
    n = len(names)
    n_new = n - len(np.unique(base_units))
    n_gone = n - len(np.unique(new_units))
    n_common = n - n_new - n_gone
    if not by or n_common < 2:  # nothing to pair by
        return Matching(base_units, new_units + n, 2 * n)
    return Matching(base_units, new_units, n, by, n_common, n_new, n_gone)


OPTIONS = Options(tuple(map(get_family, USUAL_SCORES)), as_step_weights())
SUCCESS = "success"
LENGTH = "length"
MARGIN = " margin"
_PASS = re.compile(r"pass\^([1-9][0-9]?)")


class Key(NamedTuple):
    """Name of a number; `predictor` and `form` are empty where it is of the runs alone."""

    metric: str
    predictor: str = ""
    form: str = ""

    def __str__(self) -> str:
        if not self.predictor:
            return self.metric
        return f"{self.metric} of {self.predictor}, {FORMS[self.form]}"


@dataclass(frozen=True)
class Measure:
    """One number of a set of runs."""

    statistic: Statistic
    rows: IntArray  # the runs that it is of, among those that count
    is_rate: bool = False  # of a run or task it is 0, 1 or between
    of_tasks: bool = False  # each task counts the same, however many runs it has
    is_amount: bool = False  # what a run took, of which there may be no most
    most: float | None = None  # that a run can take


Measures = dict[tuple[str, str], Measure]  # by form and metric


def key_of(runs: RunSet, metric: str, predictor: str | None, form: str) -> Key:
    """Return the name of the number that a gate is about."""
    if is_rate(metric) or metric in runs.amounts:
        if predictor is not None:
            raise CannotMeasureError(f"{metric} is of no predictor; leave out predictor")
        return Key(metric)
    if metric.removesuffix(MARGIN) not in options_of(metric).metrics:
        raise unknown_metric(metric, runs)
    if predictor is None and len(runs.predictors) != 1:
        names = ", ".join(runs.predictors) or "none"
        raise CannotMeasureError(f"{metric} is of a predictor; say of which one: there are {names}")
    return Key(metric, predictor or runs.predictors[0], form)


def measures_of(sets: Sequence[RunSet], key: Key, most: float | None = None) -> list[Measure]:
    """Return a number of sets of runs; `most` is what a run can take of an amount.

    A predictor that varies in none of the sets is refused: no number of runs says more of it.
    """
    name = key.predictor
    traces = [runs.traces[name].cells for runs in sets if name in runs.predictors]
    values = [only_value(cells[~np.isnan(cells)]) for cells in traces]
    if values and not np.isnan(values).any():
        raise CannotMeasureError(f"predictor {name!r} {without_variation(values[0])}")
    return [_measure_of(runs, key, most) for runs in sets]


def _measure_of(runs: RunSet, key: Key, most: float | None) -> Measure:
    """Return a number of a set of runs; all of a predictor are made once."""
    is_amount = key.metric in runs.amounts and not is_rate(key.metric)
    if most is not None and not is_amount:
        raise CannotMeasureError(
            "most is for what a run takes, such as cost or length; leave most out"
        )
    if key.metric == SUCCESS:
        return Measure(MeanOfRuns(runs.labels), np.arange(runs.n_runs), is_rate=True)
    if power := _PASS.fullmatch(key.metric):
        return _all_pass(runs, int(power[1]))
    if is_amount:
        numbers = runs.amounts[key.metric]
        rows = np.flatnonzero(~np.isnan(numbers))
        if not len(rows):
            raise CannotMeasureError("no run has a number")
        largest = numbers[rows].max()
        if most is not None and largest > most:
            raise CannotMeasureError(
                f"a run took {largest:g}, and most is {most:g}; set most to a larger number"
            )
        return Measure(MeanOfRuns(numbers[rows]), rows, is_amount=True, most=most)
    wanted = key.predictor, options_of(key.metric)
    if wanted not in runs.metrics:
        runs.metrics[wanted] = _metrics_of(runs, *wanted)
    metrics, notes = runs.metrics[wanted]
    if (key.form, key.metric) in metrics:
        return metrics[key.form, key.metric]
    names = [name for form, name in metrics if form == key.form]
    if not names:  # forecasts as given have some metric always
        raise CannotMeasureError(" ".join(map(note_text, notes)))
    raise CannotMeasureError(f"there is no {key}: there are {', '.join(names)}")


def options_of(metric: str) -> Options:
    """Return what computes a metric of forecasts: a family that its name has, or the usual ones."""
    name = metric.removesuffix(MARGIN)
    kind, _, family = name.partition(" ")
    if kind in ("TPS", "MCB") and name not in OPTIONS.metrics:
        with suppress(ValueError):  # no family, so that no metric has the name
            return replace(OPTIONS, scores=(get_family(family),))
    return OPTIONS


def unknown_metric(metric: str, runs: RunSet) -> CannotMeasureError:
    """Say that there is no such metric."""
    names = [SUCCESS, *runs.amounts]
    if most_trials(runs) > 1:
        names.insert(1, "pass^2")
    if runs.predictors:
        names += [name + end for name in OPTIONS.metrics for end in ("", MARGIN)]
    text = unknown_name("metric", metric, names)
    if metric in ("cost", "tokens"):
        text = f"no metric named {metric!r}; add a column {metric!r}; {known_names(metric, names)}"
    return CannotMeasureError(text)


def is_lower_better(metric: str, runs: RunSet) -> bool:
    """Whether less of a metric is better: errors, costs, steps and what else a run takes."""
    of_forecasts = options_of(metric).lower_is_better
    return metric in runs.amounts or metric.removesuffix(MARGIN) in of_forecasts


def is_rate(metric: str) -> bool:
    """Whether a metric is the share of runs, or sets of runs, that succeed."""
    return metric == SUCCESS or bool(_PASS.fullmatch(metric))


def is_fraction(metric: str) -> bool:
    """Whether a metric lies in [0, 1]."""
    return is_rate(metric) or metric in FRACTIONS


def within_range(
    metric: str, low: float, high: float, least: float = 0.0, most: float = 1.0
) -> tuple[float, float]:
    """Cut an interval at the least and the most that a metric in [0, 1], or its change, can be."""
    if not is_fraction(metric):
        return low, high
    return max(low, least), min(high, most)


def most_trials(runs: RunSet) -> int:
    """Number of runs that at least half of the tasks have; 1 where no tasks are known."""
    if runs.tasks is None:
        return 1
    counts = np.unique(runs.tasks, return_counts=True)[1]
    return int(np.quantile(counts, 0.5, method="lower"))


def _metrics_of(runs: RunSet, predictor: str, options: Options) -> tuple[Measures, list[Note]]:
    """All metrics of a predictor in each form, and above the base rate; notes on missing forms."""
    if predictor not in runs.predictors:
        raise CannotMeasureError(unknown_name("predictor", predictor, runs.predictors))
    judged = runs.judged
    refuse_without_outcomes(judged, needs_both=False)
    if not outcomes_vary(judged.labels):
        raise CannotMeasureError(
            f"all {len(judged)} runs have the same outcome, so nothing can be said of the "
            f"forecasts of {predictor!r}"
        )
    alone = replace(judged, traces={predictor: judged.traces[predictor]})
    alone = leave_out_missing(alone, [], may_fill=False)
    metrics = {}
    notes: list[Note] = []
    rows = make_rows(alone, calibrator_maker("auto", options.weights), options, notes)
    constant = row_metrics(rows.base, options)
    # among all runs that count, of which some have no forecast that is judged
    places = pd.Index(runs.evaluated.source_rows).get_indexer(alone.source_rows)
    for row in rows.predictors:
        for name, statistic in row_metrics(row, options).items():
            metrics[row.form, name] = Measure(statistic, places)
            reference = constant[name]
            if isinstance(statistic, MeanOfRuns) and isinstance(reference, MeanOfRuns):
                metrics[row.form, name + MARGIN] = Measure(statistic - reference, places)
    return metrics, notes


def _all_pass(runs: RunSet, k: int) -> Measure:
    """Share of sets of k runs of a task that all succeed, for tasks with k runs."""
    if runs.tasks is None:
        raise CannotMeasureError(
            f"pass^{k} needs the task of each run; name the column of tasks (--group), or give "
            f"RunSet its tasks"
        )
    labels = runs.labels
    if not np.isin(labels, (0, 1)).all():
        raise CannotMeasureError(
            f"pass^{k} is of successes and failures, and some outcomes are graded"
        )
    _, code, n = np.unique(runs.tasks, return_inverse=True, return_counts=True)
    successes = np.bincount(code, labels)
    rows = np.flatnonzero(n[code] >= k)
    if not len(rows):
        raise CannotMeasureError(f"pass^{k}: no task has {k} runs; the most is {n.max()}")
    chance = comb(successes, k) / comb(n, k, repetition=False).clip(1)
    return Measure(MeanOfRuns(chance[code[rows]]), rows, is_rate=True, of_tasks=True)
