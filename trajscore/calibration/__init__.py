"""Forecasters: transformers from signals to probability traces, and their last steps."""

from trajscore.calibration._affine import AffineCalibrator, TemperatureScaler
from trajscore.calibration._aggregator import TraceAggregator
from trajscore.calibration._platt import PlattCrossFitCalibrator, PlattMap

__all__ = [
    "AffineCalibrator",
    "PlattCrossFitCalibrator",
    "PlattMap",
    "TemperatureScaler",
    "TraceAggregator",
]
