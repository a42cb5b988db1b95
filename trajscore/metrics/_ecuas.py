"""ECUAS: what an answer with its confidence costs, over all costs of rejecting it."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from trajscore.core.type_aliases import FloatArray
from trajscore.core.values import as_flag, is_number
from trajscore.metrics._answers import answers, check_decisions, check_u_max
from trajscore.metrics._class_probabilities import check_classes, class_counts
from trajscore.metrics._uncertainty import (
    Cost,
    as_cost,
    check_eps,
    decisions,
    mean_cost,
    warn_above,
)


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
    y_true : array-like of shape (n_samples,)
        Class of each sample.
    y_proba : array-like of shape (n_samples, n_classes)
        Probability of each class.
    n : float, default=1
        Any real number >= 0. 0 punishes confident errors most (logarithmically); 1 is, for two
        classes, the normalised Brier score; large n tends to the cost of the decisions (the 0-1
        cost) divided by u_M, the largest possible uncertainty.
    cost : array-like of shape (n_classes, n_decisions) or "log", optional
        Cost of each decision for each class, >= 0; a class need not have a decision of cost 0.
        Default: the 0-1 cost of choosing a class. "log" is the cost -log q_y of stating the
        distribution q itself; u is then its entropy.
    normalize : bool, default=False
        Whether to divide by the cost of the naive system that always outputs the class
        frequencies of y_true.
    labels : array-like of shape (n_classes,), optional
        The class of each column. Default: the sorted classes that occur, where they are as many
        as columns; else 0, ..., K - 1, if all classes that occur are such numbers.
    sample_weight : array-like of shape (n_samples,), optional
        Weight of each sample.
    log_proba : bool, default=False
        Whether `y_proba` holds log-probabilities; these are scored without a cap.
    eps : float, default=1e-7
        For plain probabilities, floor of u under the logarithm of n = 0 (for a cost matrix the same
        share of u_M as for the 0-1 cost, eps u_M / (1 - 1/K)), and of probabilities in the
        logarithmic cost; it caps the penalty. For n > 0 u has no floor.

    Returns
    -------
    float
        Mean cost; 1 for a system that is as uncertain as can be.

    Raises
    ------
    ValueError
        If rows are no distributions, a class has no column or the columns' classes cannot be
        told, n < 0, `eps` is not in [0, 1), the cost matrix is not usable, or (normalised) all
        samples are of one class, so that the naive system costs 0.

    See Also
    --------
    ecuas_from_confidence : From correctness and confidence alone.
    ecuas_from_decisions : From what decisions cost, and the uncertainty stated of each.

    Notes
    -----
    Of classes with the same largest probability the first column is the decision, and of decisions
    with the same smallest expected cost, to 12 significant digits, the first.

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
    check_n(n)
    P, y, weight = check_classes(y_true, y_proba, labels, sample_weight)
    system = as_cost(cost, P.shape[1], eps)
    log_u, paid = decisions(P, y, system, log_proba)
    costs, above = price(log_u, paid, n, system.u_max, 0.0 if log_proba else system.floor)
    warn_above(above, system.u_max)
    mean = mean_cost(costs, weight)
    if not as_flag(normalize, "normalize"):
        return mean
    return mean / naive_cost(class_counts(y, weight, P.shape[1]), n, system)


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
    correct : array-like of shape (n_samples,)
        Whether each answer is right (1 or True) or wrong.
    confidence : array-like of shape (n_samples,)
        Probability in [0, 1] that the answer is right: for generated text, that of the answer's
        whole class of equivalent wordings, not of the one string.
    n : float, default=1
        Any real number >= 0, as in `ecuas_score`.
    n_classes : float, default=inf
        Number of possible answers; a confidence below 1/n_classes is no longer a confidence in
        the best answer, and costs what 1/n_classes costs.
    log_odds : bool, default=False
        Whether `confidence` holds log(c / (1 - c)), infinity for c = 1; with n = 0 these are
        scored without a cap.
    sample_weight : array-like of shape (n_samples,), optional
        Weight of each sample.
    eps : float, default=1e-7
        Floor of the uncertainty under the logarithm of n = 0, for confidences in [0, 1].

    Returns
    -------
    float
        Mean cost.

    Raises
    ------
    ValueError
        If a confidence is missing or outside [0, 1], an answer is neither right nor wrong, n < 0,
        `n_classes` is less than 2, or `eps` is not in [0, 1).

    References
    ----------
    Estienne et al. (2026), ECUAS_n, arXiv:2605.20490, Eq. 10 and its limit for many
    classes, Eq. 11.

    Examples
    --------
    >>> round(ecuas_from_confidence([1, 0], [0.9, 0.4]), 3)
    0.585
    """
    check_n(n)
    check_eps(eps)
    log_u, error, weight, u_max = answers(
        correct, confidence, sample_weight, n_classes=n_classes, log_odds=log_odds
    )
    costs, above = price(log_u, error, n, u_max, 0.0 if log_odds else eps)
    warn_above(above, u_max)
    return mean_cost(costs, weight)


def ecuas_from_decisions(
    paid: ArrayLike,
    u: ArrayLike,
    *,
    u_max: float,
    n: float = 1,
    sample_weight: ArrayLike | None = None,
    eps: float = 1e-7,
) -> float:
    """ECUAS_n of decisions with graded costs, each with an uncertainty; **lower is better**.

    For systems that state what they do and how much they expect it to cost, and no class
    probabilities. It is lowest where u is the expected cost of the best decision.

    Parameters
    ----------
    paid : array-like of shape (n_samples,)
        Cost of each decision that was made, given what was true; >= 0.
    u : array-like of shape (n_samples,)
        Uncertainty of each decision, its expected cost as the system states it; >= 0, in the units
        of `paid`.
    u_max : float
        Largest uncertainty u_M that can occur: `largest_uncertainty` of a cost matrix.
    n : float, default=1
        Any real number >= 0, as in `ecuas_score`.
    sample_weight : array-like of shape (n_samples,), optional
        Weight of each sample.
    eps : float, default=1e-7
        Floor of u / u_M under the logarithm of n = 0.

    Returns
    -------
    float
        Mean cost; 1 for a system that is as uncertain as can be.

    Raises
    ------
    ValueError
        If a cost or an uncertainty is negative or not finite, `u_max` is not above 0, n < 0, or
        `eps` is not in [0, 1).

    See Also
    --------
    ecuas_score : From class probabilities, for which it makes the decisions.
    ua_cost_from_decisions : At one cost of rejecting, or over any weight of them.

    References
    ----------
    Estienne et al. (2026), ECUAS_n, arXiv:2605.20490, Eq. 7 and 9, with the outputs of the system
    in place of the Bayes decision and its uncertainty.

    Examples
    --------
    Repairs cost 1, breakdowns 10; a machine is repaired, another left alone, and it breaks down:

    >>> from trajscore.metrics import largest_uncertainty
    >>> costs = [[1, 0], [1, 10]]  # of repairing and of leaving a sound, and a worn, machine
    >>> u_max = largest_uncertainty(costs)
    >>> round(ecuas_from_decisions([1, 10], [1.0, 0.4], u_max=u_max), 3)
    6.58
    """
    check_n(n)
    check_eps(eps)
    largest = check_u_max(u_max)
    log_u, costs, weight = check_decisions(paid, u, sample_weight)
    priced, above = price(log_u, costs, n, largest, eps * largest)
    warn_above(above, largest)
    return mean_cost(priced, weight)


def price(
    log_u: FloatArray, paid: FloatArray, n: float, u_max: float, floor: float
) -> tuple[FloatArray, int]:
    """Compute C*_n of Eq. 9: in x = u / u_M it is x^(n+1) + (n+1)/n (1 - x^n) c / u_M.

    Uncertainties above u_M cost what it costs (Appendix A.3); they are counted beside the costs.
    `floor` is that of u under the logarithm of n = 0, 0 for none.
    """
    log_x = log_u - np.log(u_max)
    above = int((log_x > 1e-9).sum())
    log_x = np.minimum(log_x, 0.0)
    if n == 0:
        if floor > 0:
            log_x = np.maximum(log_x, min(np.log(floor / u_max), 0.0))
        with np.errstate(invalid="ignore"):  # a certain and right answer: 0 times infinity
            penalty = np.where(paid > 0, -log_x * paid, 0.0)
        return np.exp(log_x) + penalty / u_max, above
    weight_above = -np.expm1(n * log_x)  # 1 - x^n, exact also for small n
    return np.exp((n + 1) * log_x) + (n + 1) / n * weight_above * paid / u_max, above


def naive_cost(counts: FloatArray, n: float, cost: Cost) -> float:
    """Cost of the system that always outputs the class frequencies; `counts` are class weights."""
    if np.count_nonzero(counts) < 2:  # counted before dividing, which may round 1 down
        raise ValueError(
            "all samples are of one class: the naive system costs 0, and a normalised score does "
            "not exist; use normalize=False"
        )
    prior, K = counts / counts.sum(), len(counts)
    log_u, paid = decisions(np.tile(prior, (K, 1)), np.arange(K), cost, log_proba=False)
    naive = mean_cost(price(log_u, paid, n, cost.u_max, cost.floor)[0], prior)
    if naive <= 0:
        raise ValueError("the naive system costs 0 with this cost matrix; use normalize=False")
    return naive


def check_n(n: float) -> None:
    """Refuse an n that is no finite number >= 0."""
    if not is_number(n) or not 0 <= n < np.inf:
        raise ValueError(f"n must be a finite number >= 0, got {n!r}")
