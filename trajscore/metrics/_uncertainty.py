"""What a system decides, how uncertain it then is, and what the decision costs."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import linprog
from scipy.special import logsumexp

from trajscore._coerce import as_numbers
from trajscore.metrics._proba import as_scores, check_rows, encode_labels, row_slices

FloatArray = NDArray[np.float64]
Cost = FloatArray | str | None
LOG_COST = "log"


def check_cost(cost: ArrayLike | str | None, n_classes: int) -> Cost:
    """Check a cost of decisions.

    Parameters
    ----------
    cost : array-like of shape (n_classes, n_decisions), "log" or None
        Cost matrix; the logarithmic cost of stating a distribution; or the 0-1 cost.
    n_classes : int
        Number of classes.

    Returns
    -------
    ndarray, "log" or None
        The same.

    Raises
    ------
    ValueError
        If a cost is negative or not finite, or a class has no decision that costs nothing.
    """
    if cost is None:
        return None
    if isinstance(cost, str):
        if cost != LOG_COST:
            raise ValueError(f"cost must be a matrix, 'log' or None, got {cost!r}")
        return cost
    C = as_numbers(cost, "cost")
    if C.ndim != 2 or C.shape[0] != n_classes:
        raise ValueError(
            f"cost must have one row for each of the {n_classes} classes, got shape {C.shape}"
        )
    if not np.isfinite(C).all() or (C < 0).any():
        row, column = np.argwhere(~(np.isfinite(C) & (C >= 0)))[0]
        raise ValueError(f"cost[{row}, {column}] is {C[row, column]:g}; costs are finite and >= 0")
    if (C.min(axis=1) > 0).any():
        row = int(np.argmax(C.min(axis=1) > 0))
        raise ValueError(f"class {row} has no decision of cost 0; subtract its row's smallest cost")
    if not C.max() > 0:
        raise ValueError("all costs are zero; at least one decision must cost something")
    return C


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
    C = as_numbers(cost, "cost")
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


def ceiling(cost: Cost, n_classes: int) -> float:
    """Return u_M for any kind of cost.

    Parameters
    ----------
    cost : ndarray, "log" or None
        From `check_cost`.
    n_classes : int
        Number of classes.

    Returns
    -------
    float
        1 - 1/K for the 0-1 cost, log K for the logarithmic one.
    """
    if cost is None:
        return 1 - 1 / n_classes
    return float(np.log(n_classes)) if isinstance(cost, str) else largest_uncertainty(cost)


def decide(
    P: NDArray[Any], y: NDArray[np.int64], cost: Cost, log_proba: bool, eps: float
) -> tuple[FloatArray, FloatArray]:
    """Take the Bayes decision for each row.

    Parameters
    ----------
    P : ndarray of shape (n_rows, n_classes)
        (Log-)probabilities.
    y : ndarray of int of shape (n_rows,)
        Column of the true class.
    cost : ndarray, "log" or None
        From `check_cost`.
    log_proba : bool
        Whether `P` holds log-probabilities.
    eps : float
        Floor of u, and of probabilities under a logarithm, where `log_proba` is False.

    Returns
    -------
    log_u, cost : ndarray of shape (n_rows,)
        Logarithm of the uncertainty, and what the decision costs given the true class.
    """
    if isinstance(cost, str):
        return _state_distribution(P, y, log_proba, eps)
    rows = np.arange(len(P))
    if cost is not None:
        expected = (np.exp(P) if log_proba else P) @ cost
        chosen = expected.argmin(axis=1)
        return np.log(np.maximum(expected[rows, chosen], eps)), cost[y, chosen]
    chosen = P.argmax(axis=1)
    error = (chosen != y).astype(np.float64)
    if not log_proba:
        return np.log(np.maximum(1 - P[rows, chosen].astype(np.float64), eps)), error
    return log_of_others(P, chosen), error


def _state_distribution(
    P: NDArray[Any], y: NDArray[np.int64], log_proba: bool, eps: float
) -> tuple[FloatArray, FloatArray]:
    """For the logarithmic cost the decision is P itself, and u its entropy."""
    log_p = P.astype(np.float64) if log_proba else np.log(np.maximum(P, eps, dtype=np.float64))
    p = np.exp(log_p) if log_proba else P
    with np.errstate(invalid="ignore", divide="ignore"):
        entropy = -np.where(p > 0, p * log_p, 0.0).sum(axis=1)
        floor = 0.0 if log_proba else eps
        return np.log(np.maximum(entropy, floor)), -log_p[np.arange(len(P)), y]


def log_of_others(log_p: NDArray[Any], chosen: NDArray[np.int64]) -> FloatArray:
    """Return log(1 - p) of the chosen class, from the other classes' log-probabilities.

    1 - p is lost to rounding when p is near 1; the others' sum is not.

    Parameters
    ----------
    log_p : ndarray of shape (n_rows, n_classes)
        Log-probabilities.
    chosen : ndarray of int of shape (n_rows,)
        Column of each row's choice.

    Returns
    -------
    ndarray of shape (n_rows,)
        Logarithm of the others' probability.
    """
    others = log_p.astype(np.float64)
    others[np.arange(len(others)), chosen] = -np.inf
    with np.errstate(divide="ignore"):
        return np.asarray(logsumexp(others, axis=1))


def decisions(
    y_true: ArrayLike,
    y_proba: ArrayLike,
    *,
    cost: ArrayLike | str | None,
    labels: ArrayLike | None,
    log_proba: bool,
    eps: float,
) -> tuple[FloatArray, FloatArray, float]:
    """Check classes and probabilities, and take the Bayes decision for every sample.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Class of each sample.
    y_proba : array-like of shape (n_samples, n_classes)
        (Log-)probabilities.
    cost : array-like, "log" or None
        As in `check_cost`.
    labels : array-like of shape (n_classes,) or None
        The class of each column.
    log_proba : bool
        Whether `y_proba` holds log-probabilities.
    eps : float
        As in `decide`.

    Returns
    -------
    log_u, cost : ndarray of shape (n_samples,)
        Log-uncertainty and cost of each decision.
    u_max : float
        The largest possible uncertainty.
    """
    P = as_scores(y_proba)
    y = encode_labels(y_true, P.shape[1], labels, len(P))
    kind = check_cost(cost, P.shape[1])
    log_u, paid = np.empty(len(P)), np.empty(len(P))
    for rows in row_slices(P):
        check_rows(P[rows], rows.start, log=log_proba)
        log_u[rows], paid[rows] = decide(P[rows], y[rows], kind, log_proba, eps)
    return log_u, paid, ceiling(kind, P.shape[1])


def warn_above(above: int, u_max: float, stacklevel: int = 3) -> None:
    """Warn that uncertainties exceed the largest possible one, with their number.

    Parameters
    ----------
    above : int
        How many do.
    u_max : float
        The largest possible uncertainty.
    stacklevel : int, default=3
        As in `warnings.warn`.
    """
    if above:
        warnings.warn(
            f"{above} uncertainties lie above the largest possible one, {u_max:.6g}, and are "
            f"scored as that (Appendix A.3)",
            UserWarning,
            stacklevel=stacklevel,
        )
