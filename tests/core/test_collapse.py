"""One number a run, by hand."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from trajscore import TrajectoryArray
from trajscore.core.collapse import aggregate, collapse, weighted_mean
from trajscore.core.weights import as_step_weights

X = TrajectoryArray([0.9, 0.6, 0.3, 0.4, 0.1, 0.7], [3, 1, 2], ids=["a", "b", "c"])


@pytest.mark.parametrize(
    ("phi", "numbers"),
    [
        ("last", [0.3, 0.4, 0.7]),
        ("min", [0.3, 0.4, 0.1]),
        ("mean", [0.6, 0.4, 0.4]),
        ("weighted", [(4 * 0.9 + 2 * 0.6 + 0.3) / 7, 0.4, (4 * 0.1 + 2 * 0.7) / 6]),
    ],
)
def test_aggregators(phi, numbers):
    def halved(t):
        return 0.5**t

    assert_allclose(aggregate(X, phi, weights=halved), numbers)


def test_the_weighted_mean_is_the_default_and_early_steps_count_more():
    assert_allclose(aggregate(X), aggregate(X, "weighted", weights="early"))
    assert aggregate([[0.9, 0.1]])[0] > 0.5
    assert_allclose(aggregate(X, "mean"), aggregate(X, weights="uniform"))


def test_no_runs():
    empty = TrajectoryArray([], [])
    for phi in ("last", "mean", "min", "weighted"):
        assert collapse(empty, phi, as_step_weights()).tolist() == []


def test_means_stay_within_the_values():
    constant = TrajectoryArray([0.1] * 3 + [0.7] * 6, [3, 6])
    assert weighted_mean(constant, np.full(9, 0.1)).tolist() == [0.1, 0.7]
    # the rounded mean of three times 0.1 is above it
    low = TrajectoryArray([0.1, 0.1, np.nextafter(0.1, 0)], [3])
    assert weighted_mean(low, np.ones(3))[0] <= 0.1


def test_steps_that_weigh_nothing():
    words = r"run 'b' \(row 1\): its steps weigh nothing, so they have no weighted mean"
    with pytest.raises(ValueError, match=words):
        weighted_mean(X, np.array([0.0, 0, 1, 0, 0, 0]))


def test_unknown_aggregators():
    with pytest.raises(ValueError, match="phi must be 'last', 'mean', 'min' or 'weighted', got"):
        aggregate(X, "max")
