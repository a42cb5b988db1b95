"""Weighted sums of the scores of each run, of which every score of a set is made."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from trajscore.core.array import TrajectoryArray
from trajscore.core.score_families import get_family
from trajscore.core.type_aliases import FloatArray, IntArray
from trajscore.core.values import as_horizon
from trajscore.core.weights import StepWeights

# Cells worked on at a time: all temporaries of a chunk together stay inside a core's cache.
_CHUNK_CELLS = 1 << 16
NOTHING_COUNTS = "no step has a positive weight; at least one must count"


@dataclass(frozen=True)
class RunSums:
    """Weighted sum of scores of each run, and what the run adds to the divisor of a set's score.

    >>> sums = RunSums(np.array([-1.0, -3.0]), np.array([1.0, 2.0]))
    >>> round(sums.mean(np.ones(2)), 3), sums.samples().round(3)
    (-1.333, array([-1.111, -1.556]))
    """

    total: FloatArray
    divisor: FloatArray

    def mean(self, weight: FloatArray) -> float:
        """Score of the set, of which there must be some runs."""
        if not len(self.total):
            raise ValueError("there are no runs to score; give at least one")
        divisor = float((weight * self.divisor).sum())
        if not divisor:
            raise ValueError(NOTHING_COUNTS)
        return float((weight * self.total).sum() / divisor)

    def samples(self, weight: FloatArray | None = None) -> FloatArray:
        """Pseudo-values, whose mean is the score and which vary as it does."""
        if not len(self.total) or (self.divisor == 1).all():
            return self.total
        weight = np.ones(len(self.total)) if weight is None else weight
        mean = self.mean(weight)
        unit = float(np.average(self.divisor, weights=weight))
        return np.asarray(mean + (self.total - mean * self.divisor) / unit)

    def __sub__(self, other: RunSums) -> RunSums:
        return RunSums(self.total - other.total, self.divisor)

    def __getitem__(self, rows: Any) -> RunSums:
        return RunSums(self.total[rows], self.divisor[rows])


def run_sums(
    y: ArrayLike, X: TrajectoryArray, score: Any, weights: StepWeights, *, normalize: bool = True
) -> RunSums:
    """Sum over t of w_t S(F_t, y) for each trusted run, in chunks of runs; y lies in [0, 1]."""
    family, of_runs = get_family(score), weights.of(X)
    outcomes, offsets = np.asarray(y), X.offsets
    out = np.empty(len(X))
    for rows in row_chunks(offsets):
        cells = X.cells[offsets[rows.start] : offsets[rows.stop]]
        scored = score_cells(family, cells, outcomes[rows], of_runs.lengths[rows])
        out[rows] = of_runs.sums(scored, rows)
    return RunSums(out, of_runs.divisor(normalize))


def contrast_sums(X: TrajectoryArray, score: Any, weights: StepWeights) -> RunSums:
    """Return what success is worth over failure on each run's prefix: the score's slope in q_Z."""
    success = run_sums(np.ones(len(X)), X, score, weights)
    return success - run_sums(np.zeros(len(X)), X, score, weights)


def beyond_end(X: TrajectoryArray) -> NDArray[np.bool_]:
    """Whether the horizon of each run lies beyond its last step."""
    return np.asarray(as_horizon(X.horizon, X.lengths) > X.lengths)


def row_chunks(offsets: IntArray, n_cells: int = _CHUNK_CELLS) -> list[slice]:
    """Cut runs into slices of about `n_cells` cells, none empty; a longer run is one by itself."""
    marks = np.arange(0, offsets[-1], n_cells)
    edges = np.unique(np.append(np.searchsorted(offsets, marks), len(offsets) - 1))
    return [slice(int(a), int(b)) for a, b in pairwise(edges)]


def score_cells(
    family: Any, p: FloatArray, y: NDArray[Any], lengths: IntArray | int = 1
) -> FloatArray:
    """Score cells against outcomes in [0, 1], each of `lengths` cells; may be written to."""
    if ((y == 0) | (y == 1)).all():
        return np.asarray(family.observed(p, np.repeat(1.0 - y, lengths)))
    label = np.repeat(y.astype(np.float64), lengths)
    success, failure = family.success(p), family.failure(p)
    return earned(label, success) + earned(1 - label, failure)


def earned(weight: FloatArray, score: FloatArray) -> FloatArray:
    """Weigh scores of an outcome; one that never occurs costs nothing, however bad its score."""
    return np.multiply(weight, score, out=np.zeros_like(weight), where=weight > 0)
