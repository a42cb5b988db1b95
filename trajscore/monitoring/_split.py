"""Which runs are held out to set a threshold."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.model_selection import train_test_split

IntArray = NDArray[np.int64]


def held_out_rows(
    known: IntArray,
    n_runs: int,
    calibration: ArrayLike | None,
    fraction: float,
    random_state: Any,
    stratify: NDArray[Any] | None = None,
) -> IntArray:
    """Return the rows that a threshold is set on: those given, or some drawn at random.

    Parameters
    ----------
    known : ndarray of int
        Rows whose outcome was observed, in an order that does not depend on that of the input.
    n_runs : int
        Number of all rows.
    calibration : array-like of int or bool, or None
        Rows that the user wants held out; None draws them.
    fraction : float
        Share to draw.
    random_state : int or RandomState instance
        Draws.
    stratify : ndarray, optional
        Class of each of the `known` rows, if each class is to be split alike.

    Returns
    -------
    ndarray of int
        Rows, rising; never one whose outcome was not observed.

    Raises
    ------
    ValueError
        If a given row does not exist, or is given twice.

    Examples
    --------
    >>> import numpy as np
    >>> held_out_rows(np.arange(4), 4, [True, False, False, True], 0.5, 0)
    array([0, 3])
    >>> len(held_out_rows(np.arange(10), 10, None, 0.3, 0))
    3
    """
    if calibration is None:
        _, drawn = train_test_split(
            known, test_size=fraction, stratify=stratify, random_state=random_state
        )
        return np.sort(np.asarray(drawn, dtype=np.int64))
    return np.intersect1d(_given_rows(calibration, n_runs), known)


def _given_rows(calibration: ArrayLike, n_runs: int) -> IntArray:
    given = np.asarray(calibration)
    if (
        given.dtype == object
        and given.size
        and all(isinstance(one, (bool, np.bool_)) for one in given.flat)
    ):
        given = given.astype(bool)
    is_mask = given.dtype == bool
    rows = np.flatnonzero(given) if is_mask else given
    if (
        given.ndim != 1
        or (is_mask and len(given) != n_runs)
        or (len(rows) and rows.dtype.kind not in "iufO")
        or not np.isin(rows, np.arange(n_runs)).all()
    ):
        raise ValueError(
            f"calibration must be rows of X, from 0 to {n_runs - 1}, or a mask of {n_runs} bools"
        )
    numbers, count = np.unique(rows.astype(np.int64), return_counts=True)
    if (count > 1).any():
        raise ValueError(
            f"calibration names row {numbers[np.argmax(count > 1)]} more than once; name each row "
            f"once, or give a mask of bools"
        )
    return numbers
