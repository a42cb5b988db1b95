"""Forecasters: transformers from signals to probability traces, and their last steps."""

from trajscore.calibration._aggregator import TraceAggregator
from trajscore.calibration._platt import PlattCrossFitCalibrator, PlattMap

__all__ = ["PlattCrossFitCalibrator", "PlattMap", "TraceAggregator"]
