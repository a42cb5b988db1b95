"""The same agents on fresh tasks, with a guard that is asked before each call of the model.

A run goes on after the guard would stop it, so that its outcome is known.
"""

from __future__ import annotations

import pathlib
import time
from functools import partial

import numpy as np
from agents import Model, make, turn
from scipy.stats import binom
from tasks import TASKS

from trajscore.integrations import Guard
from trajscore.monitoring import DensityRatioEProcess

FRESH = 1_000_000  # seeds of live tasks begin here


def guarded(guard: Guard, model: Model, task: str, seed: int) -> dict:
    """Do task `seed`; note before which call the guard would have stopped it."""
    world = TASKS[task](seed)
    messages = [{"role": "system", "content": world.system}]
    watch = guard.follow(f"{task}-{seed}")
    text, ended, calls, stopped, looks = world.examples, None, 0, None, []
    while ended is None:
        asked = [*messages, {"role": "user", "content": world.see()}]
        began = time.perf_counter()
        look = watch.look(asked)
        looks.append(1000 * (time.perf_counter() - began))
        if look.stop and stopped is None:
            stopped = calls
        _, text, word, _ = turn(model, world, text, messages, seed * 1000 + 10 * calls)
        calls += 1
        ended = world.act(word)
    return {
        "id": f"{task}-{seed}",
        "success": ended == "success",
        "calls": calls,
        "stopped": stopped,
        "milliseconds": looks,
    }


def fit_guard(runs, y, alpha: float) -> Guard:
    """Fit a guard on finished runs."""
    return Guard(process=DensityRatioEProcess(alpha=alpha)).fit(runs, y)


def live(url: str, guard: Guard, task: str, n_runs: int, path: pathlib.Path, alpha: float) -> dict:
    """Follow `n_runs` fresh tasks, and sum up what the guard did."""
    runs = make(url, task, range(FRESH, FRESH + n_runs), path, partial(guarded, guard))
    success = np.array([run["success"] for run in runs])
    stopped = np.array([run["stopped"] is not None for run in runs])
    saved = sum(run["calls"] - run["stopped"] for run in runs if run["stopped"] is not None)
    n_good = int(success.sum())
    looks = np.concatenate([run["milliseconds"] for run in runs])
    return {
        "successes": n_good,
        "failures": len(runs) - n_good,
        "successes stopped": float(stopped[success].mean()),
        "promised at most": alpha,
        "standard error": float(binom.std(n_good, alpha) / n_good),
        "failures stopped": float(stopped[~success].mean()),
        "calls saved": saved / sum(run["calls"] for run in runs),
        "milliseconds a look": float(np.median(looks)),
        "slowest": float(looks.max()),
    }
