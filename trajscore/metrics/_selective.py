"""Selective prediction: how well a confidence sorts right answers from wrong ones.

All functions take ``(correct, confidence)``, are aware of ties and do not depend on row order.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from trajscore.core import ranking
from trajscore.core.ties import SUM_ROUNDING
from trajscore.core.type_aliases import FloatArray
from trajscore.core.values import check_choice
from trajscore.metrics._answer_checks import check_answers

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
    return area(*ranking.TieGroups(c, right).sums(check_counts(weight)), rule)


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
    ties = ranking.TieGroups(c, right)
    wrong, right = (part[::-1] for part in ties.sums(weight))
    accepted, used = np.cumsum(wrong + right), wrong + right > 0
    risk = np.cumsum(wrong)[used] / accepted[used]
    return accepted[used] / accepted[-1], risk, ties.confidence[::-1][used]


def area(wrong: FloatArray, right: FloatArray, rule: str) -> float:
    """AURC from the weights of each tie group, ascending in confidence."""
    mean, n = float(ranking.aurc(wrong, right)), (wrong + right).sum()
    if rule == "mean" or n <= 1:
        return mean
    used = wrong + right > 0
    first, last = (wrong[used] / (wrong + right)[used])[-1], wrong.sum() / n
    return float((mean * n - (first + last) / 2) / (n - 1))


def generalised_area(wrong: FloatArray, right: FloatArray) -> float:
    """AUGRC from the weights of each tie group, ascending in confidence."""
    a = float(right.sum() / (wrong + right).sum())
    inversions = 0.0 if a in (0.0, 1.0) else 1 - float(ranking.auroc(wrong, right))
    return inversions * a * (1 - a) + (1 - a) ** 2 / 2


def check_counts(weight: FloatArray) -> FloatArray:
    """Refuse weights that cannot be counts of samples; one sample alone may weigh anything."""
    total = weight.sum()
    if total <= 1 + SUM_ROUNDING and np.count_nonzero(weight) > 1:
        raise ValueError(
            f"the sample weights add up to {total:.6g}, but here a weight is the number of samples "
            f"a row stands for; scale them to add up to the number of samples"
        )
    return weight
