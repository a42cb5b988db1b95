"""What maps are fitted on: the values of training runs, with the weight of their outcomes."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from trajscore.core.array import TrajectoryArray
from trajscore.core.ties import rises
from trajscore.core.type_aliases import BoolArray, FloatArray, IntArray
from trajscore.core.weights import StepWeights


@dataclass(frozen=True)
class CalibrationSample:
    """What a map is fitted on: the distinct values of a signal, rising, and who shows them.

    `success` and `failure` are the weights of succeeding and of failing runs at each value: step
    weight times run weight, a soft outcome shared between the two.
    """

    values: FloatArray
    success: FloatArray
    failure: FloatArray
    n_runs: int  # of positive weight

    @property
    def base_rate(self) -> float:
        """Weighted success rate."""
        return float(self.success.sum() / (self.success + self.failure).sum())

    def scaled(self, factor: float) -> CalibrationSample:
        """Return the same with all weights times a factor."""
        return replace(self, success=self.success * factor, failure=self.failure * factor)


class TrainingSteps:
    """All training runs, flat; `of` adds up those of some folds."""

    def __init__(
        self,
        X: TrajectoryArray,
        labels: FloatArray,
        run_weight: FloatArray,
        weights: StepWeights,
        fold: IntArray,
    ) -> None:
        self.X = X
        self._run_weight = run_weight
        self.fold = fold
        of_runs = weights.of(X)
        self._divisor = run_weight * of_runs.divisor()
        weight = of_runs.cells()
        weight *= np.repeat(run_weight, X.lengths)
        # signals take few distinct values (verbal confidence, judges): fit on those
        order = np.argsort(X.cells)
        values = X.cells[order]
        self._starts = np.flatnonzero(rises(values))
        self._values = values[self._starts]
        # the step of many runs: a byte each
        small = fold.astype(np.min_scalar_type(int(fold.max())))
        self._fold_of_step = np.repeat(small, X.lengths)[order]
        weight = weight[order]
        self._success = weight * np.repeat(labels, X.lengths)[order]
        self._failure = weight - self._success

    def of(self, train: BoolArray) -> CalibrationSample:
        """Add up the folds of training runs, which are those of whole folds."""
        in_fold = np.zeros(int(self.fold.max()) + 1)
        in_fold[self.fold[train]] = 1
        counts = in_fold[self._fold_of_step]
        success = counts * self._success
        failure = counts * self._failure
        if len(self._starts) < len(counts):
            success = np.add.reduceat(success, self._starts)
            failure = np.add.reduceat(failure, self._starts)
        for total, kind in ((success, "failures"), (failure, "successes")):
            if total.sum() <= 0:
                which = "all runs" if train.all() else "all runs of a fold"
                raise ValueError(
                    f"{which} are {kind}; calibration needs successes and failures in every fold: "
                    f"give more runs, or a smaller cv"
                )
        used = success + failure > 0
        n_runs = int(((self._run_weight > 0) & train).sum())
        sample = CalibrationSample(self._values[used], success[used], failure[used], n_runs)
        # the weights of a run add up to one on average, so that a penalty means the same for all
        return sample.scaled(self._run_weight[train].sum() / self._divisor[train].sum())

    def range_of(self, cells: FloatArray) -> tuple[float, float]:
        """Smallest and largest value of the runs of positive weight."""
        counted = cells[np.repeat(self._run_weight > 0, self.X.lengths)]
        return float(counted.min()), float(counted.max())
