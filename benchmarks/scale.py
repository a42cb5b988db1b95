"""Time and memory of large sets in batches, and on Dask; in memory it is benchmarks/peers.py.

    python benchmarks/scale.py parquet --steps 100000000 --folder /tmp/steps
    python benchmarks/scale.py same    --steps 10000000     # in batches, as in memory?
    python benchmarks/scale.py dask    --steps 100000000 --folder /tmp/steps

Each measurement prints wall and CPU seconds, and the peak of memory of its process. Runs have 12
steps on average and three predictors of continuous forecasts, none of which repeats a value.
"""

import resource
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from pyarrow import dataset, parquet

from shared import dispatch
from trajscore import TrajectoryArray, evaluate
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
        commands = {"parquet": in_batches, "same": same_in_memory, "dask": on_dask}
        dispatch(__doc__, commands, steps=2_000_000, folder=temporary)
