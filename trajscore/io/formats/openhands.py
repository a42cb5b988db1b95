"""Histories of OpenHands: events with a kind, as of version 1, or actions and observations."""

from collections.abc import Iterable
from itertools import chain
from types import MappingProxyType
from typing import Any

from trajscore.io._conversation import Conversation
from trajscore.io._messages import Message
from trajscore.io._run import Run, as_object, check_list, leftover
from trajscore.io.fields import dig
from trajscore.io.files import LogFile, Place, stem
from trajscore.io.formats.swe_agent import report_outcome
from trajscore.io.registry import Format, Head, RawRuns, register
from trajscore.io.vocabulary import Record, as_fields, as_list, first, first_object

_LISTS = ("history", "trajectory")
_RUN = ("instance_id", "attempt", "metadata", *_LISTS)
_CALL = "tool_call_id"
_OF_TURN = ("confidence", "critic_result", "reasoning_content", "llm_response_id")
_OF_PROGRAM = {"initialize", "change_agent_state", "agent_state_changed", "recall", "null"}


def _kind_of(event: Any) -> Any:
    """Return what an event is, None of anything else."""
    fields = as_fields(event)
    if fields.keys() & {"args", "extras"} or str(fields.get("kind")).endswith("Event"):
        return first(fields, ("kind", "action", "observation"))
    return None


@register
class OpenHands(Format):
    name = "openhands"
    holds = "history"
    beside = ("instance_id", "test_result", "metrics")
    stops = MappingProxyType({"max_iterations_reached": "administrative"})

    def recognise(self, head: Head) -> bool:
        events = [head.item, *(first_object(head.fields.get(name)) for name in _LISTS)]
        is_result = {"instance_id", "test_result", "history"} <= head.fields.keys()
        return is_result or any(map(_kind_of, events))

    def runs(self, file: LogFile, options: Any) -> RawRuns:
        events = []
        for place, raw in super().runs(file, options):
            if _kind_of(raw):
                events.append(raw)
            else:
                yield place, raw
        if events:
            yield file.place(0), {"instance_id": stem(file.path), "history": events}

    def run(self, raw: Any, place: Place, options: Any) -> Run:
        raw = as_object(raw)
        task = raw.get("instance_id")
        name = place.name(task)
        history = check_list(first(raw, _LISTS) or [], "its history is")
        events = list(chain.from_iterable(as_list(item) or [item] for item in history))
        messages = [_message_of(as_object(event, "an event is")) for event in events]
        run = Run(name, outcome=report_outcome(name, place.file), task=task)
        run.trial = raw.get("attempt")
        run.meta["cost"] = dig(raw, "metrics.accumulated_cost")
        run.extra = leftover(raw, _RUN) | {"n_left_out": {"put in": messages.count(None)}}
        errors = [event["code"] for event in events if event.get("code")]
        if "maximum iteration" in str(raw.get("error")):
            errors = ["max_iterations"]
        place.stop_reason = run.stop_reason = next(reversed(errors), None)
        return Conversation(place, _joined(filter(None, messages))).finish(run)


def _message_of(event: Record) -> Message | None:
    """Return an event as a message of a chat; None of one that the program put in."""
    kind = _kind_of(event)
    metadata = as_fields(event, "tool_call_metadata")
    call_id = first({"cause": event.get("cause"), **metadata, **event}, (_CALL, "cause"))
    arguments = as_fields(event, "args") or as_fields(event, "action")
    content = first({**arguments, **event}, ("system_prompt", "content"))
    if kind in ("SystemPromptEvent", "system"):
        return {"role": "system", "content": content}
    if kind in ("MessageEvent", "message"):
        own = as_fields(event, "llm_message")
        return {"role": event.get("source"), "content": content, **own}
    if kind in _OF_PROGRAM or not (call_id or arguments or "observation" in event):
        return None
    if arguments or "tool_call" in event:
        call = event.get("tool_call") or {
            "id": call_id or event.get("id"),
            "name": event.get("tool_name") or metadata.get("function_name") or kind,
            "arguments": leftover(arguments, ("thought",)),
        }
        answer = as_fields(metadata, "model_response")
        turn = {name: event.get(name) for name in _OF_TURN} | {"response": answer or None}
        content = event.get("thought") or arguments.get("thought")
        turn["llm_response_id"] = turn["llm_response_id"] or answer.get("id")
        return {"role": "agent", "content": content, "tool_calls": [call], **leftover(turn)}
    result = as_fields(event, "observation") or event
    content = first(result, ("content", "error", "rejection_reason", "output"))
    failed = "error" in (*event, kind) or result.get("is_error") or event.get("success") is False
    return {"role": "tool", _CALL: call_id, "content": content, "error": failed}


def _joined(messages: Iterable[Message]) -> list[Message]:
    """Return messages in which the calls of one answer of the model are of one turn."""
    turns: dict[Any, Message] = {}
    for k, message in enumerate(messages):
        turn = turns.setdefault(message.get("llm_response_id", k), message)
        if turn is not message:
            turn["tool_calls"] += message["tool_calls"]
    return list(turns.values())
