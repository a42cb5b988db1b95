"""Logs of InterCode: a file of runs by their number, each with its history of turns."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path
from typing import Any

from trajscore.io._run import (
    MalformedRunError,
    Run,
    Step,
    ToolCall,
    as_object,
    as_outcome,
    leftover,
)
from trajscore.io._vocabulary import as_fields
from trajscore.io.files import LogFile, Place, stem
from trajscore.io.registry import Format, Head, register

_RUN = ("turn_history", "summary", "query", "task_id")
_TURN = ("thoughts", "actions", "observations", "valid_action")
_CALL = re.compile(r"(\w+)\[(.*)\]", re.DOTALL)


@register
class InterCode(Format):
    name, holds = "intercode", "turn_history"
    beside = ("environment", "query", "summary")
    cut_runs = "score"

    def recognise(self, head: Head) -> bool:
        return any(self.holds in as_fields(run) for run in head.fields.values())

    def runs(self, file: LogFile, options: Any) -> Iterator[tuple[Place, Any]]:
        for index, (key, _, run) in enumerate(file.items()):
            yield file.place(index), (key, run)

    def run(self, raw: Any, place: Place, options: Any) -> Run:
        key, fields = raw[0], as_object(raw[1])
        name = place.name(f"{stem(place.file)}-{key}")
        summary, history = as_fields(fields.get("summary")), as_object(fields.get("turn_history"))
        columns = [history.get(column) or [] for column in _TURN]
        if any(column and len(column) != len(columns[1]) for column in columns):
            raise MalformedRunError("its turn_history has lists of different lengths")
        reward = summary.get("max_reward")
        data = fields.get("dataset")
        turns = [_turn(*cells) for cells in zip_longest(*columns)]
        is_done = bool(turns) and turns[-1].tool_calls[0].name == "submit"
        return Run(
            name,
            [Step("user", fields.get("query") or ""), *turns],
            outcome=as_outcome(reward),
            stop_reason="submit" if is_done else "success" if reward == 1 else "max_turns",
            task=f"{Path(data).stem}-{key}" if isinstance(data, str) else str(key),
            scores={} if reward is None else {"max_reward": reward},
            meta={"environment": fields.get("environment")},
            extra=leftover(fields, _RUN) | leftover(history, _TURN),
        )


def _turn(thought: Any, action: Any, result: Any, valid: Any) -> Step:
    """Make a turn of an action, such as ``execute[ls]``, ``submit`` or a bare command."""
    text = str(action)
    call = _CALL.fullmatch(text.strip())
    bare = "submit" if text.strip() == "submit" else "execute"
    name, arguments = call.groups() if call else (bare, text)
    seen = None if result is None else str(result)
    error = None if valid is None else not valid
    return Step(
        "agent",
        str(thought or ""),
        tool_calls=[ToolCall(name, arguments, result=seen, error=error)],
        observation=seen,
    )
