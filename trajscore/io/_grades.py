"""From the outcome of a log to 1, 0, -1 or a grade between 0 and 1."""

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
        raise MalformedRunError(f"its reward is {reward!r}, not a number{hint}")
    if math.isnan(number):
        return CENSORED
    return SUCCESS if abs(number - SUCCESS) <= _SUCCESS_TOLERANCE else FAILURE


def as_grade(value: Any) -> float | None:
    """Turn a named outcome into 1, 0, -1 or a grade; None if it is not an outcome."""
    number = _as_number(value)
    if number is None or math.isnan(number) or number == CENSORED:
        return None if number is None else CENSORED
    if as_outcome(number) == SUCCESS:
        return SUCCESS
    return (number or FAILURE) if 0 <= number <= 1 else None


def _as_number(value: Any) -> float | None:
    """Return a number or a boolean as a float, NaN for None, and None for other values."""
    if value is None:
        return math.nan
    return float(value) if isinstance(value, (bool, np.bool_, int, float, np.number)) else None
