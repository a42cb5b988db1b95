"""What ``calibrator=`` means wherever predictors are recalibrated."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sklearn.base import clone

from trajscore.calibration._ensemble import EnsembleCrossFitCalibrator
from trajscore.calibration._forecaster import check_forecaster, check_refitted
from trajscore.calibration._platt import PlattCrossFitCalibrator
from trajscore.core.weights import StepWeights

CalibratorMaker = Callable[[bool], Any]


def calibrator_maker(calibrator: Any, weights: StepWeights) -> CalibratorMaker | None:
    """Return what makes a fresh calibrator, told whether a signal is a probability."""
    if calibrator is None:
        return None
    if isinstance(calibrator, str) and calibrator not in ("auto", "platt"):
        raise ValueError(
            f"calibrator must be 'auto', 'platt', a forecaster or None, got {calibrator!r}"
        )
    if not isinstance(calibrator, str):
        check_forecaster(calibrator)
        check_refitted(calibrator)
        return lambda is_probability: clone(calibrator)

    how: dict[str, Any] = {"weights": weights.schedule, "horizon": weights.horizon}
    # a signal is said to be higher where success is more likely, and judged as that
    if calibrator == "auto":
        of_signal = EnsembleCrossFitCalibrator(link="identity", **how)
        return lambda is_probability: (
            EnsembleCrossFitCalibrator(**how) if is_probability else clone(of_signal)
        )

    def platt(is_probability: bool) -> PlattCrossFitCalibrator:
        calibrator = PlattCrossFitCalibrator(**how)
        return (
            calibrator
            if is_probability
            else calibrator.set_params(link="identity", increasing=True)
        )

    return platt
