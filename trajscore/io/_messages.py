"""One message, whatever library wrote it, as the messages of a chat that `Conversation` takes.

OpenAI's chats are left as they are. Brought into their form: items of OpenAI's Responses and Agents
SDK, blocks of Anthropic, messages of LangChain (also as they are serialised), parts of
OpenTelemetry's GenAI convention, of Google, Pydantic AI and Vercel's AI SDK, and ShareGPT's pairs.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

# Fields of a record, also behind one another, under which its messages are listed.
LISTS = ("messages", "conversations", "conversation", "items", "chat", "dialog", "dialogue")
_WITHIN = (
    "values", "state", "outputs", "output", "inputs", "input", "request", "response", "body",
    "prompt", "completion", "result", "data",
)  # fmt: skip
# What goes into a call of a model, and what comes out of it.
_SIDES = (
    ("inputs", "outputs"), ("input", "output"), ("request", "response"), ("prompt", "completion"),
    ("prompt", "response"), ("input", "response"), ("question", "answer"),
)  # fmt: skip

_CLASSES = {
    "humanmessage": "user",
    "aimessage": "assistant",
    "systemmessage": "system",
    "toolmessage": "tool",
    "functionmessage": "tool",
    # AutoGen's; what else it calls a message says whose it is by its source
    "usermessage": "user",
    "assistantmessage": "assistant",
    "functionexecutionresultmessage": "tool",
    "toolcallrequestevent": "assistant",
    "toolcallexecutionevent": "tool",
}
_TYPES = {"human", "user", "ai", "assistant", "system", "tool", "function", "developer"}
_CALLS = {"tool_use", "server_tool_use", "mcp_tool_use", "tool-call", "tool_call", "toolcall"}
_RESULTS = {"tool_result", "tool-result", "tool_call_response", "tool-return", "toolresult"}
_THOUGHTS = {"thinking", "redacted_thinking", "reasoning", "thought"}
_PROMPTS = {"system-prompt": "system", "user-prompt": "user"}
_ARGUMENTS = ("arguments", "args", "input", "action", "parameters", "queries", "query", "code")
_ANSWERS = ("output", "result", "response", "content", "outputs", "results")
_BESIDE = {"parts", "blocks", "additional_kwargs", "response_metadata", "status", "kwargs", "data"}
_IDS = ("call_id", "tool_call_id", "tool_use_id", "toolCallId", "toolUseId", "id")
_WRAPPED_CALLS = ("functionCall", "function_call", "toolUse", "tool_call")
_WRAPPED_RESULTS = ("functionResponse", "function_response", "toolResult", "tool_call_result")
_NAMES = ("name", "toolName", "tool_name", "tool.name", "function_name")


def is_message(value: Any) -> bool:
    """Tell a message of any library from a record that is none."""
    if not isinstance(value, Mapping):
        return False
    if "choices" in value or _is_item(value):
        return True
    if value.get("lc") is not None and isinstance(value.get("kwargs"), Mapping):
        return _class_of(value) in _CLASSES
    if not {"content", "parts", "blocks", "value", "text", "tool_calls", "data"} & value.keys():
        return False
    return bool({"role", "from", "parts"} & value.keys()) or _role_of_type(value) is not None


def is_chat_list(value: Any) -> bool:
    """Tell a list of messages by the first of them."""
    return isinstance(value, list) and bool(value) and is_message(value[0])


def find_messages(record: Mapping[str, Any]) -> tuple[list[Any] | None, set[str]]:
    """Return the messages that a record lists, and the fields they are from.

    The outputs of a call hold what its inputs do, or go on from there. Where no field has a usual
    name, the only one that lists messages is meant.
    """
    for name in LISTS:
        value = parsed(record[name]) if name in record else None
        if isinstance(value, list) and (name == LISTS[0] or not value or is_message(value[0])):
            return value, {name}
    parts = {name: found for name in _WITHIN if (found := _listed(record.get(name))) is not None}
    for first, then in _SIDES:
        before, after = parts.get(first), parts.get(then)
        before = _said(record.get(first), "user") if before is None else before
        after = _said(record.get(then), "assistant") if after is None else after
        if before is not None and after is not None:
            whole = after[: len(before)] == before
            return (after if whole else [*before, *after]), {first, then}
    if parts:
        return next((found, {name}) for name, found in parts.items())
    others = [name for name, value in record.items() if is_chat_list(value)]
    return (record[others[0]], {others[0]}) if len(others) == 1 else (None, set())


def _said(value: Any, role: str) -> list[Any] | None:
    """Return text of one side of a call as a message."""
    text = isinstance(value, str) and value.strip()
    return [{"role": role, "content": value}] if text else None


def find_records(fields: Mapping[str, Any]) -> list[Any] | None:
    """Return the runs that an object lists under any name, or holds by their ids."""
    for value in fields.values():
        if isinstance(value, list) and value and is_record(value[0]):
            return value
    runs = {name: value for name, value in fields.items() if is_record(value)}
    if len(runs) < len(fields) or not runs:
        return None
    return [
        {"id": name, **(value if isinstance(value, Mapping) else {LISTS[0]: value})}
        for name, value in runs.items()
    ]


def is_record(value: Any) -> bool:
    """Tell a run, with its messages, from a message and from all else."""
    if isinstance(value, Mapping):
        return not is_message(value) and find_messages(value)[0] is not None
    return is_chat_list(value)


def _listed(value: Any) -> list[Any] | None:
    """Return the messages of a field: a list, an object that has one, or a single message."""
    if isinstance(value, Mapping):
        if is_message(value):
            return [value]
        inner = [value[name] for name in (*LISTS, "output") if name in value]
        return next((one for one in inner if is_chat_list(one)), None)
    return value if is_chat_list(value) else None


def as_chat(messages: Iterable[Any]) -> Iterator[tuple[int, Any]]:
    """Yield messages in the one form, each with its place in the list.

    What the agent says and calls in items of their own is one turn, and a thought belongs to the
    turn that follows.
    """
    waiting: tuple[int, dict[str, Any]] | None = None
    for index, message in enumerate(messages):
        joins = isinstance(message, Mapping) and _is_item(message)
        for one in chat_messages(message):
            agent = isinstance(one, Mapping) and one.get("role") == "assistant"
            if waiting is not None and joins and agent and _goes_on(waiting[1], one):
                waiting = waiting[0], _joined(waiting[1], one)
                continue
            if waiting is not None:
                if not _only_thought(waiting[1]):
                    yield waiting
                waiting = None
            if joins and agent:
                waiting = index, dict(one)
            else:
                yield index, one
    if waiting is not None and not _only_thought(waiting[1]):
        yield waiting


def chat_messages(message: Any) -> list[Any]:
    """Return one message in the form of chats, as one or several; unchanged where it is of it."""
    if not isinstance(message, Mapping) or _is_usual(message):
        return [message]
    if _is_item(message):
        return _of_item(message)
    fields = _unwrapped(message)
    parts, content = fields.get("parts", fields.get("blocks")), fields.get("content")
    if isinstance(parts, list):
        return _of_parts(fields, parts)
    if isinstance(content, list) and any(map(_is_special, content)):
        return _of_parts(fields, content)
    return [fields]


def _is_usual(message: Mapping[str, Any]) -> bool:
    """Tell at a glance a message of OpenAI's chats, as most are."""
    content = message.get("content")
    return (
        "role" in message
        and (isinstance(content, str) or content is None)
        and not _BESIDE & message.keys()
    )


# ------------------------------------------------------------------ items, one thing each


def _is_item(message: Mapping[str, Any]) -> bool:
    """Tell an item of OpenAI's Responses, or a call without a message around it."""
    kind = _type_of(message)
    if kind == "message" and isinstance(message.get("content"), list):
        return "role" in message
    if "role" in message:
        return False
    if kind == "reasoning" or kind.endswith(("_call", "_call_output")):
        return "function" not in message or kind != "tool_call"
    return bool({"toolName", "tool.name"} & message.keys())


def _of_item(item: Mapping[str, Any]) -> list[Any]:
    kind = _type_of(item)
    if kind == "message":
        return _of_parts(dict(item), item["content"])
    if kind == "reasoning":
        return [{"role": "assistant", "content": "", "reasoning": _thought(item)}]
    if kind.endswith("_output") or kind in _RESULTS:
        return [_result_of(item)]
    call = _call_of(item)
    call["name"] = call["name"] or kind.removesuffix("_call")
    found: list[Any] = [{"role": "assistant", "content": "", "tool_calls": [call]}]
    answer = _first(item, ("output", "results", "result"))
    if answer is not None:
        found.append(_result_of(item))
    return found


def _only_thought(turn: Mapping[str, Any]) -> bool:
    return "reasoning" in turn and not (turn.get("content") or turn.get("tool_calls"))


def _goes_on(turn: Mapping[str, Any], item: Mapping[str, Any]) -> bool:
    """Tell whether an item belongs to the turn before it: words come before calls."""
    return not item.get("content") or not (turn.get("content") or turn.get("tool_calls"))


def _joined(turn: Mapping[str, Any], item: Mapping[str, Any]) -> dict[str, Any]:
    calls = [*(turn.get("tool_calls") or []), *(item.get("tool_calls") or [])]
    joined = {**turn, **item, "content": turn.get("content") or item.get("content") or ""}
    return joined | ({"tool_calls": calls} if calls else {})


# ------------------------------------------------------------------ messages and their parts


def _unwrapped(message: Mapping[str, Any]) -> dict[str, Any]:
    """Return the message's own fields with a role, out of what is wrapped around them."""
    fields = dict(message)
    if fields.get("lc") is not None and isinstance(fields.get("kwargs"), Mapping):
        fields = {"role": _CLASSES.get(_class_of(message), _class_of(message)), **fields["kwargs"]}
    elif isinstance(fields.get("data"), Mapping) and _type_of(fields) in _TYPES:
        fields = {"role": fields["type"], **fields["data"]}
    elif isinstance(fields.get("content"), Mapping) and "parts" in fields["content"]:
        fields |= fields.pop("content")
    if "role" not in fields:
        role = fields.pop("from", None) or _role_of_type(fields)
        if role:
            fields["role"] = role
    if "content" not in fields and "value" in fields:
        fields["content"] = fields.pop("value")
    return _with_kept_calls(fields)


def _role_of_type(fields: Mapping[str, Any]) -> str | None:
    kind = _type_of(fields)
    if kind in ("request", "response") and "parts" in fields:
        return "user" if kind == "request" else "assistant"
    kind = _CLASSES.get(kind.removesuffix("chunk"), kind)
    if kind.endswith("message") and isinstance(fields.get("source"), str):  # AutoGen's
        return "user" if fields["source"] == "user" else "assistant"
    return kind if kind in _TYPES else None


def _with_kept_calls(fields: dict[str, Any]) -> dict[str, Any]:
    """Take what LangChain keeps beside the message: calls, log-probabilities, how it ended."""
    kept, said = fields.get("additional_kwargs"), fields.get("response_metadata")
    if isinstance(kept, Mapping) and not fields.get("tool_calls"):
        for name in ("tool_calls", "function_call", "tool_call_id"):
            if kept.get(name):
                fields[name] = kept[name]
    if isinstance(said, Mapping):
        for name in ("logprobs", "finish_reason"):
            if fields.get(name) is None and said.get(name) is not None:
                fields[name] = said[name]
    if fields.get("status") == "error" and "error" not in fields:
        fields["error"] = True
    return fields


def _is_special(part: Any) -> bool:
    """Tell a part that is more than text."""
    if not isinstance(part, Mapping):
        return False
    kind = _type_of(part)
    special = kind in _THOUGHTS or kind in _PROMPTS or _is_call(part) or _is_result(part)
    return special or bool(_wrapped(part)) or "logprobs" in part or not _plain(part)


def _plain(part: Mapping[str, Any]) -> bool:
    """Tell text in the form of OpenAI's chats, or what is no text at all."""
    return isinstance(part.get("text"), str) or not isinstance(part.get("content"), str)


def _is_call(part: Mapping[str, Any]) -> bool:
    return _type_of(part) in _CALLS or {"name", "arguments"} <= part.keys()


def _is_result(part: Mapping[str, Any]) -> bool:
    return _type_of(part) in _RESULTS or {"call_id", "content"} <= part.keys()


def _wrapped(part: Mapping[str, Any]) -> str | None:
    """Return the field in which Google, Bedrock or Haystack put a call or a result."""
    names = (*_WRAPPED_CALLS, *_WRAPPED_RESULTS)
    return next((name for name in names if isinstance(part.get(name), Mapping)), None)


def _of_parts(fields: dict[str, Any], parts: Iterable[Any]) -> list[Any]:
    """Sort the parts of a message: results first, then what is said and called."""
    calls: list[Any] = []
    results: list[Any] = []
    others: list[Any] = []
    prompts: list[Any] = []
    said: dict[str, Any] = {}
    for part in parts:
        kind = _type_of(part) if isinstance(part, Mapping) else ""
        wrapped = _wrapped(part) if isinstance(part, Mapping) else None
        if wrapped is not None:
            (results if wrapped in _WRAPPED_RESULTS else calls).append(part[wrapped])
        elif isinstance(part, Mapping) and _is_call(part):
            calls.append(part)
        elif isinstance(part, Mapping) and _is_result(part):
            results.append(part)
        elif kind in _THOUGHTS or (isinstance(part, Mapping) and part.get("thought") is True):
            said["reasoning"] = "\n".join(filter(None, (said.get("reasoning"), _thought(part))))
        elif kind in _PROMPTS:
            prompts.append({"role": _PROMPTS[kind], "content": part.get("content")})
        else:
            others.append(_text_part(part, said))
    message = {k: v for k, v in fields.items() if k not in ("parts", "blocks", "content")} | said
    found = [_result_of(result) for result in results] + prompts
    if calls:
        known = message.get("tool_calls") or []
        message["tool_calls"] = known or list(map(_call_of, calls))
    if others or message.get("tool_calls") or not found:
        whole = bool({"parts", "blocks"} & fields.keys()) and all(
            map(_is_text, others)
        )  # pieces of one text
        text = "".join(one if isinstance(one, str) else one["text"] for one in others if whole)
        found.append({**message, "content": text if whole else others or ""})
    return found


def _is_text(part: Any) -> bool:
    if not isinstance(part, Mapping):
        return isinstance(part, str)
    return part.keys() <= {"type", "block_type", "text"} and isinstance(part.get("text"), str)


def _text_part(part: Any, said: dict[str, Any]) -> Any:
    """Return a part as OpenAI's chats have it; its log-probabilities are the message's."""
    if not isinstance(part, Mapping):
        return part
    if isinstance(part.get("logprobs"), list) and part["logprobs"]:
        scores = said.setdefault("logprobs", {"content": []})
        scores["content"] = [*scores["content"], *part["logprobs"]]
    if _type_of(part) in ("text", "output_text", "input_text") or _plain(part) is False:
        text = part.get("text", part.get("content"))
        return {"type": "text", "text": text}
    return part


def _call_of(part: Mapping[str, Any]) -> dict[str, Any]:
    name = _first(part, _NAMES)
    arguments = _first(part, (*_ARGUMENTS, "tool.args"))
    call = {"id": _id_of(part), "name": "" if name is None else str(name)}
    return call | ({} if arguments is None else {"arguments": arguments})


def _result_of(part: Mapping[str, Any]) -> dict[str, Any]:
    part = {**part["origin"], **part} if isinstance(part.get("origin"), Mapping) else part
    answer = _first(part, _ANSWERS)
    if isinstance(answer, Mapping) and set(answer) == {"type", "value"}:  # Vercel's
        answer = answer["value"]
    failed = part.get("is_error", part.get("isError")) or part.get("status") == "error"
    message = {"role": "tool", "content": answer, "tool_call_id": _id_of(part)}
    name = _first(part, _NAMES)
    return message | ({"name": str(name)} if name else {}) | ({"error": True} if failed else {})


def _id_of(part: Mapping[str, Any]) -> Any:
    """Return the identifier of a call; Microsoft's agents name the run before it."""
    found = _first(part, _IDS)
    return found[-1] if isinstance(found, list) and found else found


def _thought(part: Mapping[str, Any]) -> str:
    found = _first(part, ("text", "thinking", "content", "summary"))
    if isinstance(found, list):
        found = "\n".join(str(one.get("text", "")) for one in found if isinstance(one, Mapping))
    return found if isinstance(found, str) else ""


def _first(fields: Mapping[str, Any], names: Iterable[str]) -> Any:
    return next((fields[name] for name in names if fields.get(name) is not None), None)


def _type_of(fields: Mapping[str, Any]) -> str:
    kind = next((fields[k] for k in ("type", "part_kind", "block_type", "kind") if k in fields), "")
    return kind.lower() if isinstance(kind, str) else ""


def _class_of(message: Mapping[str, Any]) -> str:
    path = message.get("id")
    name = path[-1] if isinstance(path, list) and path else ""
    return re.sub("chunk$", "", str(name).lower())


def parsed(value: Any) -> Any:
    """Return what is written as JSON text within JSON; other text, and all else, as it is.

    >>> parsed('[{"role": "user"}]'), parsed("[sic]")
    ([{'role': 'user'}], '[sic]')
    """
    if not isinstance(value, str) or not value.lstrip().startswith(("{", "[", '"')):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return value
