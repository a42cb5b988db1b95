"""Sequential monitoring: power at the same guarantee, and the guarantee itself, measured.

    python benchmarks/monitoring.py power      [--data FOLDER] [--splits 50] [--share 0.2]
    python benchmarks/monitoring.py curve      [--data FOLDER] [--splits 30]
    python benchmarks/monitoring.py worth      [--data FOLDER] [--splits 20]
    python benchmarks/monitoring.py guarantee  [--sets 1000]
    python benchmarks/monitoring.py first-day  [--splits 100]

"power" compares rules on public tables, "curve" numbers of known runs, "worth" of `end_worth`;
"guarantee" simulates false alarms; "first-day" has guards with few labels, and success shown early.
"""

import warnings
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.tree import DecisionTreeClassifier

from reproduction.items import Data
from shared import JUDGES, dispatch, over, plus_minus, show
from trajscore import DensityRatioEProcess, PrefixForecaster, TrajectoryArray
from trajscore.datasets import load_real_runs
from trajscore.integrations import Guard
from trajscore.monitoring import Conformal, Pac, PacMarginal

ALPHA = 0.1
MOST_NEW = 4000
SEED = 20261123

PUBLISHED = {"forecaster": PrefixForecaster(), "hold_out": "runs"}
METHODS: dict[str, dict[str, Any]] = {
    "pac_marginal, as published": {**PUBLISHED, "threshold": "pac_marginal"},
    "conformal, prefix logistic": PUBLISHED,
    "the default: conformal, the end known": {},
    "the same, pac": {"threshold": "pac"},
    "the same, randomized_ville": {"threshold": "randomized_ville"},
}
WORTH = {f"end_worth {worth}": {"threshold": Conformal(end_worth=worth)} for worth in (None, 0.3)}
KNOWN = {n: {} for n in (50, 100, 200, 400, 800, 1600)}  # by the default
SHOWN = ["power", "power_before_end", "power_longer", "steps_saved", "false_alarm_rate"]


def one_split(
    X: TrajectoryArray, y: np.ndarray, entropy: Any, known: float, method: dict
) -> list[float]:
    """What is shown of a method, and the share of failing runs flagged by half of their steps."""
    rows = np.random.default_rng(entropy).permutation(len(X))
    n = int(known * len(X)) if known < 1 else int(known)
    old, new = rows[:n], rows[n : n + MOST_NEW]
    how = {name: clone(value, safe=False) for name, value in method.items()}
    seed = np.ravel(entropy)[-1]
    process = DensityRatioEProcess(alpha=ALPHA, random_state=seed, **how).fit(X[old], y[old])
    stop = process.stopping_steps(X[new])
    early = (stop > 0) & (stop <= X[new].lengths / 2)
    return [*process.report(X[new], y[new])[SHOWN].iloc[0], early[y[new] == 0].mean()]


def compared(args: Any, methods: dict, first: tuple[int, ...] = ()) -> None:
    """Print means over random splits; a method that is named by a number has so many known runs."""
    warnings.filterwarnings("ignore")  # of runs longer than the longest in fitting
    for name in JUDGES:
        X, y = Data(args.data).runs(name)
        seeds = [[*first, seed] if first else seed for seed in range(args.splits)]
        rows = {}
        for label, method in methods.items():
            known = label if isinstance(label, int) else args.share
            of_splits = over(one_split, [(X, y, seed, known, method) for seed in seeds], args.jobs)
            columns = zip([*SHOWN, "by half"], np.transpose(of_splits), strict=True)
            rows[label] = {column: plus_minus(values) for column, values in columns}
        known = "some" if methods is KNOWN else f"{args.share:.0%}"
        title = f"{name}, alpha = {ALPHA}: {known} of {len(X):,} runs known"
        show(f"{title}, {args.splits} splits", rows)


def drawn(rng: np.random.Generator, n: int, discrete: bool) -> np.ndarray:
    """Forecasts of succeeding runs, (n, 3), of a known law: continuous, or of 3 values."""
    if not discrete:
        return np.clip(rng.normal(0.6, 0.2, (n, 3)), 0.01, 0.99)
    traces = np.full((n, 3), 0.8)
    law = [0.02, 0.38, 0.6]
    traces[np.arange(n), rng.integers(0, 3, n)] = rng.choice([0.2, 0.5, 0.8], n, p=law)
    return traces


def rates_above(sets: int) -> None:
    """Print how often, and by how much, the rate of false alarms exceeds its level."""
    alpha, delta = 0.2, 0.1
    y, rows = np.r_[np.ones(60), np.zeros(60)], {}
    for discrete in (False, True):
        rng = np.random.default_rng(0)
        worst = np.sort(drawn(rng, 400_000, discrete).min(axis=1))
        for threshold in (Pac(delta=delta), Conformal(), PacMarginal()):
            rates = np.empty((sets, 2))
            for k in range(sets):
                cells = np.vstack([drawn(rng, 60, discrete), np.full((60, 3), 0.3)])
                process = DensityRatioEProcess("passthrough", threshold=threshold, alpha=alpha).fit(
                    TrajectoryArray.from_padded(cells), y, calibration=np.r_[0:50, 60:110]
                )
                limit = 1 / (1 + process.thresholds_.iloc[0])
                for j, slack in enumerate((1 - 1e-9, 1 + 1e-9)):
                    rates[k, j] = np.searchsorted(worst, limit * slack) / len(worst)
            above = (rates > alpha).mean(axis=0)
            row = {"mean rate": rates[:, 0].mean(), "P(rate > alpha)": above[0]}
            kind = "3 values" if discrete else "continuous"
            rows[f"{threshold.keyword}, {kind}"] = row | {"with >=": above[1]}
    show(f"alpha = {alpha}, delta = {delta}, 50 held-out successes, {sets:,} sets", rows)


def lengths_that_tell(sets: int) -> dict[str, np.ndarray]:
    """Return false alarms of the true M where lengths tell all, and scores say nothing.

    Succeeding runs end with hazard .5, failing ones with .1: M_t = (.9 / .5)^(t - 1), times
    .1 / .5 at the end. A rule that takes M without the end for an e-value there flags too many.
    """
    rng, rates = np.random.default_rng(2), np.empty((sets, 2))
    for k in range(sets):
        X = known_law(np.r_[rng.geometric(0.5, 300), rng.geometric(0.1, 300)])
        process = DensityRatioEProcess("passthrough", threshold="randomized_ville", alpha=ALPHA)
        process.fit(X, np.repeat([1, 0], 300))
        good = known_law(rng.geometric(0.5, 200))
        without = 2 * process.base_rate_ * (0.9 / 0.5) ** (good.lengths - 1)
        flagged = process.predict(good) == 0
        rates[k] = flagged.mean(), (without > rng.random(200) / ALPHA).mean()
    names = ("randomized_ville", "the same, the end ignored, as published")
    return {f"lengths that tell, {name}": of for name, of in zip(names, rates.T, strict=True)}


def known_law(lengths: np.ndarray, success: float = 0.5, failure: float = 0.1) -> TrajectoryArray:
    """Forecasts of success that are right for these hazards, the end and a base rate of a half."""
    X = TrajectoryArray(np.zeros(lengths.sum()), lengths, ended=True)
    step = np.arange(len(X.cells)) - np.repeat(X.offsets[:-1], X.lengths)
    odds_of_failure = ((1 - failure) / (1 - success)) ** step
    odds_of_failure[X.offsets[1:] - 1] *= failure / success
    return X.with_cells(1 / (1 + odds_of_failure))


def drawn_runs(rng: np.random.Generator, y: np.ndarray, discrete: bool = False) -> TrajectoryArray:
    """Runs whose scores and lengths depend on the outcome; a run of one step fails."""
    lengths = np.where(y == 1, 1 + rng.geometric(0.4, len(y)), rng.geometric(0.2, len(y)))
    lengths = np.minimum(lengths, 12)
    scores = rng.normal(np.repeat(0.5 + 0.1 * y, lengths), 0.2)
    if discrete:
        scores = np.digitize(scores, [0.4, 0.7]) / 2
    return TrajectoryArray(np.clip(scores, 0, 1), lengths, ended=True)


def one_set(seed: int, n: int, discrete: bool, **how: Any) -> float:
    rng = np.random.default_rng(seed)
    y = (rng.random(n) < 0.6).astype(int)
    process = DensityRatioEProcess(alpha=ALPHA, random_state=seed, **how)
    process.fit(drawn_runs(rng, y, discrete), y)
    new = drawn_runs(rng, np.ones(400, dtype=int), discrete)
    named = TrajectoryArray(new.cells, new.lengths, ids=np.arange(400) + n, ended=True)
    return float((process.predict(named) == 0).mean())


MEMORISED = PrefixForecaster(
    DecisionTreeClassifier(random_state=0), features="running", pooled=True, end="step"
)


def guarantee(args: Any) -> None:
    rates_above(args.sets)
    by_design = lengths_that_tell(args.sets)
    learners = [("default", None), ("a tree that memorised", MEMORISED)]
    every = product(learners, (False, True), ("strict", "randomized"), (60, 200, 1000))
    for (name, learner), discrete, ties, n in every:
        kind = "3 values" if discrete else "continuous"
        by_design[f"{name}, {kind}, {ties}, {n} runs"] = [
            one_set(k, n, discrete, forecaster=learner, threshold=Conformal(ties))
            for k in range(max(args.sets // 5, 2))
        ]
    rows = {name: {"false alarms": plus_minus(rates)} for name, rates in by_design.items()}
    show(f"alpha = {ALPHA}, simulated", rows)


LABELS = (0, 60, 200)


def flagged(process: Any, X: TrajectoryArray, y: np.ndarray) -> list[float]:
    """Shares of failures and of successes that are flagged, and of all steps that come later."""
    stop = process.stopping_steps(X)
    later = np.where(stop > 0, X.lengths - stop, 0).sum() / X.lengths.sum()
    return [(stop[y == 0] > 0).mean(), (stop[y == 1] > 0).mean(), later]


def one_day(real: Any, seed: int) -> list[list[float]]:
    """Fit on some runs with labels, or 200 without; judge on half of the tasks, one run each."""
    rows = np.random.default_rng(seed).permutation(len(real.target))
    y, (old, new) = real.target, np.split(rows, 2)
    process, shown = DensityRatioEProcess(alpha=ALPHA, random_state=seed), []
    for n in LABELS:
        known = old[: n or 200]
        labels = y[known] if n else np.full(200, -1)
        guard = Guard(process=process).fit([real.runs[row] for row in known], labels)
        X = guard.signals_.transform([real.runs[row] for row in new])
        shown.append(flagged(guard.process_, X, y[new]))
    X = real.data[["token_probability", "agreement"]].with_ended(y != -1)
    process.set_params(flags="success").fit(X[old[:200]], y[old[:200]])
    return [*shown, flagged(process, X[new], y[new])]


def first_day(args: Any) -> None:
    names = [*(f"a guard, {n} labels" for n in LABELS), "success, 200 labels"]
    for model in ("smollm2_135m", "gemma3_270m"):
        real = load_real_runs(model=model)
        draws = over(one_day, [(real, seed) for seed in range(args.splits)], args.jobs)
        table = pd.DataFrame(np.apply_along_axis(plus_minus, 0, draws)).set_axis(names)
        table.columns = ["failures", "successes", "steps after"]
        show(f"{model}: flagged at alpha = {ALPHA}", table)


if __name__ == "__main__":
    commands = {
        "power": partial(compared, methods=METHODS), "curve": partial(compared, methods=KNOWN),
        "worth": partial(compared, methods=WORTH, first=(SEED,)), "guarantee": guarantee,
        "first-day": first_day,
    }  # fmt: skip
    dispatch(__doc__, commands, splits=50, share=0.2, sets=1000, jobs=2)
