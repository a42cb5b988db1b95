"""Forecasters: transformers from signals to probability traces, and their last steps."""

from trajscore.calibration._affine import AffineCalibrator, TemperatureScaler
from trajscore.calibration._aggregator import TraceAggregator
from trajscore.calibration._platt import PlattCrossFitCalibrator
from trajscore.calibration._platt_map import PlattMap
from trajscore.calibration._prefix import PrefixForecaster, PrefixStream

__all__ = [
    "AffineCalibrator",
    "PlattCrossFitCalibrator",
    "PlattMap",
    "PrefixForecaster",
    "PrefixStream",
    "TemperatureScaler",
    "TraceAggregator",
]
