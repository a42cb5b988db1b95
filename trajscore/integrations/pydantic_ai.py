"""A guard in Pydantic AI (extra ``pydantic-ai``)."""

from __future__ import annotations

from typing import Any

from trajscore.core.optional import optional
from trajscore.integrations._guard import Guard, Look, Watch

_NEED = "guard_hooks needs Pydantic AI", "pydantic-ai"


def guard_hooks(
    guard: Guard,
    message: str = "I hand this over to a person.",
    looks: dict[str, Look] | None = None,
) -> Any:
    """Return a capability of an agent that asks a guard before each request.

    Pass it as ``Agent(..., capabilities=[guard_hooks(guard)])``. A run that is stopped ends
    normally, with `message` as its output.

    Parameters
    ----------
    guard : Guard
        A fitted guard.
    message : str
        What the agent says last.
    looks : dict, optional
        Where the last look at each run is put, by its ``run_id``.

    Returns
    -------
    pydantic_ai.capabilities.Hooks
        The capability.
    """
    hooks = optional("pydantic_ai.capabilities", *_NEED).Hooks()
    exceptions = optional("pydantic_ai.exceptions", *_NEED)
    messages = optional("pydantic_ai.messages", *_NEED)
    watches: dict[str, Watch] = {}

    @hooks.on.before_model_request
    async def ask(ctx: Any, request_context: Any) -> Any:
        run = str(ctx.run_id)
        watch = watches.setdefault(run, guard.follow(run))
        adapter = messages.ModelMessagesTypeAdapter
        look = watch.look(adapter.dump_python(ctx.messages, mode="json"))
        if looks is not None:
            looks[run] = look
        if look.stop:
            answer = messages.ModelResponse(parts=[messages.TextPart(message)])
            raise exceptions.SkipModelRequest(answer)
        return request_context

    return hooks
