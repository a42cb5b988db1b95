"""What is known of a run at each of its steps, by hand."""

import numpy as np
import pytest

from trajscore import TrajectoryArray
from trajscore.censoring._features import cell_features, prefix_features

X = TrajectoryArray.from_list([[0.2, 0.4, 0.9], [0.5]])


def test_step_latest_value_mean_so_far_and_first_value():
    np.testing.assert_allclose(
        prefix_features(X),
        [[1, 0.2, 0.2, 0.2], [2, 0.4, 0.3, 0.2], [3, 0.9, 0.5, 0.2], [1, 0.5, 0.5, 0.5]],
    )
    two = X.with_cells(np.column_stack([X.cells, 10 * X.cells]), channels=("a", "b"))
    expected = [[2, 0.4, 0.3, 0.2, 4, 3, 2], [3, 0.9, 0.5, 0.2, 9, 5, 2]]
    np.testing.assert_allclose(prefix_features(two)[1:3], expected)


def test_a_function_of_ones_own():
    np.testing.assert_array_equal(cell_features(X, None), prefix_features(X))
    assert cell_features(X, lambda runs: runs.cells.tolist()).shape == (4, 1)
    assert cell_features(X, lambda runs: np.ones((4, 3), dtype=int)).dtype == np.float64


@pytest.mark.parametrize(
    ("features", "problem"),
    [
        ("prefix", "features must be a function of the runs, got 'prefix'"),
        (
            lambda runs: np.ones(3),
            "features must give 4 rows, one for each step .*, got 3",
        ),
        (lambda runs: [[0, 1], [0, np.inf], [0, 1], [0, 1]], "row 0.*step 2: a feature is not a"),
        (lambda runs: [0, 1, 2, np.nan], "row 1.*step 1: a feature is not a finite number"),
    ],
)
def test_features_that_cannot_be_used(features, problem):
    with pytest.raises(ValueError, match=problem):
        cell_features(X, features)
