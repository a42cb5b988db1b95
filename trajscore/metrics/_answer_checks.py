"""Checks of answers, decisions and class probabilities, and of the parameters of what they cost."""

from collections.abc import Iterator

import numpy as np
import pandas as pd
from sklearn.utils import gen_batches

from trajscore.core.checks import check_sample_weight
from trajscore.core.values import (
    UNIT_ROUNDING,
    AnyArray,
    ArrayLike,
    FloatArray,
    FloatPair,
    IntArray,
    as_array,
    as_numbers,
    check_amounts,
    check_rows,
    refuse_first,
    run_label,
    to_unit,
)


def check_answers(
    correct: ArrayLike,
    confidence: ArrayLike,
    sample_weight: ArrayLike | None,
    *,
    probability: bool = False,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return correctness, confidences (probabilities, or any numbers) and weights as floats."""
    right, c = _pair(correct, confidence, "correct", "confidence")
    if probability:
        c = to_unit(c)
        check_rows(c, (c >= 0) & (c <= 1), "confidence", "it must be in [0, 1]")
    else:
        check_rows(c, ~np.isnan(c), "confidence", "it must be a number")
    check_rows(right, np.isin(right, (0.0, 1.0)), "correct", "it must be 0 or 1")
    return right, c, check_sample_weight(sample_weight, len(c))


def check_decisions(
    paid: ArrayLike, u: ArrayLike, sample_weight: ArrayLike | None
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return costs, uncertainties and weights as floats."""
    costs, uncertainty = _pair(paid, u, "paid", "u")
    check_amounts(costs, "paid")
    check_amounts(uncertainty, "u")
    return costs, uncertainty, check_sample_weight(sample_weight, len(costs))


def _pair(first: ArrayLike, second: ArrayLike, first_name: str, second_name: str) -> FloatPair:
    a = as_numbers(first, first_name)
    b = as_numbers(second, second_name)
    if a.ndim != 1 or a.shape != b.shape or not len(a):
        raise ValueError(
            f"{first_name} has shape {a.shape} and {second_name} {b.shape}; give two lists of the "
            f"same length, with at least one value"
        )
    return a, b


# Rows whose probabilities miss 1 by more than this are refused; float32 softmax misses it by 1e-6.
_SUM_TOLERANCE = 1e-4

# Cells worked on at a time, so that no second copy of a large array is ever held.
_CHUNK_CELLS = 1 << 17


def check_classes(
    y_true: ArrayLike, y_proba: ArrayLike, labels: ArrayLike | None, sample_weight: ArrayLike | None
) -> tuple[AnyArray, IntArray, FloatArray]:
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


def row_slices(array: AnyArray) -> Iterator[slice]:
    """Cut the rows into slices of a limited number of cells."""
    return gen_batches(len(array), max(1, _CHUNK_CELLS // array.shape[1]))


@np.errstate(invalid="ignore", over="ignore")  # of values that are refused
def check_distributions(P: AnyArray, rows: slice, *, log: bool) -> None:
    """Refuse a chunk of rows that are not distributions over classes, naming the first."""
    part = P[rows]
    p = np.exp(part) if log else part
    total = p.sum(axis=1)
    valid = (np.abs(total - 1) <= _SUM_TOLERANCE) & (p.min(axis=1) >= -UNIT_ROUNDING)
    if valid.all():
        return
    k = int(np.argmin(valid))
    side = "most" if log else "least"
    remedy = "log_proba=True for log-probabilities, or a softmax of logits"
    if log:
        remedy = "log_proba=False for probabilities, or a log_softmax"
    raise ValueError(
        f"row {rows.start + k}: {'log-' * log}probabilities from {part[k].min():g} to "
        f"{part[k].max():g} add up to {total[k]:.6g}; they must be at {side} 0 and add up to 1. "
        f"Give {remedy}"
    )


def _guess_columns(y: AnyArray, n_classes: int) -> AnyArray:
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
    return numbers  # the caller names the row of a class that is none of them


def encode_labels(
    y_true: ArrayLike, n_classes: int, labels: ArrayLike | None, n_samples: int
) -> IntArray:
    """Return the column of each sample's class; `labels` as in `ecuas_score`."""
    y = _plain(y_true)
    if y.ndim == 2 and y.shape[1] == 1:
        y = y[:, 0]
    if y.shape != (n_samples,):
        raise ValueError(f"y_true has shape {y.shape}, but there are {n_samples} rows")
    refuse_first(pd.isna(y), lambda row: f"row {row}: the class is missing; leave the row out")
    if labels is None:
        columns = _guess_columns(y, n_classes)
    else:
        columns = _plain(labels)
        if columns.shape != (n_classes,) or not pd.Index(columns).is_unique:
            raise ValueError(f"labels must be {n_classes} different classes, one per column")
    # an index looks up without comparing text with numbers, which the oldest numpy refuses
    place = pd.Index(columns).get_indexer(pd.Index(y))
    refuse_first(
        place < 0,
        lambda row: (
            f"row {row}: class {run_label(y[row])} has no column; the columns stand for "
            f"{columns.tolist()}, so pass labels= if that is not so; else, or if its outcome was "
            f"not observed, leave the row out"
        ),
    )
    return np.asarray(place, dtype=np.int64)


def _plain(labels: ArrayLike) -> AnyArray:
    """Labels as an array in which False and True are 0 and 1."""
    array = as_array(labels, "classes")
    if array.dtype == np.bool_:
        array = array.astype(np.int64)
    return array
