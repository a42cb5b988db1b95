"""Derivatives of rank statistics, and of what is fitted, held against differences."""

import numpy as np
import pytest

from trajscore import TrajectoryArray, metrics
from trajscore.core import ranking
from trajscore.core.run_sums import RunSums, run_sums
from trajscore.core.statistics import MeanOfRuns
from trajscore.core.weighted_steps import weighted_steps
from trajscore.core.weights import as_step_weights
from trajscore.metrics._decomposition import recalibrated_sums


@pytest.mark.parametrize("name", ["auroc", "auprc", "aurc"])
@pytest.mark.parametrize("empty", [False, True])
def test_derivatives(name, empty, rng):
    function = getattr(ranking, name)
    failures, successes = rng.integers(0, 4, (2, 20)) + rng.random((2, 20))
    if empty:  # groups of one outcome only
        failures[::3], successes[1::3] = 0.0, 0.0
    step = 1e-6 * np.eye(20)
    in_failures, in_successes = getattr(ranking, f"{name}_gradient")(failures, successes)
    sides = (
        (in_failures, lambda h: function(failures + h, successes)),
        (in_successes, lambda h: function(failures, successes + h)),
    )
    for derivative, moved in sides:
        difference = [(moved(h) - moved(-h)) / 2e-6 for h in step]
        np.testing.assert_allclose(derivative, difference, atol=1e-7)


@pytest.mark.parametrize("score", ["log", "brier"])
@pytest.mark.parametrize("how", [{}, {"weights": "linear_front", "horizon": "own"}], ids=str)
def test_parts_that_are_fitted_change_as_if_the_fit_stood_still(score, how, rng):
    # the best monotone recalibration, and the best constant, gain nothing by moving
    lengths = rng.integers(1, 6, 25)
    X = TrajectoryArray(rng.integers(1, 8, lengths.sum()) / 8, lengths)
    y = rng.random(25) < 1 / lengths + 0.2
    weights = as_step_weights(**how)
    constant = X.with_cells(np.full(len(X.cells), weights.of(X).rate(y)))
    sums = {
        name: run_sums(y, one, score, weights) for name, one in (("raw", X), ("flat", constant))
    }
    best = recalibrated_sums(weighted_steps(y.astype(float), X, weights), score)
    nothing = RunSums(np.zeros(25), best.divisor)
    parts = {
        "miscalibration": best - sums["raw"],
        "discrimination": best - sums["flat"],
        "uncertainty": nothing - sums["flat"],
    }
    step = 1e-5 * np.eye(25)
    for name, part in parts.items():
        above, below = (
            [
                getattr(metrics.tps_decomposition(y, X, score=score, sample_weight=w, **how), name)
                for w in 1 + sign * step
            ]
            for sign in (1, -1)
        )
        numeric = 25 * (np.array(above) - below) / 2e-5
        of_ratio = MeanOfRuns(part.total, divisor=part.divisor)
        np.testing.assert_allclose(of_ratio.influence(25), numeric, atol=1e-6)
        samples = part.samples()
        np.testing.assert_allclose(samples - samples.mean(), numeric, atol=1e-6)
        np.testing.assert_allclose(of_ratio.pseudo_values(), samples, atol=1e-14)
