"""The chance of each step to be the first wrong one, by a hazard that all steps share."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any, Self

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, clone
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from trajscore.calibration.cross_fit import cross_fit_sample
from trajscore.calibration.training import success_chances
from trajscore.core.array import TrajectoryArray
from trajscore.core.checks import check_sample
from trajscore.core.convert import as_table
from trajscore.core.errors import TooFewRunsError
from trajscore.core.estimator import TraceTransformer, check_estimator_input, like_input
from trajscore.core.ids import id_order
from trajscore.core.policy import MIN_LABELLED_ERRORS
from trajscore.core.ties import OrdinaryRange
from trajscore.core.values import ArrayLike, FloatArray
from trajscore.core.weights import row_chunks
from trajscore.core.within_runs import (
    last_cells,
    run_numbers,
    running_max,
    running_sum,
    step_numbers,
)
from trajscore.metrics.first_error import check_first_error, run_totals

_OWN_STEPS = 4  # so many first steps have an indicator
_DEVIATIONS = (-5, 5)  # at most, so that no rare signal decides alone
_READS = {"single_channel": False, "allow_missing": True}


class FirstErrorLocator(TraceTransformer, BaseEstimator):
    r"""Learn from labelled runs which step of a run is the first wrong one, and how surely.

    One classifier for all steps gives the hazard h_t, the chance that step t is wrong where none
    before it was, from the signals and the number of the step. So a run has one calibrated
    distribution: over its steps, and "no step is wrong".

    Parameters
    ----------
    estimator : classifier, optional
        One with ``predict_proba``. It sees features in standard deviations, clipped at 5. Default:
        ``LogisticRegression(C=1 / n_features)``, whose prior of the log-odds is as wide for many
        signals as for few.
    live : bool, default=False
        Whether only steps so far are read: then the probability of a step is known with the step,
        and the rest is that of a later error or of none.

    Attributes
    ----------
    classifier_ : classifier
        The fitted hazard.
    n_unlabelled_ : int
        Training runs without a label, which are left out.
    has_none_ : bool
        Whether some labelled run has no wrong step. If none has, every run is taken for one with a
        wrong step: unless `live`, its probabilities add up to 1.
    n_channels_in_ : int
        Signals a step.

    See Also
    --------
    FirstErrorWindow : Steps that hold the first wrong one with a stated chance.
    compare_locators : Whether locators are better than the position of a step alone.

    Notes
    -----
    .. math:: P(\text{first} = t) = h_t \prod_{s < t} (1 - h_s)

    Features of a signal are its value, its fall below all values before, the lowest and the mean of
    these, and unless `live` the mean of those that follow; of a step its number and, unless `live`,
    how many follow. A missing value is the mean of the training runs. Where no signal varies, the
    position of the step alone decides. ``fit_transform`` gives each run's distribution by a fit on
    other runs, in five folds.

    References
    ----------
    Allison (1982), Discrete-Time Methods for the Analysis of Event Histories, Sociological
    Methodology 13.

    Examples
    --------
    >>> from trajscore.datasets import load_who_and_when
    >>> from trajscore.localization import FirstErrorLocator
    >>> X, first_error = load_who_and_when(return_X_y=True)
    >>> P = FirstErrorLocator().fit_transform(X, first_error, groups=X.meta["question"])
    >>> P
    <TrajectoryArray: 184 runs of 5 to 130 steps, channels probability>
    """

    # groups stay whole as in scikit-learn's splitters of groups
    __metadata_request__fit = {"groups": True}  # noqa: RUF012
    censored = "drop"  # runs without a label; read by folds

    def __init__(self, estimator: Any = None, live: bool = False) -> None:
        self.estimator = estimator
        self.live = live

    def fit(self, X: Any, first_error: Any, groups: ArrayLike | None = None) -> Self:
        """Fit the hazard.

        Parameters
        ----------
        X : TrajectoryArray or array-like of shape (n_runs, T_max)
            Signals, any number a step; values may be missing.
        first_error : array-like of int of shape (n_runs,)
            First wrong step of each run, counted from 1; 0 where no step is wrong, -1 where the run
            is not labelled. Of several annotators, give a run once for each.
        groups : array-like of shape (n_runs,), optional
            Not read here: ``fit_transform`` keeps runs of one group in one fold.

        Returns
        -------
        FirstErrorLocator
            The fitted locator.

        Raises
        ------
        ValueError
            If a label is not a step of its run, or no labelled run has a wrong step.

        Warns
        -----
        UserWarning
            If fewer than 30 labelled runs have a wrong step.
        """
        traces = check_estimator_input(self, X, reset=True, **_READS)
        labels = check_first_error(first_error, traces)
        self.n_unlabelled_ = int((labels < 0).sum())
        n_errors = (labels > 0).sum()
        if not n_errors:
            raise TooFewRunsError(
                f"no labelled run (n_samples = {len(traces)}) has a wrong step, so there is one "
                f"class and nothing to learn; give runs in which a step is wrong"
            )
        if n_errors < MIN_LABELLED_ERRORS:
            warnings.warn(
                f"Only {n_errors} labelled runs have a wrong step. Label about "
                f"{MIN_LABELLED_ERRORS} such runs before you trust what is learnt",
                UserWarning,
                stacklevel=2,
            )
        order = id_order(traces.ids)  # so that the order of rows cannot matter
        order = order[labels[order] >= 0]
        traces = traces[order]
        self.has_none_ = bool((labels == 0).any())
        V = as_table(traces.cells)
        self._range = OrdinaryRange.of(V)
        self._mean = np.nan_to_num(pd.DataFrame(self._range.nearest(V)).mean())
        is_first = (step_numbers(traces) == np.repeat(labels[order], traces.lengths)) * 1.0
        at_risk = running_sum(traces, is_first) == is_first
        is_first = is_first[at_risk]
        self._scaler = StandardScaler()
        rows = self._scaler.fit_transform(self._features(traces)[at_risk]).clip(*_DEVIATIONS)
        estimator = self.estimator
        if is_first.all():
            estimator = DummyClassifier()
        elif estimator is None:
            estimator = LogisticRegression(C=1 / rows.shape[1], solver="newton-cholesky")
        self.classifier_ = clone(estimator).fit(rows, is_first)
        return self

    def fit_transform(self, X: Any, first_error: Any, groups: ArrayLike | None = None) -> Any:
        """Fit on all runs, and return the distribution of each run by a fit on other runs.

        Parameters
        ----------
        X, first_error : signals and labels
            As in `fit`.
        groups : array-like of shape (n_runs,), optional
            Runs of one group (say, trials of one task) stay in one of five folds.

        Returns
        -------
        TrajectoryArray, or NaN-padded ndarray where X was a plain array
            Out-of-fold distributions, as `FirstErrorWindow` and `compare_locators` take them.

        Raises
        ------
        ValueError
            As in `fit`, or if there are too few runs or groups for the folds.
        """
        self.fit(X, first_error)
        sample = check_sample(X, groups=groups, allow_missing=True)
        labels = check_first_error(first_error, sample.X)
        # fits to fewer errors, and what follows a step, are meant
        with warnings.catch_warnings(action="ignore"):
            out = cross_fit_sample(self, replace(sample, y=labels))
        return like_input(out, X)

    def transform(self, X: Any) -> Any:
        """Return the probability of each step to be the first wrong one.

        Parameters
        ----------
        X : TrajectoryArray or array-like of shape (n_runs, T_max)
            Signals, in the channels of the training data.

        Returns
        -------
        TrajectoryArray, or NaN-padded ndarray where X was a plain array
            Probabilities; what is missing from 1 in a run is that of no wrong step.

        Raises
        ------
        NotFittedError
            If `fit` has not been called.
        ValueError
            If the signals are in other channels than those of the training data, or infinite.
        """
        traces = check_estimator_input(self, X, reset=False, **_READS)
        parts = [traces[rows] for rows in row_chunks(traces.offsets)]
        hazard = np.concatenate([np.empty(0), *map(self._hazard, parts)])
        stay = np.log1p(-hazard)
        P = hazard * np.exp(running_sum(traces, stay) - stay)
        out = traces.with_cells(P, channels=self._output_channels)
        if not (self.has_none_ or self.live):
            out = out.with_cells(P / run_totals(out)[run_numbers(out)])
        return like_input(out, X)

    def _hazard(self, X: TrajectoryArray) -> FloatArray:
        rows = self._scaler.transform(self._features(X)).clip(*_DEVIATIONS)
        return success_chances(self.classifier_, rows)

    def _features(self, X: TrajectoryArray) -> FloatArray:
        """Return of every step its position, and its signals beside those before (and after)."""
        V = self._range.nearest(as_table(X.cells))
        V = np.where(np.isnan(V), self._mean, V)
        step = step_numbers(X)[:, None]
        total = running_sum(X, V)
        lowest = -running_max(X, -V)
        before = np.roll(np.hstack([lowest, total / step]), 1, axis=0)
        at_first = np.nan_to_num(self._range.high)  # stands for values before the first step
        before = np.where(step > 1, before, np.tile(at_first, 2))
        fall = lowest - before[:, : V.shape[1]]
        columns = [step == np.arange(1, _OWN_STEPS + 1), np.log(step), V, fall, before]
        if not self.live:
            left = np.repeat(X.lengths, X.lengths)[:, None] - step
            after = total[np.repeat(last_cells(X), X.lengths)] - total
            after = np.where(left > 0, after / np.maximum(left, 1), V)
            columns += [left == 0, (left == 0) & (step == 1), np.log1p(left), after]
        return np.hstack(columns)
