"""Trajectory files of tau-bench, which hold no stop reason: a run at the cap was cut off."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from trajscore.core.outcomes import SUCCESS
from trajscore.core.values import is_count
from trajscore.io._conversation import Conversation
from trajscore.io._run import MalformedRunError, Run, Step, as_object, as_outcome, leftover
from trajscore.io.files import LogFile, Paths, Place
from trajscore.io.reading import read_as
from trajscore.io.registry import Format, Head, register
from trajscore.io.runs import Runs

_RUN = frozenset({"task_id", "trial", "reward", "traj"})
# How a run ends by itself: the simulated user says so, or the agent hands over.
_USER_STOP = "###STOP###"
_LAST_TOOL = "transfer_to_human_agents"


def read_tau_bench(path: Paths, *, max_turns: int | None = 30, **options: Any) -> Runs:
    """Read trajectory files of tau-bench.

    Parameters
    ----------
    path : str, Path or iterable of them
        As in `read_runs`.
    max_turns : int or None, default=30
        The cap on the agent's messages under which the log was made. A run that reaches it
        without having ended, and without reward 1, was cut off: outcome -1, stop reason
        "max_steps". None: no run counts as cut off.
    **options
        As in `read_runs`: outcome, outcomes, confidence, id, rule and so on.

    Returns
    -------
    Runs
        One run a trajectory.

    Notes
    -----
    A run has ended if the last message is the user's and holds ``###STOP###``, or if the last call
    is ``transfer_to_human_agents``. The environment computes a reward only then; before, it is 0.

    Examples
    --------
    >>> import json, tempfile, pathlib
    >>> from trajscore import io
    >>> log = pathlib.Path(tempfile.mkdtemp()) / "log.json"
    >>> talk = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Yes?"}]
    >>> run = {"task_id": 7, "trial": 1, "reward": 1.0, "info": {}, "traj": talk}
    >>> _ = log.write_text(json.dumps([run]))
    >>> io.read_tau_bench(log)[0]
    <Run '7-1': 2 steps, success>
    """
    return read_as("tau_bench", path, max_turns=max_turns, **options)


@dataclass
class _Options:
    max_turns: int | None = 30

    def __post_init__(self) -> None:
        if self.max_turns is not None and not is_count(self.max_turns):
            raise ValueError(
                f"max_turns must be a whole number, at least 1, or None, got {self.max_turns!r}"
            )


@register
class TauBench(Format):
    name, holds = "tau_bench", "traj"
    options = _Options

    def recognise(self, head: Head) -> bool:
        return "traj" in head.fields

    def runs(self, file: LogFile, options: _Options) -> Iterator[tuple[Place, Any]]:
        for key, index, value in file.items():
            if index is None:
                file.info[str(key)] = value
            else:
                yield file.place(index), value
        if "traj" in file.info:  # a single run
            yield file.place(0), file.info

    def run(self, raw: Any, place: Place, options: _Options) -> Run:
        raw = as_object(raw)
        task = raw.get("task_id")
        name = place.name(None if task is None else f"{task}-{raw.get('trial', 0)}")
        if raw.get("traj") is None:
            raise MalformedRunError("it has no 'traj'")
        reward = raw.get("reward")
        score = as_outcome(reward)
        talk = Conversation(place)
        talk.add_all(raw["traj"])
        cut = score != SUCCESS and _at_cap(talk.steps, options.max_turns)
        run = Run(
            id=name,
            outcome=score,
            stop_reason="max_steps" if cut else None,
            task=None if task is None else str(task),
            trial=raw.get("trial"),
            meta={"reward": reward, "file": str(place.file)},
            extra=leftover(raw, _RUN),
        )
        return talk.finish(run)


def _at_cap(steps: list[Step], max_turns: int | None) -> bool:
    if max_turns is None or sum(step.actor == "agent" for step in steps) < max_turns:
        return False
    last = steps[-1]
    if last.actor == "user":
        return _USER_STOP not in last.text
    return not any(call.name == _LAST_TOOL for call in last.tool_calls)
