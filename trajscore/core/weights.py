"""Step weights, and what is made of steps by them: sums of scores of runs, traces collapsed.

A weight is a function of the step's number. It is known when the forecast is made, so a set of runs
of any lengths is scored properly (docs/theorem.rst). Only ``horizon="own"``, the convention of the
paper, divides the weights of a run by their sum over its own length, which nobody knows before the
run ends. Every score of a set is made of weighted sums of the scores of its runs.
"""

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from trajscore.core.array import TrajectoryArray
from trajscore.core.errors import ArgumentError
from trajscore.core.score_families import get_family
from trajscore.core.ties import group_ties
from trajscore.core.values import (
    LARGEST_HORIZON,
    AnyArray,
    ArrayLike,
    FloatArray,
    IntArray,
    as_horizon,
    as_lengths,
    is_count,
    number_of,
    refuse_first,
    run_label,
    several,
)
from trajscore.core.within_runs import last_cells, offsets_of, step_numbers

OWN = "own"
"""The horizon of each run is its own length, or its own horizon: the paper's convention."""

_RAMPS: dict[str, Callable[[FloatArray], FloatArray]] = {
    "early": lambda t: 1 / np.sqrt(t),
    "uniform": np.ones_like,
    "linear_front": lambda t: t,  # of steps counted from the horizon back
    "exponential_front": lambda t: np.exp2(1 - t),
    "linear_back": lambda t: t,
}
_FROM_END = "linear_front"

WEIGHT_SCHEDULES = tuple(_RAMPS)
"""Names of the built-in schedules."""

Horizon = int | str | None


@dataclass(frozen=True)
class StepWeights:
    """How much each step counts: a schedule, and the horizon over which it is taken."""

    schedule: str | Callable[[Any], Any] = "early"
    horizon: Horizon = None

    @property
    def is_own(self) -> bool:
        """Whether the weights of a run add up to one over its own horizon."""
        return self.horizon == OWN

    @property
    def schedule_name(self) -> str:
        """The name of the schedule."""
        if isinstance(self.schedule, str):
            return self.schedule
        return str(getattr(self.schedule, "__name__", repr(self.schedule)))

    @property
    def name(self) -> str:
        """The name under which they are reported."""
        if self.horizon is None:
            return self.schedule_name
        return f"{self.schedule_name}, horizon={self.horizon!r}"

    def ramp(self, n: int) -> FloatArray:
        """Return the weights of steps 1, ..., n before they are divided by their sum."""
        if callable(self.schedule):
            return _called(self.schedule, n)
        return _RAMPS[self.schedule](np.arange(1.0, n + 1))

    def table(self, longest: int) -> FloatArray:
        """Weights of steps 1, ..., `longest`, for ``horizon="own"`` before they are divided."""
        if not isinstance(self.horizon, int):
            return self.ramp(longest)
        weights = self.ramp(self.horizon)
        weights = weights / weights.sum()
        if self.schedule == _FROM_END:
            weights = weights[::-1]
        return np.append(weights, np.zeros(longest))[:longest]

    def of(self, X: Any) -> "RunWeights":
        """Weights of the steps of a container's runs."""
        return RunWeights(self, X.lengths, X.horizon)


Weights = str | Callable[[Any], Any] | StepWeights


class RunWeights:
    """Weights of the steps of some runs, which have `lengths`."""

    def __init__(
        self, weights: StepWeights, lengths: IntArray, own_horizon: ArrayLike | None
    ) -> None:
        self._weights = weights
        self.lengths = lengths
        self._horizon = lengths
        if weights.is_own:
            self._horizon = as_horizon(own_horizon, lengths)

    @cached_property
    def _table(self) -> FloatArray:
        """Weight of each step number, over the own horizons before it is divided by their sum."""
        return self._weights.table(int(self._horizon.max(initial=0)))

    @cached_property
    def _sums(self) -> FloatArray:
        """Sum of the table up to each run's horizon, or its length."""
        sums = np.append(0.0, np.cumsum(self._table))[self._horizon]
        if self._weights.is_own and not sums.all():
            T = int(self._horizon[np.argmin(sums)])
            raise ValueError(f"weights are all zero over a horizon of {T}; one step must count")
        return sums

    def _places(self, rows: slice) -> tuple[IntArray, IntArray]:
        """Place in the table of each step's weight, run after run, and where the runs start."""
        lengths = self.lengths[rows]
        starts = offsets_of(lengths)
        place = np.arange(starts[-1])
        place -= np.repeat(starts[:-1], lengths)
        if self._weights.is_own and self._weights.schedule == _FROM_END:
            place = np.repeat(self._horizon[rows] - 1, lengths) - place
        return place, starts

    def cells(self, rows: slice = slice(None)) -> FloatArray:
        """Weight of each step, run after run; `rows` is a slice of the runs."""
        weights = self._table[self._places(rows)[0]]
        if self._weights.is_own:
            weights /= np.repeat(self._sums[rows], self.lengths[rows])
        return weights

    def sums(self, values: FloatArray, rows: slice = slice(None)) -> FloatArray:
        """Weighted sum of each run's values, one a step of these runs."""
        place, starts = self._places(rows)
        # as a sparse matrix of runs by steps, times the weights of the steps: one pass
        steps = csr_array((values, place, starts), shape=(len(starts) - 1, len(self._table)))
        sums = steps @ self._table
        if self._weights.is_own:
            sums /= self._sums[rows]
        return sums

    @property
    def total(self) -> FloatArray:
        """Sum of the weights of each run's steps."""
        if self._weights.is_own:
            return self.sums(np.ones(int(self.lengths.sum())))
        return self._sums

    def divisor(self, normalize: bool = True) -> FloatArray:
        """What a run adds to the divisor of a set's score: its weight, or one run.

        By the paper's convention, and without `normalize`, a score is a mean over runs.
        """
        if self._weights.is_own or not normalize:
            return np.ones(len(self.lengths))
        return self.total

    @property
    def n_unscored(self) -> int:
        """Number of steps beyond the horizon, which do not count."""
        horizon = self._weights.horizon
        if not isinstance(horizon, int):
            return 0
        return int(np.maximum(self.lengths - horizon, 0).sum())

    def warn_unscored(self, stacklevel: int = 3) -> None:
        """Warn of steps beyond the horizon."""
        horizon = self._weights.horizon
        if isinstance(horizon, int) and self.n_unscored:
            n_runs = int((self.lengths > horizon).sum())
            warnings.warn(
                f"horizon={horizon} leaves {number_of(self.n_unscored, 'step')} of "
                f"{number_of(n_runs, 'run')} unscored; give a horizon "
                f"of {int(self.lengths.max())} to score them all",
                stacklevel=stacklevel + 1,
            )

    def rate(self, y: FloatArray, run_weight: FloatArray | float = 1.0) -> float:
        """Success rate over forecasts, the best constant; by the paper's convention, over runs."""
        return float(np.average(y, weights=self.divisor() * run_weight))


def as_step_weights(weights: Weights = "early", horizon: Any = None) -> StepWeights:
    """Return what `weights` and `horizon` stand for; an error says what they may be."""
    if isinstance(weights, StepWeights):
        if horizon is not None:
            raise ValueError(
                f"weights={weights!r} has its own horizon, so horizon={horizon!r} cannot be used "
                f"with it; leave horizon out, or pass weights={weights.schedule!r}"
            )
        return weights
    if not callable(weights) and (not isinstance(weights, str) or weights not in _RAMPS):
        raise ValueError(
            f"unknown weights {weights!r:.80}; use one of {', '.join(_RAMPS)}, or a function of "
            f"the array of step numbers"
        )
    is_word = horizon is None or (isinstance(horizon, str) and horizon == OWN)
    if not is_word and not (is_count(horizon) and horizon <= LARGEST_HORIZON):
        raise ValueError(
            f"horizon must be a number of steps up to {LARGEST_HORIZON:,}, 'own' or None, got "
            f"{horizon!r}"
        )
    if horizon is None and weights == _FROM_END:
        raise ArgumentError(
            f"the weights {weights!r} fall to zero over a number of steps and need it; give "
            f"{{argument}}, say, or {{argument:horizon=own}} for the paper's convention, over each "
            f"run's length",
            "horizon",
            30,
        )
    return StepWeights(weights, horizon if is_word else int(horizon))


def schedules_of(weights: Any, horizon: Horizon) -> list[StepWeights]:
    """Return several schedules over one horizon, each once; None stands for all that it allows."""
    if weights is None:
        weights = [w for w in WEIGHT_SCHEDULES if horizon is not None or w != _FROM_END]
    schedules = several(
        weights, lambda schedule: as_step_weights(schedule, horizon).schedule_name, "weights"
    )
    return [as_step_weights(schedule, horizon) for schedule in schedules]


def _called(function: Callable[[Any], Any], n: int) -> FloatArray:
    """Weights of steps 1, ..., n by a function of the array of steps."""
    if not n:
        return np.empty(0)
    weights = _as_weights(function, n)
    half = (n + 1) // 2
    again = _as_weights(function, half)
    refuse_first(
        ~np.isclose(weights[:half], again, rtol=1e-9, atol=0),
        lambda step: (
            f"weights must depend on the step alone, but the function gives step {step + 1} "
            f"{weights[step]:g} among {n} steps and {again[step]:g} among {half}"
        ),
    )
    if not weights.any():
        raise ValueError(f"weights for steps 1 to {n} are all zero; at least one step must count")
    if not weights.all():
        warnings.warn(
            f"weights for steps 1 to {n} are zero at step {int(np.argmin(weights)) + 1}: forecasts "
            f"there do not count, so the truth is not the only best trace (Theorem 4.1 needs "
            f"weights above zero)",
            stacklevel=2,
        )
    return weights


def _as_weights(function: Callable[[Any], Any], n: int) -> FloatArray:
    """Call a function for n steps, and return n numbers, none negative."""
    returned = function(np.arange(1, n + 1))
    try:
        array = np.asarray(returned, dtype=float)
    except (TypeError, ValueError):
        array = np.empty(0)
    if array.shape != (n,) or not np.isfinite(array).all() or (array < 0).any():
        raise ValueError(
            f"weights for steps 1 to {n} must be {n} finite numbers, none negative, got "
            f"{returned!r:.120}; a function takes the array of steps"
        )
    return array


def step_weights(
    lengths: ArrayLike, weights: Weights = "early", horizon: Horizon | ArrayLike = None
) -> FloatArray:
    """Return the weight of every step of every run, flat.

    Parameters
    ----------
    lengths : array-like of int of shape (n_runs,)
        Number of steps of each run.
    weights : str or callable, default="early"
        The weight of step t: "early" 1/sqrt(t), "uniform" 1, "exponential_front" 2^(1-t),
        "linear_back" t, or a function from the array of steps to as many numbers >= 0; zeros are
        warned of, as the truth then is no longer the only best forecast. "linear_front" H-t+1
        needs a horizon.
    horizon : int, "own" or array-like of int of shape (n_runs,), optional
        None: weights depend on the step alone. A number of steps H: they are divided by their sum
        over H steps, and steps beyond it weigh nothing. "own" is the paper's convention, in which
        the weights of each run are divided by their sum over its own length: linear_front
        2(T-t+1)/(T(T+1)), uniform 1/T, exponential_front 2^-(t-1)/(2(1-2^-T)), linear_back
        2t/(T(T+1)). One number a run is the same with the horizons T that are given, of which a run
        that was cut off keeps its first steps.

    Returns
    -------
    ndarray of shape (sum of lengths,)
        w_1, ..., w_Z of each run after the other.

    Raises
    ------
    ValueError
        If a length is not a whole number of at least 1, a horizon is shorter than its run, the
        schedule is unknown or needs a horizon, or a function gives other than one finite number
        >= 0 a step, not all zero, or numbers that depend on how many steps there are.

    Notes
    -----
    Weights that depend on the step alone make the score of a set proper for runs of any length.
    Those of ``horizon="own"`` do so only where the forecaster knows the length of a run at its
    start (Remark A.4 of the paper).

    References
    ----------
    Raghu et al. (2026), Proper Scoring Rules for Agentic Uncertainty Quantification, Section 4.1
    and Appendix I, for the schedules over a horizon.

    Examples
    --------
    >>> step_weights([4, 1]).round(3)
    array([1.   , 0.707, 0.577, 0.5  , 1.   ])
    >>> step_weights([2, 1], "linear_front", horizon="own").round(3)
    array([0.667, 0.333, 1.   ])
    >>> step_weights([2, 1], "uniform", horizon=[2, 2])
    array([0.5, 0.5, 0.5])
    """
    run_lengths = as_lengths(lengths)
    own_horizon = None
    if np.ndim(horizon) > 0:  # type: ignore[arg-type]
        own_horizon = as_horizon(horizon, run_lengths)
        horizon = OWN
    return RunWeights(as_step_weights(weights, horizon), run_lengths, own_horizon).cells()


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
        if (self.divisor == 1).all():
            return self.total
        if weight is None:
            weight = np.ones(len(self.total))
        mean = self.mean(weight)
        unit = float(np.average(self.divisor, weights=weight))
        return mean + (self.total - mean * self.divisor) / unit


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


def contrasts(X: TrajectoryArray, score: Any, weights: StepWeights) -> FloatArray:
    """Return what success is worth over failure on each run's prefix: the score's slope in q_Z."""
    success, failure = (run_sums(np.full(len(X), y), X, score, weights) for y in (1, 0))
    return success.total - failure.total


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
    """Steps of trusted runs, in their order: weight (step times run weight), and tie."""

    X: TrajectoryArray
    success: FloatArray  # of the runs
    weights: StepWeights
    run_weight: FloatArray

    @cached_property
    def weight(self) -> FloatArray:
        """Weight of each step."""
        return self.weights.of(self.X).cells() * np.repeat(self.run_weight, self.X.lengths)

    @cached_property
    def tie(self) -> AnyArray:
        """Place of each forecast among the distinct ones, for which few enough are sorted."""
        forecasts = self.X.cells
        if len(forecasts) > MANY:
            # on this scale chances are as easily told apart near 0 and 1 as elsewhere
            cells = np.arcsin(np.sqrt(forecasts))
            cells *= _N_CELLS / (np.pi / 2)
            cell = cells.astype(np.int32)
            if np.bincount(cell).max() <= _MOST_IN_A_CELL * len(cell):
                return cell
        return group_ties(forecasts)[1]

    def by_tie(self, values: FloatArray) -> FloatArray:
        """Add up values of the steps by their forecast."""
        return np.bincount(self.tie, values).astype(float, copy=False)


def step_parts(X: TrajectoryArray) -> AnyArray:
    """Return the place in `PART_STARTS` of each step, by its number alone: 0 is early, 2 late."""
    place = np.searchsorted(list(PART_STARTS.values()), step_numbers(X), side="right")
    return place.astype(np.int8) - np.int8(1)
