"""How well a confidence sorts right answers from wrong ones, and the other metrics of answers.

All functions are aware of ties and do not depend on row order.
"""

from __future__ import annotations

import numpy as np
from scipy.special import log_expit, xlogy

from trajscore.core import ranking
from trajscore.core.ranking import TieGroups
from trajscore.core.ties import ROUNDING, SUM_ROUNDING, uniform_bins
from trajscore.core.values import (
    AnyArray,
    ArrayLike,
    FloatArray,
    IntArray,
    as_count,
    as_within,
    check_choice,
)
from trajscore.metrics._answer_checks import check_answers, row_slices
from trajscore.metrics.costs import mean_cost

RULES = ("mean", "trapezoid")
"""How the area under a risk-coverage curve is summed."""


def aurc(
    correct: ArrayLike,
    confidence: ArrayLike,
    *,
    rule: str = "mean",
    sample_weight: ArrayLike | None = None,
) -> float:
    """Area under the risk-coverage curve; lower is better.

    The mean error rate among the k most confident, over k = 1, ..., n.

    Parameters
    ----------
    correct : array-like of shape (n_samples,)
        Whether each answer is right.
    confidence : array-like of shape (n_samples,)
        Any number that is higher where the answer is more likely right.
    rule : {"mean", "trapezoid"}, default="mean"
        "trapezoid" gives the first and the last k half the weight of the others (for n > 1); the
        tables of Estienne et al. (2026) do so.
    sample_weight : array-like of shape (n_samples,), optional
        How many samples each one stands for: a weight of 2 is the sample twice. The area depends
        on how many there are, so weights are not relative; they must add up to more than 1.

    Returns
    -------
    float
        Expected value over all orders of tied samples; the error rate for a constant.

    Raises
    ------
    ValueError
        If a confidence is missing, an answer is neither right nor wrong, `rule` is neither of the
        two, or weights add up to 1 or less.

    See Also
    --------
    Answers.metrics : With it, and what a perfect ranking would leave of it.

    References
    ----------
    Geifman and El-Yaniv (2017), Selective Classification for Deep Neural Networks, NeurIPS.

    Examples
    --------
    >>> aurc([1, 0], [0.9, 0.1])
    0.25
    """
    check_choice(rule, "rule", RULES)
    right, c, weight = check_answers(correct, confidence, sample_weight)
    return area(*TieGroups(c, right).sums(check_counts(weight)), rule)


def risk_coverage_curve(
    correct: ArrayLike, confidence: ArrayLike, *, sample_weight: ArrayLike | None = None
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Error rate among accepted answers, at every threshold that makes a difference.

    Parameters
    ----------
    correct, confidence : array-like of shape (n_samples,)
        As in `aurc`.
    sample_weight : array-like of shape (n_samples,), optional
        Weight of each sample.

    Returns
    -------
    coverage, risk, threshold : ndarray of shape (n_distinct,)
        Share accepted and error rate among them, where answers with at least this confidence
        are accepted; thresholds fall, coverage rises to 1. Read backwards, 1 - coverage and
        1 - risk are the accuracy-rejection curve.

    Examples
    --------
    >>> risk_coverage_curve([1, 0], [0.9, 0.1])
    (array([0.5, 1. ]), array([0. , 0.5]), array([0.9, 0.1]))
    """
    right, c, weight = check_answers(correct, confidence, sample_weight)
    ties = TieGroups(c, right)
    wrong, right = (part[::-1] for part in ties.sums(weight))
    accepted = np.cumsum(wrong + right)
    used = wrong + right > 0
    risk = np.cumsum(wrong)[used] / accepted[used]
    return accepted[used] / accepted[-1], risk, ties.confidence[::-1][used]


def area(wrong: FloatArray, right: FloatArray, rule: str) -> float:
    """AURC from the weights of each tie group, ascending in confidence."""
    mean = float(ranking.aurc(wrong, right))
    n = (wrong + right).sum()
    if rule == "mean" or n <= 1:
        return mean
    used = wrong + right > 0
    first = (wrong[used] / (wrong + right)[used])[-1]
    last = wrong.sum() / n
    return float((mean * n - (first + last) / 2) / (n - 1))


def generalised_area(wrong: FloatArray, right: FloatArray) -> float:
    """AUGRC from the weights of each tie group, ascending in confidence."""
    a = float(right.sum() / (wrong + right).sum())
    inversions = np.nan_to_num(1 - ranking.auroc(wrong, right))  # 0 where all answers are alike
    return float(inversions * a * (1 - a) + (1 - a) ** 2 / 2)


def check_counts(weight: FloatArray) -> FloatArray:
    """Refuse weights that cannot be counts of samples; one sample alone may weigh anything."""
    total = weight.sum()
    if total <= 1 + SUM_ROUNDING and np.count_nonzero(weight) > 1:
        raise ValueError(
            f"the sample weights add up to {total:.6g}, but here a weight is the number of samples "
            f"a row stands for; scale them to add up to the number of samples"
        )
    return weight


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
    as_within(recall, "recall", 0, 1, "right")
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
    P: AnyArray, y: IntArray, weight: FloatArray, log: bool, eps: float
) -> dict[str, float]:
    """Error, squared error and surprise over all classes; rows are trusted.

    Each is over that of stating the class frequencies; NaN where there is one class.
    """
    losses = np.empty((3, len(P)))
    for rows in row_slices(P):
        true = y[rows]
        here = np.arange(len(true))
        p = P[rows].astype(float)
        happened = p[here, true]
        losses[0, rows] = p.argmax(axis=1) != true
        if log:
            p = np.exp(p)
        else:
            happened = np.log(np.maximum(happened, eps))
        losses[2, rows] = -happened
        p[here, true] -= 1
        losses[1, rows] = (p**2).sum(axis=1)
    counts = np.bincount(y, weight, P.shape[1])
    p = counts / counts.sum()
    naive = np.array([1 - p.max(), 1 - (p**2).sum(), -xlogy(p, p).sum()])
    if np.count_nonzero(counts) < 2:  # counted before dividing, which may round 1 down
        naive[:] = np.nan
    means = [mean_cost(loss, weight) for loss in losses] / naive
    return dict(zip(("N-ER", "N-BS", "N-CE"), means.tolist(), strict=True))


def _false_positive_rate(wrong: FloatArray, right: FloatArray, recall: float) -> float:
    """Share of wrong answers accepted where the recall is reached; groups ascend in confidence."""
    if not (wrong.sum() > 0 and right.sum() > 0):
        return np.nan
    accepted_right = np.cumsum(right[::-1]) / right.sum()
    accepted_wrong = np.cumsum(wrong[::-1]) / wrong.sum()
    return float(accepted_wrong[np.argmax(accepted_right >= recall - ROUNDING)])


def _ratio(score: float, naive: float) -> float:
    if naive > 0:
        return score / naive
    return np.nan
