"""Evaluate, calibrate and monitor the confidence of agents over trajectories."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from trajscore import calibration, censoring, inference, io, metrics, monitoring, tracer
from trajscore.calibration import PlattCrossFitCalibrator, PrefixForecaster, TraceAggregator
from trajscore.core.array import TrajectoryArray
from trajscore.core.checks import check_trajectories
from trajscore.core.outcomes import check_outcomes
from trajscore.core.trusted import trusted_types
from trajscore.core.version import __version__ as __version__
from trajscore.metrics import (
    censored_tps_scorer,
    ecuas_scorer,
    make_censored_tps_scorer,
    make_ecuas_scorer,
    make_tps_scorer,
    tps_scorer,
)
from trajscore.monitoring import DensityRatioEProcess
from trajscore.report import Report, evaluate
from trajscore.tracer import ActionSignals, StepConfidence, TracerScorer, TracerSignals

if TYPE_CHECKING:
    from trajscore import datasets, gates, plotting, streaming


__all__ = [
    "ActionSignals",
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
    "gates",
    "inference",
    "io",
    "make_censored_tps_scorer",
    "make_ecuas_scorer",
    "make_tps_scorer",
    "metrics",
    "monitoring",
    "plotting",
    "streaming",
    "tps_scorer",
    "tracer",
    "trusted_types",
]

# Imported when they are first used: most programs need no data sets, gates or pictures.
_LAZY = ("datasets", "gates", "plotting", "streaming")


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return import_module(f"trajscore.{name}")
    raise AttributeError(f"module 'trajscore' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_LAZY})
