"""The chance of each step to be the first wrong one, by a hazard that all steps share."""

from __future__ import annotations

import warnings
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, clone
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from trajscore.calibration.training import fit_classifier, success_chances
from trajscore.core.array import TrajectoryArray
from trajscore.core.checks import check_groups
from trajscore.core.convert import as_table
from trajscore.core.estimator import (
    TraceTransformer,
    check_estimator_input,
    like_input,
    require_y,
)
from trajscore.core.folds import assign_folds, out_of_fold
from trajscore.core.ids import id_order
from trajscore.core.run_sums import row_chunks
from trajscore.core.ties import SUM_ROUNDING, OrdinaryRange
from trajscore.core.type_aliases import BoolArray, FloatArray, IntArray
from trajscore.core.values import UNIT_ROUNDING, as_flag
from trajscore.core.within_runs import last_cells, running_max, running_sum, step_numbers
from trajscore.metrics.first_error import FirstErrors, check_first_error, run_totals

# Of many labelled errors a person needs fewer: with 19, no locator was better than position.
_FEW_ERRORS = 30
_OWN_STEPS = 4  # so many first steps have an indicator
_MOST_DEVIATIONS = 5  # so that no rare signal decides alone
_N_FOLDS = 5
_CHUNK_CELLS = 1 << 16
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
    how many follow. A missing value is the mean of the training runs. Without a channel, the
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
    _range = OrdinaryRange()  # of the training signals

    def __init__(self, estimator: Any = None, live: bool = False) -> None:
        self.estimator = estimator
        self.live = live

    def fit(self, X: Any, first_error: Any, groups: ArrayLike | None = None) -> Self:
        """Fit the hazard.

        Parameters
        ----------
        X : TrajectoryArray or array-like of shape (n_runs, T_max)
            Signals, any number a step; values may be missing.
        first_error : array-like of int of shape (n_runs,), or TrajectoryArray
            First wrong step of each run, counted from 1; 0 where no step is wrong, -1 where the run
            is not labelled. Or, of several annotators, the share that says so of each step.
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
        traces, labels, order = self._training_runs(X, first_error)
        return self._fit_runs(traces[order], labels.shares[order])

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
        traces, labels, order = self._training_runs(X, first_error)
        codes = None if groups is None else check_groups(groups, len(traces))
        has_error = labels.labelled & (labels.none < 0.5)
        fold = assign_folds(
            _N_FOLDS, traces.ids, has_error, is_counted=labels.labelled, groups=codes
        )

        def fit_others(train: BoolArray) -> FirstErrorLocator:
            rows = order[train[order]]
            return clone(self)._fit_runs(traces[rows], labels.shares[rows])

        p = np.empty(len(traces.cells))
        fold_of_cell = np.repeat(fold, traces.lengths)
        for k, (rows, fitted) in enumerate(out_of_fold(fold, fit_others)):
            p[fold_of_cell == k] = fitted._probabilities(traces[rows])
        self._fit_runs(traces[order], labels.shares[order])
        return self._distributions(traces, p, X)

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
        parts = [traces[rows] for rows in row_chunks(traces.offsets, _CHUNK_CELLS)]
        p = np.concatenate([self._probabilities(part) for part in parts] or [np.empty(0)])
        return self._distributions(traces, p, X)

    def _distributions(self, traces: TrajectoryArray, p: FloatArray, X: Any) -> Any:
        return like_input(traces.with_cells(p, channels=self._output_channels), X)

    def _training_runs(
        self, X: Any, first_error: Any
    ) -> tuple[TrajectoryArray, FirstErrors, IntArray]:
        """Check the runs of a fit; return the rows of labelled ones in the order of the ids."""
        require_y(self, first_error)
        as_flag(self.live, "live")
        traces = check_estimator_input(self, X, reset=True, **_READS)
        labels = check_first_error(first_error, traces)
        self.n_unlabelled_ = int((~labels.labelled).sum())
        n_errors = (labels.labelled - labels.none).sum()
        if n_errors < _FEW_ERRORS:
            warnings.warn(
                f"Only {n_errors:g} labelled runs have a wrong step (n_samples = {len(traces)}). "
                f"Label about {_FEW_ERRORS} before you trust what is learnt from them",
                UserWarning,
                stacklevel=3,
            )
        order = id_order(traces.ids)  # so that the order of rows cannot matter
        return traces, labels, order[labels.labelled[order]]

    def _fit_runs(self, X: TrajectoryArray, shares: TrajectoryArray) -> Self:
        """Fit to labelled runs, each step by the shares of annotators that come to it."""
        event = shares.cells
        of_runs = run_totals(shares, event)
        if not of_runs.any():
            raise ValueError(
                f"no labelled run (n_samples = {len(X)}) has a wrong step, so there is one class "
                f"and nothing to learn; give runs in which a step is wrong"
            )
        self.has_none_ = bool((of_runs < 1 - UNIT_ROUNDING).any())
        V = as_table(X.cells)
        self._range = OrdinaryRange.of(V)
        V = self._range.nearest(V)
        recorded = ~np.isnan(V)
        n = np.maximum(recorded.sum(axis=0), 1)
        self._mean = np.where(recorded, V, 0.0).sum(axis=0) / n
        at_risk = 1 - running_sum(shares, event) + event
        used = np.flatnonzero(at_risk > SUM_ROUNDING)
        rows = self._features(X)[used]
        self.scaler_ = StandardScaler().fit(rows)
        share = event[used] / at_risk[used]
        weight = at_risk[used]
        prototype = self.estimator
        if (share == 1).all():
            prototype = DummyClassifier()
        elif prototype is None:
            prototype = LogisticRegression(C=1 / rows.shape[1], solver="newton-cholesky")
        self.classifier_ = fit_classifier(
            prototype,
            self._standardised(rows),
            np.arange(len(rows)),
            share,
            None if (weight == 1).all() else weight,
        )
        return self

    def _probabilities(self, X: TrajectoryArray) -> FloatArray:
        """P(first wrong = t) of every cell."""
        hazard = success_chances(self.classifier_, self._standardised(self._features(X)))
        stay = np.log1p(-hazard)
        p = hazard * np.exp(running_sum(X, stay) - stay)
        if self.has_none_ or self.live:
            return p
        return p / np.repeat(run_totals(X, p), X.lengths)

    def _standardised(self, rows: FloatArray) -> FloatArray:
        return np.clip(self.scaler_.transform(rows), -_MOST_DEVIATIONS, _MOST_DEVIATIONS)

    def _features(self, X: TrajectoryArray) -> FloatArray:
        V = self._range.nearest(as_table(X.cells))
        V = np.where(np.isnan(V), self._mean, V)
        columns = [_position(X, self.live)]
        if V.shape[1]:
            columns.append(_history(X, V, np.nan_to_num(self._range.high), self.live))
        return np.hstack(columns)


def _position(X: TrajectoryArray, live: bool) -> FloatArray:
    """Return the number of each step and, unless live, how many follow, in several forms."""
    t = step_numbers(X)
    own = t[:, None] == np.arange(1, _OWN_STEPS + 1)
    columns = [own, np.log(t)]
    if not live:
        left = np.repeat(X.lengths, X.lengths) - t
        columns += [left == 0, (left == 0) & (t == 1), np.log1p(left)]
    return np.column_stack(columns)


def _history(X: TrajectoryArray, V: FloatArray, first: FloatArray, live: bool) -> FloatArray:
    """Return of each signal its value, its fall below all before, and the lowest and mean of these.

    Unless live, also the mean of what follows. Before the first step, all is `first`.
    """
    t = step_numbers(X)[:, None]
    total = running_sum(X, V)
    lowest = np.where(t > 1, np.roll(-running_max(X, -V), 1, axis=0), first)
    mean = np.where(t > 1, (total - V) / np.maximum(t - 1, 1), first)
    columns = [V, np.minimum(V - lowest, 0), lowest, mean]
    if not live:
        left = np.repeat(X.lengths, X.lengths)[:, None] - t
        after = np.repeat(total[last_cells(X)], X.lengths, axis=0) - total
        columns.append(np.where(left > 0, after / np.maximum(left, 1), V))
    return np.hstack(columns)
