"""What a call of a model was given or answered, whatever is wrapped around it, as messages.

Traces hold the arguments and results of any function: requests and responses of an interface, the
state of a graph, a message, text, or JSON text of these.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from trajscore.io._conversation import role_of
from trajscore.io._messages import as_chat, is_message, parsed

_DEEPEST = 6  # wrappers around one another
_SPOKEN = re.compile(
    r"^(system|developer|user|human|assistant|ai|tool):[ \t]*", re.IGNORECASE | re.MULTILINE
)
# Fields that hold messages, in the order in which they are looked for.
_LISTS = (
    "messages", "contents", "input_messages", "output_messages", "all_messages", "new_messages",
    "chat_history", "history", "input", "output", "inputs", "outputs", "prompts", "prompt",
    "new_message", "message", "response", "result", "generations", "candidates", "value",
    "kwargs", "args",
)  # fmt: skip
_USERS = ("prompt", "prompts", "input", "inputs", "contents", "new_message", "args", "kwargs")
_EITHER = ("messages", "message", "response", "generations", "candidates", "output", "outputs")
_INSTRUCTIONS = ("system", "instructions", "system_instruction", "systemInstruction")
_TEXTS = ("text", "content", "output_text", "completion", "answer", "generated_text", "delta")
_CALLS = ("tool_calls", "toolCalls")
_PARTS = ("text", "output_text", "input_text", "tool_use", "image", "thinking")


def unnested(value: Any) -> Any:
    """Return what is written as JSON text, also of JSON text."""
    for _ in range(_DEEPEST):
        inner = parsed(value)
        if inner is value or not isinstance(inner, str):
            return inner
        value = inner
    return value


def messages_in(value: Any, role: str | None) -> list[dict[str, Any]]:
    """Return the messages that a field holds; text has the role given, or without one is none."""
    found = _found(unnested(value), role, _DEEPEST)
    return [one for _, one in as_chat(found) if _is_said(one)]


def _found(value: Any, role: str | None, depth: int) -> list[Any]:
    if depth == 0 or value is None:
        return []
    if isinstance(value, str):
        return _of_text(value, role)
    if isinstance(value, list):
        return _of_list(value, role, depth)
    if isinstance(value, Mapping):
        return _of_object(value, role, depth)
    return [{"role": role, "content": str(value)}] if role else []


def _of_text(text: str, role: str | None) -> list[Any]:
    if not role or not text.strip():
        return []
    if role == "user" and _SPOKEN.match(text):  # a whole talk: "system: ...\nuser: ..."
        _, *said = _SPOKEN.split(text)
        pairs = zip(said[::2], said[1::2], strict=True)
        return [{"role": who.lower(), "content": what.rstrip("\n")} for who, what in pairs]
    return [{"role": role, "content": text}]


def _of_list(values: list[Any], role: str | None, depth: int) -> list[Any]:
    if values and all(map(_is_pair, values)):  # ["user", "Hi"], as LangGraph takes them
        return [{"role": who, "content": what} for who, what in values]
    if values and all(isinstance(one, list) for one in values):  # a batch: the first counts
        return _of_list(values[0], role, depth - 1)
    if values and all(_is_part(one) for one in values):
        return [{"role": role, "content": values}] if role else []
    found: list[Any] = []
    for one in values:
        found += _found(unnested(one), role, depth - 1)
    return found


def _is_pair(value: Any) -> bool:
    pair = isinstance(value, list) and len(value) == 2 and all(isinstance(k, str) for k in value)
    return pair and role_of(value[0]) != "environment"


def _is_part(value: Any) -> bool:
    """Tell a part of a message, such as text or a picture, from a message or an item."""
    if not isinstance(value, Mapping) or "role" in value:
        return False
    return value.get("type") in _PARTS


def _of_object(fields: Mapping[str, Any], role: str | None, depth: int) -> list[Any]:
    if "gen_ai.event.content" in fields:
        return _found(unnested(fields["gen_ai.event.content"]), role, depth - 1)
    if "choices" in fields:
        return _of_choices(fields)
    if is_message(fields):
        return _with_role(fields, role)
    said = [one for name in _INSTRUCTIONS for one in _instruction(fields.get(name))]
    config = fields.get("config")
    if isinstance(config, Mapping):
        said += [one for name in _INSTRUCTIONS for one in _instruction(config.get(name))]
    for name in _LISTS:
        if name in fields:
            value = unnested(fields[name])
            value = value[:1] if name == "candidates" and isinstance(value, list) else value
            found = _found(value, _side(name, role), depth - 1)
            if found:
                return said + found
    if isinstance(fields.get("content"), Mapping):
        return said + _found(fields["content"], role, depth - 1)
    return said + (_of_answer(fields) if role == "assistant" else [])


def _side(name: str, role: str | None) -> str | None:
    """Return whose a field's text is: of some fields it is the user's or nobody's."""
    if name in _USERS:
        return None if role is None else "user"
    return role if name in _EITHER else None


def _of_choices(fields: Mapping[str, Any]) -> list[Any]:
    """Return a completion, or what it says where it holds no message."""
    choices = fields["choices"]
    first = choices[0] if isinstance(choices, list) and choices else None
    if not isinstance(first, Mapping):
        return []
    if isinstance(first.get("message"), Mapping):
        return [{"choices": choices}]
    text = first.get("text") or first.get("delta")
    return _found(text, "assistant", 2) if text else []


def _with_role(fields: Mapping[str, Any], role: str | None) -> list[Any]:
    """Return a message with a role: that of the side it is on, where it has none."""
    if fields.get("role") is not None or ("role" not in fields and "parts" not in fields):
        return [fields]
    return [{**fields, "role": role}] if role else []


def _instruction(value: Any) -> list[Any]:
    text = unnested(value)
    if isinstance(text, Mapping):  # Google's
        text = text.get("parts", text.get("text"))
    if isinstance(text, list) and not all(map(_is_part, text)):
        text = [part for part in text if isinstance(part, Mapping)]
    return [{"role": "system", "content": text}] if isinstance(text, (str, list)) and text else []


def _of_answer(fields: Mapping[str, Any]) -> list[Any]:
    """Return an answer without a message around it; an object of its own form is its own text."""
    listed = (fields[name] for name in _CALLS if isinstance(fields.get(name), list))
    calls: list[Any] = next(listed, [])
    text = next(
        (fields[name] for name in _TEXTS if isinstance(fields.get(name), (str, list))), None
    )
    if text is None and not calls:
        text = dict(fields) if fields else None
    if text is None and not calls:
        return []
    bare = [{"type": "tool-call", **one} for one in calls if _is_bare(one)]
    said = [{"type": "text", "text": text}] if isinstance(text, str) else text or []
    message = {"role": "assistant", "content": [*said, *bare] if bare else text}
    message |= {} if bare else {"tool_calls": calls}
    ended = fields.get("finish_reason", fields.get("finishReason"))
    return [message | ({} if ended is None else {"finish_reason": ended})]


def _is_bare(call: Any) -> bool:
    return isinstance(call, Mapping) and "toolName" in call


def _is_said(message: Any) -> bool:
    """Tell a message from the definition of a tool, which some tracers write as one."""
    if not isinstance(message, Mapping):
        return False
    content = message.get("content")
    return not (isinstance(content, Mapping) and content.get("type") == "function")


def result_in(value: Any) -> tuple[Any, str | None]:
    """Return what a tool returned, and the call that it answers where it says so."""
    text, value = value, unnested(value)
    if isinstance(value, Mapping) and value.keys() == {"output"}:  # as LangSmith wraps it
        text, value = value["output"], unnested(value["output"])
    message = next((one for one in messages_in(value, None) if one.get("role") == "tool"), None)
    if message is not None:
        key = message.get("tool_call_id")
        return message.get("content"), None if key in (None, "") else str(key)
    content = value.get("content") if isinstance(value, Mapping) else None
    if isinstance(content, list) and content and all(map(_is_part, content)):
        return content, None
    return text if isinstance(text, str) and not isinstance(value, str) else value, None
