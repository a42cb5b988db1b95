"""From the runs of agents.py to the log that the package brings: a chat log with log-probabilities.

Each line is a run, each turn of the agent its chat completion, with the answers sampled beside it
and what the model said of it. Costs of the confidences stay with the runs.
"""

from __future__ import annotations

import gzip
import itertools
import json
import pathlib

from agents import finished
from serve import MODELS
from tasks import TASKS

from trajscore.judging._forms import percent_share


def record(model: str, run: dict) -> dict:
    """Return a run as a line of the log."""
    messages, steps = [], iter(run["steps"])
    for message in run["messages"]:
        streams = {}
        if message["role"] == "assistant":
            step = next(steps)
            streams = {"confidence": percent_share(step["percent"])}
            streams |= {name: step[name] for name in ("p_true", "p_success", "samples")}
        messages.append(message | streams)
    return {
        "id": f"{model}-{run['id']}",
        "task": run["id"],
        "model": model,
        "family": run["task"],
        "stop_reason": run["stop_reason"],
        "success": run["success"],
        "messages": messages,
    }


def write(folder: pathlib.Path, path: pathlib.Path) -> None:
    """Write the log of all runs in `folder`, in the order of models, tasks and seeds."""
    lines = []
    for model, task in itertools.product(MODELS, TASKS):
        runs = list(finished(folder / f"{model}-{task}.jsonl").values())
        runs.sort(key=lambda run: int(run["id"].rpartition("-")[2]))
        lines += [json.dumps(record(model, run), separators=(",", ":")) for run in runs]
    text = "".join(line + "\n" for line in lines)
    # no time of making in the file: the same runs make the same bytes
    path.write_bytes(gzip.compress(text.encode(), compresslevel=9, mtime=0))
    print(f"{path}: {len(lines)} runs, {path.stat().st_size / 1e6:.2f} MB")
