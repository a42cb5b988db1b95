"""What a hundred labels and a judge say of two thousand runs: how often intervals hold, how short.

    python benchmarks/labels.py --public FOLDER [--simulations 2000] [--labels 50 100] [--seed 0]
                                [--only NAME ...] [--judges NAME ...] [--quick]

A public table (of FOLDER, or one that the package holds) is the population, and one family of
simulated runs. 2,000 runs are drawn from it with replacement, or whole tasks where runs share one.
Judges: right on 90% of the successes and 80% of the failures; on 97% and 92%; wrong on 15%, more
often the farther the trace is off ("hard runs"); the trace's last forecast above one half ("own");
and none. Compared are

labels only   the labelled runs, drawn uniformly, by themselves
uniform       `label_intervals`, uniform labels
chosen        `label_intervals`, runs chosen by `LabelDesign`, for the margin

For the success rate, TPS, its margin over the best constant, and the false alarm rate of a rule
that flags the fifth of the runs whose lowest forecast is lowest: the coverage of 95% intervals, and
how many labels one label is worth: the mean squared error of labels only over that of the method.
Intervals that are withheld are counted, and in neither. The standard error of a coverage of .95 in
2,000 simulations is .005, in 500 it is .01. --quick makes 20, to see that the script runs.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from intervals import Population, public_tables
from trajscore.core.array import TrajectoryArray
from trajscore.core.collapse import aggregate
from trajscore.core.score_families import get_family
from trajscore.core.weights import as_step_weights
from trajscore.datasets import make_trajectories
from trajscore.inference import LabelDesign, label_intervals
from trajscore.inference._labels import (
    OutcomeRatio,
    above_constant,
    rate_of,
    score_of_outcomes,
    shares_by_outcome,
)
from trajscore.inference.mean_intervals import interval_of
from trajscore.inference.rate_intervals import wilson_interval

FloatArray = NDArray[np.float64]
N_RUNS = 2000
METRICS = ("success rate", "TPS log", "TPS log margin", "false alarm rate")
METHODS = ("labels only", "uniform", "chosen")
JUDGES = {"90/80": (0.9, 0.8), "97/92": (0.97, 0.92)}
JUDGE_NAMES = (*JUDGES, "hard runs", "own", "none")
LOG, EARLY = get_family("log"), as_step_weights()


class Sample(NamedTuple):
    """Runs of a population, and what a judge says of them."""

    X: TrajectoryArray
    y: FloatArray
    tasks: NDArray[Any] | None
    judge: FloatArray | None
    limit: float

    @property
    def flagged(self) -> FloatArray:
        """Runs of which some forecast is low."""
        return (aggregate(self.X, "min") <= self.limit).astype(float)


def populations(folder: Path | None) -> Iterator[tuple[str, Population]]:
    """Yield the public tables, those of one answer a run last, and simulated runs."""
    runs = make_trajectories(20_000, sharpness=1.5, noise=0.5, base_rate=0.7, random_state=0)
    yield "simulated", Population(runs.data, runs.target.astype(float))
    if folder is not None:
        yield from public_tables(folder)


def judge_runs(name: str, X: TrajectoryArray, y: FloatArray, rng: Any) -> FloatArray | None:
    """Draw the verdicts of a judge."""
    if name == "none":
        return None
    if name == "own":
        return (aggregate(X, "last") > 0.5).astype(float)
    if name in JUDGES:
        wrong = np.where(y == 1, *(1 - share for share in JUDGES[name]))
    else:
        distance = np.abs(y - aggregate(X, "mean"))
        wrong = np.minimum(distance * 0.15 / distance.mean(), 0.9)
    return np.where(rng.random(len(y)) < wrong, 1 - y, y)


def ratios(X: TrajectoryArray, rate: float, flagged: FloatArray) -> list[OutcomeRatio]:
    """Return the metrics; the margin is that above a constant."""
    tps = score_of_outcomes(X, LOG, EARLY)
    alarms = shares_by_outcome(flagged)[0]
    return [rate_of(len(X)), tps, above_constant(tps, LOG, rate), alarms]


def plain(
    X: TrajectoryArray, y: FloatArray, tasks: Any, flagged: FloatArray
) -> list[tuple[float, float, float]]:
    """Return each metric with its usual interval, for runs that are all labelled."""
    rows = []
    for ratio in ratios(X, EARLY.of(X).rate(y), flagged):
        value, influence, _ = ratio.at(y)
        if ratio.is_rate and tasks is None:
            low, high = wilson_interval(value, ratio.terms(y)[1].sum())
        else:
            _, low, high = interval_of(value, influence, tasks, 0.95)
        rows.append((value, float(low), float(high)))
    return rows


def estimates(sample: Sample, n_labels: int, rng: Any) -> dict[str, list[Any]]:
    """Return value, low and high of each metric by each method."""
    X, y, tasks, judge, _ = sample
    flagged = sample.flagged
    n = len(y)
    rows = np.sort(rng.choice(n, n_labels, replace=False))
    few = np.full(n, -1.0)
    few[rows] = y[rows]
    own = None if tasks is None else tasks[rows]
    out = {"labels only": plain(X[rows], y[rows], own, flagged[rows])}
    options = {"judge": judge, "groups": tasks, "flagged": flagged}
    table = label_intervals(X, few, label_probability=n_labels / n, **options)
    out["uniform"] = table.loc[[*METRICS], ["value", "low", "high"]].to_numpy()
    seed = int(rng.integers(2**31))
    design = LabelDesign(n_labels, random_state=seed).fit(X, judge=judge, groups=tasks)
    chosen = np.full(n, -1.0)
    chosen[design.query()] = y[design.query()]
    table = label_intervals(X, chosen, label_probability=design.probabilities_, **options)
    out["chosen"] = table.loc[[*METRICS], ["value", "low", "high"]].to_numpy()
    return out


def simulate(
    population: Population, judge: str, n_labels: int, n_simulations: int, seed: list[int]
) -> pd.DataFrame:
    """Return coverage, worth and the share of intervals withheld, by method and metric."""
    rng = np.random.default_rng(seed)
    limit = float(np.quantile(aggregate(population.X, "min"), 0.2))
    whole = Sample(population.X, population.y, None, None, limit)
    truth = np.array([row[0] for row in plain(whole.X, whole.y, None, whole.flagged)])
    every = defaultdict(list)
    for _ in range(n_simulations):
        drawn = population.draw(N_RUNS, rng)
        verdict = judge_runs(judge, drawn.X, drawn.y, rng)
        sample = Sample(drawn.X, drawn.y, drawn.tasks, verdict, limit)
        for method, rows in estimates(sample, n_labels, rng).items():
            every[method].append(np.asarray(rows, dtype=float))
    usual = np.stack(every["labels only"])
    cells = {}
    for method, rows in every.items():
        value, low, high = np.stack(rows).transpose(2, 0, 1)
        has_interval = ~np.isnan(low)
        for k, metric in enumerate(METRICS):
            here = has_interval[:, k]
            if not here.any():
                continue
            error = (value[here, k] - truth[k]) ** 2
            base = (usual[here, k, 0] - truth[k]) ** 2
            cells[method, metric] = {
                "covered": float(((low[here, k] <= truth[k]) & (truth[k] <= high[here, k])).mean()),
                "worth": float(base.mean() / error.mean()) if error.any() else np.nan,
                "width": float((high[here, k] - low[here, k]).mean()),
                "withheld": float(1 - here.mean()),
            }
    return pd.DataFrame(cells).T


def show(name: str, table: pd.DataFrame) -> None:
    """Print a cell of the benchmark, one line a method."""
    print(name)
    for method in METHODS:
        parts = []
        for metric in METRICS:
            if (method, metric) in table.index:
                row = table.loc[(method, metric)]
                held = f" -{row['withheld']:.2f}" if row["withheld"] else ""
                parts.append(f"{row['covered']:.3f} x{row['worth']:.2f}{held}")
        if parts:
            print(f"  {method:<12}" + "".join(f"{part:<20}" for part in parts), flush=True)


def main() -> None:
    """Print coverage and worth for each table, judge and number of labels, then their means."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--public", type=Path, metavar="FOLDER", help="of public tables")
    parser.add_argument("--simulations", type=int, default=2000)
    parser.add_argument("--labels", type=int, nargs="+", default=[50, 100])
    parser.add_argument("--judges", nargs="+", default=JUDGE_NAMES, choices=JUDGE_NAMES)
    parser.add_argument("--only", nargs="+", help="parts of names of tables")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--quick", action="store_true", help="20 simulations of each setting")
    args = parser.parse_args()
    n_simulations = 20 if args.quick else args.simulations
    print(f"{n_simulations} simulations; coverage x worth -share withheld, of {', '.join(METRICS)}")
    tables: dict[Any, pd.DataFrame] = {}
    for name, population in populations(args.public):
        if args.only and not any(part in name for part in args.only):
            continue
        for n_labels in args.labels:
            for k, judge in enumerate(JUDGE_NAMES):
                if judge not in args.judges:
                    continue
                seed = [args.seed, n_labels, k]
                table = simulate(population, judge, n_labels, n_simulations, seed)
                tables[name, n_labels, judge] = table
                show(f"{name}, {n_labels} labels, judge {judge}", table)
    every = pd.concat(tables, names=["table", "labels", "judge", "method", "metric"])
    by = every.groupby(level=["labels", "judge", "method", "metric"], sort=False)
    with pd.option_context("display.max_rows", None, "display.width", 120):
        summary = by.agg({"covered": ["mean", "min"], "worth": ["mean", "min"]})
        print(summary.round(3))
        by = every["covered"].groupby(level=["table", "labels", "method"], sort=False)
        print(by.agg(["mean", "min"]).round(3))


if __name__ == "__main__":
    main()
