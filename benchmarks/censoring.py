"""Scores of runs that were cut off: bias and coverage where the truth is known.

    python benchmarks/censoring.py budget    [--data FOLDER] [--repeats 200]
    python benchmarks/censoring.py stops     [--runs 150 300] [--repeats 1000] [--seed 7000]
    python benchmarks/censoring.py stop_test [--repeats 2000] [--seed 7000]
    python benchmarks/censoring.py mean_test [--repeats 2000] [--seed 7000]
    python benchmarks/censoring.py shift     [--data FOLDER]

"budget": HotpotQA runs, half of them with a budget of 3 steps, by each estimator of q_Z.

"stops": runs of `make_trajectories`, stopped at low forecasts, see `DESIGNS`. Error of the log
score against that of the same runs had none been stopped, its spread, and coverage.

"stop_test": how often `administrative_stop_test` rejects at the level .05: tasks differ in their
signal and their budget, and nothing else stops a run, or a low signal does, too.

"mean_test": how often `conditional_mean_test` rejects the true q_Z at .05, see `OUTCOMES`.

"shift": what it changes that three in four public runs are cut, and its two parts.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import ndtri

from reproduction.items import Data
from reproduction.tps import kept_steps
from shared import JUDGES, coverage, dispatch, over, show
from trajscore import PlattCrossFitCalibrator, TrajectoryArray
from trajscore.censoring import (
    ContinuationModel,
    StopHazard,
    administrative_stop_test,
    censored_tps_interval,
    censoring_shift,
    conditional_mean_test,
    doubly_robust_tps_score,
    ipcw_tps_score,
)
from trajscore.core.weights import as_step_weights, run_sums
from trajscore.core.within_runs import first_step_above
from trajscore.datasets import make_trajectories
from trajscore.metrics import tps_score

BUDGET, AUDITED, SCORE, N_RESAMPLES = 3, 0.4, "brier", 100


def shares_of(X: TrajectoryArray, y: np.ndarray) -> np.ndarray:
    """P(Y = 1 | first three values, still going): a share, as the table is the population."""
    long = X.lengths > BUDGET
    prefix = pd.DataFrame(X.steps(BUDGET + 1)[:, :BUDGET])
    keys = prefix.groupby(list(prefix.columns)).ngroup()
    share = np.full(len(y), np.nan)
    share[long] = pd.Series(y[long]).groupby(keys).transform("mean")
    return share


def one_sample(
    X: TrajectoryArray, y: np.ndarray, share: np.ndarray, n_runs: int, seed: int
) -> dict[str, list[float]]:
    """Draw a sample and return value, low and high for each estimator."""
    rng = np.random.default_rng(seed)
    rows = rng.integers(len(y), size=n_runs)
    whole, outcome = X[rows], y[rows]
    cut = (whole.lengths > BUDGET) & (rng.random(n_runs) < 0.5)
    lengths = np.where(cut, BUDGET, whole.lengths)
    history = TrajectoryArray(whole.truncate(lengths).cells, lengths, ids=np.arange(n_runs))
    known = np.where(cut, -1, outcome)
    audited = cut & (rng.random(n_runs) < AUDITED)
    branches = [[one] if a else None for one, a in zip(outcome, audited, strict=True)]
    plug_in = ContinuationModel(cv=None, allow_predictor=True)  # there is but one signal
    guessed = plug_in.fit(history, known).predict(history)
    how: dict[str, dict[str, Any]] = {
        "simple, q_Z = 0": {},
        "exact, true shares": {"q_z": share[rows]},
        "plug-in": {"q_z": plug_in, "history": history},
        "plug-in, q_Z taken as known": {"q_z": guessed},
        "hybrid": {"q_z": plug_in, "history": history, "branches": branches},
    }
    out = {}
    for name, more in how.items():
        one = censored_tps_interval(
            known, history, score=SCORE, n_resamples=N_RESAMPLES, random_state=seed, **more
        )
        reach = 1.96 * one.std_error
        out[name] = [one.value, one.value - reach, one.value + reach]
    return out


def budget(args: Any) -> None:
    X, y = Data(args.data).runs("hotpotqa")
    share, n_runs = shares_of(X, y), 1500
    sums = [run_sums(y, one, SCORE, as_step_weights()) for one in (X, X.prefix(BUDGET))]
    # half of the long runs are cut, by chance
    target = sum(one.total.sum() for one in sums) / sum(one.divisor.sum() for one in sums)
    calls = [(X, y, share, n_runs, seed) for seed in range(args.repeats)]
    drawn, rows = over(one_sample, calls, args.jobs), {}
    for name in drawn[0]:
        value, low, high = np.array([one[name] for one in drawn]).T
        rows[name] = {"bias": value.mean() - target, "coverage": coverage(low, high, target)}
    show(f"score in the population {target:.4f}; {args.repeats} samples of {n_runs}", rows, 4)


@dataclass(frozen=True)
class Design:
    """How runs are made and stopped.

    The chance of a stop at a step is `where_low` if the forecast is below .3. At a `budget` runs
    are cut too, administratively, and their true q_Z is known.
    """

    lengths: int | tuple[int, int] = (3, 12)
    where_low: float = 0.3
    budget: int | None = None


DESIGNS = {
    "6 steps": Design(6),
    "3 to 12 steps": Design(),
    "chance .5": Design(where_low=0.5),
    "a budget of 7 steps, too": Design(budget=7),
}


def truth(n_runs: int, design: Design, seed: int) -> float:
    runs = make_trajectories(n_runs, lengths=design.lengths, random_state=seed)
    return tps_score(runs.final_outcome, runs.data.prefix(design.budget or runs.data.lengths.max()))


def repaired(n_runs: int, design: Design, seed: int) -> dict[str, list[float]]:
    """Stop some runs of a sample; return error, estimate and interval by estimator."""
    runs = make_trajectories(n_runs, lengths=design.lengths, random_state=seed)
    most = design.budget or runs.data.lengths.max()
    cut = runs.data.lengths > most
    X, q = runs.data.prefix(most), runs.q.prefix(most)
    chance = design.where_low * (X.cells < 0.3)
    drawn = np.random.default_rng(seed).random(len(X.cells))
    first = first_step_above(X, chance - drawn, np.zeros(n_runs))
    stopped = (first > 0) & (first < X.lengths)  # a run at its end can no longer be stopped
    short = X.truncate(np.where(stopped, first, X.lengths))
    short = TrajectoryArray(short.cells, short.lengths)
    y = np.where(stopped | cut, -1, runs.final_outcome)
    hazard, out = StopHazard().fit(short, stopped), {}
    without_stops, q_z = tps_score(runs.final_outcome, X), q.cells[q.offsets[1:] - 1]
    for name, score in (("IPCW", ipcw_tps_score), ("doubly robust", doubly_robust_tps_score)):
        value, samples = score(y, short, hazard, return_samples=True, q_z=q_z)
        out[name] = [value - without_stops, value, *hazard.interval(samples)]
    return out


def stops(args: Any) -> None:
    rows = {}
    for name, design in DESIGNS.items():
        target = np.mean([truth(100_000, design, 10**6 + seed) for seed in range(5)])
        for n_runs in args.runs:
            seeds = range(args.seed, args.seed + args.repeats)
            drawn = over(repaired, [(n_runs, design, seed) for seed in seeds], args.jobs)
            row = rows[f"{name}, {n_runs} runs"] = {}
            for how in drawn[0]:
                error, value, low, high = np.array([one[how] for one in drawn]).T
                row[f"{how}: error"], row[f"{how}: spread"] = error.mean(), value.std(ddof=1)
                row[f"{how}: coverage"] = coverage(low, high, target)
    show(f"{args.repeats} repeats", rows)


def runs_of_tasks(by_signal: float, seed: int) -> tuple[TrajectoryArray, np.ndarray, np.ndarray]:
    """Make runs of tasks that differ in their signal and budget; a low signal stops some."""
    rng, n_tasks, n_trials = np.random.default_rng(seed), 100, 5
    n = n_tasks * n_trials
    task = np.repeat(np.arange(n_tasks), n_trials)
    signal = rng.normal(rng.normal(size=n_tasks)[task][:, None], 1, (n, 8))
    whole, most = rng.integers(4, 9, n), rng.integers(2, 9, n_tasks)[task]
    low = (signal < -0.6) & (rng.random((n, 8)) < by_signal)
    stop = np.minimum(most, np.where(low.any(axis=1), low.argmax(axis=1) + 1, 99))
    y = np.where(stop < whole, -1, rng.integers(0, 2, n))
    return TrajectoryArray.from_padded(signal).truncate(np.minimum(stop, whole)), y, task


def stop_test(args: Any) -> None:
    row = {}
    # without groups the level does not hold, so power says nothing
    for by_signal, by in ((0.0, "groups"), (0.0, "no groups"), (0.3, "groups")):
        alarms = []
        for seed in range(args.seed, args.seed + args.repeats):
            X, y, task = runs_of_tasks(by_signal, seed)
            groups = task if by == "groups" else None
            alarms.append(administrative_stop_test(X, y, groups=groups).pvalue < 0.05)
        row[f"by signal {by_signal}, {by}"] = np.mean(alarms)
    show(f"rejected at .05 in {args.repeats} repeats", {"100 tasks of 5": row})


CHANCES = {
    "any": lambda rng, n: rng.random(n),
    "a half": lambda rng, n: np.full(n, 0.5),
    "low": lambda rng, n: rng.beta(1, 9, n),
    "a twentieth": lambda rng, n: np.full(n, 0.05),
}
KNOWN = {"nothing": (0, False), "score": (0, True), "3 features": (3, False), "all": (3, True)}
# by name: runs of a task, how much of what decides they share, continuations of a run
OUTCOMES = {
    "independent": (1, 0.0, 1),
    "pairs, alike": (2, 1.0, 1),
    "tasks of 5, independent": (5, 0.0, 1),
    "tasks of 5, half": (5, 0.5, 1),
    "tasks of 5, alike": (5, 1.0, 1),
    "5 continuations": (1, 0.0, 5),
    "1 to 9 continuations": (1, 0.0, 9),
    "5, tasks of 5, half": (5, 0.5, 5),
}


def drawn_shares(q: np.ndarray, how: tuple[int, float, int], rng: np.random.Generator) -> Any:
    """Draw outcomes with chances q, or shares of several, and the task of each run."""
    size, shared, most = how
    task = np.arange(len(q)) // size
    common, own = rng.normal(size=(most, task[-1] + 1)), rng.normal(size=(most, len(q)))
    latent = np.sqrt(shared) * common[:, task] + np.sqrt(1 - shared) * own
    number = rng.integers(1, most + 1, len(q)) if most == 9 else np.full(len(q), most)
    counts = np.arange(most)[:, None] < number
    return ((latent < ndtri(q)) & counts).sum(axis=0) / number, task


def rejected(n: int, chances: str, known: str, outcomes: str, seed: int) -> pd.Series:
    """Return which rows of the test reject the true q_Z."""
    rng, (n_features, scored), how = np.random.default_rng(seed), KNOWN[known], OUTCOMES[outcomes]
    truth = CHANCES[chances](rng, n)
    shares, task = drawn_shares(truth, how, rng)
    features = rng.normal(size=(n, n_features)) if n_features else None
    traces = TrajectoryArray(rng.random(3 * n), np.full(n, 3)) if scored else None
    groups = task if how[0] > 1 else None
    more = {"traces": traces, "groups": groups, "n_resamples": 199, "random_state": seed}
    pvalue = conditional_mean_test(shares, truth, features, **more)["pvalue"]
    by_row = pvalue.rename(lambda name: f"level of {name!r}" if name == "all" else "of others")
    return (by_row <= 0.05).groupby(level=0).mean()


def mean_test(args: Any) -> None:
    cases = [("any", known, "independent") for known in KNOWN]
    cases += [(chances, "all", "independent") for chances in CHANCES]
    cases += [(q, "3 features", outcomes) for q in ("any", "low") for outcomes in OUTCOMES]
    rows = {}
    for case in dict.fromkeys(cases):
        for n in (20, 60, 200):
            if case[2].count("tasks") and n == 20:
                continue  # four tasks are refused
            seeds = range(args.seed, args.seed + args.repeats)
            every = over(rejected, [(n, *case, seed) for seed in seeds], args.jobs)
            rows[", ".join((*case, str(n)))] = pd.DataFrame(every).mean()
    show(f"rejected at .05 in {args.repeats} repeats", rows)


def shift(args: Any) -> None:
    rows = {}
    for name in JUDGES:
        X, y = Data(args.data).runs(name)
        forecasts = PlattCrossFitCalibrator().fit_transform(X, y)
        table = censoring_shift(y, forecasts, kept_steps(X.lengths, 0.75))
        rows[f"{name}, {y.mean():.3f} succeed"] = table.loc["all"]
    show("three in four runs are cut at a random step", rows)


if __name__ == "__main__":
    commands = {"budget": budget, "stops": stops, "stop_test": stop_test}
    commands |= {"mean_test": mean_test, "shift": shift}
    dispatch(__doc__, commands, runs=[150, 300], repeats=1000, seed=7000, jobs=2)
