"""Scores repaired for stops that depend on the history: bias and coverage where the truth is known.

    python benchmarks/informative_stops.py [DESIGN ...] [--runs 150 300 1000] [--repeats 1000]
                                           [--seed 7000] [--jobs 1]
    python benchmarks/informative_stops.py --stop-test [--repeats 2000] [--seed 7000]

Runs of `make_trajectories` are stopped at each step with a chance that depends on the latest
forecast, see `DESIGNS`. Printed for the log score: the error against the score of the same runs had
none been stopped, with its standard error over the repeats; how much the estimate varies; how often
the 95% interval of `StopHazard.interval` holds the score in the population; how often it lies above
and below that score; and how wide it is. The default regressor is fitted without scikit-learn's
checks of its input, which would take most of the time; the first repeats show that the scores are
the same.

With `--stop-test`, how often `administrative_stop_test` rejects at the level .05: tasks differ in
their signal and their budget, and nothing else stops a run, or a low signal does, too.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from scipy.special import ndtr
from sklearn.base import BaseEstimator

from trajscore import TrajectoryArray
from trajscore.censoring import (
    StopHazard,
    administrative_stop_test,
    doubly_robust_tps_score,
    ipcw_tps_score,
)
from trajscore.core.within_runs import first_step_above, step_numbers
from trajscore.datasets import make_trajectories
from trajscore.metrics import censored_tps_score, tps_score

OWN = {"weights": "linear_front", "horizon": "own"}


@dataclass(frozen=True)
class Design:
    """How runs are made and stopped.

    Parameters
    ----------
    lengths, sharpness : int or pair of int, float
        As in `make_trajectories`.
    low, where_low, always : float
        The chance of a stop at a step is `always`, plus `where_low` if the forecast is below `low`.
    budget : int, optional
        Runs are cut here too, administratively, and their true q_Z is known.
    trials : int
        Runs of a task, which share 40% of their evidence.
    published : bool
        Whether the step weights are those of the paper.
    """

    lengths: int | tuple[int, int] = (3, 12)
    sharpness: float = 1.0
    low: float = 0.3
    where_low: float = 0.3
    always: float = 0.0
    budget: int | None = None
    trials: int = 1
    published: bool = False

    @property
    def how(self) -> dict[str, str]:
        """Step weights, as arguments of a score."""
        return OWN if self.published else {}


DESIGNS = {
    "guide, 6 steps": Design(6, low=0.4, where_low=0.2, always=0.04),
    "guide, 3 to 9 steps": Design((3, 9), low=0.4, where_low=0.2, always=0.04),
    "6 steps": Design(6),
    "3 to 12 steps": Design(),
    "12 steps": Design(12),
    "hazard .1": Design(where_low=0.1),
    "hazard .5": Design(where_low=0.5),
    "overconfident": Design(sharpness=3.0),
    "published weights": Design(published=True),
    "budget of 7 steps, too": Design(budget=7),
    "5 trials a task": Design(trials=5),
}


@dataclass(frozen=True)
class Sample:
    """Runs as far as they went: outcomes (-1: not observed), who was stopped, q_Z, and tasks."""

    X: TrajectoryArray
    y: np.ndarray
    stopped: np.ndarray
    q_z: np.ndarray
    task: np.ndarray | None
    truth: float  # score of these runs without stops


class PlainRidge(BaseEstimator):
    """Ridge regression on standardised features, as the default regressor, without any checks."""

    def fit(self, X: np.ndarray, y: np.ndarray) -> PlainRidge:
        """Fit.

        Parameters
        ----------
        X, y : ndarray
            Features and targets.

        Returns
        -------
        PlainRidge
            The fitted model.
        """
        spread = X.std(axis=0)
        # scikit-learn leaves a feature as it is where its spread is noise of the arithmetic
        noise = 10 * len(X) * np.finfo(float).eps * np.abs(X.mean(axis=0))
        spread = np.where(spread <= np.maximum(noise, 1e-15), 1.0, spread)
        self.centre_ = X.mean(axis=0)
        z = (X - self.centre_) / spread
        self.coef_ = np.linalg.solve(z.T @ z + np.eye(z.shape[1]), z.T @ (y - y.mean())) / spread
        self.mean_ = y.mean()
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Predict.

        Parameters
        ----------
        X : ndarray
            Features.

        Returns
        -------
        ndarray
            Predictions.
        """
        return self.mean_ + (X - self.centre_) @ self.coef_


def whole_runs(n_runs: int, design: Design, seed: int) -> Any:
    """Return runs, outcomes and true q_t without any stop; those of a task share evidence."""
    if design.trials == 1:
        runs = make_trajectories(
            n_runs, lengths=design.lengths, sharpness=design.sharpness, random_state=seed
        )
        return runs.data, runs.final_outcome, runs.q
    runs = make_trajectories(n_runs, lengths=design.lengths, random_state=seed)
    T, step = np.repeat(runs.data.lengths, runs.data.lengths), step_numbers(runs.data)
    rng, task = np.random.default_rng(seed), np.arange(n_runs) // design.trials
    common = rng.standard_normal((task.max() + 1, T.max()))[
        np.repeat(task, runs.data.lengths), step - 1
    ]
    evidence = np.sqrt(0.4) * common + np.sqrt(0.6) * rng.standard_normal(len(T))
    walk = np.cumsum(evidence * np.sqrt(0.6 / T))
    first, last = runs.data.offsets[:-1], runs.data.offsets[1:] - 1
    walk -= np.repeat(walk[first] - (evidence * np.sqrt(0.6 / T))[first], runs.data.lengths)
    q = runs.data.with_cells(ndtr(walk / np.sqrt(1 - 0.6 * step / T)))
    outcome = walk[last] + np.sqrt(0.4) * rng.standard_normal(n_runs) > 0
    return q, outcome.astype(int), q


def stopped_runs(n_runs: int, design: Design, seed: int) -> Sample:
    """Draw runs and stop some.

    Parameters
    ----------
    n_runs, design, seed : int, Design, int
        How many runs, of which kind.

    Returns
    -------
    Sample
        The runs as far as they went.
    """
    X, outcome, q = whole_runs(n_runs, design, seed)
    budget = X.lengths.max() if design.budget is None else design.budget
    cut = X.lengths > budget
    X, q = X.prefix(budget), q.prefix(budget)
    chance = design.always + design.where_low * (X.cells < design.low)
    drawn = np.random.default_rng(seed).random(len(X.cells))
    first = first_step_above(X, chance - drawn, np.zeros(n_runs))
    stopped = (first > 0) & (first < X.lengths)  # a run at its end can no longer be stopped
    short = X.truncate(np.where(stopped, first, X.lengths))
    return Sample(
        X=TrajectoryArray(short.cells, short.lengths),
        y=np.where(stopped | cut, -1, outcome),
        stopped=stopped,
        q_z=q.cells[q.offsets[1:] - 1],
        task=None if design.trials == 1 else np.arange(n_runs) // design.trials,
        truth=tps_score(outcome, X, **design.how),
    )


def doubly_robust(*args: Any, **options: Any) -> tuple[float, np.ndarray]:
    """Doubly robust score by the fast regressor."""
    return doubly_robust_tps_score(*args, regressor=PlainRidge(), **options)


def estimates(
    n_runs: int, design: Design, seed: int, by_default: bool = False
) -> dict[str, list[float]]:
    """Return estimate, interval and truth of one sample by estimator.

    Parameters
    ----------
    n_runs, design, seed : int, Design, int
        As in `stopped_runs`.
    by_default : bool, default=False
        Whether the default regressor is fitted by scikit-learn.

    Returns
    -------
    dict
        Estimator to [value, low, high, score of the same runs without stops].
    """
    one, how = stopped_runs(n_runs, design, seed), design.how
    hazard, kept = StopHazard().fit(one.X, one.stopped, groups=one.task), ~one.stopped
    known = {"q_z": one.q_z, **how}
    whole = censored_tps_score(one.y[kept], one.X[kept], q_z=one.q_z[kept], **how)
    simple = censored_tps_score(one.y, one.X, q_z=np.where(kept, one.q_z, 0), **how)
    out = {
        "complete only": [whole, np.nan, np.nan, one.truth],
        "simple": [simple, np.nan, np.nan, one.truth],
    }
    robust = doubly_robust_tps_score if by_default else doubly_robust
    for name, score in (("IPCW", ipcw_tps_score), ("doubly robust", robust)):
        value, samples = score(one.y, one.X, hazard, return_samples=True, **known)
        out[name] = [value, *hazard.interval(samples, groups=one.task), one.truth]
    return out


def table(
    n_runs: int, design: Design, repeats: int, first_seed: int = 0, n_jobs: int = 1
) -> pd.DataFrame:
    """Repeat, and sum up error and coverage.

    Parameters
    ----------
    n_runs, design, repeats, first_seed, n_jobs : int, Design, int, int, int
        Sample size, kind of runs, repeats, seed of the first one, and processes.

    Returns
    -------
    DataFrame
        One row an estimator.
    """
    for seed in range(first_seed, first_seed + min(repeats, 3)):
        fast, slow = (estimates(n_runs, design, seed, by) for by in (False, True))
        np.testing.assert_allclose(fast["doubly robust"], slow["doubly robust"], atol=1e-6)
    target = np.mean([stopped_runs(100_000, design, 10**6 + seed).truth for seed in range(5)])
    drawn = Parallel(n_jobs=n_jobs)(
        delayed(estimates)(n_runs, design, first_seed + seed) for seed in range(repeats)
    )
    rows = {}
    for name in drawn[0]:
        value, low, high, truth = np.array([one[name] for one in drawn]).T
        error, held = value - truth, (low <= target) & (target <= high)
        rows[name] = {
            "error": error.mean(),
            "its std_error": error.std(ddof=1) / np.sqrt(repeats),
            "spread": value.std(ddof=1),
            "coverage": np.nan if np.isnan(low).any() else held.mean(),
            "above": (low > target).mean(),
            "below": (high < target).mean(),
            "width": (high - low).mean(),
        }
    return pd.DataFrame(rows).T


def runs_of_tasks(
    n_tasks: int, n_trials: int, by_signal: float, seed: int
) -> tuple[TrajectoryArray, np.ndarray, np.ndarray]:
    """Make runs of tasks that differ in their signal and their budget.

    Parameters
    ----------
    n_tasks, n_trials : int
        Tasks, and runs of each.
    by_signal : float
        Chance that a signal below -0.6 stops a run.
    seed : int
        Seed.

    Returns
    -------
    X, y, task
        Signals as far as runs went, outcomes (-1: not observed), and the task of each run.
    """
    rng, n = np.random.default_rng(seed), n_tasks * n_trials
    task = np.repeat(np.arange(n_tasks), n_trials)
    signal = rng.normal(rng.normal(size=n_tasks)[task][:, None], 1, (n, 8))
    whole, budget = rng.integers(4, 9, n), rng.integers(2, 9, n_tasks)[task]
    low = (signal < -0.6) & (rng.random((n, 8)) < by_signal)
    stop = np.minimum(budget, np.where(low.any(axis=1), low.argmax(axis=1) + 1, 99))
    y = np.where(stop < whole, -1, rng.integers(0, 2, n))
    return TrajectoryArray.from_padded(signal).truncate(np.minimum(stop, whole)), y, task


def stop_test_table(repeats: int, first_seed: int) -> pd.DataFrame:
    """Repeat the test of administrative stops.

    Parameters
    ----------
    repeats, first_seed : int
        Repeats, and the seed of the first one.

    Returns
    -------
    DataFrame
        Share of repeats in which it rejects, one row a number of tasks, of trials and a strength.
    """
    rows = {}
    for n_tasks, n_trials in ((20, 10), (40, 5), (100, 5)):
        for by_signal in (0.0, 0.15, 0.3):
            pvalues = {"with groups": [], "without": []}
            for seed in range(first_seed, first_seed + repeats):
                X, y, task = runs_of_tasks(n_tasks, n_trials, by_signal, seed)
                found = administrative_stop_test(X, y, groups=task)
                pvalues["with groups"].append(found.pvalue)
                if not by_signal:  # without groups the level does not hold, so power says nothing
                    pvalues["without"].append(administrative_stop_test(X, y).pvalue)
            rows[n_tasks, n_trials, by_signal] = {
                name: (np.array(found) < 0.05).mean() for name, found in pvalues.items() if found
            }
    return pd.DataFrame(rows).T.rename_axis(["tasks", "trials", "stopped by signal"])


def main() -> None:
    """Print a table for each design and number of runs."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("designs", nargs="*", metavar="DESIGN", help=", ".join(DESIGNS))
    parser.add_argument("--runs", type=int, nargs="+", default=[150, 300, 1000])
    parser.add_argument("--repeats", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=7000)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--stop-test", action="store_true")
    given = parser.parse_args()
    if given.stop_test:
        print(stop_test_table(given.repeats, given.seed).round(4).to_string())
        return
    for name in given.designs or DESIGNS:
        for n_runs in given.runs:
            found = table(n_runs, DESIGNS[name], given.repeats, given.seed, given.jobs)
            print(f"== {name}, {n_runs} runs", found.round(4).to_string(), sep="\n", flush=True)


if __name__ == "__main__":
    main()
