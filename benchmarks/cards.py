"""How often a card is wrong, and how often it is right.

    python benchmarks/cards.py [--simulations 1000] [--seed 0] [--jobs 2]

Each design has forecasts of which the truth is known. "Use as it is" is wrong where the forecasts
are worth nothing or less, "do not use" where the signal gains what matters; that forecasts can be
taken at their word, where recalibration gains what matters, and that they cannot, where they are
true; each at most 5%. So is "combine" where nothing is known, and a signal with its history that is
ahead where there is neither history nor a gain by recalibration. The other designs count how often
a card says what is true.
"""

from collections.abc import Callable

import numpy as np
from scipy.special import expit, xlogy

from shared import options, over, show
from trajscore import TrajectoryArray, evaluate
from trajscore.core.policy import MATERIAL_SHARE
from trajscore.datasets import make_trajectories
from trajscore.evaluation.recommendation import Action, Shown
from trajscore.report import EvaluationOptions

Made = tuple[TrajectoryArray, np.ndarray]
SURE = 1 - 1e-6


def trajectories(n_runs: int, seed: int, cells: Callable | None = None) -> Made:
    """Runs of several steps: true forecasts, or other numbers."""
    runs = make_trajectories(n_runs, lengths=(3, 8), information=0.35, random_state=seed)
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
    slope = np.interp(worth * MATERIAL_SHARE * np.log(2), [gain(one) for one in slopes], slopes)
    drawn = rng.normal(size=n_runs)
    return of_one_step(5 * drawn, expit(slope * drawn), rng)


def shifted(n_runs: int, seed: int, worth: float, per_task: int = 1) -> Made:
    """Forecasts whose log-odds are all too high, by what costs so many times what matters."""
    rng = np.random.default_rng(seed)
    x, w = np.polynomial.hermite_e.hermegauss(60)
    x, w = expit(1.2 * x), w / w.sum()

    def cost(shift: float) -> float:
        q = expit(np.log(x / (1 - x)) + shift)
        return float(w @ (xlogy(x, x / q) + xlogy(1 - x, (1 - x) / (1 - q))))

    shifts = np.linspace(0, 2, 2001)
    shift = np.interp(worth * MATERIAL_SHARE * np.log(2), [cost(each) for each in shifts], shifts)
    logits = np.repeat(1.2 * rng.normal(size=n_runs // per_task), per_task)
    return of_one_step(expit(logits + shift), expit(logits), rng)


def noises(n_runs: int, seed: int, n_signals: int) -> Made:
    """Signals that tell nothing."""
    X, y = trajectories(n_runs, seed)
    cells = np.random.default_rng(seed).random((len(X.cells), n_signals))
    return X.with_cells(cells, channels=[f"noise {k}" for k in range(n_signals)]), y


def noise(rng: np.random.Generator, size: int) -> np.ndarray:
    return rng.random(size)


# what is made, of so many runs, and the card that is wrong, the one that is right, and whether it
# would be wrong to say that what is said is what happens, or that it is not
DESIGNS: dict[str, tuple[Callable[..., Made], dict, tuple[int, ...], str, str, str]] = {
    "noise": (trajectories, {"cells": noise}, (30, 150, 500), Action.USE, Action.AVOID, Shown.YES),
    "noise, 7 signals": (noises, {"n_signals": 7}, (60, 300), Action.USE, Action.AVOID, Shown.YES),
    "true": (trajectories, {}, (60, 150, 500), Action.AVOID, Action.USE, Shown.NO),
    "sure, .985 right": (sure, {}, (100, 400), Action.USE, "", Shown.YES),
    "signal, 1.06 x matters": (signal, {"worth": 1.06}, (120, 600), Action.AVOID, "", Shown.YES),
    "exact": (shifted, {"worth": 0.0}, (60, 150, 600, 2400), Action.AVOID, Action.USE, Shown.NO),
    "too high, 1.06 x matters": (shifted, {"worth": 1.06}, (60, 150, 600, 2400),
                                 Action.AVOID, "", Shown.YES),
}  # fmt: skip


def decided(
    make: Callable[..., Made], how: dict, n_runs: int, seed: int
) -> tuple[str, str, str, bool]:
    """Return the cards of a forecast, its word and all together, and whether these are ahead."""
    X, y = make(n_runs, seed, **how)
    if len(set(y)) < 2:
        return Action.TOO_FEW, Shown.OPEN, Action.TOO_FEW, False
    options = EvaluationOptions(families="log")
    report = evaluate(X, y, calibrator="platt", options=options)
    card = report.cards.iloc[0]
    last = report.recommendations[report.cards.index[-1]]
    is_ahead = last.action == Action.COMBINE
    return str(card["card"]), str(card["at_its_word"]), str(last.action), is_ahead


def main() -> None:
    args = options(__doc__, simulations=1000, seed=0, jobs=2)
    rows = {}
    for name, (make, how, sizes, wrong, right, not_said) in DESIGNS.items():
        for n_runs in sizes:
            seeds = range(args.seed, args.seed + args.simulations)
            decisions = over(decided, [(make, how, n_runs, seed) for seed in seeds], args.jobs)
            cards, words, together, ahead = zip(*decisions, strict=True)
            if not name.startswith(("exact", "signal")):
                ahead = [False] * len(ahead)
            of_all = Action.COMBINE if name.startswith("noise") else Action.AVOID
            if of_all not in (wrong, Action.COMBINE):
                of_all = ""
            share = {card: cards.count(card) / len(cards) for card in Action}
            said = {f"word: {shown}": words.count(shown) / len(words) for shown in Shown}
            is_wrong = [
                card == wrong or other == of_all or is_ahead
                for card, other, is_ahead in zip(cards, together, ahead, strict=True)
            ]
            of_kind = {"wrong": np.mean(is_wrong), "wrongly ahead": np.mean(ahead)} | (
                {"right": share[right]} if right else {}
            )
            of_kind["word wrong"] = said[f"word: {not_said}"]
            rows[f"{name}, {n_runs} runs"] = share | of_kind | said
    show(f"{args.simulations} simulations of each", rows)


if __name__ == "__main__":
    main()
