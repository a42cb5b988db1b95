"""Steps with their weights: sums of scores of each run, traces collapsed, and steps sorted.

Every score of a set is made of weighted sums of the scores of its runs.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from trajscore.core.array import TrajectoryArray
from trajscore.core.score_families import get_family
from trajscore.core.ties import group_ties
from trajscore.core.type_aliases import AnyArray, FloatArray, IntArray
from trajscore.core.values import refuse_first, run_label
from trajscore.core.weights import StepWeights
from trajscore.core.within_runs import last_cells, step_numbers

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
        if weight is None:
            weight = np.ones(len(self.total))
        mean = self.mean(weight)
        unit = float(np.average(self.divisor, weights=weight))
        return mean + (self.total - mean * self.divisor) / unit

    def __sub__(self, other: RunSums) -> RunSums:
        return RunSums(self.total - other.total, self.divisor)

    def __getitem__(self, rows: Any) -> RunSums:
        return RunSums(self.total[rows], self.divisor[rows])


def run_sums(
    y: ArrayLike, X: TrajectoryArray, score: Any, weights: StepWeights, *, normalize: bool = True
) -> RunSums:
    """Sum over t of w_t S(F_t, y) for each trusted run, in chunks of runs; y lies in [0, 1]."""
    family = get_family(score)
    run_weights = weights.of(X)
    outcomes = np.asarray(y)
    totals = np.empty(len(X))
    for rows in row_chunks(X.offsets):
        cells = X.cells[X.offsets[rows.start] : X.offsets[rows.stop]]
        scores = score_cells(family, cells, outcomes[rows], run_weights.lengths[rows])
        totals[rows] = run_weights.sums(scores, rows)
    return RunSums(totals, run_weights.divisor(normalize))


def contrast_sums(X: TrajectoryArray, score: Any, weights: StepWeights) -> RunSums:
    """Return what success is worth over failure on each run's prefix: the score's slope in q_Z."""
    success = run_sums(np.ones(len(X)), X, score, weights)
    return success - run_sums(np.zeros(len(X)), X, score, weights)


def row_chunks(offsets: IntArray, n_cells: int = _CHUNK_CELLS) -> list[slice]:
    """Cut runs into slices of about `n_cells` cells, none empty; a longer run is one by itself."""
    marks = np.arange(0, offsets[-1], n_cells)
    edges = np.unique(np.append(np.searchsorted(offsets, marks), len(offsets) - 1))
    return [slice(int(a), int(b)) for a, b in pairwise(edges)]


def score_cells(family: Any, p: FloatArray, y: AnyArray, lengths: IntArray | int = 1) -> FloatArray:
    """Score cells against outcomes in [0, 1], each of `lengths` cells; may be written to."""
    if ((y == 0) | (y == 1)).all():
        return family.observed(p, np.repeat(1.0 - y, lengths))
    label = np.repeat(y.astype(float), lengths)
    return weighted_score(label, family.success(p)) + weighted_score(1 - label, family.failure(p))


def weighted_score(weight: FloatArray, score: FloatArray) -> FloatArray:
    """Weigh scores of an outcome; one that never occurs costs nothing, however bad its score."""
    return np.multiply(weight, score, out=np.zeros_like(weight), where=weight > 0)


AGGREGATORS = ("last", "mean", "min", "weighted")
_EARLY = StepWeights("early")


def collapse(X: TrajectoryArray, phi: str, weights: StepWeights = _EARLY) -> FloatArray:
    """Collapse trusted traces of one channel (Appendix F.2 of the TPS paper)."""
    if not len(X):
        return np.empty(0)
    if phi == "last":
        return X.cells[last_cells(X)]
    if phi == "min":
        return np.minimum.reduceat(X.cells, X.offsets[:-1])
    if phi == "mean":
        weights = StepWeights("uniform")
    return weighted_mean(X, weights.of(X).cells())


def weighted_mean(X: TrajectoryArray, w: FloatArray) -> FloatArray:
    """Mean of each trusted run's values, which have the weights w."""
    starts = X.offsets[:-1]
    total = np.add.reduceat(w, starts)
    refuse_first(
        total == 0,
        lambda row: (
            f"run {run_label(X.ids[row])} (row {row}): its steps weigh nothing, so they have no "
            f"weighted mean; give weights above zero at step 1, or another aggregator"
        ),
    )
    mean = np.add.reduceat(w * X.cells, starts) / total
    # rounding must not carry a mean outside the values it averages, nor split ties of constants
    lowest = np.minimum.reduceat(X.cells, starts)
    return np.clip(mean, lowest, np.maximum.reduceat(X.cells, starts))


# With more steps, forecasts that share one of as many cells are ties, so that none need be sorted:
# that moves metrics by less than 2e-6 (benchmarks/scale.py), unless many are in one cell.
MANY = 1 << 22
_N_CELLS = 1 << 20
_MOST_IN_A_CELL = 1e-3

PART_STARTS = {"early": 1, "middle": 4, "late": 11}
"""First step of each part of a run; never thirds of it, as its length is not known before its end.
"""


@dataclass(frozen=True)
class WeightedSteps:
    """Steps in the order of their runs: weight (step times run weight), part, and tie."""

    X: TrajectoryArray
    success: FloatArray  # of the runs
    weights: StepWeights
    weight: FloatArray

    @cached_property
    def part(self) -> AnyArray:
        """0 early, 1 middle, 2 late: see `step_parts`."""
        return step_parts(self.X)

    @cached_property
    def tie(self) -> AnyArray:
        """Place of each forecast among the distinct ones, for which all are sorted."""
        return _ties(self.X.cells)

    @property
    def n_ties(self) -> int:
        """Number of distinct forecasts."""
        return int(self.tie.max(initial=-1)) + 1

    def by_tie(self, values: FloatArray) -> FloatArray:
        """Add up values of the steps by their forecast."""
        return np.bincount(self.tie, values, self.n_ties).astype(float, copy=False)


def weighted_steps(
    success: FloatArray,
    X: TrajectoryArray,
    weights: StepWeights,
    run_weight: FloatArray | None = None,
) -> WeightedSteps:
    """Gather the steps of trusted runs; `success` and `run_weight` (None: ones) are of runs."""
    w = weights.of(X).cells()
    if run_weight is not None:
        w *= np.repeat(run_weight, X.lengths)
    return WeightedSteps(X, success, weights, w)


def _ties(forecasts: FloatArray) -> AnyArray:
    """Return the place of each forecast among the distinct ones."""
    if len(forecasts) > MANY:
        # on this scale chances are as easily told apart near 0 and 1 as elsewhere
        cells = np.arcsin(np.sqrt(forecasts))
        cells *= _N_CELLS / (np.pi / 2)
        cell = cells.astype(np.int32)
        if np.bincount(cell).max() <= _MOST_IN_A_CELL * len(cell):
            return cell
    _, tie = group_ties(forecasts)
    return tie


def step_parts(X: TrajectoryArray) -> AnyArray:
    """Return the place in `PART_STARTS` of each step, which depends on its number alone."""
    place = np.searchsorted(list(PART_STARTS.values()), step_numbers(X), side="right")
    return place.astype(np.int8) - np.int8(1)
