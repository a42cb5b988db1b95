"""What is given to a container beside its values: channels, meta, which runs ended, an index."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from trajscore.core.type_aliases import BoolArray, FloatArray, IntArray


def width(cells: FloatArray) -> int:
    return 1 if cells.ndim == 1 else cells.shape[1]


def as_channels(channels: Sequence[str] | None, cells: FloatArray) -> tuple[str, ...] | None:
    if channels is None:
        return None if cells.ndim == 1 else tuple(f"channel{j}" for j in range(cells.shape[1]))
    if not isinstance(channels, Iterable):
        raise ValueError(f"channels must be names, got {channels!r}")
    names = tuple(str(name) for name in ([channels] if isinstance(channels, str) else channels))
    n_channels = width(cells)
    if len(names) != n_channels or len(set(names)) != n_channels:
        raise ValueError(
            f"expected {n_channels} different channel name{'s' * (n_channels != 1)}, got "
            f"{list(names)}; name each channel once"
        )
    return names


def as_meta(meta: pd.DataFrame | Mapping[str, Any] | None, n_runs: int) -> pd.DataFrame | None:
    if meta is None:
        return None
    frame = pd.DataFrame(dict(meta)) if isinstance(meta, Mapping) else meta.copy()
    if len(frame) != n_runs and len(frame.columns):
        raise ValueError(f"meta has {len(frame)} rows, but there are {n_runs} runs")
    return frame.reset_index(drop=True) if len(frame.columns) else None


def as_ended(ended: ArrayLike, n_runs: int) -> BoolArray:
    values = np.asarray(ended)
    if values.dtype != np.bool_ or values.shape not in ((), (n_runs,)):
        raise ValueError(
            f"ended must be True, False or {n_runs} of these, one for each run, got {ended!r}"
        )
    return np.array(np.broadcast_to(values, n_runs))


def row_key(key: tuple[Any, ...]) -> Any:
    if len(key) == 2 and key[1] is Ellipsis:  # scikit-learn asks for X[rows, ...]
        return key[0]
    raise IndexError(
        "index a TrajectoryArray by runs, X[rows], or by channel, X['name']; for steps use "
        ".prefix(t), .steps(t) or .padded()"
    )


def as_row_index(key: Any, n_runs: int) -> Any:
    if isinstance(key, slice):
        return key
    index = np.asarray(key)
    if index.size == 0 and index.dtype != np.bool_:
        return index.astype(np.int64)
    if index.dtype == np.bool_ and index.shape != (n_runs,):
        raise IndexError(f"a boolean index needs {n_runs} entries, got {index.shape}")
    if index.ndim != 1 or index.dtype.kind not in "biu":
        raise IndexError("index runs by whole numbers, a boolean mask or a slice")
    return index


def same_horizons(first: IntArray | None, second: IntArray | None) -> bool:
    return first is second if first is None or second is None else np.array_equal(first, second)
