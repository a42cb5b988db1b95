"""Trajectories of SWE-agent, mini-SWE-agent and OpenHands, and which issues were resolved."""

import re
from collections.abc import Iterable
from pathlib import Path
from types import MappingProxyType
from typing import Any

from trajscore.core.outcomes import CENSORED
from trajscore.io._messages import Message, is_chat_list
from trajscore.io._run import Run, as_object, check_list, leftover
from trajscore.io.conversation import Conversation
from trajscore.io.files import LogFile, Place, stem
from trajscore.io.registry import Format, Head, RawRuns, register
from trajscore.io.vocabulary import (
    FORMATS,
    Record,
    as_fields,
    as_list,
    first,
    first_object,
    role_of,
)

_WORDS = FORMATS["swe_agent"]
_SUBMITTED = re.compile(r"^submitted \((.+)\)\Z")  # by the limit that ended the run


@register
class SWEAgent(Format):
    name = "swe_agent"
    holds = "trajectory"
    endings = (".traj",)
    _layout = ("**/*.traj", "**/*.traj.json")  # of an instance each

    def recognise(self, head: Head) -> bool:
        names = head.fields.keys()
        info, steps = (head.fields.get(name) for name in ("info", "trajectory"))
        is_mini = "trajectory_format" in names or "exit_status" in as_fields(info)
        is_own = "trajectory" in names and not is_chat_list(steps)
        return "info" in names and (is_own or (is_mini and steps is None))

    def run(self, raw: Any, place: Place) -> Run:
        raw = as_object(raw)
        info = as_object(raw.get("info") or {})
        name = place.name(raw.get("instance_id"), stem(place.file).removesuffix(".traj"))
        steps = check_list(raw.get("trajectory", raw.get("messages")), "its trajectory is")
        talk = Conversation(place)
        if "trajectory" not in raw:
            turns = [step for step in steps if as_fields(step).get("role") != "exit"]
            talk.extend(map(_of_mini, turns))
        else:
            _add_prompts(talk, raw.get("history"))
            for index, step in enumerate(steps):
                _add_step(talk, as_object(step), index)
        run = self._new_run(raw, name, outcome=_outcome(name, place.file), task=name)
        status = info.get("exit_status")
        if isinstance(status, str):  # a limit after which the work was submitted is that limit
            run.stop_reason = _SUBMITTED.sub(r"\1", status)
        run.extra["info"] = leftover(info, ("model_stats",))
        return talk.finish(run)


def _of_mini(message: Any) -> Any:
    """Return a message of mini-SWE-agent with its calls; what a user gave back is a result."""
    extra = as_fields(message, "extra")
    calls = [{"name": "bash", "arguments": action} for action in as_list(extra.get("actions"))]
    if calls:
        return {"tool_calls": calls, "cost": extra.get("cost"), **message}
    fields = as_fields(message)
    if fields.get("role") == "user" and str(fields.get("content")).startswith("<returncode>"):
        return {**fields, "role": "tool"}
    return message


def _add_prompts(talk: Conversation, history: Any) -> None:
    """Add the prompts before the agent's first turn, but no demonstrations."""
    for index, message in enumerate(as_list(history)):
        if not isinstance(message, dict) or role_of(message.get("role")) in ("agent", "tool"):
            return
        if not message.get("is_demo"):
            talk.add(message, index)


def _add_step(talk: Conversation, step: Record, index: int) -> None:
    action = step.get("action")
    observation = step.get("observation")
    names = []
    if isinstance(action, str):
        names = action.split()[:1]
    calls = [{"id": f"step {index}", "name": name, "arguments": action} for name in names]
    message = {
        "role": "assistant",
        "content": step.get("thought") or step.get("response"),
        "tool_calls": calls,
    }
    talk.add(message | {name: step[name] for name in _WORDS["step"] if step.get(name)}, index)
    if observation is not None:
        talk.add({"role": "tool", "content": observation}, index)


def _outcome(name: str, file: Path) -> float:
    """Find the issue in the report of an evaluation, beside the run or in the folder above."""
    for folder in file.parents[:2]:
        for path in (folder / report for report in _WORDS["reports"]):
            report = LogFile(path).whole() if path.exists() else {}
            for field, outcome in _WORDS["outcomes"].items():
                if name in as_list(report.get(field)):
                    return int(outcome)
    return CENSORED


# ------------------------------------------------------------------ OpenHands

_LISTS = ("history", "trajectory")
_OF_EVENTS = FORMATS["openhands"]


def _kind_of(event: Any) -> Any:
    """Return what an event is, None of anything else."""
    fields = as_fields(event)
    if fields.keys() & {"args", "extras"} or str(fields.get("kind")).endswith("Event"):
        return first(fields, _OF_EVENTS["kind"])
    return None


@register
class OpenHands(Format):
    name = "openhands"
    holds = "history"
    stops = MappingProxyType({"max_iterations_reached": "administrative"})
    _layout = ("output.jsonl",)  # of an evaluation, beside its report

    def recognise(self, head: Head) -> bool:
        events = [head.item, *(first_object(head.fields.get(name)) for name in _LISTS)]
        is_result = {"instance_id", "test_result", "history"} <= head.fields.keys()
        return is_result or any(map(_kind_of, events))

    def runs(self, file: LogFile) -> RawRuns:
        events = []
        for place, raw in super().runs(file):
            if _kind_of(raw):
                events.append(raw)
            else:
                yield place, raw
        if events:
            yield file.place(0), {"instance_id": stem(file.path), "history": events}

    def run(self, raw: Any, place: Place) -> Run:
        raw = as_object(raw)
        name = place.name(raw.get("instance_id"))
        history = check_list(first(raw, _LISTS) or [], "its history is")
        events = [event for item in history for event in as_list(item) or [item]]
        messages = [_message_of(as_object(event, "an event is")) for event in events]
        run = self._new_run(raw, name, outcome=_outcome(name, place.file))
        run.extra["n_left_out"] = {"put in": messages.count(None)}
        errors = [event["code"] for event in events if event.get("code")]
        if "maximum iteration" in str(raw.get("error")):
            errors = ["max_iterations"]
        place.stop_reason = run.stop_reason = next(reversed(errors), None)
        return Conversation(place, _joined(filter(None, messages))).finish(run)


def _message_of(event: Record) -> Message | None:
    """Return an event as a message of a chat; None of one that the program put in."""
    kind = _kind_of(event)
    arguments = as_fields(event, "args") or as_fields(event, "action")
    result = as_fields(event, "observation")
    about: Message = {**arguments, **result, **as_fields(event, "tool_call_metadata"), **event}
    key = first(about, _OF_EVENTS["call"])
    content = first(about, _OF_EVENTS["content"])
    if kind in ("SystemPromptEvent", "system"):
        return {"role": "system", "content": content}
    if kind in ("MessageEvent", "message"):
        return {"role": about.get("source"), "content": content, **as_fields(event, "llm_message")}
    if kind in _OF_EVENTS["program"] or not (key or arguments or "observation" in event):
        return None
    if arguments or "tool_call" in event:
        call = {
            "id": key or about.get("id"),
            "name": first(about, _OF_EVENTS["tool"]) or kind,
            "arguments": leftover(arguments, ("thought",)),
        }
        more = leftover({name: about.get(name) for name in _OF_EVENTS["turn"]})
        calls = [about.get("tool_call", call)]
        return {"role": "agent", "content": about.get("thought"), "tool_calls": calls, **more}
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
