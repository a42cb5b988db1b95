"""How often a card is wrong: `python benchmarks/cards.py [n_simulations]`.

Noise and forecasts of the base rate must not be called "use as it is", true forecasts of moderate
sharpness and overconfident ones must not be called "do not use", each in at most 5% of simulations.
"""

from __future__ import annotations

import sys
from collections import Counter

import numpy as np

from trajscore.calibration._maker import calibrator_maker
from trajscore.core.array import TrajectoryArray
from trajscore.core.parallel import Work
from trajscore.core.weights import as_step_weights
from trajscore.datasets import make_trajectories
from trajscore.report import IntervalOptions
from trajscore.report._cards import AVOID, CARDS, USE, card_table
from trajscore.report._data import Options
from trajscore.report._rows import make_rows
from trajscore.report._runs import check_predictors, choose_runs

OPTIONS = Options(("log",), as_step_weights(), "weighted")
WRONG = {"noise": USE, "base rate": USE, "near it": USE, "true": AVOID, "overconfident": AVOID}


def simulate(kind: str, n_runs: int, seed: int) -> str:
    """Return the card of a predictor of which is known whether it is worth anything."""
    sharpness = 3.0 if kind == "overconfident" else 1.0
    runs = make_trajectories(
        n_runs, lengths=(3, 8), information=0.35, sharpness=sharpness, random_state=seed
    )
    rng, size = np.random.default_rng(seed), len(runs.q.cells)
    cells = {
        "noise": rng.random(size),
        "base rate": np.full(size, 0.5),
        "near it": np.clip(rng.normal(0.5, 0.05, size), 0, 1),
    }.get(kind, runs.data.cells)
    return card_of(runs.data.with_cells(cells), runs.target)


def card_of(X: TrajectoryArray, y: np.ndarray) -> str:
    """Decide as `evaluate` does, without the rest of a report."""
    judged = choose_runs(check_predictors(X, y, None, None), None, "failure")
    maker = calibrator_maker("platt", OPTIONS.weights)
    rows = make_rows(judged, maker, OPTIONS.weights, Work(), [])
    return str(card_table(rows, OPTIONS, IntervalOptions(), Work())["card"].iloc[0])


def main(n_simulations: int = 1000) -> None:
    """Print how often each card comes up, and how often it is wrong."""
    print(f"{'forecast':<14}{'runs':>5}" + "".join(f"{card:>15}" for card in CARDS) + "   wrong")
    for n_runs in (30, 60, 150, 500):
        for kind, wrong in WRONG.items():
            found = Counter(simulate(kind, n_runs, seed) for seed in range(n_simulations))
            shares = "".join(f"{found[card] / n_simulations:>15.3f}" for card in CARDS)
            print(f"{kind:<14}{n_runs:>5}{shares}   {found[wrong] / n_simulations:.3f}", flush=True)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
