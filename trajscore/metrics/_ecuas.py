"""ECUAS: what an answer with its confidence costs, over all costs of rejecting it."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import linprog
from scipy.special import logsumexp
from sklearn.metrics import make_scorer

from trajscore.metrics._proba import as_scores, check_rows, encode_labels, row_slices
from trajscore.validation import check_sample_weight

FloatArray = NDArray[np.float64]


def ecuas_score(
    y_true: ArrayLike,
    y_proba: ArrayLike,
    *,
    n: float = 1,
    cost: ArrayLike | None = None,
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
        classes, the normalised Brier score; large n tends to the 0-1 cost.
    cost : array-like of shape (n_classes, n_decisions), optional
        Cost of each decision for each class. Default: the 0-1 cost of choosing a class.
    normalize : bool, default=False
        Whether to divide by the cost of the naive system that always outputs the class
        frequencies of y_true.
    labels : array-like of shape (n_classes,), optional
        The class of each column.
    sample_weight : array-like of shape (n_samples,), optional
        Weight of each sample.
    log_proba : bool, default=False
        Whether `y_proba` holds log-probabilities; with n = 0 and the 0-1 cost these are scored
        without a cap.
    eps : float, default=1e-7
        Floor of u under the logarithm of n = 0, for plain probabilities; it caps the penalty.

    Returns
    -------
    float
        Mean cost; 1 for a system that is as uncertain as can be.

    Raises
    ------
    ValueError
        If rows are no distributions, a class has no column, n < 0, the cost matrix is not
        usable, or (normalised) all samples are of one class, so that the naive system costs 0.

    See Also
    --------
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
    _check_n(n)
    P = as_scores(y_proba)
    K = P.shape[1]
    y = encode_labels(y_true, K, labels, len(P))
    weight = check_sample_weight(sample_weight, len(P))
    C = None if cost is None else _check_cost(cost, K)
    if C is not None and log_proba:
        raise ValueError("log_proba=True goes with the 0-1 cost; pass probabilities with cost=")
    u_max = 1 - 1 / K if C is None else largest_uncertainty(C)
    costs = np.empty(len(P))
    above = 0
    for rows in row_slices(P):
        check_rows(P[rows], rows.start, log=log_proba)
        log_u, error = _decide(P[rows], y[rows], C, log_proba, eps)
        costs[rows], clipped = _price(log_u, error, n, u_max)
        above += clipped
    _warn_above(above, u_max)
    mean = float(np.average(costs, weights=weight))
    return mean / _naive_cost(y, K, C, n, u_max, weight, eps) if normalize else mean


def ecuas_from_confidence(
    correct: ArrayLike,
    confidence: ArrayLike,
    *,
    n: float = 1,
    n_classes: float = np.inf,
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
    sample_weight : array-like of shape (n_samples,), optional
        Weight of each sample.
    eps : float, default=1e-7
        Floor of the uncertainty under the logarithm of n = 0.

    Returns
    -------
    float
        Mean cost.

    Raises
    ------
    ValueError
        If a confidence is missing or outside [0, 1], or an answer is neither right nor wrong.

    References
    ----------
    Estienne et al. (2026), ECUAS_n, arXiv:2605.20490, Eq. 10 and its limit for many
    classes, Eq. 11.

    Examples
    --------
    >>> round(ecuas_from_confidence([1, 0], [0.9, 0.4]), 3)
    0.585
    """
    _check_n(n)
    if not n_classes >= 2:
        raise ValueError(f"n_classes must be at least 2, got {n_classes}")
    right = np.asarray(correct, dtype=np.float64)
    c = np.asarray(confidence, dtype=np.float64)
    if right.ndim != 1 or right.shape != c.shape:
        raise ValueError(f"correct has shape {right.shape} and confidence {c.shape}; give one each")
    for name, bad in (
        ("confidence", ~((c >= 0) & (c <= 1))),
        ("correct", ~np.isin(right, (0.0, 1.0))),
    ):
        if bad.any():
            row = int(np.argmax(bad))
            value = c[row] if name == "confidence" else right[row]
            kind = "in [0, 1]" if name == "confidence" else "0 or 1"
            raise ValueError(f"row {row}: {name} is {value:g}; it must be {kind}")
    weight = check_sample_weight(sample_weight, len(c))
    u_max = 1 - 1 / n_classes
    costs, above = _price(np.log(np.maximum(1 - c, eps)), 1 - right, n, u_max)
    _warn_above(above, u_max)
    return float(np.average(costs, weights=weight))


def largest_uncertainty(cost: ArrayLike) -> float:
    """Return the largest Bayes cost u_M over all class distributions, by a linear program.

    Parameters
    ----------
    cost : array-like of shape (n_classes, n_decisions)
        Cost of each decision for each class.

    Returns
    -------
    float
        max over q of min over decisions of the expected cost.

    Examples
    --------
    >>> round(largest_uncertainty([[0, 1], [1, 0]]), 12)
    0.5
    """
    C = np.asarray(cost, dtype=np.float64)
    K, D = C.shape
    # maximise t, with t <= q @ C[:, d] for every decision d and q on the simplex
    solution = linprog(
        c=np.append(np.zeros(K), -1.0),
        A_ub=np.column_stack([-C.T, np.ones(D)]),
        b_ub=np.zeros(D),
        A_eq=np.append(np.ones(K), 0.0)[None, :],
        b_eq=[1.0],
        bounds=[(0, None)] * K + [(None, None)],
    )
    return float(-solution.fun)


def make_ecuas_scorer(n: float = 1, cost: ArrayLike | None = None, normalize: bool = False) -> Any:
    """Make a scorer of negated ECUAS_n; higher is better.

    Parameters
    ----------
    n : float, default=1
        As in `ecuas_score`.
    cost : array-like of shape (n_classes, n_decisions), optional
        As in `ecuas_score`.
    normalize : bool, default=False
        As in `ecuas_score`.

    Returns
    -------
    callable
        ``scorer(classifier, X, y)``; reads ``predict_proba``, so it also judges pipelines that
        end in a `TraceAggregator`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.model_selection import cross_val_score
    >>> X, y = load_iris(return_X_y=True)
    >>> model = LogisticRegression(max_iter=1000)
    >>> bool((cross_val_score(model, X, y, scoring=make_ecuas_scorer(n=0)) < 0).all())
    True
    """
    _check_n(n)
    # labels are not passed: cross-validation folds of classifiers are stratified, and columns of
    # predict_proba are the sorted classes
    return make_scorer(
        _binary_or_full,
        response_method="predict_proba",
        greater_is_better=False,
        n=n,
        cost=cost,
        normalize=normalize,
    )


def _binary_or_full(y_true: ArrayLike, y_pred: ArrayLike, **kwargs: Any) -> float:
    """Score what a scorer hands over: for two classes, the second column only."""
    scores = np.asarray(y_pred, dtype=np.float64)
    if scores.ndim == 1:
        scores = np.stack([1 - scores, scores], axis=1)
    return ecuas_score(y_true, scores, **kwargs)


# -------------------------------------------------------------------- the arithmetic


def _decide(
    P: NDArray[Any], y: NDArray[np.int64], C: FloatArray | None, log_proba: bool, eps: float
) -> tuple[FloatArray, FloatArray]:
    """Log-uncertainty of each Bayes decision, and what the decision costs."""
    rows = np.arange(len(P))
    if C is not None:
        expected = P @ C
        chosen = expected.argmin(axis=1)
        return np.log(np.maximum(expected[rows, chosen], eps)), C[y, chosen]
    chosen = P.argmax(axis=1)
    error = (chosen != y).astype(np.float64)
    if not log_proba:
        return np.log(np.maximum(1 - P[rows, chosen].astype(np.float64), eps)), error
    # 1 - max p is lost to rounding when p is near 1; the other classes' sum is not
    others = P.astype(np.float64)
    others[rows, chosen] = -np.inf
    with np.errstate(divide="ignore"):
        return np.asarray(logsumexp(others, axis=1)), error


def _price(log_u: FloatArray, error: FloatArray, n: float, u_max: float) -> tuple[FloatArray, int]:
    """C*_n of Eq. 9 in x = u / u_M, for which it is x^(n+1) + (n+1)/n (1 - x^n) c / u_M."""
    log_x = log_u - np.log(u_max)
    above = log_x > 1e-9
    log_x = np.minimum(log_x, 0.0)
    if n == 0:
        with np.errstate(invalid="ignore"):  # a certain and right answer: 0 times infinity
            penalty = np.where(error > 0, -log_x * error, 0.0)
        return np.exp(log_x) + penalty / u_max, int(above.sum())
    weight_above = -np.expm1(n * log_x)  # 1 - x^n, exact also for small n
    costs = np.exp((n + 1) * log_x) + (n + 1) / n * weight_above * error / u_max
    return costs, int(above.sum())


def _naive_cost(
    y: NDArray[np.int64],
    K: int,
    C: FloatArray | None,
    n: float,
    u_max: float,
    weight: FloatArray,
    eps: float,
) -> float:
    prior = np.bincount(y, weight, K) / weight.sum()
    if prior.max() == 1:
        raise ValueError(
            "all samples are of one class: the naive system costs 0, and a normalised score does "
            "not exist; use normalize=False"
        )
    log_u, error = _decide(np.tile(prior, (K, 1)), np.arange(K), C, False, eps)
    naive = float(prior @ _price(log_u, error, n, u_max)[0])
    if naive <= 0:
        raise ValueError("the naive system costs 0 with this cost matrix; use normalize=False")
    return naive


def _warn_above(above: int, u_max: float) -> None:
    if above:
        warnings.warn(
            f"{above} uncertainties lie above the largest possible one, {u_max:.6g}, and are "
            f"scored as that (Appendix A.3)",
            UserWarning,
            stacklevel=3,
        )


def _check_n(n: float) -> None:
    if not isinstance(n, (int, float, np.integer, np.floating)) or not 0 <= n < np.inf:
        raise ValueError(f"n must be a finite number >= 0, got {n!r}")


def _check_cost(cost: ArrayLike, K: int) -> FloatArray:
    C = np.asarray(cost, dtype=np.float64)
    if C.ndim != 2 or C.shape[0] != K:
        raise ValueError(f"cost must have one row for each of the {K} classes, got shape {C.shape}")
    if not np.isfinite(C).all() or (C < 0).any():
        row, column = np.argwhere(~(np.isfinite(C) & (C >= 0)))[0]
        raise ValueError(f"cost[{row}, {column}] is {C[row, column]:g}; costs are finite and >= 0")
    if (C.min(axis=1) > 0).any():
        row = int(np.argmax(C.min(axis=1) > 0))
        raise ValueError(f"class {row} has no decision of cost 0; subtract its row's smallest cost")
    if not C.max() > 0:
        raise ValueError("all costs are zero; at least one decision must cost something")
    return C


ecuas_scorer = make_ecuas_scorer()
"""Negated ECUAS_1 for the 0-1 cost."""
