"""Parts of several containers put after one another, or side by side."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from trajscore.core.convert import Parts
from trajscore.core.ids import as_ids
from trajscore.core.parts import as_channels
from trajscore.core.type_aliases import IntArray
from trajscore.core.values import as_horizon
from trajscore.core.within_runs import offsets_of


def joined_parts(several: Sequence[Parts]) -> Parts:
    """Put runs after one another: their channels must be the same."""
    channels = {parts["channels"] for parts in several}
    if len(channels) > 1:
        raise ValueError(
            f"concat needs the same channels everywhere, got {sorted(map(str, channels))}"
        )
    ids = np.concatenate([parts["ids"].astype(object) for parts in several])
    lengths = [np.diff(parts["offsets"]) for parts in several]
    return {
        "cells": np.concatenate([parts["cells"] for parts in several]),
        "offsets": offsets_of(np.concatenate(lengths)),
        "horizon": _joined_horizons(several, lengths),
        "ids": as_ids(ids, len(ids)),
        "ended": np.concatenate([parts["ended"] for parts in several]),
        "channels": channels.pop(),
        "meta": _joined_meta(several),
        "n_steps": max(parts["n_steps"] for parts in several),
    }


def stacked_parts(several: Sequence[Parts], channels: Sequence[str] | None) -> Parts:
    """Put the channels of the same runs side by side."""
    cells = np.concatenate(
        [parts["cells"].reshape(len(parts["cells"]), -1) for parts in several], axis=1
    )
    names = [name for parts in several for name in (parts["channels"] or ("value",))]
    return several[0] | {
        "cells": cells,
        "channels": as_channels(channels or _distinct(names), cells),
        "horizon": _common_horizon(several),
        "ended": np.logical_or.reduce([parts["ended"] for parts in several]),
    }


def _joined_horizons(several: Sequence[Parts], lengths: Sequence[IntArray]) -> IntArray | None:
    """Put horizons after one another: lengths where none were given, unless none were anywhere."""
    horizons = [parts["horizon"] for parts in several]
    if all(horizon is None for horizon in horizons):
        return None
    return np.concatenate([as_horizon(*both) for both in zip(horizons, lengths, strict=True)])


def _common_horizon(several: Sequence[Parts]) -> IntArray | None:
    """Return the horizons on which all containers agree that have any."""
    horizons = [(k, parts["horizon"]) for k, parts in enumerate(several)]
    horizons = [(k, horizon) for k, horizon in horizons if horizon is not None]
    for k, other in horizons[1:]:
        before, first = horizons[0]
        if not np.array_equal(first, other):
            row = int(np.argmax(first != other))
            raise ValueError(
                f"row {row} has horizon {first[row]} in container {before}, but {other[row]} in "
                f"container {k}; a run has one horizon, so build both with the same"
            )
    return horizons[0][1] if horizons else None


def _joined_meta(several: Sequence[Parts]) -> pd.DataFrame | None:
    if all(parts["meta"] is None for parts in several):
        return None
    frames = [
        pd.DataFrame(index=pd.RangeIndex(len(parts["ids"])))
        if parts["meta"] is None
        else parts["meta"]
        for parts in several
    ]
    # frames without a run would only blur the dtypes, and newer pandas warns of them
    with_runs = [frame for frame in frames if len(frame)]
    return pd.concat(with_runs or frames, ignore_index=True)


def _distinct(names: Sequence[str]) -> list[str]:
    """Number names that occur more than once: value, value -> value0, value1."""
    return [
        f"{name}{names[:j].count(name)}" if names.count(name) > 1 else name
        for j, name in enumerate(names)
    ]
