"""Runs that were cut off: why, what they would have come to, and what that does to a score."""

from trajscore.censoring._bounds import break_even_q, censored_tps_interval, tps_bounds
from trajscore.censoring._conditional_mean import conditional_mean_test
from trajscore.censoring._continuation import ContinuationModel
from trajscore.censoring._hazard import StopHazard, doubly_robust_tps_score, ipcw_tps_score
from trajscore.censoring._monte_carlo import MonteCarloContinuation
from trajscore.censoring._practice_shift import censoring_shift, practice_shift
from trajscore.censoring.audit import administrative_stop_test, termination_audit

__all__ = [
    "ContinuationModel",
    "MonteCarloContinuation",
    "StopHazard",
    "administrative_stop_test",
    "break_even_q",
    "censored_tps_interval",
    "censoring_shift",
    "conditional_mean_test",
    "doubly_robust_tps_score",
    "ipcw_tps_score",
    "practice_shift",
    "termination_audit",
    "tps_bounds",
]
