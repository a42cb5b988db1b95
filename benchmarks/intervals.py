"""How often intervals hold the truth: influences against the bootstrap, and what `auto` takes.

    python benchmarks/intervals.py [--simulations 4000] [--bootstraps 500] [--drawn-runs 200000]
                                   [--replicates 999] [--seed 0] [--only NAME ...] [--rst]
    python benchmarks/intervals.py --public FOLDER [--simulations 400] [--sizes 60 200] [--seed 0]
                                   [--only NAME ...] [--rst]

Runs of one forecast each, with a known chance of success; several sizes, ties, overconfidence (so
that some forecasts are clipped), rare failures, and clusters of runs of equal and unequal size.
For each metric: coverage of the 95% interval by influences, by bootstrap (in the first simulations
only, fewer of many runs), and by the rule of `evaluate(intervals="auto")`, which takes influences
where enough runs carry the variance; how often it does, and the coverage where it does; and how far
the ends of the two lie apart, as a share of the width. A calibration error has bounds, MCB an upper
bound, in place of auto. The truth is that of two million runs. The standard error of a coverage of
.95 in 4,000 simulations is .0034, in 500 it is .01.

With `--public`, samples of public tables stand in for simulations. A table in FOLDER (or one that
the package holds) is the population, so its own values are the truth; runs, or whole tasks, are
drawn from it with replacement, 60 and 200 at a time, and judged as `evaluate` judges them as given.
Counted for each metric, its margin over the base rate and what there is by step: how often the
interval holds the truth, lies above it or below it, and is given at all; and its mean width.
Samples with one outcome only are drawn again.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import expit, softmax

from trajscore.core.array import TrajectoryArray
from trajscore.core.outcomes import opposite
from trajscore.core.parallel import Work
from trajscore.core.run_sums import score_cells
from trajscore.core.score_families import get_family
from trajscore.core.statistics import MeanOfRuns, Statistic, all_at_once
from trajscore.core.weighted_steps import weighted_steps
from trajscore.core.weights import as_step_weights
from trajscore.datasets import load_chess
from trajscore.inference.absolute_errors import Parts, absolute_interval
from trajscore.inference.mean_intervals import by_bootstrap, by_influence, is_rare
from trajscore.inference.units import Units, draw_counts, units_of
from trajscore.inference.unseen_losses import unseen_reach
from trajscore.metrics import tps_samples
from trajscore.metrics._decomposition import recalibrated_sums
from trajscore.metrics.run_metrics import DIAGNOSTICS, BinnedError, CollapsedRuns
from trajscore.report import EvaluationOptions
from trajscore.report._cards import card_table
from trajscore.report._data import MARGIN, RUN_METRICS, VALUE, Options
from trajscore.report._equal_length import by_step_table
from trajscore.report._intervals import interval_table
from trajscore.report._rows import make_rows
from trajscore.report._runs import check_predictors, choose_runs

FloatArray = NDArray[np.float64]

LEVEL = 0.95
ON_LOGIT = ("AUROC", "AUPRC", "AURC")
BOUNDED = ("T-ECE", "T-ECE gain", "MCB")
COMPARED = ("AUROC", "TPS log", "T-ECE")
N_TRUTH = 2_000_000
OPTIONS = Options(("log", "brier", ("beta", 4, 2)), as_step_weights(), "weighted")
EVALUATOR = ("hotpotqa", "gsm8k", "mmlupro", "math", "medqa")
# How many simulations share the counts of replicates
_REUSED = 20


@dataclass(frozen=True)
class Setting:
    """What is simulated; sizes of clusters, or one number of runs."""

    sizes: int | tuple[int, ...]
    failures: float = 0.5
    sharpness: float = 1.5
    overconfidence: float = 1.0
    grid: int | None = None

    @cached_property
    def units(self) -> Units:
        """Runs, or clusters of them."""
        if isinstance(self.sizes, int):
            return units_of(None, self.sizes)
        return units_of(np.repeat(np.arange(len(self.sizes)), self.sizes), sum(self.sizes))

    @cached_property
    def centre(self) -> float:
        """Mean of the log-odds at which the failures are as many as they should be."""
        points, weights = np.polynomial.hermite_e.hermegauss(60)
        grid = np.linspace(-10, 10, 4001)
        rates = expit(grid[:, None] + self.sharpness * points) @ weights / weights.sum()
        return float(grid[np.argmin(np.abs(rates - (1 - self.failures)))])

    @property
    def n_runs(self) -> int:
        """Number of runs."""
        return self.sizes if isinstance(self.sizes, int) else sum(self.sizes)


def unequal(n_clusters: int, largest: int) -> tuple[int, ...]:
    """Sizes that rise from 1 to the largest by a constant factor."""
    return tuple(round(size) for size in np.geomspace(1, largest, n_clusters))


SETTINGS = {
    "8 clusters of 5": Setting((5,) * 8),
    "8 clusters of 1 to 16": Setting((1, 1, 2, 2, 4, 6, 8, 16)),
    "40 clusters of 5": Setting((5,) * 40),
    "30 clusters of 1 to 40": Setting(unequal(30, 40)),
    "200 runs": Setting(200),
    "200, ten values": Setting(200, grid=10),
    "200, overconfident": Setting(200, overconfidence=4),
    "200, 5% fail": Setting(200, failures=0.05),
    "1,000 runs": Setting(1000),
    "1,000, ten values": Setting(1000, grid=10),
    "1,000, overconfident": Setting(1000, overconfidence=4),
    "1,000, 5% fail": Setting(1000, failures=0.05),
    "200 clusters of 5": Setting((5,) * 200),
    "200 clusters of 1 to 30": Setting(unequal(200, 30)),
    "5,000 runs": Setting(5000),
    "5,000, 5% fail": Setting(5000, failures=0.05),
}


def draw(
    setting: Setting, rng: np.random.Generator, n_runs: int, codes: NDArray[np.int64] | None
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Outcomes, forecasts that know the chance of success, and forecasts that know half of it."""
    own = rng.normal(size=n_runs)
    if codes is not None:  # a task is hard for all of its runs
        own = np.sqrt(0.5) * (own + rng.normal(size=codes.max() + 1)[codes])
    signal = setting.centre + setting.sharpness * own
    success = (rng.random(n_runs) < expit(signal)).astype(np.float64)
    forecast = expit(setting.overconfidence * signal)
    other = expit(setting.centre + setting.sharpness * (own + rng.normal(size=n_runs)) / 2)
    if setting.grid:
        forecast, other = (np.round(one * setting.grid) / setting.grid for one in (forecast, other))
    return success, forecast, other


def statistics(success: FloatArray, forecast: FloatArray) -> dict[str, Statistic]:
    """Metrics of a forecast that are differentiable."""
    collapsed = CollapsedRuns(forecast, success)
    metrics = {
        name: metric.statistic(collapsed)
        for name, metric in RUN_METRICS.items()
        if not isinstance(metric, BinnedError)
    }
    scores: dict[str, Callable[[FloatArray], FloatArray]] = {
        "TPS log": lambda y: score_cells(get_family("log"), forecast, y),
        "TPS brier": lambda y: score_cells(get_family("brier"), forecast, y),
    }
    for name, of in scores.items():
        metrics[name] = MeanOfRuns(of(success), None, of(opposite(success)))
    return metrics


def bounded_statistics(success: FloatArray, forecast: FloatArray) -> dict[str, Statistic]:
    """Metrics of a forecast that are smallest, and not differentiable, where it is calibrated."""
    X = TrajectoryArray(forecast, np.ones(len(forecast), dtype=np.int64))
    best = recalibrated_sums(weighted_steps(success, X), "log").samples()
    given, other = tps_samples(success, X), tps_samples(opposite(success), X)
    return {
        "T-ECE": DIAGNOSTICS["T-ECE"].statistic(CollapsedRuns(forecast, success)),
        "MCB": MeanOfRuns(best - given, None, best - other),
    }


class Table:
    """Metrics of the forecast, and what some are above those of the other one."""

    def __init__(
        self,
        success: FloatArray,
        forecast: FloatArray,
        other: FloatArray,
        make: Callable[[FloatArray, FloatArray], dict[str, Statistic]],
    ) -> None:
        self.success = success
        self.n_runs, self.metrics = len(success), make(success, forecast)
        compared = [name for name in COMPARED if name in self.metrics]
        others = make(success, other)
        self.others = {name: others[name] for name in compared}
        self.names = [*self.metrics, *(f"{name} gain" for name in compared)]
        self._own, self._other = all_at_once(self.metrics), all_at_once(self.others)
        self._columns = [list(self.metrics).index(name) for name in compared]

    def values(self, counts: FloatArray) -> FloatArray:
        """All values, for counts of shape (..., n_runs)."""
        own = self._own(counts)
        return np.concatenate([own, own[..., self._columns] - self._other(counts)], axis=-1)

    def influences(self) -> FloatArray:
        """Influences of the runs on all of them."""
        own = {name: one.influence(self.n_runs) for name, one in self.metrics.items()}
        gains = [own[name] - one.influence(self.n_runs) for name, one in self.others.items()]
        return np.stack([*own.values(), *gains], axis=1)

    def unseen(self, units: Units) -> FloatArray:
        """How far below and above each value losses that were not seen may reach."""
        reach = [
            unseen_reach(one.change(self.n_runs), units, 1 - LEVEL)
            if isinstance(one, MeanOfRuns)
            else (0.0, 0.0)
            for one in self.metrics.values()
        ]
        return np.array([*reach, *[(0.0, 0.0)] * len(self.others)]).T

    def bounds(self, units: Units, high_by_influence: float) -> tuple[FloatArray, FloatArray]:
        """Bounds of T-ECE, MCB and the gain in T-ECE."""
        ours = Parts(*self.metrics["T-ECE"].parts(self.n_runs))
        theirs = Parts(*self.others["T-ECE"].parts(self.n_runs))
        error = absolute_interval(ours, None, units, LEVEL)
        gain = absolute_interval(ours, theirs, units, LEVEL)
        low, high = zip(error, (0.0, high_by_influence), gain, strict=True)
        return np.array(low), np.array(high)


class Found:
    """Whether intervals hold the truth, simulation by simulation."""

    def __init__(self, truth: FloatArray, names: list[str]) -> None:
        self.truth, self.names = truth, names
        self.rows: dict[str, list[Any]] = {
            key: [] for key in ("value", "influence", "holds", "auto", "bootstrap", "apart")
        }

    def covered(self, low: FloatArray, high: FloatArray) -> NDArray[np.bool_]:
        """Whether each interval holds the truth."""
        return np.asarray((low <= self.truth) & (self.truth <= high))

    def summary(self) -> pd.DataFrame:
        """Coverage of each kind, one row a metric."""
        rows = {key: np.array(row, dtype=np.float64) for key, row in self.rows.items()}
        chosen = rows["holds"].sum(axis=0)
        with np.errstate(invalid="ignore"):
            where_chosen = (rows["influence"] * rows["holds"]).sum(axis=0) / chosen
        return pd.DataFrame(
            {
                "truth": self.truth,
                "bias": (rows["value"].mean(axis=0) - self.truth) / rows["value"].std(axis=0),
                "influence": rows["influence"].mean(axis=0),
                "bootstrap": rows["bootstrap"].mean(axis=0),
                "apart": np.median(rows["apart"], axis=0),
                "auto": rows["auto"].mean(axis=0),
                "chosen": rows["holds"].mean(axis=0),
                "where chosen": where_chosen,
            },
            index=pd.Index(self.names, name="metric"),
        )


def simulate(
    setting: Setting, n_simulations: int, n_bootstraps: int, n_replicates: int, seed: int = 0
) -> pd.DataFrame:
    """Coverage of each kind of interval, one row a metric."""
    rng, n_runs = np.random.default_rng(seed), setting.n_runs
    large = draw(setting, np.random.default_rng(1), N_TRUTH, None)
    found = []
    for make in (statistics, bounded_statistics):
        table = Table(*large, make)
        found.append(Found(table.values(np.ones(N_TRUTH)), table.names))
    if setting.overconfidence == 1 and not setting.grid:
        found[1].truth[:2] = 0.0  # of true chances
    for simulation in range(n_simulations):
        data = draw(setting, rng, n_runs, setting.units.codes)
        while data[0].min() == data[0].max():
            data = draw(setting, rng, n_runs, setting.units.codes)
        counts = None
        if simulation < n_bootstraps:
            if simulation % _REUSED == 0:
                shared = setting.units.to_runs(draw_counts(n_replicates, setting.units, rng))
            counts = shared
            try_intervals(Table(*data, bounded_statistics), setting.units, found[1], counts)
        try_intervals(Table(*data, statistics), setting.units, found[0], counts)
    return pd.concat([one.summary() for one in found])


def try_intervals(table: Table, units: Units, found: Found, counts: FloatArray | None) -> None:
    """Add the intervals of one simulation, by bootstrap too where there are counts."""
    rows, n_runs = found.rows, table.n_runs
    value = table.values(np.ones(n_runs))
    on_logit = [name in ON_LOGIT for name in table.names]
    one = by_influence(value, np.nan_to_num(table.influences()), units, LEVEL, on_logit)
    holds = one.holds & (not is_rare(table.success))
    below, above = table.unseen(units)
    rows["value"].append(value)
    rows["influence"].append(found.covered(one.low, one.high))
    rows["holds"].append(holds)
    if counts is None:
        return
    expanded = units.expanded_level(n_runs, LEVEL)
    low, high = by_bootstrap(table.values(counts), value, one.skewness, expanded)
    apart = np.abs(low - one.low) + np.abs(high - one.high)
    rows["bootstrap"].append(found.covered(low, high))
    rows["apart"].append(apart / 2 / np.maximum(one.high - one.low, 1e-12))
    if "T-ECE" in table.names:
        low, high = table.bounds(units, float(max(one.high[1], value[1] + above[1])))
    else:  # never shorter than by influences
        low = np.where(holds, one.low, np.fmin(one.low, low))
        high = np.where(holds, one.high, np.fmax(one.high, high))
        low, high = np.fmin(low, value - below), np.fmax(high, value + above)
    rows["auto"].append(found.covered(low, high))


def outside(table: pd.DataFrame) -> pd.DataFrame:
    """Where `auto` takes influences in most simulations, and they do not cover .935 to .965."""
    bounded = table.index.get_level_values("metric").isin(BOUNDED)
    judged = table[(table["chosen"] >= 0.5) & ~bounded]
    return judged[~judged["where chosen"].between(0.935, 0.965)]


# -------------------------------------------------------------------- public tables

ENDS = ("value", "low", "high")


@dataclass(frozen=True)
class Population:
    """Runs of a public table, and the task of each, where runs share one."""

    X: TrajectoryArray
    y: FloatArray
    tasks: NDArray[Any] | None = None

    def draw(self, n: int, rng: np.random.Generator) -> Population:
        """Draw n runs, or as many in whole tasks, with replacement and both outcomes."""
        while True:
            if self.tasks is None:
                rows, tasks = rng.integers(len(self.y), size=n), None
            else:
                names = np.unique(self.tasks)
                chosen = rng.choice(names, round(n * len(names) / len(self.y)))
                parts = [np.flatnonzero(self.tasks == name) for name in chosen]
                rows = np.concatenate(parts)
                tasks = np.repeat(np.arange(len(parts)), [len(part) for part in parts])
            if 0 < self.y[rows].mean() < 1:
                X = TrajectoryArray(self.X[rows].cells, self.X.lengths[rows])
                return Population(X, self.y[rows], tasks)

    def intervals(self, n_resamples: int) -> pd.DataFrame:
        """Return value, low and high of all that a report says of forecasts as given."""
        judged = choose_runs(check_predictors(self.X, self.y, self.tasks, None), None, "failure")
        rows = make_rows(judged, None, OPTIONS.weights, Work(), [])
        draws = EvaluationOptions(n_resamples=n_resamples)
        every = interval_table(rows, judged.runs, OPTIONS, draws, Work())[0].unstack("metric")
        table = every.loc[[rows[0].key]].stack("metric", future_stack=True)
        table = table.droplevel(["predictor", "form"])
        cards = card_table(rows, OPTIONS, draws, Work())
        steps = by_step_table(rows, OPTIONS, draws, Work()).droplevel(["predictor", "form"])
        columns = {
            "": table[[*VALUE]],
            "margin of": table[[*MARGIN]],
            "card, margin of": cards[["as_given", "as_given_low", "as_given_high"]],
            "by step, AUROC": steps[["AUROC", "AUROC_low", "AUROC_high"]],
            "by step, margin": steps[[*MARGIN]],
        }
        parts = [
            one.set_axis(ENDS, axis=1).set_axis([(name, str(key)) for key in one.index])
            for name, one in columns.items()
        ]
        return pd.concat(parts).dropna(subset="value")


def public_tables(folder: Path) -> Iterator[tuple[str, Population]]:
    """Read what there is of the public tables; those that are not at hand are named."""
    X, y = load_chess(return_X_y=True)
    for name in X.channels:
        yield f"chess, {name}", Population(X[y >= 0][name], y[y >= 0].astype(float))
    columns = {
        "evaluator/{}_w_scores_compressed": ("uq_problem_idx", "num_steps", "judge_probability"),
        "tot/{}": ("run_id", "step", "value"),
        "winprob/{}": ("game", "step", "win_probability"),
    }
    outcomes, files = ("solved", "solved", "won"), (EVALUATOR, ["game24_gpt4"], ["march_madness"])
    for (pattern, fields), outcome, names in zip(columns.items(), outcomes, files, strict=True):
        for name in names:
            path = folder / f"{pattern.format(name)}.csv.gz"
            if not path.exists():
                print(f"{name} is not at hand: there is no file {path}")
                continue
            frame = pd.read_csv(path)
            used = dict(zip(("id", "step", "value"), fields, strict=True))
            X, y = TrajectoryArray.from_frame(frame, **used, outcome=outcome)
            tasks = None
            if "task" in frame:
                tasks = frame.groupby(fields[0])["task"].first().loc[X.ids].to_numpy()
            yield name, Population(X, y.astype(float), tasks)
    for path in sorted(folder.glob("expected_cost/*")):
        if path.is_dir():  # one answer each: is the likeliest class right?
            P = softmax(np.load(path / "scores.npy").astype(float), axis=1)
            right = (P.argmax(axis=1) == np.load(path / "targets.npy")).astype(float)
            X = TrajectoryArray(P.max(axis=1), np.ones(len(P), dtype=np.int64))
            yield path.name, Population(X, right)


def on_public(
    population: Population, n: int, n_samples: int, n_resamples: int, seed: int
) -> pd.DataFrame:
    """Return coverage of each interval in samples of n runs of a public table."""
    truth = population.intervals(2)["value"]
    rng = np.random.default_rng([seed, n])
    samples = (population.draw(n, rng).intervals(n_resamples) for _ in range(n_samples))
    every = pd.concat(samples)
    every = every[every.index.isin(truth.index)]
    by_cell = every.groupby(level=0, sort=False)
    told = every.dropna()
    target = truth.loc[told.index].to_numpy()
    # a rounding error is not a miss: a constant's margin is 0
    slack = 1e-9 * (1 + np.abs(target))
    judged = pd.DataFrame(
        {
            "covered": (told["low"] - slack <= target) & (target <= told["high"] + slack),
            "above": told["low"] - slack > target,
            "below": told["high"] + slack < target,
            "width": told["high"] - told["low"],
        }
    )
    found = judged.groupby(level=0, sort=False).mean()
    found.insert(0, "truth", truth.loc[found.index])
    found["given"] = judged.groupby(level=0).size() / by_cell.size()
    found["samples"] = by_cell.size()
    found.index = [" ".join(key).strip() for key in found.index]
    return found


def main_public(args: argparse.Namespace) -> None:
    """Print a table for each public table and size, and what covers less than .93."""
    tables = {}
    for name, population in public_tables(args.public):
        if args.only is None or any(one in name for one in args.only):
            for n in args.sizes:
                start = time.perf_counter()
                counts = args.simulations or 400, args.replicates
                tables[name, n] = on_public(population, n, *counts, args.seed)
                seconds = time.perf_counter() - start
                print(f"\n{name}, {n} of {len(population.y):,} runs ({seconds:.0f} s)")
                print(tables[name, n].round(4).to_string(), flush=True)
    every = pd.concat(tables, names=["table", "n", "metric"])
    # of steps that few samples reach, a coverage says little
    short = every[(every["covered"] < 0.93) & (every["samples"] >= 50)]
    print("\nCoverage below .93:")
    print(short.round(3).to_string() if len(short) else "nowhere")
    if args.rst:
        print(public_rst(tables))


# -------------------------------------------------------------------- tables


SHOWN = ("TPS log", "TPS brier", "AUROC", "AUPRC", "AURC", "ECUAS_0", "AUROC gain", "T-ECE", "MCB")


PUBLIC = {
    "log": "margin of TPS log",
    "Brier": "margin of TPS brier",
    "beta": "margin of TPS beta(4,2)",
    "ECUAS_0": "ECUAS_0",
    "ECUAS_1": "ECUAS_1",
    "MCB": "MCB log",
}
BY_STEP = {"AUROC at a step": "by step, AUROC ", "margin at a step": "by step, margin "}


def public_rst(tables: Mapping[tuple[str, int], pd.DataFrame]) -> str:
    """Coverage in samples of public tables, for docs; by step the mean, and the lowest."""
    lines = [["table", "runs", *PUBLIC, *BY_STEP]]
    for (name, n), table in tables.items():
        covered = [_share(table["covered"].get(key, np.nan)) for key in PUBLIC.values()]
        for start in BY_STEP.values():
            steps = table[table.index.str.startswith(start) & (table["samples"] >= 50)]
            steps = steps.dropna(subset="covered")
            if len(steps):
                mean = np.average(steps["covered"], weights=steps["samples"] * steps["given"])
                covered.append(f"{_share(mean)} ({_share(steps['covered'].min())})")
            else:
                covered.append("")
        lines.append([name, str(n), *covered])
    return _rst(lines)


def _share(number: float) -> str:
    return "" if np.isnan(number) else f"{number:.3f}".removeprefix("0")


def rst_table(tables: Mapping[str, pd.DataFrame]) -> str:
    """Coverage as `auto` has it, for docs: of all simulations where it takes influences in most."""
    cells = {
        name: [_cell(metric, table.loc[metric]) for metric in SHOWN]
        for name, table in tables.items()
    }
    return _rst([["95% of", *SHOWN], *([name, *row] for name, row in cells.items())])


def _rst(lines: list[list[str]]) -> str:
    widths = [max(len(line[column]) for line in lines) for column in range(len(lines[0]))]
    rule = "  ".join("=" * width for width in widths)
    text = [
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    ]
    return "\n".join([rule, text[0], rule, *text[1:], rule])


def _cell(metric: str, row: pd.Series) -> str:
    kinds = ("auto", "influence", "where chosen")
    covered = {name: _share(row[name]) for name in kinds}
    if metric in BOUNDED:
        return covered["auto"]
    if row["chosen"] >= 0.5:
        return covered["where chosen"]
    return f"b {covered['auto']} ({covered['influence']})"


def main() -> None:
    """Print a table for each setting, and where intervals fail."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--simulations", type=int, help="default: 4000, or 400 of public tables")
    parser.add_argument("--bootstraps", type=int, default=500)
    parser.add_argument("--drawn-runs", type=int, default=200_000, help="runs times bootstraps")
    parser.add_argument("--replicates", type=int, default=999)
    parser.add_argument("--seed", type=int, default=0, help="of the simulations")
    parser.add_argument("--only", nargs="+", help="settings, or parts of names of public tables")
    parser.add_argument("--rst", action="store_true", help="also print the table of the docs")
    parser.add_argument("--public", type=Path, metavar="FOLDER", help="of public tables")
    parser.add_argument("--sizes", type=int, nargs="+", default=[60, 200], help="of their samples")
    args = parser.parse_args()
    if args.public:
        main_public(args)
        return
    tables = {}
    for name in args.only or SETTINGS:
        start = time.perf_counter()
        setting = SETTINGS[name]
        n_bootstraps = min(args.bootstraps, args.drawn_runs // setting.n_runs)
        repeats = args.simulations or 4000, n_bootstraps, args.replicates
        tables[name] = simulate(setting, *repeats, args.seed)
        print(f"\n{name} ({time.perf_counter() - start:.0f} s)")
        print(tables[name].round(3).to_string(), flush=True)
    every = pd.concat(tables, names=["setting"])
    failing = outside(every)
    print("\nInfluences chosen, coverage outside .935 to .965:")
    print(failing.round(3).to_string() if len(failing) else "nowhere")
    if args.rst:
        print(rst_table(tables))


if __name__ == "__main__":
    main()
