"""Gates from few labels: how often they pass a worse agent that a more lenient judge looks at.

    python benchmarks/judged_gates.py [--simulations 2000] [--seed 0] [--quick]

Two sets of 400 runs, alone or four trials each of 100 tasks; in the new one success is truly .1
lower, or the same. The judge is right on 90% of the successes and 80% of the failures of the base,
and on fewer failures of the new set, so that its verdicts hide the drop. 100 runs of each set are
labelled: those that `LabelDesign` chooses for the success rate. Printed is how often `check` at
margin 0 passes, fails and stays undecided: on the verdicts, and by the labels. A pass should happen
in at most 5% where success fell, and so should a failure where it did not change. The standard
error of .05 in 2,000 simulations is .005. --quick makes 20, to see that the script runs.
"""

from __future__ import annotations

import argparse
from collections import Counter
from typing import Any

import numpy as np

from trajscore.gates import RunSet, check
from trajscore.inference import LabelDesign

N_RUNS, N_LABELS, N_TRIALS = 400, 100, 4
RIGHT = (0.9, 0.8)  # on successes and failures of the base


def draw(rate: float, right: tuple[float, float], clustered: bool, rng: Any) -> tuple[Any, ...]:
    """Draw outcomes, verdicts, and traces that say something of the outcomes."""
    chance = np.full(N_RUNS, rate)
    if clustered:
        of_task = rng.beta(3 * rate, 3 * (1 - rate), N_RUNS // N_TRIALS)
        chance = np.repeat(of_task, N_TRIALS)
    y = (rng.random(N_RUNS) < chance).astype(int)
    wrong = rng.random(N_RUNS) >= np.where(y == 1, *right)
    score = y[:, None] + rng.normal(0, 2, (N_RUNS, 3))
    return y, np.where(wrong, 1 - y, y), 1 / (1 + np.exp(-score))


def run_set(y: Any, judge: Any, X: Any, tasks: Any, rng: Any) -> RunSet:
    """Label few of the runs."""
    design = LabelDesign(N_LABELS, "rate", random_state=int(rng.integers(2**31)))
    rows = design.fit(X, judge=judge, groups=tasks).query()
    few = np.full(N_RUNS, -1)
    few[rows] = y[rows]
    return RunSet(
        {"score": X}, few, tasks=tasks, judge=judge, label_probability=design.probabilities_
    )


def main() -> None:
    """Print how often gates pass, fail and stay undecided."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--simulations", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--quick", action="store_true", help="20 simulations of each setting")
    args = parser.parse_args()
    n = 20 if args.quick else args.simulations
    rng = np.random.default_rng(args.seed)
    for clustered in (False, True):
        tasks = np.repeat(np.arange(N_RUNS // N_TRIALS), N_TRIALS) if clustered else None
        for base, drop in ((0.6, 0.1), (0.9, 0.1), (0.6, 0.0), (0.9, 0.0)):
            counts: dict[str, Counter[str]] = {"verdicts": Counter(), "labels": Counter()}
            for _ in range(n):
                # the base's tasks are others, so that sets are not paired
                theirs = draw(base, RIGHT, clustered, rng)
                ours = draw(base - drop, (0.95, 0.45 if drop else 0.8), clustered, rng)
                names = (None, None) if tasks is None else (tasks, tasks + len(tasks))
                by_labels = [
                    run_set(*own, labels, rng)
                    for own, labels in zip((theirs, ours), names, strict=True)
                ]
                by_judge = [
                    RunSet(None, np.full(N_RUNS, -1), judge=own[1], tasks=labels)
                    for own, labels in zip((theirs, ours), names, strict=True)
                ]
                for name, (old, new) in (("verdicts", by_judge), ("labels", by_labels)):
                    counts[name][check(new, old).verdict] += 1
            for name, own in counts.items():
                shares = {verdict: own[verdict] / n for verdict in ("pass", "undecided", "fail")}
                print(
                    f"{'100 tasks x 4' if clustered else '400 runs':<14} success {base} -> "
                    f"{base - drop:.1f}, by {name:<9}"
                    + ", ".join(f"{verdict} {share:.3f}" for verdict, share in shares.items()),
                    flush=True,
                )


if __name__ == "__main__":
    main()
