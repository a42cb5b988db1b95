"""Bins of lengths, success by length, and steps at which forecasts are judged."""

import numpy as np
import pandas as pd
import pytest

from trajscore import TrajectoryArray
from trajscore.core.equal_length import (
    FEWEST,
    at_step,
    has_both,
    length_bins,
    round_steps,
    runs_with_a_partner,
    span,
    success_by_length,
)


def test_bins_of_lengths():
    lengths = np.arange(1, 30)
    ends = np.flatnonzero(np.diff(length_bins(lengths))) + 1
    assert ends.tolist() == [*range(1, 10), 11, 13, 15, 17, 19, 22, 25, 28]
    assert length_bins(np.array([1, 5])).tolist() == [1, 5]
    assert length_bins(np.array([], dtype=int)).tolist() == []


def test_success_of_each_length():
    lengths, y = np.array([3, 1, 3, 7, 7]), np.array([1, 0, -1, 1, 0])
    expected = pd.DataFrame(
        {
            "low": [1, 3, 7],
            "high": [1, 3, 7],
            "n_runs": [1, 2, 2],
            "n_observed": [1, 1, 2],
            "success_rate": [0.0, 1.0, 0.5],
        }
    )
    pd.testing.assert_frame_equal(success_by_length(lengths, y, 3), expected)
    few = success_by_length(lengths, y, 2)
    assert few[["low", "high", "n_runs"]].to_numpy().tolist() == [[1, 1, 1], [3, 7, 4]]
    assert few["success_rate"].tolist() == [0, 2 / 3]


def test_lengths_without_an_outcome():
    table = success_by_length(np.array([1, 2]), np.array([-1, 1]), 5)
    assert table["success_rate"].isna().tolist() == [True, False]


def test_quantiles_of_many_lengths():
    table = success_by_length(np.arange(1, 13), np.ones(12), 4)
    assert table[["low", "high"]].to_numpy().tolist() == [[1, 2], [3, 5], [6, 8], [9, 12]]


@pytest.mark.parametrize(("low", "high", "text"), [(3, 3, "3"), (3, 4, "3-4"), (10, 200, "10-200")])
def test_span(low, high, text):
    assert span(low, high) == text


@pytest.mark.parametrize(
    ("longest", "steps"),
    [
        (0, []),
        (7, [1, 2, 3, 4, 6]),
        (8, [1, 2, 3, 4, 6, 8]),
        (15, [1, 2, 3, 4, 6, 8, 10, 15]),
        (99, [1, 2, 3, 4, 6, 8, 10, 15, 20, 30, 50]),
        (100, [1, 2, 3, 4, 6, 8, 10, 15, 20, 30, 50, 100]),
        (1000, [1, 2, 3, 4, 6, 8, 10, 15, 20, 30, 50, 100, 150, 200, 300, 500, 1000]),
    ],
)
def test_round_steps(longest, steps):
    assert round_steps(longest) == steps


def test_enough_runs_of_each_outcome():
    assert FEWEST == 10
    for n_failures, n_successes, enough in ((10, 10, True), (9, 30, False), (30, 9, False)):
        assert has_both(np.repeat([0.0, 1.0], [n_failures, n_successes])) is enough


def test_values_at_a_step():
    X = TrajectoryArray([0.1, 0.2, 0.3, 0.4, np.nan, 0.6], [2, 1, 3], missing="allow")
    for t, rows, values in (
        (1, [0, 1, 2], [0.1, 0.3, 0.4]),
        (2, [0], [0.2]),
        (3, [2], [0.6]),
        (4, [], []),
    ):
        found_rows, found = at_step(X, t)
        assert (found_rows.tolist(), found.tolist()) == (rows, values)


def test_runs_with_a_partner():
    success = np.array([1.0, 1, 0, 0, 1, 0])
    assert runs_with_a_partner(success, np.array([1, 1, 1, 2, 3, 3])).tolist() == [0, 1, 2, 4, 5]
    assert runs_with_a_partner(success, np.arange(6)).tolist() == []
