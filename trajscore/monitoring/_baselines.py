"""Simple stopping rules, for a stopping rule worth its name to be compared with."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.isotonic import IsotonicRegression

from trajscore.core.array import TrajectoryArray
from trajscore.core.estimator import check_estimator_input
from trajscore.core.type_aliases import FloatArray
from trajscore.monitoring._stopping_rule import StoppingRule, check_alphas


class OneLimit(StoppingRule):
    """A rule that flags a run where a score, minus its statistic, falls below one threshold."""

    _thresholds: FloatArray  # one a level, set by fit; -inf flags no run

    def _limits(self, X: TrajectoryArray, alpha: float) -> FloatArray:
        return np.full(len(X), -self._shown_threshold(alpha))

    def _shown_threshold(self, alpha: float) -> float:
        return float(self._thresholds[self.alphas_.tolist().index(alpha)])


class RawVerifier(OneLimit):
    """Flag a run as soon as its score falls below alpha.

    A baseline without any guarantee: the score is taken for a probability of success, and the
    level for a bound on it. It bounds neither the false-alarm rate nor anything else.

    Parameters
    ----------
    alpha : float or array-like of shape (n_alphas,), default=0.05
        One level or several; methods use the first by default.

    Attributes
    ----------
    alphas_, thresholds_ : ndarray, Series indexed by alpha
        Levels, and the thresholds on the score: the levels themselves.

    References
    ----------
    Sadhuka et al. (2025), E-valuator, arXiv:2512.03109, section 4.

    Examples
    --------
    >>> from trajscore.monitoring import RawVerifier
    >>> RawVerifier(alpha=0.5).fit([[0.9, 0.8], [0.6, 0.3]]).stopping_steps([[0.7, 0.4]])
    array([2])
    """

    def __init__(self, alpha: float | ArrayLike = 0.05) -> None:
        self.alpha = alpha

    def fit(self, X: Any, y: ArrayLike | None = None) -> Self:
        """Check the input; there is nothing to learn.

        Parameters
        ----------
        X : TrajectoryArray or array-like of shape (n_runs, T_max)
            Scores in [0, 1], one a step.
        y : array-like of shape (n_runs,), optional
            Not used.

        Returns
        -------
        RawVerifier
            The rule.
        """
        check_estimator_input(self, X, reset=True, probabilities=True)
        self.alphas_ = check_alphas(self.alpha)
        self._thresholds = self.alphas_
        return self

    def _check(self, X: Any) -> TrajectoryArray:
        return check_estimator_input(self, X, reset=False, probabilities=True)

    def _statistic(self, X: TrajectoryArray) -> FloatArray:
        return -X.cells


class CalibratedVerifier(OneLimit):
    """Flag a run as soon as its calibrated score falls below alpha.

    Isotonic regression of the outcome on the scores of all steps makes a score of s mean a
    success rate of s; that bounds no false-alarm rate, and least of all that of many looks.

    Parameters
    ----------
    alpha : float or array-like of shape (n_alphas,), default=0.05
        One level or several; methods use the first by default.

    Attributes
    ----------
    isotonic_ : IsotonicRegression
        Fitted on all scores.
    n_dropped_ : int
        Runs without an observed outcome; they are left out.
    alphas_, thresholds_ : ndarray, Series indexed by alpha
        Levels, and the thresholds on the calibrated score: the levels themselves.
    longest_ : int
        Steps of the longest run in fitting.

    References
    ----------
    Sadhuka et al. (2025), E-valuator, arXiv:2512.03109, section 4.

    Examples
    --------
    >>> from trajscore.datasets import make_trajectories
    >>> from trajscore.monitoring import CalibratedVerifier
    >>> X, y = make_trajectories(2000, lengths=6, random_state=0, return_X_y=True)
    >>> rule = CalibratedVerifier(alpha=0.4).fit(X[:1000], y[:1000])
    >>> rule.report(X[1000:], y[1000:])[["false_alarm_rate", "power"]].round(2).to_dict("list")
    {'false_alarm_rate': [0.49], 'power': [0.87]}
    """

    _needs_outcomes = True

    def __init__(self, alpha: float | ArrayLike = 0.05) -> None:
        self.alpha = alpha

    def fit(self, X: Any, y: ArrayLike) -> Self:
        """Calibrate the scores.

        Parameters
        ----------
        X : TrajectoryArray or array-like of shape (n_runs, T_max)
            Scores, one a step, on any scale.
        y : array-like of shape (n_runs,)
            Outcomes: 1 success, 0 failure, -1 not observed.

        Returns
        -------
        CalibratedVerifier
            The fitted rule.

        Raises
        ------
        ValueError
            If no outcome was observed, or one is a grade.
        """
        traces, labels, known = self._check_training(X, y, single_channel=True)
        scores = traces[known].cells
        outcomes = np.repeat(labels[known], traces.lengths[known])
        order = np.lexsort((outcomes, scores))  # the order of rows must not matter
        self.isotonic_ = IsotonicRegression(y_min=0, y_max=1, out_of_bounds="clip")
        self.isotonic_.fit(scores[order], outcomes[order])
        self._thresholds = self.alphas_
        return self

    def _statistic(self, X: TrajectoryArray) -> FloatArray:
        return -np.asarray(self.isotonic_.predict(X.cells), dtype=np.float64)
