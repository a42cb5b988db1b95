"""Any other log of JSON lines, a step or a run each, by usual or by named fields."""

from collections.abc import Iterable
from dataclasses import replace
from itertools import chain, groupby, islice, pairwise
from operator import itemgetter
from typing import Any

from trajscore.core.errors import ArgumentError
from trajscore.core.frame import TIME_WORDS, moment, zone_problem
from trajscore.core.outcomes import words_of
from trajscore.core.values import parse_number, run_label, unknown_name
from trajscore.io._messages import answer_of, answer_within, chat_messages, held_message, is_message
from trajscore.io._run import MalformedRunError, Run, ToolCall, as_object, check_list, leftover
from trajscore.io._smolagents import is_step
from trajscore.io.conversation import Conversation
from trajscore.io.fields import (
    ANY_OF_STEPS,
    LAST,
    OF_ONE_RUN,
    USUAL,
    Fields,
    Names,
    dig,
    several_runs,
    steps_field,
    stop_paths,
    usual_names,
)
from trajscore.io.files import Broken, LogFile, Place, stem
from trajscore.io.formats.chat import is_chat
from trajscore.io.registry import Format, Head, RawRuns, is_turn, register
from trajscore.io.unread import save_instead
from trajscore.io.vocabulary import (
    OF_ANSWERS,
    WORDS,
    Record,
    Values,
    answer_part,
    as_fields,
    as_list,
    is_known,
    text_of,
)

_OF_RUN = ("outcome", "stop_reason", "task", "trial")


@register
class JSONLines(Format):
    name = "jsonl"
    holds = "messages"
    lax = True

    def recognise(self, head: Head) -> bool:
        ids = usual_names("id", head.fields)
        if not head.whole or is_chat(head) or not ids or as_fields(head.fields[ids[0]]):
            return False
        steps = as_list(head.fields.get(str(steps_field(head.fields))))
        first_step = steps[0] if steps else head.fields
        parts = ("text", "confidence", "tool_calls", "logprobs")
        return not isinstance(first_step, dict) or is_turn(first_step, parts)

    def runs(self, file: LogFile) -> RawRuns:
        records = _with_named(super().runs(file), file)
        first = list(islice(records, 1))
        records = chain(first, records)
        if file.fields.steps is not None or any(steps_field(record) for _, record in first):
            yield from records
        else:
            yield from _runs(records, one_by_one=file.one_by_one)

    def run(self, raw: Any, place: Place) -> Run:
        if isinstance(raw, _Lines):
            return _run_of_lines(raw, place)
        return _run_of_record(raw, place)


class _Lines(list[Any]):
    """The lines of a run, one a step."""


def _with_named(records: RawRuns, file: LogFile) -> RawRuns:
    """Yield records, and refuse a named field that none of them had."""
    fields = file.fields
    missing = [part for part in USUAL if getattr(fields, part, None) is not None]
    columns: dict[str, Any] = {}
    for place, record in records:
        if missing and isinstance(record, dict):
            inner = [record, *map(as_fields, as_list(dig(record, fields.steps or "")))]
            columns |= {**record, **inner[-1]}
            missing = [
                part
                for part in missing
                if all(fields.value(owner, part) is None for owner in inner)
            ]
        yield place, record
    if missing and columns:
        problem = unknown_name("field", getattr(fields, missing[0]), list(columns))
        raise ValueError(f"{file.path}: {missing[0]}: {problem}")


# ------------------------------------------------------------------ one step a line


def _runs(lines: RawRuns, *, one_by_one: bool) -> RawRuns:
    """Join the lines of each run: wherever they are, or those that stand together."""
    named: Iterable[tuple[str, tuple[Place, Any]]] = ((_id_of(*item), item) for item in lines)
    if not one_by_one:
        order: dict[str, int] = {}
        named = sorted(named, key=lambda pair: order.setdefault(pair[0], len(order)))
    seen: set[str] = set()
    for name, group in groupby(named, key=itemgetter(0)):
        items = [item for _, item in group]
        start = items[0][0]
        if name in seen:
            raise ValueError(
                f"{start.file}, line with index {start.index}: run {run_label(name)} continues "
                f"after another run; sort the lines by run, or use read_runs"
            )
        yield replace(start, index=len(seen), run=name), _Lines(line for _, line in items)
        seen.add(name)


def _id_of(place: Place, line: Any) -> str:
    """Return the id of the run that a line with one step belongs to."""
    fields = place.fields
    where = f"{place.file}, line with index {place.index}"
    if isinstance(line, Broken):
        raise ValueError(f"{where}: {line}; repair the line, or the run would miss a step")
    if not isinstance(line, dict):
        raise ValueError(f"{where} is {type(line).__name__}, not an object; give one step a line")
    name = fields.id_of(line)
    if name is None and fields.id is None and fields.text is not None:
        return stem(place.file)  # a file is a run
    if name is None:
        field = "usual field of run ids, such as 'run_id'"
        if fields.id:
            field = f"field {fields.id!r}"
        raise ArgumentError(f"{where} has no {field}; name it with {{argument}}", "id")
    return name


def _run_of_lines(lines: list[Record], place: Place) -> Run:
    fields = place.fields
    id_name = fields.names(lines[0], ("id",)).get("id", "")
    for name in OF_ONE_RUN & lines[0].keys() if fields.id is None and id_name else ():
        if len({str(line[name]) for line in lines if line.get(name) is not None}) > 1:
            raise several_runs(name, str(place.run), [id_name])
    if instead := save_instead({str(line.get("type")) for line in lines}):
        raise MalformedRunError(f"its lines are pieces of a stream; {instead}")
    talk = Conversation(place)
    steps = [line for line in lines if _is_step(line, fields)] or lines
    steps = _in_order(steps, place)
    of_lines = (*_OF_RUN, "id", "step")
    messages = _whole_messages(steps, place, of_lines)
    talk.extend(messages)
    steps = [] if messages else steps
    for index, line in enumerate(steps):
        _add(talk, line, index, of_lines)
    if any(talk.call_of_id(result["id"]) for result in talk.unmatched):
        raise ArgumentError(
            f"{place}: results of tools stand before their calls; sort the lines, or name the "
            f"field of their order, {{argument:fields=step=NAME}}",
            "fields",
        )
    of_run: dict[str, Any] = {}
    names: dict[str, str] = {}
    for line in lines:
        of_line = fields.names(line, _OF_RUN)
        names |= of_line
        of_run |= leftover({name: dig(line, name) for name in of_line.values()})
    outcome = names.get("outcome", LAST)
    values = [value for line in lines if (value := dig(line, outcome)) is not None]
    if not outcome.endswith(LAST) and any(value != values[0] for value in values):
        of_run[outcome] = values
    of_run |= {path: dig(lines[-1], path) for path in stop_paths(lines[-1])}  # its last error
    if n_beside := len(lines) - len(messages or steps):
        of_run["lines_of_run"] = n_beside
    constant = {
        name: value
        for name, value in lines[0].items()
        if not isinstance(value, (list, dict, type(None)))
        and all(line.get(name) == value for line in lines)
    }
    return _finish(talk, constant | of_run, steps)


def _is_step(line: Record, fields: Fields) -> bool:
    """Tell a line with a step from one that only has fields of its run, as at its start or end."""
    values = fields.values(line, (*ANY_OF_STEPS, "confidence")).values()
    is_bare = line.keys() <= {*fields.ids, *usual_names("id", line)}
    holds_any = any(value is not None for value in values) or bool(answer_within(line))
    if is_bare or is_message(line) or holds_any:
        return True
    name = fields.names(line, ("step",)).get("step")
    return name is not None and not words_of(name) & TIME_WORDS


def _in_order(lines: list[Record], place: Place) -> list[Record]:
    """Return the steps in the order of their numbers or times."""
    fields = place.fields
    numbers = [fields.value(line, "step") for line in lines]
    if None in numbers:
        if all(map(is_message, lines)) or all(number is None for number in numbers):
            for name in WORDS["names"]["places"]:
                places = [line.get(name) for line in lines]
                if {*map(type, places)} == {int} and len({*places}) == len(places):
                    return sorted(lines, key=itemgetter(name))
            return lines  # such as a task of smolagents
        raise MalformedRunError("some of its lines have no step number")
    name = fields.names(lines[0], ("step",))["step"]
    keys: Values = [_key(number) for number in numbers]
    for row, (key, number) in enumerate(zip(keys, numbers, strict=True)):
        if key is None or isinstance(key, int) != isinstance(keys[-1], int):
            raise MalformedRunError(
                f"its step should be a number, but line {row} of the run has {number!r}"
            )
    if problem := zone_problem([*map(str, numbers)], "line", range(len(numbers))):
        raise ArgumentError(f"{place}: {problem}")
    order = sorted(range(len(keys)), key=keys.__getitem__)  # equal times as in the log
    is_time = bool(words_of(name) & TIME_WORDS) or isinstance(keys[0], int)
    for before, after in pairwise(order):
        if keys[before] == keys[after] and not is_time:
            raise MalformedRunError(f"it has step {keys[after]:g} twice")
    return [lines[k] for k in order]


def _key(number: Any) -> float | int | None:
    """Return the number of a step, or its time in whole microseconds; None of anything else."""
    parsed_number = parse_number(str(number))
    if parsed_number is None:
        return moment(number)
    return parsed_number


# ------------------------------------------------------------------ one run a line


def _run_of_record(record: Any, place: Place) -> Run:
    record = as_object(record)
    fields = place.fields
    place.name(fields.id_of(record))
    usual = next(iter(usual_names("steps", record)), "steps")
    name = fields.steps or steps_field(record) or str(usual)
    steps = check_list(dig(record, name), f"its {name!r} is")
    talk = Conversation(place)
    are_texts = all(isinstance(item, str) for item in steps)
    for index, item in enumerate(steps):
        step = item
        if isinstance(item, (int, float)):
            step = {"confidence": item}
        if are_texts:
            step = {fields.text or "text": item}
        _add(talk, as_object(step, f"message {index} is"), index)
    return _finish(talk, leftover(record, {name}), steps)


# ------------------------------------------------------------------ a step


def _finish(talk: Conversation, of_run: Record, steps: Values) -> Run:
    """Return the run, with the number of steps without a role, where others have one."""
    fields = talk.place.fields
    task, trial = fields.values(of_run, ("task", "trial")).values()
    run = talk.finish(Run(id=str(talk.place.run), task=task, trial=trial, extra=dict(of_run)))
    n = sum("actor" in fields.names(step, ("actor",)) for step in map(as_fields, steps))
    if 0 < n < len(steps):
        run.extra["without_role"] = len(steps) - n
    return run


def _whole_messages(lines: list[Record], place: Place, of_run: Names) -> list[Record]:
    """Return the messages of a client that lines are, as several may be one turn; else none."""
    if not is_message(held_message(lines[0])):
        return []
    messages = list(map(held_message, lines))
    names = [place.fields.names(message, ("action", "observation")) for message in messages]
    if any(names) or not all(is_message(m) and m.get("role") != "" for m in messages):
        return []
    alike = {tuple(line): line for line in lines}.values()  # one of those with the same fields
    beside = {name for line in alike for name in place.fields.names(line, of_run).values()}
    return [
        message if is_step(message) else {k: v for k, v in message.items() if k not in beside}
        for message in messages
    ]


def _add(talk: Conversation, record: Record, index: int, of_run: Names = ()) -> None:
    """Add the step of a record as a message; fields without a name of a part go to its extra."""
    fields = talk.place.fields
    if part := answer_part(record):
        record = {**leftover(record, OF_ANSWERS), **answer_of(part)[-1]}
    names = fields.names(record, (*of_run, *ANY_OF_STEPS))
    message = {name: value for name, value in record.items() if name not in names.values()}
    parts = {part: dig(record, names[part]) for part in ANY_OF_STEPS if part in names}
    action = parts.pop("action", None)
    observation = parts.pop("observation", None)
    parts["content"] = parts.pop("text", None)
    if isinstance(parts["content"], dict) and not is_known(parts["content"]):
        raise MalformedRunError(
            f"step {index}: its text is an object; name what it says, text={names['text']}.NAME"
        )
    actor = parts.pop("actor", None)
    if actor is not None or not is_message(record):
        parts["role"] = "agent" if actor in (None, "") else actor
    is_silent = actor is None and action is None
    is_silent = is_silent and not any(v for k, v in parts.items() if k != "role")
    if fields.text is not None and observation is not None and is_silent:
        talk.add({"role": "tool", "content": observation}, index)  # between two turns
        return
    added = [talk.add(part, index) for part in chat_messages(message | parts)]
    step = next(filter(None, added), None)
    if step is None:
        return
    step.observation = None if observation is None else text_of(observation)
    if action is not None:
        step.tool_calls.append(ToolCall("action", action, result=step.observation))
