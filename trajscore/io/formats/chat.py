"""Chat messages of OpenAI's interface or another library's."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from trajscore.io._conversation import Conversation, add_tokens, role_of
from trajscore.io._messages import (
    as_chat,
    find_messages,
    find_records,
    is_chat_list,
    is_message,
    is_nested,
    is_printed,
    is_record,
)
from trajscore.io._requests import Calls, awaits_answer, joined, listed_calls, of_batch, sides_of
from trajscore.io._run import MalformedRunError, Run, as_object, check_list, leftover
from trajscore.io._spans import add_spans
from trajscore.io._vocabulary import MESSAGE_LISTS, USAGES, as_fields, as_list, first, token_counts
from trajscore.io.fields import dig, usual_names
from trajscore.io.files import LogFile, Place, is_lines, stem
from trajscore.io.registry import STREAMED, Format, Head, register

_STATE = {"values", "next", "metadata"}  # fields of a state of LangGraph, with messages or none
_LISTS_OF_RUNS = {"runs", "data", "conversations"}


def is_chat(head: Head) -> bool:
    """Tell a chat from a long table that has a column for the role."""
    if not head.whole:  # a more specific field may follow
        return False
    fields = head.fields
    if isinstance(head.item, list) or is_printed(head.item):  # a list of conversations
        return True
    if "messages" in fields or "choices" in fields:  # of a list only the first item is known
        return True
    if is_nested(fields):
        return True
    if is_message(fields):
        return {str(name).lower() for name in usual_names("id", fields)} <= {"id"}
    if fields.keys() >= _STATE:
        return True
    if not head.listed and (find_records(fields) is not None or _first_run(fields)):
        return True
    if of_batch(fields) is not None or listed_calls(fields) is not None:
        return True
    messages, used = find_messages(fields)
    texts = all(isinstance(fields[name], str) for name in used)
    return messages is not None and not (texts and usual_names("step", fields))


def _first_run(fields: Mapping[str, Any]) -> bool:
    """Tell a run or a message, where only the first item of its list was read."""
    items = [fields[name] for name in STREAMED & fields.keys()]
    return any(is_record(item) or is_message(item) for item in items)


@register
class OpenAI(Format):
    name, holds = "openai", "messages"
    beside = ("role", "content", "choices", "tool_calls")
    lax = True

    def recognise(self, head: Head) -> bool:
        return is_chat(head)

    def runs(self, file: LogFile, options: Any) -> Iterator[tuple[Place, Any]]:
        """Yield each run; records of one id that continue one another are one run."""
        yield from joined(_records(file), file)

    def run(self, raw: Any, place: Place, options: Any) -> Run:
        raw = Calls([raw]) if awaits_answer(raw) else raw
        calls = raw if isinstance(raw, Calls) else None
        if calls:
            raw = calls.fields()
        raw = as_object({"messages": raw} if isinstance(raw, list) else raw)
        names = place.fields.names(raw, ("id", "task", "trial"))
        place.name(place.fields.id_of(raw))
        messages, used = find_messages(raw)
        if messages is None and not calls:
            check_list(raw.get("messages", []), "its messages are")
            raise MalformedRunError("it has no 'messages'")
        talk = Conversation(place)
        if place.fields.id is not None:
            names.pop("id", None)
        task, trial = (dig(raw, names.get(part, "")) for part in ("task", "trial"))
        run = Run(
            id=str(place.run),
            task=task,
            trial=trial,
            extra=leftover(raw, {*used, "choices", *names.values()}),
        )
        if used == {"steps"} and isinstance(raw.get("state"), str):  # a result of smolagents
            run.stop_reason = raw["state"]
        # an id within a request, which is not kept
        run.extra |= {name: dig(raw, name) for name in place.fields.ids if "." in name}
        if calls:
            return add_spans(talk, calls.spans(), run)
        messages = as_list(messages)
        talk.add_all(messages)
        if raw.get("choices"):
            talk.add_completion({"choices": raw["choices"]}, len(messages))
        others = sum(len(step.extra.get("other_choices", ())) for step in talk.steps)
        if others:
            run.meta["n_other_choices"] = others
        run = talk.finish(run)
        # the usage of the run, where its turns do not say theirs
        if "choices" not in raw and not {"input_tokens", "output_tokens"} & run.meta.keys():
            usage = first(raw, USAGES) or as_fields(raw.get("context")).get("usage")
            add_tokens(run, [token_counts(usage)])
        return run


def _records(file: LogFile) -> Iterator[tuple[Place, Any]]:
    own: dict[str, Any] = {}
    messages: list[Any] = []
    for key, index, item in file.items(_LISTS_OF_RUNS):
        value = of_batch(item) or listed_calls(item) or item
        if index is None:
            own[str(key)] = value
        elif (key is None or key in MESSAGE_LISTS) and _goes_on(value, messages):
            messages.append(value)
        else:
            yield from ((file.place(index), run) for run in _runs_of_list(value))
    if messages or _goes_on(own, []):
        yield from _conversations(file, own, messages or [own])
    else:
        yield from _of_object(file, own)


def _of_object(file: LogFile, own: dict[str, Any]) -> Iterator[tuple[Place, Any]]:
    """Yield the runs that an object lists, or the run that it is."""
    if (calls := listed_calls(own)) is not None:
        yield file.place(0), calls
        return
    messages, _ = find_messages(own)
    is_run = {"messages", "original_input"} & own.keys() or all(map(is_chat_list, sides_of(own)))
    if not is_run and (listed := find_records(own)) is not None:
        file.info.update({k: v for k, v in own.items() if not isinstance(v, (list, dict))})
        yield from ((file.place(index), run) for index, run in enumerate(listed))
    elif messages is not None:
        is_named = file.fields.id_of(own) is not None
        yield file.place(0), own if is_named else {"id": stem(file.path)} | own
    else:
        file.info.update(own)


def _runs_of_list(value: Any) -> list[Any]:
    """Return the run that an item of a list is, or the states that it lists."""
    if isinstance(value, Calls):
        return [value]
    starts = value[:2] if isinstance(value, list) else []  # the first state may be empty
    objects = [start for start in starts if isinstance(start, dict) and not is_message(start)]
    return list(value) if any(map(is_record, objects)) else [value]


def _conversations(
    file: LogFile, own: dict[str, Any], messages: list[Any]
) -> Iterator[tuple[Place, Any]]:
    """Yield the conversations of a list of messages: one, unless messages name several."""
    # a list of messages may be one conversation of several runs
    runs = ("run_id",) if is_lines(file.path, file.max_size) else ()
    shared = (*file.fields.ids, "conversation_id", "session_id", "thread_id", *runs)
    named = [[as_fields(message).get(field) for message in messages] for field in shared]
    names: list[Any] = next((values for values in named if None not in values), [])
    conversations: dict[Any, list[Any]] = {}
    for name, message in zip(names, messages, strict=False):
        conversations.setdefault(str(name), []).append(message)
    begun = [_turn_of(parts[0]) for parts in conversations.values()]
    if len(conversations) < 2 or not {"user", "system"}.issuperset(begun):
        conversations = {stem(file.path): messages}
    for index, (name, parts) in enumerate(conversations.items()):
        yield file.place(index), {"id": name} | own | {"messages": parts}


def _turn_of(message: Any) -> str:
    """Return whose turn a message is, by the first that it stands for."""
    return next((role_of(as_fields(turn).get("role")) for _, turn in as_chat([message])), "")


def _goes_on(value: Any, before: list[Any]) -> bool:
    """Tell a message from a run; messages follow messages."""
    lists = isinstance(value, dict) and any(
        isinstance(value.get(name), list) for name in MESSAGE_LISTS
    )
    return bool(before) or ((is_message(value) or is_printed(value)) and not lists)
