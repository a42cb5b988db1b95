"""Checking class probabilities, a chunk of rows at a time."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy.special import logsumexp

from trajscore.core.checks import check_sample_weight
from trajscore.core.type_aliases import FloatArray, IntArray
from trajscore.core.values import as_array, as_numbers, run_label

# Rows whose probabilities miss 1 by more than this are refused; float32 softmax misses it by 1e-6.
_SUM_TOLERANCE = 1e-4

# Cells worked on at a time, so that no second copy of a large array is ever held.
_CHUNK_CELLS = 1 << 17


def check_classes(
    y_true: ArrayLike, y_proba: ArrayLike, labels: ArrayLike | None, sample_weight: ArrayLike | None
) -> tuple[NDArray[Any], IntArray, FloatArray]:
    """Return probabilities, the column of each class, and weights; rows are checked when read."""
    P = as_array(y_proba, "class probabilities")  # floats are not copied
    if P.dtype.kind != "f":
        P = as_numbers(y_proba, "class probabilities")  # missing values of pandas become NaN
    if P.ndim != 2 or P.shape[1] < 2:
        raise ValueError(
            f"class probabilities must have shape (n_samples, n_classes) with at least two "
            f"classes, got {P.shape}; for one confidence per sample use ecuas_from_confidence"
        )
    if not len(P):
        raise ValueError("there are no samples; give at least one")
    y = encode_labels(y_true, P.shape[1], labels, len(P))
    return P, y, check_sample_weight(sample_weight, len(P))


def row_slices(array: NDArray[Any]) -> list[slice]:
    """Cut the rows into slices of a limited number of cells."""
    step = max(1, _CHUNK_CELLS // array.shape[1])
    return [slice(k, min(k + step, len(array))) for k in range(0, len(array), step)]


@np.errstate(invalid="ignore", over="ignore")  # of values that are refused
def check_rows(P: NDArray[Any], rows: slice, *, log: bool) -> None:
    """Refuse a chunk of rows that are not distributions over classes, naming the worst of all."""
    if not (_distance(P[rows], log) <= _SUM_TOLERANCE).all() or (not log and P[rows].min() < 0):
        # only now is it worth looking at all rows, for the worst
        row = int(np.argmax(np.concatenate([_badness(P[part], log) for part in row_slices(P)])))
        raise ValueError(f"row {row}: {_what_is_wrong(P[row], log)}")


def _distance(rows: NDArray[Any], log: bool) -> NDArray[Any]:
    """How far each row's (logarithm of the) sum is from where it should be."""
    return np.asarray(np.abs(logsumexp(rows, axis=1) if log else rows.sum(axis=1) - 1))


def _badness(rows: NDArray[Any], log: bool) -> NDArray[Any]:
    """Distance of each row from a distribution; NaN comes before everything, then infinity."""
    off = _distance(rows, log)
    worst = off if log else np.maximum(off, -rows.min(axis=1))
    largest = np.finfo(np.float64).max
    worst = np.nan_to_num(worst, nan=largest, posinf=largest)
    return np.where(np.isnan(rows).any(axis=1), np.inf, worst)


def _what_is_wrong(row: NDArray[Any], log: bool) -> str:
    if np.isnan(row).any():
        return "a value is NaN; leave the row out or fill it in"
    low, high, total = float(row.min()), float(row.max()), float(row.sum())
    adds_up = abs(total - 1) <= _SUM_TOLERANCE
    if log:
        if low >= 0 and adds_up:
            return "these look like plain probabilities; pass log_proba=False"
        if high > 0:
            return "these look like logits, not log-probabilities; take their log_softmax first"
        return (
            f"the log-probabilities' exponentials add up to {np.exp(logsumexp(row)):.6g}, not 1 "
            f"(tolerance {_SUM_TOLERANCE:g}); subtract their logsumexp"
        )
    if high <= 0 and abs(float(logsumexp(row))) <= _SUM_TOLERANCE:
        return "these look like log-probabilities; pass log_proba=True"
    if np.isinf(row).any():
        return "a value is infinite; probabilities lie in [0, 1]"
    # a little outside [0, 1] is a slip of arithmetic, far outside is another scale
    if adds_up and max(-low, high - 1) <= 0.5:
        return f"probability {low:g} is negative; probabilities lie in [0, 1]"
    if low >= 0 and abs(total - 100) <= 100 * _SUM_TOLERANCE:
        return "these look like percentages; divide them by 100"
    if low < 0 or high > 1 + _SUM_TOLERANCE:
        return "these look like logits, not probabilities; take their softmax first"
    return (
        f"the probabilities add up to {total:.6g}, not 1 (tolerance {_SUM_TOLERANCE:g}); divide "
        f"them by their sum, in float64"
    )


def _guess_columns(y: NDArray[Any], n_classes: int) -> NDArray[Any]:
    """Classes of the columns: those that occur, or column numbers if classes are such numbers."""
    try:
        classes = np.unique(y)
    except TypeError as error:
        raise ValueError(
            "the classes in y_true are partly text, partly numbers; make them all of one kind"
        ) from error
    if len(classes) == n_classes:
        return classes
    numbers = np.arange(n_classes)
    if (pd.Index(numbers).get_indexer(classes) >= 0).all():
        return numbers
    if len(classes) < n_classes:
        raise ValueError(
            f"{len(classes)} classes occur and there are {n_classes} columns; pass labels=, the "
            f"class of each column"
        )
    if classes.dtype.kind in "iuf":
        return numbers  # the caller names the row of a class that is none of them
    raise ValueError(
        f"{len(classes)} classes occur, but there are {n_classes} columns; give one column for each"
    )


def _without_column(y: NDArray[Any], row: int, columns: NDArray[Any]) -> str:
    where = f"row {row}: class {run_label(y[row])} has no column"
    if run_label(y[row]) in ("-1", "-1.0") and columns.tolist() == [0, 1]:
        return (
            f"{where}; -1 stands for an outcome that was not observed, so leave such runs out "
            f"before scoring"
        )
    return (
        f"{where}; the columns stand for {columns.tolist()}, so pass labels= if that is not so, "
        f"and leave the row out if it is"
    )


def encode_labels(
    y_true: ArrayLike, n_classes: int, labels: ArrayLike | None, n_samples: int
) -> IntArray:
    """Return the column of each sample's class; `labels` as in `ecuas_score`."""
    y = _plain(y_true)
    if y.ndim == 2 and y.shape[1] == 1:
        y = y[:, 0]
    if y.shape != (n_samples,):
        raise ValueError(f"y_true has shape {y.shape}, but there are {n_samples} rows")
    missing = pd.isna(y)
    if missing.any():
        raise ValueError(f"row {int(np.argmax(missing))}: the class is missing; leave the row out")
    if labels is None:
        columns = _guess_columns(y, n_classes)
    else:
        columns = _plain(labels)
        if columns.shape != (n_classes,) or not pd.Index(columns).is_unique:
            raise ValueError(f"labels must be {n_classes} different classes, one per column")
    # an index looks up without comparing text with numbers, which the oldest numpy refuses
    place = pd.Index(columns).get_indexer(pd.Index(y))
    if (place < 0).any():
        raise ValueError(_without_column(y, int(np.argmax(place < 0)), columns))
    return np.asarray(place, dtype=np.int64)


def _plain(labels: ArrayLike) -> NDArray[Any]:
    """Labels as an array in which False and True are 0 and 1."""
    array = as_array(labels, "classes")
    return array.astype(np.int64) if array.dtype == np.bool_ else array
