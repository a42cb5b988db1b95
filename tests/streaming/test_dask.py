"""On a cluster of two processes, as on one machine."""

import os

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from trajscore.streaming import (
    CalibrationAccumulator,
    RankingAccumulator,
    TPSAccumulator,
    iter_batches,
)

distributed = pytest.importorskip("distributed")
dataframe = pytest.importorskip("dask.dataframe")
delayed = pytest.importorskip("dask").delayed

COLUMNS = {"id": "run", "step": "t", "value": ["p"], "outcome": "ok", "group": "task"}
pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


@pytest.fixture(scope="module")
def client():
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(0)
    n = 2000
    lengths = rng.integers(1, 9, n)
    starts = np.cumsum(lengths) - lengths
    return pd.DataFrame(
        {
            "run": np.repeat(np.arange(n), lengths),
            "t": np.arange(lengths.sum()) - np.repeat(starts, lengths) + 1,
            "p": rng.random(lengths.sum()),
            "ok": np.repeat(rng.integers(0, 2, n), lengths),
            "task": np.repeat(np.arange(n) // 7, lengths),
        }
    )


def assert_alike(found, expected):
    for one, other in zip(found, expected, strict=True):
        compare = pd.testing.assert_frame_equal
        if isinstance(one, pd.Series):
            compare = pd.testing.assert_series_equal
        compare(one, other, rtol=1e-12)


def results(batches):
    several = {
        ("p", "tps"): TPSAccumulator(["log", "brier"]),
        ("p", "calibration"): CalibrationAccumulator(),
        ("p", "ranking"): RankingAccumulator(),
    }
    return [one.compute() for one in batches.reduce(several).values()]


def test_partitions_that_split_runs(client, frame):
    here = results(iter_batches(pa.Table.from_pandas(frame), **COLUMNS))
    mixed = frame.sample(frac=1, random_state=0)
    there = dataframe.from_pandas(mixed, npartitions=4, sort=False)
    assert_alike(results(iter_batches(there, **COLUMNS, scattered=True)), here)


def test_delayed_tables(client, frame):
    here = results(iter_batches(pa.Table.from_pandas(frame), **COLUMNS))
    parts = [delayed(frame[frame["run"] % 11 == k]) for k in range(11)]
    assert_alike(results(iter_batches(parts, **COLUMNS)), here)


def test_delayed_files(client, frame, tmp_path):
    here = results(iter_batches(pa.Table.from_pandas(frame), **COLUMNS))
    parts = []
    for k in range(3):
        path = tmp_path / f"{k}.parquet"
        frame[frame["run"] % 3 == k].to_parquet(path, index=False)
        parts.append(delayed(str)(path))
    assert_alike(results(iter_batches(parts, **COLUMNS)), here)


def test_a_worker_that_is_killed_changes_nothing(client, frame, tmp_path):
    here = results(iter_batches(pa.Table.from_pandas(frame), **COLUMNS))[0]

    def part(k, flag):
        if k == 5 and not flag.exists():
            flag.touch()
            os._exit(1)  # as a machine that goes down
        return frame[frame["run"] % 11 == k]

    parts = [delayed(part)(k, tmp_path / "died") for k in range(11)]
    found = iter_batches(parts, **COLUMNS).reduce(TPSAccumulator(["log", "brier"]))
    assert (tmp_path / "died").exists()
    assert_alike([found.compute()], [here])
