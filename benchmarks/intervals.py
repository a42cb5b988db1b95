"""How often intervals hold the truth: influences against the bootstrap, and what `auto` takes.

    python benchmarks/intervals.py simulated [--simulations 4000] [--bootstraps 500]
                                             [--drawn-runs 200000] [--seed 0] [--only NAME ...]
    python benchmarks/intervals.py public    [--data FOLDER] [--samples 200] [--seed 7]
                                             [--only NAME ...]
    python benchmarks/intervals.py labels    [--samples 500]

"simulated": runs of one forecast each, with a known chance of success; several sizes, ties,
overconfidence (so that some forecasts are clipped), rare failures, and clusters of runs of equal
and unequal size. For each metric: coverage of the 95% interval by influences, by bootstrap (in
the first simulations only, fewer of many runs), and by the rule of
`EvaluationOptions(intervals="auto")`, which takes influences where enough runs carry the
variance; how often it does, and the coverage where it does. A calibration error has bounds, MCB
an upper bound, in place of auto. The truth is that of two million runs. The standard error of a
coverage of .95 in 4,000 simulations is .0034, in 500 .01.

"public": a public table is the population, so its own values are the truth; runs, or whole tasks,
are drawn from it with replacement, 60 and 200 at a time, and judged by `evaluate` as given: how
often the interval of each metric, of its margin over the base rate and of what there is by step
holds the truth, and how wide it is. Samples with one outcome only are drawn again.

"labels": 100 of 2,000 simulated runs are labelled, drawn uniformly or chosen by `LabelDesign`, and
a judge calls 10% of the successes and 20% of the failures wrong: how often `label_intervals` holds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import expit

from shared import Table, options, over, public_tables, show
from trajscore import TrajectoryArray, evaluate
from trajscore.core.outcomes import opposite
from trajscore.core.run_sums import score_cells
from trajscore.core.score_families import get_family
from trajscore.core.statistics import MeanOfRuns, Statistic, all_at_once
from trajscore.core.weighted_steps import weighted_steps
from trajscore.core.weights import as_step_weights
from trajscore.datasets import make_trajectories
from trajscore.inference import LabelDesign, label_intervals
from trajscore.inference.absolute_errors import Parts, absolute_interval
from trajscore.inference.mean_intervals import by_bootstrap, by_influence, is_rare
from trajscore.inference.units import Units, draw_counts, units_of
from trajscore.inference.unseen_losses import unseen_reach
from trajscore.metrics import tps_samples, tps_score
from trajscore.metrics._decomposition import recalibrated_sums
from trajscore.metrics.run_metrics import DIAGNOSTICS, BinnedError, CollapsedRuns
from trajscore.report import EvaluationOptions
from trajscore.report._data import RUN_METRICS

FloatArray = NDArray[np.float64]

LEVEL = 0.95
ON_LOGIT = ("AUROC", "AUPRC", "AURC")
COMPARED = ("AUROC", "TPS log", "T-ECE")
N_TRUTH, N_REPLICATES = 2_000_000, 999
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


class Judged:
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


def covered(low: FloatArray, high: FloatArray, truth: FloatArray) -> NDArray[np.bool_]:
    """Whether each interval holds the truth."""
    return np.asarray((low <= truth) & (truth <= high))


def try_intervals(
    judged: Judged, units: Units, truth: FloatArray, counts: FloatArray | None
) -> dict[str, FloatArray]:
    """Say which intervals hold the truth, by bootstrap too where there are counts."""
    value = judged.values(np.ones(judged.n_runs))
    on_logit = [name in ON_LOGIT for name in judged.names]
    one = by_influence(value, np.nan_to_num(judged.influences()), units, LEVEL, on_logit)
    holds = one.holds & (not is_rare(judged.success))
    by = covered(one.low, one.high, truth)
    found = {"influence": by, "chosen": holds, "where chosen": np.where(holds, by, np.nan)}
    if counts is None:
        return found
    below, above = judged.unseen(units)
    expanded = units.expanded_level(judged.n_runs, LEVEL)
    low, high = by_bootstrap(judged.values(counts), value, one.skewness, expanded)
    found["bootstrap"] = covered(low, high, truth)
    if "T-ECE" in judged.names:
        low, high = judged.bounds(units, float(max(one.high[1], value[1] + above[1])))
    else:  # never shorter than by influences
        low = np.where(holds, one.low, np.fmin(one.low, low))
        high = np.where(holds, one.high, np.fmax(one.high, high))
        low, high = np.fmin(low, value - below), np.fmax(high, value + above)
    return found | {"auto": covered(low, high, truth)}


def simulate(setting: Setting, n_simulations: int, n_bootstraps: int, seed: int) -> pd.DataFrame:
    """Coverage of each kind of interval, one row a metric."""
    rng, n_runs = np.random.default_rng(seed), setting.n_runs
    large = draw(setting, np.random.default_rng(1), N_TRUTH, None)
    makers, truths, names = (statistics, bounded_statistics), [], []
    for make in makers:
        judged = Judged(*large, make)
        truths.append(judged.values(np.ones(N_TRUTH)))
        names.append(judged.names)
    if setting.overconfidence == 1 and not setting.grid:
        truths[1][:2] = 0.0  # of true chances
    found: tuple[list, list] = ([], [])
    for simulation in range(n_simulations):
        data = draw(setting, rng, n_runs, setting.units.codes)
        while data[0].min() == data[0].max():
            data = draw(setting, rng, n_runs, setting.units.codes)
        is_drawn = simulation < n_bootstraps
        if is_drawn and simulation % _REUSED == 0:
            shared = setting.units.to_runs(draw_counts(N_REPLICATES, setting.units, rng))
        for k, make in enumerate(makers):
            if is_drawn or k == 0:
                counts = shared if is_drawn else None
                judged = Judged(*data, make)
                found[k].append(try_intervals(judged, setting.units, truths[k], counts))
    tables = []
    for rows, truth, of in zip(found, truths, names, strict=True):
        kinds = pd.DataFrame(rows).items()
        means = {
            kind: np.nanmean(np.stack(column.dropna().to_list()).astype(float), axis=0)
            for kind, column in kinds
        }
        tables.append(pd.DataFrame({"truth": truth, **means}, index=of))
    return pd.concat(tables)


def simulated(given: Any) -> None:
    """Print a table for each setting."""
    for name in given.only or SETTINGS:
        n_bootstraps = min(given.bootstraps, given.drawn_runs // SETTINGS[name].n_runs)
        show(name, simulate(SETTINGS[name], given.simulations, n_bootstraps, given.seed))


# -------------------------------------------------------------------- public tables


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


def of_report(table: Table, n_resamples: int) -> pd.DataFrame:
    """Return value, low and high of what a report says of forecasts as given."""
    X, y, tasks = table
    draws = EvaluationOptions(n_resamples=n_resamples)
    report = evaluate(X, y, groups=tasks, calibrator=None, options=draws)
    of = report.intervals.sort_index().loc[report.by_step.index[0][:2]]
    steps = report.by_step.droplevel(["predictor", "form"])
    parts = {
        "": of[["value", "low", "high"]],
        "margin of ": of[["margin", "margin_low", "margin_high"]],
        "AUROC at step ": steps[["AUROC", "AUROC_low", "AUROC_high"]],
        "margin at step ": steps[["margin", "margin_low", "margin_high"]],
    }
    named = [
        one.set_axis(["value", "low", "high"], axis=1).rename(lambda key, name=name: f"{name}{key}")
        for name, one in parts.items()
    ]
    return pd.concat(named).dropna(subset="value")


def public(given: Any) -> None:
    """Print the coverage in samples of each public table."""
    for name, (X, y, tasks) in public_tables(given.data):
        if given.only and not any(one in name for one in given.only):
            continue
        known = y >= 0
        table = Table(X[known], y[known].astype(float), None if tasks is None else tasks[known])
        truth = of_report(table, 2)["value"]
        for n in (60, 200):
            rng = np.random.default_rng([given.seed, n])
            drawn = [(sample(table, n, rng), 1000) for _ in range(given.samples)]
            every = pd.concat(over(of_report, drawn, given.jobs))
            every = every[every.index.isin(truth.index)]
            told = every.dropna()
            target = truth.loc[told.index].to_numpy()
            # a rounding error is not a miss: a constant's margin is 0
            slack = 1e-9 * (1 + np.abs(target))
            told = told.assign(covered=covered(told["low"] - slack, told["high"] + slack, target))
            told["width"] = told["high"] - told["low"]
            found = told.groupby(level=0, sort=False)[["covered", "width"]].mean()
            counts = every.groupby(level=0).size()
            found = found.assign(truth=truth.reindex(found.index), samples=counts)
            show(f"{name}, {n} of {len(table.y):,} runs", found)


def labelled(table: Table, seed: int) -> dict[tuple[str, str], tuple[float, float]]:
    """Return intervals from a hundred labels and a judge, by metric and design."""
    rng, n, n_labels = np.random.default_rng(seed), 2000, 100
    X, y, _ = sample(table, n, rng)
    wrong = rng.random(n) < np.where(y == 1, 0.1, 0.2)
    judge = np.where(wrong, 1 - y, y)
    design = LabelDesign(n_labels, random_state=seed).fit(X, judge=judge)
    chosen = {"uniform": (rng.choice(n, n_labels, replace=False), n_labels / n)}
    chosen["chosen"] = design.query(), design.probabilities_
    found = {}
    for how, (rows, chance) in chosen.items():
        known = np.full(n, -1.0)
        known[rows] = y[rows]
        of = label_intervals(X, known, label_probability=chance, judge=judge)
        found |= {(metric, how): (of.low[metric], of.high[metric]) for metric in LABELLED}
    return found


LABELLED = ("success rate", "TPS log", "TPS log margin")


def labels(given: Any) -> None:
    """Print how often intervals from few labels hold the truth."""
    made = make_trajectories(20_000, sharpness=1.5, noise=0.5, base_rate=0.7, random_state=0)
    table = Table(made.data, made.target.astype(float))
    score = tps_score(table.y, table.X)
    rate = as_step_weights().of(table.X).rate(table.y)
    constant = tps_score(table.y, table.X.with_cells(np.full(len(table.X.cells), rate)))
    truth = dict(zip(LABELLED, (table.y.mean(), score, score - constant), strict=True))
    found = over(labelled, [(table, seed) for seed in range(given.samples)], given.jobs)
    rows: dict[str, dict[str, float]] = {}
    for metric, how in found[0]:
        ends = np.array([one[metric, how] for one in found])
        rows.setdefault(metric, {})[how] = covered(*ends.T, truth[metric]).mean()
    show(f"coverage in {given.samples} simulations", rows)


COMMANDS = {one.__name__: one for one in (simulated, public, labels)}


def main() -> None:
    """Run one of them."""
    given = options(
        __doc__, tuple(COMMANDS), simulations=4000, bootstraps=500, drawn_runs=200_000,
        samples=200, seed=0, jobs=2, only=[],
    )  # fmt: skip
    COMMANDS[given.what](given)


if __name__ == "__main__":
    main()
