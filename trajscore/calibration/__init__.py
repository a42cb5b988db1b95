"""Forecasters: transformers from signals to probability traces, and their last steps."""

from trajscore.calibration._affine import AffineCalibrator
from trajscore.calibration._combined import CombinedForecaster
from trajscore.calibration._maps import (
    BetaCrossFitCalibrator,
    EnsembleCrossFitCalibrator,
    IsotonicCrossFitCalibrator,
)
from trajscore.calibration._platt import PlattCrossFitCalibrator
from trajscore.calibration._prefix import PrefixForecaster
from trajscore.calibration.cross_fit import cross_fit_traces
from trajscore.calibration.fixed_step import AliveRate
from trajscore.calibration.forecaster import TraceAggregator

__all__ = [
    "AffineCalibrator",
    "AliveRate",
    "BetaCrossFitCalibrator",
    "CombinedForecaster",
    "EnsembleCrossFitCalibrator",
    "IsotonicCrossFitCalibrator",
    "PlattCrossFitCalibrator",
    "PrefixForecaster",
    "TraceAggregator",
    "cross_fit_traces",
]
