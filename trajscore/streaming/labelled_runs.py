"""Runs with outcomes, and the weights that several accumulators share."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trajscore.core.array import TrajectoryArray
from trajscore.core.run_sums import step_parts
from trajscore.core.type_aliases import FloatArray, IntArray
from trajscore.core.weights import RunWeights, StepWeights, as_step_weights


@dataclass(frozen=True)
class LabelledRuns:
    """Checked runs, at least one, with outcomes in [0, 1]; forecasts are kept elsewhere.

    >>> runs = LabelledRuns(np.array([1.0, 0.0]), TrajectoryArray.from_list([[0.5, 0.8], [0.2]]))
    >>> runs.of_runs.sums(runs.X.cells).round(3)
    array([1.066, 0.2  ])
    """

    label: FloatArray
    X: TrajectoryArray  # only its layout is read, not its values
    weights: StepWeights = field(default_factory=as_step_weights)
    groups: NDArray[Any] | None = None

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

    @cached_property
    def success(self) -> FloatArray:
        """Weight of success of each step."""
        return self.weight * self.step_label

    @cached_property
    def failure(self) -> FloatArray:
        """Weight of failure of each step."""
        return self.weight * (1 - self.step_label)

    @cached_property
    def part(self) -> IntArray:
        """Place in `PARTS` of each step, by its number: early, middle or late."""
        return step_parts(self.X).astype(np.int64)
