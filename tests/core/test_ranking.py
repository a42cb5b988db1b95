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


# ------------------------------------------------------------------ by hand


def test_groups_of_ties_by_hand():
    confidence, success = np.array([0.5, 0.2, 0.5, 0.9]), np.array([1.0, 0.0, 0.25, 1.0])
    groups = ranking.TieGroups(confidence, success)
    np.testing.assert_array_equal(groups.confidence, [0.2, 0.5, 0.9])
    np.testing.assert_array_equal(groups.starts, [0])
    failures, successes = groups.sums(np.array([[1.0, 1, 1, 1], [2, 0, 4, 1]]))
    np.testing.assert_allclose(failures, [[1, 0.75, 0], [0, 3, 0]])
    np.testing.assert_allclose(successes, [[0, 1.25, 1], [0, 3, 1]])
    back = groups.to_runs(np.array([1.0, 2, 3]), np.array([10.0, 20, 30]))
    np.testing.assert_allclose(back, [20, 1, 0.75 * 2 + 0.25 * 20, 30])


def test_strata_come_one_after_the_other():
    stratum = np.array([1, 0, 1, 0, 0])
    groups = ranking.TieGroups(np.array([0.5, 0.5, 0.1, 0.2, 0.5]), np.ones(5), stratum)
    np.testing.assert_array_equal(groups.confidence, [0.2, 0.5, 0.1, 0.5])
    np.testing.assert_array_equal(groups.starts, [0, 2])
    np.testing.assert_array_equal(groups.sums(np.ones(5))[1], [1, 2, 1, 1])


def test_statistics_by_hand():
    # ascending: two failures, a tie of both outcomes, two successes and a failure between
    failures, successes = np.array([2.0, 1, 0, 1, 0]), np.array([0.0, 1, 1, 0, 1])
    assert ranking.auroc(failures, successes) == pytest.approx((3 + 3 + 2.5 + 1) / 12)
    precision = (2 * 1 + 1 * 3 / 4 + 1 * 4 / 6) / 4
    assert ranking.auprc(failures, successes) == pytest.approx(precision)
    # of the k most confident, k from 1 to 7: of a tie each order counts as much as the other
    rates = [0, 1 / 2, 1 / 3, 1.5 / 4, 2 / 5, 3 / 6, 4 / 7]
    assert ranking.aurc(failures, successes) == pytest.approx(np.mean(rates))


@pytest.mark.parametrize("statistic", [ranking.auroc, ranking.auprc, ranking.aurc])
def test_many_weightings_at_once(statistic, rng):
    failures, successes = rng.random((2, 3, 6))
    each = [statistic(f, s) for f, s in zip(failures, successes, strict=True)]
    np.testing.assert_allclose(statistic(failures, successes), each, rtol=1e-12)


def test_one_outcome_has_no_ranking():
    none, some = np.zeros(3), np.ones(3)
    assert np.isnan(ranking.auroc(none, some))
    assert np.isnan(ranking.auroc(some, none))
    assert np.isnan(ranking.auprc(none, some))
    assert ranking.auprc(some, none) == ranking.aurc(some, none) == 1
    assert ranking.aurc(none, some) == 0
    assert np.isnan(ranking.aurc(none, none))


def test_harmonic_numbers():
    np.testing.assert_allclose(
        ranking.harmonic(np.array([0.0, 1, 2, 4, 0.5])),
        [0, 1, 3 / 2, 25 / 12, 2 - 2 * np.log(2)],
        rtol=1e-14,
    )
    edge = float(1 << 16)
    n = np.array([edge - 2, edge - 1, edge, edge + 1, 1e9])
    harmonic = ranking.harmonic(n)
    exact = np.cumsum(1 / np.arange(1, edge + 2))
    np.testing.assert_allclose(harmonic[:4], exact[-4:], rtol=1e-14)
    assert harmonic[4] == pytest.approx(np.log(1e9) + np.euler_gamma + 0.5e-9, rel=1e-14)
    halves = np.array([edge - 0.5, edge - 1.5])
    between = ranking.harmonic(halves)
    assert harmonic[0] < between[1] < harmonic[1] < between[0] < harmonic[2]


def test_slope_of_harmonic_numbers():
    n = np.array([0.0, 1, 2.5, 100, (1 << 16) - 1, 1 << 16, (1 << 16) + 0.5, 1e7])
    slope = ranking.harmonic_slope(n)
    assert slope[:2] == pytest.approx([np.pi**2 / 6, np.pi**2 / 6 - 1], rel=1e-14)
    h = 1e-3 * (n + 1)
    difference = (ranking.harmonic(n + h) - ranking.harmonic(np.maximum(n - h, 0))) / (
        n + h - np.maximum(n - h, 0)
    )
    np.testing.assert_allclose(slope[1:], difference[1:], rtol=1e-5)
    np.testing.assert_allclose(slope[4:] * n[4:], 1 - 0.5 / n[4:], rtol=1e-9)


def test_derivatives_of_light_runs_by_hand():
    failures, successes = np.array([0.25, 0.5]), np.array([0.25, 0.5])
    in_failures, in_successes = ranking.auprc_gradient(failures, successes)
    step = 1e-6 * np.eye(2)
    for found, moved in (
        (in_failures, lambda h: ranking.auprc(failures + h, successes)),
        (in_successes, lambda h: ranking.auprc(failures, successes + h)),
    ):
        np.testing.assert_allclose(found, [(moved(h) - moved(-h)) / 2e-6 for h in step], atol=1e-8)
    # of what is flagged up to a group it holds a half, then a third; precision is a half
    np.testing.assert_allclose(in_failures * 0.75, [1 / 4 + 1 / 6, 1 / 6])
    np.testing.assert_allclose(in_successes * 0.75, [-1 / 4 - 1 / 6, -1 / 6])
