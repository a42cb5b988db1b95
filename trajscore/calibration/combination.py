"""A fit to all signals of runs: maps, history, a regression; and forecasts of runs held out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit, log_expit, logit

from trajscore.calibration._features import RunningStatistics
from trajscore.calibration._maps import EnsembleCrossFitCalibrator
from trajscore.calibration.cross_fit import Map, with_folds
from trajscore.calibration.fixed_step import AliveRate
from trajscore.calibration.forecaster import states_by_step
from trajscore.calibration.training import (
    TrainingSteps,
    curvature_of,
    fit_logistic,
    gradient_of,
)
from trajscore.core.array import TrajectoryArray
from trajscore.core.convert import as_table
from trajscore.core.score_families import CLIP
from trajscore.core.values import BoolArray, FloatArray, IntArray
from trajscore.core.within_runs import step_numbers

# Log-odds of a signal count no further: those of .001 and .999.
_LARGEST = float(logit(0.999))
_SHARES = np.linspace(0, 1, 41)
_FEWER_SHARES = np.linspace(0, 1, 9)  # of some of the signals, or of very many steps
_MANY_STEPS = 200_000
_MOST_REFINED = 8
_N_NEWTON = 2
_READ = ("n", "last", "mean", "low", "high")  # statistics that the regression reads


@dataclass(frozen=True)
class SignalMap:
    """Log-odds of success at the values of one signal; those of the base rate where none is."""

    base: float
    is_probability: bool
    falls: bool = False  # whether higher values go with failure
    probability: Map | None = None  # of values that rise with success; None: without information

    def __call__(self, values: FloatArray) -> FloatArray:
        """Return log-odds less those of the base rate; NaN where a value is missing."""
        if self.probability is None:
            return np.where(np.isnan(values), np.nan, 0.0)
        return logit(self.probability(self.turned(values))) - self.base

    def turned(self, values: FloatArray) -> FloatArray:
        """Return values that rise with success."""
        if not self.falls:
            return values
        return 1 - values if self.is_probability else -values


@dataclass(frozen=True)
class Combination:
    """A fit to some runs: a map of each signal, and a regression on what all of them have said."""

    base: float  # log-odds of the base rate
    alone: tuple[SignalMap, ...]  # by which each signal rises with success
    maps: tuple[SignalMap, ...]  # that rise or fall, whichever fits better
    alive: AliveRate
    coef: Any = None  # the intercept last
    columns: Any = field(default_factory=partial(slice, None))  # that it reads

    def heard(self, scores: FloatArray) -> FloatArray:
        """Return the log-odds of what each signal says, less those of the base rate."""
        columns = [of(scores[:, k]) for k, of in enumerate(self.maps)]
        return np.clip(np.column_stack(columns), -_LARGEST - self.base, _LARGEST - self.base)

    def rows(self, step: IntArray, said: RunningStatistics) -> FloatArray:
        """Return what the regression sees: what was said, the same times log t, t, a constant."""
        alive = logit(self.alive._rates(step, False))[:, None] - self.base
        seen = said.n > 0
        of_signals = (said.last, said.mean, said.low, said.high)
        statistics = np.hstack([np.where(seen, part, 0.0) for part in of_signals])
        log_t = np.log(step)[:, None]
        return np.hstack([alive, statistics, statistics * log_t, log_t, np.ones_like(log_t)])

    def rows_of(self, X: TrajectoryArray) -> FloatArray:
        """Return what the regression sees after every step of whole runs."""
        heard = self.heard(as_table(X.cells))
        before = RunningStatistics.begin(len(X), heard.shape[1])
        after = before._replace(**{name: np.empty_like(heard) for name in _READ})
        for here, said in states_by_step(X.with_cells(heard), before, RunningStatistics.push):
            for name in _READ:
                getattr(after, name)[here] = getattr(said, name)
        return self.rows(step_numbers(X), after)

    def log_odds(self, rows: FloatArray) -> FloatArray:
        """Forecast by the regression."""
        # no product of matrices, whose last digit depends on how many rows there are
        return np.add.reduce(rows[:, self.columns] * self.coef, axis=1)

    def of_signals(self, signals: Sequence[int], curvature: FloatArray) -> Combination:
        """Return the regression on some of the signals, by one Newton step from that on all."""
        is_kept = np.isin((np.arange(len(self.coef)) - 1) % len(self.maps), signals)
        is_kept[[0, -2, -1]] = True  # the alive rate, the step and the constant
        columns = np.flatnonzero(is_kept)
        slope = curvature[columns] @ self.coef
        fitted = np.linalg.solve(curvature[np.ix_(columns, columns)], slope)
        return replace(self, coef=fitted, columns=columns)


def map_of(steps: TrainingSteps, channel: int, blank: SignalMap) -> SignalMap:
    """Fit the map of a signal in one direction; it stays blank where success does not rise."""
    sample = steps.sample(blank.turned(as_table(steps.X.cells)[:, channel]))
    if len(sample.values) < 2 or not sample.success.any() or not sample.failure.any():
        return blank
    link = "logit" if blank.is_probability else "identity"
    fitted = EnsembleCrossFitCalibrator(link=link)._fit_map(sample)
    return blank if fitted.fallback else replace(blank, probability=fitted)


def fits_to_fewer(
    fitted: Combination, steps: TrainingSteps, rows: FloatArray, penalty: float
) -> tuple[dict[tuple[int, ...], Combination], FloatArray]:
    """Return the regressions on single signals and on all but one, and how curved its loss is.

    They go on from one Newton step away from that on all; with many signals single ones alone.
    """
    weights = steps.success, steps.failure
    every = range(len(fitted.maps))
    _, spread = gradient_of(rows, *weights, penalty, fitted.coef)
    curvature = curvature_of(rows, spread, penalty)
    subsets: list[tuple[int, ...]] = [(k,) for k in every]
    if len(every) <= _MOST_REFINED:
        subsets += [tuple(k for k in every if k != left_out) for left_out in every]
    apart = {}
    for signals in subsets:
        near = fitted.of_signals(signals, curvature)
        coef = fit_logistic(
            rows[:, near.columns], *weights, penalty, start=near.coef, tol=0, max_iter=_N_NEWTON
        )
        apart[signals] = replace(near, coef=coef)
    return apart, curvature


def drawn(steps: TrainingSteps, n_steps: int | None) -> TrainingSteps:
    """Keep whole runs at random, of about this number of steps in all, if there are more."""
    if n_steps is None or len(steps.success) <= n_steps:
        return steps
    order = np.random.default_rng(0).permutation(len(steps.X))
    n_runs = np.searchsorted(np.cumsum(steps.X.lengths[order]), n_steps)
    return steps.of(np.isin(np.arange(len(order)), order[:n_runs]))


class HeldOut(NamedTuple):
    """A fold: its steps, the fit to the other runs, and what this fit sees of them."""

    here: BoolArray
    fitted: Combination
    rows: FloatArray
    apart: Mapping[tuple[int, ...], Combination] = {}  # of some of the signals
    curvature: FloatArray = np.zeros((0, 0))

    def of(self, signals: Sequence[int]) -> Combination:
        """Return the fit to all signals, or to some of them, or what is close to it."""
        if len(signals) == len(self.fitted.maps):
            return self.fitted
        refitted = self.apart.get(tuple(signals))
        return refitted or self.fitted.of_signals(signals, self.curvature)


class Choice(NamedTuple):
    """The best signal, how far to move from it, and the log-odds of the regression to move to."""

    best: IntArray
    share: FloatArray
    together: FloatArray


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

    def together(self, signals: Sequence[int]) -> FloatArray:
        """Return the log-odds of each step by the regression on these signals."""
        log_odds = np.empty(len(self.alone))
        for part in self.parts:
            log_odds[part.here] = part.of(signals).log_odds(part.rows)
        return log_odds

    def choose(self, signals: Sequence[int]) -> Choice:
        """Choose the best signal, and how far to move from it, by all folds but each, and by all.

        The choice without a fold stands in its place, that by all folds at the end.
        """
        together = self.together(signals)
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
        return Choice(best, share, together)

    def traces(self, choice: Choice, others: FloatArray | None = None) -> TrajectoryArray:
        """Return the probability at each step, by the choice that the other folds make.

        Of runs that do not count, those of `others`.
        """
        best, share, together = choice
        single = np.take_along_axis(self.alone, best[self.fold][:, None], axis=1)[:, 0]
        used = self.steps.X
        of_used = np.repeat(self.X.offsets[self.rows] - used.offsets[:-1], used.lengths)
        p = np.zeros(len(self.X.cells)) if others is None else others
        p[of_used + np.arange(len(of_used))] = between(single, together, share[self.fold])
        return with_folds(self.X.with_cells(p, channels=("probability",)), self.fold_of_run)

    def _by_fold(self, log_odds: FloatArray) -> FloatArray:
        """Add up the log scores of the forecasts of steps."""
        steps = self.steps
        scores = (steps.success + steps.failure) * log_expit(log_odds) - steps.failure * log_odds
        return np.bincount(self.fold, scores, len(self.parts)).astype(float)


def between(single: FloatArray, together: FloatArray, share: Any) -> FloatArray:
    """Return the probability at a share of the way between two forecasts, in log-odds."""
    return np.clip(expit(single + share * (together - single)), CLIP, 1 - CLIP)
