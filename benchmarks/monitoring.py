"""Sequential monitoring: power at the same guarantee, and the guarantee itself, measured.

    python benchmarks/monitoring.py power      [--data FOLDER] [--splits 50] [--share 0.2]
    python benchmarks/monitoring.py curve      [--data FOLDER] [--splits 30]
    python benchmarks/monitoring.py worth      [--data FOLDER] [--splits 20]
    python benchmarks/monitoring.py guarantee  [--sets 1000]
    python benchmarks/monitoring.py edges      [--sets 300]

"power" compares rules on random splits of public tables, "curve" numbers of known runs, and "worth"
values of `end_worth`. "guarantee" simulates false alarms of the rules; "edges" those with an
`end_worth`, where rates are near 0 and 1, scores are tied, runs are few or are trials of tasks.
"""

from __future__ import annotations

import warnings
from itertools import product
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.tree import DecisionTreeClassifier

from reproduction.items import Data
from shared import options, over, plus_minus, show
from trajscore import DensityRatioEProcess, PrefixForecaster, TrajectoryArray, tps_scorer

ALPHA = 0.1
MOST_NEW = 4000
SEED = 20261123

# --------------------------------------------------------------------------- public tables


def chosen_by_tps() -> GridSearchCV:
    """The forecaster with the best proper score, chosen within the runs that it is fitted on."""
    boosted = HistGradientBoostingClassifier(
        max_iter=60, learning_rate=0.08, max_leaf_nodes=8, random_state=0
    )
    return GridSearchCV(
        PrefixForecaster(),
        [
            {"features": ["prefix", "running"]},
            {"features": ["running"], "pooled": [True], "estimator": [boosted]},
            {"features": ["last"], "last": [7], "pooled": [True], "estimator": [boosted]},
        ],
        scoring=tps_scorer,
        cv=3,
    )


PUBLISHED = {"forecaster": PrefixForecaster(), "hold_out": "runs"}
METHODS: dict[str, dict[str, Any]] = {
    "pac_marginal, as published": {**PUBLISHED, "threshold": "pac_marginal"},
    "conformal, prefix logistic": PUBLISHED,
    "conformal, chosen by TPS": {"forecaster": chosen_by_tps(), "hold_out": "runs"},
    "conformal, the end ignored": {
        "forecaster": PrefixForecaster(features="running", pooled=True),
    },
    "the default: conformal, the end known": {},
    "the same, known after the step": {
        "forecaster": PrefixForecaster(features="running", pooled=True, end="after"),
    },
    "the same, wait = 0.5": {"wait": 0.5},
    "the same, pac": {"threshold": "pac"},
    "the same, randomized_ville": {"threshold": "randomized_ville"},
}  # fmt: skip
WORTH = {f"end_worth {worth}": {"end_worth": worth} for worth in (None, 1, 0.3, 0.1, 0)}
LEVELS = [0.05, 0.1, 0.2]
SHOWN = ["power", "power_before_end", "power_longer", "steps_saved", "false_alarm_rate"]


def one_split(
    X: TrajectoryArray, y: np.ndarray, entropy: Any, known: float, methods: dict, levels: list
) -> np.ndarray:
    """What is shown of every method at every level, fitted on so many or such a share of the runs.

    The last is the share of failing runs that are flagged by half of their steps.
    """
    rows = np.random.default_rng(entropy).permutation(len(X))
    n = int(known * len(X)) if known < 1 else int(known)
    old, new = rows[:n], rows[n : n + MOST_NEW]
    seed = np.ravel(entropy)[-1]
    out = []
    for method in methods.values():
        how = {name: clone(value, safe=False) for name, value in method.items()}
        process = DensityRatioEProcess(alpha=levels, random_state=seed, **how).fit(X[old], y[old])
        stop = process.stopping_steps(X[new], alpha=levels[-1])
        early = (stop > 0) & (stop <= X[new].lengths / 2)
        found = process.report(X[new], y[new])[SHOWN].to_numpy()
        half = np.full((len(levels), 1), np.nan)
        half[-1] = early[y[new] == 0].mean()
        out.append(np.hstack([found, half]))
    return np.array(out)


def compared(given: Any, methods: dict, levels: list, first: tuple[int, ...] = ()) -> None:
    """Print what is shown of methods over random splits, with 95% intervals."""
    for name in ("hotpotqa", "gsm8k"):
        X, y = Data(given.data).runs(name)
        seeds = [[*first, seed] if first else seed for seed in range(given.splits)]
        calls = [(X, y, seed, given.share, methods, levels) for seed in seeds]
        found = np.array(over(one_split, calls, given.jobs))
        for j, level in enumerate(levels):
            columns = [*SHOWN, *(["by half"] if level == levels[-1] else [])]
            rows = {
                method: {c: plus_minus(found[:, k, j, i]) for i, c in enumerate(columns)}
                for k, method in enumerate(methods)
            }
            title = f"{name}, alpha = {level}: {given.share:.0%} of {len(X):,} runs known"
            show(f"{title}, {given.splits} splits", rows)


def power(given: Any) -> None:
    """Print power, and what it is made of."""
    warnings.filterwarnings("ignore", message=".*longer than the longest run in fitting")
    compared(given, METHODS, LEVELS)


def worth(given: Any) -> None:
    """Print the same over `end_worth`."""
    compared(given, WORTH, [ALPHA], (SEED,))


def curve(given: Any) -> None:
    """Print power over the number of known runs."""
    warnings.filterwarnings("ignore")
    for name in ("hotpotqa", "gsm8k"):
        X, y = Data(given.data).runs(name)
        rows = {}
        for n in (50, 100, 200, 400, 800, 1600):
            calls = [(X, y, seed, n, {"": {}}, [ALPHA]) for seed in range(given.splits)]
            found = np.array(over(one_split, calls, given.jobs))[:, 0, 0]
            rows[n] = {SHOWN[k]: plus_minus(found[:, k]) for k in (0, 4)}
        show(f"{name}: known runs, the default at alpha = {ALPHA}", rows)


# --------------------------------------------------------------------------- simulations


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
    y, found = np.r_[np.ones(60), np.zeros(60)], {}
    for discrete in (False, True):
        rng = np.random.default_rng(0)
        worst = np.sort(drawn(rng, 400_000, discrete).min(axis=1))
        for threshold in ("pac", "conformal", "pac_marginal"):
            rates = np.empty((sets, 2))
            for k in range(sets):
                cells = np.vstack([drawn(rng, 60, discrete), np.full((60, 3), 0.3)])
                process = DensityRatioEProcess(
                    "passthrough", threshold=threshold, alpha=alpha, delta=delta
                ).fit(TrajectoryArray.from_padded(cells), y, calibration=np.r_[0:50, 60:110])
                limit = 1 / (1 + process.thresholds_.iloc[0])
                for j, slack in enumerate((1 - 1e-9, 1 + 1e-9)):
                    rates[k, j] = np.searchsorted(worst, limit * slack) / len(worst)
            above = (rates > alpha).mean(axis=0)
            row = {"mean rate": rates[:, 0].mean(), "P(rate > alpha)": above[0]}
            kind = "3 values" if discrete else "continuous"
            found[f"{threshold}, {kind}"] = row | {"with >=": above[1]}
    show(f"alpha = {alpha}, delta = {delta}, 50 held-out successes, {sets:,} sets", found)


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


def one_set(entropy: Any, n: int, rate: float, discrete: bool, n_new: int, **how: Any) -> float:
    """False alarms of one set of known runs; NaN where too few succeeded, or failed."""
    rng = np.random.default_rng(entropy)
    y = (rng.random(n) < rate).astype(int)
    if min(y.sum(), n - y.sum()) < 2 or y.sum() < 11:
        return np.nan
    process = DensityRatioEProcess(alpha=ALPHA, **how).fit(drawn_runs(rng, y, discrete), y)
    new = drawn_runs(rng, np.ones(n_new, dtype=int), discrete)
    named = TrajectoryArray(new.cells, new.lengths, ids=np.arange(n_new) + n, ended=True)
    return float((process.predict(named) == 0).mean())


def of_task(entropy: Any, **how: Any) -> float:
    """False alarms of a success of a new task, where tasks differ and have 1 to 8 trials."""
    rng = np.random.default_rng(entropy)
    X, y, task = trials(rng, 80)
    new, outcome, new_task = trials(rng, 200)
    rows = np.flatnonzero(outcome == 1)
    _, first = np.unique(new_task[rows], return_index=True)
    process = DensityRatioEProcess(alpha=ALPHA, **how).fit(X, y, groups=task)
    return float((process.predict(new[rows[first]]) == 0).mean())


def trials(
    rng: np.random.Generator, n_tasks: int
) -> tuple[TrajectoryArray, np.ndarray, np.ndarray]:
    """Trials of tasks, whose scores share a task's own shift."""
    task = np.repeat(np.arange(n_tasks), rng.integers(1, 9, n_tasks))
    y = (rng.random(len(task)) < 0.6).astype(int)
    X = drawn_runs(rng, y)
    shift = rng.normal(0, 0.3, n_tasks)[task]
    return X.with_cells(X.cells + np.repeat(shift, X.lengths)), y, task


def polled(seed: int) -> tuple[float, float]:
    """False alarms where every prefix of a run is polled: still open, or taken for an end."""
    rng = np.random.default_rng(seed)
    y = (rng.random(1000) < 0.6).astype(int)
    process = DensityRatioEProcess(alpha=ALPHA, random_state=seed).fit(drawn_runs(rng, y), y)
    new = drawn_runs(rng, np.ones(1000, dtype=int))
    flagged, taken = np.zeros((2, 1000), dtype=bool)
    for t in range(1, 13):
        so_far = new.prefix(t).with_ended(new.lengths <= t)
        flagged |= process.predict(so_far) == 0
        taken |= process.predict(so_far.with_ended()) == 0
    return flagged.mean(), taken.mean()


MEMORISED = PrefixForecaster(
    DecisionTreeClassifier(random_state=0), features="running", pooled=True, end="step"
)


def guarantee(given: Any) -> None:
    """Print false alarms of all rules."""
    rates_above(given.sets)
    found = lengths_that_tell(given.sets)
    few = range(max(given.sets // 5, 2))
    learners = {"default": None, "a tree that memorised": MEMORISED}
    for (name, learner), discrete, ties, n in product(
        learners.items(), (False, True), ("strict", "randomized"), (60, 200, 1000)
    ):
        kind = "3 values" if discrete else "continuous"
        found[f"{name}, {kind}, {ties}, {n} runs"] = [
            one_set(k, n, 0.6, discrete, 400, forecaster=learner, ties=ties, random_state=k)
            for k in few
        ]
    found["trials of tasks"] = [of_task(seed, random_state=seed) for seed in few]
    polls = np.array([polled(seed) for seed in range(max(given.sets // 10, 2))])
    found["open runs, polled"], found["the same, taken for ends"] = polls.T
    rows = {name: {"false alarms": plus_minus(rates)} for name, rates in found.items()}
    show(f"alpha = {ALPHA}, simulated", rows)


def edges(given: Any) -> None:
    """Print false alarms where an end is worth less, at the edges of what runs may be."""
    warnings.simplefilter("ignore")
    laws: dict[str, tuple] = {"trials of 80 tasks": (of_task, [], (), {"end_worth": 0.3})}
    for n, rate, discrete, ties in product(
        (60, 400), (0.05, 0.5, 0.95), (False, True), ("strict", "randomized")
    ):
        name = f"{n} runs, success rate {rate}, {'3 values' if discrete else 'continuous'}, {ties}"
        entropy = [n, round(100 * rate)]
        laws[name] = one_set, entropy, (n, rate, discrete, 300), {"ties": ties, "end_worth": 0.3}
    rows = {}
    for name, (of, entropy, law, how) in laws.items():
        seeds = range(given.sets)
        rates = [of([SEED, k, *entropy], *law, random_state=k, **how) for k in seeds]
        known = np.array(rates)[~np.isnan(rates)]
        rows[name] = {"of sets": len(known) / given.sets}
        if len(known):
            rows[name]["false alarms"] = plus_minus(known)
    show(f"end_worth = 0.3, alpha = {ALPHA}, {given.sets} sets of known runs", rows)


COMMANDS = {one.__name__: one for one in (power, curve, worth, guarantee, edges)}


def main() -> None:
    """Run one of them."""
    given = options(__doc__, tuple(COMMANDS), splits=50, share=0.2, sets=1000, jobs=2)
    COMMANDS[given.what](given)


if __name__ == "__main__":
    main()
