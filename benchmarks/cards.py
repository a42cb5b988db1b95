"""How often a card is wrong, and how often it is right: `python benchmarks/cards.py [n] [seed]`.

Each design has forecasts of which the truth is known. "Use as it is" is wrong where the forecasts
are worth nothing or less, "do not use" where the signal gains what matters; each at most 5%. The
last designs count how often a card says what is true.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable

import numpy as np
from scipy.special import expit, xlogy

from trajscore.calibration.calibrators import calibrator_maker
from trajscore.core.array import TrajectoryArray
from trajscore.core.parallel import Work
from trajscore.core.weights import as_step_weights
from trajscore.datasets import make_trajectories
from trajscore.report import EvaluationOptions
from trajscore.report._cards import AVOID, CARDS, MATTERS, TOO_FEW, USE, card_table
from trajscore.report._data import Options
from trajscore.report._rows import predictor_rows
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
    x, slope = rng.normal(size=n_runs), _slope(worth)
    return of_one_step(5 * x, expit(slope * x), rng)


def _slope(worth: float) -> float:
    x, w = np.polynomial.hermite_e.hermegauss(60)
    w = w / w.sum()

    def gain(slope: float) -> float:
        p = expit(slope * x)
        return float(w @ (xlogy(p, p) + xlogy(1 - p, 1 - p))) + np.log(2)

    slopes = np.linspace(0, 2, 2001)
    return float(np.interp(worth * MATTERS * np.log(2), [gain(one) for one in slopes], slopes))


def noise(rng: np.random.Generator, size: int) -> np.ndarray:
    """Forecasts of nothing."""
    return rng.random(size)


def base_rate(rng: np.random.Generator, size: int) -> np.ndarray:
    """The constant that the base rate is as well."""
    return np.full(size, 0.5)


def near_it(rng: np.random.Generator, size: int) -> np.ndarray:
    """Forecasts of nothing, near the base rate."""
    return np.clip(rng.normal(0.5, 0.05, size), 0, 1)


# what is made, of so many runs, and the card that is wrong, or the one that is right
DESIGNS: dict[str, tuple[Callable[[int, int], Made], tuple[int, ...], str, str]] = {
    "noise": (lambda n, s: trajectories(n, s, noise), (30, 150, 500), USE, AVOID),
    "base rate": (lambda n, s: trajectories(n, s, base_rate), (30, 150, 500), USE, AVOID),
    "near it": (lambda n, s: trajectories(n, s, near_it), (30, 150, 500), USE, AVOID),
    "true": (trajectories, (30, 60, 150, 500), AVOID, USE),
    "overconfident": (lambda n, s: trajectories(n, s, sharp=3.0), (60, 150, 500), AVOID, ""),
    "sure, .985 right": (sure, (100, 200, 400), USE, ""),
    "sure, .986 right": (lambda n, s: sure(n, s, 0.986), (300,), USE, ""),
    "40% sure, .97 right": (lambda n, s: sure(n, s, 0.97, 0.4), (100, 200), USE, ""),
    "signal, 1.5 x matters": (lambda n, s: signal(n, s, 1.5), (80, 250, 600), AVOID, ""),
    "signal, 1.06 x matters": (lambda n, s: signal(n, s, 1.06), (120, 250, 600), AVOID, ""),
    "signal, .31 x matters": (lambda n, s: signal(n, s, 0.31), (600, 1500), USE, AVOID),
    "signal, nothing": (lambda n, s: signal(n, s, 0.0), (600,), USE, AVOID),
}


def decided(X: TrajectoryArray, y: np.ndarray, calibrator: str | None = "platt") -> dict:
    """Decide as `evaluate` does, without the rest of a report."""
    judged = choose_runs(check_predictors(X, y, None, None), None, "failure")
    maker = calibrator_maker(calibrator, OPTIONS.weights)
    rows = predictor_rows(judged, maker, Work(), [])
    return dict(card_table(rows, OPTIONS, EvaluationOptions(), Work()).iloc[0])


def enough_said(n_simulations: int, seed: int) -> None:
    """Print how often `n_needed` more runs decide a card that had too few."""
    print(f"{'n_needed':<24}{'runs':>5}{'asked':>8}{'decided':>9}   10 to 90% of n_needed")
    designs = {"true": trajectories, "signal, 3 x matters": lambda n, s: signal(n, s, 3.0)}
    designs["noise"] = lambda n, s: trajectories(n, s, noise)
    for name, make in designs.items():
        for n_runs in (30, 60, 120):
            asked, met = [], []
            for k in range(seed, seed + n_simulations):
                X, y = make(n_runs, k)
                if len(set(y)) < 2 or (card := decided(X, y))["card"] != TOO_FEW:
                    continue
                more, z = make(int(card["n_needed"]), k + 10**6)
                both = TrajectoryArray(
                    np.concatenate([X.cells, more.cells]), np.append(X.lengths, more.lengths)
                )
                asked.append(card["n_needed"])
                met.append(decided(both, np.concatenate([y, z]))["card"] != TOO_FEW)
            low, high = np.quantile(asked, [0.1, 0.9]) if asked else (0, 0)
            row = f"{name:<24}{n_runs:>5}{len(asked):>8}{np.mean(met):>9.3f}"
            print(f"{row}   {low:.0f} to {high:.0f}", flush=True)


def main(n_simulations: int = 1000, seed: int = 0) -> None:
    """Print how often each card comes up, and how often it is wrong."""
    print(f"{'forecast':<24}{'runs':>5}" + "".join(f"{c:>15}" for c in CARDS) + "  wrong  right")
    for name, (make, sizes, wrong, right) in DESIGNS.items():
        for n_runs in sizes:
            found: Counter[str] = Counter()
            for k in range(seed, seed + n_simulations):
                X, y = make(n_runs, k)
                found[str(decided(X, y)["card"]) if len(set(y)) > 1 else TOO_FEW] += 1
            share = {card: found[card] / n_simulations for card in CARDS}
            cells = "".join(f"{share[card]:>15.3f}" for card in CARDS)
            is_right = f"{share[right]:7.3f}" if right else ""
            print(f"{name:<24}{n_runs:>5}{cells}  {share[wrong]:.3f}{is_right}", flush=True)
    enough_said(n_simulations, seed)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
