"""What maps are fitted on, values with weights of outcomes; and what a fitted classifier says."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

from trajscore.core.array import TrajectoryArray
from trajscore.core.folds import assign_folds
from trajscore.core.ids import id_order
from trajscore.core.outcomes import Labels
from trajscore.core.score_families import CLIP
from trajscore.core.ties import group_ties
from trajscore.core.values import BoolArray, FloatArray, FloatPair, IntArray
from trajscore.core.weights import StepWeights

# Classifiers whose forecasts are computed here.
_LINEAR = [LogisticRegression], [StandardScaler, LogisticRegression]


class TrainingRuns(NamedTuple):
    """Checked runs of a fit; those that do not count have the weight 0."""

    X: TrajectoryArray
    labels: Labels
    weight: FloatArray
    groups: IntArray | None = None

    @property
    def rows(self) -> IntArray:
        """Those that count, in the order of the ids, so that the order of rows cannot matter."""
        order = id_order(self.X.ids)
        return order[self.weight[order] > 0]

    def steps(self, weights: StepWeights) -> TrainingSteps:
        """Return the steps of those that count."""
        rows = self.rows
        X = self.X[rows]
        label = self.labels.value[rows]
        weight = self.weight[rows]
        of_runs = weights.of(X)
        mass = of_runs.cells() * np.repeat(weight, X.lengths)
        success = mass * np.repeat(label, X.lengths)
        return TrainingSteps(X, label, weight, weight * of_runs.divisor(), success, mass - success)

    def folds(self, cv: Any) -> IntArray:
        """Return the fold in which each run is held out."""
        return assign_folds(
            cv,
            self.X.ids,
            self.labels.stratum,
            is_counted=self.weight > 0,
            groups=self.groups,
        )


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


class TrainingSteps(NamedTuple):
    """Training runs that count, and the weights of success and failure at each of their steps."""

    X: TrajectoryArray
    label: FloatArray
    weight: FloatArray
    divisor: FloatArray  # what each run adds to that of a score
    success: FloatArray
    failure: FloatArray

    def scaled(self) -> TrainingSteps:
        """Let the weights of a run add up to one on average, so that a penalty means the same."""
        factor = self.weight.sum() / self.divisor.sum()
        return self._replace(success=self.success * factor, failure=self.failure * factor)

    def of(self, train: BoolArray) -> TrainingSteps:
        """Keep some of the runs."""
        here = np.repeat(train, self.X.lengths)
        return TrainingSteps(
            self.X[train],
            self.label[train],
            self.weight[train],
            self.divisor[train],
            self.success[here],
            self.failure[here],
        )

    def sample(self, values: FloatArray) -> CalibrationSample:
        """Add up the steps by their values of a signal; those without one do not count."""
        seen = ~np.isnan(values)
        distinct, tie = group_ties(values[seen])
        success, failure = (
            np.bincount(tie, part[seen], len(distinct)).astype(float)
            for part in (self.success, self.failure)
        )
        used = success + failure > 0
        return CalibrationSample(distinct[used], success[used], failure[used], len(self.X))


class LogisticLoss(NamedTuple):
    """What a ridge logistic regression minimises: rows, and weights of both outcomes of each.

    The last column of the rows is constant, and its coefficient not penalised.
    """

    rows: FloatArray
    success: FloatArray
    failure: FloatArray
    penalty: float

    def fit(
        self, start: FloatArray | None = None, *, tol: float = 1e-10, max_iter: int = 200
    ) -> FloatArray:
        """Return the best coefficients.

        Newton's steps are halved until the gradient falls; `tol` is that of scikit-learn's solver,
        for the mean loss.
        """
        coef = np.zeros(self.rows.shape[1]) if start is None else start
        tolerance = tol * (self.success.sum() + self.failure.sum())
        slope, spread = self.gradient(coef)
        for _ in range(max_iter):
            # the shortest step, where there are several
            step = np.linalg.lstsq(self.curvature(spread), slope, rcond=None)[0]
            decrement = step @ slope / 2
            before = np.linalg.norm(slope)
            while True:
                slope, spread = self.gradient(coef + step)
                if np.linalg.norm(slope) <= before or not step.any():
                    break
                step /= 2
            coef = coef + step
            if max(np.abs(slope).max(), decrement) <= tolerance:
                break
        return coef

    def gradient(self, coef: FloatArray) -> FloatPair:
        """Return how fast the loss falls in each coefficient, and the variance of rows."""
        p = expit(self.rows @ coef)
        expected = (self.success + self.failure) * p
        return (self.success - expected) @ self.rows - self._ridge * coef, expected * (1 - p)

    def curvature(self, spread: FloatArray) -> FloatArray:
        """Return how curved the loss is where rows have these variances."""
        return (self.rows.T * spread) @ self.rows + np.diag(self._ridge)

    @property
    def _ridge(self) -> FloatArray:
        return np.append(np.full(self.rows.shape[1] - 1, self.penalty), 0.0)  # not of the intercept


def success_chances(model: Any, rows: FloatArray) -> FloatArray:
    """P(Y = 1 | row), clipped; the same digits for a row alone and among others."""
    steps = [model]
    if isinstance(model, Pipeline):
        steps = [step for _, step in model.steps]
    *scalers, last = steps
    is_linear = [type(step) for step in steps] in _LINEAR
    if not is_linear or getattr(last, "multi_class", None) == "multinomial":
        # of a multinomial one, older releases double the logit
        column = int(np.flatnonzero(model.classes_ == 1)[0])
        p = np.asarray(model.predict_proba(rows)[:, column], dtype=float)
        return np.clip(p, CLIP, 1 - CLIP)
    if rows.shape[1] != last.n_features_in_:
        raise ValueError(
            f"the features function returned {rows.shape[1]} features, in fitting it returned "
            f"{last.n_features_in_} at this step"
        )
    # A product of matrices adds up in an order that depends on how many rows there are, and near a
    # probability of 1 the last digit of p is the tenth of log(1 - p). So each row is added up by
    # itself, in memory order.
    terms = np.ascontiguousarray(rows)
    for scaler in scalers:
        if scaler.with_mean:
            terms = terms - scaler.mean_
        if scaler.with_std:
            terms = terms / scaler.scale_
    log_odds = np.add.reduce(terms * last.coef_[0], axis=1) + last.intercept_[0]
    return np.clip(expit(log_odds), CLIP, 1 - CLIP)
