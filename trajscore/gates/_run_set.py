"""Sets of runs: which runs count, what was scored, at what cost; and how two sets are paired."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
import pandas as pd

from trajscore.core.array import TrajectoryArray
from trajscore.core.checks import check_groups, check_predictors
from trajscore.core.ids import are_default_ids, check_index
from trajscore.core.statistics import Statistic
from trajscore.core.stops import read_stops
from trajscore.core.values import (
    AnyArray,
    ArrayLike,
    FloatArray,
    IntArray,
    as_path,
    check_rows,
    number_of,
    one_per_run,
)
from trajscore.evaluation.options import REFERENCES, Note, Options
from trajscore.evaluation.rows import Rows
from trajscore.evaluation.runs import (
    EvaluatedRuns,
    Exclusion,
    ExclusionKind,
    by_reason,
    leave_out_incomplete,
    refuse_without_outcomes,
    select_runs,
)
from trajscore.io.fields import USUAL_FIELDS, Fields
from trajscore.loading.load import load
from trajscore.loading.tables import Inputs, LoadRequest, describe_notes
from trajscore.report.glossary import counted_as

LENGTH = "length"


@dataclass(frozen=True)
class Measure:
    """One number of a set of runs."""

    statistic: Statistic
    rows: IntArray  # the runs that it is of, among those that count
    weight: FloatArray | float = 1.0  # of each of these runs
    is_rate: bool = False  # of a run or task it is 0, 1 or between
    of_tasks: bool = False  # each task counts the same, however many runs it has
    is_amount: bool = False  # what a run took, of which there may be no most
    most: float | None = None  # that a run can take


Measures = dict[tuple[str, str], Measure]  # by form and metric


class Forecasts(NamedTuple):
    """What was computed of a predictor."""

    rows: Rows  # in each form, with the base rate
    notes: list[Note]  # on missing forms
    metrics: Measures


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
        Runs that count, whether or not their forecasts are judged (in a report `n_runs` are those
        with forecasts, `n_counted` all); runs that do not, those that were not read among them; and
        of both, runs without an observed outcome, other than by an infrastructure error.
    left_out, unscored : dict of str to int
        How many runs do not count, by reason: `n_left_out` in all; and how many count, but are not
        among those on which the forecasts of some predictor are judged.
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
        self._scored = runs
        if censored != "drop":  # which leaves crashed runs out of every number
            self._scored = select_runs(sample, stops, censored)
        self.notes = ""
        self.n_unread = 0
        self.forecasts: dict[tuple[str, Options], Forecasts] = {}  # once asked for
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
        return cls._from_inputs(load(as_path(path), request), censored=censored)

    @classmethod
    def _from_inputs(cls, inputs: Inputs, **options: Any) -> Self:
        runs = cls(inputs.predictors, inputs.y, tasks=inputs.groups, spent=inputs.costs, **options)
        runs.n_unread = inputs.n_left_out
        runs.notes = describe_notes(inputs.notes, {})
        runs.has_ids = inputs.has_ids
        return runs

    @property
    def amounts(self) -> dict[str, FloatArray]:
        """What each run took: its steps, and what it spent."""
        return {LENGTH: self.lengths} | self.spent

    def judged(self, predictor: str) -> EvaluatedRuns:
        """Return the runs on which forecasts of a predictor are judged, if it has all values."""
        return replace(self._scored, traces={predictor: self._scored.traces[predictor]})

    @property
    def left_out(self) -> dict[str, int]:
        """How many runs do not count, by reason."""
        counts = by_reason(self.evaluated.exclusions)
        if self.n_unread:
            counts["not readable, or lost by the harness"] = self.n_unread
        return counts

    @property
    def unscored(self) -> dict[str, int]:
        """How many runs count, but not the forecasts of each predictor for them, by reason."""
        exclusions = Counter[Exclusion]()
        for name in self.predictors:
            exclusions |= leave_out_incomplete(self.judged(name)).exclusions
        return by_reason(exclusions - self.evaluated.exclusions)

    @property
    def n_left_out(self) -> int:
        """Number of runs that do not count."""
        return sum(self.left_out.values())

    @property
    def n_unobserved(self) -> int:
        """Number of runs without an observed outcome, but for infrastructure errors."""
        n_dropped = self.evaluated.exclusions[Exclusion(ExclusionKind.UNOBSERVED)]
        return int((~self.evaluated.observed).sum()) + n_dropped

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
        parts = [f"{n} left out ({why})" for why, n in self.left_out.items()]
        if n := int((~self.evaluated.observed).sum()):
            parts.append(f"{n} without an outcome, counted {counted_as('failure', n)}")
        parts += [f"forecasts of {n} not judged ({why})" for why, n in self.unscored.items()]
        n_without_step = int((self.lengths == 0).sum())
        if n_without_step and not self.predictors:
            parts.append(f"{n_without_step} {Exclusion(ExclusionKind.NO_STEP)}")
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
