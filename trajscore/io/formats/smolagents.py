"""Memory of smolagents: the steps of an agent, alone or in the result of a run."""

from collections.abc import Iterator
from typing import Any

from trajscore.io._conversation import Conversation
from trajscore.io._messages import Message
from trajscore.io._run import MalformedRunError, Run, as_object, leftover
from trajscore.io.fields import usual_names
from trajscore.io.files import Place
from trajscore.io.registry import Format, Head, register
from trajscore.io.vocabulary import Record, as_fields, as_list, first_object

_STEPS = ({"task", "task_images"}, {"step_number", "model_output"}, {"plan", "model_output_message"})
_RUN = frozenset({"id", "steps", "state", "token_usage", "timing"})
_AT_CAP = "AgentMaxStepsError"


@register
class Smolagents(Format):
    name = "smolagents"
    holds = "step_number"
    beside = ("model_output", "task", "task_images", "token_usage")
    _parts = "steps"

    def recognise(self, head: Head) -> bool:
        values = (head.fields, *head.fields.values())  # of a list its first item
        return any(map(_is_step, values)) or bool(_run_of(head.item or head.fields))

    def _is_part(self, value: Any) -> bool:
        return _is_step(value) and not usual_names("id", value)

    def run(self, raw: Any, place: Place, options: Any) -> Run:
        record = _run_of(raw)
        if not record:
            raise MalformedRunError('it has no list of steps; write {"steps": [...]}, a run a line')
        place.name(place.fields.id_of(record))
        task, trial = place.fields.values(record, ("task", "trial")).values()
        run = Run(str(place.run), task=task, trial=trial, extra=leftover(record, _RUN))
        steps: list[Any] = list(map(as_object, record["steps"]))
        run.stop_reason = record.get("state")
        if as_fields(steps[-1], "error").get("type") == _AT_CAP:
            run.stop_reason = "max_steps_error"
        given = [as_list(step.pop("model_input_messages", None)) for step in steps]  # repeats
        prompts = [turn for turns in given for turn in turns if turn.get("role") == "system"]
        messages = [message for step in steps for message in _messages_of(step)]
        return Conversation(place, [*prompts[:1], *messages]).finish(run)


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


def _messages_of(step: Record) -> Iterator[Message]:
    """Yield a step as the messages that smolagents makes of it for the model."""
    turn: Message = {"role": "assistant", "token_usage": step.get("token_usage")}
    if "plan" in step:
        yield turn | {"content": step["plan"]}
    elif "step_number" not in step:
        yield {"role": "user", "content": step.get("task")}
    else:
        answer = as_fields(step, "model_output_message")
        error = as_fields(step, "error")
        is_at_cap = error.get("type") == _AT_CAP  # after which an answer is asked for
        turn |= {"raw_data": answer.get("raw"), "error": error.get("message")}
        yield turn | {"content": step.get("action_output" if is_at_cap else "model_output")}
        if calls := step.get("tool_calls") or answer.get("tool_calls"):
            yield {"role": "tool-call", "tool_calls": calls}
        if step.get("observations") is not None:
            yield {"role": "tool-response", "content": step["observations"]}
        if error and not is_at_cap:
            yield {"role": "tool-response", "content": error.get("message"), "error": True}
