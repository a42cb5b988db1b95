"""Does a value at a step depend on anything but the steps so far?

A prefix must get the values that its whole run gets, though nothing is known of it but its steps:
neither id nor horizon, nor meta, nor that the run has ended, nor the other runs beside it.
"""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from trajscore.core.array import TrajectoryArray
from trajscore.core.checks import check_trajectories
from trajscore.core.convert import as_table
from trajscore.core.ids import id_order
from trajscore.core.values import IntArray, number_of, run_label
from trajscore.core.within_runs import run_numbers, step_numbers

_TOLERANCE = 1e-6
_SAMPLE = 20
_FRESH = 2**62  # ids from here on belong to prefixes

_ADVICE = (
    "Compute a value from the steps so far: not from later steps, other runs, ids, meta, horizon "
    "or ended; and seed what is random in fit"
)

Transform = Callable[[Any], Any]
Runs = TrajectoryArray | list[Any]


def find_look_ahead(transform: Transform, X: Runs, whole: TrajectoryArray, seen: IntArray) -> str:
    """Say where the first `seen` steps of runs get other values than whole runs; "": nowhere.

    X are runs as `transform` takes them: a container, or a list of runs of a log. A run of a
    container that keeps all its steps keeps its end, which may be known at its last step.
    """
    with warnings.catch_warnings(action="ignore"):  # of prefixes, which are of no interest
        try:
            short = check_trajectories(transform(_prefix(X, seen)), allow_missing=True)
            if isinstance(X, TrajectoryArray) and not np.array_equal(short.lengths, seen):
                raise ValueError("the number of steps changed")
            values = as_table(short.cells)
            expected = as_table(whole.truncate(short.lengths).cells)
            if values.shape != expected.shape:
                raise ValueError("the number of values a step changed")
        except Exception as error:  # other people's code may raise anything
            kind = type(error).__name__
            return f"Its transform of the first steps of runs raises {kind}: {error}. {_ADVICE}"
    agree = np.isclose(values, expected, rtol=_TOLERANCE, atol=_TOLERANCE, equal_nan=True)
    if agree.all():
        return ""
    cell, column = np.argwhere(~agree)[0]
    row = int(run_numbers(short)[cell])
    return (
        f"At step {step_numbers(short)[cell]} of run {run_label(whole.ids[row])} it gives "
        f"{expected[cell, column]:.6g} to the whole run, but {values[cell, column]:.6g} to its "
        f"first {number_of(int(seen[row]), 'step')} alone. {_ADVICE}"
    )


def sample_look_ahead(transform: Transform, X: Runs, whole: TrajectoryArray) -> str:
    """Look at a few of the runs, each cut at some step; the order of rows does not matter."""
    lengths = whole.lengths
    fewest = 1
    if not isinstance(X, TrajectoryArray):
        # of conversations, in which each side has had a turn by then
        lengths = np.array([len(run.steps) for run in X])
        fewest = 3
    order = id_order(whole.ids)
    long = order[lengths[order] > fewest]
    if fewest == 1 and not len(long):
        long = order
    if not len(long):
        return ""
    rows = long[np.unique(np.linspace(0, len(long) - 1, _SAMPLE).astype(np.int64))]
    seen = np.random.default_rng(0).integers(fewest, np.maximum(lengths[rows], fewest + 1))
    sample = X[rows] if isinstance(X, TrajectoryArray) else [X[row] for row in rows.tolist()]
    return find_look_ahead(transform, sample, whole[rows], seen)


def warn_of_look_ahead(forecaster: Any, look_ahead: str) -> None:
    """Warn of look-ahead, if there is any, on behalf of the caller of `cross_fit_traces`."""
    if look_ahead:
        warnings.warn(
            f"{type(forecaster).__name__} would forecast other values while runs are under way, so "
            f"scores of these traces do not hold live. {look_ahead}",
            UserWarning,
            stacklevel=4,
        )


def _prefix(X: Runs, seen: IntArray) -> Runs:
    """Return the first steps of runs, of which nothing else is known."""
    if not isinstance(X, TrajectoryArray):
        return [type(run)(str(_FRESH + row), run.steps[: seen[row]]) for row, run in enumerate(X)]
    short = X.truncate(seen)
    return TrajectoryArray(
        short.cells,
        short.lengths,
        channels=X.channels,
        ids=(_FRESH + np.arange(len(X))).astype(X.ids.dtype.kind),
        ended=X.ended & (seen == X.lengths),
        missing="allow",
    )
