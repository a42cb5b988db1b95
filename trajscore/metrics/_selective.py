"""Selective prediction: how well a confidence sorts right answers from wrong ones.

All functions take ``(correct, confidence)``, are aware of ties and do not depend on row order.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import log_expit, xlogy

from trajscore.metrics import _ranking
from trajscore.metrics._answers import check_answers

FloatArray = NDArray[np.float64]


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
        Weight of each sample.

    Returns
    -------
    float
        Expected value over all orders of tied samples; the error rate for a constant.

    Examples
    --------
    >>> aurc([1, 0], [0.9, 0.1])
    0.25
    """
    if rule not in ("mean", "trapezoid"):
        raise ValueError(f"rule must be 'mean' or 'trapezoid', got {rule!r}")
    groups, weight = _grouped(correct, confidence, sample_weight)
    wrong, right = groups.sums(weight)
    area = float(_ranking.aurc(wrong, right))
    n = weight.sum()
    if rule == "mean" or n <= 1:
        return area
    used = wrong + right > 0
    first = (wrong[used] / (wrong + right)[used])[-1]
    return float((area * n - (first + wrong.sum() / n) / 2) / (n - 1))


def excess_aurc(
    correct: ArrayLike, confidence: ArrayLike, *, sample_weight: ArrayLike | None = None
) -> float:
    """AURC beyond that of a perfect ranking of the same answers; lower is better.

    Parameters
    ----------
    correct : array-like of shape (n_samples,)
        Whether each answer is right.
    confidence : array-like of shape (n_samples,)
        Any number that is higher where the answer is more likely right.
    sample_weight : array-like of shape (n_samples,), optional
        Weight of each sample.

    Returns
    -------
    float
        Zero for a perfect ranking.

    Examples
    --------
    >>> excess_aurc([1, 0], [0.9, 0.1])
    0.0
    """
    best = aurc(correct, np.asarray(correct, dtype=np.float64), sample_weight=sample_weight)
    return aurc(correct, confidence, sample_weight=sample_weight) - best


def auarc(
    correct: ArrayLike, confidence: ArrayLike, *, sample_weight: ArrayLike | None = None
) -> float:
    """Area under the accuracy-rejection curve, 1 - AURC; higher is better.

    Parameters
    ----------
    correct : array-like of shape (n_samples,)
        Whether each answer is right.
    confidence : array-like of shape (n_samples,)
        Any number that is higher where the answer is more likely right.
    sample_weight : array-like of shape (n_samples,), optional
        Weight of each sample.

    Returns
    -------
    float
        Mean accuracy among the k most confident.

    Examples
    --------
    >>> auarc([1, 0], [0.9, 0.1])
    0.75
    """
    return 1 - aurc(correct, confidence, sample_weight=sample_weight)


def augrc(
    correct: ArrayLike, confidence: ArrayLike, *, sample_weight: ArrayLike | None = None
) -> float:
    """Area under the generalised risk-coverage curve; lower is better.

    The chance that an answer is both accepted and wrong, averaged over coverages.

    Parameters
    ----------
    correct : array-like of shape (n_samples,)
        Whether each answer is right.
    confidence : array-like of shape (n_samples,)
        Any number that is higher where the answer is more likely right.
    sample_weight : array-like of shape (n_samples,), optional
        Weight of each sample.

    Returns
    -------
    float
        (1 - AUROC) a (1 - a) + (1 - a)^2 / 2 with the accuracy a; at most 1/2.

    References
    ----------
    Traub et al. (2024), Overcoming Common Flaws in the Evaluation of Selective Classification
    Systems.

    Examples
    --------
    >>> augrc([1, 0], [0.9, 0.1])
    0.125
    """
    groups, weight = _grouped(correct, confidence, sample_weight)
    wrong, right = groups.sums(weight)
    accuracy = float(right.sum() / weight.sum())
    if accuracy in (0.0, 1.0):
        return (1 - accuracy) / 2
    inversions = 1 - float(_ranking.auroc(wrong, right))
    return inversions * accuracy * (1 - accuracy) + (1 - accuracy) ** 2 / 2


def risk_coverage_curve(
    correct: ArrayLike, confidence: ArrayLike, *, sample_weight: ArrayLike | None = None
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Error rate among accepted answers, at every threshold that makes a difference.

    Parameters
    ----------
    correct : array-like of shape (n_samples,)
        Whether each answer is right.
    confidence : array-like of shape (n_samples,)
        Any number that is higher where the answer is more likely right.
    sample_weight : array-like of shape (n_samples,), optional
        Weight of each sample.

    Returns
    -------
    coverage, risk, threshold : ndarray of shape (n_distinct,)
        Share accepted and error rate among them, where answers with at least this confidence
        are accepted; thresholds fall, coverage rises to 1.

    Examples
    --------
    >>> risk_coverage_curve([1, 0], [0.9, 0.1])
    (array([0.5, 1. ]), array([0. , 0.5]), array([0.9, 0.1]))
    """
    groups, weight = _grouped(correct, confidence, sample_weight)
    wrong, right = (part[::-1] for part in groups.sums(weight))
    accepted = np.cumsum(wrong + right)
    used = accepted > 0
    risk = np.cumsum(wrong)[used] / accepted[used]
    return accepted[used] / accepted[-1], risk, groups.confidence[::-1][used]


def accuracy_rejection_curve(
    correct: ArrayLike, confidence: ArrayLike, *, sample_weight: ArrayLike | None = None
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Accuracy among the answers that are left as the least confident are rejected.

    Parameters
    ----------
    correct : array-like of shape (n_samples,)
        Whether each answer is right.
    confidence : array-like of shape (n_samples,)
        Any number that is higher where the answer is more likely right.
    sample_weight : array-like of shape (n_samples,), optional
        Weight of each sample.

    Returns
    -------
    rejection, accuracy, threshold : ndarray of shape (n_distinct,)
        Share rejected and accuracy among the others, where answers below the threshold are
        rejected; thresholds and rejection rise from the smallest confidence and 0.

    Examples
    --------
    >>> accuracy_rejection_curve([1, 0], [0.9, 0.1])
    (array([0. , 0.5]), array([0.5, 1. ]), array([0.1, 0.9]))
    """
    coverage, risk, threshold = risk_coverage_curve(
        correct, confidence, sample_weight=sample_weight
    )
    return 1 - coverage[::-1], 1 - risk[::-1], threshold[::-1]


def fpr_at_recall(
    correct: ArrayLike,
    confidence: ArrayLike,
    *,
    recall: float = 0.95,
    sample_weight: ArrayLike | None = None,
) -> float:
    """Share of wrong answers accepted where at least 95% of right ones are; lower is better.

    Parameters
    ----------
    correct : array-like of shape (n_samples,)
        Whether each answer is right.
    confidence : array-like of shape (n_samples,)
        Any number that is higher where the answer is more likely right.
    recall : float, default=0.95
        Share of right answers to be accepted.
    sample_weight : array-like of shape (n_samples,), optional
        Weight of each sample.

    Returns
    -------
    float
        At the highest threshold that reaches the recall; ties are accepted together.

    Raises
    ------
    ValueError
        If all answers are right, or all wrong.

    Examples
    --------
    >>> fpr_at_recall([1, 1, 0, 0], [0.9, 0.5, 0.6, 0.1])
    0.5
    """
    groups, weight = _grouped(correct, confidence, sample_weight)
    wrong, right = (part[::-1] for part in groups.sums(weight))
    if not wrong.sum() > 0 or not right.sum() > 0:
        raise ValueError("all answers are alike; this needs right and wrong ones")
    reached = np.cumsum(right) / right.sum() >= recall - 1e-12
    return float((np.cumsum(wrong) / wrong.sum())[np.argmax(reached)])


def confidence_ece(
    correct: ArrayLike,
    confidence: ArrayLike,
    *,
    n_bins: int = 10,
    sample_weight: ArrayLike | None = None,
) -> float:
    """Calibration error over bins of equal width, closed on the left; lower is better.

    Parameters
    ----------
    correct : array-like of shape (n_samples,)
        Whether each answer is right.
    confidence : array-like of shape (n_samples,)
        Probability in [0, 1] that it is.
    n_bins : int, default=10
        Number of bins; a confidence of 1 is in the last.
    sample_weight : array-like of shape (n_samples,), optional
        Weight of each sample.

    Returns
    -------
    float
        ECE.

    Examples
    --------
    >>> round(confidence_ece([1, 0], [0.9, 0.2]), 3)
    0.15
    """
    right, c, weight = check_answers(correct, confidence, sample_weight, probability=True)
    bins = np.minimum((c * n_bins).astype(np.int64), n_bins - 1)
    return float(np.abs(np.bincount(bins, weight * (right - c))).sum() / weight.sum())


def confidence_brier(
    correct: ArrayLike,
    confidence: ArrayLike,
    *,
    normalize: bool = False,
    sample_weight: ArrayLike | None = None,
) -> float:
    """Squared error of a confidence; lower is better.

    Parameters
    ----------
    correct : array-like of shape (n_samples,)
        Whether each answer is right.
    confidence : array-like of shape (n_samples,)
        Probability in [0, 1] that it is.
    normalize : bool, default=False
        Whether to divide by a (1 - a), what a constant at the accuracy a scores. The tables of
        Estienne et al. (2026) print twice that ratio (a constant scores 2).
    sample_weight : array-like of shape (n_samples,), optional
        Weight of each sample.

    Returns
    -------
    float
        Mean of (confidence - correct)^2.

    Examples
    --------
    >>> confidence_brier([1, 0], [0.5, 0.5], normalize=True)
    1.0
    """
    right, c, weight = check_answers(correct, confidence, sample_weight, probability=True)
    score = float(np.average((c - right) ** 2, weights=weight))
    accuracy = float(np.average(right, weights=weight))
    return score / _naive(accuracy * (1 - accuracy)) if normalize else score


def confidence_log_loss(
    correct: ArrayLike,
    confidence: ArrayLike,
    *,
    normalize: bool = False,
    log_odds: bool = False,
    sample_weight: ArrayLike | None = None,
    eps: float = 1e-7,
) -> float:
    """Cross-entropy of a confidence, in nats; lower is better.

    Parameters
    ----------
    correct : array-like of shape (n_samples,)
        Whether each answer is right.
    confidence : array-like of shape (n_samples,)
        Probability in [0, 1] that it is.
    normalize : bool, default=False
        Whether to divide by what a constant at the accuracy scores.
    log_odds : bool, default=False
        Whether `confidence` holds log(c / (1 - c)), as `answers_from_proba` returns them for
        log-probabilities; these are scored without a cap.
    sample_weight : array-like of shape (n_samples,), optional
        Weight of each sample.
    eps : float, default=1e-7
        Confidences in [0, 1] are clipped to [eps, 1 - eps].

    Returns
    -------
    float
        Mean of -log of the probability given to what happened.

    Examples
    --------
    >>> confidence_log_loss([1, 0], [0.5, 0.5], normalize=True)
    1.0
    """
    right, c, weight = check_answers(correct, confidence, sample_weight, probability=not log_odds)
    if log_odds:
        log_happened = log_expit(np.where(right == 1, c, -c))
    else:
        log_happened = np.log(np.clip(np.where(right == 1, c, 1 - c), eps, 1 - eps))
    score = -float(np.average(log_happened, weights=weight))
    a = float(np.average(right, weights=weight))
    return score / _naive(float(-xlogy(a, a) - xlogy(1 - a, 1 - a))) if normalize else score


def _naive(score: float) -> float:
    if score <= 0:
        raise ValueError("all answers are alike, so a constant scores 0; use normalize=False")
    return score


def _grouped(
    correct: ArrayLike, confidence: ArrayLike, sample_weight: ArrayLike | None
) -> tuple[_ranking.TieGroups, FloatArray]:
    right, c, weight = check_answers(correct, confidence, sample_weight)
    return _ranking.TieGroups(c, right), weight
