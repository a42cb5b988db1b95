"""The beta map: its formula, its clipping, and the ends that it leaves out."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit, logit
from sklearn.utils.estimator_checks import parametrize_with_checks

from any_input import CROSS_FIT_CHECKS, any_two_labels, as_forecasts
from known_agent import bent_forecasts
from trajscore.calibration import BetaCrossFitCalibrator
from trajscore.calibration._beta import BetaMap

P = np.array([0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8])
Y = np.array([0, 0, 1, 0, 1, 0, 1, 1])


def test_formula():
    beta_map = BetaMap(8, 0.5, a=2.0, b=0.5, c=-0.3)
    expected = expit(2 * np.log(P) - 0.5 * np.log(1 - P) - 0.3)
    np.testing.assert_allclose(beta_map(P), expected, rtol=1e-14)
    np.testing.assert_allclose(beta_map(P.reshape(2, 4)), expected.reshape(2, 4), rtol=1e-14)
    identity = BetaMap(8, 0.5, a=1.0, b=1.0, c=0.0)
    np.testing.assert_allclose(identity([0, 1e-9, 0.3, 1]), [1e-6, 1e-6, 0.3, 1 - 1e-6])
    steep = BetaMap(8, 0.5, a=5.0, b=5.0, c=0.0)
    np.testing.assert_allclose(steep([0.0, 1.0]), [1e-6, 1 - 1e-6])


def test_an_end_that_does_not_help_is_left_out():
    C = 10.0
    fitted = BetaCrossFitCalibrator(C=C).fit(P[:, None], Y).full_map_

    def loss(theta):
        z = theta[0] * np.log(P) - theta[1] * np.log1p(-P) + theta[2]
        return np.sum(np.logaddexp(0, -z) * Y + np.logaddexp(0, z) * (1 - Y)) + (
            theta[:2] @ theta[:2] / (2 * C)
        )

    bounds = [(0, None), (0, None), (None, None)]
    best = minimize(loss, [1, 1, 0], bounds=bounds, options={"ftol": 1e-15, "gtol": 1e-10})
    assert loss(np.array([fitted.a, fitted.b, fitted.c])) == pytest.approx(best.fun, rel=1e-6)
    assert fitted.n_runs == 8
    assert fitted.base_rate == pytest.approx(0.5)


def test_backwards_is_the_base_rate():
    fitted = BetaCrossFitCalibrator().fit(P[:, None], (P < 0.35).astype(int)).full_map_
    assert (fitted.a, fitted.b) == (0, 0)
    assert fitted.c == pytest.approx(logit(3 / 8))


def test_default_parameters():
    assert (BetaCrossFitCalibrator().C, BetaCrossFitCalibrator().cv) == (1.0, 2)


@pytest.mark.parametrize("C", [0, -1.0, "1"])
def test_bad_penalty(C):
    with pytest.raises(ValueError, match=f"C must be a positive number, got {C!r}"):
        BetaCrossFitCalibrator(C=C).fit(P[:, None], Y)
    with pytest.raises(ValueError, match="censored must be"):
        BetaCrossFitCalibrator(censored="drop them").fit(P[:, None], Y)


def test_it_finds_its_own_family(rng):
    X, y, truth = bent_forecasts(rng, 40_000)
    fitted = BetaCrossFitCalibrator(C=1e6).fit(X, y)
    assert (fitted.full_map_.a, fitted.full_map_.b, fitted.full_map_.c) == pytest.approx(
        (2.0, 0.5, 0.3), abs=0.12
    )
    assert np.abs(fitted.transform(X).cells[::3] - truth).max() < 0.03


def test_it_leaves_out_an_end_that_points_the_wrong_way(rng):
    X, y, _ = bent_forecasts(rng, 4000, a=2.0, b=-0.8)
    fitted = BetaCrossFitCalibrator().fit(X, y).full_map_
    assert fitted.b == 0
    assert fitted.a > 0
    backwards = BetaCrossFitCalibrator().fit(X, 1 - y).full_map_
    assert (backwards.a, backwards.b) == (0, 0) or min(backwards.a, backwards.b) >= 0
    flat = BetaCrossFitCalibrator().fit([[0.5, 0.5]] * 8, [0, 1] * 4).full_map_
    assert (flat.a, flat.b, flat.c) == (0, 0, 0)


def test_it_takes_probabilities_only():
    signal = [[3.0, 2.0], [5.0, 1.0], [0.1, 0.2], [0.3, 0.4]]
    with pytest.raises(ValueError, match="forecast 3 lies outside"):
        BetaCrossFitCalibrator().fit(signal, [1, 1, 0, 0])


@any_two_labels
class AnyBeta(BetaCrossFitCalibrator):
    """It reads forecasts."""

    def _check_runs(self, X, *, reset):
        return super()._check_runs(as_forecasts(X), reset=reset)


@parametrize_with_checks([AnyBeta()], expected_failed_checks=lambda _: CROSS_FIT_CHECKS)
@pytest.mark.filterwarnings("ignore")
def test_scikit_learn(estimator, check):
    check(estimator)
