import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.model_selection import GroupKFold, KFold, PredefinedSplit, ShuffleSplit

from trajscore.core.folds import assign_folds, held_out_rows, out_of_fold

N = 12
orders = st.permutations(range(N)).map(np.array)
IDS = np.array([f"r{k:02d}" for k in range(N)])
STRATA = np.tile([1, 0, 0], 4)
GROUPS = np.repeat(["a", "b", "c", "d", "e", "f"], 2)


@given(
    orders,
    st.sampled_from([(2, None), (4, None), (3, GROUPS), (KFold(3), None), (GroupKFold(3), GROUPS)]),
)
def test_folds_do_not_depend_on_the_order_of_rows(order, case):
    cv, groups = case
    fold = assign_folds(cv, IDS, STRATA, groups=groups)
    shuffled = assign_folds(
        cv, IDS[order], STRATA[order], groups=None if groups is None else groups[order]
    )
    assert shuffled.tolist() == fold[order].tolist()
    assert sorted(set(fold)) == list(range(fold.max() + 1))


def test_a_number_alternates_within_each_stratum():
    fold = assign_folds(2, IDS, STRATA)
    for label in (0, 1):
        some = fold[np.equal(STRATA, label)]
        assert some.tolist() == [0, 1] * (len(some) // 2)


@pytest.mark.parametrize("cv", [3, GroupKFold(3)])
def test_groups_stay_whole(cv):
    fold = assign_folds(cv, IDS, STRATA, groups=GROUPS)
    assert (fold[::2] == fold[1::2]).all()
    assert set(fold) == {0, 1, 2}


def test_a_run_given_twice_is_one_run():
    twice = assign_folds(3, np.repeat(IDS, 2), np.repeat(STRATA, 2))
    assert twice.tolist() == np.repeat(assign_folds(3, IDS, STRATA), 2).tolist()


@pytest.mark.parametrize("groups", [None, GROUPS])
def test_runs_that_do_not_count_do_not_change_the_others(groups):
    counts = np.arange(N) % 4 != 1
    fold = assign_folds(2, IDS, STRATA, counts=counts, groups=groups)
    alone = assign_folds(
        2, IDS[counts], STRATA[counts], groups=None if groups is None else groups[counts]
    )
    assert fold[counts].tolist() == alone.tolist()
    assert set(fold[~counts]) <= {0, 1}


def test_lists_and_predefined_splits_mean_the_rows_as_given():
    test_fold = np.arange(N)[::-1] % 3
    splits = [(np.flatnonzero(test_fold != k), np.flatnonzero(test_fold == k)) for k in range(3)]
    for cv in (splits, PredefinedSplit(test_fold)):
        assert assign_folds(cv, IDS[::-1], STRATA).tolist() == test_fold.tolist()


@pytest.mark.parametrize(
    ("cv", "others", "message"),
    [
        (None, {}, "whole number, at least 2, or a splitter"),
        (1, {}, "at least 2, got 1"),
        (9, {}, r"cv = 9 is more than the number of successes \(4\) and of failures \(8\)"),
        (3, {"groups": np.repeat(["a", "b"], 6)}, "2 groups of runs, too few for 3"),
        (3, {"ids": np.zeros(N, dtype=int)}, "have 1 different ids, too few for 3"),
        (ShuffleSplit(2, random_state=0), {}, "into one test|every run into a test"),
        ([([0], [1])], {}, "split 0 of cv has row 2 in neither"),
        ([(range(N), [1])], {}, "split 0 of cv has row 1 in both"),
        ([([0], [99])], {}, "names rows that are not among the 12 runs"),
        ([[0.5]], {}, "split 0 of cv must be a pair of training and test rows"),
    ],
)
def test_what_cannot_be_folds(cv, others, message):
    with pytest.raises(ValueError, match=message):
        assign_folds(cv, others.pop("ids", IDS), STRATA, **others)


def test_each_run_is_held_out_once_from_what_is_fitted():
    fold = assign_folds(3, IDS, STRATA)
    seen = []
    for rows, train in out_of_fold(fold, lambda train: train):
        assert not train[rows].any()
        assert train.sum() + len(rows) == N
        seen += rows.tolist()
    assert sorted(seen) == list(range(N))


def test_a_fold_needs_two_runs_of_an_outcome():
    with pytest.raises(ValueError, match="n_samples = 2 is too few .* two successes and two fail"):
        assign_folds(2, IDS[:2], [1, 0])
    with pytest.raises(ValueError, match="cv = 3 is more than the number"):
        assign_folds(3, IDS[:2], [1, 0])


def test_rows_held_out_are_those_given_or_drawn_among_the_known():
    known = np.array([4, 0, 2, 6, 8])
    assert held_out_rows(known, 9, [8, 1, 4], 0.5, 0).tolist() == [4, 8]
    assert held_out_rows(known, 9, np.arange(9) < 3, 0.5, 0).tolist() == [0, 2]
    assert held_out_rows(known, 9, np.array([True] + [False] * 8, object), 0.5, 0).tolist() == [0]
    assert held_out_rows(known, 9, np.array([8, 0, 1], object), 0.5, 0).tolist() == [0, 8]
    assert held_out_rows(known, 9, np.array([], object), 0.5, 0).tolist() == []
    assert held_out_rows(known, 9, [], 0.5, 0).tolist() == []
    drawn = held_out_rows(known, 9, None, 0.4, 0)
    assert len(drawn) == 2
    assert set(drawn) <= set(known)
    assert drawn.tolist() == sorted(drawn)
    stratify = np.array([0, 0, 1, 1, 1])
    assert len(set(held_out_rows(known, 9, None, 0.4, 0, stratify)) & {0, 4}) == 1


@pytest.mark.parametrize(
    ("calibration", "message"),
    [
        ([3, 5, 5], "names row 5 more than once"),
        ([9], "rows of X, from 0 to 8, or a mask of 9 bools"),
        ([-1], "rows of X"),
        ([0.5], "rows of X"),
        (["a"], "rows of X"),
        ([[1]], "rows of X"),
        ([True, False], "a mask of 9 bools"),
        (np.array([True, 1] + [False] * 7, object), "names row 0 more than once"),
    ],
)
def test_rows_that_cannot_be_held_out(calibration, message):
    with pytest.raises(ValueError, match=message):
        held_out_rows(np.arange(9), 9, calibration, 0.5, 0)


@pytest.mark.parametrize("train", [[1, 2], [2]])
@pytest.mark.parametrize("twice", [0, 1])
def test_a_run_is_held_out_once(train, twice):
    others = [row for row in range(3) if row != twice]
    cv = [(others, [twice]), (others, [twice])]
    with pytest.raises(ValueError, match="cv must put each run into one test fold only"):
        assign_folds(cv, np.arange(3), [1, 0, 1])


def test_as_many_groups_as_folds_are_enough():
    groups = np.repeat(["a", "b", "c"], 4)
    fold = assign_folds(3, IDS, STRATA, groups=groups)
    assert fold[::4].tolist() == fold[3::4].tolist()
    assert sorted(fold[::4]) == [0, 1, 2]


def test_as_many_runs_of_one_outcome_as_folds_are_enough():
    fold = assign_folds(8, IDS, STRATA)
    assert fold[np.equal(STRATA, 0)].tolist() == list(range(8))
    assert fold[np.equal(STRATA, 1)].tolist() == list(range(4))
    with pytest.raises(ValueError, match="cv = 9 is more than"):
        assign_folds(9, IDS, STRATA)
    assert assign_folds(8, IDS, 1 - STRATA)[np.equal(STRATA, 0)].tolist() == list(range(8))


def test_runs_alternate_by_outcome_and_whether_they_count():
    ids = np.array(["h", "g", "f", "e", "d", "c", "b", "a"])
    counts = np.array([1, 1, 1, 0, 1, 1, 0, 1], dtype=bool)
    fold = assign_folds(2, ids, [1, 0, 1, 1, 0, 1, 0, 0], counts=counts)
    # successes that count: c, f, h; failures: a, d, g; each other one is the first of its kind
    assert fold.tolist() == [0, 0, 1, 0, 1, 0, 0, 0]


def test_groups_that_do_not_count_take_their_fold_by_number():
    fold = assign_folds(2, IDS, STRATA, counts=np.arange(N) < 6, groups=GROUPS)
    assert fold[6:].tolist() == [1, 1, 0, 0, 1, 1]
    assert set(fold[:6]) == {0, 1}


def test_of_no_runs_none_is_held_out():
    assert list(out_of_fold(np.array([], dtype=int), len)) == []
    assert [rows.tolist() for rows, _ in out_of_fold(np.array([0, 2]), sum)] == [[0], [], [1]]


@pytest.mark.parametrize(
    "split",
    [np.array(0.5), iter([[0], [1]]), ([0], [1], [2]), ([0],), 3, "a"],
    ids=["number", "iterator", "three", "one", "count", "text"],
)
def test_a_split_is_a_pair(split):
    pair = ([1, 2], [0])
    with pytest.raises(ValueError, match="split 1 of cv must be a pair of training and test rows"):
        assign_folds([pair, split], np.arange(3), [1, 0, 1])


def test_no_rows_of_any_kind_are_none():
    for none in ([], np.array([], dtype=str), np.array([], dtype=object)):
        assert held_out_rows(np.arange(3), 3, none, 0.5, 0).tolist() == []


def test_runs_of_which_one_is_held_out_twice():
    with pytest.raises(ValueError, match="cv must put each run into one test fold only"):
        assign_folds([([2], [0, 1]), ([0], [1, 2])], np.arange(3), [1, 0, 1])


def test_a_splitter_that_is_iterable_sees_the_runs_in_the_order_of_their_ids():
    class Splitter(KFold):
        def __iter__(self):
            raise AssertionError

    assert assign_folds(Splitter(3), np.array([5, 3, 4]), [1, 0, 1]).tolist() == [2, 0, 1]
    assert assign_folds(KFold(3), np.array([5, 3, 4]), [1, 0, 1]).tolist() == [2, 0, 1]
