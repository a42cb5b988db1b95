"""Metrics as functions of how often each run counts: a bootstrap replicate is one more weighting.

A metric of many runs is a mean of one number a run (`MeanOfRuns`), a function of the failures and
successes at each confidence (`OfTies`), or a sum of absolute means (`CalibrationError`). All are
called with counts of shape (..., n_runs) and return one value for each weighting; `all_at_once`
does so for a whole table of them.

The influence of a run is n_runs times the derivative of the metric in the logarithm of the run's
weight, by default where all runs weigh 1: of a mean, the run's deviation from it. A run that is not
used has none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from trajscore.core.ranking import GRADIENTS, TieGroups
from trajscore.core.run_sums import RunSums
from trajscore.core.type_aliases import FloatArray, IntArray


@dataclass(frozen=True)
class MeanOfRuns:
    """Mean of one number a run, or sum of it over that of a divisor; arrays of shape (n_rows,)."""

    samples: FloatArray
    rows: IntArray | None = None  # the runs whose numbers they are; None for all
    other: FloatArray | None = None  # the numbers, had each run ended the other way, if known
    divisor: FloatArray | None = None  # such as the weight of a run's steps; None for one each

    def __call__(self, counts: FloatArray) -> FloatArray:
        """Return the mean for each weighting, NaN where no run counts."""
        return _means(_columns(counts, self.rows), self.samples[:, None], self.divisor)[..., 0]

    def influence(self, n_runs: int, weight: FloatArray | None = None) -> FloatArray:
        """Return the influence of each of n_runs runs."""
        used = _weight_used(n_runs, weight, self.rows)
        sizes = np.ones(len(used)) if self.divisor is None else self.divisor
        total = (used * sizes).sum()
        mean = (used * self.samples).sum() / total
        deviations = used * (self.samples - mean * sizes) / total
        return _on_all_runs(n_runs * deviations, self.rows, n_runs)

    def change(self, n_runs: int, weight: FloatArray | None = None) -> FloatArray:
        """Return what each run would add to the mean, had it ended the other way."""
        other = self.samples if self.other is None else self.other
        used = _weight_used(n_runs, weight, self.rows)
        total = (used * (1 if self.divisor is None else self.divisor)).sum()
        return _on_all_runs(used * (other - self.samples) / total, self.rows, n_runs)

    def __sub__(self, reference: MeanOfRuns) -> MeanOfRuns:
        """Return what it is above another one of the same runs, with the same divisor."""
        other = None
        if self.other is not None and reference.other is not None:
            other = self.other - reference.other
        return replace(self, samples=self.samples - reference.samples, other=other)

    def pseudo_values(self) -> FloatArray:
        """Return numbers whose plain mean is this one, and which vary as it does."""
        if self.divisor is None:
            return self.samples
        return RunSums(self.samples, self.divisor).samples()


@dataclass(frozen=True)
class OfTies:
    """Function of the weight of failures and of successes in each group of tied runs.

    Functions are those of `ranking`, which has their derivatives, too.
    """

    ties: TieGroups
    function: Callable[[FloatArray, FloatArray], FloatArray]
    rows: IntArray | None = None  # the runs that were grouped; None for all

    def __call__(self, counts: FloatArray) -> FloatArray:
        """Return the value for each weighting, NaN where it does not exist."""
        return self.function(*self.ties.sums(_columns(counts, self.rows)))

    def influence(self, n_runs: int, weight: FloatArray | None = None) -> FloatArray:
        """Return the influence of each of n_runs runs; NaN where the value does not exist."""
        used = _weight_used(n_runs, weight, self.rows)
        derivatives = GRADIENTS[self.function](*self.ties.sums(used))
        return _on_all_runs(n_runs * used * self.ties.to_runs(*derivatives), self.rows, n_runs)


@dataclass(frozen=True)
class CalibrationError:
    """Sum over bins of the absolute value of the mean gap between outcomes and forecasts.

    `gaps`, of shape (n_rows, n_bins), are the weighted sums of a run's gaps (outcome less forecast)
    in each bin that is not empty.
    """

    gaps: FloatArray
    weight: FloatArray  # of shape (n_rows,): the sums of these weights
    rows: IntArray | None = None  # the runs whose gaps they are; None for all

    def __call__(self, counts: FloatArray) -> FloatArray:
        """Return the value for each weighting, NaN where nothing has a weight; bins stay."""
        used = _columns(counts, self.rows)
        with np.errstate(invalid="ignore"):
            return np.asarray(np.abs(used @ self.gaps).sum(axis=-1) / (used @ self.weight))

    def parts(self, n_runs: int, weight: FloatArray | None = None) -> tuple[FloatArray, FloatArray]:
        """Return the mean gap of each bin, and influences on them of shape (n_runs, n_bins)."""
        used = _weight_used(n_runs, weight, self.rows)
        total = used @ self.weight
        with np.errstate(invalid="ignore", divide="ignore"):  # NaN where nothing has a weight
            mean = used @ self.gaps / total
            deviations = self.weight[:, None] * mean
            np.subtract(self.gaps, deviations, out=deviations)
            deviations *= (n_runs / total) * used[:, None]
        return mean, _on_all_runs(deviations, self.rows, n_runs)

    def influence(self, n_runs: int, weight: FloatArray | None = None) -> FloatArray:
        """Return the influence of each of n_runs runs."""
        mean, influence = self.parts(n_runs, weight)
        return np.asarray(influence @ np.sign(mean))


Statistic = MeanOfRuns | OfTies | CalibrationError


def all_at_once(metrics: Mapping[str, Statistic]) -> Callable[[FloatArray], FloatArray]:
    """Return a function from counts (..., n_runs) to all metrics (..., n_metrics), in their order.

    Runs are picked and added up once for metrics that hold the same `rows`, `ties` and `divisor`
    (the same objects, not equal ones).
    """
    statistics = list(metrics.values())
    groups: dict[tuple[int, type, int, int], list[int]] = {}
    for column, statistic in enumerate(statistics):
        shared = id(getattr(statistic, "ties", None)), id(getattr(statistic, "divisor", None))
        groups.setdefault((id(statistic.rows), type(statistic), *shared), []).append(column)
    joint = [_joint([statistics[column] for column in columns]) for columns in groups.values()]

    def values(counts: FloatArray) -> FloatArray:
        out = np.empty((*counts.shape[:-1], len(statistics)))
        picked: dict[int, FloatArray] = {}
        for (key, *_), columns, function in zip(groups, groups.values(), joint, strict=True):
            if key not in picked:
                picked[key] = _columns(counts, statistics[columns[0]].rows)
            out[..., columns] = function(picked[key])
        return out

    return values


def _joint(group: Sequence[Any]) -> Callable[[FloatArray], FloatArray]:
    """Metrics of one kind, runs and ties as one function, from counts of these runs to columns."""
    first = group[0]
    if isinstance(first, OfTies):

        def values(counts: FloatArray) -> FloatArray:
            sums = first.ties.sums(counts)
            return np.stack([metric.function(*sums) for metric in group], axis=-1)

        return values
    if isinstance(first, CalibrationError):
        errors = [replace(metric, rows=None) for metric in group]
        return lambda counts: np.stack([metric(counts) for metric in errors], axis=-1)
    samples = np.stack([metric.samples for metric in group], axis=1)
    return lambda counts: _means(counts, samples, first.divisor)


def _means(counts: FloatArray, samples: FloatArray, divisor: FloatArray | None) -> FloatArray:
    sizes = np.ones(len(samples)) if divisor is None else divisor
    sums = counts @ np.column_stack([samples, sizes])
    with np.errstate(invalid="ignore"):
        return np.asarray(sums[..., :-1] / sums[..., -1:])


def _columns(counts: FloatArray, rows: IntArray | None) -> FloatArray:
    return counts if rows is None else counts[..., rows]


def _weight_used(n_runs: int, weight: FloatArray | None, rows: IntArray | None) -> FloatArray:
    return _columns(np.ones(n_runs) if weight is None else weight, rows)


def _on_all_runs(values: FloatArray, rows: IntArray | None, n_runs: int) -> FloatArray:
    if rows is None:
        return values
    out = np.zeros((n_runs, *values.shape[1:]))
    np.add.at(out, rows, values)  # a run may be used more than once
    return out
