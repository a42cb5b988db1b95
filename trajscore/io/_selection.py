"""Choosing the id, stop reason, outcome and confidence of each run, the same for every format.

A format gives a run its outcome where it defines one, and all judgements and other fields by name.
What was found in them is tallied.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Self, get_args

from trajscore.core.errors import ArgumentError
from trajscore.core.outcomes import (
    CENSORED,
    FAILURE,
    SUCCESS,
    as_mapped,
    bare_name,
    check_map,
    check_polarity,
    propose,
    words_of,
)
from trajscore.core.stops import ReadRule, as_reason, choose_reason
from trajscore.core.values import as_pairs, check_known, is_number, parse_number, run_label
from trajscore.io._run import Actor, MalformedRunError, Run, Step, as_grade, leftover
from trajscore.io.fields import (
    ANY_PARTS,
    LAST,
    USUAL_FIELDS,
    Fields,
    dig,
    named_path,
    scalar,
    stop_paths,
    usual_names,
)
from trajscore.io.logprobs import are_recorded
from trajscore.io.outcome_tables import OutcomeTable, examples, read_outcomes
from trajscore.io.vocabulary import WORDS, Record, as_list, first, is_known, role_of

_NOT_STATED = ("", "none", "nan")
_PARTS = ("outcome", "confidence", "stop_reason", "id")


@dataclass(frozen=True)
class Selection:
    """The options of `trajscore.io.read_runs` that every format has."""

    fields: Fields = USUAL_FIELDS
    rule: ReadRule | None = None
    meanings: Mapping[str, float] = field(default_factory=dict)
    table: OutcomeTable | None = None
    roles: Mapping[str, Actor] = field(default_factory=dict)
    max_size: int | None = None

    @classmethod
    def take(cls, options: dict[str, Any]) -> Self:
        """Take the options of every format out of a dict of options."""
        mapping = as_pairs(options.pop("fields", None)) or {}  # "steps=events,text=body"
        if not isinstance(mapping, Mapping):
            raise ValueError(f"fields must be a dict of names by part, got {mapping!r}")
        check_known(mapping, ANY_PARTS, "part", "fields")
        names = {**mapping, **leftover({part: options.pop(part, None) for part in _PARTS})}
        if isinstance(names.get("id"), list):
            names["id"] = tuple(names["id"])
        for part, value in names.items():
            for name in value if isinstance(value, tuple) else (value,):
                if value is not None and not isinstance(name, str):
                    raise ValueError(f"{part} must be the name of a field, got {name!r}")
        fields = Fields(**names)
        meanings = check_map(options.pop("outcome_map", None))
        check_polarity(fields.outcome, meanings)
        rule = as_pairs(options.pop("rule", None))
        max_size = options.pop("max_size", None)
        table = read_outcomes(options.pop("outcomes", None), fields, rule, max_size)
        roles = _check_roles(options.pop("roles", None))
        return cls(fields, rule, meanings, table, roles, max_size)

    def apply(self, run: Run, tally: Tally) -> None:
        """Set a run's id, stop reason and outcome, and the confidence of its turns."""
        usual = {"id": run.id, "task": run.task, "trial": run.trial, "stop_reason": run.stop_reason}
        record = usual | leftover({**run.meta, **run.extra, **run.scores})
        tally.n_runs += 1
        if self.fields.id is not None:
            name = self.fields.id_of(record)
            if name is None:
                raise MalformedRunError(f"it has no value of the id field {self.fields.id!r}")
            run.id = name
        self._set_stop_reason(run, record, tally)
        if run.outcome == CENSORED or self.fields != USUAL_FIELDS:  # else nothing is asked
            fields = {"reward": run.meta.get("reward"), **run.extra, **run.scores}
            tally.note_fields(fields, run.scores)
        for step in run.steps:
            if self.roles or step.actor == "environment":
                self._set_actor(step, tally)
            if step.actor == "agent":
                tally.n_turns += 1
                self._set_confidence(step, tally)
        self._set_outcome(run, record, tally)

    def _set_stop_reason(self, run: Run, record: Record, tally: Tally) -> None:
        """Set the reason that decides, of the named field or of all usual ones."""
        name = self.fields.stop_reason
        paths = stop_paths(run.extra) if name is None else [named_path(record, name)]
        reasons = leftover(
            {path: as_reason(dig(record, path), path.split(".")[-1]) for path in paths}
        )
        all_reasons = [*reasons.values()]
        if name is None or not reasons:
            all_reasons.insert(0, as_reason(run.stop_reason))
        run.stop_reason = choose_reason(all_reasons, self.rule)
        for path in reasons:
            tally.used["stop_reason", str(name)] += 1
            if run.extra.get(path) == run.stop_reason:  # else it says more, such as a message
                del run.extra[path]

    def _set_actor(self, step: Step, tally: Tally) -> None:
        """Set who acts by what the user says of a role, or of a name beside the role."""
        names = (str(step.extra.get(name)) for name in _NAMES)
        named = next(filter(self.roles.__contains__, names), None)
        if named is not None:
            step.actor = self.roles[named]
            tally.used["roles", named] += 1
        elif step.actor == "environment" and "role" in step.extra:
            tally.unknown_roles[str(step.extra["role"])] += 1

    def _set_outcome(self, run: Run, record: Record, tally: Tally) -> None:
        """Set the outcome of the table, else of the named field, else of one with a usual name.

        A reward that the format itself holds is the outcome already, if it is at most 1.
        """
        value = None
        named = self.fields.outcome
        name = self.fields.names(run.extra | run.scores, ("outcome",)).get("outcome")
        is_turned = named is not None and bare_name(named, record) != named
        if self.table is not None:
            is_turned = self.table.is_turned
            row = self.table.get(run.id, {})
            tally.in_table |= {run.id} & self.table.keys()
            value = row.get("outcome")
            name = "the table"
            run.stop_reason = row.get("stop_reason", run.stop_reason)
        elif named is not None or (run.outcome == CENSORED and "reward" not in run.meta):
            listed = dig(record, name or "")
            value = scalar(listed)
            if as_list(listed) and all(map(is_number, listed)):
                raise ArgumentError(
                    f"{run.meta['file']}: the outcome {name!r} has several values in run "
                    f"{run.id!r} ({examples(listed)}); if the last counts, pass "
                    f"{{argument:outcome={name}{LAST}}}",
                    "outcome",
                )
        elif run.outcome == FAILURE and (reward := run.meta.get("reward") or 0.0) > 1:
            value = reward  # on another scale: only the user knows what it means
            name = "reward"
        if value is None and self.table is None:
            name = None
        tally.note_scores("run", leftover(run.scores), name)
        if name is None and named is None:
            return
        run.meta["reward"] = value
        run.extra.pop(str(name), None)
        tally.used["outcome", str(named)] += value is not None
        outcome = self._as_outcome(value, str(name), run, tally)
        run.outcome = outcome
        tally.odd["minus_one"] += value == outcome == CENSORED and "reward" in str(name)
        if is_turned and outcome != CENSORED:
            run.outcome = as_grade(1 - outcome) or FAILURE
        if named is None and self.table is None:  # by a usual name
            others = usual_names("outcome", record.keys() - {name})
            grades = [as_grade(as_mapped(scalar(record[k]), self.meanings)) for k in others]
            tally.odd["contrary"] += outcome in (SUCCESS, FAILURE) and 1 - outcome in grades

    def _as_outcome(self, value: Any, name: str, run: Run, tally: Tally) -> float:
        meaning = as_mapped(value, self.meanings)
        if isinstance(value, str):
            tally.texts.add(value)
        if isinstance(meaning, str):
            tally.words[meaning] += 1
        grade = as_grade(meaning)
        if grade is None:
            problem = ArgumentError(
                f"the outcome is {value!r} ({name}), not true, false, -1 or a number in [0, 1]; "
                f"name a field with {{argument}}, or its meanings with {{argument:outcome_map}}",
                "outcome",
            )
            if is_number(meaning):  # of tests, or on another scale, as in other runs
                place = f"{run.meta['file']}, run {run_label(run.id)}"
                raise ArgumentError(f"{place}: {problem.text}", problem.part)
            raise MalformedRunError(str(problem))
        return grade

    def _set_confidence(self, step: Step, tally: Tally) -> None:
        name = self.fields.confidence
        if name is not None or step.confidence is None:
            record = step.extra | step.scores
            if step.confidence is not None:
                record = {"confidence": step.confidence} | record
            if not record:
                return
            path = self.fields.names(record, ("confidence",)).get("confidence")
            is_unused = name is not None or path is None
            if is_unused and not record.keys() <= tally.names_of_turns.keys():
                tally.names_of_turns |= dict.fromkeys(map(str, record))
            name = path
            if path is not None:
                self._take_confidence(step, record, path, tally)
        tally.note_scores("step", step.scores, name)

    def _take_confidence(self, step: Step, record: Record, path: str, tally: Tally) -> None:
        name = self.fields.confidence or ""
        stated = dig(record, path)
        step.confidence = None
        value = parse_number(str(scalar(stated)))  # a number, or per cent as text
        if value is None or not math.isfinite(value):
            tally.odd["confidence"] += str(stated).lower() not in _NOT_STATED
            return
        step.confidence = value
        if bare_name(name, record) != name:
            step.confidence = 1 - value
        step.extra.pop(path, None)
        tally.used["confidence", name or path] += 1


def _check_roles(roles: Any) -> dict[str, Actor]:
    """Return who acts under which role."""
    roles = as_pairs(roles) or {}
    if not isinstance(roles, Mapping) or not {*roles.values()} <= {*get_args(Actor)}:
        raise ArgumentError(
            f"{{argument}} must say for each role whether it is agent, user or environment, "
            f"got {roles!r}",
            "roles",
        )
    return dict(roles)


_NAMES = dict.fromkeys(("name", "source", "role")).keys()
_OF_OUTCOMES = {*WORDS["names"]["of_outcomes"]}
_MAX_RUNS = 10_000  # of which the beginnings are compared
_MAX_LENGTH = 20  # of the text of a field that may be an outcome


class Tally:
    """Counts over the runs of a log."""

    def __init__(self) -> None:
        self.n_runs = 0
        self.n_with_outcome = 0  # or with a stop reason that explains why there is none
        self.ids = Counter[str]()
        self.trials = Counter[tuple[Any, str]]()  # tasks and trials of runs
        self.in_table = set[str]()  # ids found in the table of outcomes
        self.used = Counter[tuple[str, str]]()  # part and name
        self.unused = Counter[tuple[str, str]]()  # "run" or "step", and name
        self.words = Counter[str]()  # outcomes that are not numbers
        self.texts = set[str]()  # outcomes that are text, as they stand
        self.names_of_runs = Counter[str]()  # fields that may be outcomes
        self.likely_outcomes = Counter[str]()  # the same, by name and value
        self.odd = Counter[str]()  # turns, calls and results with a flaw
        self.unread = Counter[str]()  # texts no run holds, by their fields
        self.unread_logprobs = Counter[str]()  # the same of log-probabilities
        self.n_turns = 0  # of the agent
        self.n_scored = 0  # turns with log-probabilities
        self.is_scored = False  # whether these are recorded
        self.stops = Counter[tuple[str, str]]()  # of `core.stops.Stops`
        self.names_of_users = Counter[str]()  # where a run has several
        self.unknown_roles = Counter[str]()  # turns that are not the agent's
        self.wholes = Counter[int]()  # hashes of conversations
        self.beginnings = set[int]()  # hashes of what they begin with
        self.names_of_turns: dict[str, None] = {}  # fields of the agent's turns
        self.unstarted: dict[str, int] = {}  # places of runs without a turn, by id
        self.n_with_session = 0  # traces that name the session that they are of

    def note_run(self, run: Run) -> None:
        """Count what is odd in a run, and note how its conversation goes."""
        for name in WORDS["counted"]:
            self.odd[name] += run.extra.get(name, 0)
        self.odd["aside"] += sum(run.extra.get("n_left_out", {}).values())
        self.odd["result"] += len(run.extra.get("unmatched_results", ()))
        if n_scored := sum(step.logprobs is not None for step in run.steps):
            self.n_scored += n_scored
            self.is_scored |= are_recorded([run])
        self.n_with_session += "session" in run.meta
        self._note_turns(run)
        if self.n_runs <= _MAX_RUNS and not run.ended_before_start:
            self._note_beginnings(run)

    def _note_turns(self, run: Run) -> None:
        steps = run.steps
        others = [step for step in steps if step.extra]
        named = [step for step in others if not _NAMES.isdisjoint(step.extra)]
        is_named = any(step.actor == "agent" for step in named)
        # beside the role or for one; the source is one of several where agents have one, too
        fields = [name for name in _NAMES if is_named or name != "source"]
        names = [first(step.extra, fields, blank=True) for step in named if step.actor == "user"]
        users = [str(name) for name in names if name is not None]
        if len({*users}) > 1 or any(role_of(name) == "agent" for name in users[:1]):
            self.names_of_users.update(users)
        self.odd["turn"] += sum(step.is_empty for step in steps)
        self.odd["content"] += sum(not is_known(step.extra.get("parts")) for step in others)
        self.odd["call"] += sum(not call.name for step in steps for call in step.tool_calls)

    def _note_beginnings(self, run: Run) -> None:
        beginning = 0
        for step in run.steps:
            self.beginnings.add(beginning)
            calls = [(call.name, str(call.arguments)) for call in step.tool_calls]
            beginning = hash((beginning, step.actor, step.text, step.confidence, *calls))
        self.wholes[beginning] += len(run.steps) > 1

    def n_beginnings(self) -> int:
        """Return how many runs are nothing but the beginning of another."""
        return sum(n for whole, n in self.wholes.items() if whole in self.beginnings)

    def note_scores(self, owner: str, names: Iterable[str], chosen: str | None) -> None:
        """Count the scores of a run or a step but the chosen one."""
        for name in names:
            self.unused[owner, name] += name != (chosen or "").split(".")[0]

    def note_fields(self, record: Record, scores: Record) -> None:
        """Note the names of fields that could be outcomes: numbers, and words."""
        for name, field_value in _fields_within(record):
            value = scalar(field_value)
            is_short = isinstance(value, str) and 0 < len(value) <= _MAX_LENGTH
            if is_short or is_number(value):
                self.names_of_runs[name] += 1
                if name not in scores and words_of(name.split(".")[-1]) & _OF_OUTCOMES:
                    meaning = propose([value])[value] if is_short else value
                    is_outcome = as_grade(meaning) not in (None, CENSORED)
                    self.likely_outcomes.update([name] * is_outcome)


def _fields_within(record: Record, depth: int = 2) -> Iterator[tuple[str, Any]]:
    """Yield the fields of a record, and those of objects that are not one value."""
    for name, value in record.items():
        if depth and isinstance(value, dict) and scalar(value) is None:
            inner = _fields_within(value, depth - 1)
            yield from ((f"{name}.{path}", leaf) for path, leaf in inner)
        else:
            yield str(name), value
