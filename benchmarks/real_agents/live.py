"""Guards look at new runs before each call of the models, and end none: live.py [RUNS a task]."""

import sys
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
from agents import TEMPERATURE, Model, tokens_of, word_of
from serve import MODELS, SLOTS, served
from tasks import TASKS

sys.path.insert(0, str(Path(__file__).parents[1]))
from shared import plus_minus
from trajscore.datasets import load_real_runs
from trajscore.integrations import Guard
from trajscore.monitoring import DensityRatioEProcess


def guards(model):
    """Return the guards by name, fitted on recorded runs; without labels, too, on 200 of them."""
    real = load_real_runs(model=model)
    rows = np.random.default_rng(0).permutation(len(real.runs))[:200]
    for name in ("0", "60", "200", "success"):
        flags = "success" if name == "success" else "failure"
        process = DensityRatioEProcess(alpha=0.1, flags=flags)
        known = rows[: 60 if name == "60" else 200]
        y = np.full(200, -1) if name == "0" else real.target[known]
        yield name, Guard(process=process).fit([real.runs[row] for row in known], y)


def run(url, slot, task, seed, fitted):
    """Let the agent do a task; return its outcome, calls, and those until each guard's flag."""
    world, messages, flags = TASKS[task](seed), [], dict.fromkeys(fitted, 0)
    watches = {name: guard.follow(f"{task} {seed}") for name, guard in fitted.items()}
    text, ended, step, model = world.examples, None, 0, Model(url, slot)
    while ended is None:
        seen = world.see()
        messages.append({"role": "user", "content": seen})
        for name, watch in watches.items():
            flags[name] = flags[name] or step * watch.look(messages).stop
        prompt = f"{text}{seen}\n{world.ask}"
        how = {"temperature": TEMPERATURE, "seed": seed * 1000 + 10 * step, "logprobs": 20}
        answer, _ = model.complete(prompt, **how)
        reply = {"content": answer.text.strip(), "logprobs": {"content": tokens_of(answer)}}
        messages.append({"role": "assistant", **reply})
        text, step = f"{prompt}{answer.text.rstrip()}\n", step + 1
        ended = world.act(word_of(answer.text))
    return [("failure", "success", "budget").index(ended), step, *flags.values()]


def main(n_runs=200):
    warnings.filterwarnings("ignore")  # of runs longer than those in fitting
    for name in MODELS:
        fitted = dict(guards(name))
        tasks = [(task, k) for k in range(3_000_000, 3_000_000 + n_runs) for task in TASKS]  # new
        with served(name) as url, ThreadPoolExecutor(SLOTS) as pool:
            runs = [pool.submit(run, url, k % SLOTS, *task, fitted) for k, task in enumerate(tasks)]
            ended, steps, *flags = np.array([each.result() for each in runs]).T
        print(f"{name}: {len(ended)} new runs, {(ended == 1).mean():.2f} succeed")
        for label, flag in zip(fitted, flags, strict=True):
            shares = [plus_minus((flag > 0)[rows] * 1.0) for rows in (ended == 0, ended == 1)]
            saved = np.where(flag > 0, steps - flag, 0).sum() / steps.sum()
            print(f"  {label:>8}: failures, successes {shares}, calls saved {saved:.3f}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
