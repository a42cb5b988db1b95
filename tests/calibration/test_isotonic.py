"""The isotonic map: its levels, knots and prior, by hand."""

import numpy as np
import pytest
from scipy.special import logit
from sklearn.isotonic import IsotonicRegression
from sklearn.utils.estimator_checks import parametrize_with_checks

from any_input import CROSS_FIT_CHECKS, any_two_labels
from known_agent import bent_forecasts
from trajscore import TrajectoryArray
from trajscore.calibration import IsotonicCrossFitCalibrator

X = [[value] for value in (0.1, 0.2, 0.3, 0.4, 0.5, 0.6)]
Y = [0, 1, 0, 1, 1, 1]


@pytest.mark.parametrize(
    ("prior", "values", "probabilities"),
    [
        (0, [0.1, 0.2, 0.3, 0.4, 0.6], [1e-6, 0.5, 0.5, 1 - 1e-6, 1 - 1e-6]),
        (1, [0.1, 0.3, 0.4, 0.6], [0.5, 0.5, 0.75, 0.75]),
        (0.5, [0.1, 0.2, 0.3, 0.4, 0.6], [1 / 3, 0.5, 0.5, 6 / 7, 6 / 7]),
    ],
)
def test_knots(prior, values, probabilities):
    fitted = IsotonicCrossFitCalibrator(prior=prior).fit(X, Y).full_map_
    np.testing.assert_allclose(fitted.values, values)
    np.testing.assert_allclose(fitted.probabilities, probabilities)
    assert fitted.n_runs == 6
    assert fitted.base_rate == pytest.approx(4 / 6)
    # linear between knots, constant beyond them
    between = (probabilities[-3] + probabilities[-2]) / 2
    ends = [probabilities[0], between, probabilities[-1]]
    np.testing.assert_allclose(fitted([-1, 0.35, 2]), ends)


def test_default_prior_is_half_a_run():
    default, half = IsotonicCrossFitCalibrator(), IsotonicCrossFitCalibrator(prior=0.5)
    assert default.get_params() == half.get_params()
    assert default.cv == 2


@pytest.mark.parametrize("prior", [-0.1, np.inf, np.nan, "1"])
def test_bad_prior(prior):
    with pytest.raises(
        ValueError, match=f"prior must be a number of runs, at least 0, got {prior!r}"
    ):
        IsotonicCrossFitCalibrator(prior=prior).fit(X, Y)


def test_plain_isotonic_is_that_of_scikit_learn(rng):
    X, y, _ = bent_forecasts(rng, 300)
    ours = IsotonicCrossFitCalibrator(prior=0, weights="uniform").fit(X, y).full_map_
    theirs = IsotonicRegression(out_of_bounds="clip").fit(X.cells[::3], y)
    grid = np.linspace(0, 1, 101)
    expected = np.clip(theirs.predict(grid), 1e-6, 1 - 1e-6)
    np.testing.assert_allclose(ours(grid), expected, rtol=0, atol=1e-6)  # the knots are clipped


def test_prior_keeps_isotonic_away_from_0_and_1(rng):
    X = TrajectoryArray.from_list([[0.1], [0.2], [0.8], [0.9]])
    y = [0, 0, 1, 1]
    with_prior = IsotonicCrossFitCalibrator().fit(X, y).full_map_
    # two failures and half a success below, two successes and half a failure above
    assert with_prior([0.1, 0.9]) == pytest.approx([0.5 / 2.5, 2 / 2.5])
    without = IsotonicCrossFitCalibrator(prior=0).fit(X, y).full_map_
    assert without([0.1, 0.9]) == pytest.approx([1e-6, 1 - 1e-6])


def test_it_takes_any_rising_signal(rng):
    X, y, _ = bent_forecasts(rng, 500)
    on_logit = X.with_cells(5 * logit(X.cells) - 3)
    seen, moved = (IsotonicCrossFitCalibrator().fit(Z, y).transform(Z) for Z in (X, on_logit))
    np.testing.assert_allclose(moved.cells, seen.cells, atol=1e-12)
    fit = IsotonicCrossFitCalibrator().fit_transform  # between values seen, it interpolates
    np.testing.assert_allclose(fit(on_logit, y).cells, fit(X, y).cells, atol=2e-3)


def test_values_that_differ_by_rounding_are_one():
    X = TrajectoryArray.from_list([[one] for one in [0.2, 0.3, 0.3, 0.6] * 5])
    y = np.tile([0, 1, 0, 1], 5)
    rounded = X.with_cells(np.where(y == 1, X.cells * (1 + 1e-13), X.cells))
    assert len(np.unique(rounded.cells)) > len(np.unique(X.cells))
    maps = [IsotonicCrossFitCalibrator().fit(one, y).full_map_ for one in (rounded, X)]
    assert maps[0]([0.3, 0.3 * (1 + 1e-13)]) == pytest.approx(maps[1]([0.3, 0.3]))


@any_two_labels
class AnyIsotonic(IsotonicCrossFitCalibrator):
    pass


@parametrize_with_checks([AnyIsotonic()], expected_failed_checks=lambda _: CROSS_FIT_CHECKS)
@pytest.mark.filterwarnings("ignore")
def test_scikit_learn(estimator, check):
    check(estimator)
