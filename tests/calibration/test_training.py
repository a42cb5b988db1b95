"""What maps are fitted on: weights of successes and failures at each value, fold by fold."""

import numpy as np
import pytest

from trajscore import PlattCrossFitCalibrator, TrajectoryArray
from trajscore.calibration.training import TrainingSteps
from trajscore.core.weights import as_step_weights

X = TrajectoryArray([0.4, 0.2, 0.9, 0.2, 0.4, 0.4, 0.05, 0.6], [3, 1, 2, 1, 1])
LABELS = np.array([1.0, 0.0, 0.25, 1.0, 0.0])
RUN_WEIGHT = np.array([1.0, 2.0, 1.0, 0.0, 3.0])
FOLD = np.array([0, 0, 1, 1, 1])


def steps(labels=LABELS, weights="uniform"):
    return TrainingSteps(X, labels, RUN_WEIGHT, as_step_weights(weights, None), FOLD)


def test_all_folds():
    sample = steps().of(np.ones(5, dtype=bool))
    np.testing.assert_array_equal(sample.values, [0.2, 0.4, 0.6, 0.9])
    scale = 7 / 10  # weights of runs, and of steps times those of runs
    np.testing.assert_allclose(sample.success, np.array([1, 1.5, 0, 1]) * scale)
    np.testing.assert_allclose(sample.failure, np.array([2, 1.5, 3, 0]) * scale)
    assert sample.n_runs == 4
    assert sample.base_rate == pytest.approx(0.35)
    doubled = sample.scaled(2)
    np.testing.assert_allclose(doubled.success, 2 * sample.success)
    np.testing.assert_allclose(doubled.failure, 2 * sample.failure)
    np.testing.assert_array_equal(doubled.values, sample.values)


@pytest.mark.parametrize(
    ("fold", "values", "success", "failure", "scale", "n_runs"),
    [
        (0, [0.2, 0.4, 0.9], [1, 1, 1], [2, 0, 0], 3 / 5, 2),
        (1, [0.4, 0.6], [0.5, 0], [1.5, 3], 4 / 5, 2),
    ],
)
def test_one_fold(fold, values, success, failure, scale, n_runs):
    sample = steps().of(fold == FOLD)
    np.testing.assert_array_equal(sample.values, values)
    np.testing.assert_allclose(sample.success, np.array(success) * scale)
    np.testing.assert_allclose(sample.failure, np.array(failure) * scale)
    assert sample.n_runs == n_runs


def test_early_steps_count_more():
    sample = steps(weights=lambda step: 1 / step).of(FOLD == 0)
    scale = 3 / (1 + 1 / 2 + 1 / 3 + 2)
    np.testing.assert_allclose(sample.success, np.array([1 / 2, 1, 1 / 3]) * scale)
    np.testing.assert_allclose(sample.failure, np.array([2, 0, 0]) * scale)


@pytest.mark.parametrize(
    ("labels", "kind"), [([1, 1, 0, 0, 0], "successes"), ([0, 0, 1, 0, 0], "failures")]
)
@pytest.mark.parametrize("weights", ["uniform", lambda step: 0.01 / step])
def test_a_fold_of_one_class(labels, kind, weights):
    with pytest.raises(ValueError, match=f"all runs of a fold are {kind}; calibration needs"):
        steps(np.array(labels, dtype=float), weights).of(FOLD == 0)


def test_range_leaves_out_runs_of_weight_0():
    assert steps().range_of(X.cells) == (0.2, 0.9)


@pytest.mark.parametrize(("outcome", "words"), [(1, "succeeded"), (0, "failed")])
def test_runs_that_all_end_alike(outcome, words):
    X = TrajectoryArray(np.linspace(0.1, 0.9, 20), [2] * 10)
    with pytest.raises(ValueError, match=f"all runs {words}; calibration needs successes and"):
        PlattCrossFitCalibrator().fit(X, np.full(10, outcome))
