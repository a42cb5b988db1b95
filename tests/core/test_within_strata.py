"""AUROC over pairs of one stratum, against slow ways to compute it."""

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from trajscore.core.equal_length import length_bins, round_steps, runs_with_a_partner
from trajscore.core.within_strata import AurocWithin

N_RUNS = 40


@pytest.fixture
def runs(rng):
    success, stratum = rng.integers(0, 5, N_RUNS) / 4, np.repeat([7, 2, 9], [20, 15, 5])
    success[stratum == 9] = 1.0  # without a pair
    return rng.integers(0, 6, N_RUNS) + 10.0 * stratum, success, stratum


def slowly(confidence, success, stratum, counts):
    right = pairs = 0.0
    for a in range(N_RUNS):
        for b in np.flatnonzero(stratum == stratum[a]):
            weight = counts[a] * success[a] * counts[b] * (1 - success[b])
            above = (confidence[a] > confidence[b]) + (confidence[a] == confidence[b]) / 2
            right, pairs = right + weight * above, pairs + weight
    return right / pairs


def test_pairs_of_one_stratum(rng, runs):
    counts = rng.integers(0, 3, (2, N_RUNS)).astype(float)
    found = AurocWithin.of(*runs)(counts)
    assert found == pytest.approx([slowly(*runs, row) for row in counts])
    assert np.isnan(AurocWithin.of(*runs)(np.zeros(N_RUNS)))


def test_one_stratum_is_auroc(rng):
    y, confidence = rng.integers(0, 2, N_RUNS), rng.integers(0, 9, N_RUNS)
    one = AurocWithin.of(confidence.astype(float), y.astype(float), np.zeros(N_RUNS, dtype=int))
    assert one(np.ones(N_RUNS)) == pytest.approx(roc_auc_score(y, confidence))


def test_what_tells_strata_apart_tells_nothing(rng):
    stratum, y = np.arange(N_RUNS) % 4, rng.integers(0, 2, N_RUNS).astype(float)
    one = AurocWithin.of(stratum.astype(float), y, stratum)
    assert one(np.ones(N_RUNS)) == 0.5
    assert not one.influence(N_RUNS).any()


def test_influence_is_the_derivative(runs):
    one = AurocWithin.of(*runs)
    step = 1e-6 * np.eye(N_RUNS)
    numeric = N_RUNS * (one(1 + step) - one(1 - step)) / 2e-6
    np.testing.assert_allclose(one.influence(N_RUNS), numeric, atol=1e-6)


def test_lengths_of_one_bin_differ_by_a_tenth_at_most():
    lengths = np.arange(1, 2000)
    bins = length_bins(lengths)
    assert (np.diff(bins) >= 0).all()
    assert len(np.unique(bins[:10])) == 10
    for one in np.unique(bins):
        assert lengths[bins == one].max() <= 1.1 * lengths[bins == one].min()


def test_steps_and_partners():
    assert round_steps(300) == [1, 2, 3, 4, 6, 8, 10, 15, 20, 30, 50, 100, 150, 200, 300]
    assert round_steps(1) == [1]
    assert round_steps(10) == [1, 2, 3, 4, 6, 8, 10]
    partners = runs_with_a_partner(np.array([1, 0.5, 0, 0, 1]), np.array([3, 1, 3, 2, 2]))
    assert partners.tolist() == [0, 1, 2, 3, 4]
    assert runs_with_a_partner(np.array([1.0, 1, 0]), np.array([1, 1, 2])).tolist() == []
