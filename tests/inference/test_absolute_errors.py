"""Bounds of sums of absolute means, by hand for one bin and by simulation for several."""

import numpy as np
import pytest
from scipy.stats import norm

from trajscore.inference.absolute_errors import Parts, _reach, absolute_interval
from trajscore.inference.units import any_units


def test_how_far_the_estimate_lies_above_the_truth():
    errors = np.array([[0.1, -0.2, 0.3], [-0.1, 0.0, 0.4]])
    parts = Parts(np.array([0.5, -0.5, 0.0]), np.zeros((1, 3)))
    least, most = _reach(parts, errors)
    np.testing.assert_allclose(least, [0.1 + 0.2 + 0.3, -0.1 + 0.4])
    np.testing.assert_allclose(most, [0.6, 0.5])


def one_bin(mean, n=400, sign=1):
    """A mean with influences of a standard error of 0.01."""
    influence = np.resize([0.01, -0.01], n) * np.sqrt(n)
    return Parts(np.array([mean]), sign * influence[:, None])


def ends(ours, theirs=None, level=0.9, n=400):
    return absolute_interval(ours, theirs, any_units(None, n), level)


@pytest.mark.parametrize("mean", [0.3, -0.3])
def test_far_from_zero_the_upper_bound_is_that_of_a_normal_error(mean):
    low, high = ends(one_bin(mean))
    assert high == pytest.approx(0.3 + norm.ppf(0.95) * 0.01, rel=0.05)
    # the lower one allows for an estimate that is too large by the error itself, however far
    assert low == pytest.approx(0.3 - norm.ppf(0.975) * 0.01, rel=0.05)


def test_bounds_stay_within_their_range():
    assert ends(one_bin(0.005))[0] == 0
    assert ends(one_bin(0.995))[1] == 1


def test_an_estimate_of_zero_is_as_uncertain_as_one_beside_it():
    at, beside = ends(one_bin(0.0)), ends(one_bin(1e-6))
    assert at == pytest.approx(beside, abs=2e-6)
    assert at == pytest.approx(ends(one_bin(-1e-17)), rel=1e-12)
    assert at == pytest.approx((0, norm.ppf(0.95) * 0.01), rel=0.05)


def test_a_higher_level_is_wider():
    narrow, wide = ends(one_bin(0.3), level=0.8), ends(one_bin(0.3), level=0.99)
    assert wide[0] < narrow[0] < 0.3 < narrow[1] < wide[1]


def test_of_two_errors_that_move_together_the_difference_is_known_better():
    ours, same, opposite = one_bin(0.3), one_bin(0.1), one_bin(0.1, sign=-1)
    together, apart = ends(ours, same), ends(ours, opposite)
    for low, high in (together, apart):
        assert low < 0.2 < high
    assert apart[1] - apart[0] > together[1] - together[0] > 0
    # turned round, the bounds change places
    low, high = ends(same, ours)
    assert (-high, -low) == pytest.approx(together, rel=0.05)
    # an error that does not vary leaves that of the other, whose bounds are then not cut at zero
    fixed = Parts(np.array([0.305]), np.zeros((400, 1)))
    low, high = ends(ours, fixed)
    assert (low, high) == pytest.approx((-0.005 - 0.0196, -0.005 + 0.0164), abs=1e-3)


@pytest.mark.parametrize("truth", [[0.0, 0.0, 0.0], [0.1, -0.05, 0.0]])
def test_the_truth_is_held_as_often_as_promised(truth):
    rng = np.random.default_rng(0)
    truth, n, held = np.array(truth), 50, 0
    units = any_units(None, n)
    for _ in range(100):
        values = truth + rng.normal(0, 0.3, (n, 3))
        parts = Parts(values.mean(axis=0), values - values.mean(axis=0))
        low, high = absolute_interval(parts, None, units, 0.9)
        held += low <= np.abs(truth).sum() <= high
    assert held >= 84  # 0.9 less two standard errors
