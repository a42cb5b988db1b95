"""A guard in agents of LangChain and LangGraph (extra ``langchain``)."""

from __future__ import annotations

from functools import cache, partial
from typing import Any

from trajscore.core.errors import optional
from trajscore.core.values import ByName
from trajscore.integrations._guard import Guard
from trajscore.integrations._watch import Look

_NEED = "GuardMiddleware needs LangChain", "langchain"
_middleware = optional("langchain.agents.middleware", *_NEED)
_messages = optional("langchain_core.messages", *_NEED)
_config = optional("langgraph.config", *_NEED)
_graph = optional("langgraph.types", *_NEED)
_Middleware: Any = _middleware.AgentMiddleware
_State: Any = _middleware.AgentState


class GuardState(_State):
    """The answer of a person, kept by the checkpointer."""

    guard_answer: str


class GuardMiddleware(_Middleware):
    """Ask a guard before each call of the model, and end the run where it says stop.

    With ``on_flag="ask"``, the graph is interrupted with the look as a dict, once a run, and goes
    on by ``Command(resume="go on")``, or ends by ``Command(resume="stop")``. It needs a
    checkpointer, from which a run that was killed meanwhile goes on.

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
        The last look at each run, by the thread, or by its first message where there is none.
    """

    state_schema = GuardState

    def __init__(
        self, guard: Guard, message: str = "I hand this over to a person.", **options: Any
    ) -> None:
        super().__init__()
        self.message = message
        self.looks: dict[str, Look] = {}
        self._watch_of = cache(partial(guard.follow, **options))

    @_middleware.hook_config(can_jump_to=["end"])
    def before_model(self, state: Any, runtime: Any) -> ByName | None:
        """Look at the messages so far."""
        thread = _config.get_config().get("configurable", {}).get("thread_id")
        run = str(thread or state["messages"][0].id)
        watch = self._watch_of(run)
        watch.last_answer = state.get("guard_answer", "")
        look = watch.look(state["messages"])
        if look.ask:
            watch.answer(_graph.interrupt(look._asdict()))
            look = watch.look(state["messages"])
        self.looks[run] = look
        update: ByName = {"guard_answer": look.answer}
        if look.stop:
            update |= {"jump_to": "end", "messages": [_messages.AIMessage(self.message)]}
        return update
