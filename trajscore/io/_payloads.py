"""Messages within what a call of a model was given or answered.

That may be a request or a response of an interface, the state of a graph, a message, text, or JSON
text of these.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from trajscore.io import _vocabulary as keys
from trajscore.io._conversation import role_of
from trajscore.io._message_parts import wrapper_of
from trajscore.io._messages import as_chat, is_message
from trajscore.io._vocabulary import as_fields, as_list, first, first_object, unnested
from trajscore.io.logprobs import find_logprobs

_MAX_DEPTH = 6  # of wrappers
_SPEAKER = re.compile(r"^(system|user|assistant|tool):[ \t]*", re.IGNORECASE | re.MULTILINE)
_PART_TYPES = ("text", "output_text", "input_text", "tool_use", "image", "thinking")


def messages_in(value: Any, role: str | None) -> list[dict[str, Any]]:
    """Return the messages that a value holds; bare text needs a role to be one."""
    messages = (message for _, message in as_chat(_search(unnested(value), role, _MAX_DEPTH)))
    return [
        message
        for message in messages
        # some tracers write the definition of a tool as a message
        if as_fields(message.get("content")).get("type") != "function"
    ]


def _search(value: Any, role: str | None, depth: int) -> list[Any]:
    if depth == 0 or value is None:
        return []
    if isinstance(value, str):
        return _from_text(value, role)
    if isinstance(value, list):
        return _from_list(value, role, depth)
    if isinstance(value, dict):
        return _from_object(value, role, depth)
    if role:
        return [{"role": role, "content": str(value)}]
    return []


def _from_text(text: str, role: str | None) -> list[Any]:
    if not role or not text.strip():
        return []
    if role != "user" or not _SPEAKER.match(text):
        return [{"role": role, "content": text}]
    _, *parts = _SPEAKER.split(text)  # the turns of a dialogue, as AutoGen's tracer writes them
    return [
        {"role": who.lower(), "content": "" if words.strip() == "None" else words.strip("\n")}
        for who, words in zip(parts[::2], parts[1::2], strict=True)
    ]


def _from_list(values: list[Any], role: str | None, depth: int) -> list[Any]:
    if not values:
        return []
    if all(map(_is_pair, values)):  # ["user", "Hi"], as LangGraph takes them
        return [{"role": who, "content": words} for who, words in values]
    if all(isinstance(inner, list) for inner in values):  # a batch: the first counts
        return _from_list(values[0], role, depth)
    if all(map(_is_part, values)):
        if role:
            return [{"role": role, "content": values}]
        return []
    return [message for inner in values for message in _search(unnested(inner), role, depth - 1)]


def _is_pair(value: Any) -> bool:
    pair = isinstance(value, list) and len(value) == 2 and all(isinstance(k, str) for k in value)
    return pair and role_of(value[0]) != "environment"


def _is_part(value: Any) -> bool:
    """Tell a part of a message, such as text or a picture, from a message or an item."""
    if not isinstance(value, dict) or "role" in value:
        return False
    if len(value) == 1 and wrapper_of(value):
        return True
    return value.keys() == {"text"} or value.get("type", value.get("block_type")) in _PART_TYPES


def _from_object(fields: Mapping[str, Any], role: str | None, depth: int) -> list[Any]:
    if "gen_ai.event.content" in fields:
        return _search(unnested(fields["gen_ai.event.content"]), role, depth - 1)
    if "choices" in fields:
        return _from_choices(fields)
    if is_message(fields):
        return _with_role(fields, role)
    system: list[Any] = []
    for source in (fields, as_fields(fields.get("config"))):
        for name in keys.INSTRUCTIONS:
            system += _instruction(source.get(name))
    for name in keys.PAYLOADS:
        if name in fields:
            value = unnested(fields[name])
            value = value[:1] if name == "candidates" and isinstance(value, list) else value
            if messages := _search(value, _role_in(name, role), depth - 1):
                *before, last = messages
                return [*system, *before, scored(last, fields)]
    if isinstance(fields.get("content"), dict):
        return system + _search(fields["content"], role, depth - 1)
    return system + (_bare_answer(fields) if role == "assistant" else [])


def _role_in(name: str, role: str | None) -> str | None:
    """Return the role of bare text in a field: that of its side, the user's, or none."""
    if name in keys.OF_USER:
        if role is None:
            return None
        return "user"
    if name in keys.OF_EITHER:
        return role
    return None


def _from_choices(fields: Mapping[str, Any]) -> list[Any]:
    """Return a completion, or its text where it holds no message."""
    choice = first_object(fields["choices"])
    if isinstance(choice.get("message"), dict):
        more = {"finish_reason": choice.get("finish_reason")}
        return [scored({"role": "assistant", **choice["message"]} | more, choice)]
    text = choice.get("text") or choice.get("delta")
    if text:
        return [scored(turn, choice) for turn in _search(text, "assistant", 2)]
    return []


def scored(message: Any, answer: Any) -> Any:
    """Return a message with its log-probabilities, or those of the answer around it, if any."""
    logprobs = as_list(find_logprobs(message) or find_logprobs(answer))
    if logprobs and isinstance(message, dict):
        return {**message, "logprobs": logprobs}
    return message


def _with_role(fields: Mapping[str, Any], role: str | None) -> list[Any]:
    """Return a message with a role; without one, it gets the role of its side."""
    if fields.get("role") is not None or ("role" not in fields and "parts" not in fields):
        return [fields]
    if role:
        return [{**fields, "role": role}]
    return []


def _instruction(value: Any) -> list[Any]:
    text = unnested(value)
    if isinstance(text, dict):  # Google's
        text = text.get("parts", text.get("text"))
    if isinstance(text, list):
        text = [part for part in text if isinstance(part, dict)]
    if isinstance(text, (str, list)) and text:
        return [{"role": "system", "content": text}]
    return []


def _bare_answer(fields: Mapping[str, Any]) -> list[Any]:
    """Return an answer without a message around it; an unknown object is its own text."""
    lists = (fields.get(name) for name in ("tool_calls", "toolCalls"))
    calls: list[Any] = next((calls for calls in lists if isinstance(calls, list)), [])
    text: Any = next(
        (fields[k] for k in keys.TEXTS if isinstance(fields.get(k), (str, list))), None
    )
    if text is None and not calls:
        if not fields:
            return []
        text = dict(fields)
    message: dict[str, Any] = {"role": "assistant", "content": text, "tool_calls": calls}
    reason = fields.get("finish_reason", fields.get("finishReason"))
    return [scored(message | ({} if reason is None else {"finish_reason": reason}), fields)]


def with_parts(message: dict[str, Any]) -> dict[str, Any]:
    """Return a message; with its parts, where its text is the JSON of them."""
    parts = unnested(message.get("content"))
    are_parts = isinstance(parts, list) and parts and all(map(_is_part, parts))
    if are_parts:
        return {**message, "content": parts}
    return message


def result_in(value: Any) -> tuple[Any, str | None]:
    """Return what a tool returned, and the id of the call that it answers, if known."""
    text = value
    value = unnested(value)
    if isinstance(value, dict) and value.keys() == {"output"}:  # as LangSmith wraps it
        text = value["output"]
        value = unnested(value["output"])
    if {"name", "response"} <= as_fields(value).keys():  # as Google's ADK wraps it
        text = value = value["response"]
    message = next(
        (candidate for candidate in messages_in(value, None) if candidate.get("role") == "tool"),
        None,
    )
    if message is not None:
        key = message.get("tool_call_id")
        return message.get("content"), None if key in (None, "") else str(key)
    content = first(as_fields(value), ("content", "blocks"))
    if isinstance(content, list) and content and all(map(_is_part, content)):
        return content, None
    return text if isinstance(text, str) and not isinstance(value, str) else value, None
