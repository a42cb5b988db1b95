"""smolagents: a callback after each step interrupts the agent."""

from collections.abc import Iterator
from typing import Any

from fake import QUESTION, find, guard
from smolagents import ActionStep, AgentError, TaskStep, ToolCallingAgent, tool
from smolagents.models import (
    ChatMessage,
    ChatMessageToolCall,
    ChatMessageToolCallFunction,
    MessageRole,
    Model,
)  # fmt: skip

watch = guard.follow("run 1")


def ask_guard(step: Any, agent: Any) -> None:
    """Give it to an agent as ``step_callbacks=[ask_guard]``."""
    steps = [*agent.memory.steps, *([] if step in agent.memory.steps else [step])]
    if watch.look(messages_of(steps)).stop:
        agent.interrupt()


def messages_of(steps: Any) -> Iterator[dict[str, Any]]:
    """Write the task, and each turn with what came of it, as messages."""
    for step in steps:
        if isinstance(step, TaskStep):
            yield {"role": "user", "content": step.task}
        elif isinstance(step, ActionStep):
            calls = [own.dict() for own in step.tool_calls or ()]
            yield {"role": "assistant", "content": step.model_output, "tool_calls": calls}
            result = step.error.message if step.error else step.observations
            yield from ({"role": "tool", "tool_call_id": call["id"], "content": result}
                        for call in calls[:1])  # fmt: skip


# ------------------------------------------------------------------ a model that calls in vain


class Fake(Model):
    """A model that calls the tool again and again."""

    calls = 0

    def generate(self, messages: Any, **options: Any) -> ChatMessage:
        """Call the tool."""
        self.calls += 1
        function = ChatMessageToolCallFunction(name="find", arguments={"order": 113})
        call = ChatMessageToolCall(id=f"c{self.calls}", type="function", function=function)
        return ChatMessage(MessageRole.ASSISTANT, content="I look.", tool_calls=[call])


model = Fake()
agent = ToolCallingAgent([tool(find)], model, step_callbacks=[ask_guard], max_steps=10)
try:
    agent.run(QUESTION)
except AgentError as error:
    look = guard.look(messages_of(agent.memory.steps))
    print(f"stopped at step {look.flagged_step}, after {model.calls} calls of the model:")
    print(error)
