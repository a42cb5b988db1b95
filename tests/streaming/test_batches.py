"""Batches of whole runs: which rows make a batch, on one machine and in partitions."""

import tempfile
from itertools import pairwise

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import dataset, parquet

from trajscore import TrajectoryArray
from trajscore.core.errors import ArgumentError, MissingStepError
from trajscore.metrics import tps_score
from trajscore.streaming import (
    CalibrationAccumulator,
    RankingAccumulator,
    TPSAccumulator,
    iter_batches,
)

COLUMNS = {"id": "run", "step": "t", "value": "p", "outcome": "ok"}


def table(*lengths, **columns):
    n = sum(lengths)
    runs = np.repeat([f"r{k}" for k in range(len(lengths))], lengths)
    steps = np.concatenate([np.arange(1, length + 1) for length in lengths])
    outcomes = np.repeat(np.arange(len(lengths)) % 2, lengths)
    fields = {"run": runs, "t": steps, "p": (np.arange(n) + 1) / (n + 1), "ok": outcomes}
    return pa.table(fields | columns)


def ids(source, **options):
    return [X.ids.tolist() for _, X, _ in iter_batches(source, **COLUMNS, **options)]


LENGTHS = np.random.default_rng(0).integers(1, 9, 400)


@pytest.fixture(scope="module")
def rows():
    """400 runs of whole numbers as ids, with a score in memory."""
    rng = np.random.default_rng(1)
    X = TrajectoryArray(rng.random(LENGTHS.sum()), LENGTHS, ids=np.arange(400))
    y = rng.integers(0, 2, 400)
    frame = X.to_frame(id="run", step="t", value="p")
    frame = frame.assign(ok=np.repeat(y, LENGTHS), task=np.repeat(np.arange(400) // 7, LENGTHS))
    return frame, tps_score(y, X)


def test_what_is_in_a_batch():
    source = table(2, 1, task=["x", "x", "y"], model=["m", "m", "n"], q=[0.1, 0.2, 0.3])
    columns = COLUMNS | {"value": ["p", "q"], "group": "task", "meta": "model"}
    ((y, X, groups),) = iter_batches(source, **columns)
    assert (y.tolist(), groups.tolist()) == ([0, 1], ["x", "y"])
    assert X.channels == ("p", "q")
    assert X.meta["model"].tolist() == ["m", "n"]
    assert next(iter(iter_batches(source, **COLUMNS)))[2] is None
    from_zero = source.set_column(1, "t", [pa.array([0, 1, 0])])
    assert ids(from_zero, first_step=0) == [["r0", "r1"]]
    assert ids(table(1).slice(0, 0)) in ([], [[]])
    failed = pa.table({"run": ["a", "b"], "t": [1, 1], "p": [0.5, 0.6], "failed": [1, 0]})
    (batch,) = iter_batches(failed, **COLUMNS | {"outcome": "not failed"})
    assert batch[0].tolist() == [0, 1]


def test_a_batch_ends_before_a_run_that_may_go_on():
    # a quarter of a million rows are read at a time
    lengths = np.r_[np.full(26_000, 10), 9_000, np.full(1_000, 10), 300_000, 1]
    n = lengths.sum()
    p = np.random.default_rng(0).random(n)
    run = np.repeat(np.arange(len(lengths)), lengths)
    t = np.arange(n) - np.repeat(np.cumsum(lengths) - lengths, lengths) + 1
    source = pa.table({"run": run, "t": t, "p": p, "ok": run % 2})
    seen = []

    def progress(tables):
        for one in tables:
            seen.append(len(one))
            yield one

    found = list(iter_batches(source, **COLUMNS, progress=progress))
    assert len(found) >= 3
    assert sum(seen) == n
    assert np.concatenate([X.lengths for _, X, _ in found]).tolist() == lengths.tolist()
    np.testing.assert_array_equal(np.concatenate([X.cells for _, X, _ in found]).ravel(), p)


def test_sources(rows, tmp_path):
    frame, value = rows
    source = pa.Table.from_pandas(frame, preserve_index=False)
    edges = np.cumsum(LENGTHS)[[5, 200, 201]].tolist()
    for k, (a, b) in enumerate(pairwise([0, *edges, len(frame)])):
        parquet.write_table(source.slice(a, b - a), tmp_path / f"{k}.parquet")
    (tmp_path / "README.md").write_text("What these files are.")
    (tmp_path / "_temporary").mkdir()
    (tmp_path / "_temporary" / "p.parquet").touch()

    class Stream:
        def __arrow_c_stream__(self, requested_schema=None):
            return source.__arrow_c_stream__(requested_schema)

    reader = pa.RecordBatchReader.from_batches(source.schema, source.to_batches())
    empty = TPSAccumulator()
    files = sorted(tmp_path.glob("*.parquet"))
    for place in (tmp_path, str(tmp_path), dataset.dataset(files), source, reader, Stream()):
        total = iter_batches(place, **COLUMNS, group="task").reduce(empty)
        assert total.compute().loc["log", "value"] == pytest.approx(value, rel=1e-12)
    assert empty.n_runs == 0
    two = pa.Table.from_pandas(frame.assign(q=1 - frame["p"]))
    batches = iter_batches(two, **COLUMNS | {"value": ["p", "q"]})
    found = batches.reduce({"p": TPSAccumulator(), ("q", "rank"): RankingAccumulator()})
    assert found["p"].compute().loc["log", "value"] == pytest.approx(value, rel=1e-12)
    flipped = 1 - iter_batches(two, **COLUMNS).reduce(RankingAccumulator()).compute()["value"]
    ranked = found["q", "rank"].compute()["value"]
    assert ranked["AUROC"] == pytest.approx(flipped["AUROC"], abs=0.1)


def test_scattered_rows_come_together(rows, tmp_path):
    frame, value = rows
    mixed = pa.Table.from_pandas(frame.sample(frac=1, random_state=0), preserve_index=False)
    parquet.write_table(mixed, tmp_path / "a.parquet")
    for place, most in ((tmp_path / "a.parquet", 1), (str(tmp_path), 1), (mixed, 256)):
        found = list(iter_batches(place, **COLUMNS, scattered=True))
        assert 1 <= len(found) <= most
        lengths = {run: n for _, X, _ in found for run, n in zip(X.ids, X.lengths, strict=True)}
        assert [lengths[run] for run in range(400)] == LENGTHS.tolist()
        total = iter_batches(place, **COLUMNS, scattered=True).reduce(TPSAccumulator())
        assert total.compute().loc["log", "value"] == pytest.approx(value, rel=1e-12)
    assert len(found) > 100  # hashes of runs are spread over all files
    text = mixed.set_column(0, "run", [[f"r{run}" for run in mixed["run"].to_pylist()]])
    assert sum(len(X) for _, X, _ in iter_batches(text, **COLUMNS, scattered=True)) == 400


def test_bad_sources(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    gap = table(3).take([0, 2])
    with pytest.raises(ArgumentError, match="no step 2.*scattered=True") as caught:
        ids(gap)
    assert caught.value.part == "scattered"
    with pytest.raises(MissingStepError, match="no step 2"):
        ids(gap, scattered=True)
    assert list(tmp_path.iterdir()) == []  # temporary files are gone at once
    with pytest.raises(ValueError, match=r"outcome 5"):
        ids(table(1).set_column(3, "ok", [[5]]))
    failed = pa.table({"run": ["a", "b"], "t": [1, 1], "p": [0.5, 0.6], "failed": [1, 0]})
    for change, words in (
        ({"outcome": "failed"}, "outcome='not failed'"),
        ({"outcome": "not failed", "value": []}, "value is empty"),
    ):
        with pytest.raises(ValueError, match=words):
            list(iter_batches(failed, **COLUMNS | change))


dask = pytest.importorskip("dask")
dataframe = pytest.importorskip("dask.dataframe")


@pytest.fixture
def in_this_thread():
    with dask.config.set(scheduler="synchronous"):
        yield


def results(batches):
    several = {
        ("p", "tps"): TPSAccumulator(["log", "brier"]),
        ("p", "calibration"): CalibrationAccumulator(),
        ("p", "ranking"): RankingAccumulator(),
    }
    return [one.compute() for one in batches.reduce(several).values()]


def cut_at_random(frame):
    """Partitions of rows that follow one another, in any order; some runs lie in several."""
    rng = np.random.default_rng(0)
    cuts = np.sort(rng.integers(0, len(frame), 6)).tolist()
    cuts = [0, *cuts, cuts[-1], len(frame)]  # an empty one among them
    parts = [frame.iloc[a:b] for a, b in pairwise(cuts)]
    return [parts[k] for k in rng.permutation(len(parts))]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_partitions_are_added_up_as_one_machine_does(rows, tmp_path, in_this_thread):
    frame = rows[0]
    columns = COLUMNS | {"value": ["p"], "group": "task"}
    here = results(iter_batches(pa.Table.from_pandas(frame), **columns))
    whole = [frame[frame["run"] % 5 == k] for k in range(5)]
    torn = cut_at_random(frame)
    mixed = frame.sample(frac=1, random_state=0)
    middle = frame[frame["run"].between(100, 299)]
    ends = mixed[~mixed["run"].between(100, 299)]
    for name, parts in (("whole", whole), ("torn", torn)):
        for k, part in enumerate(parts):
            part.to_parquet(tmp_path / f"{name} {k:02d}.parquet", index=False)

    def delayed(parts):
        return [dask.delayed(part) for part in parts]

    def paths(name):
        return [dask.delayed(str)(one) for one in sorted(tmp_path.glob(f"{name}*"))]

    sources = [
        (delayed(whole), False),
        (paths("whole"), False),
        (dataframe.from_delayed(delayed(whole)), False),
        (delayed([ends[:300], middle, ends[300:]]), True),  # torn anywhere in some
        (dataframe.from_pandas(mixed, npartitions=4, sort=False), True),
        (paths("torn"), True),
        (delayed(torn), True),
        (delayed([part.assign(run=part["run"].map("run {}".format)) for part in torn]), True),
    ]
    for k, (source, scattered) in enumerate(sources):
        batches = iter_batches(source, **columns, scattered=scattered)
        for _ in range(2):  # tasks may run twice
            for one, other in zip(results(batches), here, strict=True):
                np.testing.assert_allclose(one, other, rtol=1e-9, err_msg=str(k))


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_batches_are_partitions(rows, tmp_path, in_this_thread):
    frame = rows[0]
    parts = [frame[frame["run"] < 100], frame[:0], frame[frame["run"] >= 100]]
    found = list(iter_batches([dask.delayed(part) for part in parts], **COLUMNS))
    assert [len(X) for _, X, _ in found] == [100, 300]
    parts[0].to_parquet(tmp_path / "a.parquet", index=False)
    (batch,) = iter_batches([dask.delayed(str)(tmp_path / "a.parquet")], **COLUMNS)
    assert len(batch[1]) == 100
    scattered = [dask.delayed(part) for part in (frame[::2], frame[1::2])]
    found = iter_batches(scattered, **COLUMNS, scattered=True)
    assert sum(len(X) for _, X, _ in found) == 400
    twice = [dask.delayed(frame[frame["run"] < 300]), dask.delayed(frame[frame["run"] >= 200])]
    loud = [dask.delayed(part.assign(p=part["p"] + 1)) for part in cut_at_random(frame)]
    for source, words in ((twice, "step 1 more than once"), (loud, r"\[0, 1\]")):
        with pytest.raises(ValueError, match=words):
            iter_batches(source, **COLUMNS, scattered=True).reduce(TPSAccumulator())
    table = pd.DataFrame({"run": [1, 2, 2, 3], "t": [1, 1, 2, 1], "p": 0.5, "ok": 1})
    one = iter_batches([dask.delayed(table)], **COLUMNS, scattered=True)
    assert one.reduce(TPSAccumulator()).n_runs == 3
