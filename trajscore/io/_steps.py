"""Steps of agents, which hold a turn or what came of it, as messages.

smolagents and LangChain keep both together; OpenHands has events, each result with its cause.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trajscore.io._message_parts import messages_of_parts
from trajscore.io._vocabulary import as_fields, as_list, first
from trajscore.io.text import text_of


def is_step(fields: Mapping[str, Any]) -> bool:
    """Tell a step of an agent, which holds a turn and what came of it, or the task."""
    is_task = isinstance(fields.get("task"), str) and fields.keys() == {"task", "task_images"}
    is_other = _is_vercels(fields) or _is_of_gemini_cli(fields) or is_event_of_openhands(fields)
    return is_task or "model_output_message" in fields or is_other


def _is_of_gemini_cli(fields: Mapping[str, Any]) -> bool:
    """Tell a turn of a session of Gemini CLI, with its calls and their results, or a notice."""
    kinds = ("gemini", "info", "warning", "error")
    is_turn = {"id", "timestamp", "content"} <= fields.keys() and "role" not in fields
    return is_turn and fields.get("type") in kinds


def _is_vercels(fields: Mapping[str, Any]) -> bool:
    """Tell a step of Vercel's AI SDK, whose content has the calls and their results."""
    return (
        "finishReason" in fields
        and "role" not in fields
        and isinstance(fields.get("content"), list)
    )


def turn_of_step(step: Mapping[str, Any]) -> list[Any]:
    """Return the task, or the turn of a step with the results of its calls."""
    if _is_vercels(step):
        turn = {"role": "assistant", "content": step["content"], "usage": step.get("usage")}
        return messages_of_parts(turn, step["content"])
    if _is_of_gemini_cli(step):
        calls = [as_fields(call) for call in as_list(step.get("toolCalls"))]
        results = [part for call in calls for part in as_list(call.get("result"))]
        words = {"type": "text", "text": text_of(step["content"])}
        role = "assistant" if step["type"] == "gemini" else step["type"]
        own = {k: v for k, v in step.items() if k not in ("type", "content", "toolCalls", "tokens")}
        turn = {**own, "role": role, "usage": step.get("tokens")}
        return messages_of_parts(turn, [words, *({"functionCall": c} for c in calls), *results])
    if is_event_of_openhands(step):
        return _of_event(step)
    if "model_output_message" not in step:
        return [{"role": "user", "content": step["task"]}]
    answer = as_fields(step["model_output_message"])
    calls = step.get("tool_calls") or answer.get("tool_calls") or []
    error = as_fields(step.get("error")).get("message")
    observed = [text for text in (step.get("observations"), error) if isinstance(text, str)]
    text = first(step, ("model_output", "plan")) or first(answer, ("content",))
    if text is None and step.get("is_final_answer") and observed:
        text = observed[0]
    if text is None and not answer:  # an answer that the agent was asked for at the last step
        text = step.get("action_output")
    turn = {"role": "assistant", "content": text_of(text), "tool_calls": calls}
    turn |= {"usage": step.get("token_usage")}
    results = results_of(as_list(calls), "\n".join(observed)) if observed else []
    return [turn, *(result | ({"error": True} if error else {}) for result in results)]


_SOURCES = ("agent", "user", "environment")
_SAYS = {  # actions of OpenHands that are words, and the argument that holds them
    "message": "content", "system": "content", "finish": "final_thought", "think": "thought",
}  # fmt: skip
_OF_PEOPLE = ("message", "system")  # which others than the agent do, too


def is_event_of_openhands(event: Any) -> bool:
    """Tell an action, or the observation that it caused."""
    fields = as_fields(event)
    is_action = isinstance(fields.get("action"), str) and {"args", "message"} & fields.keys()
    is_observation = isinstance(fields.get("observation"), str) and "content" in fields
    is_whose = "id" in fields and fields.get("source") in _SOURCES and "role" not in fields
    return is_whose and bool(is_action or is_observation)


def _of_event(event: Mapping[str, Any]) -> list[Any]:
    """Return the turn of an action, or the result that an observation is."""
    own = {name: event.get(name) for name in ("id", "timestamp", "message")}
    if "observation" in event:
        cause, text = event.get("cause"), text_of(event["content"])
        is_none = not text or event["observation"] == "agent_state_changed"
        result = {"role": "tool", "tool_call_id": cause, "content": text}
        return [] if is_none else [result | {"error": event["observation"] == "error"}]
    action, arguments = event["action"], dict(as_fields(event.get("args")))
    words = arguments.pop(_SAYS.get(action, "thought"), None) or arguments.get("thought")
    words = event.get("message") if words is None and action in _SAYS else words
    if event["source"] != "agent" or action in _OF_PEOPLE:
        role = "assistant" if event["source"] == "agent" else event["source"]
        role = "system" if action == "system" else role
        return [own | {"role": role, "content": words}] if action in _OF_PEOPLE else []
    call = {"id": event.get("id"), "name": action, "args": arguments}
    usage = as_fields(_answer_to(event)).get("usage")
    turn = {"role": "assistant", "content": text_of(words), "usage": usage}
    return [own | turn | ({} if action in _SAYS else {"tool_calls": [call]})]


def _answer_to(event: Any) -> Any:
    """Return the answer of the model in which an action was asked for."""
    return as_fields(as_fields(event).get("tool_call_metadata")).get("model_response")


def turns_of_events(events: list[Any]) -> list[Any]:
    """Return the messages of OpenHands' events; actions of one answer of the model are a turn."""
    pairs = (event if isinstance(event, list) else [event] for event in events)
    messages: list[Any] = []
    turns: dict[Any, dict[str, Any]] = {}  # by the id of the answer
    for event in (part for pair in pairs for part in pair):
        for message in turn_of_step(event) if is_event_of_openhands(event) else [event]:
            name = as_fields(_answer_to(event)).get("id")
            name = name if "action" in as_fields(event) else None
            turn = turns.setdefault(str(name), message) if name is not None else message
            if turn is message:
                messages.append(message)
            elif message.get("tool_calls"):
                turn["tool_calls"] = [*turn.get("tool_calls", ()), *message["tool_calls"]]
    return messages


def results_of(calls: list[Any], text: str) -> list[dict[str, Any]]:
    """Return what several calls gave together: a line each, or else the result of none of them."""
    names = [as_fields(call).get("id") for call in calls]
    start = "Observation:\n"
    lines = text.removeprefix(start).split("\n")
    if len(calls) > 1 and len(lines) == len(calls):
        return [
            {"role": "tool", "content": line, "tool_call_id": name}
            for line, name in zip(lines, names, strict=True)
        ]
    name = ", ".join(map(str, names)) if len(calls) > 1 else next(iter(names), None)
    return [{"role": "tool", "content": text, "tool_call_id": name}]


def turns_of_actions(steps: list[Any]) -> list[Any]:
    """Return the actions of LangChain's `AgentExecutor` and what came of them, as messages."""
    messages: list[Any] = []
    calls: list[Any] = []  # of the last turn
    last: Any = None
    for step in steps:
        action, observation = step if isinstance(step, list) and len(step) == 2 else (step, None)
        fields = as_fields(as_fields(action).get("kwargs")) or as_fields(action)
        log = as_list(fields.get("message_log")) or None
        if log is None or log != last:  # else it is one more call of the same message
            text = "\n".join(text_of(_content(part)) for part in log or [])
            calls = []
            turn = {"role": "assistant", "content": text or fields.get("log"), "tool_calls": calls}
            messages.append(turn if fields else action)
        name = fields.get("tool_call_id")
        calls.append({"name": fields.get("tool"), "args": fields.get("tool_input"), "id": name})
        messages.append({"role": "tool", "content": observation, "tool_call_id": name})
        last = log
    return messages


def _content(message: Any) -> Any:
    return as_fields(as_fields(message).get("kwargs") or message).get("content")
