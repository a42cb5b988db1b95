"""Batches of whole runs: which rows make a batch, and what is done with each."""

import tempfile
from itertools import combinations

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet

from trajscore import TrajectoryArray
from trajscore.streaming import TPSAccumulator, batches, iter_batches
from trajscore.streaming.batches import (
    Batch,
    Columns,
    _rows_before_last_run,
    hashed,
    lacks_steps,
    merge,
    update,
)

COLUMNS = {"id": "run", "step": "t", "value": "p", "outcome": "ok"}


def table(*lengths, **columns):
    n = sum(lengths)
    runs = np.repeat([f"r{k}" for k in range(len(lengths))], lengths)
    steps = np.concatenate([np.arange(1, length + 1) for length in lengths])
    values = (np.arange(n) + 1) / (n + 1)
    outcomes = np.repeat(np.arange(len(lengths)) % 2, lengths)
    fields = {"run": runs, "t": steps, "p": values, "ok": outcomes}
    return pa.table(fields | columns)


def ids(source, **options):
    return [X.ids.tolist() for _, X, _ in iter_batches(source, **COLUMNS, **options)]


@pytest.fixture
def four_rows(monkeypatch):
    monkeypatch.setattr(batches, "_BATCH_ROWS", 4)


# ------------------------------------------------------------------ which rows


@pytest.mark.parametrize(
    ("column", "n_before"),
    [("a", 0), ("aa", 0), ("ab", 1), ("aab", 2), ("aabb", 2), ("abb", 1), ("abca", 3)],
)
def test_rows_before_the_last_run(column, n_before):
    assert _rows_before_last_run(pa.chunked_array([list(column)])) == n_before


@pytest.mark.parametrize(
    ("lengths", "expected"),
    [
        ((2, 2, 2, 2), [["r0"], ["r1"], ["r2"], ["r3"]]),
        ((1, 1, 1, 1), [["r0", "r1", "r2"], ["r3"]]),
        ((1, 1, 1), [["r0", "r1", "r2"]]),
        ((9, 1), [["r0"], ["r1"]]),
        ((3, 3), [["r0"], ["r1"]]),
    ],
)
def test_a_batch_ends_before_a_run_that_may_go_on(four_rows, lengths, expected):
    found = ids(table(*lengths))
    assert [run for batch in found for run in batch] == [run for batch in expected for run in batch]
    assert all(len(batch) <= 4 for batch in found)
    X = [X for _, X, _ in iter_batches(table(*lengths), **COLUMNS)]
    assert [length for each in X for length in each.lengths] == list(lengths)


def test_no_row_is_read_twice(four_rows):
    source = table(5, 3, 4, 1, 1)
    cells = np.concatenate([X.cells for _, X, _ in iter_batches(source, **COLUMNS)])
    np.testing.assert_array_equal(cells.ravel(), source["p"].to_numpy())


def test_an_empty_source_has_no_runs(four_rows):
    assert ids(table(1).slice(0, 0)) in ([], [[]])


@pytest.mark.parametrize("n_buckets", [1, 3, 256])
def test_scattered_rows_come_together(tmp_path, monkeypatch, four_rows, n_buckets):
    monkeypatch.setattr(batches, "_MAX_BUCKETS", n_buckets)
    monkeypatch.setattr(batches, "_BUCKET_ROWS", 8)
    source = table(5, 3, 4, 1, 1)
    order = np.random.default_rng(0).permutation(len(source))
    parquet.write_table(source.take(order), tmp_path / "a.parquet")
    for place in (tmp_path / "a.parquet", str(tmp_path), source.take(order)):
        found = list(iter_batches(place, **COLUMNS, scattered=True))
        # a file of 14 rows needs two files of 8; what has no known size takes as many as allowed
        most = n_buckets if isinstance(place, pa.Table) else min(n_buckets, 2)
        assert len(found) <= most
        lengths = {run: n for _, X, _ in found for run, n in zip(X.ids, X.lengths, strict=True)}
        assert lengths == {"r0": 5, "r1": 3, "r2": 4, "r3": 1, "r4": 1}
        total = {run: X.cells[X.offsets[k] : X.offsets[k + 1]].sum() for _, X, _ in found
                 for k, run in enumerate(X.ids)}  # fmt: skip
        assert total["r0"] == pytest.approx(sum(range(1, 6)) / 15)


# ------------------------------------------------------------------ what is in a batch


def test_columns_each_once():
    columns = Columns("a", "b", ("c", "d"), "e", None, ("f", "c"), 1, False)
    assert columns.names == ["a", "b", "c", "d", "e", "f"]
    assert Columns("a", "b", ("c",), "e", "g", (), 1, False).names == ["a", "b", "c", "e", "g"]


def test_outcomes_clusters_and_meta():
    source = table(2, 1, task=["x", "x", "y"], model=["m", "m", "n"], q=[0.1, 0.2, 0.3])
    ((y, X, groups),) = iter_batches(
        source, **COLUMNS | {"value": ["p", "q"]}, group="task", meta="model"
    )
    assert y.tolist() == [0, 1]
    assert groups.tolist() == ["x", "y"]
    assert X.channels == ("p", "q")
    assert X.meta["model"].tolist() == ["m", "n"]
    assert next(iter(iter_batches(source, **COLUMNS)))[2] is None


def test_first_step():
    source = table(2, 1)
    from_zero = source.set_column(1, "t", [pa.array([0, 1, 0])])
    assert ids(from_zero, first_step=0) == [["r0", "r1"]]
    with pytest.raises(ValueError, match="starts at step 0"):
        ids(from_zero)


@pytest.mark.parametrize(
    ("error", "lacks"),
    [("run 'a' starts at step 2", True), ("run 'a' has no step 3", True), ("is inf", False)],
)
def test_errors_that_rows_elsewhere_may_explain(error, lacks):
    assert lacks_steps(ValueError(error)) == lacks


def test_runs_in_pieces_are_refused_with_advice_unless_it_was_taken():
    gap = table(3).take([0, 2])
    with pytest.raises(ValueError, match="has no step 2.*; if its other rows .* scattered=True"):
        ids(gap)
    with pytest.raises(ValueError, match="has no step 2") as caught:
        ids(gap, scattered=True)
    assert "elsewhere" not in str(caught.value)


def test_temporary_files_are_gone_at_once_after_an_error(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with pytest.raises(ValueError, match="has no step 2") as caught:
        ids(table(3).take([0, 2]), scattered=True)
    assert caught.value  # while its traceback is kept
    assert list(tmp_path.iterdir()) == []


# ------------------------------------------------------------------ what is done with batches


X = TrajectoryArray.from_list([[0.1, 0.2], [0.3], [0.4]], ids=["a", "b", "c"])


def test_some_runs_of_a_batch():
    some = Batch(np.array([1, 0, 1]), X, np.array(["t", "u", "v"])).take(np.array([2, 0]))
    assert (some.y.tolist(), some.X.ids.tolist(), some.groups.tolist()) == (
        [1, 1], ["c", "a"], ["v", "t"],
    )  # fmt: skip
    assert Batch(np.array([1, 0, 1]), X, None).take(np.array([1])).groups is None


def test_hashes_are_of_clusters_or_else_of_ids():
    y = np.array([1, 0, 1])
    np.testing.assert_array_equal(Batch(y, X, None).hashes(), hashed(X.ids))
    groups = np.array(["t", "u", "t"])
    np.testing.assert_array_equal(Batch(y, X, groups).hashes(), hashed(groups))


def test_hashes_do_not_depend_on_the_type_of_texts():
    keys = ["a", "b", "a"]
    code = hashed(np.array(keys))
    assert code.dtype == np.int64
    assert (code >= 0).all()
    assert code[0] == code[2] != code[1]
    np.testing.assert_array_equal(code, hashed(np.array(keys, dtype=object)))
    np.testing.assert_array_equal(code, hashed(pd.Series(keys)))
    np.testing.assert_array_equal(hashed(np.array([b"a"])), hashed(np.array([b"a"], dtype=object)))
    many = hashed(np.arange(4096))
    assert len(np.unique(many)) == 4096
    assert abs(np.bincount(many % 4) - 1024).max() < 150


def test_each_predictor_goes_to_its_accumulators():
    two = TrajectoryArray.from_list([[[0.1, 0.9]], [[0.2, 0.7]]], channels=("p", "q"))
    batch = Batch(np.array([0, 1]), two, None)
    parts = {"p": TPSAccumulator(), ("q", "x"): TPSAccumulator()}
    update(parts, batch)
    for name, key in (("p", "p"), ("q", ("q", "x"))):
        alone = TPSAccumulator()
        update(alone, Batch(batch.y, two[name], None))
        assert parts[key].compute().equals(alone.compute())
    more = {"p": TPSAccumulator(), ("q", "x"): TPSAccumulator()}
    update(more, batch)
    merge(more, parts)
    assert [part.n_runs for part in more.values()] == [4, 4]
    single = TPSAccumulator()
    merge(single, parts["p"])
    assert single.n_runs == 2


def test_reducing_leaves_the_accumulator_as_it_was(four_rows):
    empty = TPSAccumulator()
    total = iter_batches(table(2, 3, 1), **COLUMNS).reduce(empty)
    assert (total.n_runs, empty.n_runs) == (3, 0)


def test_outcomes_whose_high_values_are_failures():
    rows = pa.table({"run": ["a", "b"], "t": [1, 1], "p": [0.5, 0.6], "failed": [1, 0]})
    columns = {"id": "run", "step": "t", "value": "p"}
    (batch,) = iter_batches(rows, **columns, outcome="not failed")
    assert batch.y.tolist() == [0, 1]
    with pytest.raises(ValueError, match="outcome='not failed'"):
        list(iter_batches(rows, **columns, outcome="failed"))


def test_whatever_hands_out_arrow_data_is_read():
    class Stream:
        def __arrow_c_stream__(self, requested_schema=None):
            return table(2, 1).__arrow_c_stream__(requested_schema)

    assert ids(Stream()) == [["r0", "r1"]]
    reader = pa.RecordBatchReader.from_batches(table(2, 1).schema, table(2, 1).to_batches())
    assert ids(reader) == [["r0", "r1"]]


def test_at_least_one_column_of_values_is_named():
    with pytest.raises(ValueError, match="value is empty; name at least one column"):
        iter_batches(table(1), **COLUMNS | {"value": []})
    for name in ("id", "step", "value", "outcome", "group", "meta"):
        with pytest.raises(ValueError, match="The name of a column must be text, got 3"):
            iter_batches(table(1), **COLUMNS | {name: 3})


def test_scattered_rows_are_sorted_into_256_files():
    names = np.array([f"r{k}" for k in range(200)])
    numbers = hashed(names)
    one, other = next(
        [i, j]
        for i, j in combinations(range(200), 2)
        if numbers[i] % 256 == numbers[j] % 256 and numbers[i] % 512 != numbers[j] % 512
    )
    assert numbers[one] % 257 != numbers[other] % 257
    third = next(k for k in range(200) if numbers[k] % 256 != numbers[one] % 256)
    rows = names[[one, third, other, one]]
    source = pa.table({"run": rows, "t": [1, 1, 1, 2], "p": [0.5] * 4, "ok": [1] * 4})
    assert sorted(ids(source, scattered=True)) == sorted(
        [[names[third]], [names[one], names[other]]]
    )
