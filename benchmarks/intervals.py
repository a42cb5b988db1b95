"""How often intervals hold the truth.

    python benchmarks/intervals.py simulated [--simulations 500] [--seed 0] [--only NAME ...]
    python benchmarks/intervals.py public    [--data FOLDER] [--samples 200] [--seed 0]
                                             [--only NAME ...]
    python benchmarks/intervals.py labels    [--samples 500]
    python benchmarks/intervals.py means     [--simulations 500] [--seed 0]

"simulated": intervals of `evaluate`, of runs of one forecast each that knows their chance of
success. The truth is that of 400,000 runs, and 0 for errors of calibration.

"public": the same of runs, or whole tasks, drawn from a public table, which is the population.

"labels": `label_intervals` from 100 labels of 2,000 runs, drawn uniformly or by `LabelDesign`; a
judge calls 10% of the successes and 20% of the failures wrong.

"means": `paired_bootstrap` of few runs, alone and with the scores that runs would have had, had
they ended the other way; independent, or in tasks of 5 that end alike.
"""

import warnings
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import expit

from shared import Table, base_rate, coverage, covered, dispatch, over, public_tables, show
from trajscore import TrajectoryArray, evaluate
from trajscore.datasets import make_trajectories
from trajscore.inference import LabelDesign, label_intervals, paired_bootstrap
from trajscore.metrics import tps_samples, tps_score
from trajscore.report import EvaluationOptions


def of_report(table: Table, n_resamples: int) -> pd.DataFrame:
    """Return value, low and high of what a report says of forecasts as args."""
    X, y, tasks = table
    draws = EvaluationOptions(n_resamples=n_resamples)
    report = evaluate(X, y, groups=tasks, calibrator=None, options=draws)
    of = report.intervals.sort_index().loc[report.table.index[0]]
    value = of[["value", "low", "high"]]
    margin = of[["margin", "margin_low", "margin_high"]].set_axis(value.columns, axis=1)
    return pd.concat([value, margin.rename("margin of {}".format)]).dropna(subset="value")


def show_coverage(title: str, truth: pd.Series, drawn: list[Table], jobs: int) -> None:
    every = pd.concat(over(of_report, [(table, 1000) for table in drawn], jobs))
    every = every[every.index.isin(truth.index)]
    stated = every.dropna()
    target = truth.loc[stated.index].to_numpy()
    # a rounding error is not a miss: a constant's margin is 0
    slack = 1e-9 * (1 + np.abs(target))
    stated = stated.assign(covered=covered(stated["low"] - slack, stated["high"] + slack, target))
    stated["width"] = stated["high"] - stated["low"]
    table = stated.groupby(level=0, sort=False)[["covered", "width"]].mean()
    counts = every.groupby(level=0).size()
    show(title, table.assign(truth=truth.reindex(table.index), samples=counts))


@dataclass(frozen=True)
class Setting:
    """What is simulated; sizes of clusters, or one number of runs."""

    sizes: int | tuple[int, ...]
    failures: float = 0.5
    grid: int | None = None

    @cached_property
    def centre(self) -> float:
        """Mean of the log-odds at which the failures are as many as they should be."""
        points, weights = np.polynomial.hermite_e.hermegauss(60)
        grid = np.linspace(-10, 10, 4001)
        rates = expit(grid[:, None] + SHARPNESS * points) @ weights / weights.sum()
        return float(grid[np.argmin(np.abs(rates - (1 - self.failures)))])

    def draw(self, rng: np.random.Generator, sizes: int | tuple[int, ...]) -> Table:
        """Draw runs with forecasts that know the chance of success, and both outcomes."""
        n_runs = int(np.sum(sizes))
        own, tasks = rng.normal(size=n_runs), None
        if not isinstance(sizes, int):  # a task is hard for all of its runs
            tasks = np.repeat(np.arange(len(sizes)), sizes)
            own = np.sqrt(0.5) * (own + rng.normal(size=len(sizes))[tasks])
        forecast = expit(self.centre + SHARPNESS * own)
        y = (rng.random(n_runs) < forecast).astype(float)
        if not 0 < y.mean() < 1:
            return self.draw(rng, sizes)
        if self.grid:
            forecast = np.round(forecast * self.grid) / self.grid
        return Table(TrajectoryArray(forecast, np.ones(n_runs, dtype=np.int64)), y, tasks)


SHARPNESS, N_TRUTH = 1.5, 400_000
SETTINGS = {
    "8 clusters of 5": Setting((5,) * 8),
    # sizes rise from 1 to the largest by a constant factor
    "30 clusters of 1 to 40": Setting(tuple(round(size) for size in np.geomspace(1, 40, 30))),
    "200 runs": Setting(200),
    "200, ten values": Setting(200, grid=10),
    "200, 5% fail": Setting(200, failures=0.05),
    "1,000 runs": Setting(1000),
    "5,000, 5% fail": Setting(5000, failures=0.05),
}
ERRORS = ("S-ECE", "S-ECE early", "T-ECE", "MCB log")


def simulated(args: Any) -> None:
    for name in args.only or SETTINGS:
        setting, rng = SETTINGS[name], np.random.default_rng(args.seed)
        truth = of_report(setting.draw(np.random.default_rng(1), N_TRUTH), 2)["value"]
        if not setting.grid:
            truth[truth.index.isin(ERRORS)] = 0.0  # of true chances
        drawn = [setting.draw(rng, setting.sizes) for _ in range(args.simulations)]
        show_coverage(name, truth, drawn, args.jobs)


def sample(table: Table, n: int, rng: np.random.Generator) -> Table:
    """Draw n runs, or as many in whole tasks, with replacement and both outcomes."""
    X, y, tasks = table
    while True:
        if tasks is None:
            rows, drawn = rng.integers(len(y), size=n), None
        else:
            names = np.unique(tasks)
            chosen = rng.choice(names, round(n * len(names) / len(y)))
            parts = [np.flatnonzero(tasks == name) for name in chosen]
            rows = np.concatenate(parts)
            drawn = np.repeat(np.arange(len(parts)), [len(part) for part in parts])
        if 0 < y[rows].mean() < 1:
            return Table(TrajectoryArray(X[rows].cells, X.lengths[rows]), y[rows], drawn)


def public(args: Any) -> None:
    for name, (X, y, tasks) in public_tables(args.data):
        if args.only and not any(one in name for one in args.only):
            continue
        known = y >= 0
        table = Table(X[known], y[known].astype(float), None if tasks is None else tasks[known])
        truth = of_report(table, 2)["value"]
        for n in (60, 200):
            rng = np.random.default_rng([args.seed, n])
            drawn = [sample(table, n, rng) for _ in range(args.samples)]
            show_coverage(f"{name}, {n} of {len(table.y):,} runs", truth, drawn, args.jobs)


def labelled(table: Table, seed: int) -> dict[tuple[str, str], tuple[float, float]]:
    """Return intervals from a hundred labels and a judge, by metric and design."""
    rng, n, n_labels = np.random.default_rng(seed), 2000, 100
    X, y, _ = sample(table, n, rng)
    wrong = rng.random(n) < np.where(y == 1, 0.1, 0.2)
    judge = np.where(wrong, 1 - y, y)
    design = LabelDesign(n_labels, random_state=seed).fit(X, judge=judge)
    chosen = {"uniform": (rng.choice(n, n_labels, replace=False), n_labels / n)}
    chosen["chosen"] = design.query(), design.probabilities_
    ends = {}
    for how, (rows, chance) in chosen.items():
        known = np.full(n, -1.0)
        known[rows] = y[rows]
        of = label_intervals(X, known, label_probability=chance, judge=judge)
        ends |= {(metric, how): (of.low[metric], of.high[metric]) for metric in LABELLED}
    return ends


LABELLED = ("success rate", "TPS log", "TPS log margin")


def labels(args: Any) -> None:
    runs = make_trajectories(20_000, sharpness=1.5, noise=0.5, base_rate=0.7, random_state=0)
    table = Table(runs.data, runs.target.astype(float))
    score = tps_score(table.y, table.X)
    constant = tps_score(table.y, base_rate(table.X, table.y))
    truth = dict(zip(LABELLED, (table.y.mean(), score, score - constant), strict=True))
    samples = over(labelled, [(table, seed) for seed in range(args.samples)], args.jobs)
    rows: dict[str, dict[str, float]] = {}
    for metric, how in samples[0]:
        ends = np.array([one[metric, how] for one in samples])
        rows.setdefault(metric, {})[how] = coverage(*ends.T, truth[metric])
    show(f"coverage in {args.samples} simulations", rows)


def scores_of(failed: np.ndarray, risk: np.ndarray) -> pd.DataFrame:
    """Return what `paired_bootstrap` takes: one number for each run of whether it failed."""
    y, n = 1.0 - failed, len(failed)
    sure = [TrajectoryArray(one, np.ones(n, dtype=np.int64)) for one in (1 - risk, 1 - risk / 2)]
    logs = [tps_samples(y, X) for X in sure]
    columns = {"rate": failed, "log": logs[0], "brier": tps_samples(y, sure[0], score="brier")}
    return pd.DataFrame(columns | {"log margin": logs[0] - logs[1]}).astype(float)


def means_of_few(rate: float, n: int, in_tasks: bool, seed: int) -> pd.DataFrame:
    """Draw runs that fail at a rate; return low, high and truth of each mean, by method."""
    rng = np.random.default_rng(seed)
    task = np.arange(n) // 5 if in_tasks else np.arange(n)
    risk = np.clip(rate * rng.uniform(0.5, 1.5, task[-1] + 1), 0, 1)[task]
    failed = rng.random(task[-1] + 1)[task] < risk
    pair = [scores_of(one, risk) for one in (failed, ~failed)]
    fine = np.clip(rate * (np.arange(1000) + 500.5) / 1000, 0, 1)  # all risks that there are
    ends = [scores_of(np.full(1000, failing), fine) for failing in (True, False)]
    truth = (ends[0].mul(fine, axis=0) + ends[1].mul(1 - fine, axis=0)).mean()
    parts, how = {}, {"groups": task if in_tasks else None, "n_resamples": 1000}
    warnings.simplefilter("ignore")  # of scores alone
    for method in ("percentile", "bca"):
        for name, other in {"alone": None, "with other": pair[1]}.items():
            of = paired_bootstrap(pair[0], method=method, other=other, random_state=seed, **how)
            parts[method, name] = of[["low", "high"]]
    return pd.concat(parts).assign(truth=truth.reindex(pair[0].columns.tolist() * 4).to_numpy())


def means(args: Any) -> None:
    for in_tasks in (False, True):
        rows = {}
        for rate in (0.02, 0.05, 0.1, 0.5):
            for n in (20, 50, 100):
                seeds = range(args.seed, args.seed + args.simulations)
                every = over(means_of_few, [(rate, n, in_tasks, seed) for seed in seeds], args.jobs)
                table = pd.concat(every)
                held = covered(table["low"] - 1e-9, table["high"] + 1e-9, table["truth"])
                rows[rate, n] = held.groupby(level=[0, 1, 2], sort=False).mean()
        title = "tasks of 5 runs that end alike" if in_tasks else "independent runs"
        show(f"coverage in {args.simulations} simulations, {title}", pd.DataFrame(rows))


if __name__ == "__main__":
    commands = {"simulated": simulated, "public": public, "labels": labels, "means": means}
    dispatch(__doc__, commands, simulations=500, samples=200, seed=0, jobs=2, only=[])
