"""The parts of a message: texts, thoughts, calls and results, as libraries write them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trajscore.io import _vocabulary as keys
from trajscore.io._vocabulary import as_list, first
from trajscore.io.logprobs import find_logprobs

_KINDS = ("type", "part_kind", "kind")


def has_other_text(part: Mapping[str, Any]) -> bool:
    """Tell text that is not in the field that OpenAI's chats have for it."""
    return isinstance(part.get("content"), str) and not isinstance(part.get("text"), str)


def is_call(part: Mapping[str, Any]) -> bool:
    """Tell a call of a tool, by its type or its fields."""
    return type_of(part) in keys.CALL_TYPES or {"name", "arguments"} <= part.keys()


def is_result(part: Mapping[str, Any]) -> bool:
    """Tell the result of a call, by its type or its fields."""
    return type_of(part) in keys.RESULT_TYPES or {"call_id", "content"} <= part.keys()


def wrapper_of(part: Mapping[str, Any]) -> str | None:
    """Return the field in which Google or Bedrock puts a call or a result."""
    names = (*keys.WRAPPED_CALLS, *keys.WRAPPED_RESULTS)
    return next((name for name in names if isinstance(part.get(name), dict)), None)


def messages_of_parts(fields: dict[str, Any], parts: list[Any]) -> list[Any]:
    """Return the parts of a message as messages: results, then prompts, then the turn."""
    calls: list[Any] = []
    results: list[Any] = []
    texts: list[Any] = []
    prompts: list[Any] = []
    more: dict[str, Any] = {}
    for part in parts:
        if not isinstance(part, dict):
            texts.append(part)
            continue
        kind = type_of(part)
        wrapper = wrapper_of(part)
        if wrapper is not None:
            (results if wrapper in keys.WRAPPED_RESULTS else calls).append(part[wrapper])
        elif is_call(part):
            calls.append(part)
        elif is_result(part):
            results.append(part)
        elif kind in keys.THOUGHT_TYPES or part.get("thought") is True:
            more["reasoning"] = "\n".join(filter(None, (more.get("reasoning"), thought_of(part))))
        elif kind in keys.PROMPT_TYPES:
            prompts.append({"role": keys.PROMPT_TYPES[kind], "content": part.get("content")})
        else:
            texts.append(_text_part(part, more))
    message = {k: v for k, v in fields.items() if k not in ("parts", "content")} | more
    if calls:
        message["tool_calls"] = message.get("tool_calls") or calls
    answers = list(map(result_of_part, results))
    if (answers or prompts) and not texts and not message.get("tool_calls"):
        return [*answers, *prompts]
    call_ids = [name for name in map(id_of, calls) if name is not None]
    later = [answer for answer in answers if answer["tool_call_id"] in call_ids]
    others = [*(answer for answer in answers if answer not in later), *prompts]
    is_one_text = "parts" in fields and all(map(is_text, texts))
    content = "".join(map(_text_of, texts)) if is_one_text else texts or ""
    return [*others, {**message, "content": content}, *later]


def id_of(part: Mapping[str, Any]) -> Any:
    return first(part, keys.CALL_ID, blank=True)


def is_text(part: Any) -> bool:
    if not isinstance(part, dict):
        return isinstance(part, str)
    return part.keys() <= {"type", "text"} and isinstance(part.get("text"), str)


def _text_of(part: Any) -> str:
    if isinstance(part, str):
        return part
    return str(part["text"])


def _text_part(part: Mapping[str, Any], more: dict[str, Any]) -> Mapping[str, Any]:
    """Return a part as OpenAI's chats have it; its log-probabilities go to the message."""
    if logprobs := as_list(find_logprobs(part)):
        more["logprobs"] = [*more.get("logprobs", ()), *logprobs]
    if type_of(part) in keys.TEXT_TYPES or has_other_text(part):
        return {"type": "text", "text": part.get("text", part.get("content"))}
    if part.keys() == {"data"}:  # of AutoGen
        return {"type": "image", **part}
    return part


def result_of_part(part: Mapping[str, Any]) -> dict[str, Any]:
    result = first(part, keys.RESULT, blank=True)
    if isinstance(result, dict) and set(result) == {"type", "value"}:  # Vercel's
        result = result["value"]
    failed = part.get("is_error", part.get("isError")) or part.get("status") == "error"
    failed = failed or type_of(part) in ("retry-prompt", "tool-error")
    message = {"role": "tool", "content": result, "tool_call_id": id_of(part)}
    name = first(part, keys.CALL_NAME, blank=True)
    return message | ({"name": str(name)} if name else {}) | ({"error": True} if failed else {})


def thought_of(part: Mapping[str, Any]) -> str:
    text = first(part, ("text", "thinking", "content", "summary"), blank=True)
    if isinstance(text, list):
        text = "\n".join(str(piece.get("text", "")) for piece in text if isinstance(piece, dict))
    if isinstance(text, str):
        return text
    return ""


def type_of(fields: Mapping[str, Any]) -> str:
    for name in _KINDS:
        if name in fields:
            kind = fields[name]
            if isinstance(kind, str):
                return kind.lower()
            return ""
    return ""
