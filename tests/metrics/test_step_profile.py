"""Scores at each step, by hand."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

from trajscore.metrics import step_profile
from trajscore.metrics._step_profile import mean_by_step

NAN = float("nan")
F = [[0.9, 0.8, 0.7], [0.4, 0.2, NAN], [0.5, 0.6, NAN], [0.3, NAN, NAN]]
Y = [1, 0, -1, 0]


def test_all_columns():
    table = step_profile(Y, F, score="brier", q_z=0.25)
    assert table.index.tolist() == [1, 2, 3]
    assert table.index.name == "step"
    first = -np.array([0.1**2, 0.4**2, 0.25 * 0.5**2 + 0.75 * 0.5**2, 0.3**2])
    second = -np.array([0.2**2, 0.2**2, 0.25 * 0.4**2 + 0.75 * 0.6**2])
    expected = pd.DataFrame(
        {
            "n_runs": [4, 3, 1],
            "score": [first.mean(), second.mean(), -0.09],
            "std_error": [first.std(ddof=1) / 2, second.std(ddof=1) / np.sqrt(3), NAN],
            "forecast": [2.1 / 4, 1.6 / 3, 0.7],
            "success_rate": [1.25 / 4, 1.25 / 3, 1],
            "n_observed": [3, 2, 1],
            "score_observed": [first[[0, 1, 3]].mean(), -0.04, -0.09],
            "std_error_observed": [first[[0, 1, 3]].std(ddof=1) / np.sqrt(3), 0, NAN],
        },
        index=table.index,
    )
    pd.testing.assert_frame_equal(table, expected)


def test_a_weight_says_how_often_a_run_counts():
    table = step_profile(Y, F, sample_weight=[2, 1, 3, 1])
    rows = [0, 0, 1, 2, 2, 2, 3]
    twice = step_profile(np.take(Y, rows), np.take(F, rows, axis=0))
    pd.testing.assert_frame_equal(table, twice)
    assert table["n_runs"].dtype == np.int64
    halves = step_profile(Y, F, sample_weight=[0.5, 1, 1, 1])
    assert halves["n_runs"].tolist() == [3.5, 2.5, 0.5]
    assert halves["n_observed"].tolist() == [2.5, 1.5, 0.5]
    assert step_profile(Y, F, sample_weight=[0, 1, 1, 1]).index.tolist() == [1, 2]
    whole = step_profile(Y, F, sample_weight=[1, 1, 0.5, 1])
    assert whole["n_observed"].tolist() == [3, 2, 1]
    assert whole["n_runs"].tolist() == [3.5, 2.5, 1]


def test_steps_that_no_observed_run_reaches():
    table = step_profile([-1, 1], [[0.2, 0.4], [0.9, NAN]])
    assert table["n_observed"].tolist() == [1, 0]
    assert table["score_observed"].isna().tolist() == [False, True]


@pytest.mark.parametrize(("weight", "error"), [(1.0, NAN), (1.5, np.sqrt(0.375 * 4 / 0.5 / 1.5))])
def test_mean_by_step(weight, error):
    w = np.array([weight / 2, weight / 2, 0.0])
    total, mean, found = mean_by_step(np.array([0, 0, 1]), w, np.array([1.0, 3.0, 5.0]))
    assert total.tolist() == [weight, 0]
    assert_allclose(mean, [2, NAN])
    expected = np.sqrt(weight / (weight - 1) / weight) if weight > 1 else NAN
    assert_allclose(found, [expected, NAN])


def test_unobserved_runs_are_failures_where_nothing_else_is_said():
    found = step_profile(Y, F, score="brier")
    pd.testing.assert_frame_equal(found, step_profile(Y, F, score="brier", q_z=0.0))
    assert found["success_rate"].tolist() == pytest.approx([1 / 4, 1 / 3, 1])
