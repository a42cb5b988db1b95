"""A fit to all signals of runs: maps, history, a regression; and forecasts of runs held out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy.special import expit, log_expit, logit

from trajscore.calibration._features import RunningStatistics
from trajscore.calibration._maps import EnsembleCrossFitCalibrator
from trajscore.calibration.cross_fit import Map, with_folds
from trajscore.calibration.fixed_step import AliveRate
from trajscore.calibration.forecaster import states_by_step
from trajscore.calibration.training import TrainingSteps
from trajscore.core.array import TrajectoryArray
from trajscore.core.convert import as_table
from trajscore.core.score_families import CLIP
from trajscore.core.values import FloatArray, IntArray

# Log-odds of a signal count no further: those of .001 and .999.
_LARGEST = float(logit(0.999))
_SHARES = np.linspace(0, 1, 41)
_FEWER_SHARES = np.linspace(0, 1, 9)  # of some of the signals, or of very many steps
_MANY_STEPS = 200_000
_MOST_REFINED = 8
_N_NEWTON = 2


@dataclass(frozen=True)
class SignalMap:
    """Log-odds of success at the values of one signal; those of the base rate where none is."""

    base: float
    is_probability: bool
    falls: bool = False  # whether higher values go with failure
    probability: Map | None = None  # of values that rise with success; None: without information

    def __call__(self, values: FloatArray) -> FloatArray:
        """Return log-odds; NaN where a value is missing."""
        if self.probability is None:
            return np.where(np.isnan(values), np.nan, self.base)
        return logit(self.probability(self.turned(values)))

    def turned(self, values: FloatArray) -> FloatArray:
        """Return values that rise with success."""
        if not self.falls:
            return values
        return 1 - values if self.is_probability else -values

    @property
    def alone(self) -> SignalMap:
        """The map by which the signal may be the best single one: none if success falls with it."""
        return replace(self, probability=None) if self.falls else self

    def fit(self, steps: TrainingSteps, values: FloatArray) -> SignalMap:
        """Fit to values that rise with success or, where they do not, fall; or stay without map."""
        link = "logit" if self.is_probability else "identity"
        for blank in (self, replace(self, falls=True)):
            sample = steps.sample(blank.turned(values))
            if sample.success.any() and sample.failure.any():
                fitted = EnsembleCrossFitCalibrator(link=link)._fit_map(sample)
                if not fitted.fallback:
                    return replace(blank, probability=fitted)
        return self


@dataclass(frozen=True)
class Combination:
    """A fit to some runs: a map of each signal, and a regression on what all of them have said."""

    base: float  # log-odds of the base rate
    maps: tuple[SignalMap, ...]  # that rise or fall, whichever fits
    alive: AliveRate
    coef: Any = None  # the intercept last

    def heard(self, scores: FloatArray) -> FloatArray:
        """Return the log-odds of what each signal says, less those of the base rate."""
        columns = [of(scores[:, k]) for k, of in enumerate(self.maps)]
        return np.clip(np.column_stack(columns), -_LARGEST, _LARGEST) - self.base

    def alone(self, X: TrajectoryArray) -> FloatArray:
        """Return the log-odds at all steps by each signal alone."""
        cells = as_table(X.cells)
        columns = [of.alone(cells[:, k]) for k, of in enumerate(self.maps)]
        return np.nan_to_num(np.column_stack(columns), nan=self.base)

    def rows(self, t: int, history: RunningStatistics) -> FloatArray:
        """Return what the regression sees: what was said, the same times log t, t, a constant."""
        seen = history.n > 0
        of_signals = (history.last, history.mean, history.low, history.high)
        statistics = np.hstack([np.where(seen, part, 0.0) for part in of_signals])
        log_t = np.log(t)
        alive = logit(self.alive._rates(np.array([t]), False)[0]) - self.base
        of_step = np.tile([alive, log_t, 1.0], (len(seen), 1))
        return np.hstack([statistics, statistics * log_t, of_step])

    def rows_of(self, X: TrajectoryArray) -> FloatArray:
        """Return what the regression sees after every step of whole runs."""
        heard = X.with_cells(self.heard(as_table(X.cells)))
        rows = np.empty((len(X.cells), 8 * len(self.maps) + 3))
        start = RunningStatistics.begin(len(X), len(self.maps))
        states = states_by_step(heard, start, RunningStatistics.push)
        for t, (here, history) in enumerate(states, start=1):
            rows[here] = self.rows(t, history)
        return rows


def weighted(rows: FloatArray, coef: FloatArray) -> FloatArray:
    """Forecast by a regression."""
    # no product of matrices, whose last digit depends on how many rows there are
    return np.add.reduce(rows * coef, axis=1)


def drawn(steps: TrainingSteps, n_steps: int | None) -> TrainingSteps:
    """Keep whole runs at random, of about this number of steps in all, if there are more."""
    if n_steps is None or len(steps.success) <= n_steps:
        return steps
    order = np.random.default_rng(0).permutation(len(steps.X))
    n_runs = np.searchsorted(np.cumsum(steps.X.lengths[order]), n_steps)
    return steps.of(np.isin(np.arange(len(order)), order[:n_runs]))


@dataclass(frozen=True)
class HeldOut:
    """The fit to all folds but one, and what its regression sees of the fold."""

    fitted: Combination
    rows: FloatArray
    loss: Any = None  # what was minimised, if some of the signals are to be looked at

    @cached_property
    def curvature(self) -> Any:
        """How curved the loss of the regression on all signals is."""
        return self.loss.curvature(self.loss.gradient(self.fitted.coef)[1])

    def log_odds(self, signals: Sequence[int]) -> FloatArray:
        """Forecast by the regression on all signals, or on some of them.

        These are one Newton step away from that on all; single signals, and all but one of few,
        go on from there.
        """
        coef = self.fitted.coef
        n = len(self.fitted.maps)
        if len(signals) == n:
            return weighted(self.rows, coef)
        # with the alive rate, the step and the constant
        columns = [*np.flatnonzero(np.isin(np.arange(8 * n) % n, signals)), -3, -2, -1]
        slope = self.curvature[columns] @ coef
        near = np.linalg.solve(self.curvature[np.ix_(columns, columns)], slope)
        if len(signals) == 1 or len(signals) == n - 1 < _MOST_REFINED:
            of_fewer = self.loss._replace(rows=self.loss.rows[:, columns])
            near = of_fewer.fit(near, tol=0, max_iter=_N_NEWTON)
        return weighted(self.rows[:, columns], near)


@dataclass(frozen=True)
class OutOfFold:
    """Forecasts of runs by fits to others, from all signals or from some of them."""

    X: TrajectoryArray  # of all runs
    rows: IntArray  # those that count
    fold_of_run: IntArray
    steps: TrainingSteps  # of those that count
    fold: IntArray  # of each step, from 0 on
    alone: FloatArray  # log-odds of each step by the map of each signal
    parts: list[HeldOut]
    handicap: float

    @cached_property
    def of_alone(self) -> FloatArray:
        """Log scores of each signal alone, added up by fold."""
        return np.stack([self._by_fold(column) for column in self.alone.T])

    def forecasts(self, signals: Sequence[int]) -> tuple[TrajectoryArray, int, float]:
        """Forecast from some signals: choose the best one, and how far to move from it.

        Forecasts of a fold are by the choice of the others; the choice by all is returned, too.
        Runs that do not count have none.
        """
        together = np.empty(len(self.alone))
        for k, part in enumerate(self.parts):
            together[self.fold == k] = part.log_odds(signals)
        n = len(self.parts)
        is_whole = len(signals) == len(self.of_alone)
        shares = _SHARES if is_whole and len(self.alone) <= _MANY_STEPS else _FEWER_SHARES
        used = np.vstack([~np.eye(n, dtype=bool), np.ones(n, dtype=bool)])
        best = np.asarray(signals)[np.argmax(self.of_alone[signals] @ used.T, axis=0)]
        share = np.empty(n + 1)
        for signal in np.unique(best):
            single = self.alone[:, signal]
            scores = [self._by_fold(single + a * (together - single)) for a in shares]
            worth = np.stack(scores) @ used.T - self.handicap * shares[:, None]
            here = best == signal
            share[here] = shares[np.argmax(worth[:, here], axis=0)]
        places = np.arange(len(self.X.cells))
        of_steps = self.X.with_cells(places)[self.rows].cells.astype(np.int64)
        single = self.alone[np.arange(len(of_steps)), best[self.fold]]
        p = np.full(len(places), np.nan)
        p[of_steps] = between(single, together, share[self.fold])
        traces = self.X.with_cells(p, channels=("probability",))
        return with_folds(traces, self.fold_of_run), int(best[-1]), float(share[-1])

    def _by_fold(self, log_odds: FloatArray) -> FloatArray:
        """Add up the log scores of the forecasts of steps."""
        steps = self.steps
        scores = (steps.success + steps.failure) * log_expit(log_odds) - steps.failure * log_odds
        return np.bincount(self.fold, scores, len(self.parts)).astype(float)


def between(single: FloatArray, together: FloatArray, share: Any) -> FloatArray:
    """Return the probability at a share of the way between two forecasts, in log-odds."""
    return np.clip(expit(single + share * (together - single)), CLIP, 1 - CLIP)
