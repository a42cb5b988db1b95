"""A guard in agents of LangChain and LangGraph (extra ``langchain``)."""

from __future__ import annotations

from typing import Any

from trajscore.core.errors import optional
from trajscore.core.type_aliases import ByName
from trajscore.integrations._guard import Guard, Look, Watch

_NEED = "GuardMiddleware needs LangChain", "langchain"
_middleware = optional("langchain.agents.middleware", *_NEED)
_messages = optional("langchain_core.messages", *_NEED)
_config = optional("langgraph.config", *_NEED)
_Middleware: Any = _middleware.AgentMiddleware


class GuardMiddleware(_Middleware):
    """Ask a guard before each call of the model, and end the run where it says stop.

    Parameters
    ----------
    guard : Guard
        A fitted guard.
    message : str
        What the agent says last.

    Attributes
    ----------
    looks : dict of str to Look
        The last look at each run, by the thread, or by its first message where there is none.
    """

    def __init__(self, guard: Guard, message: str = "I hand this over to a person.") -> None:
        super().__init__()
        self.guard, self.message = guard, message
        self.looks: dict[str, Look] = {}
        self._watches: dict[str, Watch] = {}

    @_middleware.hook_config(can_jump_to=["end"])
    def before_model(self, state: Any, runtime: Any) -> ByName | None:
        """Look at the messages so far."""
        thread = _config.get_config().get("configurable", {}).get("thread_id")
        run = str(thread or state["messages"][0].id)
        watch = self._watches.setdefault(run, self.guard.follow(run))
        self.looks[run] = look = watch.look(state["messages"])
        if not look.stop:
            return None
        return {"jump_to": "end", "messages": [_messages.AIMessage(self.message)]}

    @_middleware.hook_config(can_jump_to=["end"])
    async def abefore_model(self, state: Any, runtime: Any) -> ByName | None:
        """Look at the messages so far."""
        return self.before_model(state, runtime)
