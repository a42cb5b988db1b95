"""Which step failed: locators of the first wrong step on labelled runs, against free references.

    python benchmarks/steps.py --data FOLDER [--held FOLDER] [--draws 10]

Verdicts of 20 judges, or TRACER and action signals; without --held, out of fold by tasks.
"""

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from shared import options, show
from trajscore import TrajectoryArray
from trajscore.inference import compare_predictors
from trajscore.localization import FirstErrorLocator, FirstErrorWindow
from trajscore.metrics import first_error as fe

FILES = ("agentprocessbench_steps", "agentprocessbench_hotpotqa_signals")
KNOWN = ["run", "task", "dataset", "step", "message", "label", "first_wrong"]
NONE = "no signal"  # a channel that does not vary
BEST, *OTHERS = "gemini_3_flash_preview_thinking", "gpt_5_2_chat", "kimi_k2_5_thinking"


def read(folder: Path | None, file: str) -> Any:
    """Return signals, labels and tasks of the runs of a table of steps."""
    if folder is None:
        return None
    runs = pd.read_csv(folder / "agentprocessbench_runs.csv.gz")[["run", "first_wrong"]]
    steps = pd.read_csv(folder / f"{file}.csv.gz").merge(runs, on="run")
    names = [*steps.columns.drop(KNOWN, errors="ignore"), NONE]
    how = {"value": names, "meta": ["task", "first_wrong"], "missing": "allow"}
    X = TrajectoryArray.from_frame(steps.assign(**{NONE: 0.0}), id="run", step="step", **how)
    return X, *(X.meta[name].to_numpy() for name in ("first_wrong", "task"))


def located(train: Any, held: Any, names: list[str], live: bool = False) -> TrajectoryArray:
    """Return distributions of runs that the locator has not seen."""
    locator = FirstErrorLocator(live=live)
    out = locator.fit_transform(train[0][names], *train[1:])
    return out if held is None else locator.transform(held[0][names])


def row(P: TrajectoryArray, log: np.ndarray, labels: Any, task: Any) -> dict[str, Any]:
    """Return means over runs; the standard error of nats is that of tasks."""
    top = fe.likeliest_cells(P)
    guess = np.where(1 - fe.run_totals(P) >= P.cells[top], 0, top - P.offsets[:-1] + 1)
    by_task = pd.Series(log - log.mean()).groupby(task).sum()
    means = {"nats": -log.mean(), "+-": np.sqrt((by_task**2).sum()) / len(log)}
    means["RPS"] = -fe.first_error_samples(labels, P, score="rps").mean()
    means["top-1"] = (guess == labels).mean()
    return means | {"steps read": np.nanmean(fe.reading_cost(labels, P))}


def window(train: Any, held: Any, names: list[str]) -> dict[str, Any]:
    """Return how often windows hold the first wrong step, and how many steps they have."""
    P = located(train, None, names)
    _, labels, task = train
    if held is None:  # limits of one half of the tasks, judged on the other
        half = np.isin(task, np.random.default_rng(0).permutation(np.unique(task))[::2])
        pairs = [(P[a], labels[a], task[a], P[~a], labels[~a]) for a in (half, ~half)]
    else:
        pairs = [(P, labels, task, located(train, held, names), held[1])]
    hits, sizes = [], []
    for P, labels, task, new, truth in pairs:
        inside = FirstErrorWindow().fit(P, labels, task).transform(new)[truth > 0]
        hits += [run[step - 1] for run, step in zip(inside, truth[truth > 0], strict=True)]
        sizes += fe.run_totals(inside).tolist()
    return {"covered": np.mean(hits), "mean": np.mean(sizes), "median": np.median(sizes)}


def few(train: Any, held: Any, n: int, draws: int) -> float:
    """Return nats of fits to n random runs, on --held or on a third of the tasks."""
    X, labels, task = train
    nats = []
    for rng in map(np.random.default_rng, range(draws)):
        test = np.isin(task, rng.permutation(np.unique(task))[::3]) & (held is None)
        rows = rng.choice(np.flatnonzero(~test), n, replace=False)
        X_new, truth = held[:2] if held else (X[test], labels[test])
        with warnings.catch_warnings(action="ignore"):
            P = FirstErrorLocator().fit(X[rows], labels[rows]).transform(X_new)
        nats.append(-fe.first_error_samples(truth, P).mean())
    return float(np.mean(nats))


def main() -> None:
    args = options(__doc__, held=Path, draws=10)
    for file in FILES:
        train, held = (read(folder, file) for folder in (args.data, args.held))
        _, labels, task = held or train
        names = [name for name in train[0].channels if name != NONE]
        ways = {"all signals": (names,), "live": (names, True), "position": ([NONE],)}
        if BEST in names:
            ways |= {"3 judges": ([BEST, *OTHERS],), "best judge": ([BEST],)}
        P = {way: located(train, held, *how) for way, how in ways.items()}
        log = {way: fe.first_error_samples(labels, traces) for way, traces in P.items()}
        show(file, {way: row(P[way], log[way], labels, task) for way in ways})
        margins = compare_predictors(log, reference=[*ways][-1], groups=task, random_state=0)
        show("Differences", margins[["predictor", "reference", "difference", "low", "high"]])
        show("Windows", {"all signals": window(train, held, names)})
        if BEST in names:
            means = {n: few(train, held, n, args.draws) for n in (30, 60, 120)}
            show("Nats of few labelled runs", {"all signals": means})


if __name__ == "__main__":
    main()
