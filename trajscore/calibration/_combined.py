"""One forecast from all signals, their history and the number of the step."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from scipy.special import logit

from trajscore.calibration._features import RunningStatistics
from trajscore.calibration.combination import (
    Combination,
    HeldOut,
    OutOfFold,
    SignalMap,
    between,
    drawn,
    weighted,
)
from trajscore.calibration.cross_fit import CrossFitForecaster
from trajscore.calibration.fixed_step import AliveRate
from trajscore.calibration.forecaster import ANY_SCORES
from trajscore.calibration.training import LogisticLoss, TrainingSteps
from trajscore.core.convert import as_table
from trajscore.core.errors import TooFewRunsError
from trajscore.core.estimator import like_input
from trajscore.core.folds import out_of_fold
from trajscore.core.parallel import one_blas_thread
from trajscore.core.values import (
    BoolArray,
    FloatArray,
    are_probabilities,
    as_amount,
    as_count,
    as_within,
)
from trajscore.core.weights import Horizon, Weights, as_step_weights


class State(NamedTuple):
    """Runs that are under way: steps, history, and the log-odds of the single signal."""

    t: int
    history: RunningStatistics  # of the log-odds that signals say
    alone: FloatArray


class CombinedForecaster(CrossFitForecaster):
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
    subsample : int, optional
        Steps to learn from, in whole runs drawn at random; default: all.
    weights, horizon, censored : str or callable, int or "own", and str
        Step weights and unobserved runs, as in `PlattCrossFitCalibrator`.

    Attributes
    ----------
    share_ : float
        How far the forecast is moved, in log-odds, from the best signal, 0, to the regression, 1.
    best_ : int
        Channel of the best single signal.
    combination_ : object
        The fit to all runs: ``maps`` of each signal, the ``alive`` rate, and ``coef``, the
        intercept last.
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
    >>> X.channels[forecaster.best_], round(forecaster.share_, 2)
    ('material', 0.95)
    >>> forecaster.transform(X)
    <TrajectoryArray: 360 runs of 1 to 60 steps, channels probability>
    """

    _output_channels = ("probability",)
    _reads = ANY_SCORES

    def __init__(
        self,
        penalty: float = 8.0,
        handicap: float = 1.0,
        cv: Any = 5,
        subsample: int | None = None,
        weights: Weights = "early",
        horizon: Horizon = None,
        censored: str = "failure",
    ) -> None:
        self.penalty = penalty
        self.handicap = handicap
        self.subsample = subsample
        super().__init__(cv, weights, horizon, censored)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        as_within(self.penalty, "penalty", 0, np.inf)
        as_amount(self.handicap, "handicap")
        if self.subsample is not None:
            as_count(self.subsample, "subsample")

    @one_blas_thread
    def _fit_transform(self, X: Any, y: Any, **metadata: Any) -> Any:
        held = self.held_out(X, y, **metadata)
        traces, self.best_, self.share_ = held.forecasts(range(self.n_channels_in_))
        self.combination_ = self._combine(held.steps)[0]
        if self.n_dropped_:  # which were not seen
            p = np.where(np.isnan(traces.cells), self._forecasts(held.X), traces.cells)
            traces = traces.with_cells(p)
        return like_input(traces, X)

    @one_blas_thread
    def held_out(self, X: Any, y: Any, *, apart: bool = False, **metadata: Any) -> OutOfFold:
        """Return forecasts of runs by fits to others, without a fit to all.

        Parameters
        ----------
        X, y
            As in `fit`; the other methods forecast after `fit` alone.
        apart : bool, default=False
            Whether to look at some of the signals, too.
        **metadata
            `sample_weight`, `groups` and `q_z`, as in `fit`.

        Returns
        -------
        trajscore.calibration.combination.OutOfFold
            ``forecasts(signals)`` makes those from some of the signals, or all of them.
        """
        training = self._without_outliers(self._training_runs(X, y, **metadata))
        rows = training.rows
        steps = training.steps(as_step_weights(self.weights, self.horizon)).scaled()
        used = steps.X
        fold = training.folds(self.cv)
        fold_of_step = np.repeat(fold[rows], used.lengths)
        alone = np.empty((len(fold_of_step), used.n_channels))
        parts = []
        for k, (held, (fitted, loss)) in enumerate(
            out_of_fold(fold[rows], lambda train: self._combine(steps.of(train)))
        ):
            inside = used[held]
            alone[fold_of_step == k] = fitted.alone(inside.ffill())
            parts.append(HeldOut(fitted, fitted.rows_of(inside), loss if apart else None))
        return OutOfFold(training.X, rows, fold, steps, fold_of_step, alone, parts, self.handicap)

    def _combine(self, steps: TrainingSteps) -> tuple[Combination, LogisticLoss]:
        """Fit maps and regression to some runs; return them, and what the regression minimised."""
        steps = drawn(steps, self.subsample)
        rate = steps.success.sum() / (steps.success + steps.failure).sum()
        if not 0 < rate < 1:
            kind = "successes" if rate else "failures"
            raise TooFewRunsError(
                f"all runs, or all of a fold, are {kind}; both outcomes are needed in every fold: "
                f"give more runs, or a smaller cv"
            )
        base = float(logit(rate))
        maps = [
            SignalMap(base, are_probabilities(ends)).fit(steps, values)
            for ends, values in zip(
                np.transpose(self._range[:2]), as_table(steps.X.cells).T, strict=True
            )
        ]
        alive = AliveRate(weights=self.weights, horizon=self.horizon)
        alive.fit(steps.X, steps.label, sample_weight=steps.weight)
        fitted = Combination(base, tuple(maps), alive)
        loss = LogisticLoss(fitted.rows_of(steps.X), steps.success, steps.failure, self.penalty)
        return replace(fitted, coef=loss.fit(tol=1e-3, max_iter=50)), loss

    def _begin(self, n: int) -> State:
        base = np.full(n, self.combination_.base)
        return State(0, RunningStatistics.begin(n, self.n_channels_in_), base)

    def _advance(
        self, state: State, scores: FloatArray, done: BoolArray | None
    ) -> tuple[State, FloatArray]:
        fitted = self.combination_
        history = state.history.push(fitted.heard(scores))
        log_odds = fitted.maps[self.best_].alone(scores[:, self.best_])
        alone = np.where(np.isnan(log_odds), state.alone, log_odds)
        t = state.t + 1
        together = weighted(fitted.rows(t, history), fitted.coef)
        p = between(alone, together, self.share_)
        return State(t, history, alone), p
