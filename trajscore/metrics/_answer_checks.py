"""Checks of answers, decisions, and the parameters of what they cost."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from trajscore.core.checks import check_sample_weight
from trajscore.core.type_aliases import BoolArray, FloatArray
from trajscore.core.values import as_numbers, is_number, to_unit


def check_answers(
    correct: ArrayLike,
    confidence: ArrayLike,
    sample_weight: ArrayLike | None,
    *,
    probability: bool = False,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return correctness, confidences (probabilities, or any numbers) and weights as floats."""
    right, c = _pair(correct, confidence, "correct", "confidence")
    c = to_unit(c) if probability else c
    valid = (c >= 0) & (c <= 1) if probability else ~np.isnan(c)
    check_rows(c, valid, "confidence", "in [0, 1]" if probability else "a number")
    check_rows(right, np.isin(right, (0.0, 1.0)), "correct", "0 or 1")
    return right, c, check_sample_weight(sample_weight, len(c))


def check_decisions(
    paid: ArrayLike, u: ArrayLike, sample_weight: ArrayLike | None
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return costs, uncertainties and weights as floats."""
    costs, uncertainty = _pair(paid, u, "paid", "u")
    check_amounts(costs, "paid")
    check_amounts(uncertainty, "u")
    return costs, uncertainty, check_sample_weight(sample_weight, len(costs))


def _pair(
    first: ArrayLike, second: ArrayLike, first_name: str, second_name: str
) -> tuple[FloatArray, FloatArray]:
    a, b = as_numbers(first, first_name), as_numbers(second, second_name)
    if a.ndim != 1 or a.shape != b.shape or not len(a):
        raise ValueError(
            f"{first_name} has shape {a.shape} and {second_name} {b.shape}; give two lists of the "
            f"same length, with at least one value"
        )
    return a, b


def check_amounts(values: FloatArray, name: str) -> None:
    """Refuse values that are negative, infinite or missing."""
    check_rows(values, np.isfinite(values) & (values >= 0), name, "finite and >= 0")


def check_rows(values: FloatArray, valid: BoolArray, name: str, kind: str) -> None:
    """Name the first row that is not valid."""
    if not valid.all():
        row = int(np.argmin(valid))
        raise ValueError(f"row {row}: {name} is {values[row]:g}; it must be {kind}")


def check_eps(eps: float) -> None:
    """Refuse a floor that is not a number in [0, 1)."""
    if not is_number(eps) or not 0 <= eps < 1:
        raise ValueError(f"eps must be a number in [0, 1), got {eps!r}")
