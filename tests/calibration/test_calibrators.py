"""What a name of a calibrator stands for, and what is refused."""

import pytest
from sklearn.linear_model import LogisticRegression

from trajscore import PlattCrossFitCalibrator, PrefixForecaster
from trajscore.calibration import (
    BetaCrossFitCalibrator,
    EnsembleCrossFitCalibrator,
    IsotonicCrossFitCalibrator,
)
from trajscore.calibration.calibrators import CALIBRATORS, calibrator_maker
from trajscore.core.weights import as_step_weights

UNIFORM = as_step_weights("uniform", None)


@pytest.mark.parametrize(
    ("name", "kind", "for_signals"),
    [
        ("auto", EnsembleCrossFitCalibrator, {"link": "identity"}),
        ("platt", PlattCrossFitCalibrator, {"link": "identity", "increasing": True}),
        ("isotonic", IsotonicCrossFitCalibrator, {}),
        ("beta", BetaCrossFitCalibrator, None),
    ],
)
def test_a_name_stands_for_a_calibrator_with_the_step_weights(name, kind, for_signals):
    make = calibrator_maker(name, as_step_weights("linear_front", 30))
    of_probabilities = make(True)
    assert type(of_probabilities) is kind
    expected = kind().get_params() | {"weights": "linear_front", "horizon": 30}
    assert of_probabilities.get_params() == expected
    assert make(True) is not of_probabilities
    if for_signals is None:
        with pytest.raises(ValueError, match=r"takes forecasts in \[0, 1\] alone; for another"):
            make(False)
        return
    assert make(False).get_params() == expected | for_signals


def test_every_name_is_known():
    assert list(CALIBRATORS) == ["auto", "platt", "beta", "isotonic"]
    with pytest.raises(ValueError, match="calibrator must be 'auto', 'platt', 'beta', 'isotonic',"):
        calibrator_maker("spline", UNIFORM)


def test_a_forecaster_is_copied_and_none_stays_none():
    assert calibrator_maker(None, UNIFORM) is None
    given = PrefixForecaster(last=2)
    make = calibrator_maker(given, UNIFORM)
    for is_probability in (True, False):
        fresh = make(is_probability)
        assert fresh is not given
        assert fresh.get_params() == given.get_params()
    with pytest.raises(ValueError, match="calibrator must be an estimator, got a class; write Pr"):
        calibrator_maker(PrefixForecaster, UNIFORM)
    with pytest.raises(ValueError, match="calibrator must have a transform that returns forecasts"):
        calibrator_maker(LogisticRegression(), UNIFORM)
    with pytest.raises(ValueError, match="calibrator must be an estimator, got 3"):
        calibrator_maker(3, UNIFORM)
