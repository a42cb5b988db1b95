"""Trajectories of SWE-agent and mini-SWE-agent, one run a file, and which issues were resolved."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from trajscore.core.outcomes import CENSORED, FAILURE, SUCCESS
from trajscore.io._conversation import Conversation
from trajscore.io._run import MalformedRunError, Run, as_object, leftover
from trajscore.io.files import LogFile, Place, stem
from trajscore.io.registry import Format, Head, register

_ENDINGS = (".traj", ".traj.json")
_REPORTS = ("results.json", "report.json")
_SUBMITTED = re.compile(r"submitted \((.+)\)")  # what the limit, that ended the run, left


@register
class SWEAgent(Format):
    name, holds = "swe_agent", "trajectory"
    endings = _ENDINGS
    cut_runs = "score"

    def recognise(self, head: Head) -> bool:
        names = head.fields.keys()
        return "info" in names and ("trajectory" in names or "trajectory_format" in names)

    def folder(self, place: Path) -> list[Path]:
        """List the trajectories of all instances, a folder each."""
        if not place.is_dir():
            return []
        return sorted({path for ending in _ENDINGS for path in place.rglob(f"*{ending}")})

    def run(self, raw: Any, place: Place, options: Any) -> Run:
        raw = as_object(raw)
        info = as_object(raw.get("info") or {})
        task = stem(place.file).removesuffix(".traj")
        name = place.name(raw.get("instance_id"), task)
        steps = raw.get("trajectory", raw.get("messages"))
        if not isinstance(steps, list):
            raise MalformedRunError("its trajectory is no list")
        talk = Conversation(place)
        if "trajectory" in raw:
            _add_prompts(talk, raw.get("history"))
            for index, step in enumerate(steps):
                _add_step(talk, as_object(step), index)
        else:
            talk.add_all(steps)
        run = Run(name, outcome=_outcome(name, place.file), stop_reason=_stop(info), task=name)
        stats = info.get("model_stats")
        stats = stats if isinstance(stats, Mapping) else {}
        run.meta = {
            "file": str(place.file),
            "cost": stats.get("instance_cost"),
            "input_tokens": stats.get("tokens_sent"),
            "output_tokens": stats.get("tokens_received"),
        }
        run.extra["info"] = leftover(info, ("model_stats",))
        return talk.finish(run)


def _add_prompts(talk: Conversation, history: Any) -> None:
    """Add what the agent was told before its first turn, but no demonstrations."""
    for index, message in enumerate(history if isinstance(history, list) else []):
        role = message.get("role") if isinstance(message, Mapping) else None
        if role not in ("system", "user"):
            return
        if not message.get("is_demo"):
            talk.add(message, index)


def _add_step(talk: Conversation, step: Mapping[str, Any], index: int) -> None:
    action, seen = step.get("action"), step.get("observation")
    name = action.split()[:1] if isinstance(action, str) else []
    calls = [{"id": f"step {index}", "name": one, "arguments": action} for one in name]
    message = {
        "role": "assistant",
        "content": step.get("thought") or step.get("response"),
        "tool_calls": calls,
    }
    kept = ("execution_time", "state", "extra_info")
    talk.add(message | {name: step[name] for name in kept if step.get(name)}, index)
    if seen is not None:
        key = f"step {index}" if calls else None
        talk.add({"role": "tool", "tool_call_id": key, "content": seen}, index)


def _stop(info: Mapping[str, Any]) -> str | None:
    """Return why the run ended: the limit that did, also where what was there was submitted."""
    status = info.get("exit_status")
    if not isinstance(status, str):
        return None
    limit = _SUBMITTED.fullmatch(status)
    return limit[1] if limit else status


def _outcome(name: str, file: Path) -> float:
    """Look for the issue in the report of an evaluation, beside the run or in a folder above."""
    for folder in file.parents[:2]:
        for report in (folder / one for one in _REPORTS):
            if report.exists():
                found = LogFile(report).whole()
                resolved, rest = found.get("resolved_ids"), found.get("unresolved_ids")
                if isinstance(resolved, list) and name in resolved:
                    return SUCCESS
                if isinstance(rest, list) and name in rest:
                    return FAILURE
    return CENSORED
