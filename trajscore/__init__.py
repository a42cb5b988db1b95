"""Evaluate, calibrate and monitor the confidence of agents over trajectories."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.2.0"

if TYPE_CHECKING:
    from trajscore import (
        calibration,
        censoring,
        datasets,
        gates,
        inference,
        io,
        localization,
        metrics,
        monitoring,
        plotting,
        streaming,
        tracer,
    )
    from trajscore.calibration import PlattCrossFitCalibrator, PrefixForecaster, TraceAggregator
    from trajscore.core.array import TrajectoryArray
    from trajscore.core.checks import check_trajectories
    from trajscore.core.outcomes import check_outcomes
    from trajscore.core.storage import trusted_types
    from trajscore.core.weights import step_weights
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
    "localization",
    "make_censored_tps_scorer",
    "make_ecuas_scorer",
    "make_tps_scorer",
    "metrics",
    "monitoring",
    "plotting",
    "step_weights",
    "streaming",
    "tps_scorer",
    "tracer",
    "trusted_types",
]

# Imported when they are first used, so that a program waits for what it needs alone; the imports
# above are for type checkers.
_HOMES = {
    "ActionSignals": "tracer",
    "DensityRatioEProcess": "monitoring",
    "PlattCrossFitCalibrator": "calibration",
    "PrefixForecaster": "calibration",
    "Report": "report",
    "StepConfidence": "tracer",
    "TraceAggregator": "calibration",
    "TracerScorer": "tracer",
    "TracerSignals": "tracer",
    "TrajectoryArray": "core.array",
    "censored_tps_scorer": "metrics",
    "check_outcomes": "core.outcomes",
    "check_trajectories": "core.checks",
    "ecuas_scorer": "metrics",
    "evaluate": "report",
    "make_censored_tps_scorer": "metrics",
    "make_ecuas_scorer": "metrics",
    "make_tps_scorer": "metrics",
    "step_weights": "core.weights",
    "tps_scorer": "metrics",
    "trusted_types": "core.storage",
}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        globals()[name] = getattr(import_module(f"trajscore.{_HOMES[name]}"), name)
        return globals()[name]
    if name in __all__ or name == "report":
        return import_module(f"trajscore.{name}")
    raise AttributeError(f"module 'trajscore' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
