"""Any other log of JSON lines, by a map of field names."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import chain, islice, pairwise
from typing import Any

from trajscore.core.errors import ArgumentError
from trajscore.core.meanings import words_of
from trajscore.core.values import split_pairs, unknown_name
from trajscore.io._conversation import Conversation, role_of
from trajscore.io._messages import chat_messages, is_message
from trajscore.io._requests import by_id, continues_later
from trajscore.io._run import MalformedRunError, Run, ToolCall, as_object, check_list, leftover
from trajscore.io._spans import moment
from trajscore.io._vocabulary import as_fields, as_list
from trajscore.io.fields import (
    LAST,
    OF_ONE_RUN,
    TIME_WORDS,
    USUAL,
    Fields,
    by_keys,
    dig,
    may_be_duration,
    several_runs,
    steps_field,
    stop_paths,
    usual_names,
    with_key,
)
from trajscore.io.files import Broken, LogFile, Place, stem
from trajscore.io.formats.chat import is_chat
from trajscore.io.registry import Format, Head, register
from trajscore.io.text import text_of

_OF_RUN = ("outcome", "stop_reason", "task", "trial")
_OF_STEP = ("actor", "text", "action", "tool_calls", "observation", "logprobs", "cost")

Item = tuple[Place, Any]


@dataclass
class _Options:
    fields: Any = None

    def __post_init__(self) -> None:
        names = {} if self.fields is None else self.fields
        if isinstance(names, str):  # "steps=events,text=body"
            names = dict(split_pairs(names))
        if not isinstance(names, Mapping):
            raise ValueError(f"fields must be a dict of names by part, got {names!r}")
        for part in names:
            if part not in USUAL:
                raise ValueError(f"fields: {unknown_name('part', part, list(USUAL))}")
        self.fields = Fields(**names)


@register
class JSONLines(Format):
    name, holds = "jsonl", "messages"
    options = _Options
    lax = True

    def recognise(self, head: Head) -> bool:
        if not head.whole or is_chat(head) or not usual_names("id", head.fields):
            return False
        steps = as_list(head.fields.get(str(steps_field(head.fields))))
        first_step = steps[0] if steps else head.fields
        return not isinstance(first_step, Mapping) or _is_step_of_schema(first_step)

    def runs(self, file: LogFile, options: _Options) -> Iterator[Item]:
        fields = file.fields.over(options.fields)
        missing = _Missing(fields)
        records = super().runs(file, options)
        if fields.steps is not None:
            records = _records_at(records, fields.steps)
        lines = missing.watch(records)
        first = list(islice(lines, 1))
        lines = chain(first, lines)
        if fields.steps is not None or any(steps_field(line) for _, line in first):
            yield from lines
        else:
            yield from _runs(lines, fields, one_by_one=file.one_by_one)
        missing.check(file)

    def run(self, raw: Any, place: Place, options: _Options) -> Run:
        read = _run_of_steps if isinstance(raw, _Lines) else _run_of_line
        return read(raw, place, place.fields.over(options.fields))


def _is_step_of_schema(step: Mapping[str, Any]) -> bool:
    """Tell a step whose text, calls or confidence have a usual name."""
    parts = ("text", "confidence", "tool_calls", "logprobs")
    return is_message(step) or any(usual_names(part, step) for part in parts)


class _Lines(list[Any]):
    """The lines of a run, one a step."""


class _Missing:
    """The named fields that no line has had so far."""

    def __init__(self, fields: Fields) -> None:
        self.fields = fields
        self.parts = [part for part in USUAL if getattr(fields, part, None) is not None]
        self.columns: list[str] = []  # of the first line

    def watch(self, lines: Iterable[Item]) -> Iterator[Item]:
        for place, line in lines:
            if isinstance(line, Mapping):
                self.columns = self.columns or list(map(str, line))
                steps = None if self.fields.steps is None else _steps_of(line, self.fields.steps)
                records = [line, *(step for step in as_list(steps) if isinstance(step, dict))]
                values = {
                    part: [self.fields.value(record, part) for record in records]
                    for part in self.parts
                }
                if "steps" in values:
                    values["steps"].append(steps)
                self.parts = [part for part, v in values.items() if all(x is None for x in v)]
            yield place, line

    def check(self, file: LogFile) -> None:
        if self.parts and self.columns:
            part = self.parts[0]
            raise ValueError(
                f"{file.path}: no line has the field {getattr(self.fields, part)!r} for {part!r}; "
                f"the first line has {', '.join(self.columns[:20])}"
            )


# ------------------------------------------------------------------ one step a line


def _runs(lines: Iterable[Item], fields: Fields, *, one_by_one: bool) -> Iterator[Item]:
    """Join the lines of each run."""
    seen: set[str] = set()
    for name, items in by_id(lines, lambda item: _id_of(item, fields), one_by_one=one_by_one):
        if name in seen:
            raise continues_later(items[0][0], name)
        place = replace(items[0][0], index=len(seen), run=name)
        yield place, _Lines(line for _, line in items)
        seen.add(name)


def _id_of(item: Item, fields: Fields) -> str:
    """Return the id of the run that a line with one step belongs to."""
    place, line = item
    where = f"{place.file}, line with index {place.index}"
    if isinstance(line, Broken):
        raise ValueError(f"{where}: {line}; repair the line, or the run would miss a step")
    if not isinstance(line, Mapping):
        raise ValueError(f"{where} is {type(line).__name__}, not an object; give one step a line")
    name = fields.id_of(line)
    if name is None and fields.id is None and fields.text is not None:
        return stem(place.file)  # a file is a run
    if name is None:
        problem = f"no field {fields.id!r}"
        if not fields.id:
            problem = f"no usual field of run ids ({', '.join(USUAL['id'])})"
        raise ArgumentError(f"{where} has {problem}; name the field with {{argument}}", "id")
    return name


def _run_of_steps(lines: list[Mapping[str, Any]], place: Place, fields: Fields) -> Run:
    own = fields.names(lines[0], ("id",)).get("id", "")
    for name in OF_ONE_RUN & lines[0].keys() if fields.id is None and own else ():
        if len({str(line[name]) for line in lines if line.get(name) is not None}) > 1:
            raise several_runs([name], str(place.run), [own])
    talk = Conversation(place)
    steps = [line for line in lines if _is_step(line, fields)] or lines
    kind = _kind_of_actor(steps, fields)
    for index, line in enumerate(_in_order(steps, fields)):
        _add(talk, line, index, fields, (*_OF_RUN, "id", "step"), kind)
    of_run: dict[str, Any] = {}
    for line in lines:
        names = fields.names(line, _OF_RUN)
        values = {name: dig(line, name) for name in names.values()}
        outcome = names.get("outcome", "")
        is_one = outcome not in of_run or outcome.endswith(LAST)
        if not is_one and values[outcome] != of_run[outcome]:
            values[outcome] = [dig(line, outcome) for line in lines]
        of_run |= values
    of_run |= {path: dig(lines[-1], path) for path in stop_paths(lines[-1])}  # its last error
    run = talk.finish(_new_run(_constants(lines) | of_run, place, fields))
    run.extra |= {"durations": 1} if _are_durations(steps, fields) else {}
    run.extra |= {"lines_of_run": len(lines) - len(steps)} if len(steps) < len(lines) else {}
    return _with_roles(run, steps, fields)


def _is_step(line: Mapping[str, Any], fields: Fields) -> bool:
    """Tell a line with a step from one that only has fields of its run, as at its start or end."""
    values = fields.values(line, (*_OF_STEP, "confidence")).values()
    is_bare = line.keys() <= {*fields.ids, *usual_names("id", line)}
    if is_bare or is_message(line) or any(value is not None for value in values):
        return True
    name = fields.names(line, ("step",)).get("step")
    return name is not None and not words_of(name) & TIME_WORDS


def _constants(lines: list[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the fields that are the same in every line of a run."""
    start = {k: v for k, v in lines[0].items() if v is not None and not isinstance(v, (list, dict))}
    return {k: v for k, v in start.items() if all(line.get(k) == v for line in lines)}


def _new_run(record: Mapping[str, Any], place: Place, fields: Fields) -> Run:
    task, trial = fields.values(record, ("task", "trial")).values()
    return Run(
        id=str(place.run),
        task=task,
        trial=trial,
        extra=dict(record),
    )


def _is_number(value: Any) -> bool:
    return not isinstance(value, str) or value.strip().lstrip("-").replace(".", "", 1).isdigit()


def _in_order(lines: list[Mapping[str, Any]], fields: Fields) -> list[Mapping[str, Any]]:
    numbers = [fields.value(line, "step") for line in lines]
    if all(number is None for number in numbers):
        return lines
    if any(number is None for number in numbers):
        raise MalformedRunError("some of its lines have no step number")
    moments = (moment(number) for number in numbers if not _is_number(number))
    times = [time for time in moments if time is not None]
    if len(times) == len(lines):
        order = sorted(range(len(lines)), key=times.__getitem__)  # equal ones as in the log
        return [lines[k] for k in order]
    keys = []
    for row, number in enumerate(numbers):
        try:
            keys.append(float(number))
        except (TypeError, ValueError):
            raise MalformedRunError(
                f"its step should be a number, but line {row} of the run has {number!r}"
            ) from None
    order = sorted(range(len(keys)), key=keys.__getitem__)
    name = fields.names(lines[0], ("step",))["step"]
    if words_of(name) & TIME_WORDS:  # which several steps may share
        return lines if _are_durations(lines, fields) else [lines[k] for k in order]
    for before, after in pairwise(order):
        if keys[before] == keys[after]:
            raise MalformedRunError(f"it has step {keys[after]:g} twice")
    return [lines[k] for k in order]


def _are_durations(lines: list[Mapping[str, Any]], fields: Fields) -> bool:
    """Tell how long steps took, small numbers in no order, from times that nobody named."""
    name = fields.names(lines[0], ("step",)).get("step", "")
    times: list[Any] = [line.get(name) for line in lines]
    are_small = fields.step is None and all(may_be_duration(name, time) for time in times)
    return are_small and any(later < before for before, later in pairwise(times))


# ------------------------------------------------------------------ one run a line


def _records_at(records: Iterable[Item], path: str) -> Iterator[Item]:
    """Yield the runs within records that have the steps, in a list on the way or by their ids."""
    parts = path.split(".")
    for place, record in records:
        lists = (dig(record, ".".join(parts[:k])) for k in range(1, len(parts)))
        runs = next((inner for inner in lists if isinstance(inner, list)), None)
        if isinstance(dig(record, path), list):
            yield place, record
            continue
        if runs is None:
            keyed = by_keys(record, lambda value: isinstance(dig(value, path), list))
            runs = [with_key(keys, run) for keys, run in keyed]
        if not runs:
            yield place, record
        else:
            yield from ((replace(place, index=k), run) for k, run in enumerate(runs))


def _steps_of(run: Mapping[str, Any], path: str) -> Any:
    """Return the steps under a path, or under the end of it where runs are in a list on the way."""
    parts = path.split(".")
    values = [dig(run, ".".join(parts[k:])) for k in range(len(parts))]
    return next((steps for steps in values if isinstance(steps, list)), values[0])


def _run_of_line(line: Any, place: Place, fields: Fields) -> Run:
    line = as_object(line)
    place.name(fields.id_of(line))
    usual = next(iter(usual_names("steps", line)), "steps")
    name = fields.steps or steps_field(line) or str(usual)
    steps = _steps_of(line, name)
    check_list(steps, f"its {name!r} is")
    talk = Conversation(place)
    kind = _kind_of_actor(steps, fields)
    for index, item in enumerate(steps):
        step = {"confidence": item} if isinstance(item, (int, float)) else item
        _add(talk, as_object(step, f"message {index} is"), index, fields, (), kind)
    run = talk.finish(_new_run(leftover(line, {name}), place, fields))
    return _with_roles(run, steps, fields)


# ------------------------------------------------------------------ a step


def _kind_of_actor(records: list[Any], fields: Fields) -> str | None:
    """Return the field whose words tell the agent from others, where none is named for it."""
    steps = [record for record in records if isinstance(record, Mapping)]
    if any(fields.names(step, ("actor",)) for step in steps):
        return None
    for name in ("type", "kind", "event", "event_type"):
        roles = {role_of(_role_in(step.get(name))) for step in steps} - {"environment"}
        if "agent" in roles and len(roles) > 1:
            return name
    return None


def _with_roles(run: Run, records: list[Any], fields: Fields) -> Run:
    """Note how many steps have no role, where others have one."""
    n = sum("actor" in fields.names(record, ("actor",)) for record in map(as_fields, records))
    run.extra |= {"without_role": len(records) - n} if 0 < n < len(records) else {}
    return run


def _role_in(kind: Any) -> str:
    """Return the role in the kind of a step, such as user of user_message.

    >>> _role_in("user_message"), _role_in("AssistantMessage"), _role_in("tool")
    ('user', 'assistant', 'tool')
    """
    return str(kind).lower().removesuffix("message").removesuffix("_")


def _add(
    talk: Conversation,
    record: Mapping[str, Any],
    index: int,
    fields: Fields,
    of_run: tuple[str, ...],
    kind: str | None,
) -> None:
    """Add the step of a record as a message; fields without a name of a part go to its extra."""
    names = fields.names(record, (*of_run, *_OF_STEP))
    used = set(names.values())
    message = {name: value for name, value in record.items() if name not in used}
    parts = {part: dig(record, names[part]) if part in names else None for part in _OF_STEP}
    action, observation = parts.pop("action"), parts.pop("observation")
    parts["content"] = parts.pop("text")
    actor = parts.pop("actor")
    if actor is not None or kind is None or not is_message(record):
        role = _role_in(record.get(kind)) if kind else "agent"
        parts["role"] = role if actor in (None, "") else actor
    is_silent = actor is None and not any(v for k, v in parts.items() if k != "role")
    if fields.text is not None and observation is not None and is_silent:
        talk.add({"role": "tool", "content": observation}, index)  # between two turns
        return
    added = [talk.add(own, index) for own in chat_messages(message | parts)]
    step = next(filter(None, added), None)
    if step is None:
        return
    step.observation = None if observation is None else text_of(observation)
    if action is not None:
        step.tool_calls.append(ToolCall("action", action, result=step.observation))
