"""All metrics of answers with a confidence in one table, as in Table 3 of the ECUAS paper."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, log_expit, xlogy

from trajscore.core.type_aliases import FloatArray, IntArray
from trajscore.core.values import as_count, as_numbers, is_iterable, is_number
from trajscore.metrics import _ranking
from trajscore.metrics._answers import answers
from trajscore.metrics._binning import uniform_bins
from trajscore.metrics._class_probabilities import check_classes, class_counts, row_slices
from trajscore.metrics._ecuas import check_n, naive_cost, price
from trajscore.metrics._ranking import TieGroups
from trajscore.metrics._selective import area, check_counts, check_rule, generalised_area
from trajscore.metrics._uncertainty import ZeroOneCost, check_eps, decisions, mean_cost, warn_above


def answer_metrics(
    y_true: ArrayLike,
    y_proba: ArrayLike,
    *,
    labels: ArrayLike | None = None,
    log_proba: bool = False,
    sample_weight: ArrayLike | None = None,
    n: Sequence[float] = (0, 1, 128),
    n_bins: int = 10,
    recall: float = 0.95,
    rule: str = "mean",
    eps: float = 1e-7,
) -> pd.Series:
    """Table of metrics of class probabilities, and of the likeliest class as an answer.

    Parameters
    ----------
    y_true, y_proba, labels : array-likes
        As in `ecuas_score`.
    log_proba : bool, default=False
        Whether `y_proba` holds log-probabilities. The answer's confidence is then ranked and
        scored by its log-odds, which do not saturate where it rounds to 1, and without a cap.
    sample_weight, n, n_bins, recall, rule, eps : array-like, numbers and str
        As in `answer_metrics_from_confidence`.

    Returns
    -------
    Series
        N-ER, N-BS, N-CE: error rate, Brier score and cross-entropy of all classes, over those of
        a naive system that outputs the class frequencies (1 for a system no better than that).
        N-ECUAS_n: `ecuas_score` over that of the naive system. All four are lower for the better
        system, and NaN where all samples are of one class.
        Then the entries of `answer_metrics_from_confidence` for the likeliest class.

    Raises
    ------
    ValueError
        If rows are no distributions, a class has no column, or a parameter is out of range.

    References
    ----------
    Estienne et al. (2026), ECUAS_n, arXiv:2605.20490, Section 4 and Table 3, which prints twice
    the N-BS of the confidence and takes ``rule="trapezoid"``.

    Examples
    --------
    >>> y, P = [0, 1, 1, 0], [[0.9, 0.1], [0.6, 0.4], [0.2, 0.8], [0.7, 0.3]]
    >>> answer_metrics(y, P)[["N-ER", "N-BS", "N-ECUAS_1", "ECE", "AUC"]].round(3)
    N-ER         0.500
    N-BS         0.500
    N-ECUAS_1    0.500
    ECE          0.300
    AUC          1.000
    dtype: float64
    """
    P, y, weight = check_classes(y_true, y_proba, labels, sample_weight)
    settings = _Settings(n, n_bins, recall, rule, eps)
    cost = ZeroOneCost(P.shape[1], eps)
    log_u, wrong = decisions(P, y, cost, log_proba)
    best = P.max(axis=1).astype(np.float64)
    answered = _Answers(
        right=1 - wrong,
        confidence=np.minimum(np.exp(best) if log_proba else best, 1),
        log_odds=best - log_u if log_proba else None,
        log_u=log_u,
        weight=weight,
    )
    counts = class_counts(y, weight, P.shape[1])
    table = answered.table(settings, cost.u_max)
    normalized = _over_naive(_class_losses(P, y, log_proba, eps), counts, weight)
    for each in settings.n:
        naive = naive_cost(counts, each, cost) if np.count_nonzero(counts) > 1 else np.nan
        normalized[f"N-ECUAS_{each:g}"] = table[f"ECUAS_{each:g}"] / naive
    return pd.Series(normalized | table)


def answer_metrics_from_confidence(
    correct: ArrayLike,
    confidence: ArrayLike,
    *,
    n_classes: float = np.inf,
    log_odds: bool = False,
    sample_weight: ArrayLike | None = None,
    n: Sequence[float] = (0, 1, 128),
    n_bins: int = 10,
    recall: float = 0.95,
    rule: str = "mean",
    eps: float = 1e-7,
) -> pd.Series:
    """Table of metrics of answers that are right or wrong, each with a confidence.

    Parameters
    ----------
    correct : array-like of shape (n_samples,)
        Whether each answer is right (1 or True) or wrong.
    confidence : array-like of shape (n_samples,)
        Probability in [0, 1] that it is right.
    n_classes : float, default=inf
        Number of possible answers, for ECUAS_n.
    log_odds : bool, default=False
        Whether `confidence` holds log(c / (1 - c)), infinity for c = 1; these are ranked and
        scored without a cap, and a certain error costs infinity.
    sample_weight : array-like of shape (n_samples,), optional
        How many samples each one stands for: a weight of 2 is the sample twice. AURC depends on
        how many there are, so weights are not relative; they must add up to more than 1.
    n : sequence of float, default=(0, 1, 128)
        Parameters of ECUAS_n, see `ecuas_score`.
    n_bins : int, default=10
        Number of bins of the ECE.
    recall : float, default=0.95
        Share of right answers to be accepted for the FPR, in (0, 1].
    rule : {"mean", "trapezoid"}, default="mean"
        As in `aurc`.
    eps : float, default=1e-7
        Probabilities are clipped to [eps, 1 - eps] under a logarithm, for confidences in [0, 1].

    Returns
    -------
    Series
        accuracy: share of right answers.
        ECE: calibration error over bins of equal width, closed on the left.
        AUC: chance that a right answer has the higher confidence of a pair; ties count half.
        BS of confidence, CE of confidence: Brier score (mean of (c - correct)^2) and cross-entropy
        in nats. N-BS of confidence, N-CE of confidence: the same over what a constant confidence
        at the accuracy a scores, a (1 - a) and the entropy of a.
        AURC: `aurc`. excess AURC: beyond that of a perfect ranking of the same answers.
        AUARC: area under the accuracy-rejection curve, 1 - AURC. AUGRC: `augrc`.
        FPR at recall: share of wrong answers accepted at the highest threshold that accepts at
        least `recall` of the right ones; ties are accepted together.
        ECUAS_n: `ecuas_from_confidence`.
        Where all answers are right, or all wrong, AUC, FPR and the normalised entries are NaN.

    Raises
    ------
    ValueError
        If a confidence is missing or outside [0, 1], an answer is neither right nor wrong, weights
        add up to 1 or less, or a parameter is out of range.

    References
    ----------
    Estienne et al. (2026), ECUAS_n, arXiv:2605.20490, Section 4. Excess: Geifman, Uziel and
    El-Yaniv (2019), ICLR. Accuracy-rejection: Nadeem, Zucker and Hanczar (2009), MLSB. FPR at 95%
    recall: Hendrycks, Mazeika and Dietterich (2019), ICLR.

    Examples
    --------
    >>> answer_metrics_from_confidence([1, 1, 0], [0.9, 0.6, 0.4])[["ECE", "AUC", "AURC"]].round(3)
    ECE     0.300
    AUC     1.000
    AURC    0.111
    dtype: float64
    """
    settings = _Settings(n, n_bins, recall, rule, eps)
    log_u, wrong, weight, u_max = answers(
        correct, confidence, sample_weight, n_classes=n_classes, log_odds=log_odds
    )
    c = as_numbers(confidence, "confidence")
    answered = _Answers(
        right=1 - wrong,
        confidence=expit(c) if log_odds else c,
        log_odds=c if log_odds else None,
        log_u=log_u,
        weight=weight,
    )
    return pd.Series(answered.table(settings, u_max))


class _Settings:
    """Checked parameters of a table."""

    def __init__(self, n: Any, n_bins: int, recall: float, rule: str, eps: float) -> None:
        self.n = list(n) if is_iterable(n) else [n]
        for each in self.n:
            check_n(each)
        if not is_number(recall) or not 0 < recall <= 1:
            raise ValueError(f"recall must be a number above 0 and at most 1, got {recall!r}")
        check_eps(eps)
        self.n_bins, self.recall = as_count(n_bins, "n_bins"), recall
        self.rule, self.eps = check_rule(rule), eps


@dataclass(frozen=True)
class _Answers:
    """Answers with the confidence of each, its log-odds where they are known, and log(1 - c)."""

    right: FloatArray
    confidence: FloatArray
    log_odds: FloatArray | None
    log_u: FloatArray
    weight: FloatArray

    def table(self, settings: _Settings, u_max: float) -> dict[str, float]:
        a = float(np.average(self.right, weights=self.weight))
        brier = mean_cost((self.confidence - self.right) ** 2, self.weight)
        entropy = mean_cost(self._surprise(settings.eps), self.weight)
        ties = TieGroups(self.confidence if self.log_odds is None else self.log_odds, self.right)
        wrong, right = ties.sums(check_counts(self.weight))
        risk = area(wrong, right, settings.rule)
        least = area(*TieGroups(self.right, self.right).sums(self.weight), settings.rule)
        return {
            "accuracy": a,
            "ECE": self._calibration_error(settings.n_bins),
            "AUC": float(_ranking.auroc(wrong, right)),
            "BS of confidence": brier,
            "CE of confidence": entropy,
            "N-BS of confidence": _ratio(brier, a * (1 - a)),
            "N-CE of confidence": _ratio(entropy, float(-xlogy(a, a) - xlogy(1 - a, 1 - a))),
            "AURC": risk,
            "excess AURC": risk - least,
            "AUARC": 1 - risk,
            "AUGRC": generalised_area(wrong, right),
            "FPR at recall": _false_positive_rate(wrong, right, settings.recall),
            **self._ecuas(settings, u_max),
        }

    def _calibration_error(self, n_bins: int) -> float:
        bins = uniform_bins(self.confidence, n_bins)
        gaps = np.bincount(bins, self.weight * (self.right - self.confidence))
        return float(np.abs(gaps).sum() / self.weight.sum())

    def _surprise(self, eps: float) -> FloatArray:
        """Minus the logarithm of the probability given to what happened."""
        if self.log_odds is not None:
            return -log_expit(np.where(self.right == 1, self.log_odds, -self.log_odds))
        happened = np.where(self.right == 1, self.confidence, 1 - self.confidence)
        return np.asarray(-np.log(np.clip(happened, eps, 1 - eps)))

    def _ecuas(self, settings: _Settings, u_max: float) -> dict[str, float]:
        floor = settings.eps if self.log_odds is None else 0.0
        values = {}
        for n in settings.n:
            costs, above = price(self.log_u, 1 - self.right, n, u_max, floor)
            values[f"ECUAS_{n:g}"] = mean_cost(costs, self.weight)
        if settings.n:
            warn_above(above, u_max, stacklevel=5)
        return values


def _false_positive_rate(wrong: FloatArray, right: FloatArray, recall: float) -> float:
    """Share of wrong answers accepted where the recall is reached; groups ascend in confidence."""
    if not (wrong.sum() > 0 and right.sum() > 0):
        return np.nan
    accepted_right = np.cumsum(right[::-1]) / right.sum()
    accepted_wrong = np.cumsum(wrong[::-1]) / wrong.sum()
    return float(accepted_wrong[np.argmax(accepted_right >= recall - 1e-12)])


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


def _over_naive(losses: FloatArray, counts: FloatArray, weight: FloatArray) -> dict[str, float]:
    """Means over those of the class frequencies, which lose nothing where there is one class."""
    p = counts / counts.sum()
    naive = (1 - p.max(), 1 - (p**2).sum(), -xlogy(p, p).sum())
    several = np.count_nonzero(counts) > 1  # counted before dividing, which may round 1 down
    return {
        name: mean_cost(losses[:, j], weight) / naive[j] if several else np.nan
        for j, name in enumerate(("N-ER", "N-BS", "N-CE"))
    }


def _ratio(score: float, naive: float) -> float:
    return score / naive if naive > 0 else np.nan
