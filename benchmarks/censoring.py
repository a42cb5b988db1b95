"""Artificial censoring of the HotpotQA runs: what each estimator of q_Z makes of the score.

    python benchmarks/censoring.py [TABLE.csv.gz] [--repeats 1000] [--runs 1500] [--score brier]

The table is the population. A repeat draws runs from it, gives each a step budget of 3 by the toss
of a coin (or none), hides the outcomes of those cut off, and estimates the score that the observed
prefixes have with the outcomes known. Printed: bias, root mean squared error and coverage of
nominal 95% intervals. Without a table, the public one is fetched.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
import pandas as pd
from joblib import Parallel, delayed

from trajscore import TrajectoryArray
from trajscore.censoring import ContinuationModel, censored_tps_interval
from trajscore.core.run_sums import run_sums
from trajscore.core.weights import as_step_weights
from trajscore.datasets import fetch_evaluator

BUDGET = 3
AUDITED = 0.4


class Population:
    """The runs, their true continuation shares, and the score to be found.

    Parameters
    ----------
    X : TrajectoryArray
        Forecasts.
    y : ndarray
        Outcomes.
    score : score family
        What is estimated.
    """

    def __init__(self, X: TrajectoryArray, y: np.ndarray, score: Any) -> None:
        self.X, self.y, self.score = X, y, score
        self.long = X.lengths > BUDGET
        self.short = X.prefix(BUDGET)
        # P(Y = 1 | first three values, still going): a share, as the table is the population
        prefix = pd.DataFrame(self.X.steps(BUDGET + 1)[:, :BUDGET])
        keys = prefix.groupby(list(prefix.columns)).ngroup()
        self.share = np.full(len(y), np.nan)
        self.share[self.long] = pd.Series(y[self.long]).groupby(keys).transform("mean")
        whole, cut = (run_sums(y, one, score, as_step_weights()) for one in (X, self.short))
        # half of the long runs are cut, by chance
        total, weight = whole.total + cut.total, whole.divisor + cut.divisor
        self.target = float(total.sum() / weight.sum())

    def estimates(
        self, n_runs: int, n_resamples: int, seed: int, refit: bool = True
    ) -> dict[str, list[float]]:
        """Draw a sample and return value, low and high for each estimator.

        Parameters
        ----------
        n_runs, n_resamples, seed : int
            Sample size, bootstrap replicates, seed.
        refit : bool, default=True
            Whether to include the estimators that are fitted anew in each replicate.

        Returns
        -------
        dict
            Estimator to [value, low, high].
        """
        rng = np.random.default_rng(seed)
        rows = rng.integers(len(self.y), size=n_runs)
        cut = self.long[rows] & (rng.random(n_runs) < 0.5)
        whole = self.X[rows]
        lengths = np.where(cut, BUDGET, whole.lengths)
        X = TrajectoryArray(whole.truncate(lengths).cells, lengths, ids=np.arange(n_runs))
        outcome = self.y[rows]
        y = np.where(cut, -1, outcome)
        audited = cut & (rng.random(n_runs) < AUDITED)
        branches = [[one] if a else None for one, a in zip(outcome, audited, strict=True)]
        options = {"score": self.score, "n_resamples": n_resamples, "random_state": seed}
        found = {
            "complete": censored_tps_interval(outcome, X, **options),
            "simple": censored_tps_interval(y, X, **options),
            "exact": censored_tps_interval(y, X, q_z=self.share[rows], **options),
        }
        if refit:
            plug_in = ContinuationModel(cv=None, allow_predictor=True)  # there is but one signal
            found |= {
                "plug-in": censored_tps_interval(y, X, q_z=plug_in, history=X, **options),
                "plug-in, q_Z taken as known": censored_tps_interval(
                    y, X, q_z=plug_in.fit(X, y).predict(X), **options
                ),
                "hybrid": censored_tps_interval(
                    y, X, q_z=plug_in, history=X, branches=branches, **options
                ),
            }
        return {name: [one.value, *one.normal()] for name, one in found.items()}

    def table(
        self,
        repeats: int,
        n_runs: int = 1500,
        n_resamples: int = 100,
        n_jobs: int = 1,
        refit: bool = True,
    ) -> pd.DataFrame:
        """Repeat, and sum up bias, error and coverage.

        Parameters
        ----------
        repeats, n_runs, n_resamples, n_jobs : int
            Repeats, sample size, bootstrap replicates, processes.
        refit : bool, default=True
            Whether to include the estimators that are fitted anew in each replicate.

        Returns
        -------
        DataFrame
            One row an estimator.
        """
        drawn = Parallel(n_jobs=n_jobs)(
            delayed(self.estimates)(n_runs, n_resamples, seed, refit) for seed in range(repeats)
        )
        rows = {}
        for name in drawn[0]:
            value, low, high = np.array([one[name] for one in drawn]).T
            rows[name] = {
                "mean": value.mean(),
                "bias": value.mean() - self.target,
                "bias_std_error": value.std(ddof=1) / np.sqrt(repeats),
                "rmse": np.sqrt(((value - self.target) ** 2).mean()),
                "coverage": ((low <= self.target) & (self.target <= high)).mean(),
            }
        return pd.DataFrame(rows).T


def main() -> None:
    """Print one table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("table", nargs="?")
    parser.add_argument("--repeats", type=int, default=1000)
    parser.add_argument("--runs", type=int, default=1500)
    parser.add_argument("--resamples", type=int, default=100)
    parser.add_argument("--score", default="brier")
    parser.add_argument("--jobs", type=int, default=2)
    arguments = parser.parse_args()
    if arguments.table:
        X, y = TrajectoryArray.from_frame(
            pd.read_csv(arguments.table), id="uq_problem_idx", step="num_steps",
            value="judge_probability", outcome="solved",
        )  # fmt: skip
    else:
        X, y = fetch_evaluator("hotpotqa", return_X_y=True)
    population = Population(X, y, arguments.score)
    table = population.table(arguments.repeats, arguments.runs, arguments.resamples, arguments.jobs)
    print(f"complete score in the population: {population.target:.4f}")
    print(table.round(4).to_string())


if __name__ == "__main__":
    main()
