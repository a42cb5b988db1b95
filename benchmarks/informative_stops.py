"""Scores repaired for stops that depend on the history: bias and coverage where the truth is known.

    python benchmarks/informative_stops.py [--runs 1000] [--lengths 6 | --lengths 3 9]
                                           [--repeats 200] [--jobs 1]

Runs of `make_trajectories` are stopped at a step with the chance .04, or .24 where the forecast is
below .4. Printed for the log score: the error against the score of the same runs had none been
stopped, with its standard error over the repeats; and how often the 95% interval from the
contributions holds the score in the population.
"""

from __future__ import annotations

import argparse

import numpy as np
import pandas as pd
from joblib import Parallel, delayed

from trajscore import TrajectoryArray
from trajscore.censoring import StopHazard, doubly_robust_tps_score, ipcw_tps_score
from trajscore.core.within_runs import first_step_above
from trajscore.datasets import make_trajectories
from trajscore.metrics import censored_tps_score, tps_score

LOW, ALWAYS, WHERE_LOW = 0.4, 0.04, 0.2
Lengths = int | tuple[int, int]


def stopped_runs(
    n_runs: int, lengths: Lengths, seed: int
) -> tuple[TrajectoryArray, np.ndarray, float]:
    """Draw runs and stop some.

    Parameters
    ----------
    n_runs, lengths, seed : int, int or pair of int, int
        As in `make_trajectories`.

    Returns
    -------
    tuple
        The runs as far as they went, outcomes (-1 where stopped), and the score without stops.
    """
    runs = make_trajectories(n_runs, lengths=lengths, random_state=seed)
    X = runs.data
    chance = ALWAYS + WHERE_LOW * (X.cells < LOW)
    drawn = np.random.default_rng(seed).random(len(X.cells))
    first = first_step_above(X, chance - drawn, np.zeros(n_runs))
    stopped = (first > 0) & (first < X.lengths)  # a run at its end can no longer be stopped
    short = X.truncate(np.where(stopped, first, X.lengths))
    y = np.where(stopped, -1, runs.target)
    truth = tps_score(runs.final_outcome, X)
    return TrajectoryArray(short.cells, short.lengths), y, truth


def estimates(n_runs: int, lengths: Lengths, seed: int) -> dict[str, list[float]]:
    """Return estimate, standard error and truth of one sample by estimator.

    Parameters
    ----------
    n_runs, lengths, seed : int, int or pair of int, int
        As in `stopped_runs`.

    Returns
    -------
    dict
        Estimator to [value, std_error, score of the same runs without stops].
    """
    X, y, truth = stopped_runs(n_runs, lengths, seed)
    hazard = StopHazard().fit(X, y == -1)
    out = {
        "complete only": [tps_score(y[y >= 0], X[y >= 0]), np.nan, truth],
        "simple": [censored_tps_score(y, X), np.nan, truth],
    }
    for name, score in (("IPCW", ipcw_tps_score), ("doubly robust", doubly_robust_tps_score)):
        value, samples = score(y, X, hazard, return_samples=True)
        out[name] = [value, samples.std(ddof=1) / np.sqrt(n_runs), truth]
    return out


def table(n_runs: int, lengths: Lengths, repeats: int, n_jobs: int = 1) -> pd.DataFrame:
    """Repeat, and sum up error and coverage.

    Parameters
    ----------
    n_runs, lengths, repeats, n_jobs : int, int or pair of int, int, int
        Sample size, lengths of the runs, repeats and processes.

    Returns
    -------
    DataFrame
        One row an estimator.
    """
    whole = make_trajectories(400_000, lengths=lengths, random_state=10**6)
    target = tps_score(whole.target, whole.data)
    drawn = Parallel(n_jobs=n_jobs)(
        delayed(estimates)(n_runs, lengths, seed) for seed in range(repeats)
    )
    rows = {}
    for name in drawn[0]:
        value, std_error, truth = np.array([one[name] for one in drawn]).T
        error = value - truth
        missed = np.abs(value - target) > 1.959964 * std_error
        rows[name] = {
            "error": error.mean(),
            "its std_error": error.std(ddof=1) / np.sqrt(repeats),
            "spread": value.std(ddof=1),
            "mean std_error": std_error.mean(),
            "coverage": np.nan if np.isnan(std_error).any() else 1 - missed.mean(),
        }
    return pd.DataFrame(rows).T


def main() -> None:
    """Print one table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--lengths", type=int, nargs="+", default=[6])
    parser.add_argument("--repeats", type=int, default=200)
    parser.add_argument("--jobs", type=int, default=1)
    given = parser.parse_args()
    lengths = given.lengths[0] if len(given.lengths) == 1 else tuple(given.lengths[:2])
    print(table(given.runs, lengths, given.repeats, given.jobs).round(5).to_string())


if __name__ == "__main__":
    main()
