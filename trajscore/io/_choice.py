"""Which of what a log says is the outcome, the confidence, the stop and the id, for every format.

A format puts into a run the outcome that it defines, if it does, and all judgements and other
fields by name. Here the names are looked up, those that a user gives or the usual ones.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, Self

import pandas as pd

from trajscore.core.errors import ArgumentError
from trajscore.core.frame import joined_ids
from trajscore.core.meanings import as_mapped, check_map, refuse_words
from trajscore.core.outcomes import CENSORED
from trajscore.core.stops import Rule
from trajscore.core.values import as_path, unknown_name
from trajscore.io._grades import as_grade
from trajscore.io._run import MalformedRunError, Run, Step
from trajscore.io.fields import Fields, dig, find, scalar
from trajscore.io.tables import read_table

Table = dict[str, dict[str, Any]]

_MOST_VALUES = 8  # distinct values of a field that may be an outcome
_MOST_NAMED = 5
_FEW = 3


@dataclass(frozen=True)
class Choice:
    """What a user says of a log, in the words of `trajscore.io.read_runs`."""

    rule: Rule | None = None
    outcome: str | None = None
    outcome_map: Mapping[Any, float] | str | None = None
    outcomes: Any = None
    confidence: str | None = None
    stop_reason: str | None = None
    id: str | tuple[str, ...] | None = None
    max_size: int | None = None
    table: Table | None = field(default=None, init=False)
    meanings: Mapping[str, float] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        if isinstance(self.id, list):
            object.__setattr__(self, "id", tuple(self.id))
        for part in ("outcome", "confidence", "stop_reason", "id"):
            names = getattr(self, part)
            given = names if isinstance(names, tuple) else () if names is None else (names,)
            for name in given:
                if not isinstance(name, str):
                    raise ValueError(f"{part} must be the name of a field, got {name!r}")
        object.__setattr__(self, "meanings", check_map(self.outcome_map))
        object.__setattr__(self, "table", read_outcomes(self.outcomes, self.fields))

    @classmethod
    def take(cls, options: dict[str, Any]) -> Self:
        """Take the options of every format out of those that were given."""
        own = [one.name for one in fields(cls) if one.init]
        named = options.get("fields")
        if isinstance(named, Mapping):  # of JSON lines: a map of all names
            options["fields"] = {k: v for k, v in named.items() if k not in own}
            options |= {k: v for k, v in named.items() if k in own and options.get(k) is None}
        return cls(**{name: options.pop(name) for name in own if name in options})

    @property
    def fields(self) -> Fields:
        """The names that were given, for a format that needs them."""
        return Fields(
            id=self.id,
            outcome=self.outcome,
            confidence=self.confidence,
            stop_reason=self.stop_reason,
        )


@dataclass
class Chooser:
    """Chooses for each run, and counts what it used and what it did not."""

    choice: Choice
    n_runs: int = 0
    used: Counter[tuple[str, str]] = field(default_factory=Counter)  # part and name
    unused: Counter[tuple[str, str]] = field(default_factory=Counter)  # "run" or "step", and name
    words: Counter[str] = field(default_factory=Counter)  # outcomes that are no numbers
    seen: dict[str, Counter[Any]] = field(default_factory=dict)  # values that may be outcomes
    of_steps: Counter[str] = field(default_factory=Counter)  # names of the agent's turns
    in_table: set[str] = field(default_factory=set)
    n_ended: int = 0  # runs with an outcome, or a reason to have none
    ids: Counter[str] = field(default_factory=Counter)

    def settle(self, run: Run) -> None:
        """Choose the run's id, stop reason and outcome, and the confidence of its turns."""
        self.n_runs += 1
        said = {**run.meta, **run.extra, **run.scores}
        own = {"id": run.id, "task": run.task, "trial": run.trial, "stop_reason": run.stop_reason}
        said |= {name: value for name, value in own.items() if said.get(name) is None}
        names = self.choice.fields.names(run.extra | run.scores, ("outcome", "stop_reason"))
        if self.choice.id is not None:
            self._name(run, said)
        self.ids[run.id] += 1
        if self.choice.stop_reason is not None or run.stop_reason is None:
            name = names.get("stop_reason", "")
            reason = scalar(dig(said, name))
            if reason not in (None, ""):
                run.stop_reason = str(reason)
                self.used["stop_reason", name] += 1
                run.extra.pop(name, None)
        self._choose_confidence(run)
        if self.choice.stop_reason is not None:
            self._note(run.extra | run.scores)
        self._choose_outcome(run, said, names.get("outcome"))

    def _name(self, run: Run, said: Mapping[str, Any]) -> None:
        name = self.choice.fields.id_of(said)
        if name is None:
            raise MalformedRunError(f"it lacks a value of the id, {self.choice.id!r}")
        run.id = name
        self.used["id", str(self.choice.id)] += 1

    def _choose_outcome(self, run: Run, said: Mapping[str, Any], name: str | None) -> None:
        given = self.choice.outcome is not None
        value: Any = None
        if self.choice.table is not None:
            row = self.choice.table.get(run.id, {})
            self.in_table.update([run.id] if row else [])
            value, name = row.get("outcome"), "the table"
            run.stop_reason = row.get("stop_reason", run.stop_reason)
        elif given or (run.outcome == CENSORED and "reward" not in run.meta):
            value = scalar(dig(said, name)) if name else None
            name = name if value is not None else None
        else:
            name = None
        for one in run.scores:
            self.unused["run", one] += one != (name or "").split(".")[0]
        if name is None and not given:
            self._note(run.extra | run.scores)
            return
        run.meta["reward"] = value
        run.extra.pop(str(name), None)
        self.used["outcome", str(name)] += value is not None
        run.outcome = self._as_outcome(value)

    def _as_outcome(self, value: Any) -> float:
        found = as_mapped(value, self.choice.meanings)
        if isinstance(found, str):
            self.words[found] += 1
        grade = as_grade(found)
        if grade is None:
            raise MalformedRunError(
                f"its outcome {value!r} is neither a number in [0, 1], nor -1, nor true or false; "
                f"say what it means with outcome_map (--map)"
            )
        return grade

    def _choose_confidence(self, run: Run) -> None:
        for step in run.steps:
            if step.actor == "agent":
                self._confidence_of(step)

    def _confidence_of(self, step: Step) -> None:
        given = self.choice.confidence
        name = given
        if given is not None or step.confidence is None:
            said = {**step.extra, **step.scores}
            if given is None:
                name = self.choice.fields.names(said, ("confidence",)).get("confidence")
            found = as_confidence(scalar(dig(said, name)) if name else None)
            if given == "confidence" and found is None:
                found = step.confidence
            step.confidence = found
            if found is not None:
                step.extra.pop(str(name), None)
            self.of_steps.update(map(str, said) if given is not None else ())
            self.used["confidence", str(name)] += found is not None
        for one in step.scores:
            self.unused["step", one] += one != (name or "").split(".")[0]

    def _note(self, said: Mapping[str, Any]) -> None:
        """Note the values of fields that could be outcomes, for the error."""
        for name, value in _flat(said):
            values = self.seen.setdefault(name, Counter())
            if len(values) <= _MOST_VALUES:
                values[value] += 1

    def check(self, where: str) -> None:
        """Refuse a log of which what a user named is nowhere, or an outcome is a word."""
        if self.words:
            refuse_words(self.words, self.n_runs, self.choice.meanings, f"{where}: ")
        for part in ("outcome", "confidence", "stop_reason"):
            name = getattr(self.choice, part)
            if name is None or self.used[part, name] or not self.n_runs:
                continue
            if part == "outcome" and self.choice.table is not None:  # a column of the table
                continue
            have = list(self.of_steps) if part == "confidence" else list(self.seen)
            kind = "field of a turn" if part == "confidence" else "field of a run"
            raise ArgumentError(f"{where}: {{argument}}: {unknown_name(kind, name, have)}", part)

    def lacks_outcomes(self) -> str:
        """Say what would help where no run has an outcome; "" where one has."""
        if self.n_ended or not self.n_runs:
            return ""
        if self.choice.table is not None:
            return (
                "no run has an outcome: no id of the log is in the table of outcomes (the log has "
                f"{', '.join(map(repr, list(self.ids)[:_FEW]))}, the table "
                f"{', '.join(map(repr, list(self.choice.table)[:_FEW]))}); name the field that "
                f"holds the table's ids with {{argument:id}}"
            )
        said = "; ".join(_shown(name, values) for name, values in self.candidates().items())
        said = f" (the runs have {said})" if said else ""
        return (
            f"no run has an outcome{said}; name the field with {{argument:outcome}}, or give a "
            f"table of run ids ({', '.join(map(repr, list(self.ids)[:_FEW]))} ...) and outcomes "
            f"with {{argument:outcomes}}"
        )

    def same_ids(self) -> str:
        """Say which runs cannot be told apart by their ids; "" where all can."""
        several = {name: n for name, n in self.ids.items() if n > 1}
        if not several:
            return ""
        name = next(iter(several))
        more = f", and so do {len(several) - 1} other ids" if len(several) > 1 else ""
        return (
            f"{several[name]} runs have the id {name!r}{more}; name the fields that tell runs "
            f"apart with {{argument:id}}, more than one if need be, such as file and id"
        )

    def candidates(self) -> dict[str, Counter[Any]]:
        """Return the fields that could be outcomes, with their values, the likeliest first."""
        few = {
            name: values
            for name, values in self.seen.items()
            if 1 <= len(values) <= _MOST_VALUES and not (len(values) == 1 == self.n_runs)
        }
        order = sorted(few, key=lambda name: (len(few[name]) < 2, len(few[name])))
        return {name: few[name] for name in order[:_MOST_NAMED]}

    def remarks(self) -> Iterator[str]:
        """Say what was not used, one sentence each."""
        if self.choice.table is not None and self.n_ended:
            found = len(self.in_table)
            yield from _not_joined(len(self.choice.table) - found, self.n_runs - found)
        for (where, name), count in sorted(self.unused.items()):
            if count:
                part, of = ("outcome", "runs") if where == "run" else ("confidence", "turns")
                what = f"score{'s' * (count > 1)} of {of}"
                yield f"{count} {what} named {name!r}: not used; {{argument:{part}={name}}}"


def as_confidence(value: Any) -> float | None:
    """Read a confidence: a number, or per cent as text; None for all else."""
    if value is None or isinstance(value, bool):
        return None
    text = str(value).strip()
    try:
        number = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        return None
    return None if math.isnan(number) else number


def _flat(said: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the fields that may say how a run ended, those of inner objects too."""
    for name, value in said.items():
        inner = value.items() if isinstance(value, Mapping) else ()
        one = scalar(value)
        if _may_be_outcome(one):
            yield str(name), one
            continue
        for key, within in inner:
            one = scalar(within)
            if _may_be_outcome(one):
                yield f"{name}.{key}", one


def _may_be_outcome(value: Any) -> bool:
    if isinstance(value, str):
        return 0 < len(value) <= 20
    return isinstance(value, (bool, int, float)) and not math.isnan(value)


def _shown(name: str, values: Counter[Any]) -> str:
    listed = ", ".join(f"{value} {count}" for value, count in values.most_common(3))
    return f"{name!r}: {listed}{', ...' * (len(values) > 3)}"


def read_outcomes(given: Any, names: Fields) -> Table | None:
    """Read the table that says how runs ended, by id."""
    if given is None:
        return None
    if isinstance(given, Mapping):
        return {str(one): {"outcome": outcome} for one, outcome in given.items()}
    frame = given if isinstance(given, pd.DataFrame) else read_table(as_path(given, "outcomes"))
    keys = _columns(frame, names)
    ids = joined_ids(frame, keys).astype(str)
    if ids.duplicated().any():
        twice = ids[ids.duplicated()].iloc[0]
        raise ValueError(f"the table of outcomes has run {twice!r} twice; keep one row a run")
    columns = {part: _column(frame, names, part) for part in ("outcome", "stop_reason")}
    rows = [
        {
            part: row[name]
            for part, name in columns.items()
            if name is not None and pd.notna(row[name])
        }
        for row in frame.to_dict("records")
    ]
    return dict(zip(ids, rows, strict=True))


def join_outcomes(
    frame: pd.DataFrame, names: Fields, given: Any
) -> tuple[pd.DataFrame, Fields, tuple[str, ...]]:
    """Return a long table with the outcomes of another one, by id, and what did not fit."""
    table = read_outcomes(given, names)
    if table is None:
        return frame, names, ()
    ids = joined_ids(frame, _columns(frame, names)).astype(str)
    runs = set(ids)
    missing, more = len(runs - table.keys()), len(table.keys() - runs)
    if missing == len(runs):
        raise ArgumentError(
            f"{{argument}}: no run id of the table ({', '.join(map(repr, list(ids[:_FEW])))}) is "
            f"in the table of outcomes ({', '.join(map(repr, list(table)[:_FEW]))}); name the "
            f"column that both have with {{argument:id}}",
            "outcomes",
        )
    frame = frame.assign(**{_JOINED: [table.get(one, {}).get("outcome") for one in ids]})
    return frame, replace(names, outcome=_JOINED), tuple(_not_joined(more, missing))


_JOINED = "outcome in the table of outcomes"


def _not_joined(more: int, lacking: int) -> Iterator[str]:
    if more:
        yield f"rows of the table of outcomes whose run is not in the log: {more}"
    if lacking:
        yield f"runs of the log that are not in the table of outcomes: {lacking}"


def _columns(frame: pd.DataFrame, names: Fields) -> list[str]:
    """Return the columns of the id: those that were given if the table has them, or a usual one."""
    given = list(names.ids)
    if given and all(name in frame.columns for name in given):
        return given
    found = find("id", frame.columns)
    if not found:
        raise ArgumentError(
            f"the table of outcomes has no column of run ids; name one of its columns "
            f"({', '.join(map(str, frame.columns))}) 'id'",
            "outcomes",
        )
    return [found[0]]


def _column(frame: pd.DataFrame, names: Fields, part: str) -> Any:
    given = getattr(names, part)
    if given is not None and given in frame.columns:
        return given
    if given is not None and part == "outcome":
        said = unknown_name("column", given, list(frame.columns))
        raise ArgumentError(f"the table of outcomes: {{argument}}: {said}", part)
    found = find(part, frame.columns)
    if not found and part == "outcome":
        raise ArgumentError(
            f"the table of outcomes has no column of outcomes; name one of its columns "
            f"({', '.join(map(str, frame.columns))}) with {{argument}}",
            "outcome",
        )
    return found[0] if found else None


def turns_say_nothing(steps: Iterable[Step]) -> bool:
    """Tell whether every turn is empty, as of a record that was not understood."""
    return not any(
        step.text.strip()
        or step.tool_calls
        or step.logprobs is not None
        or step.confidence is not None
        or step.observation
        or step.scores
        for step in steps
    )
