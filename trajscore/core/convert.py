"""From lists, padded arrays and DataFrames to the parts of a container, checked and joined.

Parts are what `ragged.Ragged` is built from, by name: cells, lengths, and ids or None.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from os import PathLike
from typing import Any

import numpy as np
import pandas as pd

from trajscore.core.ids import as_ids
from trajscore.core.values import (
    AnyArray,
    ArrayLike,
    BoolArray,
    ByName,
    FloatArray,
    as_float,
    as_horizon,
    as_lengths,
    as_numbers,
    first_true,
    is_iterable,
    number_of,
)
from trajscore.core.within_runs import offsets_of


def parts_of_any(X: Any) -> ByName:
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
    runs = _runs_of(X)
    ids = row_ids(X)
    if runs is not None:
        return parts_of_list(runs) | {"ids": ids}
    return parts_of_padded(X) | {"ids": ids}


def refuse_log(X: Any) -> None:
    """Say of runs of a log what makes numbers of them."""
    first = None
    if isinstance(X, (list, tuple, np.ndarray, pd.Series)) and is_iterable(X):
        first = next(iter(X), None)
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
    is_list = isinstance(X, (list, tuple))
    is_objects = isinstance(X, (pd.Series, np.ndarray)) and X.ndim == 1 and X.dtype == object
    if not (is_list or is_objects) or not all(hasattr(run, "__len__") for run in X):
        return None
    if is_list and len({len(run) for run in X}) > 1:
        return list(X)
    if is_objects and len(X) and not any(isinstance(run, str) for run in X):
        return list(X)
    return None


def row_ids(X: Any) -> Any:
    """Row labels of a DataFrame or Series, where they can identify runs."""
    if not isinstance(X, (pd.DataFrame, pd.Series)) or not X.index.is_unique:
        return None
    if pd.api.types.infer_dtype(X.index) in ("integer", "string"):
        return X.index.to_numpy()
    return None


def parts_of_list(runs: Sequence[ArrayLike]) -> ByName:
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
    cells = np.concatenate(arrays or [np.empty(0)])
    return {"cells": cells, "lengths": [len(array) for array in arrays]}


def _as_run(run: ArrayLike, row: int) -> FloatArray:
    array = as_numbers(run, f"row {row}: the values")
    if array.ndim not in (1, 2):
        raise ValueError(
            f"row {row}: a run is a list of steps, such as [0.1, 0.2], got {run!r:.80}"
        )
    return array


def parts_of_padded(values: ArrayLike, lengths: ArrayLike | None = None) -> ByName:
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
    if lengths is None:  # up to the last step with a value
        stated = ~np.isnan(padded).all(axis=tuple(range(2, padded.ndim)))
        run_lengths = (stated * np.arange(1, n_steps + 1)).max(axis=1, initial=0)
    else:
        run_lengths = as_lengths(lengths)
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


def width(cells: FloatArray) -> int:
    return 1 if cells.ndim == 1 else cells.shape[1]


def as_table(cells: AnyArray) -> AnyArray:
    """Return cells as a table of one column a channel; "-1" would not do without a cell."""
    return cells.reshape(len(cells), width(cells))


def as_channels(channels: Sequence[str] | None, cells: FloatArray) -> tuple[str, ...] | None:
    n_channels = width(cells)
    if channels is None:
        if cells.ndim == 1:
            return None
        channels = [f"channel{j}" for j in range(n_channels)]
    if isinstance(channels, str):
        channels = [channels]
    if not isinstance(channels, Iterable):
        raise ValueError(f"channels must be names, got {channels!r}")
    names = tuple(map(str, channels))
    if len(names) != n_channels or len(set(names)) != n_channels:
        raise ValueError(
            f"expected {number_of(n_channels, 'different channel name')}, got "
            f"{list(names)}; name each channel once"
        )
    return names


def as_meta(meta: pd.DataFrame | Mapping[str, Any] | None, n_runs: int) -> pd.DataFrame | None:
    if meta is None:
        return None
    frame = pd.DataFrame(dict(meta)) if isinstance(meta, Mapping) else meta
    if not len(frame.columns):
        return None
    if len(frame) != n_runs:
        raise ValueError(f"meta has {len(frame)} rows, but there are {n_runs} runs")
    return frame.reset_index(drop=True)


def as_ended(ended: ArrayLike, n_runs: int) -> BoolArray:
    values = np.asarray(ended)
    if values.dtype != np.bool_ or values.shape not in ((), (n_runs,)):
        raise ValueError(
            f"ended must be True, False or {n_runs} of these, one for each run, got {ended!r}"
        )
    return np.array(np.broadcast_to(values, n_runs))


def as_row_index(key: Any, n_runs: int) -> Any:
    if isinstance(key, slice):
        return key
    index = np.asarray(key)
    if index.size == 0 and index.dtype != np.bool_:
        return index.astype(np.int64)
    if index.dtype == np.bool_ and index.shape != (n_runs,):
        raise IndexError(f"a boolean index needs {n_runs} entries, got {index.shape}")
    if isinstance(key, tuple) or index.ndim != 1 or index.dtype.kind not in "biu":
        raise IndexError(
            "index runs by whole numbers, a boolean mask or a slice, X[rows], or a channel, "
            "X['name']; for steps use .prefix(t), .steps(t) or .padded()"
        )
    return index


def joined_parts(several: Sequence[Any]) -> ByName:
    """Put the runs of containers after one another: their channels must be the same."""
    channels = {X.channels for X in several}
    if len(channels) > 1:
        raise ValueError(
            f"concat needs the same channels everywhere, got {sorted(map(str, channels))}"
        )
    ids = np.concatenate([X.ids.astype(object) for X in several])
    horizon = None
    if any(X.horizon is not None for X in several):  # lengths, where none were given
        horizon = np.concatenate([as_horizon(X.horizon, X.lengths) for X in several])
    # frames without a run would only blur the dtypes, and newer pandas warns of them
    frames = [X.meta for X in list(filter(len, several)) or several]
    return {
        "cells": np.concatenate([X.cells for X in several]),
        "offsets": offsets_of(np.concatenate([X.lengths for X in several])),
        "horizon": horizon,
        "ids": as_ids(ids, len(ids)),
        "ended": np.concatenate([X.ended for X in several]),
        "channels": channels.pop(),
        "meta": as_meta(pd.concat(frames, ignore_index=True), len(ids)),
    }


def stacked_parts(several: Sequence[Any], channels: Sequence[str] | None) -> ByName:
    """Put the channels of the same runs side by side; what is not here is that of the first."""
    cells = np.concatenate([as_table(X.cells) for X in several], axis=1)
    names = [name for X in several for name in (X.channels or ("value",))]
    distinct = [  # value, value -> value0, value1
        f"{name}{names[:j].count(name)}" if names.count(name) > 1 else name
        for j, name in enumerate(names)
    ]
    horizons = [X.horizon for X in several if X.horizon is not None]
    for left, right in pairwise(horizons):
        row = first_true(left != right)
        if row is not None:
            raise ValueError(f"row {row} has horizons {left[row]} and {right[row]}; give one")
    return {
        "cells": cells,
        "channels": as_channels(channels or distinct, cells),
        "horizon": next(iter(horizons), None),
        "ended": np.logical_or.reduce([X.ended for X in several]),
    }
