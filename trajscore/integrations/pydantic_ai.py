"""A guard in Pydantic AI (extra ``pydantic-ai``)."""

from __future__ import annotations

from functools import cache, partial
from typing import Any

from trajscore.core.errors import optional
from trajscore.integrations._guard import Guard
from trajscore.integrations._watch import Look

_NEED = "GuardHooks needs Pydantic AI", "pydantic-ai"
_exceptions = optional("pydantic_ai.exceptions", *_NEED)
_messages = optional("pydantic_ai.messages", *_NEED)
_Hooks: Any = optional("pydantic_ai.capabilities", *_NEED).Hooks


class GuardHooks(_Hooks):
    """Ask a guard before each request; a run that is stopped ends normally, with `message`.

    Pass it as ``Agent(..., capabilities=[GuardHooks(guard)])``. With ``on_flag="ask"``, the tools
    of the next answer need approval, once a conversation: the run ends with
    ``DeferredToolRequests``, which have the look as `metadata`, and goes on from its messages and
    ``DeferredToolResults``, in this process or another; where a call was denied, it is stopped.

    Parameters
    ----------
    guard : Guard
        A fitted guard.
    message : str
        What the agent says last.
    **options : Any
        Those of `Guard.follow`: alpha, on_flag, window.

    Attributes
    ----------
    looks : dict of str to Look
        The last look at each run, by its ``run_id``.
    """

    def __init__(
        self, guard: Guard, message: str = "I hand this over to a person.", **options: Any
    ) -> None:
        super().__init__(before_model_request=self._ask, before_tool_execute=self._approve)
        self.message = message
        self.looks: dict[str, Look] = {}
        self._watch_of = cache(partial(guard.follow, **options))

    def _look(self, ctx: Any) -> Look:
        run = str(ctx.run_id)
        messages = _messages.ModelMessagesTypeAdapter.dump_python(ctx.messages, mode="json")
        denied = [
            part["tool_call_id"]
            for part in messages[-1]["parts"]
            if part.get("outcome") == "denied"
        ]
        self.looks[run] = look = self._watch_of(run).look(
            messages, approved=lambda call: call.id not in denied
        )
        return look

    async def _ask(self, ctx: Any, request_context: Any) -> Any:
        if self._look(ctx).stop:
            parts = [_messages.TextPart(self.message)]
            raise _exceptions.SkipModelRequest(_messages.ModelResponse(parts=parts))
        return request_context

    async def _approve(self, ctx: Any, *, args: Any, **_: Any) -> Any:
        look = self._look(ctx)
        if look.ask and not ctx.tool_call_approved:
            raise _exceptions.ApprovalRequired(look._asdict())
        return args
