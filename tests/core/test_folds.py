"""Which runs are held out together."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.model_selection import GroupKFold, KFold, PredefinedSplit, ShuffleSplit

from refused import must_refuse
from trajscore import PlattCrossFitCalibrator, TrajectoryArray
from trajscore.calibration import cross_fit_traces
from trajscore.censoring import StopHazard

N = 12
IDS = np.array([f"r{k:02d}" for k in range(N)])
STRATA = np.tile([1, 0, 0], 4)
GROUPS = np.repeat(["a", "b", "c", "d", "e", "f"], 2)


class AsGiven(TransformerMixin, BaseEstimator):
    """Forecasts what it is given."""

    def fit(self, X, y, sample_weight=None):
        return self

    def transform(self, X):
        return X


def folds(cv, ids, outcomes, *, forecaster=None, counts=None, groups=None):
    weight = None if counts is None else np.where(counts, 1.0, 0.0)
    how = {"cv": cv, "sample_weight": weight, "groups": groups}
    X = TrajectoryArray.from_padded(np.full((len(ids), 1), 0.5), ids=ids)
    traces = cross_fit_traces(forecaster or AsGiven(), X, outcomes, **how)
    return traces.meta["cross_fit_fold"].to_numpy()


@settings(max_examples=25)
@given(
    st.permutations(range(N)).map(np.array),
    st.sampled_from([(2, None), (4, None), (3, GROUPS), (KFold(3), None), (GroupKFold(3), GROUPS)]),
)
def test_folds_do_not_depend_on_the_order_of_rows(order, case):
    cv, groups = case
    fold = folds(cv, IDS, STRATA, groups=groups)
    groups_there = None if groups is None else groups[order]
    shuffled = folds(cv, IDS[order], STRATA[order], groups=groups_there)
    assert shuffled.tolist() == fold[order].tolist()
    assert sorted(set(fold)) == list(range(fold.max() + 1))
    if groups is not None:
        assert (fold[::2] == fold[1::2]).all()


def test_a_number_alternates_within_each_stratum():
    for cv in (2, 3, 8):
        fold = folds(cv, IDS, STRATA)
        for label, n in ((0, 8), (1, 4)):
            assert fold[np.equal(STRATA, label)].tolist() == [k % cv for k in range(n)]
    ids = np.array(["h", "g", "f", "e", "d", "c", "b", "a"])
    counts = np.array([1, 1, 1, 0, 1, 1, 0, 1], dtype=bool)
    fold = folds(2, ids, [1, 0, 1, 1, 0, 1, 0, 0], counts=counts)
    # successes that count: c, f, h; failures: a, d, g; each other one is the first of its kind
    assert fold.tolist() == [0, 0, 1, 0, 1, 0, 0, 0]
    twice = folds(3, np.repeat(IDS, 2), np.repeat(STRATA, 2))  # one run, given twice
    assert twice.tolist() == np.repeat(folds(3, IDS, STRATA), 2).tolist()


def test_calibrators_and_hazards_have_the_same_folds():
    for groups in (None, GROUPS):
        fold = folds(3, IDS, STRATA, groups=groups).tolist()
        calibrator = PlattCrossFitCalibrator()
        assert folds(3, IDS, STRATA, groups=groups, forecaster=calibrator).tolist() == fold
    X = TrajectoryArray(np.arange(20.0), 2 - STRATA, ids=IDS)
    hazard = StopHazard(cv=3).fit(X, STRATA == 1)
    assert hazard.fold_.tolist() == folds(3, IDS, STRATA).tolist()


@pytest.mark.parametrize("groups", [None, GROUPS])
def test_runs_that_do_not_count_do_not_change_the_others(groups):
    counts = np.arange(N) % 4 != 1
    fold = folds(2, IDS, STRATA, counts=counts, groups=groups)
    some = None if groups is None else groups[counts]
    alone = folds(2, IDS[counts], STRATA[counts], groups=some)
    assert fold[counts].tolist() == alone.tolist()
    assert set(fold[~counts]) <= {0, 1}


def test_groups_are_balanced_and_those_that_do_not_count_take_their_fold_by_number():
    fold = folds(2, IDS, STRATA, counts=np.arange(N) < 6, groups=GROUPS)
    assert fold[6:].tolist() == [1, 1, 0, 0, 1, 1]
    assert set(fold[:6]) == {0, 1}
    thirds = folds(3, IDS, STRATA, groups=np.repeat(["a", "b", "c"], 4))
    assert sorted(thirds[::4]) == [0, 1, 2]
    # whole groups of successes and of failures: one of each in either fold
    pure = folds(2, IDS, np.repeat([1, 0], 6), groups=np.repeat(list("abcd"), 3))
    assert sorted(pure[:6:3]) == sorted(pure[6::3]) == [0, 1]
    # a run given twice counts once for the balance
    twice = folds(3, np.repeat(IDS, 2), np.repeat(STRATA, 2), groups=np.repeat(GROUPS, 2))
    assert twice.tolist() == np.repeat(folds(3, IDS, STRATA, groups=GROUPS), 2).tolist()


def test_splits_mean_the_rows_as_given_and_splitters_the_order_of_ids():
    test_fold = np.arange(N)[::-1] % 3
    splits = [(np.flatnonzero(test_fold != k), np.flatnonzero(test_fold == k)) for k in range(3)]
    for cv in (splits, iter(splits), PredefinedSplit(test_fold)):
        assert folds(cv, IDS[::-1], STRATA).tolist() == test_fold.tolist()

    class Splitter(KFold):
        def __iter__(self):
            raise AssertionError

    for cv in (KFold(3), Splitter(3)):
        assert folds(cv, np.array([5, 3, 4]), [1, 0, 1]).tolist() == [2, 0, 1]


PAIR = ([1, 2], [0])
THREE = {"ids": np.arange(3), "outcomes": [1, 0, 1]}
BAD = [
    (None, {}, "cv .*None"),
    (1, {}, "cv .*at least 2, .*got 1"),
    (9, {}, r"cv = 9 .*successes \(4\).*failures \(8\)"),
    (3, {"groups": np.repeat(["a", "b"], 6)}, "2 groups .*3 folds"),
    (2, {"groups": GROUPS > "b", "counts": np.arange(N) < 4}, "1 groups .*2 folds"),
    (3, {"ids": np.zeros(N, dtype=int)}, "cv = 3 .*different ids"),
    (2, {"ids": IDS[:2], "outcomes": [1, 0]}, "n_samples = 2"),
    (ShuffleSplit(2, random_state=0), {}, "cv must put"),
    ([([0], [1])], {}, "split 0 .*row 2 in neither"),
    ([(range(N), [1])], {}, "split 0 .*row 1 in both"),
    ([([0], [99])], {}, "split 0 .*12 runs.* 0 to 11"),
    ([[0.5]], {}, "split 0 .*pair"),
    ([([2], [0, 1]), ([0], [1, 2])], THREE, "one test fold"),
    ([PAIR, PAIR], THREE, "one test fold"),
    ([PAIR], THREE, "every run"),
    *(([PAIR, split], THREE, "split 1 .*pair")
      for split in (np.array(0.5), iter([[0], [1]]), ([0], [1], [2]), ([0],), 3, "a")),
]  # fmt: skip


def test_what_cannot_be_folds():
    must_refuse(lambda cv, others: folds(cv, **{"ids": IDS, "outcomes": STRATA, **others}), BAD)
