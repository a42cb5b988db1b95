"""A set of runs as it is compared: what was scored, how it ended, on which task, at what cost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from trajscore.core.array import TrajectoryArray
from trajscore.core.checks import check_groups, check_labels
from trajscore.core.ids import are_default_ids, check_index
from trajscore.core.outcomes import CENSORED, as_labels
from trajscore.core.sample import Sample, check_predictors
from trajscore.core.stops import EXCLUDED, recorded_stops
from trajscore.core.type_aliases import BoolArray, FloatArray, IntArray
from trajscore.core.values import as_path, number_of, one_per_run
from trajscore.evaluation.options import REFERENCES
from trajscore.evaluation.runs import (
    EvaluatedRuns,
    ExclusionKind,
    outcome_problem,
    refuse_without_outcomes,
    select_runs,
)
from trajscore.io.fields import USUAL_FIELDS, Fields
from trajscore.loading.load import load
from trajscore.loading.tables import Inputs, LoadRequest


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
        self._sample: Sample = check_predictors(X, y, reserved=REFERENCES)
        n_runs = len(self._sample)
        all_tasks: NDArray[Any] | None = None
        if tasks is not None:
            all_tasks = check_labels(tasks, n_runs, "tasks").astype(str)
            self._sample = replace(self._sample, groups=check_groups(tasks, n_runs))
        if spent is not None and not isinstance(spent, Mapping):
            raise ValueError(f"spent must be a dict of numbers by name, got {spent!r}")
        named = {str(name): values for name, values in (spent or {}).items()}
        for name, values in {"tasks": tasks, "stop_reason": stop_reason, **named}.items():
            check_index(values, self._sample.X.ids, name)
        stops = recorded_stops(self._sample.X.meta, stop_reason)
        self._with_forecasts = select_runs(self._sample, stops, censored)
        self.censored = censored
        self.notes = ""
        self.n_unread = 0
        # whether the runs came with ids, by which two sets can be paired
        self.has_ids = not are_default_ids(self._sample.X.ids)
        # ended by an infrastructure error, which says nothing of the agent
        self._faults: BoolArray = np.zeros(n_runs, dtype=bool)
        if (settled := self._with_forecasts.stops) is not None:
            self._sample = replace(self._sample, y=settled.y)
            self._faults |= settled.mechanism == EXCLUDED
        codes, rows = self._sample.y, self._sample.id_order()
        outcomes = as_labels(codes, censored=censored)
        if problem := outcome_problem(codes[~self._faults], needs_both=False):
            raise ValueError(problem)
        self._rows: IntArray = rows[(outcomes.is_counted & ~self._faults)[rows]]  # that count
        self.n_runs = len(self._rows)
        self.predictors = [name for name in self._sample.traces if name]
        # of the runs that count, in order; outcomes are -1 where they were not observed
        self.ids: NDArray[Any] = self._sample.X.ids[self._rows]
        self.y: NDArray[Any] = codes[self._rows]
        self.lengths: FloatArray = self._sample.X.lengths[self._rows].astype(np.float64)
        self.labels: FloatArray = outcomes.value[self._rows]
        self.tasks = None if all_tasks is None else all_tasks[self._rows]
        self.spent: dict[str, FloatArray] = {}
        for name, values in named.items():
            numbers = one_per_run(values, f"spent[{name!r}]", n_runs)
            if np.isinf(numbers).any():
                row = int(np.argmax(np.isinf(numbers)))
                raise ValueError(
                    f"row {row}: spent[{name!r}] is infinite; give NaN where it is not known"
                )
            self.spent[name] = numbers[self._rows]

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
        runs.notes = inputs.describe({})
        runs.has_ids = inputs.has_ids
        return runs

    @property
    def traces(self) -> dict[str, TrajectoryArray]:
        """Traces of the runs that count."""
        return {name: trace[self._rows] for name, trace in self._sample.traces.items()}

    @cached_property
    def judged(self) -> EvaluatedRuns:
        """Return the runs on which forecasts are judged."""
        refuse_without_outcomes(self._with_forecasts, needs_both=False)
        return self._with_forecasts

    def places(self, source_rows: IntArray) -> IntArray:
        """Return the places, among the runs that count, of some of these by their rows in X."""
        place = np.empty(len(self._sample), dtype=np.int64)
        place[self._rows] = np.arange(self.n_runs)
        return place[source_rows]

    @property
    def n_left_out(self) -> int:
        """Number of runs that do not count."""
        return self.n_unread + len(self._sample) - self.n_runs

    @property
    def n_unobserved(self) -> int:
        """Number of runs without an observed outcome, but for infrastructure errors."""
        hidden = (self._sample.y == CENSORED) & ~self._faults
        return int(hidden.sum())

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
        parts = [f"{self.n_unread} not readable, left out"] if self.n_unread else []
        if n := int(self._faults.sum()):
            parts.append(f"{n} ended by an infrastructure error, left out")
        if n := self.n_unobserved:
            as_what = "left out" if self.censored == "drop" else "counted as failures"
            parts.append(f"{n} without an outcome, {as_what}")
        if self.predictors and self.censored != "drop":
            parts += [
                f"forecasts of {n} not judged ({exclusion})"
                for exclusion, n in self._with_forecasts.exclusions.items()
                if exclusion.kind != ExclusionKind.LOST
            ]
        if n := int((self.lengths == 0).sum()):
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
    base_units, new_units = np.split(codes, [len(base.ids)])
    n = len(names)
    n_new = n - len(np.unique(base_units))
    n_gone = n - len(np.unique(new_units))
    n_common = n - n_new - n_gone
    if not by or n_common < 2:  # nothing to pair by
        return Matching(base_units, new_units + n, 2 * n)
    return Matching(base_units, new_units, n, by, n_common, n_new, n_gone)
