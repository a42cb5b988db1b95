"""What all accumulators share: runs with their weights, a fine grid of values, checks, and merging.

Counts on the grid need the same memory for any number of runs.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from trajscore.core.array import TrajectoryArray
from trajscore.core.checks import check_labels
from trajscore.core.run_sums import collapse, weighted_mean
from trajscore.core.sample import check_sample
from trajscore.core.score_families import CLIP
from trajscore.core.type_aliases import AnyArray, FloatArray, IntArray
from trajscore.core.values import as_numbers
from trajscore.core.weights import RunWeights, StepWeights


@dataclass(frozen=True)
class LabelledRuns:
    """Checked runs, at least one, with outcomes in [0, 1]; forecasts are kept elsewhere.

    >>> X = TrajectoryArray.from_list([[0.5, 0.8], [0.2]])
    >>> runs = LabelledRuns(np.array([1.0, 0.0]), X, StepWeights("early"))
    >>> runs.of_runs.sums(runs.X.cells).round(3)
    array([1.066, 0.2  ])
    """

    label: FloatArray
    X: TrajectoryArray  # only its layout is read, not its values
    weights: StepWeights
    groups: AnyArray | None = None

    @cached_property
    def of_runs(self) -> RunWeights:
        """Step weights of these runs, and what each adds to the divisor of a set's score."""
        return self.weights.of(self.X)

    @cached_property
    def weight(self) -> FloatArray:
        """Weight of each step."""
        return self.of_runs.cells()

    @cached_property
    def step_label(self) -> FloatArray:
        """Outcome of the run of each step."""
        return np.repeat(self.label, self.X.lengths)

    def collapse(self, values: FloatArray, phi: str) -> FloatArray:
        """Return one number for each run, of values one a step."""
        X = self.X.with_cells(values)
        if phi == "weighted":  # by what is at hand
            return weighted_mean(X, self.weight)
        return collapse(X, phi)


_END = float(np.log((1 - CLIP) / CLIP))


@dataclass(frozen=True)
class Grid:
    """Equal cells of log-odds, or of the values of a signal between two bounds."""

    low: float = -_END
    high: float = _END
    is_probability: bool = True
    n_cells: int = 1 << 14

    @classmethod
    def between(cls, bounds: Any, n_cells: int) -> Self:
        """Return a grid between two bounds, or that of forecasts for None."""
        if bounds is None:
            return cls(n_cells=n_cells)
        ends = as_numbers(bounds, "bounds")
        if ends.shape != (2,) or not np.isfinite(ends).all() or ends[0] > ends[1]:
            raise ValueError(f"bounds must be two finite numbers, smaller first, got {bounds!r}")
        return cls(float(ends[0]), float(ends[1]), False, n_cells)

    def cells(self, values: FloatArray) -> IntArray:
        """Return the cell of each value; a value beyond the ends falls into the outermost cell."""
        if self.is_probability:
            p = np.clip(values, CLIP, 1 - CLIP)
            values = np.log(p / (1 - p))  # an eighth of the time of scipy's logit
        width = (self.high - self.low) / self.n_cells or 1.0
        cells = ((values - self.low) / width).astype(np.int64)
        return np.clip(cells, 0, self.n_cells - 1)


class Accumulator(ABC):
    """Sums over runs that can be updated, and merged in any order."""

    weights: StepWeights
    grid = Grid()
    settings: ClassVar[tuple[str, ...]]  # attributes that two accumulators must share to be merged
    added: ClassVar[tuple[str, ...]] = ("sums",)  # attributes that are sums over runs

    @abstractmethod
    def add(self, runs: LabelledRuns, values: FloatArray) -> None:
        """Add trusted runs, at least one, with one value a step."""

    @abstractmethod
    def constant(self, forecast: float) -> Self:
        """Return the sums of the same runs with one number as the forecast of every step."""

    def update(self, y: ArrayLike, X: Any, groups: ArrayLike | None = None) -> Self:
        """Add some runs.

        Parameters
        ----------
        y : array-like of shape (n_runs,)
            Outcomes: 1 success, 0 failure, or a grade in [0, 1].
        X : TrajectoryArray or array-like of shape (n_runs, T_max)
            Forecasts of success, or a signal where the accumulator has `bounds`; one a step.
        groups : array-like of shape (n_runs,), optional
            Clusters of runs, for the intervals of `TPSAccumulator`; in all updates or in none.

        Returns
        -------
        object
            The accumulator itself.

        Raises
        ------
        ValueError
            If an outcome is not observed, a forecast lies outside [0, 1], or some updates of a
            `TPSAccumulator` have groups and others have none.
        """
        sample = check_sample(
            X, y, allow_censored=False, probabilities=self.grid.is_probability, single_channel=True
        )
        if len(sample):
            if groups is not None:
                groups = check_labels(groups, len(sample))
            labels = np.asarray(sample.y, dtype=float)
            self.add(LabelledRuns(labels, sample.X, self.weights, groups), sample.X.cells)
        return self

    def merge(self, other: Self) -> Self:
        """Add what another accumulator has added up.

        Parameters
        ----------
        other : accumulator
            An accumulator of the same class and parameters.

        Returns
        -------
        object
            The accumulator itself.

        Raises
        ------
        ValueError
            If the other accumulator has another class or other parameters, or if only one of two
            `TPSAccumulator` has clusters.
        """
        kind = type(self).__name__
        if type(other) is not type(self):
            raise ValueError(f"other must be a {kind}, got a {type(other).__name__}")
        if different := [n for n in self.settings if getattr(self, n) != getattr(other, n)]:
            raise ValueError(
                f"The two {kind}s differ in {' and '.join(different)}; merge only accumulators "
                f"with the same parameters"
            )
        for name in self.added:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        return self
