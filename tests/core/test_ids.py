"""Identifiers of runs: their types, and the order that they give."""

import numpy as np
import pandas as pd
import pytest

from trajscore import TrajectoryArray
from trajscore.core.ids import (
    are_default_ids,
    as_ids,
    check_index,
    check_same_runs,
    id_order,
    pair_codes,
)


def ids_of(ids):
    return TrajectoryArray.from_list([[0.5]] * len(ids), ids=ids).ids


@pytest.mark.parametrize("ids", [[2**63 - 1, -(2**63)], [0, 1], np.array([3, 4], dtype=np.uint8)])
def test_whole_numbers_are_kept_to_the_last_digit(ids):
    found = ids_of(ids)
    assert found.dtype == np.int64
    assert found.tolist() == list(map(int, ids))


@pytest.mark.parametrize(
    ("ids", "row"),
    [
        ([0, 100, -100, 2**63], 3),
        ([-(2**63), -(2**63) - 1, 0, 1], 1),
        ([2**62, 2**63 - 1, 2**70, 2**80], 2),
    ],
)
def test_whole_numbers_that_are_too_large_are_named(ids, row):
    with pytest.raises(ValueError, match=f"row {row}: .* {ids[row]} is too large for a 64-bit"):
        ids_of(np.array(ids, dtype=object))


@pytest.mark.parametrize("ids", [["a", 1], [0.5, 1.5], [None, 1]])
def test_other_identifiers_are_refused(ids):
    with pytest.raises(ValueError, match=r"row|identifiers must be all whole numbers or all text"):
        ids_of(np.array(ids, dtype=object))


def test_the_order_of_ids_is_stable():
    assert id_order(np.array(["b", "a", "b", "a"])).tolist() == [1, 3, 0, 2]


@pytest.mark.parametrize(
    ("ids", "default"),
    [([0, 1, 2], True), ([], True), ([1, 2, 3], False), ([0, 2, 1], False), (["0", "1"], False)],
)
def test_default_ids_identify_no_runs(ids, default):
    assert are_default_ids(np.array(ids, dtype=None if ids else np.int64)) == default


def test_pairs_are_numbered_in_order(rng):
    first, second = rng.integers(0, 5, (2, 60))
    pairs = list(zip(first.tolist(), second.tolist(), strict=True))
    ranks = {pair: rank for rank, pair in enumerate(sorted(set(pairs)))}
    assert pair_codes(first, second).tolist() == [ranks[pair] for pair in pairs]
    assert pair_codes(first[:0], second[:0]).tolist() == []


def container(ids, lengths=None):
    lengths = np.ones(len(ids), dtype=int) if lengths is None else lengths
    return TrajectoryArray(np.full(sum(lengths), 0.5), lengths, ids=ids)


@pytest.mark.parametrize(
    ("first", "other", "words"),
    [
        ("abc", "abc", None),
        ("abc", "ab", "A and B have 3 and 2 runs; give both for the same runs"),
        ("abc", "acb", "row 1 is run 'b' in A, but run 'c' in B; bring both into one order"),
        ("abc", "abd", "row 2 is run 'c' in A, but run 'd' in B"),
        # ids that a container gets by default go with any, unless the others are these in another
        # order
        ("abc", [0, 1, 2], None),
        ([0, 1, 2], "abc", None),
        ([0, 1, 2], [7, 8, 9], None),
        ([0, 1, 2], [0, 2, 1], "row 1 is run 1 in A, but run 2 in B"),
        ([0, 2, 1], [0, 1, 2], "row 1 is run 2 in A, but run 1 in B"),
        ([5, 6, 7], "abc", "row 0 is run 5 in A, but run 'a' in B"),
        ([5, 6, 7], [5, 6, 8], "row 2 is run 7 in A, but run 8 in B"),
    ],
)
def test_the_same_runs(first, other, words):
    A, B = container(list(first)), container(list(other))
    if words is None:
        check_same_runs(A, B, "A", "B")
        return
    with pytest.raises(ValueError, match=words):
        check_same_runs(A, B, "A", "B")


def test_the_same_runs_have_the_same_lengths():
    A, B = container(list("abc"), [1, 2, 3]), container(list("abc"), [1, 3, 2])
    words = "A and B have 2 and 3 steps in row 1; give one value a step for each"
    with pytest.raises(ValueError, match=words):
        check_same_runs(A, B, "A", "B")


@pytest.mark.parametrize(
    ("index", "ids", "is_refused"),
    [
        (["b", "a"], ["a", "b"], True),
        (["a", "b"], ["a", "b"], False),
        (["b", "z"], ["a", "b"], False),
        (["b"], ["a", "b"], False),
        (["b", "b"], ["a", "b"], False),
        ([7, 5], [5, 7], False),
    ],
)
def test_a_series_of_the_same_runs_in_another_order(index, ids, is_refused):
    labelled = pd.Series(0, index=index)
    if not is_refused:
        assert check_index(labelled, np.array(ids), "y") is None
        assert check_index(labelled.to_numpy(), np.array(ids), "y") is None
        return
    with pytest.raises(ValueError, match=r"^row 0: y is of run 'b', X of run 'a'; bring y into"):
        check_index(labelled, np.array(ids), "y")


def test_an_index_of_numbers_that_has_a_name():
    ids = np.array([5, 7, 9])
    with pytest.raises(ValueError, match=r"^row 1: w is of run 9, X of run 7; .*: w\.loc\[X.ids"):
        check_index(pd.Series(0, index=pd.Index([5, 9, 7], name="run")), ids, "w")
    assert check_index(pd.Series(0, index=pd.RangeIndex(3, name="run")), ids, "w") is None


@pytest.mark.parametrize(
    "ids",
    [
        np.array([7, 5], dtype=np.int32),
        pd.Series([7, 5]),
        pd.Series([7, 5], dtype="Int64"),
        np.array([7, 5], dtype=object),
        [7, 5],
    ],
)
def test_there_is_one_identifier_for_each_run(ids):
    found = as_ids(ids, 2)
    assert found.dtype == np.int64
    assert found.tolist() == [7, 5]
    for n_runs in (1, 3):
        with pytest.raises(ValueError, match=f"ids must hold {n_runs} identifiers, one for each"):
            as_ids(ids, n_runs)


def test_identifiers_that_are_missing_are_refused():
    with pytest.raises(ValueError, match="must be all whole numbers or all text, got NAType, int"):
        as_ids(pd.Series([7, None], dtype="Int64"), 2)
