"""Answers that are right or wrong, each with a confidence."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import log_expit

from trajscore.core.checks import check_sample_weight
from trajscore.core.type_aliases import BoolArray, FloatArray
from trajscore.core.values import as_flag, as_numbers, is_number


def check_answers(
    correct: ArrayLike,
    confidence: ArrayLike,
    sample_weight: ArrayLike | None,
    *,
    probability: bool = False,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return correctness, confidences and weights as arrays of floats.

    Confidences are probabilities, or else any numbers, infinity too.
    """
    right = as_numbers(correct, "correct")
    c = as_numbers(confidence, "confidence")
    if right.ndim != 1 or right.shape != c.shape or not len(c):
        raise ValueError(f"correct has shape {right.shape} and confidence {c.shape}; give one each")
    fine = (c >= 0) & (c <= 1) if probability else ~np.isnan(c)
    check_rows(c, fine, "confidence", "in [0, 1]" if probability else "a number")
    check_rows(right, np.isin(right, (0.0, 1.0)), "correct", "0 or 1")
    return right, c, check_sample_weight(sample_weight, len(c))


def check_decisions(
    paid: ArrayLike, u: ArrayLike, sample_weight: ArrayLike | None
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return log-uncertainties, what decisions cost, and weights as arrays of floats."""
    costs, uncertainty = as_numbers(paid, "paid"), as_numbers(u, "u")
    if costs.ndim != 1 or costs.shape != uncertainty.shape or not len(costs):
        raise ValueError(f"paid has shape {costs.shape} and u {uncertainty.shape}; give one each")
    check_amounts(costs, "paid")
    check_amounts(uncertainty, "u")
    with np.errstate(divide="ignore"):  # an uncertainty of 0
        return np.log(uncertainty), costs, check_sample_weight(sample_weight, len(costs))


def check_amounts(values: FloatArray, name: str) -> None:
    """Refuse what is negative, infinite or missing, with its row."""
    check_rows(values, np.isfinite(values) & (values >= 0), name, "finite and >= 0")


def check_rows(values: FloatArray, fine: BoolArray, name: str, kind: str) -> None:
    """Name the first row that is not fine."""
    if not fine.all():
        row = int(np.argmin(fine))
        raise ValueError(f"row {row}: {name} is {values[row]:g}; it must be {kind}")


def check_u_max(u_max: float) -> float:
    """Refuse a largest uncertainty that is no finite number above 0."""
    if not is_number(u_max) or not 0 < u_max < np.inf:
        raise ValueError(f"u_max must be a finite number above 0, got {u_max!r}")
    return float(u_max)


def check_n_classes(n_classes: float) -> None:
    """Refuse a number of possible answers below 2."""
    if not is_number(n_classes) or not n_classes >= 2:
        raise ValueError(f"n_classes must be a number of at least 2, got {n_classes!r}")


def answers(
    correct: ArrayLike,
    confidence: ArrayLike,
    sample_weight: ArrayLike | None,
    *,
    n_classes: float,
    log_odds: bool,
) -> tuple[FloatArray, FloatArray, FloatArray, float]:
    """Turn answers into decisions of the 0-1 cost: log_u, error, weight, and the largest u."""
    check_n_classes(n_classes)
    log_odds = as_flag(log_odds, "log_odds")
    right, c, weight = check_answers(correct, confidence, sample_weight, probability=not log_odds)
    with np.errstate(divide="ignore"):  # an uncertainty of 0
        log_u = log_expit(-c) if log_odds else np.log(1 - c)
    return np.asarray(log_u), 1 - right, weight, 1 - 1 / n_classes
