"""Trajectories of SWE-agent and mini-SWE-agent, one run a file, and which issues were resolved."""

import re
from pathlib import Path
from typing import Any

from trajscore.core.outcomes import CENSORED, FAILURE, SUCCESS
from trajscore.io._conversation import Conversation, role_of
from trajscore.io._messages import is_chat_list
from trajscore.io._run import Run, as_object, check_list, leftover
from trajscore.io.files import LogFile, Place, stem
from trajscore.io.registry import Format, Head, register
from trajscore.io.vocabulary import Record, as_fields, as_list

_RUN = ("info", "trajectory", "messages", "history", "instance_id", "trajectory_format")
_REPORTS = ("results.json", "report.json", "results/results.json", "output.report.json")
_FIELDS = {
    "resolved_ids": SUCCESS,
    "resolved": SUCCESS,
    "unresolved_ids": FAILURE,
    "empty_patch_ids": FAILURE,
}
_SUBMITTED = re.compile(r"^submitted \((.+)\)\Z")  # by the limit that ended the run


@register
class SWEAgent(Format):
    name = "swe_agent"
    holds = "trajectory"
    beside = ("info", "history", "trajectory_format")
    endings = (".traj",)
    _layout = ("**/*.traj", "**/*.traj.json")  # of an instance each

    def recognise(self, head: Head) -> bool:
        names = head.fields.keys()
        info, steps = (head.fields.get(name) for name in ("info", "trajectory"))
        is_mini = "trajectory_format" in names or "exit_status" in as_fields(info)
        is_own = "trajectory" in names and not is_chat_list(steps)
        return "info" in names and (is_own or (is_mini and steps is None))

    def run(self, raw: Any, place: Place, options: Any) -> Run:
        raw = as_object(raw)
        info = as_object(raw.get("info") or {})
        task = stem(place.file).removesuffix(".traj")
        name = place.name(raw.get("instance_id"), task)
        steps = check_list(raw.get("trajectory", raw.get("messages")), "its trajectory is")
        talk = Conversation(place)
        if "trajectory" not in raw:
            turns = [step for step in steps if as_fields(step).get("role") != "exit"]
            talk = Conversation(place, list(map(_of_mini, turns)))
        else:
            _add_prompts(talk, raw.get("history"))
            for index, step in enumerate(steps):
                _add_step(talk, as_object(step), index)
        run = Run(name, outcome=report_outcome(name, place.file), task=name)
        status = info.get("exit_status")
        if isinstance(status, str):  # a limit after which the work was submitted is that limit
            run.stop_reason = _SUBMITTED.sub(r"\1", status)
        stats = as_fields(info, "model_stats")
        run.meta = {
            "cost": stats.get("instance_cost"),
            "input_tokens": stats.get("tokens_sent"),
            "output_tokens": stats.get("tokens_received"),
        }
        run.extra = leftover(raw, _RUN) | {"info": leftover(info, ("model_stats",))}
        return talk.finish(run)


def _of_mini(message: Any) -> Any:
    """Return a message of mini-SWE-agent with its calls; what a user gave back is a result."""
    extra = as_fields(message, "extra")
    calls = [{"name": "bash", "arguments": action} for action in as_list(extra.get("actions"))]
    if calls:
        return {"tool_calls": calls, "cost": extra.get("cost"), **message}
    fields = as_fields(message)
    if fields.get("role") == "user" and str(fields.get("content")).startswith("<returncode>"):
        return {**fields, "role": "tool"}
    return message


def _add_prompts(talk: Conversation, history: Any) -> None:
    """Add the prompts before the agent's first turn, but no demonstrations."""
    for index, message in enumerate(as_list(history)):
        if not isinstance(message, dict) or role_of(message.get("role")) in ("agent", "tool"):
            return
        if not message.get("is_demo"):
            talk.add(message, index)


def _add_step(talk: Conversation, step: Record, index: int) -> None:
    action = step.get("action")
    observation = step.get("observation")
    names = []
    if isinstance(action, str):
        names = action.split()[:1]
    calls = [{"id": f"step {index}", "name": name, "arguments": action} for name in names]
    message = {
        "role": "assistant",
        "content": step.get("thought") or step.get("response"),
        "tool_calls": calls,
    }
    more = ("execution_time", "state", "extra_info")
    talk.add(message | {name: step[name] for name in more if step.get(name)}, index)
    if observation is not None:
        talk.add({"role": "tool", "content": observation}, index)


def report_outcome(name: str, file: Path) -> float:
    """Find the issue in the report of an evaluation, beside the run or in the folder above."""
    for folder in file.parents[:2]:
        for path in (folder / report for report in _REPORTS):
            report = LogFile(path).whole() if path.exists() else {}
            for field, outcome in _FIELDS.items():
                if name in as_list(report.get(field)):
                    return outcome
    return CENSORED
