"""Histories of OpenHands: events with a kind, as of version 1, or actions and observations."""

from collections import ChainMap
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
_OF_TURN = (
    "confidence", "critic_result", "reasoning_content", "llm_response_id", "model_response",
)  # fmt: skip
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
    arguments = as_fields(event, "args") or as_fields(event, "action")
    inner = (as_fields(event, name) for name in ("tool_call_metadata", "observation"))
    about: Message = dict(ChainMap(dict(event), *map(dict, inner), dict(arguments)))
    key = first(about, ("tool_call_id", "cause"))
    content = first(about, ("system_prompt", "content", "error", "rejection_reason"))
    if kind in ("SystemPromptEvent", "system"):
        return {"role": "system", "content": content}
    if kind in ("MessageEvent", "message"):
        return {"role": about["source"], "content": content, **as_fields(event, "llm_message")}
    if kind in _OF_PROGRAM or not (key or arguments or "observation" in event):
        return None
    if arguments or "tool_call" in event:
        call = {
            "id": key or about.get("id"),
            "name": first(about, ("tool_name", "function_name")) or kind,
            "arguments": leftover(arguments, ("thought",)),
        }
        own = leftover({name: about.get(name) for name in _OF_TURN})
        calls = [about.get("tool_call", call)]
        return {"role": "agent", "content": about.get("thought"), "tool_calls": calls, **own}
    failed = "error" in (*event, kind) or about.get("is_error") or about.get("success") is False
    return {"role": "tool", "tool_call_id": key, "content": content, "error": failed}


def _joined(messages: Iterable[Message]) -> list[Message]:
    """Return messages in which the calls of one answer of the model are of one turn."""
    turns: dict[Any, Message] = {}
    for k, message in enumerate(messages):
        answer = as_fields(message, "model_response").get("id", k)
        turn = turns.setdefault(message.get("llm_response_id", answer), message)
        if turn is not message:
            turn["tool_calls"] += message["tool_calls"]
    return list(turns.values())
