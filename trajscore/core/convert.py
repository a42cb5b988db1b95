"""From lists, padded arrays and DataFrames to the parts of a container.

Parts are what `ragged.Ragged` is built from, by name: cells, lengths, and ids or None.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from os import PathLike
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from trajscore.core.type_aliases import FloatArray
from trajscore.core.values import as_float, as_lengths, as_numbers, is_iterable, stated_lengths

Parts = dict[str, Any]


def parts_of_any(X: Any) -> Parts:
    """Read any plain form: a list of runs, a Series of them, a padded array or DataFrame."""
    refuse_log(X)
    if isinstance(X, tuple) and len(X) == 2 and hasattr(X[0], "offsets"):
        raise ValueError(
            "X is a pair (X, y), as from_frame returns it with outcome=; write "
            "X, y = TrajectoryArray.from_frame(...)"
        )
    if isinstance(X, (str, PathLike)):
        raise ValueError(
            f"expected numbers, got the text {str(X)!r}; read a table with pandas and "
            f"TrajectoryArray.from_frame, a log with io.read_runs"
        )
    if isinstance(X, pd.DataFrame):
        check_columns(X)
    ids, runs = row_ids(X), _runs_of(X)
    parts = parts_of_padded(X) if runs is None else parts_of_list(runs)
    return {**parts, "ids": ids}


def refuse_log(X: Any) -> None:
    """Say of runs of a log what makes numbers of them."""
    runs = X if isinstance(X, (list, tuple)) else _runs_of(X) or ()
    first = next(iter(runs), None)
    if hasattr(first, "steps") and hasattr(first, "outcome"):
        raise ValueError(
            "expected numbers, got runs of a log; make signals of them with "
            "ActionSignals().fit_transform(runs), or traces with "
            "cross_fit_traces(make_pipeline(ActionSignals(), PrefixForecaster()), runs, y)"
        )


def is_padded(X: Any) -> bool:
    """Tell a padded array or DataFrame of one value a step from the other plain forms."""
    return _runs_of(X) is None and (isinstance(X, (list, tuple)) or getattr(X, "ndim", 2) <= 2)


def _runs_of(X: Any) -> list[Any] | None:
    """Return the runs of a list of several lengths, or of a Series or an array of runs."""
    if isinstance(X, (list, tuple)):
        sizes = {len(run) if hasattr(run, "__len__") else -1 for run in X}
        return list(X) if -1 not in sizes and len(sizes) > 1 else None
    if not isinstance(X, (pd.Series, np.ndarray)) or X.ndim != 1 or X.dtype != object or not len(X):
        return None
    are_runs = all(hasattr(run, "__len__") and not isinstance(run, str) for run in X)
    return list(X) if are_runs else None


def row_ids(X: Any) -> Any:
    """Row labels of a DataFrame or Series, where they can identify runs."""
    if not isinstance(X, (pd.DataFrame, pd.Series)) or not X.index.is_unique:
        return None
    kind = pd.api.types.infer_dtype(X.index)
    return X.index.to_numpy() if kind in ("integer", "string") else None


def parts_of_list(runs: Sequence[ArrayLike]) -> Parts:
    """Read one sequence of numbers a run."""
    if not is_iterable(runs):
        raise ValueError(f"runs must be a sequence of runs, got {runs!r}")
    arrays = [_as_run(run, row) for row, run in enumerate(runs)]
    for row, array in enumerate(arrays):
        if array.shape[1:] != arrays[0].shape[1:]:
            raise ValueError(
                f"rows 0 and {row} have values of shapes {arrays[0].shape[1:]} and "
                f"{array.shape[1:]} a step; all runs need the same number of channels"
            )
    cells = np.concatenate(arrays) if arrays else np.empty(0)
    return {"cells": cells, "lengths": [len(array) for array in arrays]}


def _as_run(run: ArrayLike, row: int) -> FloatArray:
    array = as_numbers(run, f"row {row}: the values")
    if array.ndim not in (1, 2):
        got = f"the number {array}" if not array.ndim else f"{array.ndim} dimensions"
        raise ValueError(f"row {row}: a run is a list of steps, such as [0.1, 0.2], got {got}")
    return array


def parts_of_padded(values: ArrayLike, lengths: ArrayLike | None = None) -> Parts:
    """Read a rectangular array in which what is behind a run's last value is padding."""
    try:
        padded = as_float(values, ndims=(2, 3))
    except ValueError as error:
        if "got 1D" not in str(error) and not isinstance(values, pd.DataFrame):
            raise
        raise ValueError(
            f"{error}. X needs a row for each run and a column for each step; for a table with one "
            f"row a step, make X with TrajectoryArray.from_frame; if this is y, swap X and y"
        ) from error
    n_runs, n_steps = padded.shape[:2]
    run_lengths = stated_lengths(padded) if lengths is None else as_lengths(lengths)
    if run_lengths.shape != (n_runs,) or (run_lengths > n_steps).any():
        raise ValueError(
            f"lengths must hold {n_runs} numbers of at most {n_steps}, one for each row"
        )
    cells = padded[np.arange(n_steps) < run_lengths[:, None]]
    return {"cells": cells, "lengths": run_lengths}


def check_columns(X: pd.DataFrame) -> None:
    """Refuse a DataFrame with a column whose name is not that of a step."""
    names = [name for name in X.columns if isinstance(name, str) and not re.search(r"\d", name)]
    if names:
        raise ValueError(
            f"column {names[0]!r} is not a step: a DataFrame needs a row for each run and a "
            f"column for each step, such as 1, 2, 3; for a table with one row a step, make X with "
            f"TrajectoryArray.from_frame"
        )
