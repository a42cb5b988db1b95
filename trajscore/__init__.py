"""Evaluate, calibrate and monitor the confidence of agents over trajectories."""

from trajscore import (
    calibration,
    censoring,
    datasets,
    inference,
    io,
    metrics,
    monitoring,
    plotting,
    tracer,
)
from trajscore.calibration import PlattCrossFitCalibrator, PrefixForecaster, TraceAggregator
from trajscore.metrics import (
    censored_tps_scorer,
    ecuas_scorer,
    make_censored_tps_scorer,
    make_ecuas_scorer,
    make_tps_scorer,
    tps_scorer,
)
from trajscore.monitoring import DensityRatioEProcess
from trajscore.outcomes import check_outcomes
from trajscore.report import Report, evaluate
from trajscore.tracer import StepConfidence, TracerScorer, TracerSignals
from trajscore.trajectories import TrajectoryArray
from trajscore.validation import check_trajectories

__version__ = "0.1.0"

__all__ = [
    "DensityRatioEProcess",
    "PlattCrossFitCalibrator",
    "PrefixForecaster",
    "Report",
    "StepConfidence",
    "TraceAggregator",
    "TracerScorer",
    "TracerSignals",
    "TrajectoryArray",
    "calibration",
    "censored_tps_scorer",
    "censoring",
    "check_outcomes",
    "check_trajectories",
    "datasets",
    "ecuas_scorer",
    "evaluate",
    "inference",
    "io",
    "make_censored_tps_scorer",
    "make_ecuas_scorer",
    "make_tps_scorer",
    "metrics",
    "monitoring",
    "plotting",
    "tps_scorer",
    "tracer",
]
