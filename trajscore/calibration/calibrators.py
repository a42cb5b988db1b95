"""What ``calibrator=`` means wherever predictors are recalibrated."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sklearn.base import clone

from trajscore.calibration._beta import BetaCrossFitCalibrator
from trajscore.calibration._cross_fit import CrossFitCalibrator, LearnedForecaster
from trajscore.calibration._ensemble import EnsembleCrossFitCalibrator
from trajscore.calibration._isotonic import IsotonicCrossFitCalibrator
from trajscore.calibration._platt import PlattCrossFitCalibrator
from trajscore.calibration.forecaster import check_forecaster, check_refitted
from trajscore.core.estimator import parts_of
from trajscore.core.values import either
from trajscore.core.weights import StepWeights

CalibratorMaker = Callable[[bool], Any]

CALIBRATORS: dict[str, type[CrossFitCalibrator]] = {
    "auto": EnsembleCrossFitCalibrator,
    "platt": PlattCrossFitCalibrator,
    "beta": BetaCrossFitCalibrator,
    "isotonic": IsotonicCrossFitCalibrator,
}
"""Calibrators by the name that reports and the command line know them by."""


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

    def make(is_probability: bool) -> CrossFitCalibrator:
        fresh = CALIBRATORS[calibrator]().set_params(
            weights=weights.schedule, horizon=weights.horizon
        )
        if is_probability:
            return fresh
        if fresh._for_signals is None:
            others = [name for name, kind in CALIBRATORS.items() if kind._for_signals is not None]
            raise ValueError(
                f"{type(fresh).__name__} takes forecasts in [0, 1] alone; for another signal use "
                f"calibrator={either(others)}"
            )
        return fresh.set_params(**fresh._for_signals)

    return make
