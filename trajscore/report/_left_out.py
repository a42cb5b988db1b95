"""Why runs are left out, in words."""

from __future__ import annotations

from trajscore.core.values import number_of

UNOBSERVED = "the outcome was not observed"
"""With ``censored="drop"``."""


def number_of_runs(n: int) -> str:
    """Write a number of runs: "1 run", "2,000 runs"."""
    return number_of(n, "run")


def stopped_by(stop_reason: str | None) -> str:
    """Say why runs are left out that no budget stopped."""
    if stop_reason is None:
        return "no outcome and no stop reason"
    return f"no outcome; stopped by {stop_reason}, not by a budget"


def lost_by(stop_reason: str) -> str:
    """Say why runs are left out that the harness lost."""
    return f"lost by the harness: {stop_reason}"


def lacks_values(reason: str) -> bool:
    """Whether runs are left out because a value is missing."""
    return reason.endswith((" is missing", " are missing"))


def without_values(predictors: list[str]) -> str:
    """Say for which predictors' sake runs are left out."""
    if len(predictors) == 1:
        return f"a value of {predictors[0]} is missing"
    return f"values of {', '.join(predictors[:-1])} and {predictors[-1]} are missing"
