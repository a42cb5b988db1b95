"""How often a gate is wrong: two sets from one population, and how often it sees a drop.

python benchmarks/gates.py [--sets 1000]
"""

from __future__ import annotations

import argparse
import math
import warnings
from collections.abc import Callable

import numpy as np
from scipy.optimize import brentq

from trajscore import TrajectoryArray
from trajscore.gates import Gate, RunSet, check
from trajscore.gates._gate import Rules
from trajscore.inference import runs_needed

N_TASKS, N_TRIALS = 40, 5
Draw = Callable[[np.random.Generator, float], RunSet]


def agent(
    rate: float, n_tasks: int = N_TASKS, n_trials: int = N_TRIALS, tasks_are: str = "named"
) -> Callable[..., RunSet]:
    """An agent whose chance of success differs from task to task; runs have a forecast a step.

    Tasks are "named", so that sets are paired by them; "unnamed", the same in both sets but nobody
    says so; or "other" ones in each set, and not named either.
    """

    def chances(rng: np.random.Generator) -> np.ndarray:
        return rng.beta(4 * rate, 4 * (1 - rate), n_tasks)

    def draw(rng: np.random.Generator, chance: np.ndarray, drop: float = 0.0) -> RunSet:
        if tasks_are == "other":
            chance = chances(rng)
        p = np.clip(chance - drop, 0, 1)
        tasks = np.repeat(np.arange(n_tasks), n_trials)
        y = (rng.random(len(tasks)) < p[tasks]).astype(int)
        lengths = rng.integers(2, 8, len(tasks))
        run = np.repeat(np.arange(len(tasks)), lengths)
        cells = np.clip(0.5 + 0.2 * (y[run] - 0.5) + rng.normal(0, 0.2, len(run)), 0.01, 0.99)
        X = TrajectoryArray.from_flat(cells, lengths)
        return RunSet(X, y, tasks=tasks if tasks_are == "named" else None)

    draw.chances = chances  # type: ignore[attr-defined]
    return draw


def shares(
    draw: Callable[..., RunSet], n_sets: int, drop: float, rules: Rules | Gate | None, seed: int
) -> dict[str, float]:
    """Shares of the verdicts over pairs of sets, whose tasks are drawn anew each time."""
    counts = {"pass": 0, "fail": 0, "undecided": 0, "unusable": 0}
    for k in range(n_sets):
        rng = np.random.default_rng([seed, k])
        chance = draw.chances(rng)  # type: ignore[attr-defined]
        base, new = draw(rng, chance), draw(rng, chance, drop)
        counts[check(new, base, rules).verdict] += 1
    return {name: n / n_sets for name, n in counts.items()}


def promised(draw: Callable[..., RunSet], n_runs: int, drop: float, seed: int) -> float:
    """Power at which `runs_needed` asks for as many runs, of a one-sided test at 5%."""
    rng = np.random.default_rng([seed, 999_999])
    deviations = []
    for _ in range(200):
        chance = draw.chances(rng)  # type: ignore[attr-defined]
        sets = draw(rng, chance), draw(rng, chance, drop)
        means = [
            np.bincount(np.unique(one.tasks, return_inverse=True)[1], one.labels)
            / np.unique(one.tasks, return_counts=True)[1]
            for one in sets
        ]
        deviations.append(np.var(means[1] - means[0], ddof=1))
    n_units = len(np.unique(sets[0].tasks))
    sd = math.sqrt(np.mean(deviations))

    def excess(power: float) -> float:
        return runs_needed(drop, sd=sd, power=power, alpha=0.1) - n_units - 0.5

    return float(brentq(excess, 0.06, 0.9999))


def main() -> None:
    """Print the shares of the verdicts."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sets", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    n, seed = arguments.sets, arguments.seed
    warnings.simplefilter("ignore")
    several = Rules(
        (
            Gate(),
            Gate("pass^2"),
            Gate("length"),
            Gate("TPS log margin"),
            Gate("S-ECE", form="calibrated"),
            Gate("AUROC"),
        )
    )
    print(
        f"{n} pairs of sets; shares of verdicts, +- {1.96 * math.sqrt(0.05 * 0.95 / n):.3f} at .05"
    )
    print(f"{'':<44}{'fail':>7}{'pass':>7}{'open':>7}  promised")

    def show(name: str, found: dict[str, float], power: float | None = None) -> None:
        told = "" if power is None else f"{power:9.3f}"
        numbers = "".join(f"{found[one]:7.3f}" for one in ("fail", "pass", "undecided"))
        print(f"{name:<44}{numbers}{told}", flush=True)

    show(
        f"40 x 5, success 0.6, the same, {10 * n}", shares(agent(0.6), 10 * n, 0.0, None, seed + 1)
    )
    for rate in (0.6, 0.9, 0.97):
        show(f"40 x 5, success {rate}, the same", shares(agent(rate), n, 0.0, None, seed))
    for tasks_are in ("named", "unnamed", "other"):
        single = shares(agent(0.6, 200, 1, tasks_are), n, 0.0, None, seed)
        show(f"200 x 1, tasks {tasks_are}, the same", single)
    show("10 x 5, success 0.6, the same", shares(agent(0.6, 10, 5), n, 0.0, None, seed))
    show("40 x 5, six gates, the same", shares(agent(0.6), min(n, 500), 0.0, several, seed))
    show("40 x 5, margin 0.05, the same", shares(agent(0.6), n, 0.0, Gate(margin=0.05), seed))
    for drop in (0.05, 0.1, 0.15):
        power = promised(agent(0.6), N_TASKS, drop, seed)
        show(f"40 x 5, drop of {drop}", shares(agent(0.6), n, drop, None, seed), power)


if __name__ == "__main__":
    main()
