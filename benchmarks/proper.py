"""Which weights let the truth win, where the length of a run depends on its outcome?

    python benchmarks/proper.py [--seed 1] [--quick] [--data FOLDER] [--data-home FOLDER]

The three tables of docs/theorem.rst, which says what they show: the truth and the tilted forecast
in a simulation, the same as rates of real logs, and schedules of weights on those logs and on
random laws (tests/joint_laws.py).

BALROG, InterCode and tau-bench are fetched to `--data-home` (default: that of scikit-learn), chess
is bundled, and other sets are those of `--data`, see benchmarks/reproduce.py. Sets that are not at
hand are named. All tables take about three minutes.
"""

import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import expit, logit

import public_sets
from reproduction.items import Data
from shared import JUDGES, at_hand, ended_chess, options, show
from trajscore import PlattCrossFitCalibrator, TrajectoryArray, io
from trajscore.core.weights import RunSums, as_step_weights, run_sums, step_weights
from trajscore.core.within_runs import step_numbers

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
from joint_laws import JointLaw, draw_law, linear_front

Array = np.ndarray
LONGEST = 30  # of the simulation
OWN, EARLY, COMMON = "own, linear front", "1 / sqrt(t)", "linear front, H = max"
SCHEDULES: dict[str, tuple[Any, int | str | None]] = {  # weights and horizon
    OWN: ("linear_front", "own"),
    "uniform": ("uniform", None),
    COMMON: ("linear_front", "longest"),  # run of the sample
    EARLY: ("early", None),
    "1 / t": (lambda t: 1 / t, None),
    "2^-t": (lambda t: 2.0**-t, None),
}


@dataclass(frozen=True)
class Sample:
    """Runs with outcomes, and the group that each belongs to."""

    lengths: Array
    y: Array
    groups: Array

    @property
    def steps(self) -> Array:
        return step_numbers(TrajectoryArray(np.zeros(self.lengths.sum()), self.lengths))

    def per_cell(self, values: Array) -> Array:
        return np.repeat(values, self.lengths)

    def schedule(self, name: str) -> dict[str, Any]:
        """Return weights and horizon, as the package is asked for them."""
        weights, horizon = SCHEDULES[name]
        longest = int(self.lengths.max())
        return {"weights": weights, "horizon": longest if horizon == "longest" else horizon}

    def score(self, name: str, forecasts: Array) -> RunSums:
        """Weighted sum of the log scores of each run."""
        X = TrajectoryArray(forecasts, self.lengths)
        return run_sums(self.y, X, "log", as_step_weights(**self.schedule(name)))


@dataclass(frozen=True)
class Margin:
    """By how much one forecast is ahead of another: sum N / sum D, and its standard error."""

    value: float
    error: float

    @property
    def z(self) -> float:
        return self.value / self.error if self.error else 0.0

    def __str__(self) -> str:
        low, high = (self.value + side * 1.96 * self.error for side in (-1, 1))
        return f"{self.value:+.4f} [{low:+.4f}, {high:+.4f}], z {self.z:+.1f}"


def margin(sample: Sample, schedule: str, first: Array, second: Array) -> Margin:
    """Return what one forecast is ahead by, from the differences of each run."""
    ahead = sample.score(schedule, first) - sample.score(schedule, second)
    N, D = ahead.total, ahead.divisor
    value = N.sum() / D.sum()
    of_group = np.bincount(sample.groups, (N - value * D) / D.mean())
    n = len(of_group)
    return Margin(value, np.sqrt((of_group**2).sum() * n / (n - 1)) / len(N))


def draw(n_runs: int, rng: np.random.Generator) -> tuple[Sample, Array, Array]:
    """Draw runs of the simulation, with the truth and the tilted forecast at each step."""
    y = rng.integers(0, 2, n_runs)
    lengths = np.where(y == 1, rng.integers(1, 11, n_runs), rng.integers(11, LONGEST + 1, n_runs))
    sample = Sample(lengths, y, np.arange(n_runs))
    step, length = np.arange(1, LONGEST + 1)[:, None], np.arange(1, LONGEST + 1)
    chance = np.where(length <= 10, 1 / 10, 1 / 20) * (length >= step) / 2
    forecasts = []
    for weight in (chance, chance * linear_front(step, np.maximum(length, step))):
        rate = (weight * (length <= 10)).sum(axis=1) / weight.sum(axis=1)
        forecasts.append(rate[sample.steps.astype(int) - 1])
    return sample, *forecasts


def truth_and_tilt(n_runs: int, rng: np.random.Generator) -> pd.DataFrame:
    """Table 1: the mean score of the truth and of the tilted forecast."""
    sample, truth, tilted = draw(n_runs, rng)
    rows = {}
    for schedule in (OWN, COMMON, EARLY):
        rows[schedule] = {
            "truth": sample.score(schedule, truth).mean(np.ones(n_runs)),
            "tilted": sample.score(schedule, tilted).mean(np.ones(n_runs)),
            "the truth is ahead by": str(margin(sample, schedule, truth, tilted)),
        }
    return pd.DataFrame(rows).T


def stated(n_runs: int, schedule: str, seed: int) -> tuple[float, float]:
    """Recalibrate a noisy forecast of the simulation: what it states, and what happens."""
    sample, truth, _ = draw(n_runs, np.random.default_rng(seed))
    odds = logit(np.clip(truth, 1e-4, 1 - 1e-4))
    noisy = expit(odds + np.random.default_rng(seed).normal(size=len(odds)))
    calibrator = PlattCrossFitCalibrator(**sample.schedule(schedule))
    forecast = calibrator.fit_transform(TrajectoryArray(noisy, sample.lengths), sample.y)
    return forecast.cells.mean(), sample.per_cell(sample.y).mean()


def as_sample(lengths: Array, y: Array, groups: object) -> Sample:
    """Number the groups, and leave out runs without an outcome."""
    observed = y >= 0
    codes = pd.factorize(np.asarray(groups)[observed])[0]
    return Sample(np.asarray(lengths)[observed], np.asarray(y)[observed], codes)


def from_balrog(game: str, data_home: Path | None) -> Sample:
    """Group by task where there are many, else by agent."""
    episodes = public_sets.balrog(game, data_home)
    by = max(("agent", "task"), key=lambda column: episodes[column].nunique())
    return as_sample(episodes["n_steps"].to_numpy(), episodes["won"], episodes[by])


def from_log(name: str, data_home: Path | None, folder: Path | None) -> Sample:
    """Read a log of the board, in steps of the agent."""
    runs, y, group, _ = public_sets.SOURCES[name](data_home, folder)
    return as_sample(io.meta(runs)["n_agent"], np.asarray(y), group)


def forecasts_of(data: Data) -> Iterator[tuple[str, TrajectoryArray, Array]]:
    """Yield the sets that have forecasts and outcomes; each run is a group."""
    for name in JUDGES:
        with suppress(FileNotFoundError):
            yield name, *data.runs(name)
    yield "chess", *ended_chess()


def real_logs(data: Data, data_home: Path | None) -> Iterator[tuple[str, Sample]]:
    sources: dict[str, Callable[[], Sample]] = {
        f"BALROG {game}": partial(from_balrog, game, data_home) for game in public_sets.GAMES
    }
    for name in [name for name in public_sets.SOURCES if name.startswith("InterCode")]:
        sources[name] = partial(from_log, name, data_home, data.folder)
    for name, X, y in forecasts_of(data):
        sources[name] = partial(as_sample, X.lengths, y, X.ids)
    for name in ("tau-bench airline", "tau2-bench"):
        sources[name] = partial(from_log, name, data_home, data.folder)
    return at_hand(sources)


PRIOR = 5  # runs that the rate at the step before counts for


def rate_of(sample: Sample, rows: Array, tilt: bool, longest: int) -> Array:
    """Rate of success of the runs that have come to each step, tilted or not, shrunk."""
    length = np.arange(1, longest + 1)
    n = np.bincount(sample.lengths[rows], minlength=longest + 1)[1:]
    won = np.bincount(sample.lengths[rows], sample.y[rows], minlength=longest + 1)[1:]
    rate, out = sample.y[rows].mean(), np.empty(longest)
    for t in range(1, longest + 1):
        alive = length >= t
        weight = alive * (linear_front(t, length) if tilt else 1.0)
        scale = (n * alive).sum() / max((n * weight).sum(), 1e-300)  # 1 on average
        rate = (scale * (won * weight).sum() + PRIOR * rate) / ((n * alive).sum() + PRIOR)
        out[t - 1] = rate
    return out


def rates(sample: Sample, rng: np.random.Generator) -> tuple[Array, Array, Array]:
    """Out of fold by group: the rates of the runs still running, plain and tilted, and of all."""
    n_groups = sample.groups.max() + 1
    fold = (rng.permutation(n_groups) % min(10, n_groups))[sample.groups]
    out = np.empty((3, len(sample.steps)))
    longest = sample.lengths.max()
    for k in range(fold.max() + 1):
        rows, cells = fold != k, sample.per_cell(fold == k)
        alive, tilted = (rate_of(sample, rows, tilt, longest) for tilt in (False, True))
        step = sample.steps[cells].astype(int) - 1
        out[:, cells] = alive[step], tilted[step], np.full(len(step), sample.y[rows].mean())
    return tuple(out)


def before_and_after(sets: dict[str, Sample], rng: np.random.Generator) -> pd.DataFrame:
    """Table 2: what the rate of runs still running is ahead of the tilted one by."""
    rows = {}
    for name, sample in sets.items():
        alive, tilted, _ = rates(sample, rng)
        rows[name] = {
            "runs": len(sample.y),
            "groups": sample.groups.max() + 1,
            "success": f"{sample.y.mean():.3f}",
            "steps": f"{sample.lengths.mean():.1f}",
            "own": str(margin(sample, OWN, alive, tilted)),
            "early": str(margin(sample, EARLY, alive, tilted)),
        }
    return pd.DataFrame(rows).T


def in_log(sample: Sample, n_tried: int, seed: int) -> dict[str, dict[str, Any]]:
    """For each schedule: does the tilt win, what weighs the first third, what does one long run?"""
    rng = np.random.default_rng(seed)
    alive, tilted, constant = rates(sample, rng)
    tried = rng.choice(len(sample.y), min(n_tried, len(sample.y)), replace=False)
    return {
        schedule: {
            "tilt wins": margin(sample, schedule, tilted, alive).z > 2,
            "first third": on_first_third(sample, schedule),
            "one long run": moved_by_one(sample, schedule, alive, constant, tried),
        }
        for schedule in SCHEDULES
    }


def on_first_third(sample: Sample, schedule: str) -> float:
    """Share of the weight on the first third of each run; a step may lie in it in part."""
    weight = step_weights(sample.lengths, **sample.schedule(schedule))
    third = sample.per_cell(sample.lengths) / 3
    return float((weight * np.clip(third - sample.steps + 1, 0, 1)).sum() / weight.sum())


def moved_by_one(sample: Sample, schedule: str, first: Array, second: Array, tried: Array) -> list:
    """Standard errors by which a margin moves when one run goes on for ten times its length."""
    before = margin(sample, schedule, first, second)
    out = []
    for row in tried:
        more, times = 9 * sample.lengths[row], np.ones(len(first), dtype=int)
        times[sample.lengths[: row + 1].sum() - 1] += more  # its last forecast stays
        lengths = sample.lengths + more * (np.arange(len(sample.y)) == row)
        longer = Sample(lengths, sample.y, sample.groups)
        after = margin(longer, schedule, np.repeat(first, times), np.repeat(second, times))
        out.append(abs(after.value - before.value) / before.error)
    return out


def tried_in(law: JointLaw, n_runs: int, rng: np.random.Generator) -> pd.DataFrame:
    """For each schedule, the largest z of a forecast against the truth; and the runs needed."""
    runs = law.sample(n_runs, rng)
    sample = Sample(runs.lengths, runs.y, np.arange(n_runs))
    truth, *others = (one.cells for one in law.forecasts(runs, knows_end=False).values())
    lost = {
        schedule: {"lost": max(margin(sample, schedule, one, truth).z for one in others)}
        for schedule in SCHEDULES
    }
    odds = logit(law.forecast(runs))
    noisy = expit(odds + rng.normal(size=len(odds)) / 2)
    rng.normal(size=n_runs)  # so that later laws are those of the published table
    return pd.DataFrame(lost).T.assign(**{"runs, noise": needed(sample, expit(odds), noisy)})


def needed(sample: Sample, first: Array, second: Array) -> Array:
    """Runs needed to tell two forecasts apart, by each schedule; 1 by the published one."""
    z = np.array([margin(sample, schedule, first, second).z for schedule in SCHEDULES])
    return (z[0] / z) ** 2


def needed_in_logs(data: Data) -> Array:
    """Runs needed to tell recalibrated forecasts from a constant: the median over real ones."""
    sizes = []
    for _, X, y in forecasts_of(data):
        sample = as_sample(X.lengths, y, X.ids)
        constant = np.full(len(X.cells), y.mean())
        for one in [X] if X.channels is None else [X[name] for name in X.channels]:
            stated = PlattCrossFitCalibrator().fit_transform(one, y).cells
            sizes.append(needed(sample, stated, constant))
    return np.median(sizes, axis=0)


def in_random_laws(n_laws: int, n_runs: int, rng: np.random.Generator) -> pd.DataFrame:
    """Count the laws in which the truth is beaten by more than three standard errors."""
    every = pd.concat([tried_in(draw_law(rng), n_runs, rng) for _ in range(n_laws)])
    by_schedule = every.groupby(level=0, sort=False)
    lost = by_schedule["lost"].agg(lambda z: (z > 3).sum())
    return by_schedule.median().assign(lost=lost)


def schedules(
    sets: dict[str, Sample], in_logs: Array, n_laws: int, n_runs: int, n_tried: int, seed: int
) -> pd.DataFrame:
    """Table 3: one row a schedule."""
    laws = in_random_laws(n_laws, n_runs, np.random.default_rng([seed, 4]))
    logs = [in_log(sample, n_tried, seed) for sample in sets.values()]
    rows = {}
    for schedule, in_forecasts in zip(SCHEDULES, in_logs, strict=True):
        of_logs = pd.DataFrame([log[schedule] for log in logs])
        rows[schedule] = {
            f"tilt wins, of {len(sets)}": of_logs["tilt wins"].sum(),
            **laws.loc[schedule],
            "runs, logs": in_forecasts,
            "first third": of_logs["first third"].mean(),
            "one long run": np.median(np.concatenate(of_logs["one long run"])),
            **dict(zip(("stated", "happens"), stated(n_runs, schedule, seed), strict=True)),
        }
    return pd.DataFrame(rows).T


def main() -> None:
    args = options(__doc__, seed=1, quick=False, data_home=Path)
    n_laws, n_runs, n_tried = (20, 5_000, 5) if args.quick else (200, 20_000, 30)
    data, rng = Data(args.data), np.random.default_rng([args.seed, 1])
    simulated = truth_and_tilt(10 * n_runs, rng)
    show("1. The truth and the tilted forecast, in the simulation", simulated)
    sets = dict(real_logs(data, args.data_home))
    ahead = before_and_after(sets, np.random.default_rng(args.seed))
    show("2. What the rate of runs still running is ahead of the tilted one by, in nats", ahead)
    table = schedules(sets, needed_in_logs(data), n_laws, n_runs, n_tried, args.seed)
    show(f"3. Schedules; {n_laws} random laws of {n_runs:,} runs each", table.astype(float))


if __name__ == "__main__":
    main()
