import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trajscore.metrics import selection_gain

TASKS = ["a", "a", "a", "b", "b", "c"]


def test_by_hand():
    table = selection_gain([1, 0, 0, 0, 1, 1], [0.2, 0.9, 0.9, -1, 3, 0], TASKS)
    assert table.index.tolist() == ["a", "b", "c"]
    assert table.columns.tolist() == ["n_trials", "any", "chosen", "best", "gain"]
    assert table["n_trials"].tolist() == [3, 2, 1]
    np.testing.assert_allclose(table["any"], [1 / 3, 1 / 2, 1])
    assert table["chosen"].tolist() == [0, 1, 1]
    assert table["best"].tolist() == [1, 1, 1]
    np.testing.assert_allclose(table["gain"], [-1 / 3, 1 / 2, 0])


def test_those_that_share_the_highest_score_are_chosen_alike():
    table = selection_gain([1, 0, 0.5, 0], [2, 2, 2, 1], [7, 7, 7, 7])
    assert table.loc[7, ["any", "chosen", "best"]].tolist() == [0.375, 0.5, 1]


@given(
    st.lists(st.tuples(st.sampled_from([0, 0.5, 1]), st.integers(0, 3), st.integers(0, 4)))
    .filter(lambda runs: len(runs) > len({task for *_, task in runs})),
    st.randoms(),
)  # fmt: skip
def test_bounds_and_order(runs, random):
    y, scores, tasks = (np.array(column, dtype=float) for column in zip(*runs, strict=True))
    table = selection_gain(y, scores, tasks)
    assert (table["chosen"] <= table["best"]).all()
    same = selection_gain(y, np.ones(len(y)), tasks)  # a constant chooses any trial
    np.testing.assert_allclose(same["gain"], 0, atol=1e-15)
    by_truth = selection_gain(y, y, tasks)
    assert (by_truth["chosen"] == by_truth["best"]).all()
    order = np.arange(len(y))
    random.shuffle(order)
    shuffled = selection_gain(y[order], scores[order], tasks[order])
    pd.testing.assert_frame_equal(shuffled, table)


@pytest.mark.parametrize(
    ("y", "scores", "groups", "message"),
    [
        ([1, -1], [1, 2], [0, 0], "run 1: the outcome is not observed; leave its task out"),
        ([1, 0], [1, np.nan], [0, 0], "run 1: the score is missing"),
        ([1, 0], [1, 2], [0, 1], "no task has two trials"),
        ([1, 0], [[1, 2]], [0, 1], "scores must be a number for each run"),
        ([1, 0], [1, 2], [0], "groups must be 2 labels"),
    ],
)
def test_what_cannot_be_used(y, scores, groups, message):
    with pytest.raises(ValueError, match=message):
        selection_gain(y, scores, groups)
