"""What is known of a run at each of its steps, as rows of a feature matrix."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from trajscore.core.array import TrajectoryArray
from trajscore.core.type_aliases import FloatArray
from trajscore.core.within_runs import running_sum, step_numbers

Features = Callable[[TrajectoryArray], Any] | None


def prefix_features(X: TrajectoryArray) -> FloatArray:
    """Step number, and for each channel its latest value, its mean so far and its first value."""
    values = X.cells.reshape(len(X.cells), X.n_channels)
    step = step_numbers(X)
    mean = running_sum(X, values) / step[:, None]
    first = np.repeat(values[X.offsets[:-1]], X.lengths, axis=0)
    columns = np.stack([values, mean, first], axis=2).reshape(len(values), 3 * values.shape[1])
    return np.column_stack([step, columns])


def cell_features(X: TrajectoryArray, features: Features) -> FloatArray:
    """Return a finite feature matrix with one row a step; None is `prefix_features`."""
    if features is not None and not callable(features):
        raise ValueError(f"features must be a function of the runs, got {features!r}")
    table = np.asarray((features or prefix_features)(X), dtype=np.float64)
    if table.ndim == 1:
        table = table[:, None]
    if table.shape[0] != len(X.cells):
        raise ValueError(
            f"features must give {len(X.cells)} rows, one for each step of each run, got "
            f"{table.shape[0]}"
        )
    bad = ~np.isfinite(table).all(axis=1)
    if bad.any():
        raise ValueError(f"{X.place(int(np.argmax(bad)))}: a feature is not a finite number")
    return table
