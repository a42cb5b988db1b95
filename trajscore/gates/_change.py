"""How far two sets of runs differ in a metric: paired by task, with bounds that hold at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.stats import norm, t

from trajscore.core.policy import POWER
from trajscore.core.statistics import CalibrationError, MeanOfRuns
from trajscore.core.type_aliases import FloatArray, IntArray
from trajscore.gates._measures import Measure
from trajscore.gates._run_set import RunSet
from trajscore.gates._unseen import ROUNDING, SKEWNESS_FACTOR, Amount, Rates, two_value_excess
from trajscore.inference.influence import BinMeans, absolute_interval, left_out_factor
from trajscore.inference.intervals import unseen_reach
from trajscore.inference.units import Units, any_units, n_equal

_DRAWS = 20_000
_MOST_RUNS = 1_000_000


@dataclass(frozen=True)
class Matching:
    """The unit of each run of two sets: its task, or else the run; paired where both have it."""

    base: IntArray
    new: IntArray
    n_units: int
    by: str  # "task", "run", or "" where the sets are not paired
    n_common: int  # units in both sets
    n_new: int  # tasks, or runs of a paired set, in the new set alone
    n_gone: int


def match(base: RunSet, new: RunSet) -> Matching:
    """Pair two sets by task where both have some in common, else by run where ids agree."""
    sets = (base, new)
    by, labels = "", [runs.ids.astype(str) if runs.tasks is None else runs.tasks for runs in sets]
    if all(runs.tasks is not None for runs in sets):
        by = "task"
    elif all(runs.has_ids for runs in sets):
        ids = [runs.ids.astype(str) for runs in sets]
        by, labels = ("run", ids) if np.array_equal(ids[0], ids[1]) else ("", labels)
    names, codes = np.unique(np.concatenate(labels), return_inverse=True)
    base_units, new_units = codes[: len(base.ids)], codes[len(base.ids) :]
    there = [np.bincount(units, minlength=len(names)) > 0 for units in (base_units, new_units)]
    in_both = there[0] & there[1]
    n_common = int(in_both.sum()) if by else 0
    n_new, n_gone = (int((own & ~in_both).sum()) if by else 0 for own in reversed(there))
    n = len(names)
    if n_common < 2:  # nothing to pair by
        return Matching(base_units, new_units + n, 2 * n, "", 0, n_new, n_gone)
    return Matching(base_units, new_units, n, by, n_common, n_new, n_gone)


@dataclass(frozen=True)
class Estimate:
    """A metric, or a difference of two, and what each unit adds to its error.

    The errors of units are independent; scaled for their small number, so that the root of the sum
    of their squares is the standard error. A calibration error has a column for each bin, of either
    set where it is a difference; `means` are the gaps of these. A rate or a cost has `parts`: one,
    or one of each set where a difference is not paired. A score has `changes`, of each set: what
    runs would add to it, had they ended the other way, and their units.

    Equal numbers without a known range do not vary: they bound nothing.
    """

    value: float
    errors: FloatArray  # of shape (n_units,) or (n_units, n_bins)
    freedom: float
    n_units: int
    means: tuple[FloatArray, ...] = ()
    parts: tuple[Rates | Amount, ...] = ()
    changes: tuple[tuple[FloatArray, IntArray], ...] = ()
    varies: bool = True

    @np.errstate(over="ignore", invalid="ignore")
    def __post_init__(self) -> None:
        error = (self.errors**2).sum() if self.n_units > 1 else 0.0
        if not np.isfinite([self.value, error]).all():
            raise ValueError(
                "its mean or the error of it is not a finite number; if the numbers are very "
                "large, divide those of both sets by the same constant"
            )

    @property
    def std_error(self) -> float:
        """Standard error; NaN for calibration errors, which have bounds of their own."""
        return float(np.nan if self.means else np.sqrt((self.errors**2).sum()))

    def bounds(self, level: float) -> tuple[float, float]:
        """Lower and upper bound, each of which holds with a chance of `level`."""
        if self.n_units < 2 or not self.varies:
            return -np.inf, np.inf
        if self.means:
            return self._of_absolute(level)
        below, above = self.reaches(level)
        return self.value - below, self.value + above

    def reaches(self, level: float, more: float = 1.0) -> tuple[float, float]:
        """How far the bounds lie below and above, with a multiple of the units."""
        freedom = (self.freedom + 1) * more - 1
        error = self.std_error / np.sqrt(more)
        reach = error * float(t.ppf(level, freedom)) if error > 0 else 0.0
        # each of `more` times as many runs changes the mean that much less: divided below
        of_scores = [
            unseen_reach(change, any_units(units, len(change)), 2 * (1 - level), reach * more)
            for change, units in self.changes
        ]
        of_parts = [part.reaches(level, more) for part in self.parts]
        below, above = np.maximum(
            np.linalg.norm(np.reshape(of_parts, (-1, 2)), axis=0),
            np.linalg.norm(np.reshape(of_scores, (-1, 2)), axis=0) / more,
        )
        skewed = self._of_skewed(level, freedom + 1)
        return max(reach, float(below), skewed[0]), max(reach, float(above), skewed[1])

    def _of_skewed(self, level: float, n_units: float) -> tuple[float, float]:
        """How far the mean of a cost may lie below and above, by its skewness."""
        if not (self.std_error > 0 and any(isinstance(part, Amount) for part in self.parts)):
            return 0.0, 0.0
        n = self.freedom + 1
        skewness = SKEWNESS_FACTOR * np.sqrt(n) * ((self.errors / self.std_error) ** 3).sum()
        sides = skewness * np.array([-1.0, 1.0])
        below, above = self.std_error * two_value_excess(n_units, n, sides, level)
        return float(below), float(above)

    def _of_absolute(self, level: float) -> tuple[float, float]:
        used = self.errors.any(axis=1)
        n = max(int(used.sum()), 2)
        influence = self.errors[used] * np.sqrt(n * (n - 1))  # which the standard error undoes
        ends = np.cumsum([len(gaps) for gaps in self.means])[:-1]
        of_sets = zip(self.means, np.split(influence, ends, axis=1), strict=True)
        new, *base = [BinMeans(gaps, of_gaps) for gaps, of_gaps in of_sets]
        return absolute_interval(new, base[0] if base else None, Units(None, n), 2 * level - 1)


def estimate(measure: Measure, units: IntArray, n_units: int) -> Estimate:
    """Return a metric of one set; runs count the same, or tasks do if the metric is of tasks."""
    weight = np.ones(len(units))
    if measure.of_tasks:
        weight = _shares(measure, units, n_units)[units]
    return _weighted(measure, units, n_units, weight)


def paired_estimates(base: Measure, new: Measure, matched: Matching) -> tuple[Estimate, Estimate]:
    """Return a metric of both sets: where they are paired, each common unit counts the same."""
    n = matched.n_units
    if not matched.by:
        return estimate(base, matched.base, n), estimate(new, matched.new, n)
    shares = _shares(base, matched.base, n), _shares(new, matched.new, n)
    common = (shares[0] > 0) & (shares[1] > 0)
    if not common.any():
        raise ValueError(f"no {matched.by} of both sets has the numbers for it")
    return (
        _weighted(base, matched.base, n, (shares[0] * common)[matched.base]),
        _weighted(new, matched.new, n, (shares[1] * common)[matched.new]),
    )


@np.errstate(over="ignore", invalid="ignore")
def difference(new: Estimate, base: Estimate, matched: Matching, times: float = 1.0) -> Estimate:
    """Return the new set's metric less the base's, which is multiplied by a factor."""
    errors = (
        np.concatenate([new.errors, base.errors], axis=1)  # bins of both, not subtracted yet
        if new.means
        else new.errors - times * base.errors
    )
    freedom, n_units = new.freedom, new.n_units
    if not matched.by:
        freedom = _welch(new, base) if not new.means else min(new.freedom, base.freedom)
        n_units = min(new.n_units, base.n_units)
    value, means = new.value - times * base.value, (*new.means, *base.means)
    changes = (*new.changes, *((-times * change, units) for change, units in base.changes))
    varies = new.varies and base.varies
    parts = _parts(new, base, matched, abs(times))
    if matched.by and parts and not parts[0].has_range:  # only the changes of pairs have to vary
        varies = bool((np.abs(errors) > ROUNDING * abs(new.value)).any())
    return Estimate(value, errors, freedom, n_units, means, parts, changes, varies)


def _parts(new: Estimate, base: Estimate, matched: Matching, times: float) -> tuple[Any, ...]:
    """What is known of units of both sets: of pairs, of their changes."""
    if not new.parts:
        return ()
    (of_new,), (of_base,) = new.parts, base.parts
    if matched.by:
        return (of_new.change_from(of_base, times),)  # both are of one kind
    return of_new, of_base.subtracted(times)


def level_of_each(estimates: Sequence[Estimate], level: float) -> list[float]:
    """Return levels of one-sided bounds that hold at once.

    Errors are jointly normal; calibration errors, which are not, take Bonferroni's level.
    """
    error, n = 1 - level, len(estimates)
    normal = [estimate for estimate in estimates if estimate.std_error > 0]
    others = 1 - error / n if n else level
    if len(normal) < 2:
        return [others] * n
    draws = np.random.default_rng(0).standard_normal((_DRAWS, len(normal)))
    errors = np.stack([estimate.errors / estimate.std_error for estimate in normal], axis=1)
    values, vectors = np.linalg.eigh(errors.T @ errors)
    joint = (draws * np.sqrt(values.clip(0))) @ vectors.T
    together = float(norm.cdf(np.quantile(joint.max(axis=1), 1 - error * len(normal) / n)))
    return [min(together, others) if estimate.std_error > 0 else others for estimate in estimates]


def runs_to_settle(estimate: Estimate, distance: float, n_runs: int, level: float) -> float:
    """Return the runs in each set, in total, that would show a difference of that size.

    NaN where that is unknown.
    """
    error = estimate.std_error
    settles = estimate.varies and (error > 0 or not distance or estimate.parts)
    if estimate.n_units < 2 or np.isnan(error) or not settles:
        return np.nan
    side, z = int(distance < 0), float(norm.ppf(POWER))

    def shortfall(log_more: float) -> float:
        more = np.exp(log_more)
        return estimate.reaches(level, more)[side] + z * error / np.sqrt(more) - abs(distance)

    least, most = np.log(2 / estimate.n_units), np.log(_MOST_RUNS / n_runs)
    if not distance or shortfall(most) > 0:
        return np.inf
    more = float(np.exp(brentq(shortfall, least, most))) if shortfall(least) > 0 else np.exp(least)
    return n_runs / estimate.n_units * float(np.ceil(more * estimate.n_units))


def _shares(measure: Measure, units: IntArray, n_units: int) -> FloatArray:
    """One over the number of runs of each unit that the metric is of; 0 where there is none."""
    rows = measure.statistic.rows
    counts = np.bincount(units if rows is None else units[rows], minlength=n_units)
    return np.where(counts > 0, 1 / np.maximum(counts, 1), 0.0)


@np.errstate(over="ignore", invalid="ignore")  # an estimate refuses what is not finite
def _weighted(measure: Measure, units: IntArray, n_units: int, weight: FloatArray) -> Estimate:
    """Return a metric of one set, with these weights of its runs."""
    statistic, n_runs = measure.statistic, len(units)
    of_rows = np.zeros(n_runs)
    rows = np.arange(n_runs) if statistic.rows is None else statistic.rows
    of_rows[rows] = weight[rows]
    sizes = np.bincount(units, of_rows, n_units)
    used, scale = int(np.count_nonzero(sizes)), left_out_factor(sizes)
    freedom = n_equal(sizes) - 1
    value = float(statistic(weight))
    if isinstance(statistic, CalibrationError):
        mean, influence = statistic.parts(n_runs, weight)
        totals = np.zeros((n_units, len(mean)))
        np.add.at(totals, units, influence / n_runs)
        return Estimate(value, totals * scale[:, None], freedom, used, (mean,))
    errors = np.bincount(units, statistic.influence(n_runs, weight) / n_runs, n_units) * scale
    errors[np.abs(errors) < ROUNDING * abs(value)] = 0.0
    varies = bool(errors.any())
    if measure.is_amount:
        error = float(np.sqrt((errors**2).sum()))
        amount = Amount.of_mean(value, error, measure.most, used)
        return Estimate(
            value, errors, freedom, used, parts=(amount,), varies=varies or amount.has_range
        )
    if not isinstance(statistic, MeanOfRuns):
        return Estimate(value, errors, freedom, used, varies=varies)
    if not measure.is_rate:
        if statistic.other is None:
            return Estimate(value, errors, freedom, used, varies=varies)
        changes = ((statistic.change(n_runs, weight), units),)
        return Estimate(value, errors, freedom, used, changes=changes)
    sums = np.bincount(units[rows], weight[rows] * statistic.samples, n_units)
    rates = np.divide(sums, sizes, out=np.zeros(n_units), where=sizes > 0)
    part = Rates(1 - rates, rates, sizes / sizes.sum())
    return Estimate(value, errors, freedom, used, parts=(part,))


def _welch(new: Estimate, base: Estimate) -> float:
    """Degrees of freedom of a difference of two independent sets (Welch 1947)."""
    variances = np.array([new.std_error, base.std_error]) ** 2
    freedoms = np.maximum([new.freedom, base.freedom], 1e-9)
    if not variances.any():
        return float(freedoms.min())
    return float(variances.sum() ** 2 / (variances**2 / freedoms).sum())
