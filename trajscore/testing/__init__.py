"""Checks for other people's trajectory estimators."""

from trajscore.testing._estimator_checks import check_trajectory_estimator

__all__ = ["check_trajectory_estimator"]
