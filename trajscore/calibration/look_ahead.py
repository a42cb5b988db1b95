"""Does a value at a step depend on anything but the steps so far?

A prefix must get the values that its whole run gets, though nothing is known of it but its steps:
neither id nor horizon, nor meta, nor that the run has ended, nor the other runs beside it.
"""

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from trajscore.core.array import TrajectoryArray
from trajscore.core.checks import check_trajectories
from trajscore.core.convert import as_table
from trajscore.core.ids import id_order
from trajscore.core.type_aliases import IntArray
from trajscore.core.values import number_of, run_label
from trajscore.core.within_runs import run_numbers, step_numbers

_TOLERANCE = 1e-6
_SAMPLE = 20
_FRESH = 2**62  # ids from here on belong to prefixes
# fields of a run of a log that are empty while it is under way
_UNKNOWN = ("outcome", "stop_reason", "stop_kind", "task", "trial", "meta", "scores", "extra")

_ADVICE = (
    "Compute a value from the steps so far: not from later steps, other runs, ids, meta, horizon "
    "or ended; and seed what is random in fit"
)

Transform = Callable[[Any], Any]
Runs = TrajectoryArray | list[Any]


@dataclass(frozen=True)
class LookAhead:
    """Where a prefix gets another value than its whole run."""

    run: Any = None  # its id
    step: int = 0  # of the value
    seen: int = 0  # number of steps of the prefix
    whole: float = np.nan  # the value in the whole run
    prefix: float = np.nan
    error: str = ""  # what the transform of prefixes raised instead

    def __str__(self) -> str:
        if self.error:
            problem = f"Its transform of the first steps of runs raises {self.error}"
        else:
            problem = (
                f"At step {self.step} of run {run_label(self.run)} it gives {self.whole:.6g} to "
                f"the whole run, but {self.prefix:.6g} to its first "
                f"{number_of(self.seen, 'step')} alone"
            )
        return f"{problem}. {_ADVICE}"


def find_look_ahead(
    transform: Transform, X: Runs, whole: TrajectoryArray, seen: IntArray
) -> LookAhead | None:
    """Compare the values of whole runs with those of their first `seen` steps; None: all agree.

    X are runs as `transform` takes them: a container, or a list of runs of a log. A run of a
    container that keeps all its steps keeps its end, which may be known at its last step.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # warnings about prefixes are of no interest
        try:
            short = check_trajectories(transform(_prefix(X, seen)), allow_missing=True)
            if isinstance(X, TrajectoryArray) and not np.array_equal(short.lengths, seen):
                raise ValueError("the number of steps changed")
            values = as_table(short.cells)
            expected = as_table(whole.truncate(short.lengths).cells)
            if values.shape != expected.shape:
                raise ValueError("the number of values a step changed")
        except Exception as error:  # other people's code may raise anything
            return LookAhead(error=f"{type(error).__name__}: {error}")
    agree = np.isclose(values, expected, rtol=_TOLERANCE, atol=_TOLERANCE, equal_nan=True)
    if agree.all():
        return None
    cell, column = np.argwhere(~agree)[0]
    row = int(run_numbers(short)[cell])
    return LookAhead(
        run=whole.ids[row],
        step=int(step_numbers(short)[cell]),
        seen=int(seen[row]),
        whole=float(expected[cell, column]),
        prefix=float(values[cell, column]),
    )


def sample_look_ahead(transform: Transform, X: Runs, whole: TrajectoryArray) -> LookAhead | None:
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
        return None
    rows = long[np.unique(np.linspace(0, len(long) - 1, _SAMPLE).astype(np.int64))]
    seen = np.random.default_rng(0).integers(fewest, np.maximum(lengths[rows], fewest + 1))
    sample = X[rows] if isinstance(X, TrajectoryArray) else [X[row] for row in rows.tolist()]
    return find_look_ahead(transform, sample, whole[rows], seen)


def warn_of_look_ahead(forecaster: Any, look_ahead: LookAhead | None) -> None:
    """Warn of look-ahead, if there is any, on behalf of the caller of `cross_fit_traces`."""
    if look_ahead is not None:
        warnings.warn(
            f"{type(forecaster).__name__} would forecast other values while runs are under way, so "
            f"scores of these traces do not hold live. {look_ahead}",
            UserWarning,
            stacklevel=4,
        )


def _prefix(X: Runs, seen: IntArray) -> Runs:
    """Return the first steps of runs, of which nothing else is known."""
    if not isinstance(X, TrajectoryArray):
        return [_prefix_of_log(run, seen[row], str(_FRESH + row)) for row, run in enumerate(X)]
    short = X.truncate(seen)
    return TrajectoryArray(
        short.cells,
        short.lengths,
        channels=X.channels,
        ids=(_FRESH + np.arange(len(X))).astype(X.ids.dtype.kind),
        ended=X.ended & (seen == X.lengths),
        missing="allow",
    )


def _prefix_of_log(run: Any, seen: int, name: str) -> Any:
    empty = type(run)(name)
    return replace(
        run, id=name, steps=run.steps[:seen], **{part: getattr(empty, part) for part in _UNKNOWN}
    )
