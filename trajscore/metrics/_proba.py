"""Checking class probabilities, a chunk of rows at a time."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy.special import logsumexp

# Rows whose probabilities miss 1 by more than this are refused; float32 softmax misses it by 1e-6.
_SUM_TOLERANCE = 1e-4

# Cells worked on at a time, so that no second copy of a large array is ever held.
_CHUNK_CELLS = 1 << 17


def as_scores(y_proba: ArrayLike) -> NDArray[Any]:
    """Return a two-dimensional array of floats, without copying one that is.

    Parameters
    ----------
    y_proba : array-like of shape (n_samples, n_classes)
        Probabilities or log-probabilities.

    Returns
    -------
    ndarray of shape (n_samples, n_classes)
        The same.

    Raises
    ------
    ValueError
        If it has another number of dimensions, or fewer than two columns.
    """
    array = np.asarray(y_proba)
    if array.dtype.kind != "f":
        array = array.astype(np.float64)
    if array.ndim != 2 or array.shape[1] < 2:
        raise ValueError(
            f"class probabilities must have shape (n_samples, n_classes) with at least two "
            f"classes, got {array.shape}; for one confidence a sample use ecuas_from_confidence"
        )
    if not len(array):
        raise ValueError("there are no samples; give at least one")
    return array


def row_slices(array: NDArray[Any]) -> list[slice]:
    """Cut the rows into slices of a limited number of cells.

    Parameters
    ----------
    array : ndarray of shape (n_samples, n_classes)
        The array.

    Returns
    -------
    list of slice
        Slices of rows.
    """
    step = max(1, _CHUNK_CELLS // array.shape[1])
    return [slice(k, min(k + step, len(array))) for k in range(0, len(array), step)]


def check_rows(rows: NDArray[Any], first: int, *, log: bool) -> None:
    """Refuse rows that are not distributions over classes.

    Parameters
    ----------
    rows : ndarray of shape (n_rows, n_classes)
        A chunk of (log-)probabilities.
    first : int
        Number of its first row, for messages.
    log : bool
        Whether they are log-probabilities.

    Raises
    ------
    ValueError
        With the worst row and what the values look like instead.
    """
    total = logsumexp(rows, axis=1) if log else rows.sum(axis=1)
    target = 0.0 if log else 1.0
    off = np.abs(total - target)
    fine = off <= _SUM_TOLERANCE  # False for NaN
    if fine.all() and (log or rows.min() >= 0):
        return
    if np.isnan(rows).any():
        row = int(np.argmax(np.isnan(rows).any(axis=1)))
        raise ValueError(f"row {first + row}: a value is NaN; leave the row out or fill it in")
    row = int(np.argmax(off)) if not fine.all() else int(np.argmin(rows.min(axis=1)))
    raise ValueError(f"row {first + row}: {_what_is_wrong(rows, row, float(total[row]), log)}")


def _what_is_wrong(rows: NDArray[Any], row: int, total: float, log: bool) -> str:
    if log:
        return (
            f"the log-probabilities' exponentials add up to {np.exp(total):.6g}, not 1 (tolerance "
            f"{_SUM_TOLERANCE:g}); these look like logits or plain probabilities: take log_softmax "
            f"of logits, or pass log_proba=False"
        )
    if (rows[row] <= 0).all() and abs(float(logsumexp(rows[row]))) <= _SUM_TOLERANCE:
        return "these look like log-probabilities; pass log_proba=True"
    if np.isinf(rows[row]).any():
        return "a value is infinite; probabilities lie in [0, 1]"
    if abs(total - 1) <= _SUM_TOLERANCE:
        return f"probability {rows[row].min():g} is negative; probabilities lie in [0, 1]"
    if rows[row].min() >= 0 and abs(total - 100) <= 100 * _SUM_TOLERANCE:
        return "these look like percentages; divide them by 100"
    if rows[row].min() < 0 or rows[row].max() > 1 + _SUM_TOLERANCE:
        return "these look like logits, not probabilities; take their softmax first"
    return (
        f"the probabilities add up to {total:.6g}, not 1 (tolerance {_SUM_TOLERANCE:g}); divide "
        f"them by their sum, in float64"
    )


def _guess_columns(found: NDArray[Any], n_classes: int) -> NDArray[Any]:
    """Classes of the columns: those that occur, or column numbers where some do not occur."""
    if len(found) == n_classes:
        return found
    if found.dtype.kind not in "iufb":
        raise ValueError(
            f"{len(found)} classes occur and there are {n_classes} columns; pass labels=, the "
            f"class of each column"
        )
    return np.arange(n_classes)


def encode_labels(
    y_true: ArrayLike, n_classes: int, labels: ArrayLike | None, n_samples: int
) -> NDArray[np.int64]:
    """Return the column of each sample's class.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Class of each sample.
    n_classes : int
        Number of columns.
    labels : array-like of shape (n_classes,), optional
        The class of each column. Default: the sorted classes that occur, where they are as many
        as columns; else 0, ..., K - 1.
    n_samples : int
        Number of samples there must be.

    Returns
    -------
    ndarray of int of shape (n_samples,)
        Column numbers.

    Raises
    ------
    ValueError
        If a class has no column.
    """
    y = np.asarray(y_true)
    if y.ndim == 2 and y.shape[1] == 1:
        y = y[:, 0]
    if y.shape != (n_samples,):
        raise ValueError(f"y_true has shape {y.shape}, but there are {n_samples} rows")
    missing = pd.isna(y)
    if missing.any():
        raise ValueError(f"row {int(np.argmax(missing))}: the class is missing; leave the row out")
    if labels is None:
        columns = _guess_columns(np.unique(y), n_classes)
    else:
        columns = np.asarray(labels)
        if columns.shape != (n_classes,) or len(np.unique(columns)) != n_classes:
            raise ValueError(f"labels must be {n_classes} different classes, one for each column")
    order = np.argsort(columns)
    ranked = columns[order]
    place = np.minimum(np.searchsorted(ranked, y), n_classes - 1)
    wrong = ranked[place] != y
    if wrong.any():
        row = int(np.argmax(wrong))
        raise ValueError(
            f"row {row}: class {y[row].item()!r} has no column; the columns stand for "
            f"{columns.tolist()}, so pass labels= if that is not so"
        )
    return order[place].astype(np.int64)
