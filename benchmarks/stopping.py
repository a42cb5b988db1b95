"""Stopping that pays, and audits within a budget, measured.

    python benchmarks/stopping.py worth  [FOLDER] [--splits 20]
    python benchmarks/stopping.py money  [FOLDER] [--splits 20]
    python benchmarks/stopping.py certificate [--sets 400]
    python benchmarks/stopping.py edges  [--sets 400]
    python benchmarks/stopping.py audits [--sets 400]

FOLDER holds NAME_w_scores_compressed.csv.gz for hotpotqa and gsm8k; without it they are fetched.
"worth" prints what `end_worth` changes at the same level; "money" what `TunedStop` gains over
prices; "certificate" how often it stops runs though that gains nothing; "edges" false alarms with
`end_worth`, simulated, where rates are near 0 and 1, scores are tied, runs are few or are trials of
tasks; "audits" what share of honest runs, or of their steps, `AuditRule` audits, beside quantiles
of scores.
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path

import numpy as np

from monitoring import COLUMNS, MOST_NEW, drawn_runs, interval, table, trials
from trajscore import DensityRatioEProcess, TrajectoryArray
from trajscore.core.within_runs import first_step_above, run_maxima
from trajscore.monitoring import AuditRule, RawVerifier, TunedStop

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


# --------------------------------------------------------------------------- money


PRICES = [(lost, caught) for lost in (1, 3, 10) for caught in (0, 0.3, 1)]


def gain(stop: np.ndarray, X: TrajectoryArray, y: np.ndarray, lost: float, caught: float) -> float:
    """Mean gain of runs that are stopped at these steps, in mean runs."""
    saved = (X.lengths - stop) / X.lengths.mean()
    return float(np.where(stop > 0, saved + np.where(y == 1, -lost, caught), 0.0).mean())


def money(arguments: argparse.Namespace) -> None:
    """Print the gain a run of the default at alpha = .1, and of TunedStop, over prices."""
    warnings.filterwarnings("ignore", message="(no threshold is shown|at these prices|what gains)")
    used, worst = [], np.inf
    for name in TABLES:
        X, y = TrajectoryArray.from_frame(table(name, arguments.folder), **COLUMNS)
        print(f"\n{name}: gain in mean runs, {KNOWN:.0%} known, {arguments.splits} splits")
        columns = ("default, alpha .1", "tuned", "certified", "good runs stopped", "used")
        print(f"{'lost, caught':14}" + "".join(f"{column:>20}" for column in columns) + "   lowest")
        for lost, caught in PRICES:
            rows = np.array(
                [of_prices(X, y, seed, lost, caught) for seed in range(arguments.splits)]
            )
            cells = "".join(f"{interval(column):>20}" for column in rows.T)
            print(f"{f'{lost}, {caught}':14}{cells}{rows[:, 2].min():9.4f}", flush=True)
            used += rows[rows[:, 4] > 0, 2].tolist()
            worst = min(worst, rows[:, 2].mean())
    print(
        f"\nlowest mean of TunedStop over tables and prices: {worst:.4f} a run; of {len(used)} "
        f"thresholds that were used {np.sum(np.array(used) < 0)} lost, the worst "
        f"{min(used):.4f} a run"
    )


def of_prices(
    X: TrajectoryArray, y: np.ndarray, seed: int, lost: float, caught: float
) -> tuple[float, ...]:
    """Gains of a split, the share of good runs that are stopped, and whether any is."""
    known, new = split(X, y, seed)
    process = DensityRatioEProcess(alpha=0.1, random_state=seed).fit(X[known], y[known])
    tuned = TunedStop(lost_success=lost, caught_failure=caught, random_state=seed)
    tuned.fit(X[known], y[known])
    X, y = X[new], y[new]
    best = np.full(len(X), tuned.best_threshold_)
    stops = [
        process.stopping_steps(X),
        first_step_above(X, tuned.rule_._statistic(X), best),
        tuned.stopping_steps(X),
    ]
    gains = [gain(stop, X, y, lost, caught) for stop in stops]
    return *gains, (stops[2][y == 1] > 0).mean(), tuned.certified_


def certificate(arguments: argparse.Namespace) -> None:
    """Print how often a threshold is used where scores say nothing and the best one gains 0."""
    warnings.filterwarnings("ignore", message="(no threshold is shown|at these prices|what gains)")
    print(f"share of {arguments.sets} sets in which a threshold is used that gains nothing (.05)")
    for rate in (0.05, 0.2, 0.5, 0.95):
        # four steps, of which stopping all runs at the first saves three quarters of a run
        lost = (0.75 + 1 - rate) / rate
        for n, size in ((100, 1), (400, 1), (2000, 1), (400, 4)):
            used = []
            for seed in range(arguments.sets):
                rng = np.random.default_rng([SEED, seed, n])
                y = np.repeat(rng.random(n // size) < rate, size).astype(int)
                if min(y.sum(), n - y.sum()) < 4 * size:
                    continue
                X = TrajectoryArray(rng.random(4 * n), np.full(n, 4), ended=True)
                groups = np.arange(n) // size if size > 1 else None
                stop = TunedStop(RawVerifier(), lost_success=lost, cv=2, random_state=seed)
                used.append(stop.fit(X, y, groups).certified_)
            alike = f", {size} of each task" if size > 1 else ""
            share = interval(np.array(used, dtype=float))
            print(f"success rate {rate}, {n} runs{alike}: {share} of {len(used)} sets", flush=True)


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


# --------------------------------------------------------------------------- audits


def suspicions(
    rng: np.random.Generator, n: int, law: str, attack: bool = False
) -> tuple[TrajectoryArray, np.ndarray]:
    """Suspicion of the steps of honest runs, or of attacks, and the task of each run.

    Steps of a run, and runs of a task, are alike; a tenth of the steps of an attack stand out.
    """
    lengths = np.clip(rng.geometric(0.08, n), 2, 60)
    task = np.arange(n) // 4 if law == "4 runs a task" else np.arange(n)
    level = rng.normal(0, 1, task.max() + 1)[task] + 0.5 * rng.normal(0, 1, n)
    if law == "long runs suspicious":
        level += 0.05 * lengths
    scores = rng.normal(np.repeat(level, lengths), 1.0)
    if attack:
        scores += 3 * (rng.random(len(scores)) < 0.1)
    if law == "ties":  # a model that answers with a number from 0 to 10, mostly 0, 1 or 2
        scores = np.clip(np.floor(np.exp(0.5 * scores)), 0, 10)
    ids = rng.integers(2**62, size=n)
    return TrajectoryArray(scores, lengths, ids=ids, ended=True), task


def audits(arguments: argparse.Namespace) -> None:
    """Print which shares of honest runs and steps are audited, and of attacks."""
    warnings.filterwarnings("ignore", message="too few .*honest runs")
    for law in ("steps alike", "ties", "4 runs a task", "long runs suspicious"):
        for budget in (0.05, 0.25):
            print(f"\n{law}, budget {budget}, {arguments.sets} sets")
            columns = ("honest runs", "of own steps", "of all steps", "attacks")
            print(" " * 44 + "".join(f"{column:>18}" for column in columns) + f"{'.9 of sets':>12}")
            for n in (3, 20, 400):
                shares = [of_honest(seed, n, law, budget) for seed in range(arguments.sets)]
                for rule, values in zip(PROMISED, np.swapaxes(shares, 0, 1), strict=True):
                    cells = "".join(f"{interval(column):>18}" for column in values.T)
                    tenth = np.quantile(values[:, PROMISED[rule]], 0.9)
                    print(f"{n:4} honest runs, {rule:26}{cells}{tenth:12.3f}", flush=True)


# which share each is to bound
PROMISED = {"quantile of steps": 2, "quantile of runs": 0, "AuditRule, run": 0,
            "AuditRule, own steps": 1, "AuditRule, all steps": 2}  # fmt: skip
OPTIONS = ({"unit": "run"}, {"unit": "step"}, {"unit": "step", "max_steps": 60})


def of_honest(seed: int, n: int, law: str, budget: float) -> np.ndarray:
    """Shares that each rule audits, fitted on n honest runs."""
    rng = np.random.default_rng([SEED, seed, n])
    honest, task = suspicions(rng, n, law)
    new, new_task = suspicions(rng, 200, law)
    attacks, _ = suspicions(rng, 100, law, attack=True)
    _, alone = np.unique(new_task, return_index=True)
    new = new[alone]  # one run of each task
    largest = run_maxima(honest, honest.cells)
    limits = [np.quantile(honest.cells, 1 - budget), np.quantile(largest, 1 - budget)]
    out = []
    for k in range(len(PROMISED)):
        if k < 2:
            flags = [(X.cells > limits[k]).astype(float) for X in (new, attacks)]
        else:
            rule = AuditRule(budget, **OPTIONS[k - 2], random_state=seed)
            rule.fit(honest, groups=task)
            flags = [rule.audits(X).cells for X in (new, attacks)]
        own = np.add.reduceat(flags[0], new.offsets[:-1]) / new.lengths
        caught = np.maximum.reduceat(flags[1], attacks.offsets[:-1])
        out.append([(own > 0).mean(), own.mean(), flags[0].mean(), caught.mean()])
    return np.array(out)


def main() -> None:
    """Run one of the five."""
    commands = {
        "worth": worth, "money": money, "certificate": certificate, "edges": edges,
        "audits": audits,
    }  # fmt: skip
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=commands)
    parser.add_argument("folder", nargs="?", type=Path)
    parser.add_argument("--splits", type=int, default=20)
    parser.add_argument("--sets", type=int, default=400)
    arguments = parser.parse_args()
    commands[arguments.what](arguments)


if __name__ == "__main__":
    main()
