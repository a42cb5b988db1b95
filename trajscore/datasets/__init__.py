"""Data to try things on: bundled, public, and made with a known truth."""

from trajscore.datasets._real import (
    fetch_evaluator,
    fetch_expected_cost,
    load_chess,
    load_real_runs,
    load_who_and_when,
)
from trajscore.datasets._synthetic import make_trajectories

__all__ = [
    "fetch_evaluator",
    "fetch_expected_cost",
    "load_chess",
    "load_real_runs",
    "load_who_and_when",
    "make_trajectories",
]
