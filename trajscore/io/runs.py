"""Many runs: as a list, as a stream, and as tables."""

from __future__ import annotations

import math
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any, Literal

import pandas as pd

from trajscore.core.errors import ArgumentError
from trajscore.core.outcomes import CENSORED, FAILURE, SUCCESS, check_outcomes
from trajscore.core.stops import note_on_lost
from trajscore.core.values import AnyArray, is_iterable, number_of, run_label
from trajscore.io._findings import Findings
from trajscore.io._run import Run, as_grade
from trajscore.io._selection import Tally
from trajscore.io.files import Place
from trajscore.io.logprobs import are_recorded
from trajscore.io.unread import refusals
from trajscore.io.vocabulary import Record

_MAX_EXAMPLES = 3


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A run of the log that is left out: it is malformed, or its stop reason excludes it."""

    file: str
    index: int  # in the file, from 0
    id: str | None  # if it could be read
    reason: str  # what is wrong with it, or its stop reason
    kind: Literal["malformed", "excluded"] = "malformed"
    run: Run | None = None  # one that is excluded, if it could be read

    def __str__(self) -> str:
        return f"{Place(Path(self.file), self.index, run=self.id)}: {self.reason}"


def count_left_out(left_out: Sequence[LeftOut], n_runs: int) -> str:
    """Say how many runs are left out and why, and name the first."""
    n_all = n_runs + len(left_out)
    reasons = Counter(run.reason for run in left_out if run.kind == "excluded")
    counts = []
    if n := len(left_out) - reasons.total():
        are = "are"
        if n == 1:
            are = "is"
        counts.append(f"{n} of {number_of(n_all, 'run')} could not be read and {are} left out")
    if reasons:
        counts.append(note_on_lost(reasons, n_all))
    malformed_first = sorted(left_out, key=lambda run: run.kind == "excluded")
    examples = "; ".join(map(str, malformed_first[:_MAX_EXAMPLES]))
    more = ""
    if len(left_out) > _MAX_EXAMPLES:
        more = f"; and {len(left_out) - _MAX_EXAMPLES} more"
    return f"{', '.join(counts)}: {examples}{more}"


def warn_of_left_out(left_out: Sequence[LeftOut], n_runs: int, stacklevel: int) -> None:
    """Warn once of all runs that are left out."""
    if left_out:
        warnings.warn(
            f"{count_left_out(left_out, n_runs)} (all are in .left_out)", stacklevel=stacklevel + 1
        )


@dataclass(eq=False, repr=False)
class RunStream(Iterator[Run]):
    """Runs of a log, one at a time; `left_out`, `info` and `notes` are those of `Runs`, so far."""

    runs: Iterator[Run | LeftOut]
    info: dict[str, dict[str, Any]]
    findings: Findings
    path: Path
    warns: bool  # at the end, of runs that are left out
    left_out: list[LeftOut] = field(default_factory=list)
    n_read: int = 0

    def __next__(self) -> Run:
        for run in self.runs:
            if isinstance(run, Run):
                self.n_read += 1
                return run
            self.left_out.append(run)
        if self.warns:
            self.warns = False
            warn_of_left_out(self.left_out, self.n_read, stacklevel=2)
        raise StopIteration

    @property
    def notes(self) -> list[str]:
        """What of the log was not used so far, one sentence each."""
        notes = [self.findings.problem(), *self.findings.notes()]
        return [str(ArgumentError(note)) for note in notes if note]


class Runs(list[Run]):
    """The runs of a log, with what was left out.

    A list like any other; parts of it are plain lists.

    Parameters
    ----------
    runs : iterable of Run
        The runs.

    Attributes
    ----------
    left_out : list of LeftOut
        Runs that are not in the list, each with its ``file``, ``index``, ``id``, ``reason``, and
        ``kind``: "malformed" if it could not be read, "excluded" if an infrastructure error ended
        it; then also the ``run``, with the outcome that was recorded, if it could be read.
    info : dict of str to dict
        For each file, its fields that belong to no single run.
    notes : list of str
        What of the log was not used, one sentence each: scores, rows of a table.

    Examples
    --------
    >>> from trajscore.io import Run, Runs
    >>> Runs([Run("a", outcome=1), Run("b")])
    <Runs: 2 runs, 1 success, 0 failures, 1 not observed>
    """

    def __init__(self, runs: Iterable[Run] = ()) -> None:
        if not is_iterable(runs):
            raise ValueError(f"runs must be an iterable of Run objects, got {runs!r}")
        super().__init__(runs)
        self.left_out: list[LeftOut] = []
        self.info: dict[str, dict[str, Any]] = {}
        self.notes: list[str] = []
        self._findings: Findings | None = None
        if isinstance(runs, RunStream):
            self.left_out = runs.left_out
            self.info = runs.info
            self._findings = runs.findings
            self._leave_out_retried(runs.findings.tally)
            with refusals(runs.path):
                if problem := runs.findings.problem():
                    raise ArgumentError(f"{runs.path}: {problem}")
            self.notes = runs.notes

    def _leave_out_retried(self, tally: Tally) -> None:
        """Leave out runs that ended before their first turn, and were run again under their id."""
        begun = {run.id for run in self if run.id in tally.unstarted and not run.ended_before_start}
        retried = [run for run in self if run.id in begun and run.ended_before_start]
        self[:] = [run for run in self if run.id not in begun or not run.ended_before_start]
        for run in retried:
            tally.ids[run.id] -= 1
            tally.odd["unstarted"] -= 1
            where = (run.meta["file"], tally.unstarted[run.id], run.id)
            self.left_out.append(LeftOut(*where, f"{run.stop_reason}, run again", "excluded", run))

    def __repr__(self) -> str:
        ended = Counter(run.outcome for run in self)
        kinds = Counter(run.kind for run in self.left_out)
        left = ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items(), reverse=True))
        graded = len(self) - ended[SUCCESS] - ended[FAILURE] - ended[CENSORED]
        return (
            f"<Runs: {number_of(len(self), 'run')}, {number_of(ended[SUCCESS], 'success')}, "
            f"{number_of(ended[FAILURE], 'failure')}, "
            + (f"{graded} graded, " if graded else "")
            + f"{ended[CENSORED]} not observed{'; ' + left if left else ''}>"
        )


def outcomes(runs: Iterable[Run]) -> AnyArray:
    """Return the outcome of each run.

    Parameters
    ----------
    runs : iterable of Run
        Runs, as `read_runs` returns them.

    Returns
    -------
    ndarray of shape (n_runs,)
        int64 codes, 1 success, 0 failure, -1 not observed; float64 if there are grades between.

    Raises
    ------
    ValueError
        If an outcome is anything else, or no run of a log has an outcome. The message names the
        run, or the fields that may hold the outcome.

    Examples
    --------
    >>> from trajscore import io
    >>> io.outcomes([io.Run("a", outcome=1), io.Run("b")])
    array([ 1, -1])
    """
    findings = getattr(runs, "_findings", None)
    if findings is not None and (problem := findings.outcome_problem()):
        raise ArgumentError(problem)
    return check_outcomes([run.outcome for run in check_runs(runs)])


def meta(runs: Iterable[Run]) -> pd.DataFrame:
    """Return a table with one row a run: who, what, how it ended, and which signals it holds.

    Parameters
    ----------
    runs : iterable of Run
        Runs, as `read_runs` returns them.

    Returns
    -------
    DataFrame
        Columns run, task, trial, outcome, stop_reason, stop_kind, n_steps, n_agent, n_user,
        n_tool_calls; n_logprobs, n_top_logprobs, n_confidence: the number of agent steps that
        have the signal; then the runs' own `Run.meta` fields, empty where a run has none.

    Examples
    --------
    >>> from trajscore import io
    >>> run = io.Run("a", [io.Step("user", "Hi"), io.Step("agent", "Hello")], outcome=1, task="t")
    >>> io.meta([run])[["run", "task", "outcome", "n_steps", "n_agent", "n_logprobs"]]
      run task  outcome  n_steps  n_agent  n_logprobs
    0   a    t        1        2        1           0
    """
    return pd.DataFrame(columns_of(check_runs(runs)))


def check_runs(runs: Any) -> list[Run]:
    """Return runs as a list; each must be a run with an outcome."""
    listed = list(runs) if is_iterable(runs) else [runs]
    for run in listed:
        if not isinstance(run, Run):
            raise ValueError(f"runs must be Run objects, as io.read_runs returns them, got {run!r}")
        if as_grade(run.outcome) is None:
            raise ValueError(
                f"run {run_label(run.id)}: the outcome is {run.outcome!r}; give 1, 0, -1 (not "
                f"observed) or a grade between 0 and 1"
            )
    return listed


def columns_of(runs: Sequence[Run]) -> dict[str, list[Any]]:
    """Return the columns of `meta`; NaN for a field that only other runs have."""
    is_scored = are_recorded(runs)
    rows = [_row_of(run, is_scored) for run in runs]
    names = dict.fromkeys(chain(_row_of(Run(""), is_scored), *rows))
    return {name: [row.get(name, math.nan) for row in rows] for name in names}


def _row_of(run: Run, is_scored: bool) -> Record:
    agent = [step for step in run.steps if step.actor == "agent"]
    row = {
        "run": run.id,
        "task": run.task,
        "trial": run.trial,
        "outcome": run.outcome,
        "stop_reason": run.stop_reason,
        "stop_kind": run.stop_kind,
        "n_steps": len(run.steps),
        "n_agent": len(agent),
        "n_user": sum(step.actor == "user" for step in run.steps),
        "n_tool_calls": sum(len(step.tool_calls) for step in run.steps),
        "n_logprobs": sum(step.logprobs is not None for step in agent) * is_scored,
        "n_top_logprobs": sum(step.top_logprobs is not None for step in agent) * is_scored,
        "n_confidence": sum(step.confidence is not None for step in agent),
    }
    return {**row, **run.meta, **row}
