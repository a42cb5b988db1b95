"""What happened to my agent: false alarms over all time, delays, and names of causes.

    python benchmarks/fleet.py --public FOLDER [--only NAME ...] [--streams 500] [--changed 100]
                               [--runs 10000] [--seed 0] [--jobs 1] [--forecaster] [--quick]

Runs are drawn with replacement from public tables and one simulated family. A `FleetMonitor` at
alpha = .05, fitted on a reference, with --forecaster one that is fitted on its scores, follows

quiet     streams in which nothing changes: the share with any alarm, and the same where the
          reference has 200 runs, where one outcome in ten is known, where four trials of a task
          come in a row, with `groups` and without, where runs enter as they finish (failures take
          up to 500 runs, successes half of that), and where outcomes are known of half the failures
          and a tenth of the successes, always or only after the reference; beside it, what people
          do: a test of the success rate of every 200 runs against the reference (5%, and 5% over
          all looks)
changes   at run 1,000: the share that is noticed within 4,000 runs, the median delay in runs, that
          of the tests with Bonferroni, and how often the cause is right, unclear, or wrong, from
          500 runs after the alarm

inputs    runs are drawn by their forecast, whose mean falls by a tenth
lengths   runs are drawn by their length, whose mean grows by a quarter
success   runs are drawn by their outcome: a tenth of all succeed no more
unseen    a tenth of all fail instead of succeeding, whatever their forecast
bolder    log odds of all forecasts grow by 1.2
ranking   outcomes of half the runs are shuffled
late      nothing changes, but failures are reported up to 500 runs later than successes; and up to
          500 runs later, both

before and after, of runs of one step: the success rate changes, and changes back after 2,500 runs.
How often an end of the interval of the difference, between the reference and the 500 runs after the
alarm, is on the wrong side of the truth, at most .05 each; beside it, the same of all runs since
the estimated date, which the alarm chose.

The standard error of .05 in 500 streams is .01. --quick makes 4 streams of 1,500 runs.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import expit, logit
from scipy.stats import norm

from intervals import Population, public_tables
from trajscore.calibration import PrefixForecaster
from trajscore.core.array import TrajectoryArray
from trajscore.core.collapse import aggregate
from trajscore.datasets import make_trajectories
from trajscore.gates import RunSet, compare
from trajscore.monitoring import FleetMonitor

Stream = tuple[TrajectoryArray, NDArray[Any]]
CAUSE = {
    "inputs": "forecasts and success",
    "lengths": "lengths",
    "success": "success",
    "unseen": "success at the same forecast",
    "bolder": "forecasts",
    "ranking": "ranking",
}
QUIET = (
    *("all", "200 runs", "a tenth known", "trials, groups", "trials", "late failures", "late"),
    *("as they finish", "complaints", "complaints later"),
)
BEFORE, WITHIN, WINDOW, TRIALS, DELAY = 1000, 4000, 200, 4, 500


def populations(folder: Path | None) -> Iterator[tuple[str, Population, int]]:
    """Yield tables and the sizes of their references."""
    runs = make_trajectories(20_000, sharpness=1.5, noise=0.5, base_rate=0.7, random_state=0)
    yield "simulated", Population(runs.data, runs.target.astype(float)), 1000
    if folder is not None:
        for name, table in public_tables(folder):
            yield name, table, 400 if len(table.y) < 1000 else 2000


def tilted(values: NDArray[Any], mean: float) -> NDArray[Any]:
    """Return chances of runs under which their values have another mean."""
    z = (values - values.mean()) / values.std()

    def excess(slope: float) -> float:
        weight = np.exp(slope * z)
        return float(weight @ values / weight.sum() - mean)

    weight = np.exp(brentq(excess, -5, 5) * z)
    return np.asarray(weight / weight.sum())


def changed(table: Population, change: str, n: int, rng: Any) -> Stream:
    """Draw runs after a change."""
    chances = None
    if change == "inputs":
        forecasts = aggregate(table.X)
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
    return renamed(X), y


def renamed(X: TrajectoryArray) -> TrajectoryArray:
    """Number the runs: one that is drawn twice is two."""
    return TrajectoryArray(X.cells, X.lengths, channels=X.channels)


def drawn(table: Population, n: int, rng: Any) -> Stream:
    """Draw runs to which nothing happens."""
    return changed(table, "", n, rng)


def monitor(is_fitted: bool) -> FleetMonitor:
    """Return a monitor of forecasts, or of scores of which a forecaster makes them."""
    forecaster = PrefixForecaster(features="running", pooled=True) if is_fitted else None
    return FleetMonitor(forecaster)


def quiet(
    table: Population, n_reference: int, n_runs: int, how: str, seed: Any, is_fitted: bool
) -> float:
    """Return whether a stream without any change gave an alarm."""
    rng = np.random.default_rng(seed)
    n = 200 if how == "200 runs" else n_reference
    X, y = drawn(table, n + n_runs + 2 * DELAY, rng)
    if how == "as they finish":  # others have started before, and start after
        ends = np.arange(len(y)) + rng.random(len(y)) * DELAY / (1 + y)
        rows = np.argsort(ends, kind="stable")[DELAY:]
        X, y = renamed(X[rows]), y[rows]
    X, y = X[: n + n_runs], y[: n + n_runs]
    tasks = None
    if how.startswith("trials"):
        rows = np.repeat(np.arange(-(-len(y) // TRIALS)), TRIALS)[: len(y)]
        X, y = renamed(X[rows]), y[rows]
        tasks = rows if how == "trials, groups" else None
    if how == "a tenth known":
        y = np.where(rng.random(len(y)) < 0.1, y, -1)
    if how.startswith("complaints"):
        is_known = rng.random(len(y)) < np.where(y == 0, 0.5, 0.1)
        is_known[:n] |= how == "complaints later"
        y = np.where(is_known, y, -1)
    fleet = monitor(is_fitted).fit(X[:n], y[:n], None if tasks is None else tasks[:n])
    if how.startswith("late"):
        return late(fleet, X[n:], y[n:], both=how == "late", rng=rng)
    fleet.update(X[n:], y[n:], None if tasks is None else tasks[n:])
    return float(len(fleet.changes_) > 0)


def late(
    fleet: FleetMonitor, X: TrajectoryArray, y: NDArray[Any], *, both: bool, rng: Any
) -> float:
    """Follow runs whose outcomes come late; return whether there was an alarm."""
    after = np.where(both | (y == 0), rng.integers(0, DELAY, len(y)), 0)
    due = np.arange(len(y)) + after
    order = np.argsort(due, kind="stable")
    done = 0
    for start in range(0, len(y), 50):
        fleet.update(X[start : start + 50])
        stop = int(np.searchsorted(due[order], start + 50))
        rows = order[done:stop]
        fleet.add_outcomes(X.ids[rows], y[rows])
        done = stop
        if fleet.changes_:
            return 1.0
    return 0.0


def windows(reference: NDArray[Any], y: NDArray[Any]) -> tuple[int, int]:
    """Return the first runs at which a test of each window rejects: at 5%, and over all looks."""
    n = len(y) // WINDOW
    rates = y[: n * WINDOW].reshape(n, WINDOW).mean(axis=1)
    pooled = (rates * WINDOW + reference.sum()) / (WINDOW + len(reference))
    error = np.sqrt(pooled * (1 - pooled) * (1 / WINDOW + 1 / len(reference)))
    p = 2 * norm.sf(np.abs(rates - reference.mean()) / error)
    first = [np.flatnonzero(p < level) for level in (0.05, 0.05 / n)]
    return tuple(int(rows[0] + 1) * WINDOW if len(rows) else -1 for rows in first)


def follow(
    table: Population, n_reference: int, change: str, seed: Any, is_fitted: bool
) -> tuple[float, ...]:
    """Return the delay (infinite where nothing is noticed), and that of tests, and the verdict."""
    rng = np.random.default_rng(seed)
    X, y = drawn(table, n_reference + BEFORE, rng)
    Z, z = changed(table, change, WITHIN + 1000, rng)
    fleet = monitor(is_fitted).fit(X[:n_reference], y[:n_reference])
    fleet.update(X[n_reference:], y[n_reference:])
    if fleet.changes_:
        return np.nan, np.nan, np.nan
    for start in range(0, len(z), 500):
        fleet.update(Z[start : start + 500], z[start : start + 500])
        if fleet.changes_ and fleet.changes_[0].cause:
            break
    by_tests = windows(y[:n_reference], z[:WITHIN])[1]
    first = fleet.changes_[0] if fleet.changes_ else None
    delay = first.alarm - BEFORE if first else np.inf
    if delay > WITHIN or not first.cause:
        return np.inf, by_tests if by_tests > 0 else np.inf, np.nan
    verdict = 0.0 if first.cause == "unclear" else 1.0 if first.cause == CAUSE[change] else -1.0
    return delay, by_tests if by_tests > 0 else np.inf, verdict


def misses(before: float, after: float, seed: Any) -> list[tuple[int, ...]]:
    """Return for each change whether ends of intervals are above and below the truth."""
    rng = np.random.default_rng(seed)
    rates = np.repeat([before, after, before], [BEFORE + 500, 2500, 2500])
    y = (rng.random(len(rates)) < rates).astype(int)
    X = TrajectoryArray(np.full(len(y), 0.5), np.ones(len(y), dtype=int))
    n = 500
    fleet = FleetMonitor().fit(X[:n], y[:n])
    fleet.update(X[n:], y[n:])
    y, rates, results, old_rate = y[n:], rates[n:], [], before
    for change in fleet.changes_:
        if not change.cause:
            break
        chosen = y[change.since - 1 : change.alarm + n]
        counts = [change.after, (int(chosen.sum()), len(chosen))]
        new_rate = rates[change.alarm : change.alarm + n].mean()
        row = []
        for successes, known in counts:
            sets = [
                RunSet(None, np.arange(size) < some)
                for some, size in (change.before, (successes, known))
            ]
            end = compare(*sets).table.iloc[0]
            truth = new_rate - old_rate
            row += [int(end["change_low"] > truth), int(end["change_high"] < truth)]
        results.append(tuple(row))
        old_rate = new_rate
    return results


def main() -> None:
    """Print a table for each population."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--public", type=Path, metavar="FOLDER", help="of public tables")
    parser.add_argument("--only", nargs="+", help="parts of names of tables")
    parser.add_argument("--streams", type=int, default=500)
    parser.add_argument("--changed", type=int, default=100)
    parser.add_argument("--runs", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--forecaster", action="store_true", help="fit one on the reference")
    parser.add_argument("--quick", action="store_true", help="4 streams of 1,500 runs")
    args = parser.parse_args()
    n_quiet, n_changed, n_runs = args.streams, args.changed, args.runs
    if args.quick:
        n_quiet, n_changed, n_runs = 4, 4, 1500
    work = Parallel(args.jobs)
    print("before and after: alarms, ends above and below the truth; of all runs since the date")
    for before, after in ((0.05, 0.12), (0.5, 0.38), (0.95, 0.88)):
        seeds = [[args.seed, 98, stream] for stream in range(n_changed)]
        lists = work(delayed(misses)(before, after, seed) for seed in seeds)
        rows = np.array([row for rows in lists for row in rows])
        print(f"  {before:.2f}, {after:.2f} {len(rows):6}", *rows.mean(axis=0).round(3), flush=True)
    for name, table, n in populations(args.public):
        if args.only and not any(part in name for part in args.only):
            continue
        print(f"{name}, a reference of {n}: alarms in {n_runs:,} quiet runs, {n_quiet} streams")
        for k, how in enumerate(QUIET):
            seeds = [[args.seed, k, stream] for stream in range(n_quiet)]
            settings = table, n, n_runs, how
            alarms = work(delayed(quiet)(*settings, seed, args.forecaster) for seed in seeds)
            print(f"  {how:<16}{np.mean(alarms):.3f}", flush=True)
        by_tests = []
        for stream in range(n_quiet):
            rng = np.random.default_rng([args.seed, 99, stream])
            by_tests.append(windows(rng.choice(table.y, n), rng.choice(table.y, n_runs)))
        rates = (np.array(by_tests) > 0).mean(axis=0)
        print(f"  tests of {WINDOW}     {rates[0]:.3f}, Bonferroni {rates[1]:.3f}")
        print("  change        noticed  delay  by tests  right  unclear  wrong")
        for k, change in enumerate(CAUSE):
            if change == "lengths" and not np.ptp(table.X.lengths):
                continue
            seeds = [[args.seed, 50 + k, stream] for stream in range(n_changed)]
            follows = (delayed(follow)(table, n, change, s, args.forecaster) for s in seeds)
            rows = np.array(work(follows))
            rows = rows[~np.isnan(rows[:, 0])]
            noticed = np.isfinite(rows[:, 0])
            verdicts = [(rows[noticed, 2] == verdict).mean() for verdict in (1, 0, -1)]
            print(
                f"  {change:<14}{noticed.mean():.2f}{np.median(rows[:, 0]):9.0f}"
                f"{np.median(rows[:, 1]):9.0f}"
                f"{verdicts[0]:9.2f}{verdicts[1]:8.2f}{verdicts[2]:8.2f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
