"""What ``calibrator=`` means wherever predictors are recalibrated."""

from collections.abc import Callable
from typing import Any

from sklearn.base import clone

from trajscore import calibration
from trajscore.calibration.cross_fit import CrossFitCalibrator, LearnedForecaster
from trajscore.calibration.forecaster import check_forecaster, check_refitted
from trajscore.core.estimator import parts_of
from trajscore.core.weights import StepWeights

CalibratorMaker = Callable[[bool], Any]

_PUBLIC = (getattr(calibration, name) for name in calibration.__all__)

CALIBRATORS: dict[str, type[CrossFitCalibrator]] = dict(
    sorted((kind.keyword, kind) for kind in _PUBLIC if getattr(kind, "keyword", ""))
)
"""Public calibrators by the `keyword` that reports and the command line know them by."""


def calibrator_maker(calibrator: Any, weights: StepWeights) -> CalibratorMaker | None:
    """Return what makes a fresh calibrator, told whether a signal is a probability."""
    if calibrator is None:
        return None
    if not isinstance(calibrator, str):
        check_forecaster(calibrator, "calibrator")
        check_refitted(calibrator)
        # before any fit: what a fit refuses is then the runs, and a report goes on without it
        for part in parts_of(calibrator):
            if isinstance(part, LearnedForecaster):
                part._check_parameters()
        return lambda is_probability: clone(calibrator)
    if calibrator not in CALIBRATORS:
        names = ", ".join(map(repr, CALIBRATORS))
        raise ValueError(f"calibrator must be {names}, a forecaster or None, got {calibrator!r}")

    kind = CALIBRATORS[calibrator]

    def make(is_probability: bool) -> CrossFitCalibrator:
        fresh = kind().set_params(weights=weights.schedule, horizon=weights.horizon)
        if is_probability:
            return fresh
        fresh.set_params(**kind._for_signals)
        if fresh._reads["probabilities"]:
            raise ValueError(
                f"{kind.__name__} takes forecasts in [0, 1] alone; for another signal use "
                f"calibrator='auto'"
            )
        return fresh

    return make
