"""The isotonic map: its levels, knots and prior, by hand."""

import numpy as np
import pytest

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
