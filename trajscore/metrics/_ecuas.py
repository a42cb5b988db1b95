"""ECUAS in one call."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from trajscore.metrics._answers import Answers


def ecuas_score(
    y_true: ArrayLike,
    y_proba: ArrayLike,
    *,
    n: float = 1,
    cost: ArrayLike | str | None = None,
    normalize: bool = False,
    labels: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    log_proba: bool = False,
    eps: float = 1e-7,
) -> float:
    """Expected cost of an uncertainty-augmented system, ECUAS_n; **lower is better**.

    A user accepts the system's decision where its uncertainty u is at most the cost g of
    rejecting, and pays g otherwise; ECUAS_n integrates that cost over g with the weight
    w_n(g) proportional to g^(n-1). Despite its name it is a cost: `make_ecuas_scorer` negates it.

    Parameters
    ----------
    y_true, y_proba : array-likes of shape (n_samples,) and (n_samples, n_classes)
        Class of each sample, and the probability of each class.
    n : float, default=1
        Any real number >= 0, as in `Answers.ecuas`.
    cost : array-like of shape (n_classes, n_decisions) or "log", optional
        Cost of each decision for each class; default: the 0-1 cost of choosing a class.
    normalize : bool, default=False
        Whether to divide by the cost of always stating the class frequencies.
    labels, sample_weight, log_proba, eps : array-likes, bool and float
        As in `Answers.from_proba`.

    Returns
    -------
    float
        Mean cost; 1 for a system that is as uncertain as can be.

    See Also
    --------
    Answers : The same with the cost at one rejection cost, over a weight of your own, and a table.
    ecuas_from_confidence : From correctness and confidence alone.

    References
    ----------
    Estienne et al. (2026), ECUAS_n, arXiv:2605.20490, Eq. 8 to 10 and Appendix A.3.

    Examples
    --------
    >>> ecuas_score([0, 1], [[0.5, 0.5], [0.5, 0.5]])
    1.0
    >>> round(ecuas_score([0, 1], [[0.9, 0.1], [0.2, 0.8]], n=1), 3)
    0.1
    """
    answers = Answers.from_proba(
        y_true, y_proba, cost=cost, labels=labels, sample_weight=sample_weight,
        log_proba=log_proba, eps=eps,
    )  # fmt: skip
    return answers._ecuas(n, normalize)


def ecuas_from_confidence(
    correct: ArrayLike,
    confidence: ArrayLike,
    *,
    n: float = 1,
    n_classes: float = np.inf,
    log_odds: bool = False,
    sample_weight: ArrayLike | None = None,
    eps: float = 1e-7,
) -> float:
    """ECUAS_n of answers that are right or wrong, each with a confidence; **lower is better**.

    Parameters
    ----------
    correct, confidence : array-likes of shape (n_samples,)
        Whether each answer is right, and the probability in [0, 1] that it is.
    n : float, default=1
        Any real number >= 0, as in `Answers.ecuas`.
    n_classes, log_odds, sample_weight, eps : float, bool, array-like and float
        As in `Answers.from_confidence`.

    Returns
    -------
    float
        Mean cost.

    See Also
    --------
    Answers : The same with the cost at one rejection cost, over a weight of your own, and a table.

    Examples
    --------
    >>> round(ecuas_from_confidence([1, 0], [0.9, 0.4]), 3)
    0.585
    """
    answers = Answers.from_confidence(
        correct, confidence, n_classes=n_classes, log_odds=log_odds, sample_weight=sample_weight,
        eps=eps,
    )  # fmt: skip
    return answers._ecuas(n)
