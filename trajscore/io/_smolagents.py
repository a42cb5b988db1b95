"""Messages of smolagents: the steps of its memory, and calls and results as messages in words."""

from collections.abc import Iterable
from typing import Any

from trajscore.io._results import printed, spoken_calls
from trajscore.io.vocabulary import PARTS, Record, Values, as_fields, as_list, first, text_of

_STEPS = [{*names} for names in PARTS["memory"]]  # fields that each kind has
STEP_FIELDS = PARTS["of_memory"]
"""One of which each kind has, and messages of others have not."""
REPEATED = "model_input_messages"
"""The field of a step that repeats the steps before it, below the model's instructions."""
OF_WORDS = ("tool-call", "tool-response")
"""Roles of calls and results in words."""
_AT_CAP = "max_steps_error"  # after which the model is asked for an answer


def is_step(value: Any) -> bool:
    """Tell a step of a memory."""
    fields = as_fields(value).keys()
    return not fields.isdisjoint(STEP_FIELDS) and any(names <= fields for names in _STEPS)


def stop_of(step: Any) -> str | None:
    """Return how a run ended by its last step, as a result of smolagents says it."""
    if as_fields(step, "error").get("type") == "AgentMaxStepsError":
        return _AT_CAP
    return "success" if as_fields(step).get("is_final_answer") is True else None


def messages_of_step(step: Record) -> Values:
    """Return a task, or what the model was told, what it said, and the results of its calls."""
    if "task_images" in step:
        return [{"role": "user", "content": step["task"]}]
    before = map(as_fields, as_list(step.get(REPEATED)))
    prompts = [message for message in before if message.get("role") == "system"]
    answer = as_fields(step, "model_output_message")
    error = as_fields(step, "error").get("message")
    at_cap = stop_of(step) == _AT_CAP
    turn = {
        "role": "assistant",
        "content": first(step, ("plan", "action_output" if at_cap else "model_output")),
        "tool_calls": step.get("tool_calls") or as_list(answer.get("tool_calls")),
        "token_usage": step.get("token_usage"),
        "raw_data": answer.get("raw"),
        "error": error,
    }
    texts = [text for text in (step.get("observations"), error) if text is not None]
    if at_cap or not texts:
        return [*prompts, turn]
    return [*prompts, turn, *_results("\n".join(texts), turn["tool_calls"], error)]


def with_calls(messages: Iterable[Any]) -> list[tuple[int, Any]]:
    """Return messages with their indices; calls in words join the turn before them."""
    turns: list[tuple[int, Any]] = []
    calls: Values = []
    is_spoken = False  # whether what a user says next is the program's
    for index, message in enumerate(messages):
        role = as_fields(message).get("role")
        if role == "tool-response":
            text = text_of(message.get("content")).removeprefix("Observation:\n")
            if text.startswith("Error:\n"):  # of a turn that is not there
                calls = []
            failed = text.startswith(("Error:\n", "Call id: "))
            turns += [(index, result) for result in _results(text, calls, failed)]
        elif role == "tool-call":
            text = text_of(message.get("content"))  # a line of words, and what Python prints
            calls = as_list(printed(text.partition("\n")[2])) or [{"name": "", "arguments": text}]
            if not turns or as_fields(turns[-1][1]).get("role") != "assistant":
                turns.append((index, {"role": "assistant", "content": ""}))
            start, words = turns[-1]
            turns[-1] = start, {**words, "tool_calls": calls, "printed": message.get("content")}
        elif role != "user" or not is_spoken:
            calls = []
            spoken = spoken_calls(message)
            turns += [(index, turn) for turn in spoken]
            is_spoken = len(spoken) > 1 and spoken[-1]["role"] == "tool"
    return turns


def _results(text: str, calls: Values, failed: Any) -> Values:
    """Return the result of each call, a line each, or else one of all."""
    ids = [str(first(as_fields(call), PARTS["call_id"]) or "") for call in calls]
    parts = text.split("\n")
    if len(parts) != len(ids):
        parts = [text]
        ids = [", ".join(ids)]
    return [
        {"role": "tool", "content": part, "tool_call_id": name, "error": failed or None}
        for name, part in zip(ids, parts, strict=True)
    ]
