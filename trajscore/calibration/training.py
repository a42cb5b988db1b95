"""What maps are fitted on, values with weights of outcomes; and what a fitted classifier says."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import expit
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

from trajscore.core.array import TrajectoryArray
from trajscore.core.errors import TooFewRunsError
from trajscore.core.score_families import CLIP
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
                raise TooFewRunsError(
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


def fit_weighted(
    at: Sequence[FloatArray], weights: Sequence[FloatArray], **how: float
) -> tuple[FloatArray, float]:
    """Return slopes and intercept of a logistic regression on weights of successes and failures."""
    model = LogisticRegression(solver="newton-cholesky", **how)
    weight = np.concatenate(weights)
    outcome = np.repeat([1, 0], [len(rows) for rows in at])
    used = weight > 0
    model.fit(np.concatenate(at)[used], outcome[used], sample_weight=weight[used])
    return model.coef_[0], float(model.intercept_[0])


def success_chances(model: Any, rows: FloatArray) -> FloatArray:
    """P(Y = 1 | row), clipped; the same digits for a row alone and among others."""
    linear = _linear(model)
    if linear is None:
        column = int(np.flatnonzero(model.classes_ == 1)[0])
        p = np.asarray(model.predict_proba(rows)[:, column], dtype=float)
    else:
        p = _logistic(rows, *linear)
    return np.clip(p, CLIP, 1 - CLIP)


def _linear(model: Any) -> tuple[LogisticRegression, Any, Any] | None:
    """Return a logistic regression with the scaling before it; None for anything else."""
    steps = [model]
    if isinstance(model, Pipeline):
        steps = [step for _, step in model.steps]
    if getattr(steps[-1], "multi_class", None) == "multinomial":
        return None  # older releases then double the logit
    kinds = [type(step) for step in steps]
    if kinds == [StandardScaler, LogisticRegression]:
        scaler, model = steps
        mean = scaler.mean_ if scaler.with_mean else 0.0
        return model, mean, 1.0 if scaler.scale_ is None else scaler.scale_
    if kinds == [LogisticRegression]:
        return model, 0.0, 1.0
    return None


def _logistic(rows: FloatArray, model: LogisticRegression, mean: Any, scale: Any) -> FloatArray:
    coef = model.coef_[0]
    if rows.shape[1] != len(coef):
        raise ValueError(
            f"the features function returned {rows.shape[1]} features, in fitting it returned "
            f"{len(coef)} at this step"
        )
    # A product of matrices adds up in an order that depends on how many rows there are, and near a
    # probability of 1 the last digit of p is the tenth of log(1 - p). So each row is added up by
    # itself, in memory order.
    terms = (np.ascontiguousarray(rows) - mean) / scale * coef
    return expit(np.add.reduce(terms, axis=1) + model.intercept_[0])
