"""AutoGen: a client that asks the guard before each call of the model."""

import asyncio
from collections.abc import Iterator
from typing import Any

from autogen_agentchat.agents import AssistantAgent
from autogen_core import FunctionCall
from autogen_core.models import ChatCompletionClient, CreateResult, ModelInfo, RequestUsage
from fake import QUESTION, find, guard


class Guarded:
    """Put it before the class of a client: ``class Own(Guarded, OpenAIChatCompletionClient)``."""

    async def create(self, messages: Any, **options: Any) -> CreateResult:
        """Ask the guard, then the model."""
        self.watch = getattr(self, "watch", None) or guard.follow("run 1")
        self.last = self.watch.look(messages_of(messages))
        if self.last.stop:
            return answer("I hand this over to a person.")
        return await super().create(messages, **options)


def messages_of(messages: Any) -> Iterator[dict[str, Any]]:
    """Write AutoGen's messages as those of a chat."""
    for message in messages:
        if message.type == "FunctionExecutionResultMessage":
            for one in message.content:
                yield {"role": "tool", "tool_call_id": one.call_id, "content": one.content}
        elif isinstance(message.content, str):
            yield {"role": message.type.removesuffix("Message"), "content": message.content}
        else:
            calls = [{"id": one.id, "name": one.name, "arguments": one.arguments}
                     for one in message.content]  # fmt: skip
            yield {"role": "assistant", "content": message.thought, "tool_calls": calls}


# ------------------------------------------------------------------ a model that calls in vain


def answer(content: Any) -> CreateResult:
    """Return an answer of a model."""
    reason = "stop" if isinstance(content, str) else "function_calls"
    usage = RequestUsage(prompt_tokens=0, completion_tokens=0)
    return CreateResult(finish_reason=reason, content=content, usage=usage, cached=False)


class Fake(ChatCompletionClient):
    """A model that calls the tool again and again."""

    model_info = ModelInfo(
        vision=False, function_calling=True, json_output=False, family="fake",
        structured_output=False,
    )  # fmt: skip
    capabilities = model_info
    calls = 0

    async def create(self, messages: Any, **options: Any) -> CreateResult:
        """Call the tool."""
        self.calls += 1
        return answer([FunctionCall(f"c{self.calls}", '{"order": 113}', "find")])

    def create_stream(self, *_: Any, **__: Any) -> Any:
        """Not needed here."""
        raise NotImplementedError

    async def close(self) -> None:
        """Do nothing."""

    def count_tokens(self, *_: Any, **__: Any) -> int:
        """Count nothing."""
        return 0

    def remaining_tokens(self, *_: Any, **__: Any) -> int:
        """Count nothing."""
        return 1

    def actual_usage(self) -> RequestUsage:
        """Count nothing."""
        return RequestUsage(prompt_tokens=0, completion_tokens=0)

    total_usage = actual_usage


class GuardedFake(Guarded, Fake):
    """The model, with the guard before it."""


client = GuardedFake()
agent = AssistantAgent("agent", client, tools=[find], max_tool_iterations=10)
result = asyncio.run(agent.run(task=QUESTION))
print(f"stopped at step {client.last.flagged_step}, after {client.calls} calls of the model:")
print(result.messages[-1].content)
