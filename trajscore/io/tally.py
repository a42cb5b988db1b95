"""What the runs of a log hold, and what of it was used; numbers and names only."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from trajscore.core.values import is_number
from trajscore.io._run import Run, Step
from trajscore.io.fields import scalar
from trajscore.io.logprobs import are_recorded
from trajscore.io.text import is_known

# What formats count in the extra of a run.
_COUNTED = ("replaced_scores", "unanswered", "without_role", "lines_of_run", "repeated")
_AGENTS = {"agent", "assistant", "ai", "bot"}  # who is no user, whatever the role
_MAX_RUNS = 10_000  # of which the beginnings are compared
_MAX_LENGTH = 20  # of the text of a field that may be an outcome


@dataclass
class Tally:
    """Counts over the runs of a log."""

    n_runs: int = 0
    n_with_outcome: int = 0  # or with a stop reason that explains why there is none
    ids: Counter[str] = field(default_factory=Counter)
    trials: Counter[tuple[Any, str]] = field(default_factory=Counter)  # tasks and trials of runs
    in_table: set[str] = field(default_factory=set)  # ids found in the table of outcomes
    used: Counter[tuple[str, str]] = field(default_factory=Counter)  # part and name
    unused: Counter[tuple[str, str]] = field(default_factory=Counter)  # "run" or "step", and name
    words: Counter[str] = field(default_factory=Counter)  # outcomes that are not numbers
    texts: set[str] = field(default_factory=set)  # outcomes that are text, as they stand
    names_of_runs: Counter[str] = field(default_factory=Counter)  # fields that may be outcomes
    odd: Counter[str] = field(default_factory=Counter)  # turns, calls and results with a flaw
    unread: Counter[str] = field(default_factory=Counter)  # texts no run holds, by their fields
    unread_logprobs: Counter[str] = field(default_factory=Counter)  # the same of log-probabilities
    n_turns: int = 0  # of the agent
    n_scored: int = 0  # turns with log-probabilities
    is_scored: bool = False  # whether these are recorded
    stops: Counter[tuple[str, str]] = field(default_factory=Counter)  # of `core.stops.Stops`
    names_of_users: Counter[str] = field(default_factory=Counter)  # where a run has several
    unknown_roles: Counter[str] = field(default_factory=Counter)  # turns that are not the agent's
    wholes: Counter[int] = field(default_factory=Counter)  # hashes of conversations
    beginnings: set[int] = field(default_factory=set)  # hashes of what they begin with
    names_of_turns: Counter[str] = field(default_factory=Counter)  # fields of the agent's turns
    unstarted: dict[str, int] = field(default_factory=dict)  # places of runs without a turn, by id
    n_with_session: int = 0  # traces that name the session that they are of

    def note_run(self, run: Run) -> None:
        """Count what is odd in a run, and note how its conversation goes."""
        for name in _COUNTED:
            self.odd[name] += run.extra.get(name, 0)
        self.odd["aside"] += sum(run.extra.get("n_left_out", {}).values())
        self.odd["result"] += len(run.extra.get("unmatched_results", ()))
        if n_scored := sum(step.logprobs is not None for step in run.steps):
            self.n_scored += n_scored
            self.is_scored = self.is_scored or are_recorded([run])
        self.n_with_session += "session" in run.meta
        self._note_turns(run)
        if self.n_runs <= _MAX_RUNS and not run.ended_before_start:
            self._note_beginnings(run)

    def _note_turns(self, run: Run) -> None:
        steps = run.steps
        is_named = any(name_of(step) is not None for step in steps if step.actor == "agent")
        names = [name_of(step, is_named) for step in steps if step.actor == "user"]
        users = [name for name in names if name is not None]
        if len({*users}) > 1 or any(name.lower() in _AGENTS for name in users[:1]):
            self.names_of_users.update(users)
        self.odd["turn"] += sum(step.is_empty for step in steps)
        self.odd["content"] += sum(not is_known(step.extra.get("parts")) for step in steps)
        self.odd["call"] += sum(not call.name for step in steps for call in step.tool_calls)

    def _note_beginnings(self, run: Run) -> None:
        beginning = 0
        for k, step in enumerate(run.steps):
            calls = ((call.name, str(call.arguments)) for call in step.tool_calls)
            beginning = hash((beginning, step.actor, step.text, step.confidence, *calls))
            if k == len(run.steps) - 1:
                self.wholes[beginning] += k > 0
            else:
                self.beginnings.add(beginning)

    def n_beginnings(self) -> int:
        """Return how many runs are nothing but the beginning of another."""
        return sum(n for whole, n in self.wholes.items() if whole in self.beginnings)

    def note_scores(self, owner: str, names: Iterable[str], chosen: str | None) -> None:
        """Count the scores of a run or a step but the chosen one."""
        for name in names:
            self.unused[owner, name] += name != (chosen or "").split(".")[0]

    def note_fields(self, record: Mapping[str, Any]) -> None:
        """Note the names of fields that could be outcomes: numbers, and words."""
        for name, field_value in _fields_within(record):
            value = scalar(field_value)
            is_short = isinstance(value, str) and 0 < len(value) <= _MAX_LENGTH
            self.names_of_runs[name] += is_short or is_number(value)


def name_of(step: Step, is_source: bool = True) -> str | None:
    """Return the name beside the role of a turn, or for one."""
    for name in ("name", "source", "role"):
        if name in step.extra and (is_source or name != "source"):
            return str(step.extra[name])
    return None


def _fields_within(record: Mapping[str, Any], depth: int = 2) -> Iterator[tuple[str, Any]]:
    """Yield the fields of a record, and those of objects that are not one value."""
    for name, value in record.items():
        if depth and isinstance(value, dict) and scalar(value) is None:
            inner = _fields_within(value, depth - 1)
            yield from ((f"{name}.{path}", leaf) for path, leaf in inner)
        else:
            yield str(name), value
