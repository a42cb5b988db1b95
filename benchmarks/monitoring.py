"""Sequential monitoring: speed, power at the same guarantee, and the guarantee itself, measured.

    python benchmarks/monitoring.py speed      [FOLDER]
    python benchmarks/monitoring.py power      [FOLDER] [--splits 50] [--share 0.2]
    python benchmarks/monitoring.py curve      [FOLDER] [--splits 50]
    python benchmarks/monitoring.py guarantee  [--sets 2000]

FOLDER holds NAME_w_scores_compressed.csv.gz for hotpotqa and gsm8k; without it they are fetched.
Where the package e-valuator is installed, "speed" times it on the same data.
"""

from __future__ import annotations

import argparse
import io
import time
import warnings
from contextlib import redirect_stderr
from pathlib import Path

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.tree import DecisionTreeClassifier

from timing import median_seconds
from trajscore import (
    DensityRatioEProcess,
    PrefixForecaster,
    TrajectoryArray,
    tps_scorer,
)
from trajscore.datasets import fetch_evaluator

ALPHAS = [0.01, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5]
COLUMNS = {
    "id": "uq_problem_idx", "step": "num_steps", "value": "judge_probability", "outcome": "solved",
}  # fmt: skip


def table(name: str, folder: Path | None) -> pd.DataFrame:
    """One of the public tables."""
    if folder is None:
        return fetch_evaluator(name, as_frame=True).frame
    return pd.read_csv(folder / f"{name}_w_scores_compressed.csv.gz", index_col=0)


# --------------------------------------------------------------------------- speed


def pipeline(frame: pd.DataFrame) -> pd.DataFrame:
    """From a long table to power at seven levels."""
    X, y = TrajectoryArray.from_frame(frame, **COLUMNS)
    rows = np.random.default_rng(0).permutation(len(X))
    n = int(0.8 * len(X))
    process = DensityRatioEProcess(
        PrefixForecaster(), "pac", alpha=ALPHAS, delta=0.05, hold_out="runs"
    ).fit(X[rows[:n]], y[rows[:n]])
    return process.report(X[rows[n:]], y[rows[n:]])


def published_seconds(frame: pd.DataFrame, build: bool = True) -> tuple[float, float, float] | None:
    """Wall times of e-valuator: building its series (or none, if built here), fitting, applying."""
    try:
        from evaluator import EValuator
        from evaluator.utils import add_judge_probability_series
    except ImportError:
        return None
    # it shows a progress bar and warnings, hundreds of lines of them
    with redirect_stderr(io.StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if build:
            start = time.perf_counter()
            series = add_judge_probability_series(frame.copy())
        else:
            series = with_prefixes(frame)
            start = time.perf_counter()
        built = time.perf_counter()
        ids = series["uq_problem_idx"].drop_duplicates()
        known = series["uq_problem_idx"].isin(set(ids.iloc[: int(0.8 * len(ids))]))
        process = EValuator(mt_variant="PAC", alphas=ALPHAS)
        process.fit(series[known].reset_index(drop=True))
        fitted = time.perf_counter()
        process.apply(series[~known].reset_index(drop=True))
    return built - start, fitted - built, time.perf_counter() - fitted


def with_prefixes(frame: pd.DataFrame) -> pd.DataFrame:
    """The column that e-valuator wants, built without its search of the table for each row."""
    prefixes = []
    for _, scores in frame.groupby("uq_problem_idx", sort=False)["judge_probability"]:
        values = scores.tolist()
        prefixes += [values[: t + 1] for t in range(len(values))]
    return frame.assign(judge_probability_series=prefixes)


def chess_like() -> pd.DataFrame:
    """1,111 runs of up to 244 steps whose scores drift towards the outcome."""
    rng = np.random.default_rng(0)
    parts = []
    for run in range(1111):
        length, solved = int(rng.integers(20, 245)), int(rng.integers(0, 2))
        drift = np.cumsum(rng.normal(0.01 * (2 * solved - 1), 0.15, length))
        parts.append(
            pd.DataFrame(
                {
                    "uq_problem_idx": run,
                    "num_steps": np.arange(1, length + 1),
                    "judge_probability": 1 / (1 + np.exp(-drift)),
                    "solved": solved,
                }
            )
        )
    return pd.concat(parts, ignore_index=True)


def monitor_microseconds(frame: pd.DataFrame) -> float:
    """Median time of the update at step 50."""
    X, y = TrajectoryArray.from_frame(frame, **COLUMNS)
    monitor = DensityRatioEProcess(threshold="ville").fit(X, y).monitor()
    rng, times = np.random.default_rng(0), []
    for run in range(300):
        for step in range(1, 51):
            score = float(rng.random())
            start = time.perf_counter()
            monitor.update(score, run)
            if step == 50:
                times.append(time.perf_counter() - start)
    return 1e6 * float(np.median(times))


def speed(arguments: argparse.Namespace) -> None:
    """Print times, beside those of the published package where it is installed."""
    frame = table("hotpotqa", arguments.folder)
    ours = median_seconds(lambda: pipeline(frame))
    print(f"HotpotQA, {frame['uq_problem_idx'].nunique():,} runs, table to power: {ours:.3f} s")
    long_runs = chess_like()
    X, y = TrajectoryArray.from_frame(long_runs, **COLUMNS)
    half = np.arange(len(X)) < int(0.8 * len(X))
    levels = ALPHAS[1:]  # the runs are too few for the smallest
    published = DensityRatioEProcess(PrefixForecaster(), "pac", alpha=levels, hold_out="runs")
    fit = median_seconds(lambda: published.fit(X[half], y[half]), 3)
    print(f"chess-like, 1,111 runs of up to 244 steps, fit of the prefix logistic: {fit:.2f} s")
    aware = DensityRatioEProcess(alpha=levels)
    ratio = median_seconds(lambda: aware.fit(X[half], y[half]), 3) / fit
    print(f"  of the default, which knows the end: {ratio:.2f} times as long (target 10)")
    theirs = published_seconds(long_runs, build=False)
    if theirs is not None:
        print(
            f"  e-valuator: fit {theirs[1]:.1f} s, {theirs[1] / fit:.1f} times as long (target 5)"
        )
    X, y = TrajectoryArray.from_frame(frame, **COLUMNS)
    ratio = median_seconds(lambda: aware.fit(X, y), 3) / median_seconds(
        lambda: published.fit(X, y), 3
    )
    print(f"HotpotQA, the same two fits: {ratio:.2f} times as long (target 10)")
    print(f"monitor.update at step 50: {monitor_microseconds(long_runs):.1f} us (target 200)")
    theirs = published_seconds(frame)
    if theirs is not None:
        print(
            f"e-valuator on HotpotQA: series {theirs[0]:.1f} s, fit {theirs[1]:.1f} s, apply "
            f"{theirs[2]:.1f} s: {sum(theirs) / ours:,.0f} times as long (target 1,000)"
        )


# --------------------------------------------------------------------------- power


def chosen_by_tps() -> GridSearchCV:
    """The forecaster with the best proper score, chosen within the runs that it is fitted on."""
    boosted = HistGradientBoostingClassifier(
        max_iter=60, learning_rate=0.08, max_leaf_nodes=8, random_state=0
    )
    return GridSearchCV(
        PrefixForecaster(),
        [
            {"features": ["prefix", "summary"]},
            {"features": ["summary"], "pooled": [True], "estimator": [boosted]},
            {"features": ["last"], "last": [7], "pooled": [True], "estimator": [boosted]},
        ],
        scoring=tps_scorer,
        cv=3,
    )


PUBLISHED = {"forecaster": PrefixForecaster(), "hold_out": "runs"}
METHODS = {
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
    "the same, randomized ties": {"ties": "randomized"},
    "the same, pac": {"threshold": "pac"},
    "the same, randomized_ville": {"threshold": "randomized_ville"},
}  # fmt: skip
LEVELS = [0.05, 0.1, 0.2]
SHOWN = ["power", "power_before_end", "power_longer", "steps_saved", "false_alarm_rate"]
MOST_NEW = 4000


def one_split(X: TrajectoryArray, y: np.ndarray, seed: int, share: float) -> np.ndarray:
    """What is shown of every method at every level, fitted on a share of the runs."""
    rows = np.random.default_rng(seed).permutation(len(X))
    n = int(share * len(X))
    known, new = rows[:n], rows[n : n + MOST_NEW]
    out = []
    for method in METHODS.values():
        options = {name: clone(value, safe=False) for name, value in method.items()}
        process = DensityRatioEProcess(alpha=LEVELS, random_state=seed, **options)
        process.fit(X[known], y[known])
        out.append(process.report(X[new], y[new])[SHOWN].to_numpy())
    return np.array(out)


def power(arguments: argparse.Namespace) -> None:
    """Print power, and what it is made of, over random splits, with 95% intervals."""
    warnings.filterwarnings("ignore", message=".*longer than the longest run in fitting")
    for name in ("hotpotqa", "gsm8k"):
        X, y = TrajectoryArray.from_frame(table(name, arguments.folder), **COLUMNS)
        jobs = (delayed(one_split)(X, y, seed, arguments.share) for seed in range(arguments.splits))
        found = np.array(Parallel(n_jobs=arguments.jobs)(jobs))
        print(
            f"\n{name}: {arguments.share:.0%} of {len(X):,} runs known, at most {MOST_NEW:,} new, "
            f"{arguments.splits} splits; power over failing runs, before their last step, and over "
            f"those of more than one step; steps saved: mean share of a failing run's own steps"
        )
        for j, level in enumerate(LEVELS):
            print(f"{f'alpha = {level}':40}" + "".join(f"{column:>18}" for column in SHOWN))
            for k, method in enumerate(METHODS):
                cells = (interval(found[:, k, j, c]) for c in range(len(SHOWN)))
                print(f"{method:40}" + "".join(f"{cell:>18}" for cell in cells))


def curve(arguments: argparse.Namespace) -> None:
    """Print power at alpha = 0.1 over the number of known runs."""
    warnings.filterwarnings("ignore")
    for name in ("hotpotqa", "gsm8k"):
        X, y = TrajectoryArray.from_frame(table(name, arguments.folder), **COLUMNS)
        print(f"\n{name}: known runs, power and false alarms of the default at alpha = 0.1")
        for n in (50, 100, 200, 400, 800, 1600):
            found = []
            for seed in range(arguments.splits):
                rows = np.random.default_rng(seed).permutation(len(X))
                process = DensityRatioEProcess(alpha=0.1, random_state=seed)
                process.fit(X[rows[:n]], y[rows[:n]])
                new = rows[n : n + MOST_NEW]
                found.append(process.report(X[new], y[new])[["power", "false_alarm_rate"]].iloc[0])
            p, f = np.array(found, dtype=float).T
            print(f"{n:6} {interval(p):>18}{interval(f):>18}")


def interval(values: np.ndarray) -> str:
    """Mean with the half-width of its 95% interval over splits."""
    half = 1.96 * values.std(ddof=1) / np.sqrt(len(values))
    return f"{values.mean():.3f} +- {half:.3f}"


# --------------------------------------------------------------------------- guarantee


def drawn(rng: np.random.Generator, n: int, discrete: bool) -> np.ndarray:
    """Forecasts of succeeding runs, (n, 3), of a known law: continuous, or of 3 values."""
    if not discrete:
        return np.clip(rng.normal(0.6, 0.2, (n, 3)), 0.01, 0.99)
    traces = np.full((n, 3), 0.8)
    law = [0.02, 0.38, 0.6]
    traces[np.arange(n), rng.integers(0, 3, n)] = rng.choice([0.2, 0.5, 0.8], n, p=law)
    return traces


def guarantee(arguments: argparse.Namespace) -> None:
    """Print how often, and by how much, the rate of false alarms exceeds its level."""
    alpha, delta = 0.2, 0.1
    print(f"alpha = {alpha}, delta = {delta}, 50 held-out successes, {arguments.sets:,} sets")
    print(f"{'':16}{'scores':>12}{'mean rate':>12}{'P(rate > alpha)':>18}{'with >=':>10}")
    y = np.r_[np.ones(60), np.zeros(60)]
    for discrete in (False, True):
        rng = np.random.default_rng(0)
        worst = np.sort(drawn(rng, 400_000, discrete).min(axis=1))
        for threshold in ("pac", "conformal", "pac_marginal"):
            rates = np.empty((arguments.sets, 2))
            for k in range(arguments.sets):
                cells = np.vstack([drawn(rng, 60, discrete), np.full((60, 3), 0.3)])
                process = DensityRatioEProcess(
                    "passthrough", threshold=threshold, alpha=alpha, delta=delta
                ).fit(TrajectoryArray.from_padded(cells), y, calibration=np.r_[0:50, 60:110])
                limit = 1 / (1 + process.thresholds_.iloc[0])
                for j, slack in enumerate((1 - 1e-9, 1 + 1e-9)):
                    rates[k, j] = np.searchsorted(worst, limit * slack) / len(worst)
            kind = "3 values" if discrete else "continuous"
            mean, above = rates[:, 0].mean(), (rates > alpha).mean(axis=0)
            print(f"{threshold:16}{kind:>12}{mean:12.4f}{above[0]:18.3f}{above[1]:10.3f}")
    exact_level(arguments.sets)
    lengths_that_tell(arguments.sets)
    with_the_end_known(max(arguments.sets // 5, 2))
    of_groups(max(arguments.sets // 5, 2))
    open_runs(max(arguments.sets // 10, 2))


def exact_level(sets: int) -> None:
    """Print the level of conformal with randomised ties, which is alpha exactly."""
    rng, alpha = np.random.default_rng(1), 0.15
    y = np.r_[np.ones(50), np.zeros(4)]
    for discrete in (False, True):
        flagged = np.empty(sets)
        for k in range(sets):
            traces = drawn(rng, 70, discrete)
            cells = np.vstack([traces[:50], np.full((4, 3), 0.3)])
            process = DensityRatioEProcess(
                "passthrough", threshold="conformal", alpha=alpha, ties="randomized"
            ).fit(TrajectoryArray.from_padded(cells), y, calibration=np.r_[0:40, 50:52])
            flagged[k] = (process.predict(TrajectoryArray.from_padded(traces[50:])) == 0).mean()
        kind = "3 values" if discrete else "continuous"
        print(f"conformal, randomized ties, {kind}, alpha = {alpha}: {interval(flagged)}")


def lengths_that_tell(sets: int) -> None:
    """Print false alarms of the true M where lengths tell all, and scores say nothing.

    Succeeding runs end with hazard .5, failing ones with .1: M_t = (.9 / .5)^(t - 1), times
    .1 / .5 at the end. A rule that takes M without the end for an e-value there flags too many.
    """
    rng, alpha = np.random.default_rng(2), 0.1
    rates = np.empty((sets, 3))
    for k in range(sets):
        y = np.repeat([1, 0], 300)
        X = known_law(np.r_[rng.geometric(0.5, 300), rng.geometric(0.1, 300)])
        process = DensityRatioEProcess("passthrough", threshold="randomized_ville", alpha=alpha)
        process.fit(X, y)
        good = known_law(rng.geometric(0.5, 200))
        largest = process.test_.ratio.largest(good)
        without = 2 * process.base_rate_ * (0.9 / 0.5) ** (good.lengths - 1)
        rates[k] = (
            (largest > -np.log(alpha)).mean(),
            (process.predict(good) == 0).mean(),
            (without > rng.random(200) / alpha).mean(),
        )
    names = ("ville", "randomized_ville", "the end ignored, as published")
    for name, found in zip(names, rates.T, strict=True):
        print(f"lengths that tell, {name}, alpha = {alpha}: {interval(found)}")


def known_law(lengths: np.ndarray, success: float = 0.5, failure: float = 0.1) -> TrajectoryArray:
    """Forecasts of success that are right for these hazards, the end and a base rate of a half."""
    X = TrajectoryArray(np.zeros(lengths.sum()), lengths, ended=True)
    step = np.arange(len(X.cells)) - np.repeat(X.offsets[:-1], X.lengths)
    odds_of_failure = ((1 - failure) / (1 - success)) ** step
    odds_of_failure[X.offsets[1:] - 1] *= failure / success
    return X.with_cells(1 / (1 + odds_of_failure))


def drawn_runs(rng: np.random.Generator, y: np.ndarray, discrete: bool) -> TrajectoryArray:
    """Runs whose scores and lengths depend on the outcome; a run of one step fails."""
    lengths = np.where(y == 1, 1 + rng.geometric(0.4, len(y)), rng.geometric(0.2, len(y)))
    lengths = np.minimum(lengths, 12)
    scores = rng.normal(np.repeat(0.5 + 0.1 * y, lengths), 0.2)
    if discrete:
        scores = np.digitize(scores, [0.4, 0.7]) / 2
    return TrajectoryArray(np.clip(scores, 0, 1), lengths, ended=True)


LEARNERS = {
    "default": None,
    "interpolating": PrefixForecaster(
        DecisionTreeClassifier(random_state=0), features="running", pooled=True, end="step"
    ),
}


def with_the_end_known(sets: int) -> None:
    """Print false alarms of the default and of a learner that knows its training runs by heart."""
    alpha = 0.1
    for name, forecaster in LEARNERS.items():
        for discrete in (False, True):
            for ties in ("strict", "randomized"):
                for n in (60, 200, 1000):
                    rates = []
                    for seed in range(sets):
                        rng = np.random.default_rng(seed)
                        y = (rng.random(n) < 0.6).astype(int)
                        process = DensityRatioEProcess(
                            forecaster, alpha=alpha, ties=ties, random_state=seed
                        ).fit(drawn_runs(rng, y, discrete), y)
                        new = drawn_runs(rng, np.ones(400, dtype=int), discrete)
                        new = TrajectoryArray(
                            new.cells, new.lengths, ids=np.arange(400) + n, ended=True
                        )
                        rates.append((process.predict(new) == 0).mean())
                    kind = "3 values" if discrete else "continuous"
                    print(
                        f"the end known, {name:14}{kind:12}{ties:12}{n:5} runs, "
                        f"alpha = {alpha}: {interval(np.array(rates))}"
                    )


def of_groups(sets: int) -> None:
    """Print false alarms of a success of a new task, where tasks differ and have 1 to 8 trials."""
    alpha, rates = 0.1, {"whole tasks held out": [], "runs held out": []}
    for seed in range(sets):
        rng = np.random.default_rng(seed)
        X, y, task = trials(rng, 80)
        new, outcome, new_task = trials(rng, 200)
        rows = np.flatnonzero(outcome == 1)
        _, first = np.unique(new_task[rows], return_index=True)
        one_each = new[rows[first]]
        for name, groups in zip(rates, (task, None), strict=True):
            process = DensityRatioEProcess(alpha=alpha, random_state=seed)
            process.fit(X, y, groups=groups)
            rates[name].append((process.predict(one_each) == 0).mean())
    for name, found in rates.items():
        print(f"trials of tasks, {name}, alpha = {alpha}: {interval(np.array(found))}")


def trials(
    rng: np.random.Generator, n_tasks: int
) -> tuple[TrajectoryArray, np.ndarray, np.ndarray]:
    """Trials of tasks, whose scores share a task's own shift."""
    task = np.repeat(np.arange(n_tasks), rng.integers(1, 9, n_tasks))
    y = (rng.random(len(task)) < 0.6).astype(int)
    X = drawn_runs(rng, y, discrete=False)
    shift = rng.normal(0, 0.3, n_tasks)[task]
    return X.with_cells(X.cells + np.repeat(shift, X.lengths)), y, task


def open_runs(sets: int) -> None:
    """Print false alarms where every prefix of a run is polled as a table of its own."""
    alpha, rates, wrong = 0.1, [], []
    for seed in range(sets):
        rng = np.random.default_rng(seed)
        y = (rng.random(1000) < 0.6).astype(int)
        process = DensityRatioEProcess(alpha=alpha, random_state=seed)
        process.fit(drawn_runs(rng, y, discrete=False), y)
        new = drawn_runs(rng, np.ones(1000, dtype=int), discrete=False)
        flagged, taken = np.zeros((2, 1000), dtype=bool)
        for t in range(1, 13):
            polled = new.prefix(t).with_ended(new.lengths <= t)
            flagged |= process.predict(polled) == 0
            taken |= process.predict(polled.with_ended()) == 0
        rates.append(flagged.mean())
        wrong.append(taken.mean())
    print(f"open runs polled after every step, alpha = {alpha}: {interval(np.array(rates))}")
    print(f"  if each prefix were taken for a run that has ended: {interval(np.array(wrong))}")


def main() -> None:
    """Run one of the four."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("speed", "power", "curve", "guarantee"))
    parser.add_argument("folder", nargs="?", type=Path)
    parser.add_argument("--splits", type=int, default=50)
    parser.add_argument("--share", type=float, default=0.2, help="of the runs that are known")
    parser.add_argument("--sets", type=int, default=2000)
    parser.add_argument("--jobs", type=int, default=2)
    arguments = parser.parse_args()
    commands = {"speed": speed, "power": power, "curve": curve, "guarantee": guarantee}
    commands[arguments.what](arguments)


if __name__ == "__main__":
    main()
