"""What all scorers of risk share."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator

from trajscore.core.array import TrajectoryArray
from trajscore.core.estimator import TraceTransformer, check_estimator_input, like_input
from trajscore.core.type_aliases import FloatArray
from trajscore.core.values import as_amount
from trajscore.core.within_runs import last_cells, running_sum
from trajscore.io import Run
from trajscore.tracer._components import SURPRISAL, check_channel, check_components


class RiskScorer(TraceTransformer, BaseEstimator):
    """Base of the scorers: a trace of risk by `transform`, one number a run by `score_samples`.

    A subclass gives `_trace`, which returns the risk of the run so far at every cell, and in
    `_check_parameters` and `_check_signals` what it asks for; by default the channel that it reads.
    """

    _output_channels = ("risk",)
    _reads: str | None = None
    """The channel that is read, and that the values of a plain array are taken for."""

    def _check_parameters(self) -> None:
        """Refuse parameters that cannot be used."""

    def _check_signals(self, signals: TrajectoryArray) -> None:
        if self._reads is not None:
            check_channel(signals, self._reads, type(self).__name__)

    def _trace(self, signals: TrajectoryArray) -> FloatArray:
        raise NotImplementedError

    def _run_risk(self, signals: TrajectoryArray) -> FloatArray:
        return np.asarray(self._trace(signals)[last_cells(signals)])

    def _signals(self, X: Any, *, reset: bool) -> TrajectoryArray:
        """Check parameters and input, once for each call."""
        self._check_parameters()
        _refuse_runs(X, type(self).__name__)
        signals = check_estimator_input(
            self, X, reset=reset, single_channel=False, allow_missing=True
        )
        if signals.channels is None:
            signals = signals.with_cells(signals.cells, channels=(self._reads or "value",))
        self._check_signals(signals)
        return signals

    def fit(self, X: Any, y: ArrayLike | None = None) -> Self:
        """Check parameters and data; nothing is learned.

        Parameters
        ----------
        X : TrajectoryArray or array-like of shape (n_runs, T_max)
            The signals of `TracerSignals`. One unnamed value a step is taken for the signal that
            the scorer reads first.
        y : array-like of shape (n_runs,), optional
            Not used; for scikit-learn's sake.

        Returns
        -------
        estimator
            The fitted scorer.
        """
        self._signals(X, reset=True)
        return self

    def transform(self, X: Any) -> Any:
        """Return the risk of the run so far, at every step.

        Parameters
        ----------
        X : TrajectoryArray or array-like of shape (n_runs, T_max)
            The signals.

        Returns
        -------
        TrajectoryArray or ndarray of shape (n_runs, T_max)
            One channel, "risk"; higher means failure is more likely. NaN where the scorer has
            seen nothing that it reads. An array if `X` is one.
        """
        signals = self._signals(X, reset=False)
        return like_input(signals.with_cells(self._trace(signals), channels=("risk",)), X)

    def score_samples(self, X: Any) -> FloatArray:
        """Return the risk of each run.

        Parameters
        ----------
        X : TrajectoryArray or array-like of shape (n_runs, T_max)
            The signals.

        Returns
        -------
        ndarray of shape (n_runs,)
            Higher means failure is more likely: the last value of `transform`; NaN for a run in
            which the scorer has seen nothing that it reads.
        """
        return self._run_risk(self._signals(X, reset=False))

    def decision_function(self, X: Any) -> FloatArray:
        """Return minus the risk of each run, which is higher where success is more likely."""
        return -self.score_samples(X)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        # of others than classifiers, scorers read decision_function of these only, up to 1.8
        tags.estimator_type = "outlier_detector"
        return tags


class ComponentScorer(RiskScorer):
    """Base of the scorers that weigh the components of TRACER's risk."""

    _reads = SURPRISAL
    alpha: float
    beta: float
    gamma: float

    def _check_parameters(self) -> None:
        for name in ("alpha", "beta", "gamma"):
            as_amount(getattr(self, name), name)

    def _check_signals(self, signals: TrajectoryArray) -> None:
        check_components(signals, type(self).__name__)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = True
        return tags


def running_mean(X: TrajectoryArray, values: FloatArray) -> FloatArray:
    """Return the mean of the values so far that are not missing; NaN where all are."""
    there = ~np.isnan(values)
    number = running_sum(X, there.astype(np.float64))
    with np.errstate(invalid="ignore"):
        return running_sum(X, np.where(there, values, 0.0)) / number


def _refuse_runs(X: Any, reader: str) -> None:
    if isinstance(X, (list, tuple)) and len(X) and isinstance(X[0], Run):
        raise ValueError(
            f"{reader} reads the channels that TracerSignals makes of runs, got runs; pass "
            f"TracerSignals().fit_transform(runs)"
        )
