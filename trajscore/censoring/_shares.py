"""Shares of success learnt from features: what models of q_Z and of stops are made of."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from trajscore.core.folds import out_of_fold
from trajscore.core.type_aliases import BoolArray, FloatArray, IntArray


class ConstantOutcomeError(ValueError):
    """All there is to learn from are successes, or all are failures; `share` says which."""

    def __init__(self, share: float) -> None:
        super().__init__(
            "the continuations to learn from have a constant outcome (one class); q_Z can be "
            "learnt only from successes and failures"
        )
        self.share = share


def _with_squares(x: FloatArray) -> FloatArray:
    return np.concatenate([x, x**2], axis=1)


def fit_shares(classifier: Any, table: FloatArray, share: FloatArray, weight: FloatArray) -> Any:
    """Fit a fresh classifier to shares of success, as weighted successes and failures."""
    mass = np.concatenate([weight * share, weight * (1 - share)])
    label = np.repeat([1, 0], len(table))
    used = mass > 0
    if not used.any():
        raise ValueError(
            "none of the runs to learn q_Z from has a weight above 0 or was drawn by the "
            "bootstrap; resume more runs, or weigh them otherwise"
        )
    if label[used].min() == label[used].max():
        raise ConstantOutcomeError(float(label[used][0]))
    if classifier is None:
        classifier = make_pipeline(
            StandardScaler(),
            FunctionTransformer(_with_squares),
            LogisticRegression(solver="newton-cholesky"),
        )
    model = clone(classifier)
    steps = getattr(model, "steps", None)
    name = "sample_weight" if steps is None else f"{steps[-1][0]}__sample_weight"
    doubled = np.concatenate([table, table])
    return model.fit(doubled[used], label[used], **{name: mass[used]})


def predict_success(model: Any, table: FloatArray) -> FloatArray:
    """Return a classifier's probability of the label 1."""
    if not len(table):
        return np.empty(0)
    return np.asarray(model.predict_proba(table)[:, list(model.classes_).index(1)])


def cross_fit_shares(
    classifier: Any, table: FloatArray, share: FloatArray, weight: FloatArray, fold: IntArray
) -> FloatArray:
    """Estimate the share of each row out of fold; a constant outcome elsewhere is the estimate."""

    def fit(train: BoolArray) -> Any:
        try:
            return fit_shares(classifier, table[train], share[train], weight[train])
        except ConstantOutcomeError as error:
            return error

    estimate = np.full(len(share), np.nan)
    for k, (rows, model) in enumerate(out_of_fold(fold, fit)):
        if not isinstance(model, ConstantOutcomeError):
            estimate[rows] = predict_success(model, table[rows])
            continue
        estimate[rows] = model.share
        warnings.warn(
            f"all continuations outside fold {k} (from 0) of cv have a constant outcome, so their "
            f"share, {model.share:g}, is the held-out estimate of that fold; audit more runs, or "
            f"take cv=None, which makes no held-out estimates",
            stacklevel=3,
        )
    return estimate
