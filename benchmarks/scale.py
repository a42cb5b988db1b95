"""Time and memory of large sets: in memory, from tables, in batches, and on Dask.

    python benchmarks/scale.py                          # small sizes, a minute or two
    python benchmarks/scale.py evaluate --runs 1000000  # one size of evaluate, in memory
    python benchmarks/scale.py parquet --steps 100000000 --folder /tmp/steps
    python benchmarks/scale.py same --steps 10000000        # in batches, as in memory?
    python benchmarks/scale.py monitoring --runs 1000000
    python benchmarks/scale.py dask --steps 100000000 --folder /tmp/steps

Each measurement prints wall and CPU seconds, and the peak of memory of its process. Runs have 12
steps on average and three predictors of continuous forecasts, none of which repeats a value.
"""

from __future__ import annotations

import argparse
import os
import resource
import signal
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from pyarrow import dataset, parquet

from trajscore import DensityRatioEProcess, PlattCrossFitCalibrator, TrajectoryArray, evaluate
from trajscore.calibration import _platt
from trajscore.core import weighted_steps as steps_module
from trajscore.core.weighted_steps import weighted_steps
from trajscore.metrics._decomposition import recalibrated_sums
from trajscore.metrics._step_calibration import step_calibration_statistics
from trajscore.report import EvaluationOptions
from trajscore.streaming import TPSAccumulator, iter_batches

PREDICTORS = ("judge", "verbal", "entropy")
COLUMNS: dict[str, Any] = {"id": "run", "step": "t", "outcome": "solved"}
_RUNS_OF_A_FILE = 200_000
_KINDS = ("evaluate", "monitoring", "frame", "parquet", "same", "dask")


def make_runs(n_runs: int, seed: int = 0) -> tuple[dict[str, TrajectoryArray], np.ndarray]:
    """Make runs of 1 to 23 steps whose chance of success differs, and noisy forecasts of it."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, 24, n_runs)
    chance = rng.beta(2, 2, n_runs)
    y = (rng.random(n_runs) < chance).astype(np.int64)
    log_odds = np.repeat(np.log(chance / (1 - chance)), lengths)
    traces = {}
    for k, name in enumerate(PREDICTORS):
        z = (1 + 0.2 * k) * log_odds + rng.normal(0, 2.0 ** (k - 1), len(log_odds)) + 0.3 * k
        traces[name] = TrajectoryArray(1 / (1 + np.exp(-z)), lengths)
    return traces, y


def as_frame(traces: dict[str, TrajectoryArray], y: np.ndarray, first_run: int = 0) -> pd.DataFrame:
    """Return a table with one row a step, sorted by run."""
    X = traces[PREDICTORS[0]]
    run = np.repeat(np.arange(len(X)), X.lengths)
    step = np.arange(len(run)) - X.offsets[run] + 1
    columns = {"run": run + first_run, "t": step, "solved": y[run]}
    return pd.DataFrame(columns | {name: trace.cells for name, trace in traces.items()})


def measure(name: str, function: Callable[[], Any], n_steps: int) -> Any:
    """Call once, and print what it took."""
    wall, cpu = time.perf_counter(), time.process_time()
    found = function()
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(
        f"{name:<52} {wall:8.2f} s wall {cpu:8.2f} s CPU {n_steps / cpu / 1e6:7.2f} M steps/s "
        f"peak {peak:6.0f} MB",
        flush=True,
    )
    return found


def in_memory(n_runs: int, n_jobs: int) -> None:
    """Time evaluate."""
    traces, y = make_runs(n_runs)
    n_steps = len(traces[PREDICTORS[0]].cells)
    name = f"evaluate, {n_runs:,} runs, {n_jobs} threads"
    measure(name, lambda: evaluate(traces, y, options=EvaluationOptions(n_jobs=n_jobs)), n_steps)


def merged_values(n_runs: int) -> None:
    """Show what it changes that Platt's fit merges many distinct values."""
    traces, y = make_runs(n_runs)
    for name, X in traces.items():
        merged = PlattCrossFitCalibrator().fit(X, y).full_map_(X.cells)
        many, _platt._MANY = _platt._MANY, len(X.cells)
        each = PlattCrossFitCalibrator().fit(X, y).full_map_(X.cells)
        _platt._MANY = many
        print(f"Platt of {name}: merging moves a probability by {abs(merged - each).max():.1e}")


def cells_of_steps(n_runs: int) -> None:
    """Show what it changes that forecasts of very many steps are told apart by cells."""
    traces, y = make_runs(n_runs)
    every = np.ones(n_runs)

    def numbers(X: TrajectoryArray) -> np.ndarray:
        steps = weighted_steps(y.astype(np.float64), X)
        found = [
            *step_calibration_statistics(steps),
            *step_calibration_statistics(steps, by_part=True),
        ]
        errors = [float(one(every)) for one in found]
        return np.array([*errors, recalibrated_sums(steps, "log").mean(every)])

    for name, X in traces.items():
        in_cells = numbers(X)
        many, steps_module.MANY = steps_module.MANY, len(X.cells)
        moved = np.abs(in_cells - numbers(X))
        steps_module.MANY = many
        print(
            f"{name}, {len(X.cells):,} steps: cells move calibration errors by at most "
            f"{moved[:-1].max():.1e}, the score of the best recalibration by {moved[-1]:.1e}"
        )


def folder_of(n_steps: int, folder: Path) -> Path:
    """Write files of whole runs until there are so many steps, unless they are there."""
    folder.mkdir(parents=True, exist_ok=True)
    k = 0
    while n_steps > 0:
        path = folder / f"{k:04d}.parquet"
        if not path.exists():
            traces, y = make_runs(min(_RUNS_OF_A_FILE, n_steps // 12 + 1), seed=k)
            table = pa.Table.from_pandas(
                as_frame(traces, y, k * _RUNS_OF_A_FILE), preserve_index=False
            )
            parquet.write_table(table, path.with_suffix(".part"))
            path.with_suffix(".part").replace(path)
        n_steps -= parquet.read_metadata(path).num_rows
        k += 1
    return folder


def in_batches(n_steps: int, folder: Path) -> None:
    """Time one score of one predictor, and the whole report."""
    source = str(folder_of(n_steps, folder))
    one = iter_batches(source, value="judge", **COLUMNS)
    found = measure("TPS alone, one predictor", lambda: one.reduce(TPSAccumulator()), n_steps)
    print(found.compute()[["n_runs", "value", "low", "high"]].to_string())
    three = iter_batches(source, value=list(PREDICTORS), **COLUMNS)
    report = measure("report, 3 predictors, 3 scores", lambda: evaluate(three), n_steps)
    print(report.table[["n_runs", "TPS log", "AUROC"]].round(4).to_string())


def write_torn(source: Path, folder: Path) -> None:
    """Write the same rows to files that are cut at random places, in an order at random."""
    rng = np.random.default_rng(0)
    paths = sorted(source.glob("*.parquet"))
    waiting = parquet.read_schema(paths[0]).empty_table()
    while paths or len(waiting):
        while paths and len(waiting) < 1_200_000:
            waiting = pa.concat_tables([waiting, parquet.read_table(paths.pop(0))])
        n_rows = int(rng.integers(200_000, 1_200_000))
        parquet.write_table(waiting.slice(0, n_rows), folder / f"{rng.integers(1e12):012d}.parquet")
        waiting = waiting.slice(n_rows)


def same_in_memory(n_steps: int, folder: Path) -> None:
    """Show by how much values in batches differ from those in memory."""
    source = str(folder_of(n_steps, folder))
    found = evaluate(iter_batches(source, value=list(PREDICTORS), **COLUMNS)).intervals
    table = dataset.dataset(source).to_table()
    X, y = TrajectoryArray.from_frame(table, value=list(PREDICTORS), **COLUMNS)
    expected = evaluate(X, y).intervals
    gap = abs(found["value"] - expected["value"])
    shown = {"gap": gap, "of the interval": gap / (expected["high"] - expected["low"])}
    largest = pd.DataFrame(shown).loc[list(PREDICTORS)].groupby(["metric", "form"]).max()
    print(largest.unstack("form").to_string(float_format=lambda number: f"{number:.1e}"))


def monitoring(n_runs: int) -> None:
    """Time a monitoring fit."""
    traces, y = make_runs(n_runs)
    X = traces["judge"]
    process = DensityRatioEProcess(random_state=0)
    measure(f"monitoring, {n_runs:,} runs: fit", lambda: process.fit(X, y), len(X.cells))
    measure("the same: which runs are stopped", lambda: process.predict(X), len(X.cells))


def on_dask(n_steps: int, folder: Path) -> None:
    """Compare partitions of whole runs, and those that split runs, with one process."""
    from dask import config, dataframe, delayed
    from distributed import Client, LocalCluster

    # workers keep some of the memory that they free
    environment = {"MALLOC_TRIM_THRESHOLD_": 2**26, "MALLOC_MMAP_THRESHOLD_": 2**25}
    config.set({f"distributed.nanny.pre-spawn-environ.{k}": v for k, v in environment.items()})
    paths = sorted(str(path) for path in folder_of(n_steps, folder).glob("*.parquet"))
    jobs: dict[str, tuple[Any, Callable[[Any], Any]]] = {
        "TPS": ("judge", lambda steps: steps.reduce(TPSAccumulator()).compute().to_numpy()),
        "report": (list(PREDICTORS), lambda steps: evaluate(steps).table.to_numpy(dtype=float)),
    }
    with (
        tempfile.TemporaryDirectory() as torn,
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):
        write_torn(folder, Path(torn))
        client.run(_import_all)
        sources = {
            "a task a file": [delayed(str)(path) for path in paths],
            "DataFrame": dataframe.read_parquet(paths),
            "DataFrame, runs torn": dataframe.read_parquet(torn),
            "the same, a worker killed": dataframe.read_parquet(torn),
        }
        wall = 0.0
        for job, (value, result) in jobs.items():
            here = iter_batches(str(folder), value=value, **COLUMNS)
            expected = measure(f"{job}, one process", lambda r=result, h=here: r(h), n_steps)
            for name, source in sources.items():
                scattered = name not in ("a task a file", "DataFrame")
                there = iter_batches(source, value=value, scattered=scattered, **COLUMNS)
                if name.endswith("killed"):
                    threading.Timer(wall / 2, _kill_a_worker, [client]).start()
                wall, before = time.perf_counter(), _cpu_seconds(client)
                gap = np.nanmax(np.abs(result(there) - expected))
                wall, spent = time.perf_counter() - wall, _cpu_seconds(client) - before
                spent = np.nan if name.endswith("killed") else spent  # what was spent went with it
                print(f"{job}, Dask, 2 processes, {name:<26} {wall:8.2f} s wall {spent:8.2f} s CPU "
                      f"of workers, largest difference {gap:.1e}", flush=True)  # fmt: skip


def _cpu_seconds(client: Any) -> float:
    return sum(client.run(time.process_time).values())


def _kill_a_worker(client: Any) -> None:
    """End a worker as a machine that goes down does."""
    os.kill(next(iter(client.run(os.getpid).values())), signal.SIGKILL)


def _import_all() -> None:
    """Have a worker import what it needs before it is timed."""
    table = pa.table({"run": [0], "t": [1], "p": [0.5], "ok": [1]})
    batches = iter_batches(table, id="run", step="t", value="p", outcome="ok")
    batches.reduce(TPSAccumulator())


def main() -> None:
    """Print what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("what", nargs="?", choices=_KINDS)
    parser.add_argument("--runs", type=int, default=100_000)
    parser.add_argument("--jobs", type=int, default=2, help="threads of evaluate")
    parser.add_argument("--steps", type=int, default=2_000_000)
    parser.add_argument("--folder", type=Path, help="where files of steps are, or are written")
    args = parser.parse_args()
    if args.what in (None, "evaluate"):
        for n_runs in (args.runs // 2, args.runs):
            in_memory(n_runs, args.jobs)
    if args.what in (None, "monitoring"):
        monitoring(args.runs)
    if args.what in (None, "frame"):
        merged_values(20_000)
        cells_of_steps(400_000)
    with tempfile.TemporaryDirectory() as temporary:
        folder = args.folder or Path(temporary)
        if args.what in (None, "parquet"):
            in_batches(args.steps, folder)
        if args.what in (None, "same"):
            same_in_memory(args.steps, folder)
        if args.what == "dask":
            on_dask(args.steps, folder)


if __name__ == "__main__":
    main()
