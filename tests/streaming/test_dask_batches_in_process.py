"""Sums over partitions and the runs that lie in two of them, without a cluster."""

from itertools import pairwise

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from trajscore.streaming import TPSAccumulator, iter_batches
from trajscore.streaming.batches import Columns, hashed
from trajscore.streaming.dask_batches import (
    _FAN_IN,
    DaskBatches,
    _add_inner_runs,
    _distinct,
    _join_partial_sums,
    _merge_all,
    _PartialSums,
    _reduce_tree,
    _with_runs,
)

dask = pytest.importorskip("dask")
dataframe = pytest.importorskip("dask.dataframe")

COLUMNS = Columns("run", "t", ("p",), "ok", None, (), 1, scattered=True)
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


@pytest.fixture(autouse=True)
def in_this_thread():
    with dask.config.set(scheduler="synchronous"):
        yield


def rows_of(runs):
    """Return a table in which the steps of each run are numbered in the order of its rows."""
    run = pd.Series(runs, dtype=np.int64)
    step = run.groupby(run).cumcount() + 1
    return pd.DataFrame({"run": run, "t": step, "p": 0.1 + run / 100, "ok": run % 2})


def sums_of(runs, hashes=()):
    total = TPSAccumulator("brier")
    if len(runs):
        total.update(*COLUMNS.batch(rows_of(runs)))
    return _PartialSums(total, np.array(hashes, dtype=np.int64), rows_of([]))


def assert_sums(found, runs):
    """Check that the same runs were added up, each once."""
    np.testing.assert_allclose(found.total.moments, sums_of(runs).total.moments, atol=1e-12)


@pytest.mark.parametrize(
    ("runs", "inner", "split"),
    [
        ([1, 1, 2, 2, 3, 3, 4], [2, 2, 3, 3], [1, 1, 4]),
        ([1, 2, 2, 3], [2, 2], [1, 3]),  # exactly half of the rows
        ([1, 2, 3], None, None),
        ([1, 1, 2, 2, 3], None, None),
        ([1, 1], None, None),
        ([], [], []),
        ([1, 2, 1, 3, 3, 4], None, None),  # steps of run 1 are missing among the inner rows
    ],
)
def test_the_first_and_the_last_run_of_a_partition_are_left(runs, inner, split):
    empty = TPSAccumulator("brier")
    found = _add_inner_runs(empty, COLUMNS, rows_of(runs))
    assert empty.n_runs == 0
    if inner is None:
        assert found is None
        return
    assert_sums(found, inner)
    assert found.split_rows["run"].tolist() == split
    assert found.hashes.tolist() == sorted(hashed(np.unique(np.array(inner, dtype=int))))


def test_partitions_without_a_run_in_common_are_joined():
    one, two = sums_of([1, 2], [5, 9]), sums_of([3, 3], [7])
    one.split_rows, two.split_rows = rows_of([8]), rows_of([9, 9])
    found = _join_partial_sums([one, two])
    assert_sums(found, [1, 2, 3, 3])
    assert found.hashes.tolist() == [5, 7, 9]
    assert found.split_rows["run"].tolist() == [8, 9, 9]
    assert one.total.n_runs == 2
    assert _join_partial_sums([one]).total.n_runs == 2
    assert _join_partial_sums([one, None]) is None
    assert _join_partial_sums([None, one]) is None
    assert _join_partial_sums([None]) is None
    assert _join_partial_sums([one, sums_of([4], [9])]) is None
    assert _join_partial_sums([sums_of([4], [9, 9])]) is None


def test_runs_are_added_once():
    sums = sums_of([1, 2], hashed(np.array([1, 2])))
    assert _with_runs(sums, COLUMNS, rows_of([])) is sums
    found = _with_runs(sums, COLUMNS, rows_of([3, 4, 3]))
    assert_sums(found, [1, 2, 3, 3, 4])
    assert found.hashes.tolist() == sorted(hashed(np.array([1, 2, 3, 4])))
    assert sums.total.n_runs == 2
    assert _with_runs(sums, COLUMNS, rows_of([3, 1])) is None
    assert _with_runs(sums, COLUMNS, rows_of([3, 3]).iloc[1:]) is None  # its step 1 is missing
    with pytest.raises(ValueError, match="has step 1 more than once"):
        _with_runs(sums, COLUMNS, pd.concat([rows_of([3]), rows_of([3])]))


@pytest.mark.parametrize(
    ("hashes", "distinct"),
    [([], []), ([4], [4]), ([4, 1, 3], [1, 3, 4]), ([4, 1, 4], None), ([1, 1], None)],
)
def test_distinct_hashes(hashes, distinct):
    found = _distinct(np.array(hashes, dtype=np.int64))
    assert (None if found is None else found.tolist()) == distinct


def test_accumulators_are_merged_into_a_copy():
    parts = [sums_of([k]).total for k in range(4)]
    merged = _merge_all(parts)
    assert merged.n_runs == 4
    assert [part.n_runs for part in parts] == [1] * 4


@pytest.mark.parametrize("n_parts", [1, 2, 3, 8, 9, 16, 64, 65, 130])
def test_partitions_are_merged_by_tree(n_parts):
    def leaf(accumulator, columns, part):
        assert columns is COLUMNS or columns == COLUMNS
        return [accumulator + part]

    def node(results):
        assert 1 <= len(results) <= _FAN_IN == 8
        return [part for result in results for part in result]

    found = _reduce_tree(leaf, node, 100, COLUMNS, range(n_parts))
    assert found == [100 + part for part in range(n_parts)]


@pytest.mark.parametrize("cuts", [[], [13], [11], [8, 16], [11, 11]])
def test_runs_torn_between_partitions(monkeypatch, cuts):
    frame = rows_of(np.repeat(np.arange(13), [*[1, 2, 3] * 4, 1]))
    columns = {"id": "run", "step": "t", "value": "p", "outcome": "ok"}
    here = iter_batches(pa.Table.from_pandas(frame), **columns).reduce(TPSAccumulator())
    monkeypatch.setattr(dataframe, "from_delayed", None)  # which a shuffle needs
    edges = [0, *cuts, len(frame)]
    parts = [dask.delayed(frame.iloc[a:b]) for a, b in pairwise(edges)]
    there = iter_batches(parts, **columns, scattered=True).reduce(TPSAccumulator())
    np.testing.assert_allclose(there.moments, here.moments, rtol=1e-12)


def test_batches_are_partitions():
    parts = [dask.delayed(rows_of(runs)) for runs in ([1, 2, 2], [], [3])]
    columns = Columns("run", "t", ("p",), "ok", None, (), 1, scattered=False)
    batches = list(DaskBatches(parts, columns))
    assert [batch.X.ids.tolist() for batch in batches] == [[1, 2], [3]]
    assert [batch.y.tolist() for batch in batches] == [[1, 0], [1]]
    assert DaskBatches(parts, columns).reduce(TPSAccumulator()).n_runs == 3
