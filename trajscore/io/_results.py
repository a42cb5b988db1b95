"""Messages of results: predictions and calls of DSPy, and the tasks of a crew of CrewAI."""

from __future__ import annotations

from typing import Any

from trajscore.io.fields import USUAL_FIELDS
from trajscore.io.vocabulary import Record, as_fields, as_list, text_of

RESULTS = {"trajectory", "tasks_output", "messages", "outputs"}
"""Fields that hold the messages of a result."""

_CALLED = "tool_name_"
_OF_RUN = ("id", "outcome", "task", "trial", "stop_reason")


def result_messages(record: Record) -> list[Any]:
    """Return the messages of a result; none of anything else."""
    if "tasks_output" in record:
        tasks = map(as_fields, as_list(record["tasks_output"]))
        return [message for task in tasks for message in _of_task(task)]
    if {"messages", "outputs", "model_type"} <= record.keys():
        asked = as_list(record["messages"]) or said("user", [record.get("prompt")])
        if "[[ ## trajectory ## ]]" in str(asked):  # a call of ReAct is not a run
            return []
        return [*asked, *said("assistant", as_list(record["outputs"])[:1])]
    for fields in ({**record, **as_fields(record, "prediction")}, {"trajectory": record}):
        if any(name.startswith(_CALLED) for name in as_fields(fields, "trajectory")):
            return _of_prediction(fields)
    return []


def _of_task(task: Record) -> list[Any]:
    """Return the messages of a task and its answer, which not all agents put into them."""
    messages: list[Any] = []
    asked = said("user", [task.get("description")])
    for message in map(as_fields, as_list(task.get("messages")) or asked):
        role = message.get("role")
        spoken, observed, result = text_of(message.get("content")).partition("\nObservation:")
        thought, acted, called = spoken.partition("Action:")
        name, _, arguments = called.partition("\nAction Input:")
        if role == "assistant" and observed and acted:  # of a model that calls no functions
            call = {"name": name.strip(), "arguments": arguments.strip()}
            messages.append({"role": role, "content": thought.strip(), "tool_calls": [call]})
            messages.append({"role": "tool", "content": result.strip()})
        elif role != "user" or "tool" not in [last.get("role") for last in messages[-1:]]:
            messages.append(message)  # else what the program asks after a result
    last = "".join(text_of(message.get("content")) for message in messages[-1:])
    return messages + said("assistant", [task.get("raw")] * (str(task.get("raw")) not in last))


def _of_prediction(fields: dict[str, Any]) -> list[Any]:
    """Return the inputs before a trajectory, its calls and results, and the outputs after it."""
    names = list(fields)
    split = names.index("trajectory")
    trajectory = fields["trajectory"]
    of_run = {*USUAL_FIELDS.names(fields, _OF_RUN).values()}
    asked = [name for name in names[:split] if name not in of_run]
    # `Evaluate` keeps labels, too
    messages = said("user", [fields[k] for k in asked if not k.startswith("example_")])
    for name, value in trajectory.items():
        kind, _, number = name.rpartition("_")
        if kind == "tool_name":
            call = {"name": value, "arguments": trajectory.get(f"tool_args_{number}")}
            thought = trajectory.get(f"thought_{number}")
            messages.append({"role": "assistant", "content": thought, "tool_calls": [call]})
        if kind == "observation":
            failed = str(value).startswith("Execution error in ") or None
            messages.append({"role": "tool", "content": value, "error": failed})
    answer = [fields[name] for name in names[split + 1 :] if name != "reasoning"]
    return messages + said("assistant", answer)


def said(role: str, values: list[Any]) -> list[Any]:
    """Return the texts among some values as one message; none where they are blank."""
    text = "\n".join(value for value in values if isinstance(value, str))
    return [{"role": role, "content": text}] if text.strip() else []
