"""Many runs: as a list, as a stream, and as tables."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Self

import pandas as pd
from numpy.typing import NDArray

from trajscore.core.errors import ArgumentError
from trajscore.core.notebook import N_SHOWN, as_html
from trajscore.core.outcomes import CENSORED, FAILURE, SUCCESS, check_outcomes
from trajscore.core.values import is_iterable
from trajscore.io._choice import Chooser
from trajscore.io._grades import as_grade
from trajscore.io._run import Run
from trajscore.io.files import Place

_NAMED = 3


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A run of the log that is not in the result, and why.

    Attributes
    ----------
    file : str
        The file it stands in.
    index : int
        Its place among the file's runs, from 0.
    id : str or None
        Its identifier, where that could be read.
    reason : str
        What is wrong with it, or the stop reason that excludes it.
    kind : {"malformed", "excluded"}
        Whether it could not be read, or a fault of the test bench ended it.
    """

    file: str
    index: int
    id: str | None
    reason: str
    kind: Literal["malformed", "excluded"] = "malformed"

    def __str__(self) -> str:
        return f"{Place(Path(self.file), self.index, run=self.id)}: {self.reason}"


def count_left_out(left_out: Sequence[LeftOut], n_runs: int) -> str:
    """Say of how many runs how many are left out and why, and name the first."""
    total = n_runs + len(left_out)
    reasons = Counter(one.reason for one in left_out if one.kind == "excluded")
    n_malformed = len(left_out) - reasons.total()
    said = []
    if n_malformed:
        said.append(f"{n_malformed} of {total} runs could not be read and are left out")
    if reasons:
        names = ", ".join(f"{reason} {count}" for reason, count in sorted(reasons.items()))
        said.append(f"{reasons.total()} of {total} runs are excluded ({names})")
    shown = "; ".join(str(one) for one in sorted(left_out, key=_malformed_first)[:_NAMED])
    more = f"; and {len(left_out) - _NAMED} more" if len(left_out) > _NAMED else ""
    return f"{', '.join(said)}: {shown}{more}"


def _malformed_first(one: LeftOut) -> bool:
    return one.kind == "excluded"


def warn_of_left_out(left_out: Sequence[LeftOut], n_runs: int, stacklevel: int) -> None:
    """Warn once of all runs that are left out."""
    if left_out:
        said = count_left_out(left_out, n_runs)
        warnings.warn(f"{said} (all are in .left_out)", UserWarning, stacklevel=stacklevel + 1)


class RunStream(Iterator[Run]):
    """Runs of a log, one at a time, so that the log need not fit into memory.

    Attributes
    ----------
    left_out : list of LeftOut
        Runs so far that could not be read, or that a fault of the test bench ended.
    info : dict of str to dict
        For each file, its fields that belong to no single run.
    n_read : int
        Number of runs so far.
    remarks : list of str
        What so far was not used, one sentence each.
    """

    def __init__(
        self,
        found: Iterator[Run | LeftOut],
        info: dict[str, dict[str, Any]],
        chooser: Chooser,
        *,
        warns: bool,
    ) -> None:
        self.left_out: list[LeftOut] = []
        self.info = info
        self.n_read = 0
        self.chooser = chooser
        self._found = found
        self._warns = warns

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Run:
        for found in self._found:
            if isinstance(found, Run):
                self.n_read += 1
                return found
            self.left_out.append(found)
        if self._warns:
            self._warns = False
            warn_of_left_out(self.left_out, self.n_read, stacklevel=2)
        raise StopIteration

    @property
    def remarks(self) -> list[str]:
        same = self.chooser.same_ids()
        found = [*([same] if same else []), *self.chooser.remarks()]
        return [str(ArgumentError(one)) for one in found]


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
        ``kind``: "malformed" if it could not be read, "excluded" if a fault of the test bench ended
        it.
    info : dict of str to dict
        For each file, its fields that belong to no single run.
    remarks : list of str
        What the log holds that was not used, one sentence each: scores, rows of a table.

    Examples
    --------
    >>> from trajscore.io import Run, Runs
    >>> Runs([Run("a", outcome=1), Run("b")])
    <Runs: 2 runs, 1 successes, 0 failures, 1 not observed>
    """

    def __init__(self, runs: Iterable[Run] = ()) -> None:
        if not is_iterable(runs):
            raise ValueError(f"runs must be runs of a log, got {runs!r}")
        super().__init__(runs)
        self.left_out: list[LeftOut] = []
        self.info: dict[str, dict[str, Any]] = {}
        self.remarks: list[str] = []
        self.chooser: Chooser | None = None
        if isinstance(runs, RunStream):
            self.left_out, self.info, self.remarks = runs.left_out, runs.info, runs.remarks
            self.chooser = runs.chooser

    def __repr__(self) -> str:
        ended = Counter(run.outcome for run in self)
        kinds = Counter(one.kind for one in self.left_out)
        left = ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items(), reverse=True))
        graded = len(self) - ended[SUCCESS] - ended[FAILURE] - ended[CENSORED]
        return (
            f"<Runs: {len(self)} runs, {ended[SUCCESS]} successes, {ended[FAILURE]} failures, "
            + (f"{graded} graded between, " if graded else "")
            + f"{ended[CENSORED]} not observed{'; ' + left if left else ''}>"
        )

    def _repr_html_(self) -> str:
        return as_html(repr(self)[1:-1], meta(self[:N_SHOWN]))


def outcomes(runs: Iterable[Run]) -> NDArray[Any]:
    """Return the outcome of each run.

    Parameters
    ----------
    runs : iterable of Run
        What a reader gave.

    Returns
    -------
    ndarray of shape (n_runs,)
        int64 codes, 1 success, 0 failure, -1 not observed; float64 if there are grades between.

    Raises
    ------
    ValueError
        If an outcome is anything else; the message names the run. Or if the log that a reader gave
        has no outcome; the message says what its runs have instead.

    Examples
    --------
    >>> from trajscore import io
    >>> io.outcomes([io.Run("a", outcome=1), io.Run("b")])
    array([ 1, -1])
    """
    chooser = runs.chooser if isinstance(runs, Runs) else None
    if chooser is not None and (lacks := chooser.lacks_outcomes()):
        raise ArgumentError(lacks)
    ended = [(run.id, run.outcome) for run in _checked(runs)]
    for name, outcome in ended:
        if as_grade(outcome) is None:
            raise ValueError(
                f"run {name!r}: outcome {outcome!r} is not understood; use 1 for success, 0 for "
                f"failure, -1 where it was not observed, or a grade between 0 and 1"
            )
    return check_outcomes([outcome for _, outcome in ended])


def meta(runs: Iterable[Run]) -> pd.DataFrame:
    """Return a table with one row a run: who, what, how it ended, and which signals it holds.

    Parameters
    ----------
    runs : iterable of Run
        What a reader gave.

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
    rows = [_row(run) for run in _checked(runs)]
    return pd.DataFrame(rows) if rows else pd.DataFrame(columns=list(_row(Run(""))))


def _checked(runs: Any) -> list[Run]:
    """Refuse what is not runs of a log."""
    listed = list(runs) if is_iterable(runs) else [runs]
    for one in listed:
        if not isinstance(one, Run):
            raise ValueError(f"runs must be runs of a log, as io.read_runs gives them, got {one!r}")
    return listed


def _row(run: Run) -> dict[str, Any]:
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
        "n_logprobs": sum(step.logprobs is not None for step in agent),
        "n_top_logprobs": sum(step.top_logprobs is not None for step in agent),
        "n_confidence": sum(step.confidence is not None for step in agent),
    }
    return row | {name: value for name, value in run.meta.items() if name not in row}
