"""What an `end_worth` of flags changes, measured.

    python benchmarks/stopping.py worth [FOLDER] [--splits 20]
    python benchmarks/stopping.py edges [--sets 400]

FOLDER holds NAME_w_scores_compressed.csv.gz for hotpotqa and gsm8k; without it they are fetched.
"worth" prints power, early flags and steps saved at the same level; "edges" false alarms,
simulated, where rates are near 0 and 1, scores are tied, runs are few or are trials of tasks.
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path

import numpy as np

from monitoring import COLUMNS, MOST_NEW, drawn_runs, interval, table, trials
from trajscore import DensityRatioEProcess, TrajectoryArray

TABLES = ("hotpotqa", "gsm8k")
KNOWN = 0.2  # share of the runs that a rule is fitted on
SEED = 20261123


def split(X: TrajectoryArray, y: np.ndarray, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows that are known, and new ones."""
    rows = np.random.default_rng([SEED, seed]).permutation(len(X))
    n = int(KNOWN * len(X))
    return rows[:n], rows[n : n + MOST_NEW]


# --------------------------------------------------------------------------- the worth of an end


def worth(arguments: argparse.Namespace) -> None:
    """Print power, early flags, steps saved and false alarms over end_worth."""
    options = {"default": None, "1": 1, "0.3": 0.3, "0.1": 0.1, "0": 0}
    alpha = 0.1
    for name in TABLES:
        X, y = TrajectoryArray.from_frame(table(name, arguments.folder), **COLUMNS)
        rows = {label: [] for label in options}
        for seed in range(arguments.splits):
            known, new = split(X, y, seed)
            for label, value in options.items():
                process = DensityRatioEProcess(alpha=alpha, end_worth=value, random_state=seed)
                process.fit(X[known], y[known])
                report, stop = (
                    process.report(X[new], y[new]).iloc[0],
                    process.stopping_steps(X[new]),
                )
                early = (stop > 0) & (stop <= X[new].lengths / 2)
                rows[label].append(
                    [report["power"], early[y[new] == 0].mean(), report["steps_saved"],
                     report["steps_saved_overall"], report["false_alarm_rate"]]
                )  # fmt: skip
        base = np.array(rows["default"])
        print(f"\n{name}: alpha = {alpha}, {KNOWN:.0%} known, {arguments.splits} splits")
        names = ("power", "by half of the run", "steps saved", "of all steps", "false alarms")
        print(f"{'end_worth':10}" + "".join(f"{column:>20}" for column in names))
        for label, listed in rows.items():
            values = np.array(listed)
            print(f"{label:10}" + "".join(f"{interval(column):>20}" for column in values.T))
            if label == "0.3":
                times = values[:, 2].mean() / base[:, 2].mean()
                more = values[:, 2] - 1.1 * base[:, 2]
                print(f"{'':10}{times:.2f} times the steps saved; over 1.1 times: {interval(more)}")


# --------------------------------------------------------------------------- edges


def edges(arguments: argparse.Namespace) -> None:
    """Print false alarms where an end is worth less, at the edges of what runs may be."""
    warnings.filterwarnings(
        "ignore", message="too few held-out|.*longer than the|score |The forecasts of all"
    )
    alpha = 0.1
    print(f"false alarms at alpha = {alpha}, simulated, {arguments.sets} sets of known runs")
    laws = [
        (n, rate, discrete) for n in (60, 400) for rate in (0.05, 0.5, 0.95)
        for discrete in (False, True)
    ]  # fmt: skip
    for n, rate, discrete in laws:
        for end_worth in (0, 0.3):
            for ties in ("strict", "randomized"):
                rates = np.array(
                    [one_set(seed, n, rate, discrete, end_worth, ties, alpha)
                     for seed in range(arguments.sets)]
                )  # fmt: skip
                values = "3 values" if discrete else "continuous"
                enough = ~np.isnan(rates)
                kept = f"{interval(rates[enough])}, {enough.mean():.2f} of sets"
                print(
                    f"{n:4} runs, success rate {rate:4}, {values:11}end_worth {end_worth:<4} "
                    f"{ties:11}{kept}",
                    flush=True,
                )
    of_groups(arguments.sets, alpha)


def one_set(
    seed: int, n: int, rate: float, discrete: bool, end_worth: float, ties: str, alpha: float
) -> float:
    """False alarms of one set of known runs; NaN where too few succeeded, or failed."""
    rng = np.random.default_rng([SEED, seed, n, round(100 * rate)])
    y = (rng.random(n) < rate).astype(int)
    if min(y.sum(), n - y.sum()) < 2 or y.sum() < 11:
        return np.nan
    X = drawn_runs(rng, y, discrete)
    process = DensityRatioEProcess(
        alpha=alpha, end_worth=end_worth, ties=ties, random_state=seed
    ).fit(X, y)
    new = drawn_runs(rng, np.ones(300, dtype=int), discrete)
    named = TrajectoryArray(new.cells, new.lengths, ids=np.arange(300) + n, ended=True)
    return float((process.predict(named) == 0).mean())


def of_groups(sets: int, alpha: float) -> None:
    """Print the same of one success of a new task, where tasks differ."""
    rates = []
    for seed in range(sets):
        rng = np.random.default_rng([SEED, seed])
        X, y, task = trials(rng, 80)
        new, outcome, new_task = trials(rng, 200)
        rows = np.flatnonzero(outcome == 1)
        _, first = np.unique(new_task[rows], return_index=True)
        process = DensityRatioEProcess(alpha=alpha, end_worth=0.3, random_state=seed)
        process.fit(X, y, groups=task)
        rates.append((process.predict(new[rows[first]]) == 0).mean())
    print(f"trials of 80 tasks, end_worth 0.3: {interval(np.array(rates))}")


def main() -> None:
    """Run one of the two."""
    commands = {"worth": worth, "edges": edges}
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=commands)
    parser.add_argument("folder", nargs="?", type=Path)
    parser.add_argument("--splits", type=int, default=20)
    parser.add_argument("--sets", type=int, default=400)
    arguments = parser.parse_args()
    commands[arguments.what](arguments)


if __name__ == "__main__":
    main()
