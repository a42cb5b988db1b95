"""Messages of any client in the form of OpenAI's chats, which `Conversation` takes.

Other forms are items of OpenAI's Responses and of its Agents SDK, blocks of Anthropic and Bedrock,
messages of LangChain (also serialised), AutoGen and smolagents, parts of Google, of Pydantic AI and
of OpenTelemetry's GenAI convention, and ShareGPT's pairs.
"""

import json
from collections.abc import Iterable
from typing import Any

from trajscore.io import vocabulary as keys
from trajscore.io._results import has_calls, result_messages, text_message
from trajscore.io._run import leftover
from trajscore.io._smolagents import OF_WORDS, STEP_FIELDS, is_step, messages_of_step, with_calls
from trajscore.io.logprobs import find_logprobs
from trajscore.io.vocabulary import (
    Record,
    Values,
    as_fields,
    as_list,
    first,
    first_object,
    parsed,
    text_of,
)

Message = dict[str, Any]
"""A message in the form of OpenAI's chats."""

_ANSWERS = {right for _, right in keys.CALL_SIDES}  # lists without what was asked
_OF_CLIENTS = {*keys.PARTS["of_clients"]}
_CONTENT = {*keys.PARTS["content"]}
_OF_MESSAGES = {  # any of which it has
    *keys.PARTS["marked"], *STEP_FIELDS, *_CONTENT, *keys.PARTS["kinds"], *keys.OF_ANSWERS,
}  # fmt: skip


def is_message(value: Any) -> bool:
    """Tell a message of any client from other objects."""
    if not isinstance(value, dict) or _OF_MESSAGES.isdisjoint(value):
        return False
    value = _raw_item(value)
    if keys.answer_part(value) or "choices" in value or _is_item(value) or is_step(value):
        return True
    if _is_serialised(value):
        return _class_of(value) in keys.MESSAGE_CLASSES
    if not _CONTENT & value.keys():
        return False
    if "parts" in as_fields(value, "content") or {"author", "actions"} <= value.keys():
        return True  # an event of Google's ADK
    return bool({"role", "from", "parts"} & value.keys()) or _role_of_type(value) is not None


def held_message(record: Record) -> Record:
    """Return a record with the fields of the message that it holds, beside its own."""
    if is_message(record):
        return record
    held = {name: parsed(v) for name, v in record.items() if name not in keys.HOLDERS}
    names = [name for name, value in held.items() if is_message(value)]
    return leftover(record, names) | held[names[0]] if len(names) == 1 else record


def is_chat_list(value: Any) -> bool:
    """Tell a list of messages by the first of them."""
    return is_message(first_object(value))


def find_messages(record: Record) -> tuple[Values | None, set[str]]:
    """Return the messages that a record lists, and the names of their fields."""
    messages, names = result_messages(record)
    if messages:
        return messages, names
    for path in keys.WORDS["batch_answers"] if "custom_id" in record else ():
        if answer := as_fields(record, *path):
            return [answer], {*path}
    for name in keys.WORDS["message_lists"]:
        value = parsed(record.get(name))
        if isinstance(value, list) and (name == "messages" or not value or is_message(value[0])):
            if record.get("choices") or not _is_answer(value[-1:]):
                value = _with_answer(value, record)
            return value, {name}
    if keys.answer_part(record) and not keys.is_response(record):
        asked = _text_message(record.get("prompt"), "user")
        return _with_answer(asked, record), keys.OF_ANSWERS
    if sides := _of_sides(record):
        return sides
    held = {name: parsed(value) for name, value in record.items()}
    lists = {name: value for name, value in held.items() if _lists_turns(name, value)}
    for name in _usual_or_only(lists, keys.ITEM_LISTS):
        return lists[name], {name}
    return None, set()


def _usual_or_only(names: Iterable[str], usual: Iterable[str]) -> list[str]:
    """Return those of some names that are usual, or the only name."""
    listed = list(names)
    return [name for name in listed if name in usual] or listed[: len(listed) == 1]


def _lists_turns(name: str, listed: Any) -> bool:
    """Tell the messages of a run under any name, and not steps of other programs."""
    if not is_chat_list(listed) or name in keys.ITEM_LISTS or is_step(listed[0]):
        return is_chat_list(listed)
    is_of_several = len({str(as_fields(item).get("session_id")) for item in listed}) > 1
    are_steps = name in _ANSWERS or bool({"action", "observation"} & listed[0].keys())
    return not (are_steps or is_of_several) and _is_answer(listed)


def _of_sides(record: Record) -> tuple[Values, set[str]] | None:
    """Return what a model was given and what it answered, and the names of their fields."""
    whole_first = sorted(keys.CALL_SIDES, key=lambda sides: not record.keys() >= {*sides})
    for left, right in whole_first:
        sides = [listed(record.get(name)) for name in (left, right)]
        if sides == [None, None]:
            continue
        inputs = sides[0] or _text_message(record.get(left), "user")
        outputs = sides[1] or _text_message(record.get(right), "assistant")
        if not inputs and _is_answer(outputs[:1]):
            continue
        repeats = outputs[: len(inputs)] == inputs
        names = {name for name, side in ((left, inputs), (right, outputs)) if side}
        return (outputs if repeats else [*inputs, *outputs]), names
    return None


def spread(record: Record, depth: int = 3) -> Record:
    """Return a record with the fields of the object in it that holds its messages, if one does."""
    if not depth or find_messages(record)[0] is not None:
        return record
    owners = {name: spread(as_fields(parsed(v)), depth - 1) for name, v in record.items()}
    owners = {  # of messages, and not only the answer of a server
        name: inner
        for name, inner in owners.items()
        if not keys.answer_part(inner) and is_chat_list(find_messages(inner)[0])
    }
    # of AutoGen, within the state of an agent
    threads = {name: inner for name, inner in owners.items() if "message_thread" in inner}
    for name in _usual_or_only(threads or owners, keys.MESSAGE_OWNERS):
        used = find_messages(owners[name])[1] | {name}
        return {**owners[name], **leftover(record, used)}
    return record


def is_run(fields: Record) -> bool:
    """Tell a record that lists its messages, or whose object does."""
    return find_messages(spread(fields))[0] is not None


def _is_answer(messages: Values) -> bool:
    """Tell messages among which a model answered."""
    turns = (as_fields(turn) for _, turn in as_chat(messages))
    return any(keys.role_of(turn.get("role")) == "agent" for turn in turns)


def listed(value: Any) -> Values | None:
    """Return the messages of a field: a list, an object that has one, or a single message."""
    value = parsed(value)
    if is_chat_list(value):
        return list(value)
    if is_message(value):
        return [value]
    return find_messages(spread(value))[0] if as_fields(value) else None


def _text_message(value: Any, role: str) -> Values:
    value = parsed(value)
    if isinstance(value, dict):  # what a server was asked
        value = first(value, keys.WORDS["prompts"])
    return text_message(role, [value])


def as_chat(messages: Iterable[Any]) -> Iterable[tuple[int, Any]]:
    """Return messages as chats have them, with their indices; items of one turn are joined."""
    messages = list(messages)
    if all(map(_is_of_chat, messages)):
        return enumerate(messages)
    chat: list[tuple[int, Any]] = []
    is_open = False  # whether the last one is made of items, and may go on
    for index, message in with_calls(map(_raw_item, messages)):
        # each block of an answer is a message of Claude's Agent SDK
        is_item = isinstance(message, dict) and (
            _is_item(message) or "parent_tool_use_id" in message
        )
        for part in chat_messages(message):
            start, turn = chat[-1] if is_open else (index, {})
            of_item = is_item and part.get("role") == "assistant"
            has_words = turn.get("content") or turn.get("tool_calls")  # which come before calls
            if is_open and of_item and not (has_words and part.get("content")):
                chat[-1] = start, _joined(turn, part)
                continue
            of_thought = False  # of the same agent of AutoGen
            if _only_thought(turn):
                chat.pop()
                source = turn.get("source")
                of_thought = source is not None and as_fields(part).get("source") == source
            chat.append((index, _joined(turn, part) if of_thought else part))
            is_open = of_item and not of_thought
    if is_open and _only_thought(chat[-1][1]):
        chat.pop()
    return chat


def _raw_item(item: Any) -> Any:
    """Return the item that OpenAI's Agents SDK wraps or stores, but for a request for approval."""
    fields = as_fields(item)
    raw = fields.get("raw_item", parsed(fields.get("message_data")))
    if isinstance(raw, dict) and "role" not in item and not is_of_program(item):
        return raw
    return item


def chat_messages(message: Any) -> Values:
    """Return one message in the form of chats, as one or several messages."""
    if not isinstance(message, dict) or _is_of_chat(message):
        return [message]
    is_adks = "author" in message and "actions" in message
    if is_adks and (message.get("partial") is True or message.get("content") is None):
        return []  # an event of Google's ADK that is a piece of a message, or changes the state
    if is_of_program(message):
        return []
    if is_step(message):
        return messages_of_step(message)
    is_response = keys.is_response(message)
    part = keys.answer_part(message)
    if part and not is_response and "role" not in message:
        *before, turn = answer_of(part)
        return [*before, {**leftover(message, keys.OF_ANSWERS), **turn}]
    if _is_item(message):
        return _of_item(message)
    fields = unwrapped(message)
    parts = fields.get("parts")
    content = fields.get("content")
    instructions = text_message("system", [fields.get("instructions")])  # of each request
    if is_response:
        turns = [turn for _, turn in as_chat(fields["output"])]
        usage = leftover({"usage": first(fields, keys.USAGES)})
        return [*instructions, *({**turn, **usage} for turn in turns[:1]), *turns[1:]]
    if isinstance(parts, list):
        return [*instructions, *messages_of_parts(fields, parts)]
    if isinstance(content, list):
        return messages_of_parts(fields, content)
    return [fields]


def _is_of_chat(message: Any) -> bool:
    """Tell a message in the form of OpenAI's chats."""
    if not isinstance(message, dict) or "role" not in message:
        return False
    content = message.get("content")
    if not (content is None or isinstance(content, str)) or not _OF_CLIENTS.isdisjoint(message):
        return False
    role = message["role"]
    return role not in OF_WORDS and not (role == "assistant" and has_calls(content or ""))


def is_of_program(message: Any) -> bool:
    """Tell a message of AutoGen that its program writes, and neither a model nor a user."""
    fields = as_fields(message)
    kind = type_of(fields)
    source = fields.get("source")
    return kind in keys.TYPES["program"] and (source, kind) != ("user", "handoffmessage")


# ------------------------------------------------------------------ responses of servers


def answer_of(part: Record) -> list[Message]:
    """Return the turn that is an answer of a server, or several, with its log-probabilities."""
    content = first(part, keys.ANSWERS)
    items = [{"role": "assistant", **content}] if isinstance(content, dict) else as_list(content)
    turns = [message for _, message in as_chat(items) if isinstance(message, dict)]
    *before, turn = turns or [{"role": "assistant", "content": content}]
    reason = first(part, keys.PARTS["finish"])
    if reason is not None:
        turn = {"finish_reason": reason, **turn}
    return [*before, scored(turn, part)]


def _with_answer(messages: Values, record: Record) -> Values:
    """Add the answer that a record has beside the messages, unless it is the last of them."""
    part = keys.answer_part(record) or answer_within(record)
    if not part:
        return messages
    *before, answer = answer_of(part)
    last = first_object(messages[-1:])
    if all((last.get(k) or None) == (answer.get(k) or None) for k in keys.PARTS["turn"]):
        return [*messages[:-1], {**answer, **last}]
    return [*messages, *before, answer]


def scored(message: Message, answer: Any) -> Message:
    """Return a message with its log-probabilities, or those of the answer around it, if any."""
    logprobs = as_list(find_logprobs(message) or find_logprobs(answer))
    return {**message, "logprobs": logprobs} if logprobs else message


def answer_within(fields: Record) -> Record:
    """Return the answer of a server's response that a field of a turn holds, if one does."""
    for owner in filter(None, (fields, as_fields(fields, "extra"))):
        for name in filter(owner.get, keys.HOLDERS):
            held = parsed(owner[name])
            if len(as_list(held)) == 1:  # of TGI
                held = held[0]
            if part := keys.answer_part(as_fields(held)):
                return part
    return {}


# ------------------------------------------------------------------ items, one thing each


def _is_item(message: Record) -> bool:
    """Tell an item of OpenAI's Responses, or a call without a message around it."""
    kind = type_of(message)
    if kind == "message" and isinstance(message.get("content"), list):
        return "role" in message
    if "role" in message:
        return False
    if kind in keys.TYPES["item"] or kind.endswith(("_call", "_call_output")):
        return "function" not in message or kind != "tool_call"
    return bool({"toolName", "tool.name"} & message.keys())


def _of_item(item: Record) -> Values:
    kind = type_of(item)
    if kind == "message":
        return messages_of_parts(dict(item), item["content"])
    if kind in ("reasoning", "thoughtevent"):
        thought = {"role": "assistant", "content": "", "reasoning": thought_of(item)}
        return [{**thought, "source": item.get("source")}]
    if kind.endswith("_output") or kind in keys.TYPES["result"]:
        return [result_of_part(item)]
    call = {**item, "name": first(item, keys.PARTS["call_name"]) or kind.removesuffix("_call")}
    turn = {"role": "assistant", "content": "", "tool_calls": [call]}
    result = first(item, keys.PARTS["result"], blank=True)
    if result is None:
        return [turn]
    return [turn, result_of_part(item)]


def _only_thought(turn: Record) -> bool:
    return "reasoning" in turn and not (turn.get("content") or turn.get("tool_calls"))


def _joined(turn: Record, item: Record) -> Message:
    calls = [*as_list(turn.get("tool_calls")), *as_list(item.get("tool_calls"))]
    content = turn.get("content") or item.get("content") or ""
    return {**turn, **item, "content": content, "tool_calls": calls}


# ------------------------------------------------------------------ messages and their wrappers


def unwrapped(message: Record) -> Message:
    """Return a message's own fields, with its role, without their wrapper."""
    fields = dict(message)
    if _is_serialised(fields):
        name = _class_of(message)
        fields = {"role": keys.MESSAGE_CLASSES.get(name, name), **fields["kwargs"]}
    elif isinstance(fields.get("data"), dict) and type_of(fields) in keys.TYPES["message"]:
        fields = {"role": fields["type"], **fields["data"]}
    elif "parts" in as_fields(fields, "content"):
        fields |= fields.pop("content")
    if "role" not in fields:
        role = fields.pop("from", None) or _role_of_type(fields)
        if role:
            fields["role"] = role
    if fields.get("content") is None and "parts" not in fields:
        other = next((name for name in keys.PARTS["instead"] if name in fields), None)
        if other is not None:
            fields |= {"content": fields.pop(other)}
    if "source" in fields and isinstance(fields.get("content"), dict):  # structured, of AutoGen
        fields["content"] = json.dumps(fields["content"], ensure_ascii=False)
    if "content" not in fields and "output" in as_fields(fields, "result"):  # of code
        fields["content"] = fields["result"]["output"]
    return _with_additional_fields(fields)


def _role_of_type(fields: Record) -> str | None:
    kind = type_of(fields)
    if kind in ("request", "response") and "parts" in fields:  # Pydantic AI's
        if kind == "request":
            return "user"
        return "assistant"
    kind = keys.MESSAGE_CLASSES.get(kind.removesuffix("chunk").partition("[")[0], kind)
    if kind == "assistant" and fields.get("source") == "user":  # of AutoGen
        return "user"
    if kind in keys.TYPES["message"]:
        return kind
    return None


def _with_additional_fields(fields: Message) -> Message:
    """Add what LangChain keeps beside the message: calls, the finish reason."""
    additional = as_fields(fields, "additional_kwargs")
    if not fields.get("tool_calls"):
        fields |= {k: additional[k] for k in filter(additional.get, keys.PARTS["additional"])}
    if fields.get("finish_reason") is None:
        fields["finish_reason"] = as_fields(fields, "response_metadata").get("finish_reason")
    if fields.get("status") == "error" and "error" not in fields:
        fields["error"] = True
    return fields


def _is_serialised(message: Record) -> bool:
    """Tell a message as LangChain's `dumps` writes it."""
    return message.get("lc") is not None and isinstance(message.get("kwargs"), dict)


def _class_of(message: Record) -> str:
    name = "".join(map(str, as_list(message.get("id"))[-1:]))
    return name.lower().removesuffix("chunk")


# ------------------------------------------------------------------ parts of a message


def wrapper_of(part: Record) -> str | None:
    """Return the field in which Google or Bedrock puts a call or a result."""
    names = (*keys.PARTS["wrapped_calls"], *keys.PARTS["wrapped_results"])
    return next((name for name in names if isinstance(part.get(name), dict)), None)


def messages_of_parts(fields: Message, parts: Values) -> Values:
    """Return the parts of a message as messages: results, then prompts, then the turn."""
    calls: Values = []
    results: Values = []
    texts: Values = []
    prompts: list[Message] = []
    more: dict[str, Any] = {}
    for part in parts:
        if not isinstance(part, dict):
            texts.append(part)
            continue
        kind = type_of(part)
        wrapper = wrapper_of(part)
        if wrapper is not None:
            (results if wrapper in keys.PARTS["wrapped_results"] else calls).append(part[wrapper])
        elif _is_part(part, "call"):
            calls.append(part)
        elif _is_part(part, "result"):
            results.append(part)
        elif _is_part(part, "thought") or part.get("thought") is True:
            more["reasoning"] = "\n".join(filter(None, (more.get("reasoning"), thought_of(part))))
        elif kind in keys.TYPES["prompt"]:
            prompts.append({"role": keys.TYPES["prompt"][kind], "content": part.get("content")})
        else:
            texts.append(_text_part(part, more))
    message = {**fields, **more, "tool_calls": fields.get("tool_calls") or calls}
    message.pop("parts", None)
    answers = list(map(result_of_part, results))
    if (answers or prompts) and not (texts or message["tool_calls"]):
        return [*answers, *prompts]
    call_ids = [name for name in map(id_of, calls) if name is not None]
    later = [answer for answer in answers if answer["tool_call_id"] in call_ids]
    others = [*(answer for answer in answers if answer not in later), *prompts]
    is_one_text = "parts" in fields and keys.only_text(texts)
    content = "".join(map(text_of, texts)) if is_one_text else texts or ""
    return [*others, {**message, "content": content}, *later]


def _is_part(part: Record, what: str) -> bool:
    """Tell a call, a result or a thought by its type, or by its fields."""
    kinds = keys.TYPES[what]
    return type_of(part) in kinds or any({*k} <= part.keys() for k in keys.PARTS["marks"][what])


def as_id(name: Any) -> str | None:
    """Return what identifies a call or a span as text; None where it is empty."""
    return None if name in (None, "") else str(name)


def id_of(part: Record) -> Any:
    return first(part, keys.PARTS["call_id"], blank=True)


def _text_part(part: Record, more: dict[str, Any]) -> Record:
    """Return a part as OpenAI's chats have it; its log-probabilities go to the message."""
    if logprobs := as_list(find_logprobs(part)):
        more["logprobs"] = [*more.get("logprobs", ()), *logprobs]
    is_text_elsewhere = isinstance(part.get("content"), str) and not isinstance(
        part.get("text"), str
    )
    if type_of(part) in keys.TYPES["text"] or is_text_elsewhere:
        return {"type": "text", "text": part.get("text", part.get("content"))}
    if part.keys() == {"data"} or first(part, keys.PARTS["files"]):  # of AutoGen and Google
        return {"type": "image", **part}
    return part


def result_of_part(part: Record) -> Message:
    result = first(part, keys.PARTS["result"], blank=True)
    if isinstance(result, dict) and set(result) == {"type", "value"}:  # Vercel's
        result = result["value"]
    failed = (
        part.get("is_error", part.get("isError"))
        or part.get("status") in ("error", "failed")
        or type_of(part) in ("retry-prompt", "tool-error")
        or part.get("outcome") in ("failed", "retried")
        or as_fields(part, "response").get("error")  # of Google
    )
    return {
        "role": "tool",
        "content": result,
        "tool_call_id": id_of(part),
        "name": as_id(first(part, keys.PARTS["call_name"], blank=True)),
        "error": bool(failed) or None,
    }


def thought_of(part: Record) -> str:
    return text_of(first(part, ("text", "thinking", "content", "summary"), blank=True))


def type_of(fields: Record) -> str:
    kind = next((fields[name] for name in keys.PARTS["kinds"] if name in fields), None)
    if isinstance(kind, str):
        return kind.lower()
    return ""
