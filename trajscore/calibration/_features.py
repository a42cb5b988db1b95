"""What a classifier sees of a run so far, brought up to date step by step."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, Self

import numpy as np
from numpy import count_nonzero  # of few values in a fifth of the time of `any`

from trajscore.calibration.forecaster import states_by_step
from trajscore.core.array import TrajectoryArray
from trajscore.core.values import FloatArray, IntArray, as_count

Features = str | Callable[[FloatArray], Any]
Seen = tuple[Any, ...]

FEATURES = ("prefix", "last", "running")

# scores are clipped so far under the logarithm of odds; later steps share one indicator
_CLIP = 1e-4
_OWN_STEPS = 9


class PrefixFeatures(NamedTuple):
    """Features of runs after each step: ``seen = begin(...)``, then `push` scores and read `rows`.

    What has been seen are arrays with one entry a run, in tuples, and is never changed in place.
    Statistics are those of the scores recorded so far, NaN while there are none; scores themselves
    are NaN where they were not recorded. Parameters are those of `PrefixForecaster`.
    """

    kind: Features
    last: int
    pooled: bool  # as many features at every step, its number among them; the first are repeated

    def check(self) -> None:
        """Refuse unknown features, and those that do not fit one classifier over all steps."""
        if not callable(self.kind) and self.kind not in FEATURES:
            raise ValueError(
                f"features must be {', '.join(FEATURES)} or a function, got {self.kind!r}"
            )
        as_count(self.last, "last")
        if self.pooled and self.kind == "prefix":
            raise ValueError(
                'pooled=True needs as many features at every step; use features="running" or "last"'
            )

    def begin(self, n_runs: int, n_channels: int) -> Seen:
        """What is seen of runs before their first step."""
        if self.kind != "running":
            return (np.empty((n_runs, 0, n_channels)),)
        return RunningStatistics.begin(n_runs, n_channels), np.zeros((n_runs, n_channels))

    def push(self, seen: Seen, scores: FloatArray) -> Seen:
        """What is seen with the scores of one more step, of shape (n_runs, n_channels)."""
        if self.kind == "running":
            of_scores, log_odds = seen
            p = np.minimum(np.maximum(scores, _CLIP), 1 - _CLIP)  # in half the time of np.clip
            total = log_odds + np.log(p) - np.log1p(-p)
            return of_scores.push(scores), np.where(np.isnan(total), log_odds, total)
        cells = np.concatenate([seen[0], scores[:, None]], axis=1)
        if self.kind == "last":
            cells = cells[:, -self.last :]
        return (cells,)

    def rows(self, seen: Seen, t: int) -> FloatArray:
        """Features after step `t`, one row a run."""
        if self.kind == "running":
            return _running_rows(seen, t)
        n_runs = len(seen[0])
        if callable(self.kind):
            rows = _called(self.kind, seen[0])
        elif self.pooled:
            # the last scores, newest first; before there are as many, the first one again
            back = np.maximum(np.minimum(t, self.last) - 1 - np.arange(self.last), 0)
            rows = seen[0][:, back].transpose(0, 2, 1).reshape(n_runs, -1)
        else:
            rows = seen[0].reshape(n_runs, -1)
        if self.pooled:
            rows = np.column_stack([rows, np.full(n_runs, t)])
        return rows

    def at_all_steps(self, X: TrajectoryArray) -> FloatArray:
        """Features of every run after every step, one row a cell, for one classifier."""
        out = np.empty((len(X.cells), 0))
        for t, here, rows in self.by_step(X):
            if t == 1:
                out = np.empty((len(X.cells), rows.shape[1]))
            if rows.shape[1] != out.shape[1]:
                raise ValueError(
                    f"pooled=True needs as many features at every step; the features function "
                    f"returned {out.shape[1] - 1} at step 1 and {rows.shape[1] - 1} at step {t}"
                )
            out[here] = rows
        return out

    def by_step(self, X: TrajectoryArray) -> Iterator[tuple[int, IntArray, FloatArray]]:
        """Yield each step, its cells, and the features of their runs after it."""
        states = states_by_step(X, self.begin(len(X), X.n_channels), self.push)
        for t, (here, seen) in enumerate(states, start=1):
            yield t, here, self.rows(seen, t)


class RunningStatistics(NamedTuple):
    """Statistics of each channel so far, each of shape (n_runs, n_channels)."""

    n: FloatArray  # values that were recorded
    mean: FloatArray
    squares: FloatArray  # sum of squared deviations from the mean
    low: FloatArray
    high: FloatArray
    first: FloatArray
    previous: FloatArray
    last: FloatArray

    @classmethod
    def begin(cls, n_runs: int, n_channels: int) -> Self:
        """Return the statistics of runs before their first step."""
        zero = np.zeros((n_runs, n_channels))
        return cls(zero, zero, zero, zero + np.inf, zero - np.inf, zero, zero, zero)

    def push(self, values: FloatArray) -> RunningStatistics:
        """Return the statistics after one more step; what is missing leaves them as they were."""
        n = self.n + 1
        none = self.n == 0
        mean = self.mean + (values - self.mean) / n
        first = self.first
        previous = self.last
        if count_nonzero(none):
            first = np.where(none, values, first)
            previous = np.where(none, values, previous)
        new = RunningStatistics(
            n=n,
            mean=mean,
            squares=self.squares + (values - self.mean) * (values - mean),
            low=np.minimum(self.low, values),
            high=np.maximum(self.high, values),
            first=first,
            previous=previous,
            last=values,
        )
        missing = np.isnan(values)
        if not count_nonzero(missing):
            return new
        return RunningStatistics(
            *(np.where(missing, *pair) for pair in zip(self, new, strict=True))
        )


def _running_rows(seen: Seen, t: int) -> FloatArray:
    """Statistics, the same times log t, and the step: as it is up to 9, and its logarithm."""
    so_far, log_odds = seen
    none = so_far.n == 0
    n = so_far.n + none
    spread = np.sqrt(np.maximum(so_far.squares / n, 0))
    of_scores = (so_far.last, so_far.mean, so_far.low, so_far.high, so_far.previous)
    core = np.hstack([*of_scores, log_odds / n, spread, so_far.first])
    if none.any():
        core[np.tile(none, 8)] = np.nan
    step = np.arange(1, _OWN_STEPS + 1) == min(t, _OWN_STEPS)
    log_t = np.log(t)
    of_step = np.tile(np.append(step, log_t), (len(core), 1))
    return np.hstack([core, core * log_t, of_step])


def _called(function: Callable[[FloatArray], Any], seen: FloatArray) -> FloatArray:
    rows = np.asarray(function(seen), dtype=float)
    if rows.ndim == 1:
        rows = rows[:, None]
    if rows.ndim != 2 or len(rows) != len(seen):
        raise ValueError(
            f"the features function returned shape {rows.shape} for {len(seen)} runs after step "
            f"{seen.shape[1]}; it must return one row a run"
        )
    return rows
