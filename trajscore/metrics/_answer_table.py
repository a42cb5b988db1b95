"""The metrics of answers with a confidence, as in Table 3 of the ECUAS paper."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_expit, xlogy

from trajscore.core import ranking
from trajscore.core.ranking import TieGroups
from trajscore.core.ties import ROUNDING, uniform_bins
from trajscore.core.type_aliases import FloatArray, IntArray
from trajscore.core.values import as_count, check_choice, is_number
from trajscore.metrics._class_probabilities import row_slices
from trajscore.metrics._selective import RULES, area, check_counts, generalised_area
from trajscore.metrics._uncertainty import mean_cost


def confidence_table(
    right: FloatArray,
    confidence: FloatArray,
    log_odds: FloatArray | None,
    weight: FloatArray,
    *,
    n_bins: int,
    recall: float,
    rule: str,
    eps: float,
) -> dict[str, float]:
    """Metrics of answers with a confidence, ranked by its log-odds where these are known."""
    if not is_number(recall) or not 0 < recall <= 1:
        raise ValueError(f"recall must be a number above 0 and at most 1, got {recall!r}")
    n_bins = as_count(n_bins, "n_bins")
    check_choice(rule, "rule", RULES)
    a = float(np.average(right, weights=weight))
    brier = mean_cost((confidence - right) ** 2, weight)
    if log_odds is None:
        happened = np.log(np.clip(np.where(right == 1, confidence, 1 - confidence), eps, 1 - eps))
    else:
        happened = log_expit(np.where(right == 1, log_odds, -log_odds))
    entropy = mean_cost(-happened, weight)
    ties = TieGroups(confidence if log_odds is None else log_odds, right)
    wrong_mass, right_mass = ties.sums(check_counts(weight))
    risk = area(wrong_mass, right_mass, rule)
    least = area(*TieGroups(right, right).sums(weight), rule)
    gaps = np.bincount(uniform_bins(confidence, n_bins), weight * (right - confidence))
    return {
        "accuracy": a,
        "ECE": float(np.abs(gaps).sum() / weight.sum()),
        "AUC": float(ranking.auroc(wrong_mass, right_mass)),
        "BS of confidence": brier,
        "CE of confidence": entropy,
        "N-BS of confidence": _ratio(brier, a * (1 - a)),
        "N-CE of confidence": _ratio(entropy, float(-xlogy(a, a) - xlogy(1 - a, 1 - a))),
        "AURC": risk,
        "excess AURC": risk - least,
        "AUARC": 1 - risk,
        "AUGRC": generalised_area(wrong_mass, right_mass),
        "FPR at recall": _false_positive_rate(wrong_mass, right_mass, recall),
    }


def class_table(
    P: NDArray[Any], y: IntArray, weight: FloatArray, log: bool, eps: float
) -> dict[str, float]:
    """Losses over all classes, each over that of stating the class frequencies."""
    losses, counts = _class_losses(P, y, log, eps), np.bincount(y, weight, P.shape[1])
    p = counts / counts.sum()
    naive = (1 - p.max(), 1 - (p**2).sum(), -xlogy(p, p).sum())
    several = np.count_nonzero(counts) > 1  # counted before dividing, which may round 1 down
    return {
        name: mean_cost(losses[:, j], weight) / naive[j] if several else np.nan
        for j, name in enumerate(("N-ER", "N-BS", "N-CE"))
    }


def _false_positive_rate(wrong: FloatArray, right: FloatArray, recall: float) -> float:
    """Share of wrong answers accepted where the recall is reached; groups ascend in confidence."""
    if not (wrong.sum() > 0 and right.sum() > 0):
        return np.nan
    accepted_right = np.cumsum(right[::-1]) / right.sum()
    accepted_wrong = np.cumsum(wrong[::-1]) / wrong.sum()
    return float(accepted_wrong[np.argmax(accepted_right >= recall - ROUNDING)])


def _class_losses(P: NDArray[Any], y: IntArray, log_proba: bool, eps: float) -> FloatArray:
    """Error, squared error and surprise of every sample, in columns; rows are trusted."""
    losses = np.empty((len(P), 3))
    for rows in row_slices(P):
        here, true = np.arange(len(y[rows])), y[rows]
        p = P[rows].astype(np.float64)
        happened = p[here, true]
        losses[rows, 0] = p.argmax(axis=1) != true
        losses[rows, 2] = -happened if log_proba else -np.log(np.maximum(happened, eps))
        gap = np.exp(p) if log_proba else p
        gap[here, true] -= 1
        losses[rows, 1] = (gap**2).sum(axis=1)
    return losses


def _ratio(score: float, naive: float) -> float:
    return score / naive if naive > 0 else np.nan
