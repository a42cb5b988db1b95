"""Simple stopping rules, for a stopping rule worth its name to be compared with."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy.optimize import brentq
from sklearn.isotonic import IsotonicRegression

from trajscore.core.array import TrajectoryArray
from trajscore.core.estimator import check_estimator_input
from trajscore.core.outcomes import check_outcomes
from trajscore.core.type_aliases import FloatArray, IntArray
from trajscore.core.values import as_count, as_fraction, as_random_state
from trajscore.core.within_runs import step_numbers
from trajscore.monitoring._stopping_rule import StoppingRule, by_alpha, check_alphas
from trajscore.monitoring._thresholds import conformal_needs, conformal_rank, run_uniforms


class OneLimit(StoppingRule):
    """A rule with the same limit for all runs, a function of its `thresholds_`."""

    _thresholds: FloatArray  # as arrays are kept in files that run no code, and tables are not

    @property
    def thresholds_(self) -> pd.Series:
        """Threshold for each level."""
        return by_alpha(self, self._thresholds, "threshold")

    def _limits(self, X: TrajectoryArray, alpha: float) -> FloatArray:
        return np.full(len(X), self._limit(float(self.thresholds_[alpha])))

    def _limit(self, threshold: float) -> float:
        return -threshold

    def _shown_threshold(self, alpha: float) -> float:
        return float(self.thresholds_[alpha])


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

    def _check(self, X: Any) -> TrajectoryArray:
        return check_estimator_input(self, X, reset=False)

    def _statistic(self, X: TrajectoryArray) -> FloatArray:
        return -np.asarray(self.isotonic_.predict(X.cells), dtype=np.float64)


class LengthRule(OneLimit):
    """A rule that reads no scores; its parameter is given, or chosen by the lengths of runs."""

    _parameter: str

    def fit(self, X: Any, y: ArrayLike | None = None) -> Self:
        """Choose the parameter of the rule, unless it is given.

        Parameters
        ----------
        X : TrajectoryArray or array-like of shape (n_runs, T_max)
            The runs; only their lengths are read.
        y : array-like of shape (n_runs,), optional
            Outcomes: 1 success, 0 failure, -1 not observed. Needed unless the parameter is given.

        Returns
        -------
        StoppingRule
            The fitted rule.

        Raises
        ------
        ValueError
            If neither the parameter nor outcomes are given, or no run succeeded.
        """
        traces = check_estimator_input(self, X, reset=True, single_channel=False)
        self.alphas_ = check_alphas(self.alpha)
        is_given = getattr(self, self._parameter) is not None
        lengths = None if is_given else _success_lengths(traces, y, self._parameter)
        self._thresholds = np.full(len(self.alphas_), self._values(lengths), dtype=np.float64)
        return self

    @abstractmethod
    def _values(self, lengths: IntArray | None) -> Any:
        """Return the parameter as given, or for each level by the lengths of succeeding runs."""


class FixedStepStop(LengthRule):
    """Flag every run that reaches a step, whatever its scores.

    Parameters
    ----------
    step : int, optional
        The step, counted from 1. Default: chosen for each level, as early as it may be for the
        false-alarm rate to be at most alpha in the mean over calibration sets (the conformal
        threshold on the lengths of succeeding runs).
    alpha : float or array-like of shape (n_alphas,), default=0.05
        One level or several; methods use the first by default. Read only where `step` is not
        given.

    Attributes
    ----------
    alphas_, thresholds_ : ndarray, Series indexed by alpha
        Levels, and the step of each; infinite where there are too few successes.

    References
    ----------
    Vovk, Gammerman and Shafer (2022), Algorithmic learning in a random world, for the conformal
    threshold.

    Examples
    --------
    >>> from trajscore.monitoring import FixedStepStop
    >>> rule = FixedStepStop(alpha=0.5).fit([[0.6], [0.7, 0.8], [0.9]], [1, 0, 1])
    >>> rule.stopping_steps([[0.9, 0.9, 0.9], [0.1]])
    array([2, 0])
    """

    _parameter = "step"

    def __init__(self, step: int | None = None, alpha: float | ArrayLike = 0.05) -> None:
        self.step = step
        self.alpha = alpha

    def _values(self, lengths: IntArray | None) -> Any:
        if lengths is None:
            return as_count(self.step, "step")
        return [_conformal_length(lengths, level) + 1 for level in self.alphas_]

    def _statistic(self, X: TrajectoryArray) -> FloatArray:
        return step_numbers(X).astype(np.float64)

    def _limit(self, threshold: float) -> float:
        return threshold - 0.5


class RandomStop(LengthRule):
    """Flag each step with a given chance, whatever its score.

    The chance is drawn from a hash of the run's identifier, so that decisions do not depend on
    the order of rows nor on the other runs.

    Parameters
    ----------
    hazard : float, optional
        Chance that a step is flagged, given that no earlier one was. Default: chosen for each
        level, as large as it may be for the false-alarm rate to be at most alpha in the mean
        over calibration sets (conformal risk control).
    alpha : float or array-like of shape (n_alphas,), default=0.05
        One level or several; methods use the first by default. Read only where `hazard` is not
        given.
    random_state : int, RandomState instance or None, default=0
        Seed of the draws.

    Attributes
    ----------
    alphas_, thresholds_ : ndarray, Series indexed by alpha
        Levels, and the hazard of each; zero where there are too few successes.
    seed_ : int
        Seed of the draws.

    References
    ----------
    Angelopoulos et al. (2024), Conformal risk control, ICLR.

    Examples
    --------
    >>> import numpy as np
    >>> from trajscore.monitoring import RandomStop
    >>> X = np.ones((1000, 5))
    >>> steps = RandomStop(hazard=0.2).fit(X).stopping_steps(X)
    >>> print(f"{np.mean(steps == 1):.1f} {np.mean(steps > 0):.1f}")
    0.2 0.7
    """

    _parameter = "hazard"

    def __init__(
        self, hazard: float | None = None, alpha: float | ArrayLike = 0.05, random_state: Any = 0
    ) -> None:
        self.hazard = hazard
        self.alpha = alpha
        self.random_state = random_state

    def _values(self, lengths: IntArray | None) -> Any:
        self.seed_ = int(as_random_state(self.random_state).randint(2**31))
        if lengths is None:
            return as_fraction(self.hazard, "hazard")
        return [_largest_hazard(lengths, level) for level in self.alphas_]

    def _statistic(self, X: TrajectoryArray) -> FloatArray:
        # an exponential time E a run is over at step t for rates above E / t
        waiting = -np.log(run_uniforms(X.ids, self.seed_))
        return np.log(step_numbers(X)) - np.repeat(np.log(waiting), X.lengths)

    def _limit(self, threshold: float) -> float:
        return float(-np.log(-np.log1p(-threshold))) if threshold > 0 else np.inf


def _success_lengths(X: TrajectoryArray, y: ArrayLike | None, parameter: str) -> IntArray:
    """Lengths of succeeding runs, rising."""
    if y is None:
        raise ValueError(f"outcomes are needed to choose a {parameter}; give y, or {parameter}=")
    lengths = np.sort(X.lengths[check_outcomes(y, X, allow_soft=False) == 1])
    if not len(lengths):
        raise ValueError(f"no run succeeded, so no {parameter} can be chosen; give {parameter}=")
    return lengths


def _is_enough(n: int, alpha: float) -> bool:
    needed = conformal_needs(alpha)
    if n < needed:
        warnings.warn(
            f"too few successes ({n}) at alpha = {alpha:g}: no run will be flagged; give at least "
            f"{needed}, or raise alpha",
            UserWarning,
            stacklevel=6,
        )
    return n >= needed


def _conformal_length(lengths: IntArray, alpha: float) -> float:
    if not _is_enough(len(lengths), alpha):
        return np.inf
    return float(lengths[conformal_rank(len(lengths), alpha) - 1])


def _largest_hazard(lengths: IntArray, alpha: float) -> float:
    n = len(lengths)
    if not _is_enough(n, alpha):
        return 0.0
    # the run to come counts as flagged: (n * rate + 1) / (n + 1) <= alpha
    room = max(((n + 1) * alpha - 1) / n, 0.0)
    most = -np.log1p(-room)
    if most == 0:
        return 0.0
    steps, count = np.unique(lengths, return_counts=True)
    share = count / n
    rate = brentq(lambda u: share @ -np.expm1(-u * steps) - room, most / steps[-1] / 2, most * 2)
    return float(-np.expm1(-rate))
