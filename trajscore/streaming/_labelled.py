"""What all forecasts of some runs share, worked out once for all that adds them up."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trajscore.core.array import TrajectoryArray
from trajscore.core.type_aliases import FloatArray, IntArray
from trajscore.core.weights import Weights, step_weights
from trajscore.metrics._weighted_steps import step_thirds


@dataclass(frozen=True)
class LabelledRuns:
    """Trusted runs, of which there are some, with outcomes in [0, 1]; forecasts go beside them.

    >>> runs = LabelledRuns(np.array([1.0, 0.0]), TrajectoryArray.from_list([[0.5, 0.8], [0.2]]))
    >>> runs.sums(runs.X.cells)
    array([0.6, 0.2])
    """

    label: FloatArray
    X: TrajectoryArray  # of whose cells only the layout is read
    weights: Weights = "linear_front"
    groups: NDArray[Any] | None = None

    @cached_property
    def weight(self) -> FloatArray:
        """Weight of each step."""
        return step_weights(self.X.lengths, self.X.horizon, self.weights)

    @cached_property
    def total(self) -> FloatArray:
        """Weight of each run, which is less than one where it was cut short."""
        return self.sums(np.ones(len(self.weight)))

    @cached_property
    def step_label(self) -> FloatArray:
        """Outcome of the run of each step."""
        return np.repeat(self.label, self.X.lengths)

    @cached_property
    def won(self) -> FloatArray:
        """Weight of success of each step."""
        return self.weight * self.step_label

    @cached_property
    def lost(self) -> FloatArray:
        """Weight of failure of each step."""
        return self.weight * (1 - self.step_label)

    @cached_property
    def third(self) -> IntArray:
        """Third of its run in which each step lies."""
        return step_thirds(self.X.lengths, self.X.horizon).astype(np.int64)

    def sums(self, values: FloatArray) -> FloatArray:
        """Weighted sum of each run's values, one a step."""
        return np.add.reduceat(self.weight * values, self.X.offsets[:-1])
