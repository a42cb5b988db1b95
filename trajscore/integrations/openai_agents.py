"""A guard in OpenAI's Agents SDK (extra ``openai-agents``)."""

from __future__ import annotations

from typing import Any

from trajscore.core.errors import optional
from trajscore.integrations._guard import Guard, Look, StopRun

_agents = optional("agents", "GuardHooks needs OpenAI's Agents SDK", "openai-agents")
_Exception: Any = _agents.AgentsException
_Hooks: Any = _agents.RunHooks


class StoppedByGuard(StopRun, _Exception):
    """Raised out of ``Runner.run`` where the guard says stop; `look` says why."""


class GuardHooks(_Hooks):
    """Ask a guard before each call of the model; give one to each ``Runner.run(hooks=)``.

    Parameters
    ----------
    guard : Guard
        A fitted guard.
    run : str
        Name of the run.

    Attributes
    ----------
    last : Look or None
        The last look.
    """

    def __init__(self, guard: Guard, run: str = "run") -> None:
        self._watch = guard.follow(run)
        self.last: Look | None = None

    async def on_llm_start(
        self, context: Any, agent: Any, system_prompt: str | None, input_items: list[Any]
    ) -> None:
        """Look at the items so far, and stop the run by an exception."""
        self.last = self._watch.look(input_items)
        if self.last.stop:
            raise StoppedByGuard(self.last)
