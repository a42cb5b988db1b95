"""Identifiers of runs: whole numbers or text, their order, and whether two containers agree."""

from typing import Any

import numpy as np
import pandas as pd
from pandas.api.types import infer_dtype

from trajscore.core.values import AnyArray, ArrayLike, IntArray, RunsLike, first_true, run_label


def as_ids(ids: ArrayLike | None, n_runs: int) -> AnyArray:
    """Return one identifier a run, all int64 or all text; by default 0, 1, 2, ..."""
    if ids is None:
        return np.arange(n_runs, dtype=np.int64)
    if isinstance(ids, np.ndarray) and ids.dtype.kind == "i" and ids.shape == (n_runs,):
        return ids.astype(np.int64)
    array = np.asarray(ids, dtype=object)
    if array.shape != (n_runs,):
        raise ValueError(f"ids must hold {n_runs} identifiers, one for each run")
    kind = infer_dtype(array, skipna=False)
    if kind in ("integer", "empty"):
        try:
            return array.astype(np.int64)
        except OverflowError:
            raise ValueError(
                "a run identifier is too large for a 64-bit integer; make all identifiers text, "
                "for example with .astype(str)"
            ) from None
    if kind == "string":
        return array.astype(np.str_)
    kinds = sorted({type(identifier).__name__ for identifier in array})
    raise ValueError(
        f"run identifiers must be all whole numbers or all text, got {', '.join(kinds)}; "
        f"convert them first, for example with .astype(str)"
    )


def id_order(ids: AnyArray) -> IntArray:
    """Positions in the order of the ids: what follows it does not depend on the order of rows."""
    return np.argsort(ids, kind="stable")


def pair_codes(first: IntArray, second: IntArray) -> IntArray:
    """Number the different pairs of two codes, in ascending order.

    >>> pair_codes(np.array([4, 0, 4, 4]), np.array([1, 5, 0, 1]))
    array([2, 0, 1, 2])
    """
    return pd.factorize(first * (second.max(initial=0) + 1) + second, sort=True)[0]


def are_default_ids(ids: AnyArray) -> bool:
    """Tell whether ids are the default 0, 1, 2, ..., which do not identify runs."""
    return ids.dtype.kind == "i" and np.array_equal(ids, np.arange(len(ids)))


def check_index(labelled: Any, ids: AnyArray, name: str) -> None:
    """Refuse a Series whose index names the same runs as a container has, in another order.

    >>> check_index(pd.Series([1, 0], index=["b", "a"]), np.array(["a", "b"]), "y")
    Traceback (most recent call last):
    ...
    ValueError: row 0: y is of run 'b', X of run 'a'; bring y into the order of X: y.loc[X.ids]
    """
    if not isinstance(labelled, pd.Series) or isinstance(labelled.index, pd.RangeIndex):
        return
    index = labelled.index
    if isinstance(index, pd.MultiIndex):  # ids of several columns are joined by dashes
        index = pd.Index(["-".join(map(str, levels)) for levels in index])
    if len(index) != len(ids) or are_default_ids(ids) or index.equals(pd.Index(ids)):
        return
    if index.name is None and ids.dtype.kind == "i":  # may be rows of another table
        return
    if index.is_unique and index.isin(ids).all():
        row = int(np.argmax(index.to_numpy() != ids))
        raise ValueError(
            f"row {row}: {name} is of run {run_label(index[row])}, X of run {run_label(ids[row])}; "
            f"bring {name} into the order of X: {name}.loc[X.ids]"
        )


def check_same_runs(first: RunsLike, other: RunsLike, first_name: str, other_name: str) -> None:
    """Refuse two containers that do not hold the same runs in the same order.

    The ids 0, 1, 2, ... that a container gets by default do not identify runs, so such a
    container goes with any other; but not with those very numbers in another order.
    """
    if len(first) != len(other):
        raise ValueError(
            f"{first_name} and {other_name} have {len(first)} and {len(other)} runs; give both "
            f"for the same runs"
        )
    row = _first_other_id(first.ids, other.ids)
    if row is not None:
        raise ValueError(
            f"row {row} is run {run_label(first.ids[row])} in {first_name}, but run "
            f"{run_label(other.ids[row])} in {other_name}; bring both into one order of runs"
        )
    if not np.array_equal(first.offsets, other.offsets):
        row = int(np.argmax(first.lengths != other.lengths))
        raise ValueError(
            f"{first_name} and {other_name} have {first.lengths[row]} and {other.lengths[row]} "
            f"steps in row {row}; give one value a step for each"
        )


def _first_other_id(ids: AnyArray, others: AnyArray) -> int | None:
    """First row in which two containers name different runs, None where they agree."""
    alike = ids.dtype.kind == others.dtype.kind  # the oldest numpy does not compare text to numbers
    differ = ids != others if alike else np.ones(len(ids), dtype=bool)
    row = first_true(differ)
    if row is None:
        return None
    identifying = [candidate for candidate in (ids, others) if not are_default_ids(candidate)]
    # of two containers, one has no ids of its own; is the other one that was put in another order?
    if len(identifying) == 1 and not are_default_ids(np.sort(identifying[0])):
        return None
    return row
