"""Continuation-success probabilities from runs that were resumed where they had been stopped.

And what all models of q_Z and of stops learn from: features, shares of success, and no forecast.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Self

import numpy as np
import pandas as pd
from scipy.stats import beta
from sklearn.base import BaseEstimator, clone
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.utils.validation import check_is_fitted

from trajscore.core.array import TrajectoryArray
from trajscore.core.checks import check_sample, check_traces, check_trajectories
from trajscore.core.convert import as_table
from trajscore.core.folds import out_of_fold
from trajscore.core.ids import are_default_ids, check_same_runs
from trajscore.core.outcomes import CENSORED, SUCCESS
from trajscore.core.parallel import one_blas_thread
from trajscore.core.values import (
    AnyArray,
    ArrayLike,
    BoolArray,
    FloatArray,
    IntArray,
    as_count,
    as_fraction,
    as_numbers,
    is_iterable,
    refuse_first,
    run_label,
    undefined_is_nan,
)
from trajscore.core.weights import (
    Horizon,
    RunSums,
    Weights,
    as_step_weights,
    contrasts,
    run_sums,
)
from trajscore.core.within_runs import running_sum, step_numbers
from trajscore.inference import paired_bootstrap


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
    return model.fit(np.tile(table, (2, 1))[used], label[used], **{name: mass[used]})


def predict_success(model: Any, table: FloatArray) -> FloatArray:
    """Return a classifier's probability of the label 1."""
    if not len(table):
        return np.empty(0)
    return model.predict_proba(table)[:, list(model.classes_).index(1)]


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
    lost = run_label(ids[np.argmax(rows < 0)])
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
    forecasts = check_sample(predictor, several=True).traces.values()
    for forecast in forecasts:
        check_same_runs(forecast, X, "predictor", "X")
    cells = [as_table(of.cells) for of in (X, *forecasts)]
    of_pairs = pd.DataFrame(np.hstack(cells)).corr(method="spearman")  # NaN of a constant
    correlation = of_pairs.to_numpy()[: X.n_channels, X.n_channels :]
    names = list(map(repr, X.channels or ())) or ["X"]
    refuse_first(
        (abs(correlation) > _SAME_RANKS).any(axis=1) & (not allowed),
        lambda k: (
            f"{names[k]} is the forecast under test or a recalibration of it: a score whose q_Z "
            f"comes from the forecast that it judges favours it; give other channels, or say "
            f"allow_predictor=True"
        ),
    )


Branches = Sequence[ArrayLike | None] | AnyArray


class MonteCarloContinuation(BaseEstimator):
    """Estimate q_Z by the share of successes among continuations of a stopped run.

    Parameters
    ----------
    min_branches : int, default=5
        Runs with fewer valid continuations get no estimate (NaN) and are counted.
    confidence_level : float, default=0.95
        Level of the interval of each q_Z.

    Attributes
    ----------
    q_z_ : ndarray of shape (n_runs,)
        Estimates; NaN for runs without enough valid continuations. The censored score with them
        is the mean score over the continuations.
    low_, high_ : ndarray of shape (n_runs,)
        Equal-tailed Beta intervals, of Jeffreys' prior; 0 and 1 are kept where all continuations
        failed or succeeded.
    n_valid_, n_unresolved_ : ndarray of int of shape (n_runs,)
        Continuations of each run that count, and those that came to no outcome.
    audited_ : ndarray of bool of shape (n_runs,)
        Runs that have an estimate.
    ids_ : ndarray of shape (n_runs,)
        Identifiers of the runs.

    See Also
    --------
    ContinuationModel : With ``branches=``, for when only some stopped runs can be resumed.

    References
    ----------
    Raghu et al. (2026), Proper Scoring Rules for Agentic Uncertainty Quantification, Appendix H;
    Brown, Cai and DasGupta (2001), Interval Estimation for a Binomial Proportion.

    Examples
    --------
    >>> X, branches = [[0.4, 0.3], [0.7, 0.8]], [[0, 0, 1, 0, -1], [1, 1, 1, 0, 1]]
    >>> audit = MonteCarloContinuation(min_branches=4).fit(X, branches)
    >>> audit.q_z_, audit.low_.round(2), audit.high_.round(2)
    (array([0.25, 0.8 ]), array([0.03, 0.37]), array([0.72, 0.98]))
    """

    def __init__(
        self,
        min_branches: int = 5,
        confidence_level: float = 0.95,
    ) -> None:
        self.min_branches = min_branches
        self.confidence_level = confidence_level

    def fit(self, X: Any, branches: Branches) -> Self:
        """Count successes among the continuations of each run.

        Parameters
        ----------
        X : TrajectoryArray or array-like of shape (n_runs, T_max)
            The runs; only their identifiers are read.
        branches : sequence of n_runs array-likes, or array of shape (n_runs, n_branches)
            Outcomes of continuations from the last step of each run: 1, 0, or -1 where the
            continuation came to none; None or an empty list for a run that was not resumed. NaN
            is a continuation that was not made in an array or DataFrame, and one that came to no
            outcome in a list. Entries are those of the runs by position; an index is not read.

        Returns
        -------
        MonteCarloContinuation
            The fitted estimator.

        Raises
        ------
        ValueError
            If an outcome is not 1, 0 or -1, or no run has enough valid continuations.
        """
        as_count(self.min_branches, "min_branches")
        as_fraction(self.confidence_level, "confidence_level")
        runs = check_trajectories(X, allow_missing=True)
        n_runs = len(runs)
        row, outcome = _flatten_branches(branches, n_runs)
        unresolved = outcome == CENSORED
        self.n_unresolved_ = np.bincount(row[unresolved], minlength=n_runs)
        self.n_valid_ = np.bincount(row[~unresolved], minlength=n_runs)
        self.audited_ = self.n_valid_ >= self.min_branches
        if not self.audited_.any():
            raise ValueError(
                f"no run has {self.min_branches} valid continuations (the most is "
                f"{self.n_valid_.max(initial=0)}); make more of them, or lower min_branches"
            )
        successes = np.bincount(row[outcome == SUCCESS], minlength=n_runs)
        with undefined_is_nan():
            share = successes / self.n_valid_
        audited = np.where(self.audited_, 1.0, np.nan)
        self.q_z_ = audited * share
        tail = (1 - self.confidence_level) / 2
        failures = self.n_valid_ - successes
        jeffreys = beta(successes + 0.5, failures + 0.5)
        low = np.where(successes == 0, 0.0, jeffreys.ppf(tail))
        high = np.where(failures == 0, 1.0, jeffreys.ppf(1 - tail))
        self.low_ = audited * low
        self.high_ = audited * high
        self.ids_ = runs.ids
        return self

    def predict(self, X: Any) -> FloatArray:
        """Look up the estimates of runs by their identifiers; NaN for runs that have none."""
        check_is_fitted(self)
        runs = check_trajectories(X, allow_missing=True)
        return pd.Series(self.q_z_, index=self.ids_).reindex(runs.ids).to_numpy()

    def summary(
        self,
        traces: Any = None,
        *,
        score: Any = "log",
        weights: Weights = "early",
        horizon: Horizon = None,
        n_resamples: int = 1000,
        random_state: Any = 0,
    ) -> pd.DataFrame:
        """Describe the estimates, and what they make of a score, with bootstrap intervals.

        Parameters
        ----------
        traces : TrajectoryArray or array-like of shape (n_runs, T_max), optional
            Forecasts of the runs given to `fit`, found by their identifiers: adds the simple score
            of the audited runs (q_Z = 0), the exact one (q_Z as estimated) and their difference.
        score, weights, horizon : score family and step weights
            As in `trajscore.metrics.tps_score`.
        n_resamples : int, default=1000
            Bootstrap replicates over runs.
        random_state : int, RandomState instance or None, default=0
            Seed.

        Returns
        -------
        DataFrame
            value, low and high of each figure; the intervals are those of means over runs.

        Examples
        --------
        >>> X, branches = [[0.4, 0.3], [0.7, 0.8]], [[0, 0, 0, 0, -1], [1, 1, 1, 0, 1]]
        >>> audit = MonteCarloContinuation(min_branches=4).fit(X, branches)
        >>> audit.summary(X, score="brier")["value"].round(3)
        runs resumed                   2.000
        runs retained                  2.000
        valid branches per run         4.500
        unresolved branches per run    0.500
        mean q_Z                       0.400
        median q_Z                     0.400
        share q_Z = 0                  0.500
        share q_Z > 0.5                0.500
        simple score                  -0.342
        exact score                   -0.148
        exact - simple                 0.193
        Name: value, dtype: float64
        """
        check_is_fitted(self)
        rows = np.flatnonzero(self.audited_)
        counts = {
            "runs resumed": ((self.n_valid_ + self.n_unresolved_) > 0).sum(),
            "runs retained": len(rows),
            "valid branches per run": self.n_valid_[rows].mean(),
            "unresolved branches per run": self.n_unresolved_[rows].mean(),
        }
        q = self.q_z_[rows]
        if traces is not None:
            forecasts = forecasts_of(self.ids_, traces)[rows]
            how = as_step_weights(weights, horizon)
            simple = run_sums(np.zeros_like(q), forecasts, score, how)
            contrast = contrasts(forecasts, score, how)

        def figures(q: FloatArray) -> pd.DataFrame:
            samples = {"mean q_Z": q, "share q_Z = 0": q == 0, "share q_Z > 0.5": q > 0.5}
            if traces is not None:
                shift = RunSums(q * contrast, simple.divisor)
                exact = RunSums(simple.total + shift.total, simple.divisor)
                named = {"simple score": simple, "exact score": exact, "exact - simple": shift}
                samples |= {name: sums.samples() for name, sums in named.items()}
            return pd.DataFrame(samples).astype(float)

        values = figures(q)
        described = counts | {"mean q_Z": q.mean(), "median q_Z": np.median(q)}
        # of a dict of dicts, older versions of pandas sort the names
        table = pd.Series(described | values.mean().to_dict()).to_frame("value")
        table[["low", "high"]] = np.nan
        if len(q) > 1:  # one run says nothing of the spread
            boot = paired_bootstrap(
                values,
                n_resamples=n_resamples,
                random_state=random_state,
                other=figures((q < 0.5).astype(float)),
            )
            table[["low", "high"]] = boot[["low", "high"]]
        return table


def _flatten_branches(branches: Any, n_runs: int) -> tuple[IntArray, FloatArray]:
    """Return the row of the run, ascending, and the outcome of every continuation."""
    if isinstance(branches, Mapping) or not is_iterable(branches):
        raise ValueError(
            f"branches must be a sequence with the outcomes of each run, in the order of the runs, "
            f"got {branches!r}"
        )
    if isinstance(branches, pd.DataFrame):
        branches = as_numbers(branches, "branches")
    entries = list(branches)  # by position, whatever the index
    if len(entries) != n_runs:
        raise ValueError(
            f"branches must have {n_runs} entries, one for each run (None if not resumed), got "
            f"{len(entries)}"
        )
    lists = [
        as_numbers([] if entry is None else entry, f"run {k}: outcomes of continuations").ravel()
        for k, entry in enumerate(entries)
    ]
    row = np.repeat(np.arange(n_runs), list(map(len, lists)))
    outcome = np.concatenate([*lists, np.empty(0)])
    if isinstance(branches, np.ndarray):  # NaN fills up what has no continuation
        there = ~np.isnan(outcome)
        row = row[there]
        outcome = outcome[there]
    outcome = np.where(np.isnan(outcome), CENSORED, outcome)
    refuse_first(
        ~np.isin(outcome, (CENSORED, 0, 1)),
        lambda k: (
            f"run {row[k]}: a continuation has outcome {outcome[k]:g}; use 1 for success, 0 for "
            f"failure and -1 where it came to none"
        ),
    )
    return row, outcome
