"""What all rules that stop a run early have in common."""

import warnings
from abc import ABC, abstractmethod
from math import isclose
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy.stats import binomtest
from sklearn.base import BaseEstimator, clone
from sklearn.utils import ClassifierTags
from sklearn.utils.validation import check_is_fitted

from trajscore.calibration import PrefixForecaster
from trajscore.calibration.forecaster import check_forecaster, is_passthrough
from trajscore.core.array import TrajectoryArray
from trajscore.core.checks import check_sample_weight, check_trajectories, ended_where_known
from trajscore.core.errors import ArgumentError
from trajscore.core.estimator import check_estimator_input, require_y
from trajscore.core.ids import check_same_runs, id_order
from trajscore.core.outcomes import CENSORED, check_outcomes
from trajscore.core.ties import OrdinaryRange
from trajscore.core.values import (
    AnyArray,
    BoolArray,
    FloatArray,
    FloatPair,
    IntArray,
    as_numbers,
    is_number,
    number_of,
    refuse_first,
)
from trajscore.core.within_runs import first_step_above, last_cells, run_maxima, running_sum

LARGEST_SCORE = 1e150
"""Scores beyond it, whose squares are infinite, would ruin the evidence of all later steps."""

Ranges = tuple[tuple[float, float], ...]  # lowest and highest score of each channel


class StoppingRule(ABC, BaseEstimator):
    """A statistic that grows with doubt, and a limit for each run; over it, the run is flagged.

    A subclass defines `fit`, `_statistic` and `_limits`; decisions, stopping steps and reports
    follow. `fit` sets `alphas_`, `n_channels_in_` and `channels_in_`, which `_check_training` does
    for a rule that learns from outcomes: it reads the parameter `alpha`, and returns the runs,
    their outcomes, and the rows of runs whose outcome was observed. Such a rule has
    ``_needs_outcomes = True``. `_shown_threshold` returns what `thresholds_` shows for a level. A
    rule whose statistic is minus a score, with one threshold for all runs, is a subclass of
    `OneLimit` (``monitoring/_one_limit.py``), and its `fit` sets `_thresholds`.

    Attributes
    ----------
    alphas_ : ndarray of shape (n_alphas,)
        Levels that the rule was fitted for; methods take one of them, by default the first.
    thresholds_ : Series indexed by alpha
        Thresholds in the units of the rule's scores; NaN for a rule that shows none.

    Examples
    --------
    >>> import numpy as np
    >>> from trajscore.monitoring import StoppingRule
    >>> class SharpDrop(StoppingRule):
    ...     def fit(self, X, y=None):
    ...         self.alphas_ = np.array([0.1])
    ...         self.n_channels_in_, self.channels_in_ = 1, None
    ...         return self
    ...     def _statistic(self, X):  # of each cell
    ...         return np.concatenate([-np.diff(run, prepend=run[0]) for run in X])
    ...     def _limits(self, X, alpha):  # of each run
    ...         return np.full(len(X), 0.5)
    >>> SharpDrop().fit(None).stopping_steps([[0.9, 0.8, 0.1], [0.4, 0.3]])
    array([3, 0])
    """

    alphas_: FloatArray
    longest_: int  # steps of the longest run in fitting
    _fitted_range: Ranges = ()  # of the scores in fitting; () where they may be any
    _needs_outcomes = False
    # what scores must be: arguments of `check_trajectories`
    _reads: ClassVar[dict[str, bool]] = {"single_channel": False}
    _spared = 1  # the outcome of the runs of which few are flagged

    @abstractmethod
    def _statistic(self, X: TrajectoryArray) -> FloatArray:
        """Return one number a cell; the greater, the more likely the run fails."""

    @abstractmethod
    def _limits(self, X: TrajectoryArray, alpha: float) -> FloatArray:
        """Return one limit a run."""

    def stopping_steps(self, X: Any, alpha: float | None = None) -> IntArray:
        """Return the step at which each run is flagged.

        Parameters
        ----------
        X : TrajectoryArray or array-like of shape (n_runs, T_max)
            Scores.
        alpha : float, optional
            One of the fitted levels; default: the first.

        Returns
        -------
        ndarray of int of shape (n_runs,)
            Steps, counted from 1; 0 for runs that are never flagged.

        Raises
        ------
        ValueError
            If the level was not fitted, or the runs cannot be used.
        """
        return self._stops(self._check(X), self._level(alpha))

    def predict(self, X: Any, alpha: float | None = None) -> IntArray:
        """Decide for each run: 1 go on to the end, 0 flagged as failing; or 1 flagged as success.

        Parameters
        ----------
        X : TrajectoryArray or array-like of shape (n_runs, T_max)
            Scores.
        alpha : float, optional
            One of the fitted levels; default: the first.

        Returns
        -------
        ndarray of int of shape (n_runs,)
            Predicted outcomes.
        """
        return np.where(self.stopping_steps(X, alpha) > 0, 1 - self._spared, self._spared)

    def decision_function(self, X: Any, alpha: float | None = None) -> FloatArray:
        """Return how far each run stays below its limit; negative where it is flagged as failing.

        Parameters
        ----------
        X : TrajectoryArray or array-like of shape (n_runs, T_max)
            Scores.
        alpha : float, optional
            One of the fitted levels; default: the first.

        Returns
        -------
        ndarray of shape (n_runs,)
            Limit minus the largest statistic of the run; minus that where successes are flagged.
        """
        traces = self._check(X)
        largest = run_maxima(traces, self._statistic(traces))
        return (2 * self._spared - 1) * (self._limits(traces, self._level(alpha)) - largest)

    def score(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Return the power at the first fitted level: the share flagged of runs that should be.

        Parameters
        ----------
        X : TrajectoryArray or array-like of shape (n_runs, T_max)
            Scores.
        y : array-like of shape (n_runs,)
            Outcomes: 1 success, 0 failure; runs with -1 are ignored.
        sample_weight : array-like of shape (n_runs,), optional
            Weight of each run.

        Returns
        -------
        float
            Power; higher is better.

        Raises
        ------
        ValueError
            If there is no such run, or none with a weight; if an outcome is a grade.
        """
        traces = self._check(X)
        labels = check_outcomes(y, traces, allow_soft=False)
        sought = labels == 1 - self._spared
        verb = ("succeeded", "failed")[self._spared]
        if not sought.any():
            raise ValueError(f"no run {verb}, so power is undefined")
        weight = check_sample_weight(sample_weight, len(traces))[sought]
        if not weight.any():
            raise ValueError(f"all runs that {verb} have weight zero, so power is undefined")
        stops = self._stops(traces[sought].with_ended(), self._level(None))
        return float(np.average(stops > 0, weights=weight))

    def report(self, X: Any, y: ArrayLike, *, cost: Any = None) -> pd.DataFrame:
        """Say how often good and bad runs are flagged, and how early.

        Parameters
        ----------
        X : TrajectoryArray or array-like of shape (n_runs, T_max)
            Scores of runs that were not used in fitting.
        y : array-like of shape (n_runs,)
            Outcomes: 1 success, 0 failure; runs with -1 are left out and counted.
        cost : TrajectoryArray or array-like of shape (n_runs, T_max), optional
            Cost of each step, for example in tokens, for the same runs in the same order.

        Returns
        -------
        DataFrame indexed by alpha
            threshold; n_success, false_alarm_rate and its 95% Clopper-Pearson interval; n_failure,
            power and its interval: the share of failing runs that are flagged; power_before_end:
            before their last step; power_longer: of those of more than one step; mean_stopping_step
            of flagged runs; steps_saved: the share of its own steps that come after the flag, as a
            mean over failing runs; steps_saved_overall: the share of all steps of all runs; with
            `cost`, cost_saved and cost_saved_overall, the same shares of the cost; n_dropped, the
            runs without an observed outcome. Where successes are flagged, failing runs are those of
            false alarms, and power and what is saved are of succeeding ones.

        Raises
        ------
        ValueError
            If no outcome is observed, or one is a grade; if costs are of other runs, or negative.
        """
        traces, labels, costs, n_dropped = self._observed(X, y, cost, allow_soft=False)
        if not len(labels):
            raise ValueError(
                f"none of the {n_dropped} runs has an observed outcome, so there are no rates"
            )
        statistic = self._statistic(traces)
        sought = labels != self._spared
        steps = check_cost(None, traces)
        rows = []
        for alpha in self.alphas_.tolist():
            stop = first_step_above(traces, statistic, self._limits(traces, alpha))
            flagged = stop > 0
            row = {"alpha": alpha, "threshold": self._shown_threshold(alpha)}
            for outcome, count in ((1, "n_success"), (0, "n_failure")):
                row[count] = (labels == outcome).sum()
                rate = "false_alarm_rate" if outcome == self._spared else "power"
                row |= rate_with_interval(rate, flagged[labels == outcome])
            row["power_before_end"] = _mean((flagged & (stop < traces.lengths))[sought])
            row["power_longer"] = _mean(flagged[sought & (traces.lengths > 1)])
            row["mean_stopping_step"] = _mean(stop[flagged])
            row |= _saved("steps_saved", steps, stop, sought)
            if cost is not None:
                row |= _saved("cost_saved", costs, stop, sought)
            rows.append(row)
        return pd.DataFrame(rows).set_index("alpha").assign(n_dropped=n_dropped)

    def _observed(
        self, X: Any, y: Any, cost: Any, *, allow_soft: bool
    ) -> tuple[TrajectoryArray, Any, TrajectoryArray, int]:
        """Return runs with an observed outcome, outcomes, costs, and the number of other runs."""
        traces = self._check(X)
        costs = check_cost(cost, traces)
        labels = check_outcomes(y, traces, allow_soft=allow_soft)
        traces = ended_where_known(traces, labels)
        is_observed = labels != CENSORED
        n_dropped = int((~is_observed).sum())
        return traces[is_observed], labels[is_observed], costs[is_observed], n_dropped

    @property
    def thresholds_(self) -> pd.Series:
        """Threshold for each level, in the units of the rule's scores."""
        check_is_fitted(self)
        shown = {alpha: self._shown_threshold(alpha) for alpha in self.alphas_.tolist()}
        return pd.Series(shown, name="threshold").rename_axis("alpha")

    def _shown_threshold(self, alpha: float) -> float:
        return float("nan")

    def _level(self, alpha: float | None) -> float:
        check_is_fitted(self)
        levels = self.alphas_.tolist()
        if alpha is None:
            return levels[0]
        for level in levels:
            if is_number(alpha) and isclose(level, alpha, rel_tol=1e-12):
                return level
        raise ArgumentError(
            f"{{argument}} was not fitted; the fitted levels are {', '.join(map(str, levels))}. "
            f"Give one of these, or fit with that level",
            "alpha",
            alpha,
        )

    def _stops(self, X: TrajectoryArray, alpha: float) -> IntArray:
        return first_step_above(X, self._statistic(X), self._limits(X, alpha))

    def _check(self, X: Any) -> TrajectoryArray:
        traces = check_estimator_input(self, X, reset=False, **self._reads)
        has_forecaster = getattr(self, "forecaster_", None) is not None
        if has_forecaster and (longer := (traces.lengths > self.longest_).sum()):
            warnings.warn(longer_than_fitted(number_of(longer, "run"), self.longest_), stacklevel=3)
        if message := range_warning(traces.cells, self._fitted_range, self.channels_in_):
            warnings.warn(message, stacklevel=3)
        _check_scores(traces)
        return traces

    def _check_training(self, X: Any, y: Any) -> tuple[TrajectoryArray, IntArray, IntArray]:
        """Set what every fit sets; return runs, outcomes, and the rows of observed ones by id."""
        if self._needs_outcomes:
            require_y(self, y)
        traces = check_estimator_input(self, X, reset=True, **self._reads)
        _check_scores(traces)
        labels = np.full(len(traces), self._spared)
        if y is not None:
            labels = check_outcomes(y, traces, allow_soft=False)
        self.alphas_ = check_alphas(self.alpha)
        order = id_order(traces.ids)  # so that the order of rows cannot matter
        observed = order[labels[order] != CENSORED]
        if not len(observed):
            raise ValueError(
                f"none of the {len(traces)} runs has an observed outcome; give runs that have one"
            )
        self.n_dropped_ = len(labels) - len(observed)
        self.longest_ = int(traces.lengths.max())
        usual = OrdinaryRange.of(traces.cells.reshape(-1, self.n_channels_in_))
        self._fitted_range = tuple(zip(usual.low.tolist(), usual.high.tolist(), strict=True))
        return traces, labels, observed

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = self._needs_outcomes
        tags.classifier_tags = ClassifierTags(multi_class=False)  # success or failure
        return tags


def _check_scores(X: TrajectoryArray) -> None:
    refuse_first(
        ~(abs(X.cells) <= LARGEST_SCORE),
        lambda place: (
            f"{X.place(place // X.n_channels)}: the score {X.cells.flat[place]:g} is not a finite "
            f"number up to {LARGEST_SCORE:g}; divide the scores, or leave the run out"
        ),
    )


def _saved(name: str, cost: TrajectoryArray, stop: IntArray, sought: BoolArray) -> dict[str, float]:
    """Share of its cost that each run of some is spared, in the mean, and of that of all runs."""
    until, whole = spent_until(cost, running_sum(cost, cost.cells), stop)
    saved = whole - until
    share = np.divide(saved, whole, out=np.zeros(len(cost)), where=whole > 0)
    with np.errstate(invalid="ignore"):  # NaN where nothing costs anything
        overall = saved.sum() / whole.sum()
    return {name: _mean(share[sought]), f"{name}_overall": overall}


def spent_until(X: TrajectoryArray, spent: FloatArray, stop: IntArray) -> FloatPair:
    """Return what each run costs until it is stopped, and to its end, from sums so far."""
    last = last_cells(X)
    return spent[np.where(stop > 0, X.offsets[:-1] + stop - 1, last)], spent[last]


def check_cost(cost: Any, X: TrajectoryArray) -> TrajectoryArray:
    """Return one cost a step of X, none negative; 1 each where `cost` is None."""
    if cost is None:
        return X.with_cells(np.ones(len(X.cells)))
    if getattr(cost, "ndim", 0) == 1 and cost.dtype.kind != "O":
        raise ValueError(
            f"cost has shape {cost.shape}; give one cost a step, as X.with_cells(costs) does"
        )
    costs = check_trajectories(cost, single_channel=True)
    check_same_runs(X, costs, "the scores", "the costs")
    refuse_first(
        costs.cells < 0,
        lambda cell: f"{costs.place(cell)}: cost {costs.cells.flat[cell]:g} is negative",
    )
    return costs


def _mean(values: AnyArray) -> float:
    return float(values.mean()) if len(values) else np.nan


def fitted_forecaster(
    forecaster: Any, default: PrefixForecaster, X: TrajectoryArray, y: IntArray
) -> Any:
    """Fit a clone of the parameter `forecaster` of a rule; None: scores are forecasts already."""
    if is_passthrough(forecaster):
        return None
    if isinstance(forecaster, str):
        raise ValueError(f'forecaster must be an estimator or "passthrough", got {forecaster!r}')
    if forecaster is None:
        forecaster = default
    check_forecaster(forecaster)
    return clone(forecaster).fit(X, y)


def check_alphas(alpha: Any) -> FloatArray:
    """Return one or several levels as an array; each lies strictly between 0 and 1."""
    alphas = np.atleast_1d(as_numbers(alpha, "alpha"))
    if alphas.ndim != 1 or not len(alphas) or not ((alphas > 0) & (alphas < 1)).all():
        raise ValueError(f"alpha must lie strictly between 0 and 1, got {alpha!r}")
    if len(np.unique(alphas)) < len(alphas):
        raise ValueError(f"alpha names a level more than once: {alpha!r}; name each once")
    return alphas


def rate_with_interval(name: str, flagged: BoolArray) -> dict[str, float]:
    """Share of runs that were flagged, with its 95% Clopper-Pearson interval."""
    if not len(flagged):
        return {name: np.nan, f"{name}_low": 0.0, f"{name}_high": 1.0}
    test = binomtest(flagged.sum(), len(flagged))
    low, high = test.proportion_ci(0.95)
    return {name: test.statistic, f"{name}_low": low, f"{name}_high": high}


def longer_than_fitted(subject: str, longest: int) -> str:
    """Say that runs are longer than any in fitting, and what that means."""
    return (
        f"{subject} longer than the longest run in fitting, which has "
        f"{number_of(longest, 'step')}; after that step forecasts are extrapolated, or stay as "
        f"they are"
    )


def range_warning(cells: FloatArray, fitted_range: Ranges, channels: tuple[str, ...] | None) -> str:
    """Name a score outside a range three times as wide as in fitting; "" if there is none."""
    if not fitted_range:
        return ""
    low, high = np.array(fitted_range).T
    # a channel that did not vary in fitting, such as a flag that was never set, may vary later
    width = np.where(high > low, high - low, np.maximum(1.0, abs(low)))
    columns = cells.reshape(-1, len(fitted_range))
    is_out = (columns < low - width) | (columns > high + width)
    if not is_out.any():
        return ""
    row, channel = np.argwhere(is_out)[0]
    name = ""
    if channels:
        name = f" of {channels[channel]!r}"
    return (
        f"score {columns[row, channel]:g}{name} is out of range: training scores go from "
        f"{low[channel]:g} to {high[channel]:g}. Check that it is on the same scale"
    )
