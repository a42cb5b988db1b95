"""The density ratio of failing to succeeding runs, and the sequential test made of it."""

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np

from trajscore.calibration import PrefixForecaster
from trajscore.calibration.forecaster import Live, check_finite, live_form, steps_of
from trajscore.core.array import TrajectoryArray
from trajscore.core.checks import check_trajectories
from trajscore.core.score_families import CLIP
from trajscore.core.values import FloatArray, IntArray
from trajscore.core.within_runs import (
    first_step_above,
    last_cells,
    running_max,
    step_numbers,
)
from trajscore.monitoring._stopping_rule import Ranges
from trajscore.monitoring.thresholds import Ids, Threshold

END_AWARE = PrefixForecaster(features="running", pooled=True, end="step")
_DONE = np.array([True])
# Where few failing runs get to a step, the mean over all steps counts as so many more of them.
_SHRINKAGE = 10
_NOTHING = np.finfo(float).tiny  # a worth of 0, of which there is a logarithm


def added_to_log_m(
    lengths: IntArray, end: str | None, log_offset: float, end_worth: float | None
) -> tuple[tuple[float, ...], float]:
    """Return what is added to log M at each step of a run, and at its end.

    Read from the `lengths` of failing runs; `end` says when the forecaster knows the end.
    """
    if end_worth is None:
        return (-log_offset,), 0.0
    worth = _remaining_shares(lengths, end == "step") + end_worth
    going = np.log(np.maximum(worth, _NOTHING)) - log_offset
    return tuple(going.tolist()), float(np.log(max(end_worth, _NOTHING)))


def _remaining_shares(lengths: IntArray, without_ends: bool) -> FloatArray:
    """Mean share of its steps that a failing run still has, at each step and after all of them.

    Those of N >= t steps have 1 - t / N left after step t; `without_ends`, N = t is not counted.
    """
    count = np.bincount(lengths)[1:]
    step = np.arange(1, len(count) + 1)
    n = np.cumsum(count[::-1])[::-1]
    per_step = np.cumsum((count / step)[::-1])[::-1]
    left = np.append(n - step * per_step, 0.0)
    n = np.append(n - count * without_ends, 0)
    overall = (left.sum() + 0.5) / (n.sum() + 1)
    return (left + _SHRINKAGE * overall) / (n + _SHRINKAGE)


def final_forecaster(forecaster: Any) -> Any:
    """Return the forecaster inside a search, a pipeline or a frozen estimator."""
    return [forecaster, *steps_of(forecaster)][-1]


@dataclass(frozen=True)
class FittedTest:
    """All that decides on new runs, in a batch or step by step.

    M_t = (1 - F_t) / F_t * pi / (1 - pi), with the success rate pi of the training runs; 1 / M_t
    where successes are flagged. Without outcomes log M is minus the score.
    """

    forecaster: Any  # fitted; None where scores are taken as they are
    end: str | None  # when it knows that a run has ended: with its "step", "after" it, or never
    log_odds: float  # log(pi / (1 - pi)); NaN without outcomes
    going: tuple[float, ...]  # added to log M at each step; the last from there on
    at_end: float  # the same at the end of a run
    threshold: Threshold
    alphas: tuple[float, ...]  # its levels
    n_channels: int
    channels: tuple[str, ...] | None
    longest: int  # steps of the longest run in fitting
    fitted_range: Ranges  # of the scores in fitting
    sign: int = 1  # -1 where successes are flagged

    @property
    def has_outcomes(self) -> bool:
        """Whether a density ratio was learned from outcomes."""
        return not np.isnan(self.log_odds)

    @property
    def reads_forecasts(self) -> bool:
        """Whether scores are forecasts already."""
        return self.forecaster is None and self.has_outcomes

    def log_m(self, X: TrajectoryArray) -> FloatArray:
        """Log M of every cell, as it is shown."""
        F = X
        if self.forecaster is not None:
            with np.errstate(over="ignore", invalid="ignore"):
                F = self.forecaster.transform(X)
        F = check_trajectories(
            F, probabilities=self.reads_forecasts, single_channel=True, allow_missing=True
        )
        check_finite(F.cells, F)
        return self._log_ratio(F.cells)

    def statistic(self, X: TrajectoryArray, log_m: FloatArray) -> FloatArray:
        """What is compared with limits, of every cell, from log M."""
        values = np.array(self.going)[np.minimum(step_numbers(X), len(self.going)) - 1]
        ends = last_cells(X)[X.ended]
        if self.end == "after":
            values += self.log_m(X.with_ended(False))
        else:
            values += log_m
        values[ends] = self._last_values(values[ends], log_m[ends], X.ids[X.ended])
        return values

    def decide(self, X: TrajectoryArray, alpha: float) -> tuple[FloatArray, FloatArray, IntArray]:
        """Return log M of every cell, its p-value so far, and the step at which each run stops."""
        log_m = self.log_m(X)
        values = self.statistic(X, log_m)
        stops = first_step_above(X, values, self.threshold.limits(X.ids, alpha))
        return log_m, self.threshold.p_values(running_max(X, values)), stops

    @property
    def live(self) -> Live:
        """The forecaster step by step; it begins with the state before a run's first step."""
        return live_form(self.forecaster, self.n_channels, self.channels)

    def advance(
        self, state: Any, scores: FloatArray, run_id: Hashable, step: int, *, done: bool = False
    ) -> tuple[Any, float, float]:
        """State of the forecaster after the next step of a run, with log M and the statistic."""
        after, log_m = self._next_log_m(state, scores)
        statistic = log_m + self.going[min(step, len(self.going)) - 1]
        if done:
            _, log_m = self._next_log_m(state, scores, _DONE)
            statistic = self._last_values(statistic, log_m, [run_id])
        return after, log_m.item(), statistic.item()

    def _log_ratio(self, F: FloatArray) -> FloatArray:
        """Log M of forecasts, which are clipped."""
        if not self.has_outcomes:
            return -self.sign * F
        p = np.clip(F, CLIP, 1 - CLIP)
        return self.sign * (np.log1p(-p) - np.log(p) + self.log_odds)

    def _last_values(self, going: FloatArray, log_m: FloatArray, ids: Ids) -> FloatArray:
        """Values of last steps, looked at before and after the end, unless they come at once."""
        values = log_m + self.at_end
        if self.end != "step":
            values = np.maximum(going, values)
        return self.threshold.final_values(values, ids)

    def _next_log_m(
        self, state: Any, scores: FloatArray, done: Any = None
    ) -> tuple[Any, FloatArray]:
        """Return the state of the forecaster after a step, and log M."""
        with np.errstate(over="ignore", invalid="ignore"):
            after, F = self.live.advance(state, scores[None], done)
        check_finite(F)
        return after, self._log_ratio(F)
