"""What cutting complete runs off does to their score, by outcome, on public runs of agents.

    python benchmarks/censoring_shift.py [TABLE.csv.gz] [--rates .25 .5 .75]

Of every length the same share of runs is cut, each at a step drawn at random before its last. The
forecasts are a judge's, calibrated out of fold for each schedule: the default and those of the
paper, over the length of each run. Printed for every rate, family and schedule: the complete score,
the shift, its two parts, and the shift of failures and of successes (the layout of Table 10 of
Raghu et al., 2026, whose own runs are not public). Without a table, the public one of HotpotQA is
fetched.
"""

from __future__ import annotations

import argparse

import numpy as np
import pandas as pd

from trajscore import PlattCrossFitCalibrator, TrajectoryArray
from trajscore.censoring import censoring_shift
from trajscore.core.score_families import family_name
from trajscore.datasets import fetch_evaluator

SCHEDULES = ("linear_front", "uniform", "exponential_front", "linear_back")  # of the paper
FAMILIES = ("log", "brier", ("beta", 2, 4))


def load(table: str | None) -> tuple[TrajectoryArray, np.ndarray]:
    """Read a judge's forecasts and the outcomes.

    Parameters
    ----------
    table : str or None
        A table of the e-valuator paper; None for that of HotpotQA, fetched.

    Returns
    -------
    tuple
        Forecasts and outcomes.
    """
    if table is None:
        return fetch_evaluator("hotpotqa", return_X_y=True)
    return TrajectoryArray.from_frame(
        pd.read_csv(table), id="uq_problem_idx", step="num_steps", value="judge_probability",
        outcome="solved",
    )  # fmt: skip


def kept_steps(lengths: np.ndarray, rate: float, seed: int = 0) -> np.ndarray:
    """Cut the same share of runs of every length, at a random step before the last.

    Parameters
    ----------
    lengths : ndarray of int
        Lengths of the runs.
    rate : float
        Share to be cut; runs of one step cannot be.
    seed : int, default=0
        Seed.

    Returns
    -------
    ndarray of int
        Steps that are kept.
    """
    rng = np.random.default_rng(seed)
    place = pd.Series(rng.random(len(lengths))).groupby(lengths).rank(pct=True).to_numpy()
    cut = (place <= rate) & (lengths > 1)
    return np.where(cut, rng.integers(1, np.maximum(lengths, 2)), lengths)


def table(
    X: TrajectoryArray, y: np.ndarray, rates: list[float], schedules: tuple[str, ...] = SCHEDULES
) -> pd.DataFrame:
    """Return shifts by rate, family and schedule.

    Parameters
    ----------
    X : TrajectoryArray
        A signal.
    y : ndarray
        Outcomes.
    rates : list of float
        Shares of runs that are cut.
    schedules : tuple of str
        Weights; those of the paper are taken over the length of each run.

    Returns
    -------
    DataFrame
        One row for each combination.
    """
    rows = []
    for weights in schedules:
        how = {"weights": weights} | ({"horizon": "own"} if weights in SCHEDULES else {})
        forecasts = PlattCrossFitCalibrator(**how).fit_transform(X, y)
        for rate in rates:
            kept = kept_steps(X.lengths, rate)
            for score in FAMILIES:
                found = censoring_shift(y, forecasts, kept, score=score, **how)
                whole = found.loc["all"].drop(["n_runs", "n_cut", "censored"]).to_dict()
                by = {"failures": found.loc["failure", "shift"],
                      "successes": found.loc["success", "shift"]}  # fmt: skip
                key = {"rate": rate, "score": family_name(score), "weights": weights}
                rows.append(key | whole | by)
    return pd.DataFrame(rows).sort_values(["rate", "weights"], kind="stable")


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("table", nargs="?")
    parser.add_argument("--rates", type=float, nargs="+", default=[0.25, 0.5, 0.75])
    given = parser.parse_args()
    found = table(*load(given.table), given.rates, ("early", *SCHEDULES))
    print(found.round(5).to_string(index=False))


if __name__ == "__main__":
    main()
