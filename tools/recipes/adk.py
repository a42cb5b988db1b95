"""Google's ADK: a callback before each call of the model answers in its place."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from fake import QUESTION, find, guard
from google.adk.agents import LlmAgent
from google.adk.models import BaseLlm, LlmRequest, LlmResponse
from google.adk.runners import InMemoryRunner
from google.genai import types

watch = guard.follow("run 1")
looks = []


def ask_guard(callback_context: Any, llm_request: LlmRequest) -> LlmResponse | None:
    """Give it to an agent as ``before_model_callback=ask_guard``."""
    looks.append(watch.look(llm_request.contents))
    if not looks[-1].stop:
        return None
    last = types.Part(text="I hand this over to a person.")
    return LlmResponse(content=types.Content(role="model", parts=[last]))


# ------------------------------------------------------------------ a model that calls in vain

calls = []


class Fake(BaseLlm):
    """A model that calls the tool again and again."""

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncIterator[LlmResponse]:
        """Call the tool."""
        call = types.Part.from_function_call(name="find", args={"order": 113})
        calls.append(call)
        yield LlmResponse(content=types.Content(role="model", parts=[call]))


async def main() -> None:
    """Run the agent."""
    agent = LlmAgent(
        name="agent", model=Fake(model="fake"), tools=[find], before_model_callback=ask_guard
    )
    runner = InMemoryRunner(agent=agent, app_name="app")
    session = await runner.session_service.create_session(app_name="app", user_id="me")
    question = types.Content(role="user", parts=[types.Part(text=QUESTION)])
    async for event in runner.run_async(user_id="me", session_id=session.id, new_message=question):
        last = event
    print(f"stopped at step {looks[-1].flagged_step}, after {len(calls)} calls of the model:")
    print(last.content.parts[0].text)


asyncio.run(main())
