"""Messages of any library in the form of OpenAI's chats, which `Conversation` takes.

Other forms are items of OpenAI's Responses and Agents SDK, blocks of Anthropic, messages of
LangChain (also serialised), parts of OpenTelemetry's GenAI convention, of Google, Pydantic AI and
Vercel's AI SDK, and ShareGPT's pairs.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from trajscore.core.meanings import words_of
from trajscore.io import _vocabulary as keys
from trajscore.io._message_parts import (
    call_of_part,
    is_special,
    messages_of_parts,
    result_of_part,
    thought_of,
    type_of,
)
from trajscore.io._steps import (
    is_event_of_openhands,
    is_step,
    results_of,
    turn_of_step,
    turns_of_actions,
    turns_of_events,
)
from trajscore.io._vocabulary import as_fields, as_list, first, literal, parsed
from trajscore.io.fields import by_keys, usual_names, with_key
from trajscore.io.text import text_of

_BESIDE = {
    "parts", "blocks", "items", "additional_kwargs", "response_metadata", "status", "kwargs",
    "data",
}  # fmt: skip
_PLAIN_ROLES = ("system", "developer", "user", "assistant", "tool")
_PLAIN_KEYS = {
    "role", "content", "tool_calls", "tool_call_id", "name", "id", "confidence", "refusal",
}  # fmt: skip
_PRINTED = re.compile(
    r"content=.* (additional_kwargs|tool_call_id)=|tool='\w*' tool_input=|"
    r"\[\{'(message\.)?(role|content)': .*\}\]\s*$|"
    r"ModelRe(quest|sponse)\(parts=|"
    r"((AI|Human|System|Tool)Message(Chunk)?|ChatCompletion(Message)?|Response\w*Message)\(\w+=",
    re.DOTALL,
)


_WHO = "(system|developer|user|human|assistant|ai|tool)"
_SPEAKERS = tuple(  # before a turn: a name, a heading of Markdown, or bold words
    re.compile(form.replace("WHO", _WHO), re.IGNORECASE | re.MULTILINE)
    for form in (r"^WHO:[ \t]*", r"^#{1,6}[ \t]+WHO:?[ \t]*$", r"^\*\*WHO(?::\*\*|\*\*:)[ \t]*")
)
_TRANSCRIPTS = {
    "chat",
    "conversation",
    "dialog",
    "dialogue",
    "log",
    "messages",
    "text",
    "transcript",
}


def turns_of_transcript(text: str) -> list[Any]:
    """Return the turns of a dialogue in one text, each on its own lines; none of another text."""
    speaker = next((form for form in _SPEAKERS if form.match(text.lstrip())), None)
    if speaker is None:
        return []
    _, *parts = speaker.split(text.lstrip())
    return [
        {"role": who.lower(), "content": "" if words.strip() == "None" else words.strip("\n")}
        for who, words in zip(parts[::2], parts[1::2], strict=True)
    ]


def _find_transcript(record: Mapping[str, Any]) -> tuple[list[Any], set[str]]:
    """Return the turns of the one text of a record in which a user and an agent speak."""
    texts = {k: v for k, v in record.items() if words_of(str(k)) & _TRANSCRIPTS}
    turns = {k: turns_of_transcript(v) for k, v in texts.items() if isinstance(v, str)}
    of_both = {
        name: own
        for name, own in turns.items()
        if {"user", "agent"} <= {keys.ROLES[turn["role"]] for turn in own}
    }
    return next(((own, {name}) for name, own in of_both.items()), ([], set()))


def is_printed(value: Any) -> bool:
    """Tell a message as Python prints it."""
    return isinstance(value, str) and _PRINTED.match(value) is not None


def is_message(value: Any) -> bool:
    """Tell a message of any library from other objects."""
    if not isinstance(value, dict):
        return False
    if "choices" in value or _is_item(value) or is_step(value):
        return True
    if (item := _raw_item(value)) is not None:
        return is_message(item)
    if value.get("lc") is not None and isinstance(value.get("kwargs"), dict):
        return _class_of(value) in keys.MESSAGE_CLASSES
    if (
        not {"content", "parts", "blocks", "items", "value", "text", "tool_calls", "data"}
        & value.keys()
    ):
        return False
    if "parts" in as_fields(value.get("content")):  # an event of Google's ADK
        return True
    return bool({"role", "from", "parts"} & value.keys()) or _role_of_type(value) is not None


def _raw_item(value: Any) -> Mapping[str, Any] | None:
    """Return what an item of OpenAI's Agents SDK, or an event of one, stands for."""
    fields = as_fields(as_fields(value).get("item")) or as_fields(value)
    return as_fields(fields.get("raw_item")) or None


def is_nested(value: Any) -> bool:
    """Tell a message that no table has for a row: its text is in parts, or in a wrapper."""
    nests = ("parts", "blocks", "raw_item", "item", "model_output_message")
    if not is_message(value):
        return False
    is_autogens = isinstance(value.get("source"), str) and "role" not in value
    in_parts = "parts" in as_fields(value.get("content"))
    return is_autogens or in_parts or any(isinstance(value.get(k), (list, dict)) for k in nests)


def is_chat_list(value: Any) -> bool:
    """Tell a list of messages by the first of them."""
    start = value[0] if isinstance(value, list) and value else None
    is_pair = isinstance(start, list) and any(map(is_event_of_openhands, start))
    return is_message(start) or is_printed(start) or is_pair


def find_messages(record: Mapping[str, Any]) -> tuple[list[Any] | None, set[str]]:
    """Return the messages that a record lists, and the names of their fields."""
    messages, names = _find_messages(record)
    start = next(iter(messages or ()), None)
    pair = start if isinstance(start, list) else [start]
    are_events = any(map(is_event_of_openhands, pair))
    return (turns_of_events(as_list(messages)) if are_events else messages), names


def _find_messages(record: Mapping[str, Any]) -> tuple[list[Any] | None, set[str]]:
    for name in keys.MESSAGE_LISTS:
        value = parsed(record[name]) if name in record else None
        usual = name == keys.MESSAGE_LISTS[0]
        if isinstance(value, list) and (usual or not value or is_message(value[0])):
            return value, {name}
    steps = record.get("intermediate_steps")
    listed = ((name, _listed(parsed(record.get(name)))) for name in keys.WRAPPERS)
    lists = {name: value for name, value in listed if value is not None}
    for left, right in keys.CALL_SIDES:
        inputs, outputs = lists.get(left), lists.get(right)
        inputs = _text_message(record.get(left), "user") if inputs is None else inputs
        outputs = _text_message(record.get(right), "assistant") if outputs is None else outputs
        if inputs is not None and outputs is not None:  # the outputs may repeat the inputs
            repeats = outputs[: len(inputs)] == inputs
            if isinstance(steps, list):
                names = {left, right, "intermediate_steps"}
                return [*inputs, *turns_of_actions(steps), *outputs], names
            return (outputs if repeats else [*inputs, *outputs]), {left, right}
    if lists:
        return next((value, {name}) for name, value in lists.items())
    for find in (_only_list, _find_transcript):
        messages, own = find(record)
        if messages:
            return messages, own
    saved = (name for name in record if keys.STATE_WORDS & words_of(str(name)))
    states = {name: _in_state(record[name]) for name in saved}
    name = max(states, key=lambda name: len(states[name]), default="")
    return (states[name], {name}) if name and states[name] else (None, set())


def _only_list(record: Mapping[str, Any]) -> tuple[list[Any], set[str]]:
    """Return the only list of messages."""
    lists = {name: value for name, v in record.items() if is_chat_list(value := parsed(v))}
    return (next(iter(lists.values())), set(lists)) if len(lists) == 1 else ([], set())


def _in_state(value: Any, depth: int = 5) -> list[Any]:
    """Return the longest list of messages in the saved state of an agent or a team."""
    longest: list[Any] = []
    for name, inner in as_fields(value).items() if depth else ():
        is_list = name in keys.STATE_LISTS and is_chat_list(inner)
        longest = max(longest, inner if is_list else _in_state(inner, depth - 1), key=len)
    return longest


def _text_message(value: Any, role: str) -> list[Any] | None:
    is_text = isinstance(value, str) and value.strip()
    return [{"role": role, "content": value}] if is_text else None


def find_records(fields: Mapping[str, Any]) -> list[Any] | None:
    """Return the runs that an object lists under any names, or holds by their ids."""
    lists = {k: v for k, v in fields.items() if isinstance(v, list) and v and is_record(v[0])}
    if len(lists) == 1:
        return next(iter(lists.values()))
    if lists:
        numbered = ((name, *item) for name, runs in lists.items() for item in enumerate(runs))
        return [_keyed((str(name), _id_of(run, k)), run) for name, k, run in numbered]
    return [_keyed(path, run) for path, run in by_keys(fields, is_record)] or None


def _id_of(run: Any, index: int) -> str:
    name = first(as_fields(run), usual_names("id", as_fields(run)))
    return str(index if name is None else name)


def _keyed(path: tuple[str, ...], run: Any) -> dict[str, Any]:
    return with_key(path, run if isinstance(run, dict) else {keys.MESSAGE_LISTS[0]: run})


def is_record(value: Any) -> bool:
    """Tell a run, which holds messages, from a message and from other values."""
    if isinstance(value, dict):
        return not is_message(value) and find_messages(value)[0] is not None
    return is_chat_list(value)


def _listed(value: Any) -> list[Any] | None:
    """Return the messages of a field: a list, an object that has one, or a single message."""
    if isinstance(value, dict):
        if is_message(value):
            return [value]
        value = {**value, **as_fields(value.get("channel_values"))}  # of a checkpoint
        inner = [value[name] for name in (*keys.MESSAGE_LISTS, "output") if name in value]
        return next(filter(is_chat_list, inner), None)
    return value if is_chat_list(value) else None


class _Turn(NamedTuple):
    """The turn that may go on."""

    start: int
    fields: dict[str, Any]
    of_items: bool = False  # whether it is made of items


def as_chat(messages: Iterable[Any]) -> Iterator[tuple[int, Any]]:
    """Yield messages as chats have them, with their indices; items of one turn are joined."""
    last: _Turn | None = None
    tools: set[str] = set()  # that were called so far
    for index, message in enumerate(messages):
        if _is_plain(message) and not (last is not None and _is_open(last.fields)):
            yield from _closed(last)
            tools |= tools_of(message)
            last = _Turn(index, dict(message)) if message["role"] == "assistant" else None
            if last is None:
                yield index, message
            continue
        item = _raw_item(message) or message
        is_item = isinstance(item, dict) and _is_item(item)
        lists_calls = isinstance(item, dict) and _is_text_of_calls(item)
        parts = _shared_results(last.fields, item) if last else chat_messages(item)
        for part in (_result_by(own, tools) for own in parts):
            is_turn = isinstance(part, dict) and part.get("role") == "assistant"
            if (
                last is not None
                and is_turn
                and (lists_calls or (is_item and last.of_items) or _is_open(last.fields))
                and _goes_on(last.fields, part)
            ):
                last = last._replace(fields=_joined(last.fields, part))
                continue
            yield from _closed(last)
            last = _Turn(index, dict(part), is_item or lists_calls) if is_turn else None
            if last is None:
                yield index, part
    yield from _closed(last)


def _is_plain(message: Any) -> bool:
    """Tell a message of OpenAI's chats without any other key, which needs no other reading."""
    return (
        isinstance(message, dict)
        and message.get("role") in _PLAIN_ROLES
        and message.keys() <= _PLAIN_KEYS
        and (message.get("content") is None or isinstance(message["content"], str))
        and not str(message.get("content")).startswith("[{")
    )


def tools_of(message: Mapping[str, Any]) -> set[str]:
    """Return the names of the tools that a message calls."""
    calls = map(as_fields, as_list(message.get("tool_calls")))
    return {str(as_fields(call.get("function")).get("name", call.get("name"))) for call in calls}


def _is_open(turn: Mapping[str, Any]) -> bool:
    """Tell a thought of AutoGen, whose words or calls come next."""
    return "thought" in turn and not (turn.get("content") or turn.get("tool_calls"))


def _closed(turn: _Turn | None) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield a turn that is whole; the thought of one without words is what it says."""
    if turn is None or (turn.of_items and _only_thought(turn.fields)):
        return
    thought = turn.fields.pop("thought", None)
    if thought:
        turn.fields["reasoning" if turn.fields.get("content") else "content"] = thought
    yield turn.start, turn.fields


def _result_by(message: Any, tools: set[str]) -> Any:
    """Return a message; as a result, if its role is the name of a tool that was called."""
    if not isinstance(message, dict):
        return message
    tools |= tools_of(message)
    role = message.get("role")
    known = isinstance(role, str) and role in tools and role.lower() not in keys.ROLES
    return {**message, "role": "tool", "name": role} if known else message


def chat_messages(message: Any) -> list[Any]:
    """Return one message in the form of chats, as one or several messages."""
    if not isinstance(message, dict):
        return [message]
    if _is_beside_messages(message):
        return []
    if _is_text_of_calls(message):
        return _of_text_of_calls(message)
    content = message.get("content")
    if isinstance(content, str) and "role" in message and _BESIDE.isdisjoint(message):
        return [message]  # as most are
    if is_step(message):
        return turn_of_step(message)
    if _is_item(message):
        return _of_item(message)
    fields = _unwrapped(message)
    parts, content = first(fields, ("parts", "blocks", "items")), fields.get("content")
    if isinstance(parts, list):
        return [*_instructions_of(fields), *messages_of_parts(fields, parts)]
    if isinstance(content, list) and any(map(is_special, content)):
        return messages_of_parts(fields, content)
    return [fields]


def _is_beside_messages(message: Mapping[str, Any]) -> bool:
    """Tell events that lists of messages hold, too: starts, pieces, changes of a state."""
    is_adks = "author" in message and "actions" in message
    is_empty = message.get("partial") is True or message.get("content") is None
    return (is_adks and is_empty) or type_of(message) in keys.NOT_MESSAGES


# ------------------------------------------------------------------ items, one thing each


def _is_item(message: Mapping[str, Any]) -> bool:
    """Tell an item of OpenAI's Responses, or a call without a message around it."""
    kind = type_of(message)
    if kind == "message" and isinstance(message.get("content"), list):
        return "role" in message
    if "role" in message:
        return False
    if kind == "reasoning" or kind.endswith(("_call", "_call_output")):
        return "function" not in message or kind != "tool_call"
    return bool({"toolName", "tool.name"} & message.keys())


def _of_item(item: Mapping[str, Any]) -> list[Any]:
    kind = type_of(item)
    if kind == "message":
        return messages_of_parts(dict(item), item["content"])
    if kind == "reasoning":
        return [{"role": "assistant", "content": "", "reasoning": thought_of(item)}]
    if kind.endswith("_output") or kind in keys.RESULT_TYPES:
        return [result_of_part(item)]
    call = call_of_part(item)
    call["name"] = call["name"] or kind.removesuffix("_call")
    turn = {"role": "assistant", "content": "", "tool_calls": [call]}
    result = first(item, ("output", "results", "result"), blank=True)
    return [turn] if result is None else [turn, result_of_part(item)]


def _only_thought(turn: Mapping[str, Any]) -> bool:
    return "reasoning" in turn and not (turn.get("content") or turn.get("tool_calls"))


def _goes_on(turn: Mapping[str, Any], item: Mapping[str, Any]) -> bool:
    """Tell whether an item belongs to the turn before it: words come before calls."""
    if not all(isinstance(part.get("tool_calls") or [], list) for part in (turn, item)):
        return False
    return not item.get("content") or not (turn.get("content") or turn.get("tool_calls"))


def _joined(turn: Mapping[str, Any], item: Mapping[str, Any]) -> dict[str, Any]:
    calls = [*(turn.get("tool_calls") or []), *(item.get("tool_calls") or [])]
    joined = {**turn, **item, "content": turn.get("content") or item.get("content") or ""}
    return joined | ({"tool_calls": calls} if calls else {})


# ------------------------------------------------------------------ calls written as text


def _is_text_of_calls(message: Mapping[str, Any]) -> bool:
    if message.get("tool_calls"):
        return False
    return message.get("role") in keys.CALL_ROLES or _lists_calls(message.get("content"))


def _lists_calls(content: Any) -> bool:
    """Tell text that is the JSON of calls, each with an id and a function."""
    if not (isinstance(content, str) and content.startswith("[{")):
        return False
    return all(  # of text that is not JSON, no character is an object
        "id" in as_fields(call) and "name" in as_fields(as_fields(call).get("function"))
        for call in parsed(content)
    )


def _of_text_of_calls(message: Mapping[str, Any]) -> list[Any]:
    """Return calls that a text lists, as JSON or as Python writes them, after words or none."""
    text = text_of(message.get("content"))
    start = re.search(r"[\[{]", text)
    listed: Any = None
    if start is not None:
        listed = literal(text[start.start() :])
    calls = [listed] if isinstance(listed, dict) else listed
    if not isinstance(calls, list) or not all(isinstance(call, dict) for call in calls):
        return [{**message, "role": "assistant"}]
    read = [call if "function" in call else call_of_part(call) for call in calls]
    return [{**message, "role": "assistant", "content": "", "tool_calls": read}]


def _shared_results(turn: Mapping[str, Any], message: Any) -> list[Any]:
    """Return a message after a turn; the result of all its calls as one of each."""
    if as_fields(message).get("role") not in keys.RESULT_ROLES:
        return chat_messages(message)
    results = results_of(as_list(turn.get("tool_calls")), text_of(message.get("content")))
    return [{**message, **result} for result in results]


# ------------------------------------------------------------------ messages and their parts


def _unwrapped(message: Mapping[str, Any]) -> dict[str, Any]:
    """Return a message's own fields, with its role, without their wrapper."""
    fields = dict(message)
    if fields.get("lc") is not None and isinstance(fields.get("kwargs"), dict):
        fields = {
            "role": keys.MESSAGE_CLASSES.get(_class_of(message), _class_of(message)),
            **fields["kwargs"],
        }
    elif isinstance(fields.get("data"), dict) and type_of(fields) in keys.MESSAGE_TYPES:
        fields = {"role": fields["type"], **fields["data"]}
    elif isinstance(fields.get("content"), dict) and "parts" in fields["content"]:
        fields |= fields.pop("content")
    kind = type_of(fields)
    if kind == "toolcallsummarymessage":  # repeats the calls of the turn before
        fields.pop("tool_calls", None)
    elif kind == "thoughtevent":
        fields["thought"] = fields.pop("content", None)
    elif kind == "codeexecutionevent":
        fields["content"] = as_fields(fields.get("result")).get("output")
    if "role" not in fields:
        role = fields.pop("from", None) or _role_of_type(fields)
        if role:
            fields["role"] = role
    if fields.get("content") is None and "parts" not in fields:
        other = next((name for name in ("value", "text") if name in fields), None)
        fields |= {} if other is None else {"content": fields.pop(other)}
    return _with_additional_fields(fields)


def _instructions_of(fields: Mapping[str, Any]) -> list[Any]:
    """Return the instructions that Pydantic AI keeps with each request."""
    text = fields.get("instructions")
    return [{"role": "system", "content": text}] if isinstance(text, str) and text else []


def _role_of_type(fields: Mapping[str, Any]) -> str | None:
    kind = type_of(fields)
    if kind in ("request", "response") and "parts" in fields:
        return "user" if kind == "request" else "assistant"
    kind = keys.MESSAGE_CLASSES.get(kind.removesuffix("chunk"), kind)
    if kind.endswith("message") and isinstance(fields.get("source"), str):  # AutoGen's
        return "user" if keys.PERSON.match(fields["source"]) else "assistant"
    return kind if kind in keys.MESSAGE_TYPES else None


def _with_additional_fields(fields: dict[str, Any]) -> dict[str, Any]:
    """Add what LangChain keeps beside the message: calls, the finish reason."""
    additional = as_fields(fields.get("additional_kwargs"))
    if not fields.get("tool_calls"):
        names = ("tool_calls", "function_call", "tool_call_id", "refusal")
        fields |= {name: additional[name] for name in names if additional.get(name)}
    metadata = as_fields(fields.get("response_metadata"))
    if fields.get("finish_reason") is None and metadata.get("finish_reason") is not None:
        fields["finish_reason"] = metadata["finish_reason"]
    if fields.get("status") == "error" and "error" not in fields:
        fields["error"] = True
    return fields


def _class_of(message: Mapping[str, Any]) -> str:
    path = message.get("id")
    name = path[-1] if isinstance(path, list) and path else ""
    return re.sub("chunk$", "", str(name).lower())
