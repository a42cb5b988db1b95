"""What happened to my agent: false alarms over all time, delays, and names of causes.

    python benchmarks/fleet.py [--data FOLDER] [--only NAME ...] [--streams 500] [--changed 100]
                               [--runs 10000] [--seed 0] [--jobs 2]

Runs are drawn with replacement from public tables and one simulated family. A `FleetMonitor` at
alpha = .05, fitted on a reference, follows

quiet     streams in which nothing changes: the share with any alarm, and the same where four trials
          of a task come in a row, with `groups` and without
changes   at run 1,000: the share that is noticed within 4,000 runs, the median delay in runs, and
          how often the cause is right, unclear, or wrong, from 500 runs after the alarm

`drawn` has the changes, `CAUSE` what each should be called. The standard error of .05 in 500
streams is .01.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import expit, logit

from shared import Table, options, over, public_tables, show
from trajscore import TrajectoryArray
from trajscore.core.weights import collapse
from trajscore.datasets import make_trajectories
from trajscore.monitoring import FleetMonitor

CAUSE = {
    "inputs": "forecasts and success",
    "lengths": "lengths",
    "success": "success",
    "unseen": "success at the same forecast",
    "bolder": "forecasts",
    "ranking": "ranking",
}
QUIET = {"all": 0, "trials, groups": 2, "trials": 3}  # and the number of its streams
BEFORE, WITHIN, TRIALS = 1000, 4000, 4


def populations(folder: Path | None) -> Iterator[tuple[str, Table, int]]:
    """Yield tables and the sizes of their references."""
    runs = make_trajectories(20_000, sharpness=1.5, noise=0.5, base_rate=0.7, random_state=0)
    yield "simulated", Table(runs.data, runs.target.astype(float)), 1000
    for name, (X, y, _) in public_tables(folder):
        known = y >= 0
        table = Table(X[known], y[known].astype(float))
        yield name, table, 400 if len(table.y) < 1000 else 2000


def tilted(values: NDArray[Any], mean: float) -> NDArray[Any]:
    """Return chances of runs under which their values have another mean."""
    z = (values - values.mean()) / values.std()

    def excess(slope: float) -> float:
        weight = np.exp(slope * z)
        return float(weight @ values / weight.sum() - mean)

    weight = np.exp(brentq(excess, -5, 5) * z)
    return np.asarray(weight / weight.sum())


def drawn(table: Table, change: str, n: int, rng: Any) -> Table:
    """Draw runs after a change, or where nothing happens."""
    chances = None
    if change == "inputs":
        forecasts = collapse(table.X, "weighted")
        chances = tilted(forecasts, forecasts.mean() - 0.1)
    elif change == "lengths":
        lengths = table.X.lengths.astype(float)
        chances = tilted(lengths, 1.25 * lengths.mean())
    elif change == "success":
        chances = tilted(table.y, table.y.mean() - 0.1)
    rows = rng.choice(len(table.y), n, p=chances)
    X, y = table.X[rows], table.y[rows]
    if change == "unseen":
        y = np.where(rng.random(n) < 0.1 / table.y.mean(), 0.0, y)
    elif change == "bolder":
        X = X.with_cells(expit(logit(np.clip(X.cells, 1e-6, 1 - 1e-6)) + 1.2))
    elif change == "ranking":
        half = rng.random(n) < 0.5
        y[half] = rng.permutation(y[half])
    return Table(renamed(X), y)


def renamed(X: TrajectoryArray) -> TrajectoryArray:
    """Number the runs: one that is drawn twice is two."""
    return TrajectoryArray(X.cells, X.lengths, channels=X.channels)


def quiet(table: Table, n: int, n_runs: int, how: str, seed: Any) -> bool:
    """Return whether a stream without any change gave an alarm."""
    rng = np.random.default_rng(seed)
    X, y, tasks = drawn(table, "", n + n_runs + 1000, rng)
    X, y = X[: n + n_runs], y[: n + n_runs]
    if how.startswith("trials"):
        rows = np.repeat(np.arange(-(-len(y) // TRIALS)), TRIALS)[: len(y)]
        X, y = renamed(X[rows]), y[rows]
        tasks = rows if how == "trials, groups" else None
    fleet = FleetMonitor().fit(X[:n], y[:n], None if tasks is None else tasks[:n])
    fleet.update(X[n:], y[n:], None if tasks is None else tasks[n:])
    return len(fleet.changes_) > 0


def follow(table: Table, n: int, change: str, seed: Any) -> tuple[float, float]:
    """Return the delay (infinite where nothing is noticed), and the verdict."""
    rng = np.random.default_rng(seed)
    X, y, _ = drawn(table, "", n + BEFORE, rng)
    Z, z, _ = drawn(table, change, WITHIN + 1000, rng)
    fleet = FleetMonitor().fit(X[:n], y[:n])
    fleet.update(X[n:], y[n:])
    if fleet.changes_:
        return np.nan, np.nan
    for start in range(0, len(z), 500):
        fleet.update(Z[start : start + 500], z[start : start + 500])
        if fleet.changes_ and fleet.changes_[0].cause:
            break
    first = fleet.changes_[0] if fleet.changes_ else None
    delay = first.alarm - BEFORE if first else np.inf
    if delay > WITHIN or not first.cause:
        return np.inf, np.nan
    return delay, 0.0 if first.cause == "unclear" else 1.0 if first.cause == CAUSE[change] else -1.0


def main() -> None:
    args = options(__doc__, streams=500, changed=100, runs=10_000, seed=0, jobs=2, only=[])
    for name, table, n in populations(args.data):
        if args.only and not any(part in name for part in args.only):
            continue
        rows = {}
        for how, k in QUIET.items():
            calls = [(table, n, args.runs, how, [args.seed, k, s]) for s in range(args.streams)]
            rows[how] = {"with an alarm": np.mean(over(quiet, calls, args.jobs))}
        show(f"{name}, a reference of {n}: {args.streams} streams of {args.runs:,} runs", rows)
        rows = {}
        for k, change in enumerate(CAUSE):
            if change == "lengths" and not np.ptp(table.X.lengths):
                continue
            seeds = [[args.seed, 50 + k, s] for s in range(args.changed)]
            followed = np.array(over(follow, [(table, n, change, s) for s in seeds], args.jobs))
            followed = followed[~np.isnan(followed[:, 0])]
            noticed = np.isfinite(followed[:, 0])
            rows[change] = {"noticed": noticed.mean(), "delay": np.median(followed[:, 0])} | {
                word: (followed[noticed, 1] == verdict).mean()
                for word, verdict in (("right", 1), ("unclear", 0), ("wrong", -1))
            }
        show(f"{name}, changes", rows, 2)


if __name__ == "__main__":
    main()
