"""smolagents: a callback after each step interrupts the agent."""

from typing import Any

from fake import QUESTION, find, guard
from smolagents import AgentError, ToolCallingAgent, tool
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
    if watch.look([own.dict() for own in steps]).stop:
        agent.interrupt()


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
    look = guard.look(agent.memory.get_full_steps())
    print(f"stopped at step {look.flagged_step}, after {model.calls} calls of the model:")
    print(error)
