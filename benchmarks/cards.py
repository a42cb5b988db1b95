"""How often a card is wrong, and how often it is right.

    python benchmarks/cards.py [--simulations 1000] [--seed 0] [--jobs 2]

Each design has forecasts of which the truth is known. "Use as it is" is wrong where the forecasts
are worth nothing or less, "do not use" where the signal gains what matters; each at most 5%. The
other designs count how often a card says what is true.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.special import expit, xlogy

from shared import options, over, show
from trajscore import TrajectoryArray
from trajscore.calibration.calibrators import calibrator_maker
from trajscore.core.parallel import Work
from trajscore.core.weights import as_step_weights
from trajscore.datasets import make_trajectories
from trajscore.report._cards import AVOID, CARDS, MATTERS, TOO_FEW, USE, card_table
from trajscore.report._data import Options
from trajscore.report._rows import base_rate, predictor_rows
from trajscore.report._runs import check_predictors, choose_runs

OPTIONS = Options(("log",), as_step_weights(), "weighted")
Made = tuple[TrajectoryArray, np.ndarray]
SURE = 1 - 1e-6


def trajectories(n_runs: int, seed: int, cells: Callable | None = None, sharp: float = 1) -> Made:
    """Runs of several steps: true forecasts, overconfident ones, or other numbers."""
    runs = make_trajectories(
        n_runs, lengths=(3, 8), information=0.35, sharpness=sharp, random_state=seed
    )
    X = runs.data
    if cells is not None:
        X = X.with_cells(cells(np.random.default_rng(seed), len(X.cells)))
    return X, runs.target


def of_one_step(p: np.ndarray, truth: np.ndarray, rng: np.random.Generator) -> Made:
    """Runs of one step, which succeed with the chances `truth`."""
    return TrajectoryArray.from_list(p[:, None].tolist()), (rng.random(len(p)) < truth).astype(int)


def sure(n_runs: int, seed: int, right: float = 0.985, share: float = 0.6) -> Made:
    """Base rate 0.9: a share of the forecasts are all but 1 and right as often as `right`."""
    rng = np.random.default_rng(seed)
    is_sure = rng.random(n_runs) < share
    rest = (0.9 - share * right) / (1 - share)
    return of_one_step(np.where(is_sure, SURE, rest), np.where(is_sure, right, rest), rng)


def signal(n_runs: int, seed: int, worth: float) -> Made:
    """A signal, no probability, with which so many times what matters can be gained."""
    rng = np.random.default_rng(seed)
    x, w = np.polynomial.hermite_e.hermegauss(60)

    def gain(slope: float) -> float:
        p = expit(slope * x)
        return float(w / w.sum() @ (xlogy(p, p) + xlogy(1 - p, 1 - p))) + np.log(2)

    slopes = np.linspace(0, 2, 2001)
    slope = np.interp(worth * MATTERS * np.log(2), [gain(one) for one in slopes], slopes)
    drawn = rng.normal(size=n_runs)
    return of_one_step(5 * drawn, expit(slope * drawn), rng)


def noise(rng: np.random.Generator, size: int) -> np.ndarray:
    """Forecasts of nothing."""
    return rng.random(size)


def near_it(rng: np.random.Generator, size: int) -> np.ndarray:
    """Forecasts of nothing, near the base rate."""
    return np.clip(rng.normal(0.5, 0.05, size), 0, 1)


# what is made, of so many runs, and the card that is wrong, or the one that is right
DESIGNS: dict[str, tuple[Callable[..., Made], dict, tuple[int, ...], str, str]] = {
    "noise": (trajectories, {"cells": noise}, (30, 150, 500), USE, AVOID),
    "near the base rate": (trajectories, {"cells": near_it}, (30, 150, 500), USE, AVOID),
    "true": (trajectories, {}, (60, 150, 500), AVOID, USE),
    "overconfident": (trajectories, {"sharp": 3.0}, (60, 150, 500), AVOID, ""),
    "sure, .985 right": (sure, {}, (100, 400), USE, ""),
    "signal, 1.06 x matters": (signal, {"worth": 1.06}, (120, 600), AVOID, ""),
    "signal, .31 x matters": (signal, {"worth": 0.31}, (600,), USE, AVOID),
}


def decided(make: Callable[..., Made], how: dict, n_runs: int, seed: int) -> str:
    """Decide as `evaluate` does, without the rest of a report."""
    X, y = make(n_runs, seed, **how)
    if len(set(y)) < 2:
        return TOO_FEW
    judged = choose_runs(check_predictors(X, y, None, None), None, "failure")
    rows = predictor_rows(judged, calibrator_maker("platt", OPTIONS.weights), Work(), [])
    rows.append(base_rate(rows[0].traces, judged.runs, OPTIONS.weights))
    return str(card_table(rows, OPTIONS).iloc[0]["card"])


def main() -> None:
    """Print how often each card comes up, and how often it is wrong."""
    given = options(__doc__, simulations=1000, seed=0, jobs=2)
    rows = {}
    for name, (make, how, sizes, wrong, right) in DESIGNS.items():
        for n_runs in sizes:
            seeds = range(given.seed, given.seed + given.simulations)
            found = over(decided, [(make, how, n_runs, seed) for seed in seeds], given.jobs)
            share = {card: found.count(card) / len(found) for card in CARDS}
            said = {"wrong": share[wrong]} | ({"right": share[right]} if right else {})
            rows[f"{name}, {n_runs} runs"] = share | said
    show(f"{given.simulations} simulations of each", rows)


if __name__ == "__main__":
    main()
