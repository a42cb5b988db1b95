"""Every rule by which runs are split: folds, what is fitted out of fold, and runs held out."""

from collections.abc import Callable, Iterator, Sized
from typing import Any, TypeVar

import numpy as np
import pandas as pd
from sklearn.model_selection import (
    PredefinedSplit,
    StratifiedGroupKFold,
    check_cv,
    train_test_split,
)

from trajscore.core.errors import TooFewRunsError
from trajscore.core.ids import id_order
from trajscore.core.values import (
    AnyArray,
    ArrayLike,
    BoolArray,
    IntArray,
    as_array,
    first_true,
    is_iterable,
)

Fitted = TypeVar("Fitted")


def assign_folds(
    cv: Any,
    ids: AnyArray,
    strata: ArrayLike,
    *,
    is_counted: ArrayLike | None = None,
    groups: IntArray | None = None,
) -> IntArray:
    """Return the fold in which each run is held out; it does not depend on the order of rows.

    Folds by number alternate within a stratum, in the order of ids (TPS paper, Appendix D); runs of
    one of `groups`, codes of checked labels, share a fold.

    >>> assign_folds(2, np.array(["d", "a", "c", "b"]), [1, 1, 0, 0])
    array([1, 0, 1, 0])
    """
    stratum = np.asarray(strata, dtype=np.int64)
    check_folds(cv)
    if not isinstance(cv, (int, np.integer)):
        return _folds_of_splitter(cv, ids, stratum, groups)
    counted = np.ones(len(ids), dtype=bool)
    if is_counted is not None:
        counted &= np.asarray(is_counted)
    cv = int(cv)
    n_failures, n_successes = (
        len(pd.unique(ids[counted & (stratum == label)])) for label in (0, 1)
    )
    if max(n_failures, n_successes) < cv:
        raise TooFewRunsError(
            f"cv = {cv} is more than the number of successes ({n_successes}) and of failures "
            f"({n_failures}) with different ids (n_samples = {counted.sum()}); give more runs, or "
            f"a smaller cv"
        )
    if groups is not None:
        return _folds_of_groups(cv, ids, stratum, counted, groups)
    code = pd.Series(np.unique(ids, return_inverse=True)[1])
    # runs of weight zero must not shift the others; a run given twice stays whole
    place = code.groupby(2 * stratum + counted).rank("dense")
    return (place.to_numpy(dtype=np.int64) - 1) % cv


def check_folds(cv: Any) -> None:
    """Refuse what is neither a number of folds nor a splitter."""
    is_number = isinstance(cv, (int, np.integer))
    if cv is None or isinstance(cv, (str, bytes)) or (is_number and cv < 2):
        raise ValueError(f"cv must be a whole number, at least 2, or a splitter, got {cv!r}")


def out_of_fold(
    fold: IntArray, fit: Callable[[BoolArray], Fitted]
) -> Iterator[tuple[IntArray, Fitted]]:
    """Fit on all folds but one, for each fold in turn; yield its rows and what was fitted.

    >>> y = np.array([1.0, 0.0, 1.0, 1.0])
    >>> for rows, mean in out_of_fold(np.array([0, 1, 1, 0]), lambda train: y[train].mean()):
    ...     print(rows, mean)
    [0 3] 0.5
    [1 2] 1.0
    """
    for k in range(int(fold.max(initial=-1)) + 1):
        yield np.flatnonzero(fold == k), fit(fold != k)


def _folds_of_groups(
    cv: int, ids: AnyArray, stratum: IntArray, is_counted: BoolArray, groups: IntArray
) -> IntArray:
    """Balance the outcomes over folds that are made of whole groups."""
    # a run given twice counts once here, a run of weight zero not at all
    keys = pd.DataFrame({"group": groups, "id": ids, "stratum": stratum})[is_counted]
    rows = keys.drop_duplicates().sort_values(list(keys)).index.to_numpy()
    n_groups = len(np.unique(groups[rows]))
    if n_groups < cv:
        raise TooFewRunsError(
            f"there are {n_groups} groups of runs, too few for {cv} folds; give finer groups, or "
            f"fewer folds"
        )
    fold_of_group = np.arange(groups.max() + 1) % cv  # stays so for groups that do not count
    splits = StratifiedGroupKFold(cv).split(rows[:, None], stratum[rows], groups[rows])
    for k, (_, test) in enumerate(splits):
        fold_of_group[groups[rows[test]]] = k
    fold = fold_of_group[groups]
    if len(np.unique(fold[rows])) < cv:
        raise TooFewRunsError(
            f"the {n_groups} groups do not fill {cv} folds; give finer groups, or fewer folds"
        )
    return fold


def _folds_of_splitter(
    cv: Any, ids: AnyArray, stratum: IntArray, groups: IntArray | None
) -> IntArray:
    order = id_order(ids)
    if isinstance(cv, PredefinedSplit) or not hasattr(cv, "split"):
        order = np.arange(len(ids))
    if not hasattr(cv, "split"):
        cv = _pairs(cv)
    if groups is not None:
        groups = groups[order]
    fold = np.full(len(ids), -1, dtype=np.int64)
    splits = check_cv(cv).split(np.zeros((len(ids), 1)), stratum[order], groups)
    for k, (train, test) in enumerate(splits):
        trains, held_out = (_as_mask(rows, len(ids), f"split {k} of cv") for rows in (train, test))
        if (fold[order[held_out]] >= 0).any():
            raise ValueError("cv must put each run into one test fold only; use a KFold-like one")
        row = first_true(trains == held_out)
        if row is not None:
            raise ValueError(
                f"split {k} of cv has row {row} in {'both' if trains[row] else 'neither'} of its "
                f"training and test rows; train on all runs that are not in the test fold"
            )
        fold[order[held_out]] = k
    if (fold < 0).any():
        raise ValueError("cv must put every run into a test fold; use a KFold-like one")
    return fold


def _pairs(cv: Any) -> list[Any]:
    """Return the splits of an iterable, each of which must be a pair."""
    splits = list(cv if is_iterable(cv) else [cv])
    for k, split in enumerate(splits):
        if not (is_iterable(split) and isinstance(split, Sized)) or len(split) != 2:
            raise ValueError(f"split {k} of cv must be a pair of training and test rows")
    return splits


def _as_mask(rows: ArrayLike, n_runs: int, name: str) -> BoolArray:
    """Return which runs are named by their rows, or by a mask."""
    array = as_array(rows, name)
    if array.dtype == object:  # of Python's bools, maybe
        array = np.array(array.tolist())
    if array.dtype == bool and array.shape == (n_runs,):
        return array
    if array.ndim != 1 or array.dtype.kind in "bUS" or not np.isin(array, np.arange(n_runs)).all():
        raise ValueError(
            f"{name} must be rows of the {n_runs} runs, from 0 to {n_runs - 1}, or a mask of "
            f"{n_runs} bools"
        )
    mask = np.zeros(n_runs, dtype=bool)
    mask[array.astype(np.int64)] = True
    if mask.sum() < len(array):  # as a mask of 0 and 1 does
        raise ValueError(f"{name} names a row more than once; name each once, or give a mask")
    return mask


def held_out_rows(
    observed: IntArray,
    n_runs: int,
    calibration: ArrayLike | None,
    fraction: float,
    random_state: Any,
    stratify: AnyArray | None = None,
) -> IntArray:
    """Return the rows that a threshold is set on: those given, or a `fraction` drawn at random.

    They are some of the rows whose outcome was `observed`, the order of which must not depend on
    that of the input, and come in rising order. `stratify` has the class of each of these.
    """
    if calibration is not None:
        return np.intersect1d(
            np.flatnonzero(_as_mask(calibration, n_runs, "calibration")), observed
        )
    if len(observed) < 2:
        raise ValueError(f"a split needs 2 runs with an outcome, got n_samples = {len(observed)}")
    _, drawn = train_test_split(
        observed, test_size=fraction, stratify=stratify, random_state=random_state
    )
    return np.sort(np.asarray(drawn, dtype=np.int64))
