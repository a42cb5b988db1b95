"""What models of q_Z and of stops learn from: features, shares of success, and no forecast."""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from trajscore.core.array import TrajectoryArray
from trajscore.core.checks import check_traces
from trajscore.core.convert import as_table
from trajscore.core.folds import out_of_fold
from trajscore.core.ids import are_default_ids, check_same_runs
from trajscore.core.parallel import one_blas_thread
from trajscore.core.sample import check_sample
from trajscore.core.type_aliases import AnyArray, BoolArray, FloatArray, IntArray
from trajscore.core.values import refuse_first, run_label
from trajscore.core.within_runs import running_sum, step_numbers


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


@one_blas_thread
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
    name = "sample_weight"
    if isinstance(model, Pipeline):
        name = f"{model.steps[-1][0]}__{name}"
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


Features = Callable[[TrajectoryArray], Any] | None


def prefix_features(X: TrajectoryArray) -> FloatArray:
    """Step number, and for each channel its latest value, its mean so far and its first value."""
    values = as_table(X.cells)
    step = step_numbers(X)
    mean = running_sum(X, values) / step[:, None]
    first = np.repeat(values[X.offsets[:-1]], X.lengths, axis=0)
    columns = np.stack([values, mean, first], axis=2).reshape(len(values), 3 * values.shape[1])
    return np.column_stack([step, columns])


def cell_features(X: TrajectoryArray, features: Features) -> FloatArray:
    """Return a finite feature matrix with one row a step; None is `prefix_features`."""
    if features is not None and not callable(features):
        raise ValueError(f"features must be a function of the runs, got {features!r}")
    table = np.asarray((features or prefix_features)(X), dtype=float)
    if table.ndim == 1:
        table = table[:, None]
    if table.shape[0] != len(X.cells):
        raise ValueError(
            f"features must give {len(X.cells)} rows, one for each step of each run, got "
            f"{table.shape[0]}"
        )
    refuse_first(
        ~np.isfinite(table).all(axis=1),
        lambda cell: f"{X.place(cell)}: a feature is not a finite number",
    )
    return table


# a recalibration, cross-fitted or not, keeps the ranks of a forecast up to a few ties
_SAME_RANKS = 0.999


def forecasts_of(ids: AnyArray, traces: Any, of: str = "fit") -> TrajectoryArray:
    """Return forecasts in the order of `ids`; default ids are paired with others by position."""
    X = check_traces(traces)
    index = pd.Index(X.ids)
    if index.is_unique:
        rows = index.get_indexer(pd.Index(ids))
        if (rows >= 0).all():
            return X[rows]
    if len(X) != len(ids):
        raise ValueError(f"there are {len(X)} traces for the {len(ids)} runs of {of}")
    if index.equals(pd.Index(ids)) or are_default_ids(ids) or are_default_ids(X.ids):
        return X
    if not index.is_unique:
        twice = run_label(index[index.duplicated()][0])
        raise ValueError(f"the traces hold run {twice} twice; give one for each run of {of}")
    lost = run_label(ids[int(np.argmax(rows < 0))])
    raise ValueError(
        f"the traces are missing run {lost} of {of}; give the forecasts of all its runs"
    )


def refuse_predictor(X: TrajectoryArray, predictor: Any, allowed: bool) -> None:
    """Refuse history channels that are a forecast under test, or a recalibration of one."""
    if predictor is None:
        if not allowed:
            warnings.warn(
                "without predictor= nothing checks that q_Z is not learnt from the forecast that "
                "it will help to judge; pass that forecast, or allow_predictor=True",
                stacklevel=3,
            )
        return
    for forecast in check_sample(predictor, several=True).traces.values():
        check_same_runs(forecast, X, "predictor", "X")
        if not allowed:
            _refuse_same_ranks(X, forecast)


def _refuse_same_ranks(X: TrajectoryArray, forecast: TrajectoryArray) -> None:
    cells = [as_table(of.cells) for of in (X, forecast)]
    of_pairs = pd.DataFrame(np.hstack(cells)).corr(method="spearman")  # NaN of a constant
    correlation = of_pairs.to_numpy()[: X.n_channels, X.n_channels :]
    same = (np.abs(correlation) > _SAME_RANKS).any(axis=1)
    if same.any():
        name = "X"
        if X.channels:
            name = repr(X.channels[int(np.argmax(same))])
        raise ValueError(
            f"{name} is the forecast under test or a recalibration of it: a score whose q_Z "
            f"comes from the forecast that it judges favours it; give other channels, or say "
            f"allow_predictor=True"
        )
