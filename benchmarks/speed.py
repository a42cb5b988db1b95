"""Speed and memory of the spine, against the targets that the project sets itself.

Ratios are measured in one process and medians taken, so that they carry over between machines.

    python benchmarks/speed.py [--quick]
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tracemalloc
from pathlib import Path

import numpy as np
import pandas as pd

from shared import against_target, median_seconds
from trajscore import TrajectoryArray, evaluate
from trajscore.datasets import fetch_evaluator, make_trajectories
from trajscore.inference import SequentialComparison, compare_predictors, paired_bootstrap
from trajscore.metrics import ecuas_score, tps_decomposition, tps_samples
from trajscore.report import EvaluationOptions


def big_runs(n_runs: int) -> tuple[TrajectoryArray, np.ndarray]:
    """Runs of mean length 12, at most 60."""
    rng = np.random.default_rng(0)
    lengths = np.minimum(1 + rng.poisson(rng.exponential(11, n_runs)), 60)
    X = TrajectoryArray(rng.random(int(lengths.sum())), lengths)
    return X, rng.integers(0, 2, n_runs)


def score_speed(n_runs: int) -> None:
    """Time `tps_samples` in passes of np.log over the same cells."""
    X, y = big_runs(n_runs)
    ratios = []
    for _ in range(5):
        one_pass = median_seconds(lambda: np.log(X.cells), 5)
        ratios.append(median_seconds(lambda: tps_samples(y, X), 5) / one_pass)
    against_target(f"tps_samples, {n_runs:,} runs, log", float(np.median(ratios)), "logs", 5)
    tracemalloc.start()
    out = tps_samples(y, X)
    peak = tracemalloc.get_traced_memory()[1] - out.nbytes
    tracemalloc.stop()
    against_target(f"  peak memory beside the result, {n_runs:,} runs", peak / 2**20, "MiB", 64)


def ecuas_speed(n_samples: int) -> None:
    """Time `ecuas_score` in passes of argmax and max over the same array."""
    P = np.random.default_rng(0).dirichlet(np.ones(10), n_samples)
    y = np.random.default_rng(1).integers(0, 10, n_samples)
    one_pass = median_seconds(lambda: (P.argmax(axis=1), P.max(axis=1)), 5)
    for n in (0, 1):
        seconds = median_seconds(lambda n=n: ecuas_score(y, P, n=n), 5)
        against_target(f"ecuas_score, {n_samples:,} x 10, n = {n}", seconds / one_pass, "passes", 3)
    tracemalloc.start()
    ecuas_score(y, P)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    against_target("  peak memory, in copies of the array", peak / P.nbytes, "copies", 1)


def import_time() -> None:
    """Time `import trajscore` beyond `import sklearn.metrics`, in fresh processes."""
    compiled = {**os.environ, "PYTHONDONTWRITEBYTECODE": ""}  # as an installed package is

    def seconds(module: str) -> float:
        code = (
            f"import time; t = time.perf_counter(); import {module}; print(time.perf_counter() - t)"
        )
        runs = [
            float(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True,
                                 check=True, env=compiled).stdout)
            for _ in range(7)
        ]  # fmt: skip
        return float(np.median(runs))

    extra = seconds("trajscore") - seconds("sklearn.metrics")
    against_target("import trajscore beyond import sklearn.metrics", extra, "s", 0.3)


def bootstrap_speed() -> None:
    """Time the paired bootstrap of a table like the paper's."""
    samples = np.random.default_rng(0).normal(size=(2229, 10))
    seconds = median_seconds(lambda: paired_bootstrap(samples, reference=0, random_state=0), 3)
    against_target("10,000 paired replicates, 2,229 runs x 10 rows", seconds, "s", 1)


def comparison_speed() -> None:
    """Time comparisons at the size of HotpotQA: in tasks of 5 trials, and each run by itself."""
    n_runs, rng = 16_110, np.random.default_rng(0)
    task = np.arange(n_runs) // 5
    samples = rng.normal(size=(n_runs, 12)) + rng.normal(size=(task[-1] + 1, 1))[task]
    columns = {f"predictor {k}": column for k, column in enumerate(samples.T)}
    options = {"random_state": 0, "n_resamples": 10_000, "n_jobs": 2}
    for name, groups in (("tasks of 5", task), ("clusters of 1", np.arange(n_runs))):
        same = options | {"groups": groups}
        calls = {
            f"paired_bootstrap, {method}": lambda method=method, same=same: paired_bootstrap(
                samples, reference=0, method=method, **same
            )
            for method in ("percentile", "bca")
        } | {
            f"compare_predictors, {pairs} simultaneous pairs": (
                lambda one=one, same=same: compare_predictors(columns, reference=one, **same)
            )
            for one, pairs in (("predictor 0", 11), (None, 66))
        }
        for said, call in calls.items():
            against_target(f"{said}, {name}", median_seconds(call), "s", 3)
    a, b = rng.random((2, n_runs))
    seconds = median_seconds(lambda: SequentialComparison(bound=1).update(a, b).history())
    against_target(f"SequentialComparison.history, {n_runs:,} runs", seconds, "s", 3)


def decomposition_speed(n_cells: int) -> None:
    """Time the decomposition of distinct forecasts of 1 to 244 steps."""
    rng = np.random.default_rng(0)
    lengths = rng.integers(1, 245, n_cells)
    lengths = lengths[: int(np.searchsorted(np.cumsum(lengths), n_cells))]
    q = rng.random(len(lengths))
    noisy = np.repeat(q, lengths) + rng.normal(0, 0.2, lengths.sum())
    X, y = TrajectoryArray(1 / (1 + np.exp(2 - 4 * noisy)), lengths), rng.random(len(q)) < q
    calls = {
        "tps_decomposition, log": lambda: tps_decomposition(y, X),
        "tps_decomposition, brier": lambda: tps_decomposition(y, X, score="brier"),
        "tps_decomposition, beta(2,4)": lambda: tps_decomposition(y, X, score=("beta", 2, 4)),
        "tps_decomposition, log, by step": lambda: tps_decomposition(y, X, by="step"),
    }
    for name, call in calls.items():
        against_target(f"{name}, {len(X.cells):,} steps", median_seconds(call), "s", 2)


def evaluate_speed(table: Path | None) -> None:
    """Time `evaluate` on HotpotQA, or on made runs of its size where it is not at hand."""
    if table is not None:
        X, y = TrajectoryArray.from_frame(
            pd.read_csv(table), id="uq_problem_idx", step="num_steps",
            value="judge_probability", outcome="solved",
        )  # fmt: skip
        name = "HotpotQA"
    else:
        try:
            X, y = fetch_evaluator("hotpotqa", return_X_y=True)
            name = "HotpotQA"
        except Exception as error:  # no network: say so and go on with made runs
            print(f"(HotpotQA cannot be fetched: {type(error).__name__}; made runs instead)")
            X, y = make_trajectories(16_110, lengths=(2, 7), random_state=0, return_X_y=True)
            name = "made runs"
    seconds = median_seconds(
        lambda: evaluate({"judge": X}, y, options=EvaluationOptions(n_jobs=2)), 3
    )
    against_target(f"evaluate, {name}, {len(X):,} runs, 1,000 replicates, 2 jobs", seconds, "s", 5)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="leave out the largest sizes")
    parser.add_argument("--hotpotqa", type=Path, help="local copy of the public table")
    args = parser.parse_args()
    score_speed(1_000_000)
    if not args.quick:
        score_speed(5_000_000)
    ecuas_speed(1_000_000)
    import_time()
    bootstrap_speed()
    decomposition_speed(100_000 if args.quick else 1_000_000)
    if not args.quick:
        comparison_speed()
    evaluate_speed(args.hotpotqa)


if __name__ == "__main__":
    main()
