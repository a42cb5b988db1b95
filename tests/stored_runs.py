"""Made runs, and how what is said of them is held against what was said before.

A change of a number or a sentence shows here first. After one that is wanted, ``STORE=1 python -m
pytest -k test_stored`` stores what is said now: read the difference before you commit it.
"""

import json
import os
import re
from pathlib import Path

import numpy as np
import pandas as pd

from trajscore import __version__

NUMBER = re.compile(r"(?<![\w#.-])-?\d+(?:\.\d+)?(?:e-?\d+)?")
DOWNLOAD = re.compile(r'href="data:[^"]*"')
TIME = re.compile(r"\b20\d\d-\d\d-\d\d([T ][\d:]+\d)?([+-]00:00|Z)?")
HIDDEN = re.compile(r"<(script|style)\b.*?</\1>", re.DOTALL)


def table(n, *, seed=0, tasks=None):
    """Return runs of 1 to 9 steps with a good judge, a bold agent and a few that were stopped."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, 10, n)
    run = np.repeat(np.arange(n), lengths)
    step = np.concatenate([np.arange(1, length + 1) for length in lengths])
    skill = rng.normal(0.4, 1.0, n)
    solved = (skill + rng.normal(0, 0.5, n) > 0).astype(int)
    seen = skill[run] * step / (step + 2) + rng.normal(0, 0.7, len(run))
    task = np.arange(n) % (tasks or n)
    why = np.where(rng.random(n) < 0.1, "timeout", np.where(rng.random(n) < 0.1, "gave_up", "done"))
    frame = {
        "run": [f"r{k:02d}" for k in run],
        "step": step,
        "judge": np.round(1 / (1 + np.exp(-1.5 * seen)), 2),
        "verbal": np.round(np.clip(0.75 + 0.1 * seen + 0.1 * rng.random(len(run)), 0, 1), 1),
        "solved": solved[run],
        "task": [f"t{k}" for k in task[run]],
        "model": np.array(["small", "large"])[(run // 3) % 2],
        "why": why[run],
    }
    return pd.DataFrame(frame)


def chats(n, *, seed=0):
    """Return dialogues that loop and apologise where they fail."""
    rng = np.random.default_rng(seed)
    runs = []
    for k in range(n):
        good = bool(rng.random() < 0.6)
        messages = [{"role": "user", "content": f"Please change order {k % 7} of {'AB'[k % 2]}."}]
        for turn in range(int(rng.integers(2, 6))):
            says = "I change it." if good else "I am sorry, I cannot find the order."
            call = {"name": "find", "arguments": json.dumps({"order": k % 7 + turn * good})}
            calls = [{"id": f"c{turn}", "type": "function", "function": call}]
            messages += [
                {
                    "role": "assistant",
                    "content": f"{says} Step {turn * good}.",
                    "tool_calls": calls,
                },
                {
                    "role": "tool",
                    "tool_call_id": f"c{turn}",
                    "content": "ok" if good else "Error: 4",
                },
            ]
            if rng.random() < 0.3:
                messages.append({"role": "user", "content": "And?" if good else "That is wrong."})
        messages.append({"role": "assistant", "content": "Done."})
        reward = int(good) if rng.random() < 0.9 else int(not good)
        runs.append({"id": f"run {k}", "messages": messages, "reward": reward, "task": f"t{k % 9}"})
    return runs


def write_files():
    """Write the inputs of all cases into this folder."""
    plain = table(60)
    plain.to_csv("runs.csv", index=False)
    plain.query("run < 'r09'").to_csv("few.csv", index=False)
    gaps = plain.assign(
        verbal=(plain["verbal"] * 100).where(plain.index % 13 != 5), judge=1 - plain["judge"]
    )
    gaps.to_csv("gaps.csv", index=False)
    table(80, seed=1, tasks=8).to_csv("tasks.csv", index=False)
    odd = plain.assign(verbal=np.where(plain["solved"] == 1, 0.9, 0.1), judge=1 - plain["judge"])
    odd.to_csv("odd.csv", index=False)
    stopped = plain.assign(solved=plain["solved"].where(plain["why"] == "done", -1))
    stopped.to_csv("stopped.csv", index=False)
    wide = plain.pivot(index="run", columns="step", values="judge").add_prefix("step_")
    wide.join(plain.groupby("run")["solved"].first()).reset_index().to_csv("wide.csv", index=False)
    Path("chats.json").write_text(json.dumps(chats(60)))
    Path("steps").mkdir()
    for part in range(2):
        half = plain[plain["run"].str[-1].astype(int) % 2 == part]
        half.to_parquet(f"steps/{part}.parquet", index=False)


def compare(stored, said):
    """Hold texts against each other: the same words, and numbers but for rounding."""
    assert NUMBER.sub("#", said) == NUMBER.sub("#", stored)
    numbers = NUMBER.findall(stored), NUMBER.findall(said)
    decimals = [len(text.partition(".")[2]) if "e" not in text else 99 for text in numbers[0]]
    before, now = (np.array(values, dtype=float) for values in numbers)
    room = 1e-6 * np.abs(before) + np.where(
        np.array(decimals) > 0, 1.01 * 10.0 ** -np.array(decimals), 0
    )
    wrong = np.flatnonzero(np.abs(now - before) > room)
    assert [(numbers[0][k], numbers[1][k]) for k in wrong] == []


def visible(page):
    """Return a page without its programs, styles and downloads, an element a line."""
    return re.sub(r">\s*<", ">\n<", DOWNLOAD.sub("", HIDDEN.sub("", page)))


def hold(path, said):
    """Hold a text against the stored one, or store it."""
    said = TIME.sub("TIME", said).replace(__version__, "VERSION")
    if os.environ.get("STORE"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(said)
    compare(path.read_text(), said)
