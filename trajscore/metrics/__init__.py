"""Scores and diagnostics of traces: functions of ``(y_true, traces)``; and of answers."""

from trajscore.metrics._answers import Answers
from trajscore.metrics._ecuas import class_confidence, ecuas_from_confidence, ecuas_score
from trajscore.metrics._scorers import (
    censored_tps_scorer,
    ecuas_scorer,
    make_censored_tps_scorer,
    make_ecuas_scorer,
    make_tps_scorer,
    tps_scorer,
)
from trajscore.metrics._selective import aurc, risk_coverage_curve
from trajscore.metrics.first_error import (
    first_error_samples,
    first_error_score,
    first_error_scorer,
    reading_cost,
)
from trajscore.metrics.run_metrics import trajectory_diagnostics
from trajscore.metrics.steps import step_calibration_error, step_profile, tps_decomposition
from trajscore.metrics.tps import (
    censored_tps_score,
    regret,
    tps_samples,
    tps_score,
    tps_sensitivity,
)

__all__ = [
    "Answers",
    "aurc",
    "censored_tps_score",
    "censored_tps_scorer",
    "class_confidence",
    "ecuas_from_confidence",
    "ecuas_score",
    "ecuas_scorer",
    "first_error_samples",
    "first_error_score",
    "first_error_scorer",
    "make_censored_tps_scorer",
    "make_ecuas_scorer",
    "make_tps_scorer",
    "reading_cost",
    "regret",
    "risk_coverage_curve",
    "step_calibration_error",
    "step_profile",
    "tps_decomposition",
    "tps_samples",
    "tps_score",
    "tps_scorer",
    "tps_sensitivity",
    "trajectory_diagnostics",
]
