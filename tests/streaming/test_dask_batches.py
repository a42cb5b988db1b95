"""On a cluster of two processes, as on one machine."""

import os
from itertools import pairwise

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from trajscore import evaluate
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
    pytest.mark.slow,  # workers take seconds to start
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


@pytest.fixture(scope="module")
def client():
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0"
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


def cut_at_random(frame, seed=0):
    """Partitions of rows that follow one another, in any order; some runs lie in several."""
    rng = np.random.default_rng(seed)
    cuts = np.sort(rng.integers(0, len(frame), 12)).tolist()
    cuts = [0, *cuts, cuts[-1], len(frame)]  # an empty one among them
    parts = [frame.iloc[a:b] for a, b in pairwise(cuts)]
    return [parts[k] for k in rng.permutation(len(parts))]


@pytest.mark.parametrize("is_text", [False, True])
def test_runs_torn_at_the_ends_of_partitions_are_all_that_moves(
    client, frame, monkeypatch, is_text
):
    if is_text:
        frame = frame.assign(run="run " + frame["run"].astype(str))
    here = results(iter_batches(pa.Table.from_pandas(frame), **COLUMNS))
    monkeypatch.setattr(dataframe, "from_delayed", None)  # which a shuffle needs
    parts = [delayed(part) for part in cut_at_random(frame)]
    assert_alike(results(iter_batches(parts, **COLUMNS, scattered=True)), here)


def test_runs_torn_anywhere_in_some_partitions(client, frame):
    here = results(iter_batches(pa.Table.from_pandas(frame), **COLUMNS))
    first, last = frame[frame["run"] < 300], frame[frame["run"] >= 1800]
    mixed = pd.concat([first, last]).sample(frac=1, random_state=0)
    middle = frame[frame["run"].between(300, 1799)]
    parts = [delayed(part) for part in (mixed[:1000], middle, mixed[1000:])]
    assert_alike(results(iter_batches(parts, **COLUMNS, scattered=True)), here)


def test_a_run_in_two_partitions_is_refused(client, frame):
    parts = [delayed(frame[frame["run"] < 1200]), delayed(frame[frame["run"] >= 1000])]
    with pytest.raises(ValueError, match="has step 1 more than once"):
        results(iter_batches(parts, **COLUMNS, scattered=True))


def test_a_value_that_is_no_forecast_is_named(client, frame):
    parts = [delayed(part) for part in cut_at_random(frame.assign(p=frame["p"] + 1))]
    with pytest.raises(ValueError, match=r"lies outside \[0, 1\]"):
        results(iter_batches(parts, **COLUMNS, scattered=True))


def test_report_of_partitions_that_split_runs(client, frame):
    columns = COLUMNS | {"value": ["p", "q"]}
    frame = frame.assign(q=1 - frame["p"] ** 2)
    here = evaluate(iter_batches(pa.Table.from_pandas(frame), **columns))
    parts = dataframe.from_delayed([delayed(part) for part in cut_at_random(frame)])
    there = evaluate(iter_batches(parts, **columns, scattered=True))
    pd.testing.assert_frame_equal(there.table, here.table, rtol=1e-9)
    pd.testing.assert_frame_equal(there.intervals, here.intervals, rtol=1e-9)


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


def test_delayed_files_that_split_runs(client, frame, tmp_path):
    here = results(iter_batches(pa.Table.from_pandas(frame), **COLUMNS))
    parts = []
    for k, part in enumerate(cut_at_random(frame)):
        path = tmp_path / f"{k}.parquet"
        part.to_parquet(path, index=False)
        parts.append(delayed(str)(path))
    assert_alike(results(iter_batches(parts, **COLUMNS, scattered=True)), here)


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
