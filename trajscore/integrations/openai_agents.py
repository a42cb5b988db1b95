"""A guard in OpenAI's Agents SDK (extra ``openai-agents``)."""

from __future__ import annotations

import warnings
from typing import Any

from trajscore.core.errors import optional
from trajscore.integrations._guard import Guard
from trajscore.integrations._watch import Look, StopRun

_agents = optional("agents", "GuardHooks needs OpenAI's Agents SDK", "openai-agents")
_Exception: Any = _agents.AgentsException
_Hooks: Any = _agents.RunHooks


class StoppedByGuard(StopRun, _Exception):
    """Raised out of ``Runner.run`` where the guard says stop; `look` says why."""


class GuardHooks(_Hooks):
    """Ask a guard before each call of the model; give one to each ``Runner.run(hooks=)``.

    With ``on_flag="ask"``, the tools of the next answer need approval, once a run: give each tool
    ``needs_approval=hooks.needs_approval``. The run is interrupted, and goes on from its
    ``RunState``, in this process or another; where a call was rejected, it is stopped.

    Parameters
    ----------
    guard : Guard
        A fitted guard.
    run : str
        Name of the run.
    **options : Any
        Those of `Guard.follow`: alpha, on_flag, window.

    Attributes
    ----------
    last : Look or None
        The last look.
    """

    def __init__(self, guard: Guard, run: str = "run", **options: Any) -> None:
        self._watch = guard.follow(run, **options)
        self.last: Look | None = None

    async def on_llm_start(
        self, context: Any, agent: Any, system_prompt: str | None, input_items: list[Any]
    ) -> None:
        """Look at the items so far, and stop the run by an exception."""
        before = self.last
        self.last = self._watch.look(
            input_items,
            approved=lambda call: context.is_tool_approved(call.name, call.id),
        )
        if self.last.stop:
            raise StoppedByGuard(self.last)
        if self.last.ask and before is not None and before.ask:
            warnings.warn(
                "the agent has gone on without an answer; give each of its tools "
                "needs_approval=hooks.needs_approval",
                stacklevel=2,
            )

    async def needs_approval(self, context: Any, arguments: Any, call_id: str) -> bool:
        """Whether a person is to be asked; without a look, the run was killed while waiting."""
        return self.last is None or self.last.ask
