"""The last step of a pipeline of traces."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClassifierMixin

from trajscore.calibration.forecaster import Forecaster
from trajscore.core.estimator import like_input
from trajscore.core.outcomes import check_outcomes
from trajscore.core.run_sums import AGGREGATORS, collapse
from trajscore.core.type_aliases import BoolArray, FloatArray, IntArray
from trajscore.core.values import check_choice
from trajscore.core.weights import Horizon, Weights, as_step_weights


class TraceAggregator(ClassifierMixin, Forecaster, BaseEstimator):
    """Pass a trace on through `transform`, and collapse it in `predict_proba`.

    As the last step of a pipeline it lets scorers of traces (`tps_scorer`, which reads
    ``transform``) and scikit-learn's own (``"roc_auc"``, ``"neg_brier_score"``, which read
    ``predict_proba``) judge the same pipeline in one ``cross_validate``.

    Parameters
    ----------
    phi : {"last", "mean", "min", "weighted"}, default="last"
        How a trace is collapsed.
    weights, horizon : str or callable, and int, "own" or None
        Step weights as in `trajscore.metrics.tps_score`, read for ``phi="weighted"``.

    Attributes
    ----------
    classes_ : ndarray of shape (2,)
        ``[0, 1]``: failure, success.
    n_channels_in_ : int
        Always 1.

    See Also
    --------
    trajscore.calibration.cross_fit_traces : Out-of-fold traces, where ``cross_val_predict`` gives
        none.

    Examples
    --------
    >>> from trajscore import TraceAggregator
    >>> model = TraceAggregator(phi="mean").fit([[0.9, 0.7]], [1])
    >>> model.predict_proba([[0.9, 0.7], [0.2, 0.2]]).round(2)
    array([[0.2, 0.8],
           [0.8, 0.2]])
    """

    def __init__(
        self, phi: str = "last", weights: Weights = "early", horizon: Horizon = None
    ) -> None:
        self.phi = phi
        self.weights = weights
        self.horizon = horizon

    def fit(self, X: Any, y: ArrayLike | None = None) -> Self:
        """Check parameters and data; nothing is learned.

        Parameters
        ----------
        X : TrajectoryArray or array-like of shape (n_runs, T_max)
            Forecasts in [0, 1], one a step.
        y : array-like of shape (n_runs,), optional
            Outcomes: 1 success, 0 failure, -1 not observed, or a grade in [0, 1].

        Returns
        -------
        TraceAggregator
            The fitted aggregator.

        Raises
        ------
        ValueError
            If `phi` or `weights` is unknown, a value is missing or outside [0, 1], or there is
            not one outcome for each run; the message names the run and the step.
        """
        check_choice(self.phi, "phi", AGGREGATORS)
        as_step_weights(self.weights, self.horizon)
        traces = self._check_runs(X, reset=True)
        if y is not None:
            check_outcomes(y, traces)
        self.classes_ = np.array([0, 1])
        return self

    def _reads(self) -> dict[str, bool]:
        return {"probabilities": True, "single_channel": True}

    def _advance(
        self, state: Any, scores: FloatArray, done: BoolArray | None
    ) -> tuple[None, FloatArray]:
        return None, scores[:, 0]

    def transform(self, X: Any) -> Any:
        """Return the traces as they are, in the form of X."""
        return like_input(self._check_runs(X, reset=False), X)

    def predict_proba(self, X: Any) -> FloatArray:
        """Collapse each trace to probabilities of failure and success, columns as in `classes_`."""
        traces = self._check_runs(X, reset=False)
        success = collapse(traces, self.phi, as_step_weights(self.weights, self.horizon))
        return np.stack([1 - success, success], axis=1)

    def predict(self, X: Any) -> IntArray:
        """Predict success (1) where its probability is at least one half, else failure (0)."""
        success = self.predict_proba(X)[:, 1]
        return self.classes_[(success >= 0.5).astype(np.int64)]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.classifier_tags.poor_score = True
        tags.target_tags.required = False
        return tags
