"""DSPy: a ReAct that asks the guard before each call of the model."""

import json
from typing import Any

import dspy
from dspy.utils import DummyLM
from fake import QUESTION, find, guard

from trajscore.integrations import StopRun

watch = guard.follow("run 1")


class GuardedReAct(dspy.ReAct):
    """Take it where you took ``dspy.ReAct``; a stop is raised, as its callbacks cannot stop."""

    def _call_with_potential_trajectory_truncation(
        self, module: Any, trajectory: dict[str, Any], **inputs: Any
    ) -> Any:
        look = watch.look(messages_of(trajectory, inputs))
        if look.stop:
            raise StopRun(look)
        return super()._call_with_potential_trajectory_truncation(module, trajectory, **inputs)


def messages_of(trajectory: dict[str, Any], inputs: dict[str, Any]) -> list[dict[str, Any]]:
    """Write the inputs and the steps so far as messages."""
    messages: list[dict[str, Any]] = [{"role": "user", "content": json.dumps(inputs)}]
    for k in range(len(trajectory) // 4):
        thought, name, arguments, result = (
            trajectory[f"{part}_{k}"]
            for part in ("thought", "tool_name", "tool_args", "observation")
        )
        call = {"id": f"c{k}", "function": {"name": name, "arguments": arguments}}
        messages.append({"role": "assistant", "content": thought, "tool_calls": [call]})
        messages.append({"role": "tool", "tool_call_id": f"c{k}", "content": str(result)})
    return messages


# ------------------------------------------------------------------ a model that calls in vain

step = {"next_thought": "I look.", "next_tool_name": "find", "next_tool_args": '{"order": 113}'}
model = DummyLM([step] * 10)
dspy.configure(lm=model)
try:
    GuardedReAct("question -> answer", tools=[find], max_iters=10)(question=QUESTION)
except StopRun as stop:
    print(f"stopped at step {stop.look.flagged_step}, after {len(model.history)} calls")
