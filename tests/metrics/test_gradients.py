"""Derivatives of rank statistics, and of what is fitted, held against differences."""

import numpy as np
import pytest

from trajscore import TrajectoryArray, metrics
from trajscore.metrics import _gradients, _ranking
from trajscore.metrics._decomposition import recalibrated_scores
from trajscore.metrics._statistics import MeanOfRuns
from trajscore.metrics._weighted_steps import weighted_steps


@pytest.mark.parametrize("name", ["auroc", "auprc", "aurc"])
@pytest.mark.parametrize("empty", [False, True])
def test_derivatives(name, empty, rng):
    function = getattr(_ranking, name)
    failures, successes = rng.integers(0, 4, (2, 20)) + rng.random((2, 20))
    if empty:  # groups of one outcome only
        failures[::3], successes[1::3] = 0.0, 0.0
    step = 1e-6 * np.eye(20)
    in_failures, in_successes = getattr(_gradients, name)(failures, successes)
    sides = (
        (in_failures, lambda h: function(failures + h, successes)),
        (in_successes, lambda h: function(failures, successes + h)),
    )
    for derivative, moved in sides:
        difference = [(moved(h) - moved(-h)) / 2e-6 for h in step]
        np.testing.assert_allclose(derivative, difference, atol=1e-7)


@pytest.mark.parametrize("score", ["log", "brier"])
def test_parts_that_are_fitted_change_as_if_the_fit_stood_still(score, rng):
    # the best monotone recalibration, and the best constant, gain nothing by moving
    X = TrajectoryArray.from_padded(rng.integers(1, 8, (25, 3)) / 8)
    y = (rng.random(25) < X.padded().mean(axis=1)).astype(int)
    constant = X.with_cells(np.full(len(X.cells), y.mean()))
    best = recalibrated_scores(weighted_steps(y, X), score)
    parts = {
        "miscalibration": best - metrics.tps_samples(y, X, score=score),
        "uncertainty": -metrics.tps_samples(y, constant, score=score),
    }
    step = 1e-5 * np.eye(25)
    for name, samples in parts.items():
        above, below = (
            [
                getattr(metrics.tps_decomposition(y, X, score=score, sample_weight=w), name)
                for w in 1 + sign * step
            ]
            for sign in (1, -1)
        )
        numeric = 25 * (np.array(above) - below) / 2e-5
        np.testing.assert_allclose(MeanOfRuns(samples).influence(25), numeric, atol=1e-6)
