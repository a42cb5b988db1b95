"""The runs of a fleet: what is watched of each, which have forecasts, and which came before."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Any
from zlib import crc32

import numpy as np
from numpy.typing import ArrayLike

from trajscore.calibration.forecaster import Forecaster
from trajscore.core.array import TrajectoryArray
from trajscore.core.estimator import parts_of
from trajscore.core.ids import are_default_ids
from trajscore.core.outcomes import CENSORED, check_outcomes
from trajscore.core.type_aliases import BoolArray, FloatArray, IntArray
from trajscore.core.within_runs import whole_runs

LEAST_RUNS = 50  # of a reference
_MOST_KEPT = 100_000  # runs by which those that are sent again are known
_LEAST_ALIKE = 20  # values of a set of runs that are not those of another by chance


@dataclass
class Run:
    """What is watched of a run."""

    number: int
    id: Any
    length: float
    forecast: FloatArray  # of each predictor; NaN where it has none
    cells: IntArray  # of the length and, where it has any, the forecasts, on grids
    outcome: int  # -1 while it is not known

    @property
    def has_forecast(self) -> bool:
        """Whether it has forecasts."""
        return len(self.cells) > 1


Runs = list[Run]


def with_forecasts(X: TrajectoryArray, forecaster: Any) -> BoolArray:
    """Whether each run can have a forecast: it has a step, and all that is needed there."""
    parts = [] if forecaster is None else parts_of(forecaster)
    if any(part._takes_missing() for part in parts if isinstance(part, Forecaster)):
        return X.lengths > 0
    return whole_runs(X)


def run_hashes(X: TrajectoryArray) -> list[int]:
    """Return a hash of each run's id and values."""
    values = np.split(X.cells, X.offsets[1:-1])
    return [
        crc32(str(label).encode()) << 32 | crc32(cells.tobytes())
        for label, cells in zip(X.ids.tolist(), values, strict=True)
    ]


@dataclass
class EarlierRuns:
    """The runs of earlier updates, by their ids and values, to know those that are sent again."""

    hashes: OrderedDict[Any, None] = field(default_factory=OrderedDict)  # the oldest first

    def are_new(self, X: TrajectoryArray) -> BoolArray:
        """Tell the runs that no earlier update had, and remember them."""
        hashes: list[Any] = run_hashes(X)
        is_default = are_default_ids(X.ids)  # which do not identify a run, but all of a batch do
        if is_default:
            of_all = crc32(np.append(X.lengths, X.cells).tobytes())
            hashes = [(of_all, own) for own in hashes]
        is_new = np.ones(len(X), dtype=bool)
        for row, own in enumerate(hashes):
            is_new[row] = own not in self.hashes
            self.hashes[own] = None
        while len(self.hashes) > _MOST_KEPT:
            self.hashes.popitem(last=False)
        return is_new | (is_default and len(X.cells) < _LEAST_ALIKE)


def known_outcomes(y: ArrayLike | None, X: TrajectoryArray) -> IntArray:
    """Outcomes; without any, all are unobserved."""
    if y is None:
        return np.full(len(X), CENSORED)
    return check_outcomes(y, X, allow_soft=False)


def check_reference(n_tasks: int, y: IntArray | None) -> None:
    if n_tasks < LEAST_RUNS:
        raise ValueError(
            f"the reference has {n_tasks} runs of different tasks and needs {LEAST_RUNS}; give "
            f"more of them, or if runs of one task are independent, let each be its own group "
            f"(--group with the column of run ids)"
        )
    if y is None:
        return
    for outcome, name in ((1, "success"), (0, "failure")):
        if not (y == outcome).any():
            raise ValueError(
                f"the reference has no {name}; give runs of both outcomes, or no outcomes"
            )
