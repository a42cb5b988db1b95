"""Messages of results: predictions of DSPy, tasks of CrewAI, and calls written as text."""

from ast import literal_eval
from typing import Any

from trajscore.core.outcomes import words_of
from trajscore.io._run import leftover
from trajscore.io.fields import USUAL_FIELDS
from trajscore.io.vocabulary import (
    WORDS,
    Record,
    Values,
    as_fields,
    as_list,
    first,
    first_object,
    parsed,
    text_of,
)

REACT_CALL = "[[ ## trajectory ## ]]"
"""What is in the prompt of a call of DSPy's ReAct, which is not a run."""

_WORDS = WORDS["results"]
_STEP = _WORDS["step"]
_ASKED = _WORDS["asked"]
_LABELS = {*WORDS["names"]["of_examples"]}


def result_messages(record: Record) -> tuple[Values, set[str]]:
    """Return the messages of a result and the names of their fields; none of anything else."""
    if "raw" in record and ("description" in record or "agent_role" in record):
        return _of_task(record), {"messages"}
    names = [k for k, v in record.items() if first_object(v).keys() >= {"description", "raw"}]
    for name in names if len(names) == 1 else {"tasks_output"} & record.keys():
        tasks = as_list(record[name])
        return [message for task in tasks for message in _of_task(as_fields(task))], {name}
    if {"messages", "outputs", "model_type"} <= record.keys():
        asked = as_list(record["messages"]) or text_message("user", [record.get("prompt")])
        output = next(iter(as_list(record["outputs"])), None)
        answers = [{"role": "assistant", **as_fields(output)}]
        if isinstance(output, str):
            answers = text_message("assistant", [output])
        return [*asked, *answers], {"messages", "outputs"}
    return _of_prediction(record)


def lacks_answer(messages: Values) -> bool:
    """Tell the messages of a task of CrewAI without its answer, which some agents leave out."""
    last = first_object(messages[-1:])
    return last.get("role") == "user" and text_of(last.get("content")).startswith(
        tuple(_WORDS["prompts"])
    )


def _of_task(task: Record) -> Values:
    """Return the messages of a task and its answer, which not all agents put into them."""
    messages = as_list(task.get("messages")) or text_message("user", [task.get("description")])
    last = text_of(first_object(messages[-1:]).get("content"))
    return messages + text_message(
        "assistant", [task.get("raw")] * (str(task.get("raw")) not in last)
    )


def _of_prediction(record: Record) -> tuple[Values, set[str]]:
    """Return the inputs of a module of DSPy, its calls and results, and its outputs."""
    if "tool_name_0" in record:
        spread = {k: v for k, v in record.items() if k.rpartition("_")[0] in _STEP}
        record = {**leftover(record, spread), "trajectory": spread}
    owners = {"": record, **{k: v for k, v in record.items() if isinstance(v, dict)}}
    places = [(k, name) for k, owner in owners.items() for name in owner if _steps_in(owner[name])]
    if len(places) != 1:
        return [], set()
    ((owner, place),) = places
    fields: dict[str, Any] = {}
    for name, value in record.items():
        fields |= owners[name] if name in owners and name in (owner, *_ASKED) else {name: value}
    after = [list(k)[list(k).index(place) :] for k in (fields, owners[owner])]
    answered = {*_WORDS["answers"], *after[0], *after[1]}
    beside = {*USUAL_FIELDS.names(fields, _WORDS["of_run"]).values(), "reasoning", place}
    # `Evaluate` keeps labels, too
    asked = [k for k in fields if not (k in answered | beside or words_of(k) & _LABELS)]
    messages = text_message("user", list(map(fields.get, asked)))
    for step in _steps_in(fields[place]):
        messages += _called(*map(step.get, _STEP))
    answers = [fields[k] for k in fields if k in answered - beside]
    return messages + text_message("assistant", answers), {place, owner, *_ASKED}


def _steps_in(value: Any) -> list[Record]:
    """Return the steps of a trajectory, a list or an object with numbered fields; else none."""
    if first_object(value).keys() >= {"tool_name", "observation"}:
        return list(map(as_fields, value))
    if isinstance(value, str) and "tool_name_0" in value:  # of a CSV
        value = printed(value)
    steps: dict[str, Any] = {}
    for name, inner in as_fields(value).items():
        part, _, number = name.rpartition("_")
        if part not in _STEP:
            return []
        steps.setdefault(number, {})[part] = inner
    return list(steps.values())


def _called(thought: Any, name: Any, arguments: Any, result: Any) -> Values:
    """Return a turn that calls a tool, and the result."""
    call = {"name": name, "arguments": arguments}
    failed = str(result).startswith(tuple(_WORDS["failed"])) or None
    turn = {"role": "assistant", "content": thought, "tool_calls": [call]}
    return [turn, {"role": "tool", "content": result, "error": failed}]


def text_message(role: str, values: Values) -> Values:
    """Return the texts among some values as one message; none where they are blank."""
    text = "\n".join(value for value in values if isinstance(value, str))
    return [{"role": role, "content": text}] if text.strip() else []


def printed(text: str) -> Any:
    """Return what is written as JSON, or as Python prints it; other text as it is."""
    try:
        return literal_eval(text) if parsed(text) is text else parsed(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):  # of texts that nest deeply
        return text


def has_calls(text: str) -> bool:
    """Tell a text in which calls and their results are written, as ReAct has them."""
    return "\nObservation:" in text and "\nAction Input:" in text


def spoken_calls(message: Any) -> Values:
    """Return a message; of a text with calls and results, as ReAct has them, a turn a call."""
    fields = as_fields(message)
    content = first(fields, ("content", "blocks"))
    spoken = text_of(content) if fields.get("role") == "assistant" else ""
    if not has_calls(spoken):
        return [message]
    turns: Values = []
    for template in _WORDS["templates"]:
        spoken = spoken.partition(template)[0]
    spoken, *results = spoken.split("\nObservation:")
    for later in results:
        thought, _, called = spoken.partition("Action:")
        name, _, arguments = called.partition("\nAction Input:")
        result, _, spoken = later.partition("\nThought:")
        turns += _called(thought.strip(), name.strip(), printed(arguments.strip()), result.strip())
    return turns + text_message("assistant", [spoken.strip()])
