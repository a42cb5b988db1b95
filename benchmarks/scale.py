"""Time and memory: large sets in memory, from tables, in batches and on Dask; and speed targets.

    python benchmarks/scale.py targets [--quick]
    python benchmarks/scale.py evaluate   --runs 1000000
    python benchmarks/scale.py monitoring --runs 1000000
    python benchmarks/scale.py parquet --steps 100000000 --folder /tmp/steps
    python benchmarks/scale.py same    --steps 10000000     # in batches, as in memory?
    python benchmarks/scale.py dask    --steps 100000000 --folder /tmp/steps

Each measurement prints wall and CPU seconds, and the peak of memory of its process. Runs have 12
steps on average and three predictors of continuous forecasts, none of which repeats a value.
Targets are ratios where they can be, and medians, so that they carry over between machines.
"""

import os
import resource
import subprocess
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from pyarrow import dataset, parquet

from shared import dispatch
from trajscore import DensityRatioEProcess, TrajectoryArray, evaluate
from trajscore.inference import SequentialComparison, compare_predictors, paired_bootstrap
from trajscore.metrics import ecuas_score, tps_decomposition, tps_samples
from trajscore.report import EvaluationOptions
from trajscore.streaming import TPSAccumulator, iter_batches

PREDICTORS = ("judge", "verbal", "entropy")
COLUMNS: dict[str, Any] = {"id": "run", "step": "t", "outcome": "solved"}
_RUNS_OF_A_FILE = 200_000


def make_runs(
    n_runs: int, seed: int = 0, predictors: Sequence[str] = PREDICTORS
) -> tuple[dict[str, TrajectoryArray], np.ndarray]:
    """Make runs of 1 to 23 steps whose chance of success differs, and noisy forecasts of it."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, 24, n_runs)
    chance = rng.beta(2, 2, n_runs)
    y = (rng.random(n_runs) < chance).astype(np.int64)
    log_odds = np.repeat(np.log(chance / (1 - chance)), lengths)
    traces = {}
    for k, name in enumerate(predictors):
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
    result = function()
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(
        f"{name:<52} {wall:8.2f} s wall {cpu:8.2f} s CPU {n_steps / cpu / 1e6:7.2f} M steps/s "
        f"peak {peak:6.0f} MB",
        flush=True,
    )
    return result


def median_seconds(function: Callable[[], object], repeats: int = 5) -> float:
    function()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return float(np.median(times))


def against_target(name: str, value: float, unit: str, target: float) -> None:
    verdict = "ok" if value <= target else "MISSED"
    print(f"{name:<58} {value:9.3g} {unit:<6} target {target:g} {unit} {verdict}", flush=True)


def peak_of(function: Callable[[], object]) -> int:
    tracemalloc.start()
    function()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


def import_seconds(module: str) -> float:
    compiled = {**os.environ, "PYTHONDONTWRITEBYTECODE": ""}  # as an installed package is
    code = f"import time; t = time.perf_counter(); import {module}; print(time.perf_counter() - t)"
    call = [sys.executable, "-c", code]
    runs = (
        subprocess.run(call, capture_output=True, text=True, check=True, env=compiled).stdout
        for _ in range(7)
    )
    return float(np.median([float(run) for run in runs]))


def targets(args: Any) -> None:
    n, rng = 1_000_000, np.random.default_rng(0)
    traces, y = make_runs(n, predictors=PREDICTORS[:1])
    X, few = traces["judge"], traces["judge"][: n // (120 if args.quick else 12)]
    P, label = rng.dirichlet(np.ones(10), n), rng.integers(0, 10, n)
    task = np.arange(16_110) // 5
    samples = rng.normal(size=(len(task), 12))
    columns = {f"predictor {k}": column for k, column in enumerate(samples.T)}
    options = {"groups": task, "random_state": 0, "n_resamples": 10_000, "n_jobs": 2}
    a, b = rng.random((2, len(task)))
    runs, outcomes = make_runs(16_110, predictors=PREDICTORS[:1])
    jobs = EvaluationOptions(n_jobs=2)
    passes = {
        "logs": median_seconds(lambda: np.log(X.cells)),
        "passes": median_seconds(lambda: (P.argmax(axis=1), P.max(axis=1))),
        "s": 1.0,
    }
    calls = (
        (f"tps_samples, {n:,} runs", lambda: tps_samples(y, X), "logs", 5),
        (f"ecuas_score, {n:,} x 10", lambda: ecuas_score(label, P, n=1), "passes", 3),
        ("paired_bootstrap, tasks of 5",
         lambda: paired_bootstrap(samples, reference=0, **options), "s", 3),
        ("compare_predictors, 66 simultaneous pairs, tasks of 5",
         lambda: compare_predictors(columns, **options), "s", 3),
        ("SequentialComparison.history",
         lambda: SequentialComparison(bound=1).update(a, b).history(), "s", 3),
        (f"tps_decomposition, {len(few.cells):,} steps",
         lambda: tps_decomposition(y[: len(few)], few), "s", 2),
        ("evaluate, 16,110 runs, 1,000 replicates, 2 jobs",
         lambda: evaluate(runs["judge"], outcomes, options=jobs), "s", 5),
    )  # fmt: skip
    for name, call, unit, target in calls:
        against_target(name, median_seconds(call, 3) / passes[unit], unit, target)
    memory = (peak_of(lambda: tps_samples(y, X)) - 8 * n) / 2**20
    against_target("tps_samples: peak memory beside the result", memory, "MiB", 64)
    copies = peak_of(lambda: ecuas_score(label, P)) / P.nbytes
    against_target("ecuas_score: peak memory, of the array", copies, "copies", 1)
    extra = import_seconds("trajscore") - import_seconds("sklearn.metrics")
    against_target("import trajscore beyond import sklearn.metrics", extra, "s", 0.3)


def in_memory(args: Any) -> None:
    traces, y = make_runs(args.runs)
    jobs = EvaluationOptions(n_jobs=args.jobs)
    name = f"evaluate, {args.runs:,} runs, {args.jobs} threads"
    measure(name, lambda: evaluate(traces, y, options=jobs), len(traces["judge"].cells))


def monitoring(args: Any) -> None:
    traces, y = make_runs(args.runs)
    X, process = traces["judge"], DensityRatioEProcess(random_state=0)
    measure(f"monitoring, {args.runs:,} runs: fit", lambda: process.fit(X, y), len(X.cells))
    measure("the same: which runs are stopped", lambda: process.predict(X), len(X.cells))


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


def in_batches(args: Any) -> None:
    n_steps = args.steps
    source = str(folder_of(n_steps, Path(args.folder)))
    one = iter_batches(source, value="judge", **COLUMNS)
    result = measure("TPS alone, one predictor", lambda: one.reduce(TPSAccumulator()), n_steps)
    print(result.compute()[["n_runs", "value", "low", "high"]].to_string())
    three = iter_batches(source, value=list(PREDICTORS), **COLUMNS)
    report = measure("report, 3 predictors, 3 scores", lambda: evaluate(three), n_steps)
    print(report.table[["n_runs", "TPS log", "AUROC"]].round(4).to_string())


def same_in_memory(args: Any) -> None:
    source = str(folder_of(args.steps, Path(args.folder)))
    result = evaluate(iter_batches(source, value=list(PREDICTORS), **COLUMNS)).intervals
    table = dataset.dataset(source).to_table()
    X, y = TrajectoryArray.from_frame(table, value=list(PREDICTORS), **COLUMNS)
    expected = evaluate(X, y).intervals
    gap = abs(result["value"] - expected["value"])
    shown = {"gap": gap, "of the interval": gap / (expected["high"] - expected["low"])}
    largest = pd.DataFrame(shown).loc[list(PREDICTORS)].groupby(["metric", "form"]).max()
    print(largest.unstack("form").to_string(float_format=lambda number: f"{number:.1e}"))


def on_dask(args: Any) -> None:
    from dask import config, dataframe, delayed
    from distributed import Client, LocalCluster

    n_steps, folder = args.steps, Path(args.folder)
    # workers keep some of the memory that they free
    environment = {"MALLOC_TRIM_THRESHOLD_": 2**26, "MALLOC_MMAP_THRESHOLD_": 2**25}
    config.set({f"distributed.nanny.pre-spawn-environ.{k}": v for k, v in environment.items()})
    paths = sorted(str(path) for path in folder_of(n_steps, folder).glob("*.parquet"))
    jobs: dict[str, tuple[Any, Callable[[Any], Any]]] = {
        "TPS": ("judge", lambda steps: steps.reduce(TPSAccumulator()).compute().to_numpy()),
        "report": (list(PREDICTORS), lambda steps: evaluate(steps).table.to_numpy(dtype=float)),
    }
    sources = {
        "a task a file": [delayed(str)(path) for path in paths],
        "DataFrame": dataframe.read_parquet(paths),
    }
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):
        client.run(_import_all)
        for job, (value, result) in jobs.items():
            here = iter_batches(str(folder), value=value, **COLUMNS)
            expected = measure(f"{job}, one process", lambda r=result, h=here: r(h), n_steps)
            for name, source in sources.items():
                there = iter_batches(source, value=value, **COLUMNS)
                wall, before = time.perf_counter(), _cpu_seconds(client)
                gap = np.nanmax(np.abs(result(there) - expected))
                wall, spent = time.perf_counter() - wall, _cpu_seconds(client) - before
                print(f"{job}, Dask, 2 processes, {name:<26} {wall:8.2f} s wall {spent:8.2f} s CPU "
                      f"of workers, largest difference {gap:.1e}", flush=True)  # fmt: skip


def _cpu_seconds(client: Any) -> float:
    return sum(client.run(time.process_time).values())


def _import_all() -> None:
    """Have a worker import what it needs before it is timed."""
    table = pa.table({"run": [0], "t": [1], "p": [0.5], "ok": [1]})
    batches = iter_batches(table, id="run", step="t", value="p", outcome="ok")
    batches.reduce(TPSAccumulator())


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as temporary:
        commands = {
            "targets": targets, "evaluate": in_memory, "monitoring": monitoring,
            "parquet": in_batches, "same": same_in_memory, "dask": on_dask,
        }  # fmt: skip
        how = {"runs": 100_000, "jobs": 2, "steps": 2_000_000, "folder": temporary}
        dispatch(__doc__, commands, quick=False, **how)
