"""Trajectory files of tau-bench, which hold no stop reason: a run at the cap was cut off."""

from types import MappingProxyType
from typing import Any

from trajscore.core.outcomes import SUCCESS
from trajscore.core.values import is_count
from trajscore.io._run import Run, Step, as_object
from trajscore.io.conversation import Conversation
from trajscore.io.files import Place
from trajscore.io.registry import Format, Head, register
from trajscore.io.vocabulary import Record

# How a run ends by itself: the simulated user says so, or the agent hands over.
_USER_STOP = "###STOP###"
_LAST_TOOL = "transfer_to_human_agents"


@register
class TauBench(Format):
    name = "tau_bench"
    holds = "traj"
    options = MappingProxyType({"max_turns": 30})

    def recognise(self, head: Head) -> bool:
        return self._is_run(head.fields)

    def _is_run(self, fields: Record) -> bool:
        return "traj" in fields and not isinstance(fields["traj"], (str, int, float))

    def run(self, raw: Any, place: Place) -> Run:
        raw = as_object(raw)
        task = raw.get("task_id")
        name = place.name(None if task is None else f"{task}-{raw.get('trial', 0)}")
        messages = raw.get("traj")
        if messages is None:
            raise self.malformed("it has no 'traj'")
        run = self._new_run(raw, name)
        talk = Conversation(place, messages)
        if run.outcome != SUCCESS and _at_cap(talk.steps, place.options["max_turns"]):
            run.stop_reason = "max_steps"
        return talk.finish(run)


def _at_cap(steps: list[Step], max_turns: int | None) -> bool:
    if not (max_turns is None or is_count(max_turns)):
        raise ValueError(
            f"max_turns must be a whole number, at least 1, or None, got {max_turns!r}"
        )
    if max_turns is None or sum(step.actor == "agent" for step in steps) < max_turns:
        return False
    last = steps[-1]
    if last.actor == "user":
        return _USER_STOP not in last.text
    return not any(call.name == _LAST_TOOL for call in last.tool_calls)
