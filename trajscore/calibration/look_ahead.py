"""Does a value at a step depend on anything but the steps so far?

A prefix must get the values that its whole run gets, though nothing is known of it but its steps:
neither id nor horizon, nor meta, nor that the run has ended, nor the other runs beside it.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from trajscore.core.array import TrajectoryArray
from trajscore.core.checks import check_trajectories
from trajscore.core.ids import id_order
from trajscore.core.type_aliases import BoolArray, FloatArray, IntArray
from trajscore.core.values import number_of, run_label
from trajscore.core.within_runs import run_numbers, step_numbers

_TOLERANCE = 1e-6
_SAMPLE = 20
_FRESH = 2**62  # ids from here on belong to prefixes
_OF_A_RUN = ("outcome", "stop_reason", "stop_kind", "task", "trial", "meta", "scores", "extra")

_PARTS = {
    "ids": "the ids of the runs; do not read them",
    "meta": "meta; do not read what was not known before the first step",
    "horizon": "the horizon; do not read it unless it was known before the first step",
    "ended": "ended before the last step; read it at the last step alone",
}
_CAUSES = {
    **{part: f"The value depends on {advice}" for part, advice in _PARTS.items()},
    "several": "The value depends on several of ids, meta, horizon and ended; do not read them",
    "random": "The value is another one at each call; seed it in fit",
    "steps": (
        "The value depends on later steps, on the length of the run or on other runs; compute it "
        "from the steps so far"
    ),
}

Transform = Callable[[Any], Any]
Runs = TrajectoryArray | list[Any]


@dataclass(frozen=True)
class LookAhead:
    """Where a prefix gets another value than its whole run, and what makes the difference."""

    cause: str  # one of _CAUSES
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
        return f"{problem}. {_CAUSES[self.cause]}"


def find_look_ahead(
    transform: Transform, X: Runs, whole: TrajectoryArray, seen: IntArray
) -> LookAhead | None:
    """Compare the values of whole runs with those of their first `seen` steps; None: all agree.

    X are runs as `transform` takes them: a container, or a list of runs of a log. A run of a
    container that keeps all its steps keeps its end, which may be known at its last step.
    """

    def values(*known: str) -> tuple[TrajectoryArray, FloatArray]:
        short_values = check_trajectories(transform(_prefix(X, seen, known)), allow_missing=True)
        if isinstance(X, TrajectoryArray) and not np.array_equal(short_values.lengths, seen):
            raise ValueError("the number of steps changed")
        return short_values, _table(short_values)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # warnings about prefixes are of no interest
        try:
            short, short_values = values()
            expected = _table(whole.truncate(short.lengths))
            agree = _agree(short_values, expected)
        except Exception as error:  # other people's code may raise anything
            message = f"{type(error).__name__}: {error}"
            return LookAhead(_cause(values, None, whole), error=message)
        if agree.all():
            return None
        cause = _cause(values, short_values, whole)
    cell, column = np.argwhere(~agree)[0]
    row = int(run_numbers(short)[cell])
    return LookAhead(
        cause,
        run=whole.ids[row],
        step=int(step_numbers(short)[cell]),
        seen=int(seen[row]),
        whole=float(expected[cell, column]),
        prefix=float(short_values[cell, column]),
    )


def sample_look_ahead(transform: Transform, X: Runs, whole: TrajectoryArray) -> LookAhead | None:
    """Look at a few of the runs, each cut at some step; the order of rows does not matter."""
    lengths, fewest = whole.lengths, 1
    if not isinstance(X, TrajectoryArray):
        lengths, fewest = np.array([len(run.steps) for run in X]), 3  # each side has had a turn
    order = id_order(whole.ids)
    long = order[lengths[order] > fewest]
    rows = long if len(long) or fewest > 1 else order
    if not len(rows):
        return None
    rows = rows[np.unique(np.linspace(0, len(rows) - 1, _SAMPLE).astype(np.int64))]
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


def _prefix(X: Runs, seen: IntArray, known: Sequence[str]) -> Runs:
    """Return the first steps of runs, of which only these parts are known."""
    if not isinstance(X, TrajectoryArray):
        return [
            _prefix_of_log(run, n_steps, row, known)
            for row, (run, n_steps) in enumerate(zip(X, seen, strict=True))
        ]
    short = X.truncate(seen)
    fresh = _FRESH + np.arange(len(X))
    return TrajectoryArray(
        short.cells,
        short.lengths,
        channels=X.channels,
        ids=X.ids if "ids" in known else fresh.astype(X.ids.dtype.kind),
        horizon=X.horizon if "horizon" in known else None,
        meta=X.meta if "meta" in known else None,
        ended=X.ended if "ended" in known else X.ended & (seen == X.lengths),
        missing="allow",
    )


def _prefix_of_log(run: Any, seen: int, row: int, known: Sequence[str]) -> Any:
    changed: dict[str, Any] = {"steps": run.steps[:seen]}
    if "ids" not in known:
        changed["id"] = str(_FRESH + row)
    if "meta" not in known:
        empty = type(run)(run.id)
        changed |= {name: getattr(empty, name) for name in _OF_A_RUN}
    return replace(run, **changed)


def _cause(
    values: Callable[..., Any], short_values: FloatArray | None, whole: TrajectoryArray
) -> str:
    """Return what makes the difference: a part that alone, or with others, takes it away."""
    if short_values is not None and not _agree(values()[1], short_values).all():
        return "random"
    for known in (*((part,) for part in _PARTS), tuple(_PARTS)):
        try:
            short, again = values(*known)
            agree = _agree(again, _table(whole.truncate(short.lengths)))
        except Exception:  # it needs another part
            continue
        if agree.all():
            return known[0] if len(known) == 1 else "several"
    return "steps"


def _table(X: TrajectoryArray) -> FloatArray:
    return X.cells.reshape(len(X.cells), X.n_channels)


def _agree(first: FloatArray, second: FloatArray) -> BoolArray:
    if first.shape != second.shape:
        raise ValueError("the number of values a step changed")
    return np.isclose(first, second, rtol=_TOLERANCE, atol=_TOLERANCE, equal_nan=True)
