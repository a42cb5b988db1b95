"""Which records of a log are one run: calls of a model in one session, and states that grow.

A proxy logs each call of a model, a graph each of its states; all repeat what came before them.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import groupby
from typing import Any

from trajscore.io import _vocabulary as keys
from trajscore.io._conversation import role_of
from trajscore.io._messages import as_chat, find_messages, is_chat_list, is_message
from trajscore.io._payloads import messages_in, scored
from trajscore.io._spans import Span
from trajscore.io._thread import turn_keys
from trajscore.io._vocabulary import as_fields, as_list, first, token_counts
from trajscore.io.fields import USUAL, Fields, may_be_duration, scalar, usual_names
from trajscore.io.files import LogFile, Place

Item = tuple[Place, Any]
_LONG_ID = 8  # characters of an id that no other conversation has, as a counter would
_OF_A_RUN = {name for part in ("id", "task", "trial", "outcome") for name in USUAL[part]}
_BODIES = ("body", "inputBodyJson", "outputBodyJson", "message", "output")
_OF_A_RECORD = {"id", "uuid"}  # names of an id that need not be a run's


class Calls(list[Any]):
    """The calls of a model that make one run."""

    def fields(self) -> dict[str, Any]:
        """Return the fields of the run, the last of each."""
        return {k: v for call in self for k, v in call.items() if v is not None}

    def spans(self) -> Iterator[Span]:
        """Yield them as a trace would hold them."""
        for index, call in enumerate(self):
            request, answer = sides_of(call)
            request = request[:-1] if _ends_with(request, answer) else request
            usage = first(as_fields(answer), ("usage",)) or call.get("usage")
            names = [name for name in usual_names("step", call) if call[name] not in (None, "")]
            is_clock = names and not may_be_duration(names[0], call[names[0]])
            yield Span(
                id=index,
                kind="model",
                start=call[names[0]] if is_clock else None,
                inputs=request,
                outputs=answer,
                cost=first(call, usual_names("cost", call)),
                tokens=token_counts(usage),
            )


def sides_of(record: Mapping[str, Any]) -> tuple[Any, Any]:
    """Return what a model was given and what it answered; None where a record is not a call."""
    if record.get("choices"):
        return find_messages(record)[0], {"choices": record["choices"]}
    for left, right in keys.CALL_SIDES:
        if all(record.get(side) not in (None, "", []) for side in (left, right)):
            return record[left], record[right]
    return None, None


def _ends_with(messages: Any, answer: Any) -> bool:
    """Whether a conversation has its answer, which another field repeats as text."""
    last = as_fields(next(iter(as_list(messages)[-1:]), None))
    return isinstance(answer, str) and last.get("content") == answer


def is_call(record: Any) -> bool:
    """Tell a call of a model, with its answer, from a conversation."""
    return isinstance(record, dict) and None not in sides_of(record)


def listed_calls(record: Any) -> Calls | None:
    """Return the calls of a model that a record lists, such as spans of a trace, with its fields.

    Of another record, return None.
    """
    lists = as_fields(record).items() if not is_message(record) else ()
    for name, value in lists:
        calls = [item for item in as_list(value) if is_call(item) and _asks(item)]
        if not calls or name in keys.MESSAGE_LISTS:
            continue
        beside = {name, *usual_names("step", record)}
        others = {k: v for k, v in record.items() if k not in beside}
        of_run = {k: v for k, v in others.items() if k in _OF_A_RUN}
        return Calls(others | {k: v for k, v in call.items() if v} | of_run for call in calls)
    return None


def _asks(call: Mapping[str, Any]) -> bool:
    """Tell a call that was given messages from that of a tool."""
    return bool(messages_in(sides_of(call)[0], None))


def of_batch(record: Any) -> dict[str, Any] | None:
    """Return a record of a batch's results, or of a proxy, with its messages; None for others."""
    sides = next((pair for pair in keys.BATCH_SIDES if as_fields(record).get(pair[1])), None)
    if sides is None or find_messages(record)[0] is not None:
        return None
    request, answer = (_body(record.get(side)) for side in sides)
    choices = map(as_fields, as_list(answer.get("candidates")))
    is_answer = is_message(answer) or any("content" in choice for choice in choices)
    if not (is_answer or is_chat_list(answer.get("output"))):
        return None
    messages = [*messages_in(request, "user"), *messages_in(answer, "assistant")]
    own = {name: value for name, value in record.items() if name not in sides}
    name = first(record, ("custom_id", "recordId", "request_id", "requestId", "key", "id"))
    return own | {"id": name, "messages": messages, "usage": first(answer, keys.USAGES)}


def _body(side: Any, depth: int = 3) -> Mapping[str, Any]:
    """Return a request or an answer out of what batches and proxies put around it."""
    fields = as_fields(side)
    inner = [fields[name] for name in _BODIES if as_fields(fields.get(name))]
    return scored(_body(inner[0], depth - 1), fields) if inner and depth else fields


def awaits_answer(record: Any) -> bool:
    """Tell a call whose messages end before its answer, which another field holds."""
    if not is_call(record) or record.get("choices"):
        return False
    messages, used = find_messages(record)
    last = [as_fields(message) for _, message in as_chat((messages or [])[-1:])]
    is_agents = last and role_of(last[-1].get("role")) == "agent"
    return bool(last) and len(used) == 1 and not is_agents


def by_id(
    items: Iterable[Item], id_of: Callable[[Item], Hashable], *, one_by_one: bool
) -> Iterator[tuple[Any, list[Item]]]:
    """Yield the items of each id: wherever they are, or those that stand together."""
    if one_by_one:
        yield from ((name, list(group)) for name, group in groupby(items, key=id_of))
        return
    groups: dict[Hashable, list[Item]] = {}
    for item in items:
        groups.setdefault(id_of(item), []).append(item)
    while groups:  # what has been read is not kept
        name = next(iter(groups))
        yield name, groups.pop(name)


def continues_later(place: Place, name: str) -> ValueError:
    """Return the error of a run that goes on where another has begun."""
    return ValueError(
        f"{place.file}, line with index {place.index}: run {name!r} continues after another run; "
        f"sort the lines by run, or use read_runs"
    )


def joined(records: Iterable[Item], file: LogFile) -> Iterator[Item]:
    """Yield the runs of a log; records that are one run come together."""
    seen: set[Hashable] = set()

    def key_of(item: Item) -> Hashable:
        place, raw = item
        name = file.fields.id_of(raw) if isinstance(raw, dict) else None
        if name is not None and not (is_call(raw) and _is_of_record(raw, file.fields)):
            return name
        if is_call(raw):
            return _start(raw)
        first_id = _first_id(raw)
        return (place.index,) if first_id is None else ("message", first_id)

    for name, items in by_id(records, key_of, one_by_one=file.one_by_one):
        if name in seen and is_call(items[0][1]):
            raise continues_later(items[0][0], str(name))
        seen.add(name)
        yield from items if len(items) == 1 else _runs_of(items, file.fields)


def _first_id(record: Any) -> Any:
    """Return the id of the first message of a state, if messages have ids of their own."""
    messages = find_messages(record)[0] if isinstance(record, dict) else None
    message = as_fields(messages[0] if messages else None)
    inner = as_fields(message.get("kwargs", message.get("data")))
    name = first(inner or message, ("id",))
    return name if isinstance(name, str) and len(name) >= _LONG_ID else None


def _start(call: Mapping[str, Any]) -> Hashable:
    """Return how the conversation of a call without an id begins, to the first answer."""
    turns = _turns(call)
    agent = (k for k, (role, *_) in enumerate(turns) if role == "agent")
    return turns[: next(agent, 0) + 1]


def _turns(record: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return what identifies each turn of a record, answers included."""
    messages, used = find_messages(record)
    answer = [sides_of(record)[1]] if len(used) < 2 else []
    if messages is None:
        return ()
    return turn_keys(message for _, message in as_chat([*messages, *answer]))


def _runs_of(items: list[Item], fields: Fields) -> Iterator[Item]:
    """Yield the runs of records that share an id, or a beginning."""
    items = [item for item in items if not _is_blank(item[1])] or items
    places, records = zip(*items, strict=True)
    if _are_one_session(records, fields):
        yield replace(places[0], n_records=len(records)), Calls(records)
        return
    chains: list[list[tuple[int, Item]]] = []
    ends: dict[Hashable, list[tuple[int, Item]]] = {}  # by the hash of what each chain holds
    for turns, item in sorted(((_turns(item[1]), item) for item in items), key=lambda x: len(x[0])):
        hashes = _hashes(turns)
        begun = next((key for key in reversed(hashes) if key in ends), None)
        if begun is None or _differ([ends[begun][-1][1][1], item[1]], fields):
            chains.append(chain := [])
        else:
            chain = ends.pop(begun)
        chain.append((len(turns), item))
        if hashes:
            ends[hashes[-1]] = chain
    for chain in sorted(chains, key=lambda chain: min(place.index for _, (place, _) in chain)):
        parts = [item for _, item in chain]
        if chain[0][0] == chain[-1][0]:  # nothing grew: these are runs that are alike
            yield from parts
            continue
        place, raw = parts[-1]
        calls = all(is_call(record) for _, record in parts)
        yield (
            replace(place, n_records=len(parts)),
            Calls(record for _, record in parts) if calls else raw,
        )


def _is_blank(state: Any) -> bool:
    """Tell the state of a graph before its first message."""
    values = as_fields(state).get("values", as_fields(state).get("checkpoint"))
    return isinstance(values, dict) and not any(
        fields.get("messages") for fields in (values, as_fields(values.get("channel_values")))
    )


def _hashes(turns: Iterable[Hashable]) -> list[int]:
    """Return a hash of each beginning of a conversation."""
    hashes: list[int] = []
    for turn in turns:
        hashes.append(hash((hashes[-1] if hashes else 0, turn)))
    return hashes


def _are_one_session(records: tuple[Any, ...], fields: Fields) -> bool:
    """Whether records are calls that differ, with an id that is a run's and not their own."""
    if not all(map(is_call, records)) or _differ(records, fields):
        return False
    request, _ = sides_of(records[0])
    are_asked = any(sides_of(call)[0] != request for call in records)
    return are_asked and not _is_of_record(records[0], fields)


def _is_of_record(record: Mapping[str, Any], fields: Fields) -> bool:
    """Whether the id of a record need not be a run's."""
    return (fields.id or next(iter(usual_names("id", record)), "id")) in _OF_A_RECORD


def _differ(records: Iterable[Any], fields: Fields) -> bool:
    """Whether records have outcomes or trials of their own."""
    for part in ("outcome", "trial"):
        values = [scalar(fields.value(raw, part)) for raw in records]
        if len({str(value) for value in values if value is not None}) > 1:
            return True
    return False
