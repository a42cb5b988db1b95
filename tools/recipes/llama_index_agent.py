"""LlamaIndex: an agent that asks the guard before each call of the model."""

import asyncio
from typing import Any

from fake import QUESTION, find, guard
from llama_index.core.agent.workflow import AgentOutput, FunctionAgent
from llama_index.core.base.llms.types import ChatMessage, ToolCallBlock
from llama_index.core.llms.mock import MockFunctionCallingLLM
from llama_index.core.tools import FunctionTool

watch = guard.follow("run 1")
looks = []


class GuardedAgent(FunctionAgent):
    """Take it where you took a FunctionAgent."""

    async def take_step(self, ctx: Any, llm_input: Any, tools: Any, memory: Any) -> AgentOutput:
        """Ask the guard, then the model."""
        since = await ctx.store.get(self.scratchpad_key, default=[])  # calls and their results
        looks.append(watch.look(map(message_of, [*llm_input, *since])))
        if looks[-1].stop:
            last = ChatMessage("I hand this over to a person.", role="assistant")
            return AgentOutput(response=last, current_agent_name=self.name)
        return await super().take_step(ctx, llm_input, tools, memory)


def message_of(message: ChatMessage) -> dict[str, Any]:
    """Write a message of LlamaIndex as one of a chat."""
    calls = [
        {"id": block.tool_call_id, "name": block.tool_name, "arguments": block.tool_kwargs}
        for block in message.blocks
        if isinstance(block, ToolCallBlock)
    ]
    key = message.additional_kwargs.get("tool_call_id")
    said = {"role": message.role.value, "content": message.content, "tool_call_id": key}
    return said | ({"tool_calls": calls} if calls else {})


# ------------------------------------------------------------------ a model that calls in vain

calls = []


def answer(messages: Any, **_: Any) -> ChatMessage:
    """Call the tool again and again."""
    name = f"c{len(calls)}"
    calls.append(ToolCallBlock(tool_call_id=name, tool_name="find", tool_kwargs={"order": 113}))
    return ChatMessage(role="assistant", blocks=calls[-1:])


async def main() -> None:
    """Run the agent."""
    model = MockFunctionCallingLLM(response_generator=answer)
    tools = [FunctionTool.from_defaults(find)]
    agent = GuardedAgent(name="agent", llm=model, tools=tools, streaming=False)
    result = await agent.run(QUESTION)
    print(f"stopped at step {looks[-1].flagged_step}, after {len(calls)} calls of the model:")
    print(result)


asyncio.run(main())
