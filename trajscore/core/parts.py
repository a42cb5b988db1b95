"""The parts of a container beside its values, checked; and those of several containers joined."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from trajscore.core.convert import Parts
from trajscore.core.ids import as_ids
from trajscore.core.type_aliases import BoolArray, FloatArray, IntArray
from trajscore.core.values import as_horizon, number_of
from trajscore.core.within_runs import offsets_of


def width(cells: FloatArray) -> int:
    return 1 if cells.ndim == 1 else cells.shape[1]


def as_table(cells: NDArray[Any]) -> NDArray[Any]:
    """Return cells as a table of one column a channel; "-1" would not do without a cell."""
    return cells.reshape(len(cells), width(cells))


def as_channels(channels: Sequence[str] | None, cells: FloatArray) -> tuple[str, ...] | None:
    if channels is None:
        return None if cells.ndim == 1 else tuple(f"channel{j}" for j in range(cells.shape[1]))
    if not isinstance(channels, Iterable):
        raise ValueError(f"channels must be names, got {channels!r}")
    names = tuple(str(name) for name in ([channels] if isinstance(channels, str) else channels))
    n_channels = width(cells)
    if len(names) != n_channels or len(set(names)) != n_channels:
        raise ValueError(
            f"expected {number_of(n_channels, 'different channel name')}, got "
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


def joined_parts(several: Sequence[Parts]) -> Parts:
    """Put runs after one another: their channels must be the same."""
    channels = {parts["channels"] for parts in several}
    if len(channels) > 1:
        raise ValueError(
            f"concat needs the same channels everywhere, got {sorted(map(str, channels))}"
        )
    ids = np.concatenate([parts["ids"].astype(object) for parts in several])
    lengths, joined_horizons = [np.diff(parts["offsets"]) for parts in several], None
    if any(parts["horizon"] is not None for parts in several):  # lengths, where none were given
        horizons = [parts["horizon"] for parts in several]
        joined_horizons = np.concatenate([*map(as_horizon, horizons, lengths)])
    return {
        "cells": np.concatenate([parts["cells"] for parts in several]),
        "offsets": offsets_of(np.concatenate(lengths)),
        "horizon": joined_horizons,
        "ids": as_ids(ids, len(ids)),
        "ended": np.concatenate([parts["ended"] for parts in several]),
        "channels": channels.pop(),
        "meta": _joined_meta(several),
    }


def stacked_parts(several: Sequence[Parts], channels: Sequence[str] | None) -> Parts:
    """Put the channels of the same runs side by side."""
    cells = np.concatenate([as_table(parts["cells"]) for parts in several], axis=1)
    names = [name for parts in several for name in (parts["channels"] or ("value",))]
    return several[0] | {
        "cells": cells,
        "channels": as_channels(channels or _distinct(names), cells),
        "horizon": _common_horizon(several),
        "ended": np.logical_or.reduce([parts["ended"] for parts in several]),
    }


def _common_horizon(several: Sequence[Parts]) -> IntArray | None:
    """Return the horizons on which all containers agree that have any."""
    horizons = [parts["horizon"] for parts in several if parts["horizon"] is not None]
    for other in horizons[1:]:
        if not np.array_equal(horizons[0], other):
            row = int(np.argmax(horizons[0] != other))
            raise ValueError(
                f"row {row} has horizons {horizons[0][row]} and {other[row]}; give one"
            )
    return horizons[0] if horizons else None


def _joined_meta(several: Sequence[Parts]) -> pd.DataFrame | None:
    if all(parts["meta"] is None for parts in several):
        return None
    frames = [pd.DataFrame(parts["meta"], pd.RangeIndex(len(parts["ids"]))) for parts in several]
    # frames without a run would only blur the dtypes, and newer pandas warns of them
    with_runs = [frame for frame in frames if len(frame)]
    return pd.concat(with_runs or frames, ignore_index=True)


def _distinct(names: Sequence[str]) -> list[str]:
    """Number names that occur more than once: value, value -> value0, value1."""
    return [
        f"{name}{names[:j].count(name)}" if names.count(name) > 1 else name
        for j, name in enumerate(names)
    ]
