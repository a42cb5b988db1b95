"""TRACER on public logs, beside what costs nothing: the length of the run.

    python benchmarks/tracer.py LOG [LOG ...] [--more LOG ...] [--embedder char wordllama]
    python benchmarks/tracer.py --speed LOG

LOG is any log that trajscore.io reads; --more makes a second table. TRACER is shown with its usual
parameters, and tuned by nested cross-validation with the tasks kept together: each run is judged
with parameters found on the runs of other tasks. Intervals are 95% bootstrap intervals over tasks.
With --speed, times are printed against their targets.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.model_selection import GridSearchCV, StratifiedGroupKFold

from trajscore import TracerScorer, TracerSignals, TrajectoryArray, io
from trajscore.tracer import (
    actor_ablation,
    aggregation_ablation,
    cross_fit_risks,
    risk_table,
    score_grid,
    usual_scorers,
)

GRID = {
    "alpha": [0, 0.5, 1, 2],
    "beta": [0, 1],
    "gamma": [0, 1],
    "k": [0.1, 0.3, 1.0],
    "w": [0.0, 0.3],
}


def risks_of(runs: io.Runs, embedders: list[str]) -> dict[str, TrajectoryArray]:
    """Return the risks to compare; baselines do not depend on the embedder."""
    y, task = io.outcomes(runs), io.meta(runs)["task"].to_numpy()
    risks: dict[str, TrajectoryArray] = {}
    for embedder in embedders:
        S = TracerSignals(embedder).fit_transform(runs)
        inner = StratifiedGroupKFold(4)
        models = {
            "tuned, pairwise loss": TracerScorer(tune="pairwise_logistic", tau=0.2),
            "tuned, AUROC": GridSearchCV(TracerScorer(), GRID, scoring="roc_auc", cv=inner),
        }
        risks[f"TRACER, {embedder}"] = TracerScorer().fit(S).transform(S)
        for name, model in models.items():
            named = f"TRACER, {embedder}, {name}"
            risks[named] = cross_fit_risks(model, S, y, groups=task, cv=5)
    for name, scorer in usual_scorers().items():
        if name != "TRACER":
            risks[name] = scorer.fit(S).transform(S)
    return risks


def show(path: Path, embedders: list[str], n_resamples: int) -> None:
    """Print one log's part of a table."""
    runs = io.read_runs(path)
    y, task = io.outcomes(runs), io.meta(runs)["task"].to_numpy()
    counts = [int((y == code).sum()) for code in (1, 0, -1)]
    print(
        f"\n== {path.name}: {counts[0]} successes, {counts[1]} failures, {counts[2]} not observed "
        f"(left out), {len(set(task))} tasks"
    )
    table = risk_table(
        risks_of(runs, embedders), y, groups=task, reference="run length", n_resamples=n_resamples
    )
    absent = table.index[table["n_runs"] == 0].tolist()
    table = table[table["n_runs"] > 0]
    shown = pd.DataFrame(index=table.index)
    for name, title in (
        ("auroc", "AUROC"), ("difference", "- run length"), ("prefix_auroc", "prefix AUROC"),
        ("auarc", "AUARC"),
    ):  # fmt: skip
        shown[title] = [
            f"{value:.3f} [{low:.3f}, {high:.3f}]"
            for value, low, high in table[[name, f"{name}_low", f"{name}_high"]].to_numpy()
        ]
    for name, title in (
        ("auarc_grid", "20-point"), ("detected_20", "by 20%"), ("false_alarms", "false alarms"),
        ("median_time", "median time"),
    ):  # fmt: skip
        shown[title] = table[name].map("{:.3f}".format)
    print(shown.to_string())
    if absent:
        print(
            f"not in this log (no token probabilities, no stated confidence): {', '.join(absent)}"
        )


def ablations(path: Path, embedder: str) -> None:
    """Print the two ablation tables of one log, with the usual parameters."""
    runs = io.read_runs(path)
    S, y = TracerSignals(embedder).fit_transform(runs), io.outcomes(runs)
    chosen = {name: usual_scorers()[name] for name in ("TRACER", "run length", "tool calls")}
    print(f"\n== {path.name}, {embedder}: AUROC by whose turns count, and by aggregation")
    print(actor_ablation(S, y, chosen).round(3).to_string())
    print(aggregation_ablation(S, y).round(3).to_string())


def seconds(function: Callable[[], Any], repeats: int) -> float:
    """Median wall time of a call, after one call to warm up."""
    function()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return float(np.median(times))


def line(name: str, value: float, unit: str, target: float) -> None:
    """Print one time against its target."""
    verdict = "ok" if value <= target else "MISSED"
    print(f"{name:<58} {value:7.3f} {unit}  target {target:g} {unit} {verdict}", flush=True)


def speed(path: Path, embedders: list[str], repeats: int) -> None:
    """Print times against their targets."""
    rng = np.random.default_rng(0)
    channels = ["surprisal", "repetition", "agent_gap", "user_gap"]
    S = TrajectoryArray(rng.exponential(size=(6000, 4)), [30] * 200, channels=channels)
    five = [0, 0.5, 1, 2, 4]
    grid = {"alpha": five, "beta": five, "gamma": five}
    grid |= {"k": [0.05, 0.1, 0.2, 0.5, 1], "w": [0, 0.1, 0.3, 0.5, 1]}
    taken = seconds(lambda: score_grid(S, **grid), repeats)
    line("grid of 3,125 settings on 200 x 30 steps, run and setting", taken / 625_000 * 1e6, "us",
         0.1)  # fmt: skip
    runs = io.read_runs(path)
    for embedder in embedders:
        taken = seconds(lambda e=embedder: TracerSignals(e).fit_transform(runs), repeats)
        line(f"signals of {len(runs)} runs, {embedder}", taken, "s", 3)
        with tempfile.TemporaryDirectory() as folder:
            kept = TracerSignals(embedder, memory=folder)
            line("  from the cache", seconds(lambda k=kept: k.fit_transform(runs), repeats), "s",
                 0.2)  # fmt: skip


def main() -> None:
    """Print the tables, or the times."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("logs", nargs="+", type=Path)
    parser.add_argument("--more", nargs="*", type=Path, default=[], help="a second table")
    parser.add_argument("--embedder", nargs="+", default=["char"])
    parser.add_argument("--resamples", type=int, default=2000)
    parser.add_argument("--speed", action="store_true")
    parser.add_argument("--repeats", type=int, default=5)
    args = parser.parse_args()
    if args.speed:
        speed(args.logs[0], args.embedder, args.repeats)
        return
    for title, logs in (("Table 1", args.logs), ("Table 2", args.more)):
        if logs:
            print(f"\n{title}")
        for path in logs:
            show(path, args.embedder, args.resamples)
    for path in args.logs:
        ablations(path, args.embedder[0])


if __name__ == "__main__":
    main()
