"""Scores at each step, by hand."""

import numpy as np
import pandas as pd
import pytest

from trajscore.metrics import step_profile

NAN = float("nan")
F = [[0.9, 0.8, 0.7], [0.4, 0.2, NAN], [0.5, 0.6, NAN], [0.3, NAN, NAN]]
Y = [1, 0, -1, 0]


def test_all_columns():
    table = step_profile(Y, F, score="brier", q_z=0.25)
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
        index=pd.RangeIndex(1, 4, name="step"),
    )
    pd.testing.assert_frame_equal(table, expected)


def test_a_weight_says_how_often_a_run_counts():
    table = step_profile(Y, F, sample_weight=[2, 1, 3, 1])
    rows = [0, 0, 1, 2, 2, 2, 3]
    twice = step_profile(np.take(Y, rows), np.take(F, rows, axis=0))
    pd.testing.assert_frame_equal(table, twice)
    halves = step_profile(Y, F, sample_weight=[0.5, 1, 1, 1])
    assert halves["n_runs"].tolist() == [3.5, 2.5, 0.5]
    assert halves["n_observed"].tolist() == [2.5, 1.5, 0.5]
    assert step_profile(Y, F, sample_weight=[0, 1, 1, 1]).index.tolist() == [1, 2]


def test_standard_errors_need_a_weight_above_one():
    scores = [-0.25, -0.81]
    for weight, error in ((1.0, NAN), (1.5, np.sqrt(1.5 * 0.28**2 / 0.5 / 1.5)), (2.0, 0.28)):
        table = step_profile(
            [1, 0], [[0.5], [0.9]], score="brier", sample_weight=[weight / 2, weight / 2]
        )
        assert table.loc[1, "score"] == pytest.approx(np.mean(scores))
        assert table.loc[1, "std_error"] == pytest.approx(error, nan_ok=True)


def test_unobserved_runs_are_failures_where_nothing_else_is_said():
    found = step_profile(Y, F, score="brier")
    pd.testing.assert_frame_equal(found, step_profile(Y, F, score="brier", q_z=0.0))
    assert found["success_rate"].tolist() == pytest.approx([1 / 4, 1 / 3, 1])
