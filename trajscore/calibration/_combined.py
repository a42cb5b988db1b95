"""One forecast from all signals, their history and the number of the step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit, log_expit, logit
from sklearn.linear_model import LogisticRegression

from trajscore.calibration._alive_rate import AliveRate
from trajscore.calibration._maps import EnsembleCrossFitCalibrator
from trajscore.calibration.cross_fit import LearnedForecaster, Map, with_folds
from trajscore.calibration.training import CalibrationSample
from trajscore.core.array import TrajectoryArray
from trajscore.core.checks import check_groups
from trajscore.core.convert import as_table
from trajscore.core.estimator import like_input
from trajscore.core.folds import assign_folds, check_folds, out_of_fold
from trajscore.core.ids import id_order
from trajscore.core.parallel import one_blas_thread
from trajscore.core.score_families import CLIP
from trajscore.core.ties import OrdinaryRange, group_ties
from trajscore.core.type_aliases import BoolArray, FloatArray, IntArray
from trajscore.core.values import are_probabilities, is_number
from trajscore.core.weights import Horizon, Weights, as_step_weights
from trajscore.core.within_runs import cells_by_step, run_numbers

# Log-odds of a signal count no further: those of .001 and .999.
_LARGEST = float(logit(0.999))
_SHARES = np.linspace(0, 1, 41)


@dataclass(frozen=True)
class SignalMap:
    """Log-odds of success at the values of one signal; those of the base rate where none is."""

    base: float
    is_probability: bool
    falls: bool = False  # whether higher values go with failure
    probability: Map | None = None  # of values that rise with success; None: without information

    def __call__(self, values: FloatArray) -> FloatArray:
        """Return log-odds less those of the base rate; NaN where a value is missing."""
        out = np.where(np.isnan(values), np.nan, 0.0)
        seen = ~np.isnan(values)
        if self.probability is not None and seen.any():
            out[seen] = logit(self.probability(self.turned(values[seen]))) - self.base
        return out

    def turned(self, values: FloatArray) -> FloatArray:
        """Return values that rise with success."""
        if not self.falls:
            return values
        return 1 - values if self.is_probability else -values


class History(NamedTuple):
    """What the signals of runs have said so far, in log-odds; arrays of shape (n_runs, n)."""

    t: int
    n: FloatArray  # steps at which each was recorded
    last: FloatArray
    total: FloatArray
    low: FloatArray
    high: FloatArray

    @classmethod
    def begin(cls, n_runs: int, n_channels: int) -> Self:
        """Return the history of runs before their first step."""
        zero = np.zeros((n_runs, n_channels))
        return cls(0, zero, zero, zero, zero + np.inf, zero - np.inf)

    def push(self, log_odds: FloatArray) -> History:
        """Return the history after one more step; what is missing leaves it as it was."""
        seen = ~np.isnan(log_odds)
        return History(
            self.t + 1,
            self.n + seen,
            np.where(seen, log_odds, self.last),
            self.total + np.where(seen, log_odds, 0.0),
            np.fmin(self.low, log_odds),
            np.fmax(self.high, log_odds),
        )

    def without(self, done: BoolArray) -> History:
        """Forget runs that have ended."""
        return History(self.t, *(part[~done] for part in self[1:]))

    def rows(self, alive: FloatArray) -> FloatArray:
        """Return what the regression sees of each run: history, the same times log t, and t."""
        seen = self.n > 0
        of_signals = (self.last, self.total / np.maximum(self.n, 1), self.low, self.high)
        statistics = np.hstack([np.where(seen, part, 0.0) for part in of_signals])
        log_t = np.full((len(statistics), 1), np.log(self.t))
        return np.hstack([alive[:, None], statistics, statistics * log_t, log_t])


@dataclass(frozen=True)
class Combination:
    """A fit to some runs: a map of each signal, and a regression on what all of them have said."""

    base: float  # log-odds of the base rate
    alone: tuple[SignalMap, ...]  # by which each signal rises with success
    maps: tuple[SignalMap, ...]  # that rise or fall, whichever fits better
    alive: AliveRate
    coef: FloatArray = field(default_factory=lambda: np.zeros(0))
    intercept: float = 0.0

    def heard(self, scores: FloatArray) -> FloatArray:
        """Return the log-odds of what each signal says, less those of the base rate."""
        columns = [of(scores[:, k]) for k, of in enumerate(self.maps)]
        return np.clip(np.column_stack(columns), -_LARGEST - self.base, _LARGEST - self.base)

    def rows(self, history: History) -> FloatArray:
        """Return what the regression sees after a step."""
        n_runs = len(history.n)
        rates = self.alive._rates(np.full(n_runs, history.t), np.zeros(n_runs, dtype=bool))
        return history.rows(logit(rates) - self.base)

    def rows_of(self, X: TrajectoryArray) -> FloatArray:
        """Return what the regression sees after every step of whole runs."""
        heard = self.heard(as_table(X.cells))
        history = History.begin(len(X), heard.shape[1])
        out = np.empty((len(heard), 8 * heard.shape[1] + 2))
        for here, ends in cells_by_step(X):
            history = history.push(heard[here])
            out[here] = self.rows(history)
            if ends.any():
                history = history.without(ends)
        return out

    def log_odds(self, rows: FloatArray) -> FloatArray:
        """Forecast by the regression."""
        # no product of matrices, whose last digit depends on how many rows there are
        return np.add.reduce(rows * self.coef, axis=1) + self.intercept


class State(NamedTuple):
    """Runs that are under way: their history, and the log-odds of the single signal."""

    history: History
    alone: FloatArray


class CombinedForecaster(LearnedForecaster):
    """Forecast success from all signals so far and the step, as far as they add to the best one.

    The best signal, recalibrated, is moved towards a logistic regression on all recalibrated
    signals, their history and the number of the step, as far as other runs show that it pays. So
    signals without information cost next to nothing, with few runs as well. Signals may be
    probabilities or not, rise or fall with success, and be missing at some steps, where the last
    value holds.

    Parameters
    ----------
    penalty : float, default=8.0
        Of the squared coefficients of the regression, where the weights of a run add up to 1.
    handicap : float, default=1.0
        Nats by which the regression has to be better, over all runs, before it counts in full.
    cv : int or splitter, default=5
        Folds on which the best signal is chosen, and how far to move from it. Runs of one group
        stay in one fold.
    weights, horizon, censored : str or callable, int or "own", and str
        Step weights and unobserved runs, as in `PlattCrossFitCalibrator`.

    Attributes
    ----------
    share_ : float
        How far the forecast is moved, in log-odds, from the best signal, 0, to the regression, 1.
    best_ : int
        Channel of the best single signal.
    combination_ : object
        The fit to all runs: ``alone`` and ``maps``, the maps of each signal, the ``alive`` rate,
        ``coef`` and ``intercept``.
    n_censored_, n_dropped_ : int
        Training runs without an observed outcome, and those of them (or of weight zero) left out.
    n_channels_in_ : int
        Signals a step.

    See Also
    --------
    EnsembleCrossFitCalibrator : The map of a single signal.
    PrefixForecaster : Any classifier, of any features of the scores so far.

    Notes
    -----
    ``fit_transform`` gives each run's forecast by maps and a regression that were fitted on other
    folds, and by a choice that was made on these, at the cost of one fit.

    Examples
    --------
    >>> from trajscore.calibration import CombinedForecaster
    >>> from trajscore.datasets import load_chess
    >>> X, y = load_chess(return_X_y=True)
    >>> forecaster = CombinedForecaster().fit(X, y)
    >>> X.channels[forecaster.best_], round(forecaster.share_, 1)
    ('material', 0.9)
    >>> forecaster.transform(X)
    <TrajectoryArray: 360 runs of 1 to 60 steps, channels probability>
    """

    _range = OrdinaryRange()  # of the training scores

    def __init__(
        self,
        penalty: float = 8.0,
        handicap: float = 1.0,
        cv: Any = 5,
        weights: Weights = "early",
        horizon: Horizon = None,
        censored: str = "failure",
    ) -> None:
        self.penalty = penalty
        self.handicap = handicap
        self.cv = cv
        self.weights = weights
        self.horizon = horizon
        self.censored = censored

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if not is_number(self.penalty) or not 0 < self.penalty < np.inf:
            raise ValueError(f"penalty must be a positive number, got {self.penalty!r}")
        if not is_number(self.handicap) or not 0 <= self.handicap < np.inf:
            raise ValueError(f"handicap must be a number of nats, 0 or more, got {self.handicap!r}")
        as_step_weights(self.weights, self.horizon)
        check_folds(self.cv)

    def _reads(self) -> dict[str, bool]:
        return {"probabilities": False, "single_channel": False, "allow_missing": True}

    def fit(
        self,
        X: Any,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        q_z: ArrayLike | None = None,
    ) -> Self:
        """Fit maps and regression, and choose how much the regression counts.

        Parameters
        ----------
        X : TrajectoryArray or array-like of shape (n_runs, T_max)
            Signals, one or more a step; values may be missing.
        y : array-like of shape (n_runs,)
            Outcomes: 1 success, 0 failure, -1 not observed, or a grade in [0, 1].
        sample_weight : array-like of shape (n_runs,), optional
            Weight of each run; 0 leaves it out, 2 counts it twice.
        groups : array-like of shape (n_runs,), optional
            Runs of one group (say, trials of one task) stay in one fold.
        q_z : float or array-like of shape (n_runs,), optional
            Soft outcomes of the runs with outcome -1, for ``censored="q_z"``.

        Returns
        -------
        CombinedForecaster
            The fitted forecaster.

        Raises
        ------
        ValueError
            If a parameter, a value or an outcome cannot be used, or there are too few runs,
            outcomes or groups for the folds.
        """
        self.fit_transform(X, y, sample_weight, groups, q_z)
        return self

    @one_blas_thread
    def _fit_transform(self, X: Any, y: Any, **metadata: Any) -> Any:
        groups = metadata["groups"]
        traces, labels, weight = self._training_runs(
            X, y, metadata["sample_weight"], metadata["q_z"]
        )
        codes = None if groups is None else check_groups(groups, len(traces))
        self.n_censored_ = int((~labels.observed).sum())
        self.n_dropped_ = int((weight == 0).sum())
        order = id_order(traces.ids)  # so that the order of rows cannot matter
        rows = order[weight[order] > 0]
        if not len(rows):
            raise ValueError("no training run counts; give runs with an observed outcome")
        used = traces[rows]
        self._range = OrdinaryRange.of(as_table(used.cells))
        used = used.with_cells(self._range.nearest(as_table(used.cells)).reshape(used.cells.shape))
        steps = self._steps(used, labels.value[rows], weight[rows])
        # of a signal without a value, it does not matter
        recorded = (values[~np.isnan(values)] for values in as_table(used.cells).T)
        self._are_probabilities = tuple(len(v) > 0 and are_probabilities(v) for v in recorded)
        fold_of_run = assign_folds(
            self.cv, traces.ids, labels.stratum, is_counted=weight > 0, groups=codes
        )
        fold = fold_of_run[rows]
        alone, together = self._held_out(steps, fold)
        self.best_, self.share_ = steps.choose(alone, together, self.handicap)
        self.combination_ = self._combine(steps)
        p = self._forecasts(traces)  # runs that do not count were not seen
        of_used = np.repeat(traces.offsets[rows] - used.offsets[:-1], used.lengths)
        of_used += np.arange(len(of_used))
        fold_of_step = np.repeat(fold, used.lengths)
        for k in np.unique(fold):
            here = fold_of_step == k  # for these, by the choice of the other folds
            best, share = steps.of(fold != k).choose(alone[~here], together[~here], self.handicap)
            p[of_used[here]] = between(alone[here, best], together[here], share)
        out = traces.with_cells(p, channels=self._output_channels)
        return like_input(with_folds(out, fold_of_run), X)

    def _steps(self, X: TrajectoryArray, label: FloatArray, weight: FloatArray) -> Steps:
        """Return the steps of runs, with the weights of their outcomes."""
        of_runs = as_step_weights(self.weights, self.horizon).of(X)
        divisor = weight * of_runs.divisor()
        mass = of_runs.cells() * np.repeat(weight, X.lengths) * (weight.sum() / divisor.sum())
        success = mass * np.repeat(label, X.lengths)
        return Steps(X, label, weight, success, mass - success)

    def _held_out(self, steps: Steps, fold: IntArray) -> tuple[FloatArray, FloatArray]:
        """Return log-odds of held-out runs, by each signal alone and by the regression."""
        run = run_numbers(steps.X)
        alone = np.empty((len(run), steps.X.n_channels))
        together = np.empty(len(run))
        for held, fitted in out_of_fold(fold, lambda train: self._combine(steps.of(train))):
            here = np.isin(run, held)
            X = steps.X[held]
            filled = as_table(X.ffill().cells)
            for k, of in enumerate(fitted.alone):
                alone[here, k] = np.nan_to_num(of(filled[:, k])) + fitted.base
            together[here] = fitted.log_odds(fitted.rows_of(X))
        return alone, together

    def _combine(self, steps: Steps) -> Combination:
        """Fit maps and regression to some runs."""
        rate = steps.success.sum() / (steps.success + steps.failure).sum()
        if not 0 < rate < 1:
            kind = "successes" if rate else "failures"
            raise ValueError(
                f"all runs, or all of a fold, are {kind}; both outcomes are needed in every fold: "
                f"give more runs, or a smaller cv"
            )
        base = float(logit(rate))
        alone = []
        maps = []
        for k, is_probability in enumerate(self._are_probabilities):
            rising = steps.map_of(k, SignalMap(base, is_probability))
            alone.append(rising)
            if rising.probability is None:  # then higher values may go with failure
                rising = steps.map_of(k, replace(rising, falls=True))
            maps.append(rising)
        alive = AliveRate(weights=self.weights, horizon=self.horizon)
        alive.fit(steps.X, steps.label, sample_weight=steps.weight)
        fitted = Combination(base, tuple(alone), tuple(maps), alive)
        coef, intercept = steps.regress(fitted.rows_of(steps.X), self.penalty)
        return replace(fitted, coef=coef, intercept=intercept)

    def _begin(self, n: int) -> State:
        return State(History.begin(n, self.n_channels_in_), np.zeros(n))

    def _advance(
        self, state: State, scores: FloatArray, done: BoolArray | None
    ) -> tuple[State, FloatArray]:
        fitted = self.combination_
        scores = self._range.nearest(scores)
        history = state.history.push(fitted.heard(scores))
        log_odds = fitted.alone[self.best_](scores[:, self.best_])
        alone = np.where(np.isnan(log_odds), state.alone, log_odds)
        together = fitted.log_odds(fitted.rows(history))
        p = between(alone + fitted.base, together, self.share_)
        if done is None or not done.any():
            return State(history, alone), p
        return State(history.without(done), alone[~done]), p

    @property
    def _output_channels(self) -> Sequence[str]:
        return ("probability",)


class Steps(NamedTuple):
    """Training runs, and the weights of success and failure at each of their steps."""

    X: TrajectoryArray
    label: FloatArray
    weight: FloatArray
    success: FloatArray
    failure: FloatArray

    def of(self, train: BoolArray) -> Steps:
        """Keep some of the runs."""
        here = np.repeat(train, self.X.lengths)
        return Steps(
            self.X[train],
            self.label[train],
            self.weight[train],
            self.success[here],
            self.failure[here],
        )

    def score(self, log_odds: FloatArray) -> float:
        """Return the log score of forecasts of every step."""
        return float(self.success @ log_expit(log_odds) + self.failure @ log_expit(-log_odds))

    def choose(self, alone: FloatArray, together: FloatArray, handicap: float) -> tuple[int, float]:
        """Choose the best signal, and how far to move from it, by log-odds of held-out runs."""
        best = int(np.argmax([self.score(column) for column in alone.T]))
        single = alone[:, best]
        worth = [
            self.score(single + share * (together - single)) - handicap * share for share in _SHARES
        ]
        return best, float(_SHARES[int(np.argmax(worth))])

    def map_of(self, channel: int, blank: SignalMap) -> SignalMap:
        """Fit the map of a signal in one direction; it stays blank where success does not rise."""
        values = as_table(self.X.cells)[:, channel]
        seen = ~np.isnan(values)
        distinct, group = group_ties(blank.turned(values[seen]))
        success, failure = (
            np.bincount(group, part[seen], len(distinct)).astype(np.float64)
            for part in (self.success, self.failure)
        )
        if len(distinct) < 2 or not success.any() or not failure.any():
            return blank
        link = "logit" if blank.is_probability else "identity"
        sample = CalibrationSample(distinct, success, failure, len(self.X))
        fitted = EnsembleCrossFitCalibrator(link=link)._fit_map(sample)
        return blank if fitted.fallback else replace(blank, probability=fitted)

    def regress(self, rows: FloatArray, penalty: float) -> tuple[FloatArray, float]:
        """Fit a ridge logistic regression; a soft outcome counts as both."""
        won, lost = np.flatnonzero(self.success), np.flatnonzero(self.failure)
        model = LogisticRegression(C=1 / penalty, solver="newton-cholesky", tol=1e-3, max_iter=50)
        model.fit(
            rows[np.concatenate([won, lost])],
            np.repeat([1, 0], [len(won), len(lost)]),
            sample_weight=np.concatenate([self.success[won], self.failure[lost]]),
        )
        return model.coef_[0], float(model.intercept_[0])


def between(single: FloatArray, together: FloatArray, share: float) -> FloatArray:
    """Return the probability at a share of the way between two forecasts, in log-odds."""
    return np.clip(expit(single + share * (together - single)), CLIP, 1 - CLIP)
