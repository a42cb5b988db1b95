"""Messages within what a call of a model was given or answered.

That may be a request or a response of an interface, the state of a graph, a message, text, or JSON
text of these.
"""

import re
from collections.abc import Iterable
from typing import Any

from trajscore.io._messages import (
    Message,
    answer_of,
    as_chat,
    as_id,
    is_message,
    scored,
    wrapper_of,
)
from trajscore.io._results import printed
from trajscore.io._run import MalformedRunError
from trajscore.io.vocabulary import (
    PAYLOADS,
    SPANS,
    TYPES,
    WORDS,
    Record,
    Values,
    answer_part,
    as_fields,
    as_list,
    first,
    parsed,
    role_of,
    unnested,
)

_SPEAKER = re.compile(r"(?im)^(system|user|human|assistant|ai|tool):[ \t]*")
_PART_TYPES = (*TYPES["text"], "tool_use", "image", "thinking")


def messages_in(value: Any, role: str | None) -> list[Message]:
    """Return the messages that a value holds; bare text needs a role to be one."""
    messages = (message for _, message in as_chat(_search(unnested(value), role)))
    return [
        message
        for message in messages
        # some tracers write the definition of a tool as a message
        if as_fields(message, "content").get("type") != "function"
    ]


def _search(value: Any, role: str | None, depth: int = 6) -> Values:
    if depth == 0 or value is None:
        return []
    if isinstance(value, list):
        return _from_list(value, role, depth)
    if isinstance(value, dict):
        return _from_object(value, role, depth)
    return _from_text(str(value), role)


def _from_text(text: str, role: str | None) -> Values:
    if not role or not text.strip():
        return []
    if role != "user" or not _SPEAKER.match(text):
        return [{"role": role, "content": text}]
    _, *parts = _SPEAKER.split(text)
    return [_spoken(who, words) for who, words in zip(parts[::2], parts[1::2], strict=True)]


def _spoken(who: str, words: str) -> Message:
    """Return a turn of a dialogue, as LangChain, with its calls, and AutoGen's tracer write it."""
    text, mark, rest = words.partition("[{'name': ")
    calls = as_list(printed(f"{mark}{rest.strip()}"))
    if not calls:
        text = words
    content = "" if text.strip() == "None" else text.strip("\n")
    return {"role": who.lower(), "content": content, "tool_calls": calls}


def _from_list(values: Values, role: str | None, depth: int) -> Values:
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


def _from_object(fields: Record, role: str | None, depth: int) -> Values:
    if "gen_ai.event.content" in fields:
        return _search(unnested(fields["gen_ai.event.content"]), role, depth - 1)
    part = answer_part(fields)
    if part and "output" not in fields:
        return answer_of(part)
    if not part and is_message(fields):
        return _with_role(fields, role)
    system: Values = []
    for source in (fields, as_fields(fields, "config")):
        for name in WORDS["instructions"]:
            system += _instruction(source.get(name))
    # of bare text in a field: that of its side, the user's, or none
    roles = {"either": role, "user": None if role is None else "user"}
    for name in PAYLOADS:
        if name in fields:
            value = unnested(fields[name])
            if messages := _search(value, roles.get(PAYLOADS[name]), depth - 1):
                *before, last = messages
                return [*system, *before, scored(last, fields)]
    if isinstance(fields.get("content"), dict):
        return system + _search(fields["content"], role, depth - 1)
    return system + (_bare_answer(fields) if role == "assistant" else [])


def _with_role(fields: Record, role: str | None) -> Values:
    """Return a message with a role; without one, it gets the role of its side."""
    if fields.get("role") is not None or ("role" not in fields and "parts" not in fields):
        return [fields]
    if role:
        return [{**fields, "role": role}]
    return []


def _instruction(value: Any) -> Values:
    text = unnested(value)
    if isinstance(text, dict):  # Google's
        text = text.get("parts", text.get("text"))
    if isinstance(text, list):
        text = [part for part in text if isinstance(part, dict)]
    if isinstance(text, (str, list)) and text:
        return [{"role": "system", "content": text}]
    return []


def _bare_answer(fields: Record) -> Values:
    """Return an answer without a message around it; an unknown object is its own text."""
    calls = as_list(fields.get("tool_calls")) or as_list(fields.get("toolCalls"))
    texts = map(fields.get, WORDS["texts"])
    text: Any = next((text for text in texts if isinstance(text, (str, list))), None)
    if text is None and not calls:
        if not fields:
            return []
        text = dict(fields)
    reason = first(fields, ("finish_reason", "finishReason"), blank=True)
    message = {"role": "assistant", "content": text, "tool_calls": calls, "finish_reason": reason}
    return [scored(message, fields)]


def with_parts(message: Message) -> Message:
    """Return a message; with its parts, where its text is the JSON of them."""
    parts = unnested(message.get("content"))
    if as_list(parts) and all(map(_is_part, parts)):
        return {**message, "content": parts}
    return message


def result_in(value: Any) -> tuple[Any, str | None]:
    """Return what a tool returned, and the id of the call that it answers, if known."""
    text = value
    value = unnested(value)
    if as_fields(value).keys() == {"output"}:  # as LangSmith wraps it
        text = value["output"]
        value = unnested(value["output"])
    if {"name", "response"} <= as_fields(value).keys():  # as Google's ADK wraps it
        text = value = value["response"]
    message = next(
        (candidate for candidate in messages_in(value, None) if candidate.get("role") == "tool"),
        None,
    )
    if message is not None:
        return message.get("content"), as_id(message.get("tool_call_id"))
    content = first(as_fields(value), ("content", "blocks"))
    if as_list(content) and all(map(_is_part, content)):
        return content, None
    return value if isinstance(value, str) else text, None


_HEAD = 40  # characters by which a text is told from messages of OpenInference
_MESSAGE = re.compile(r"""["']message\.""")  # in JSON, or as Python writes them


def attributes_of(record: Record) -> Record:
    """Return the attributes of a span by their dotted names."""
    attributes = record.get("attributes")
    if isinstance(attributes, list):  # OTLP
        return _from_pairs(attributes)
    if isinstance(attributes, dict):
        return _flat(attributes)
    named = {name[11:]: value for name, value in record.items() if name.startswith("attributes.")}
    return named or ({} if "body" in record else record)


def plain(value: Any) -> Any:
    """Return the value that OTLP wraps with its type."""
    if not isinstance(value, dict) or len(value) != 1:
        return value
    match value:
        case {"arrayValue": dict(inner)}:
            return list(map(plain, as_list(inner.get("values"))))
        case {"kvlistValue": dict(inner)}:
            return _from_pairs(as_list(inner.get("values")))
        case {"intValue": str(inner)} if inner.lstrip("-").isdigit():
            return int(inner)  # a text, as numbers of JSON are too short for it
    ((kind, inner),) = value.items()
    return inner if kind in SPANS["values"] else value


def _from_pairs(pairs: Any) -> Record:
    return {str(p.get("key")): plain(p.get("value")) for p in pairs if isinstance(p, dict)}


def _flat(nested: Record, path: str = "", depth: int = 8) -> Record:
    """Return the fields of nested objects by dotted names, and the objects too."""
    fields: dict[str, Any] = {}
    for name, value in nested.items():
        fields[f"{path}{name}"] = value
        if isinstance(value, dict) and depth:
            fields |= _flat(value, f"{path}{name}.", depth - 1)
    return fields


def read_attribute(attributes: Record, names: Iterable[str]) -> Any:
    """Return the first of some attributes, also if it is spread over names with indices."""
    for name in names:
        if (value := attributes.get(name)) not in (None, ""):
            if isinstance(value, str) and _MESSAGE.search(value[:_HEAD]):
                value = parsed(value)
                if isinstance(value, str):
                    raise MalformedRunError(f"its {name} is not JSON, but what Python prints")
            return _untangled(value)
        start = f"{name}."
        spread = {k[len(start) :]: v for k, v in attributes.items() if k.startswith(start)}
        if any(k.partition(".")[0].isdigit() for k in spread):
            return _untangled(spread)
    return None


def _untangled(value: Any) -> Any:
    """Return dotted names as nested objects, indices as lists, without wrappers."""
    if isinstance(value, list):
        return list(map(_untangled, value))
    if not isinstance(value, dict):
        return value
    nested: dict[str, Any] = {}
    for name, inner in value.items():
        key, _, rest = str(name).partition(".")
        if not rest:
            nested.setdefault(key, inner)
        elif isinstance(nested.setdefault(key, {}), dict):
            nested[key][rest] = inner
    fields = {key: _untangled(inner) for key, inner in nested.items()}
    if fields and all(key.isdigit() for key in fields):
        return [fields[key] for key in sorted(fields, key=int)]
    if len(fields) == 1 and next(iter(fields)) in SPANS["wrappers"]:
        return next(iter(fields.values()))
    if "contents" in fields:
        fields["content"] = fields.pop("contents")
    return fields
