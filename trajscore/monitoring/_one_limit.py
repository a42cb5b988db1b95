"""Stopping rules with one limit on a score: two baselines, and one that is tested."""

import warnings
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.isotonic import IsotonicRegression
from sklearn.utils import check_random_state

from trajscore.calibration import PrefixForecaster
from trajscore.calibration.forecaster import is_passthrough
from trajscore.core.array import TrajectoryArray
from trajscore.core.checks import check_trajectories
from trajscore.core.estimator import check_estimator_input
from trajscore.core.folds import held_out_rows
from trajscore.core.values import FloatArray, as_fraction, number_of
from trajscore.core.within_runs import run_maxima
from trajscore.monitoring._stopping_rule import StoppingRule, check_alphas, fitted_forecaster
from trajscore.monitoring.thresholds import most_flagged, pac_needs


class OneLimit(StoppingRule):
    """A rule that flags a run where a score, minus its statistic, falls below one threshold."""

    _thresholds: FloatArray  # one a level, set by fit; -inf flags no run

    def __init__(self, alpha: float | ArrayLike = 0.05) -> None:
        self.alpha = alpha

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

    _reads = {"single_channel": True, "probabilities": True}  # noqa: RUF012

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
        check_estimator_input(self, X, reset=True, **self._reads)
        self.alphas_ = check_alphas(self.alpha)
        self._thresholds = self.alphas_
        return self

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
    _reads = {"single_channel": True}  # noqa: RUF012

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
        traces, labels, observed = self._check_training(X, y)
        outcomes = np.repeat(labels[observed], traces.lengths[observed])
        self.isotonic_ = IsotonicRegression(y_min=0, y_max=1, out_of_bounds="clip")
        self.isotonic_.fit(traces[observed].cells, outcomes)
        self._thresholds = self.alphas_
        return self

    def _statistic(self, X: TrajectoryArray) -> FloatArray:
        return -self.isotonic_.predict(X.cells)


class LearnThenTestStop(OneLimit):
    """Flag a run when the forecast of its success falls below a tested threshold.

    With probability at least 1 - delta over held-out sets, both hold: at most a share alpha of
    succeeding runs is flagged, and at most a share `lost_accuracy` of all runs succeeds and is
    flagged.

    Parameters
    ----------
    forecaster : forecaster, "passthrough" or None, default=None
        Gives the forecast by its ``transform``. None is a `PrefixForecaster`; "passthrough" takes
        X as forecasts.
    alpha : float or array-like of shape (n_alphas,), default=0.05
        Bounds on the false-alarm rate; methods use the first by default.
    lost_accuracy : float or None, default=0.05
        Bound on the share of all runs that succeed and are flagged; None sets no bound.
    delta : float, default=0.1
        Chance that one of the bounds, or both, do not hold; for each level by itself.
    calibration_fraction : float, default=0.5
        Share of runs held out for the tests, drawn from all runs.
    random_state : int, RandomState instance or None, default=0
        Draws the split.

    Attributes
    ----------
    alphas_, thresholds_ : ndarray, Series indexed by alpha
        Levels, and the thresholds on the forecast; -inf where no threshold passes.
    forecaster_ : forecaster or None
        Fitted on the runs that were not held out.
    n_calibration_, n_calibration_successes_ : int
        Held-out runs, and successes among them.
    n_dropped_ : int
        Runs without an observed outcome; they are left out.
    longest_ : int
        Steps of the longest run in fitting.

    See Also
    --------
    trajscore.DensityRatioEProcess : The false-alarm rate alone, with several kinds of guarantee.

    Notes
    -----
    Thresholds are tested from 0 upwards, each for the hypothesis that it breaks a bound, until one
    cannot be rejected at level delta; this fixed order needs no correction for many tests. Both
    p-values are exact: with k flagged successes among n_1 held-out successes and n held-out runs,
    P[Bin(n_1, alpha) <= k] and P[Bin(n, lost_accuracy) <= k], of which the larger one counts. Both
    rates rise with the threshold, so all thresholds may be tested rather than those of a grid. For
    the bound on lost accuracy, held-out runs must be drawn from all runs, not outcome by outcome.
    Runs must be independent: of several trials of a task give one, or take `DensityRatioEProcess`,
    whose `fit` takes groups.

    References
    ----------
    Angelopoulos et al. (2021), Learn then test, arXiv:2110.01052.

    Examples
    --------
    >>> from trajscore.datasets import make_trajectories
    >>> from trajscore.monitoring import LearnThenTestStop
    >>> X, y = make_trajectories(2000, lengths=6, random_state=0, return_X_y=True)
    >>> rule = LearnThenTestStop(alpha=0.2, lost_accuracy=0.05).fit(X[:1000], y[:1000])
    >>> rule.report(X[1000:], y[1000:])[["false_alarm_rate", "power"]].round(2).to_dict("list")
    {'false_alarm_rate': [0.06], 'power': [0.49]}
    """

    _needs_outcomes = True

    def __init__(
        self,
        forecaster: Any = None,
        alpha: float | ArrayLike = 0.05,
        lost_accuracy: float | None = 0.05,
        delta: float = 0.1,
        calibration_fraction: float = 0.5,
        random_state: Any = 0,
    ) -> None:
        self.forecaster = forecaster
        self.alpha = alpha
        self.lost_accuracy = lost_accuracy
        self.delta = delta
        self.calibration_fraction = calibration_fraction
        self.random_state = random_state

    def fit(self, X: Any, y: ArrayLike, calibration: ArrayLike | None = None) -> Self:
        """Learn to forecast, and test thresholds on the runs that were held out.

        Parameters
        ----------
        X : TrajectoryArray or array-like of shape (n_runs, T_max)
            Scores, one or more a step.
        y : array-like of shape (n_runs,)
            Outcomes: 1 success, 0 failure, -1 not observed.
        calibration : array-like of int or bool, optional
            Rows to hold out for the tests; default: drawn at random, or all if there is no
            forecaster to fit.

        Returns
        -------
        LearnThenTestStop
            The fitted rule.

        Raises
        ------
        ValueError
            If a parameter lies outside its range, an outcome is a grade, or no held-out run
            succeeded.
        """
        as_fraction(self.delta, "delta")
        as_fraction(self.calibration_fraction, "calibration_fraction")
        if self.lost_accuracy is not None:
            as_fraction(self.lost_accuracy, "lost_accuracy")
        traces, labels, observed = self._check_training(X, y)
        held_out = observed
        if calibration is not None or not is_passthrough(self.forecaster):
            seed = check_random_state(self.random_state).randint(2**31)
            held_out = held_out_rows(
                observed, len(traces), calibration, self.calibration_fraction, seed
            )
        train = observed[~np.isin(observed, held_out)]
        self.forecaster_ = fitted_forecaster(
            self.forecaster, PrefixForecaster(), traces[train], labels[train]
        )
        self.n_calibration_ = len(held_out)
        runs = traces[held_out][labels[held_out] == 1]
        self.n_calibration_successes_ = len(runs)
        if not len(runs):
            raise ValueError(
                f"none of the {len(held_out)} held-out runs succeeded, so no threshold can be "
                f"tested; hold out other runs"
            )
        lowest = np.sort(-run_maxima(runs, self._statistic(runs)))
        # only what lies below a threshold is flagged: of the held-out successes, k
        k = list(map(self._most_allowed, self.alphas_))
        self._thresholds = np.append(lowest, -np.inf)[k]  # the last one where k is -1
        return self

    def _most_allowed(self, alpha: float) -> int:
        """Most held-out successes that a threshold that passes may flag; -1 if none passes."""
        bounds = [(self.n_calibration_successes_, "success", alpha)]
        if self.lost_accuracy is not None:
            bounds.append((self.n_calibration_, "run", self.lost_accuracy))
        allowed = min(most_flagged(n, rate, self.delta) for n, _, rate in bounds)
        if allowed < 0:
            needed = " and ".join(
                number_of(pac_needs(rate, self.delta), noun) for _, noun, rate in bounds
            )
            warnings.warn(
                f"too few held-out runs ({self.n_calibration_}, of which "
                f"{self.n_calibration_successes_} succeeded) at alpha = {alpha:g}: no run will be "
                f"flagged; fit on more runs, of which at least {needed} are held out, or raise "
                f"alpha",
                stacklevel=3,
            )
        return allowed

    def _statistic(self, X: TrajectoryArray) -> FloatArray:
        if self.forecaster_ is not None:
            X = self.forecaster_.transform(X)
        return -check_trajectories(X, probabilities=True, single_channel=True).cells
