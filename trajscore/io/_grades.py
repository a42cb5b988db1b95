"""From what a log calls an outcome to one: 1, 0, -1 or a grade between."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from trajscore.core.outcomes import CENSORED, FAILURE, SUCCESS
from trajscore.io._run import MalformedRunError

_SUCCESS_TOLERANCE = 1e-6


def as_outcome(reward: Any, hint: str = "") -> int:
    """Turn the reward of a format into an outcome: 1 is success, anything less is failure."""
    number = _as_number(reward)
    if number is None:
        raise MalformedRunError(f"its reward {reward!r} is no number{hint}")
    if math.isnan(number):
        return CENSORED
    return SUCCESS if abs(number - SUCCESS) <= _SUCCESS_TOLERANCE else FAILURE


def as_grade(value: Any) -> float | None:
    """Turn an outcome of a format that defines none into 1, 0, -1 or a grade; None if it is none.

    A grade within the tolerance of 1 is 1, as in the formats that define a reward.
    """
    number = _as_number(value)
    if number is None or math.isnan(number) or number == CENSORED:
        return None if number is None else CENSORED
    if as_outcome(number) == SUCCESS:
        return SUCCESS
    return (number or FAILURE) if 0 <= number <= 1 else None


def _as_number(value: Any) -> float | None:
    """Return a number or a boolean as a float, NaN where it is missing, None for all else."""
    if value is None:
        return math.nan
    return float(value) if isinstance(value, (bool, np.bool_, int, float, np.number)) else None
