"""ECUAS in one call, and confidences in sampled answers to be judged by it."""

from __future__ import annotations

import numpy as np
import pandas as pd

from trajscore.core.checks import check_labels
from trajscore.core.ties import ROUNDING
from trajscore.core.values import ArrayLike, FloatArray, as_array, as_numbers, check_amounts
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


# Probabilities of one question may add up to this much more than 1, as those of single precision.
_SUM_TOLERANCE = 1e-4


def class_confidence(
    question: ArrayLike,
    answer: ArrayLike,
    *,
    count: ArrayLike | None = None,
    proba: ArrayLike | None = None,
) -> pd.DataFrame:
    """Take the likeliest class of equivalent answers to each question, with its confidence.

    What a user acts on is what an answer means. The confidence that serves him is the probability
    of all wordings together that mean the same as the answer, not that of its own wording.

    Parameters
    ----------
    question : array-like of shape (n_answers,)
        The question that each sampled answer belongs to.
    answer : array-like of shape (n_answers,)
        The class of equivalent answers that it is in, such as its normalised text or the number of
        its cluster; classes are compared within a question.
    count : array-like of shape (n_answers,), optional
        How often each answer was drawn; the confidence is the share of draws. Default: once.
    proba : array-like of shape (n_answers,), optional
        Instead, the probability of each wording, each given once; what is missing to 1 belongs to
        answers that were not seen, and to no class.

    Returns
    -------
    DataFrame indexed by question, ascending
        decision: the likeliest class; of classes that tie, to 12 significant digits, the first in
        sorted order. confidence: its probability. u: its uncertainty for the 0-1 cost,
        1 - confidence.

    Raises
    ------
    ValueError
        If a question or an answer is missing, both `count` and `proba` are given, a count or
        probability is negative or not finite, all counts of a question are zero, or its
        probabilities add up to more than 1.

    See Also
    --------
    ecuas_from_confidence : What it costs to rely on these answers.
    trajscore.tracer.SemanticEntropy : Entropy of the classes, the uncertainty for the log cost.

    Notes
    -----
    Shares of few draws are coarse: ten draws that agree have the confidence 1.

    References
    ----------
    Estienne et al. (2026), ECUAS_n, arXiv:2605.20490, Section 3 and Appendix A.5.

    Examples
    --------
    >>> question, answer = ["q1", "q1", "q1", "q2", "q2"], ["paris", "lyon", "paris", "4", "4"]
    >>> class_confidence(question, answer).round(3)
             decision  confidence      u
    question
    q1          paris       0.667  0.333
    q2              4       1.000  0.000

    Three wordings of which two mean the same: the likeliest wording is not the answer.

    >>> class_confidence([1, 1, 1], ["a", "b", "b"], proba=[0.4, 0.3, 0.2])["decision"].item()
    'b'
    """
    questions = as_array(question, "question")
    if questions.ndim != 1:
        raise ValueError(f"question must be one label per sample, got shape {questions.shape}")
    n_answers = len(questions)
    labels = {
        "question": check_labels(questions, n_answers, "question"),
        "answer": check_labels(as_array(answer, "answer"), n_answers, "answer"),
    }
    mass = pd.DataFrame(labels | {"mass": _weights(count, proba, n_answers)})
    share = _shares(mass.groupby(["question", "answer"])["mass"].sum(), counted=proba is None)
    best = share.groupby("question").transform("max")
    # sorted by both, of which the first is taken
    first = share[share >= best * (1 - ROUNDING)].groupby("question").head(1)
    confidence = best[first.index].to_numpy()
    return pd.DataFrame(
        {
            "decision": first.index.get_level_values("answer"),
            "confidence": confidence,
            "u": np.maximum(1 - confidence, 0),
        },
        index=first.index.get_level_values("question"),
    )


def _weights(count: ArrayLike | None, proba: ArrayLike | None, n_answers: int) -> FloatArray:
    if count is not None and proba is not None:
        raise ValueError("give count or proba, not both")
    if not n_answers:
        raise ValueError("there are no answers; give at least one")
    name, values = ("proba", proba) if count is None else ("count", count)
    if values is None:
        return np.ones(n_answers)
    weight = as_numbers(values, name)
    if weight.shape != (n_answers,):
        raise ValueError(f"{name} must be {n_answers} numbers, got shape {weight.shape}")
    check_amounts(weight, name)
    return weight


def _shares(mass: pd.Series, *, counted: bool) -> pd.Series:
    """Probability of each class; probabilities may leave some to answers that were not seen."""
    total = mass.groupby("question").transform("sum")
    if counted:
        if not total.all():
            raise ValueError(f"question {total.idxmin()[0]}: all its counts are zero")
        return mass / total
    if (total > 1 + _SUM_TOLERANCE).any():
        raise ValueError(
            f"question {total.idxmax()[0]}: its probabilities add up to "
            f"{total.max():.6g}; give each wording once, however often it was drawn"
        )
    return mass / np.maximum(total, 1)
