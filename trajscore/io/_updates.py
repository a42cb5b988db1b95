"""Updates of a graph: what each of its nodes added to the messages, as LangGraph streams them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from trajscore.io._conversation import role_of
from trajscore.io._messages import as_chat, find_messages, is_message
from trajscore.io._vocabulary import as_fields
from trajscore.io.files import Broken

_HOOK = re.compile(r"\.(before|after)_(agent|model)$")  # of a middleware, which may add nothing


def is_update(value: Any) -> bool:
    """Tell messages by the node that added them; the first is not the user's, as in a run."""
    if not isinstance(value, dict) or is_message(value) or find_messages(value)[0] is not None:
        return False
    if value and all(value[node] is None and _HOOK.search(str(node)) for node in value):
        return True
    turns = (turn for _, added in _by_node(value) for turn in _turns(added))
    return role_of(next(turns, {}).get("role")) in ("agent", "tool")


def run_of_updates(updates: Iterable[Any]) -> Any:
    """Return the run of a stream of updates; it must be one, as no update names its run."""
    messages: list[Any] = []
    ended_by = None
    for update in updates:
        for node, added in _by_node(update):
            if node == ended_by:
                return Broken(
                    "these updates of a graph are those of several runs, and none names its run; "
                    "write a file for each run, or graph.get_state(config) with its thread_id"
                )
            messages += added
            ends = all(
                role_of(turn.get("role")) == "agent" and not turn.get("tool_calls")
                for turn in _turns(added[-1:])
            )
            ended_by = node if ends else None
    return {"messages": messages}


def _by_node(update: Any) -> Iterator[tuple[str, list[Any]]]:
    for node, state in as_fields(update).items():
        messages = as_fields(state).get("messages")
        if isinstance(messages, list) and messages:
            yield node, messages


def _turns(messages: list[Any]) -> list[Mapping[str, Any]]:
    return [as_fields(turn) for _, turn in as_chat(messages)]
