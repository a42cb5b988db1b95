"""A guard in Pydantic AI (extra ``pydantic-ai``)."""

from __future__ import annotations

from typing import Any

from trajscore.core.errors import optional
from trajscore.integrations._guard import Guard, Look, Watch

_NEED = "GuardHooks needs Pydantic AI", "pydantic-ai"
_exceptions = optional("pydantic_ai.exceptions", *_NEED)
_messages = optional("pydantic_ai.messages", *_NEED)
_Hooks: Any = optional("pydantic_ai.capabilities", *_NEED).Hooks


class GuardHooks(_Hooks):
    """Ask a guard before each request; a run that is stopped ends normally, with `message`.

    Pass it as ``Agent(..., capabilities=[GuardHooks(guard)])``.

    Parameters
    ----------
    guard : Guard
        A fitted guard.
    message : str
        What the agent says last.

    Attributes
    ----------
    looks : dict of str to Look
        The last look at each run, by its ``run_id``.
    """

    def __init__(self, guard: Guard, message: str = "I hand this over to a person.") -> None:
        super().__init__(before_model_request=self._ask)
        self.guard, self.message = guard, message
        self.looks: dict[str, Look] = {}
        self._watches: dict[str, Watch] = {}

    async def _ask(self, ctx: Any, request_context: Any) -> Any:
        run = str(ctx.run_id)
        watch = self._watches.setdefault(run, self.guard.follow(run))
        messages = _messages.ModelMessagesTypeAdapter.dump_python(ctx.messages, mode="json")
        self.looks[run] = look = watch.look(messages)
        if look.stop:
            parts = [_messages.TextPart(self.message)]
            raise _exceptions.SkipModelRequest(_messages.ModelResponse(parts=parts))
        return request_context
