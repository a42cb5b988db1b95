"""Memory of smolagents: the steps of an agent, alone, a line each, or in the result of a run."""

from collections.abc import Iterator
from typing import Any

from trajscore.io._conversation import Conversation
from trajscore.io._messages import Message
from trajscore.io._run import MalformedRunError, Run, as_object, leftover
from trajscore.io.files import LogFile, Place, stem
from trajscore.io.registry import Format, Head, RawRuns, register
from trajscore.io.vocabulary import Record, as_fields, as_list, first_object

_STEPS = ({"task", "task_images"}, {"step_number", "model_output"}, {"plan", "model_output_message"})
_RUN = frozenset({"id", "steps", "state", "token_usage", "timing"})
_AT_CAP = "AgentMaxStepsError"


@register
class Smolagents(Format):
    name = "smolagents"
    holds = "step_number"
    beside = ("model_output", "task", "task_images", "token_usage")

    def recognise(self, head: Head) -> bool:
        values = (head.fields, *head.fields.values())  # of a list only the first item is known
        return any(map(_is_step, values)) or any(map(_run_of, (head.item, head.fields)))

    def runs(self, file: LogFile, options: Any) -> RawRuns:
        whole: dict[str, Any] = {}
        steps: dict[str, list[Record]] = {}  # of runs, one an item
        for key, index, item in file.items():
            if index is None:
                whole[str(key)] = item
            elif _is_step(item):
                steps.setdefault(file.fields.id_of(item) or stem(file.path), []).append(item)
            else:
                yield file.place(index), item
        for index, (name, of_run) in enumerate(steps.items()):
            shared = {k: v for k, v in of_run[0].items() if all(s.get(k) == v for s in of_run)}
            yield file.place(index), {**shared, "id": name, "steps": of_run}
        if whole:
            yield file.place(0), {"id": stem(file.path), **whole}

    def run(self, raw: Any, place: Place, options: Any) -> Run:
        record = _run_of(raw)
        if not record:
            raise MalformedRunError("it has no steps of smolagents")
        place.name(place.fields.id_of(record))
        steps = list(map(as_object, record["steps"]))
        prompts = [_take_prompts(step) for step in steps]
        messages = [message for step in steps for message in _messages_of(step)]
        task, trial = place.fields.values(record, ("task", "trial")).values()
        run = Run(str(place.run), task=task, trial=trial, stop_reason=record.get("state"))
        if as_fields(steps[-1], "error").get("type") == _AT_CAP:
            run.stop_reason = "max_steps_error"
        elif steps[-1].get("is_final_answer"):
            run.stop_reason = "success"
        run.extra = leftover(record, _RUN)
        return Conversation(place, [*next(filter(None, prompts), ()), *messages]).finish(run)


def _is_step(value: Any) -> bool:
    return any(names <= as_fields(value).keys() for names in _STEPS)


def _run_of(value: Any) -> Record:
    """Return the fields of a run, its steps under that name; none where there are no steps."""
    if _is_step(first_object(value)):
        return {"steps": value}
    for name, inner in as_fields(value).items():
        if run := _run_of(inner):
            return {**run, **{key: other for key, other in value.items() if key != name}}
    return {}


def _take_prompts(step: Record) -> list[Any]:
    """Take what a model was given out of a step, which repeats the others, but for its prompt."""
    given = as_list(dict.pop(step, "model_input_messages", None))
    return [message for message in given if as_fields(message).get("role") == "system"]


def _messages_of(step: Record) -> Iterator[Message]:
    """Yield a step as the messages that smolagents makes of it for the model."""
    answer = as_fields(step, "model_output_message")
    turn: Message = {"role": "assistant", "token_usage": step.get("token_usage")}
    if "plan" in step:
        yield turn | {"content": step["plan"]}
    elif "task_images" in step:
        yield {"role": "user", "content": step.get("task")}
    elif "step_number" in step:
        error = as_fields(step, "error")
        said = step.get("model_output")
        if raw := as_fields(answer, "raw"):  # with its log-probabilities
            turn["raw_data"] = raw
        if error.get("type") == _AT_CAP:  # after which an answer is asked for
            said = step.get("action_output")
            turn["error"] = error.get("message")
            error = {}
        yield turn | {"content": said}
        calls = step.get("tool_calls") or answer.get("tool_calls")
        if calls:
            yield {"role": "tool-call", "tool_calls": calls}
        if step.get("observations") is not None:
            yield {"role": "tool-response", "content": step["observations"]}
        if error:
            yield {"role": "tool-response", "content": error.get("message"), "error": True}
