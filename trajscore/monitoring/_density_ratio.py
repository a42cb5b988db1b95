"""The density ratio of failing to succeeding runs, and the sequential test made of it."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
from sklearn.pipeline import Pipeline

from trajscore.calibration import PrefixForecaster
from trajscore.calibration._forecaster import Live, live_form
from trajscore.core.array import TrajectoryArray
from trajscore.core.checks import check_trajectories
from trajscore.core.estimator import inside_of
from trajscore.core.outcomes import differ
from trajscore.core.score_families import CLIP
from trajscore.core.type_aliases import FloatArray, IntArray
from trajscore.core.within_runs import last_cells, run_maxima, running_max
from trajscore.monitoring._stopping_rule import unfitted_forecaster
from trajscore.monitoring._thresholds import TIE, Threshold, one_id, run_uniforms

END_AWARE = PrefixForecaster(features="running", pooled=True, end="step")
_DONE = np.array([True])


class DensityRatio(NamedTuple):
    """M_t = (1 - F_t) / F_t * pi / (1 - pi), of a forecaster and the success rate of its training.

    Attributes
    ----------
    forecaster : forecaster or None
        Fitted; None where scores are forecasts already.
    log_odds : float
        log(pi / (1 - pi)).
    wait : float
        What is taken off log M while a run goes on, so that more is left for its end.
    """

    forecaster: Any
    log_odds: float
    wait: float = 0.0

    @classmethod
    def fit(cls, forecaster: Any, X: TrajectoryArray, y: IntArray, wait: float = 0.0) -> Self:
        """Fit to runs with outcomes 0 and 1."""
        if not differ(y):
            raise ValueError(
                f"the runs that the density ratio is learned from (n_samples = {len(y)}) are "
                f"all of one outcome; both are needed"
            )
        fitted = unfitted_forecaster(forecaster, END_AWARE)
        if fitted is not None:
            fitted.fit(X, y)
        return cls(fitted, float(np.log(y.mean() / (1 - y.mean()))), wait)

    @property
    def end(self) -> str | None:
        """When the forecaster knows that a run has ended: with its last step, after it, never."""
        return getattr(final_forecaster(self.forecaster), "end", None)

    def of_forecasts(self, F: FloatArray) -> FloatArray:
        """Log M of forecasts, which are clipped."""
        p = np.clip(F, CLIP, 1 - CLIP)
        return np.asarray(np.log1p(-p) - np.log(p) + self.log_odds)

    def log_m(self, X: TrajectoryArray) -> FloatArray:
        """Log M of every cell."""
        if self.forecaster is None:
            F = check_trajectories(X, probabilities=True, single_channel=True)
        else:
            F = check_trajectories(self.forecaster.transform(X), single_channel=True)
        return self.of_forecasts(F.cells)

    def looks(self, X: TrajectoryArray) -> FloatArray:
        """What is looked at after every step: log M, less `wait` while the run goes on."""
        log_m, ends = self.log_m(X), last_cells(X)[X.ended]
        looks = log_m - self.wait
        if self.end == "after":  # the last step is looked at twice: before its end is known, too
            looks = self.log_m(X.with_ended(False)) - self.wait
            looks[ends] = np.maximum(looks[ends], log_m[ends])
        else:
            looks[ends] = log_m[ends]
        return looks

    def largest(self, X: TrajectoryArray) -> FloatArray:
        """Largest look of each run."""
        return run_maxima(X, self.looks(X)) if len(X) else np.empty(0)


class Fold(NamedTuple):
    """A density ratio, and the largest log M of the held-out successes of its fold, rising."""

    ratio: DensityRatio
    maxima: FloatArray

    def count(self, largest: Any) -> Any:
        """How many of the held-out successes look at least as bad."""
        return len(self.maxima) - np.searchsorted(self.maxima, largest - TIE, side="left")


def final_forecaster(forecaster: Any) -> Any:
    """What gives the forecasts at last, of a search, a pipeline or what is frozen."""
    inside = inside_of(forecaster)
    if inside is None and isinstance(forecaster, Pipeline):
        inside = forecaster.steps[-1][1]
    return forecaster if inside is None else final_forecaster(inside)


class Progress(NamedTuple):
    """How far a run has come: for each ratio the forecaster's state, and the largest look."""

    states: tuple[Any, ...]
    largest: tuple[float, ...]


@dataclass(frozen=True)
class FittedTest:
    """All that decides on new runs, in a batch or step by step.

    Attributes
    ----------
    ratio : DensityRatio
        M, as it is shown.
    alphas, thresholds : tuple
        Levels, and the threshold of each.
    folds : tuple of Fold
        Where given, a run's statistic is minus one plus the number of held-out successes that look
        at least as bad, each counted by the ratio of its fold. Otherwise it is the look.
    randomized_end : bool
        Whether the last look of a run that has ended is divided by a uniform.
    seed : int
        Of the uniforms of runs.
    n_channels, channels : int, tuple of str or None
        Scores a step, and their names.
    longest : int
        Steps of the longest run in fitting.
    seen : tuple of (float, float)
        Least and largest score of each channel in fitting.
    """

    ratio: DensityRatio
    alphas: tuple[float, ...]
    thresholds: tuple[Threshold, ...]
    folds: tuple[Fold, ...]
    randomized_end: bool
    seed: int
    n_channels: int
    channels: tuple[str, ...] | None
    longest: int
    seen: tuple[tuple[float, float], ...]

    def threshold(self, alpha: float) -> Threshold:
        """Return the threshold of a fitted level."""
        return self.thresholds[self.alphas.index(alpha)]

    def draws(self, alpha: float) -> bool:
        """Whether a uniform of each run, by its id, takes part in what is decided."""
        return self.randomized_end or getattr(self.threshold(alpha), "seed", None) is not None

    def statistic(self, X: TrajectoryArray) -> FloatArray:
        """What is compared with limits, of every cell."""
        if self.folds:
            counts = [fold.count(running_max(X, fold.ratio.looks(X))) for fold in self.folds]
            return -1.0 - np.sum(counts, axis=0)
        looks = self.ratio.looks(X)
        if self.randomized_end:
            looks[last_cells(X)[X.ended]] -= np.log(run_uniforms(X.ids[X.ended], self.seed))
        return looks

    def begin(self) -> Progress:
        """Progress of a run before its first step."""
        lives = self._lives()
        return Progress(tuple(one.begin() for _, one in lives), (-np.inf,) * len(lives))

    def advance(
        self, progress: Progress, scores: FloatArray, run_id: Hashable, *, done: bool = False
    ) -> tuple[Progress, float, float]:
        """Progress of a run after one more step, with its log M and its statistic."""
        states, log_m, looks = [], [], []
        for (ratio, live), before in zip(self._lives(), progress.states, strict=True):
            state, F = live.advance(before, scores[None])
            states.append(state)
            log_m.append(float(ratio.of_forecasts(F)[0]))
            looks.append(log_m[-1] - ratio.wait)
            if done:
                F = live.advance(before, scores[None], _DONE)[1]
                log_m[-1] = float(ratio.of_forecasts(F)[0])
                looks[-1] = max(looks[-1], log_m[-1]) if ratio.end == "after" else log_m[-1]
        largest = tuple(map(max, progress.largest, looks))
        statistic = looks[0]
        if self.folds:  # the first ratio is that of all runs, the others count
            counts = [fold.count(one) for fold, one in zip(self.folds, largest[1:], strict=True)]
            statistic = -1.0 - sum(counts)
        elif done and self.randomized_end:
            statistic -= float(np.log(run_uniforms(one_id(run_id), self.seed)[0]))
        return Progress(tuple(states), largest), log_m[0], statistic

    def _lives(self) -> list[tuple[DensityRatio, Live]]:
        """Ratios that are followed, each with the live form of its forecaster."""
        ratios = [self.ratio, *(fold.ratio for fold in self.folds)]
        return [(one, live_form(one.forecaster, self.n_channels, self.channels)) for one in ratios]

    @property
    def near(self) -> list[tuple[float, float]]:
        """Of each channel, where scores are expected: as far again from those of the fit."""
        # a flag that was never set may be set later
        wide = [high - low or max(1.0, abs(low)) for low, high in self.seen]
        return [(low - w, high + w) for (low, high), w in zip(self.seen, wide, strict=True)]

    def far(self, cells: FloatArray) -> str:
        """Say which score is on another scale than those of the fit; empty if none."""
        low, high = np.array(self.near).T
        columns = cells.reshape(-1, self.n_channels)
        is_far = (columns < low) | (columns > high)
        if not is_far.any():
            return ""
        row, channel = np.unravel_index(np.argmax(is_far), is_far.shape)
        name = f" of {self.channels[channel]!r}" if self.channels else ""
        least, most = self.seen[channel]
        return (
            f"score {columns[row, channel]:g}{name} is far from all scores of the fit, which go "
            f"from {least:g} to {most:g}; is it on their scale?"
        )

    @property
    def beyond(self) -> str:
        """What happens after the longest run of the fit, in words; empty if nothing does."""
        forecaster = final_forecaster(self.ratio.forecaster)
        if forecaster is None:
            return ""  # forecasts are taken as they come
        if isinstance(forecaster, PrefixForecaster) and not forecaster.pooled:
            return "after that step their forecasts stay as they are"
        return "after that step their forecasts extrapolate"
