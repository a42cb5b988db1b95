"""How far two sets of runs differ in a metric: paired by task, with bounds that hold at once.

A rate knows its range. A cost does not, and no bound holds for every law of it (Bahadur and Savage
1956). The bounds of a cost hold where a unit that no run showed lies no farther from the mean than
`Amount` says, or than a most that is stated.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from scipy.optimize import brentq
from scipy.special import ndtr, ndtri, stdtrit

from trajscore.core.errors import CannotMeasureError
from trajscore.core.policy import POWER
from trajscore.core.statistics import BinMeans, CalibrationError, MeanOfRuns
from trajscore.core.values import FloatArray, IntArray
from trajscore.gates._run_set import Matching, Measure
from trajscore.inference.intervals import (
    Units,
    absolute_interval,
    any_units,
    clopper_pearson_excess,
    left_out_factor,
    n_equal,
    unseen_reach,
)

_DRAWS = 20_000
_MOST_RUNS = 1_000_000
_ROUNDING = 1e-14  # relative; what is left where all numbers are equal
# Held against lognormal, two-point and Pareto costs (benchmarks/gates.py costs).
SKEWNESS_FACTOR = 3.0  # few units show less skewness than there is
UNSEEN_COST = 4.0  # means above the mean
UNSEEN_RISE = 2.0  # means, of a unit that both sets have


def two_value_excess(
    n: FloatArray | float, variance: FloatArray | float, skewness: FloatArray, level: float
) -> FloatArray:
    """Clopper's and Pearson's bound for the mean of two values with these moments."""
    rate = (1 - skewness / np.sqrt(4 + skewness**2)) / 2  # of the larger of the two values
    size = np.sqrt(variance / (rate * (1 - rate)))
    return size * clopper_pearson_excess(n * rate, n * (1 - rate), level)


def unseen_chance(n_units: Any, level: float) -> Any:
    """How often something may happen that happened to none of n units."""
    return 1 - (1 - level) ** (1 / n_units)


def excess(losses: FloatArray, shares: FloatArray, level: float, more: float = 1.0) -> FloatArray:
    """How far the mean of independent losses in [0, 1] may lie above what was seen of it.

    Of losses of 0 and 1 it is Clopper's and Pearson's bound; of others that of two values with the
    same variance and skewness. Both know a loss of the kind that was seen. One of another kind, of
    the whole of a unit, may have escaped n units if its chance is up to 1 - (1 - level)^(1/n).

    `losses` and `shares` (in the mean; 0 for units that do not count) are of shape (..., n_units);
    `more` is a factor of the number of units, as if that many more had been like these.
    """
    weights = shares / shares.sum(axis=-1, keepdims=True)
    n = 1 / (weights**2).sum(axis=-1)
    mean = (weights * losses).sum(axis=-1)
    deviations = weights * (losses - mean[..., None])
    second = (deviations**2).sum(axis=-1)
    third = (deviations**3).sum(axis=-1)
    varies = second > _ROUNDING**2
    second = np.where(varies, second, 1.0)
    skewness = third * np.sqrt(n / second**3)
    seen = two_value_excess(more * n, n * second, skewness, level)
    unseen = unseen_chance(more * np.count_nonzero(shares, axis=-1), level) * (1 - mean)
    return np.where(varies, np.maximum(seen, unseen), unseen)


@dataclass(frozen=True)
class Rates:
    """What independent units lose and gain of a rate, in [0, 1], and the share of each in it."""

    losses: FloatArray
    gains: FloatArray
    shares: FloatArray

    def reaches(self, level: float, more: float) -> list[float]:
        """How far the rate may lie below and above its estimate."""
        return [excess(side, self.shares, level, more).item() for side in (self.losses, self.gains)]

    def change_from(self, base: Any, times: float) -> tuple[Self, float]:
        """Return what pairs of units lose and gain, and how many times that counts."""
        change = self.gains - base.gains
        return replace(self, losses=(-change).clip(0), gains=change.clip(0)), max(1.0, times)


@dataclass(frozen=True)
class Amount:
    """How far a unit that no run showed may lie below and above a mean cost."""

    below: float
    above: float
    rise: float  # how much more a unit of both sets may take
    n_units: int
    error: float  # standard error of the mean
    has_range: bool  # the most that a run can take is stated

    def reaches(self, level: float, more: float) -> list[float]:
        """How far the mean may lie below and above its estimate, by its error or the unseen."""
        n = more * self.n_units
        chance = unseen_chance(n, level)
        reach = stdtrit(n - 1, level) * self.error / np.sqrt(more)
        return [max(chance * side, reach) for side in (self.below, self.above)]

    def change_from(self, base: Any, times: float) -> tuple[Self, float]:
        """Return it for the changes of pairs of units."""
        return replace(self, below=times * base.rise, above=self.rise, error=0.0), 1.0


@dataclass(frozen=True)
class Estimate:
    """A metric, or a difference of two, and what each unit adds to its error.

    The errors of units are independent; scaled for their small number, so that the root of the sum
    of their squares is the standard error. A calibration error has none, but `bins` of each set:
    their gaps, and what each unit adds to these. A rate or a cost has `parts`: one, or one of each
    set where a difference is not paired. A score has `changes`, of each set: what runs would add to
    it, had they ended the other way, and their units.

    Equal numbers without a known range do not vary: they bound nothing.
    """

    value: float
    errors: FloatArray  # of shape (n_units,)
    freedom: float
    n_units: int
    bins: tuple[BinMeans, ...] = ()
    parts: tuple[tuple[Rates | Amount, float], ...] = ()  # times so much, below 0: subtracted
    changes: tuple[tuple[FloatArray, Units], ...] = ()
    varies: bool = True

    @np.errstate(over="ignore", invalid="ignore")
    def __post_init__(self) -> None:
        error = (self.errors**2).sum() if self.n_units > 1 else 0.0
        if not np.isfinite([self.value, error]).all():
            raise CannotMeasureError(
                "its mean or the error of it is not a finite number; if the numbers are very "
                "large, divide those of both sets by the same constant"
            )

    @property
    def std_error(self) -> float:
        """Standard error; 0 for calibration errors, which have bounds of their own."""
        return float(np.sqrt((self.errors**2).sum()))

    def bounds(self, level: float) -> tuple[float, float]:
        """Lower and upper bound, each of which holds with a chance of `level`."""
        if self.n_units < 2 or not self.varies:
            return -np.inf, np.inf
        if not self.bins:
            below, above = self.reaches(level)
            return self.value - below, self.value + above
        used = np.column_stack([errors for _, errors in self.bins]).any(axis=1)
        n = max(used.sum(), 2)
        factor = np.sqrt(n * (n - 1))  # which the standard error undoes
        new, *base = (BinMeans(gaps, factor * errors[used]) for gaps, errors in self.bins)
        return absolute_interval(new, base[0] if base else None, Units(None, n), 2 * level - 1)

    def reaches(self, level: float, more: float = 1.0) -> tuple[float, float]:
        """How far the bounds lie below and above, with a multiple of the units."""
        n = self.freedom + 1
        error = self.std_error / np.sqrt(more)
        reach = 0.0
        if error > 0:
            reach = error * stdtrit(n * more - 1, level)
        # each of `more` times as many runs changes the mean that much less
        unseen = [
            np.divide(unseen_reach(change, units, 2 * (1 - level), reach * more), more)
            for change, units in self.changes
        ]
        unseen += [
            abs(times) * np.array(part.reaches(level, more))[:: 1 if times > 0 else -1]
            for part, times in self.parts
        ]
        sides = [np.full(2, reach), np.linalg.norm(np.reshape(unseen, (-1, 2)), axis=0)]
        if error > 0 and any(isinstance(part, Amount) for part, _ in self.parts):
            skewness = SKEWNESS_FACTOR * np.sqrt(n) * ((self.errors / self.std_error) ** 3).sum()
            signed = skewness * np.array([-1.0, 1.0])
            sides.append(self.std_error * two_value_excess(n * more, n, signed, level))
        below, above = np.max(sides, axis=0)
        return float(below), float(above)


def estimates(measures: Sequence[Measure], matched: Matching) -> list[Estimate]:
    """Return a metric of the new set alone, or of the base and the new set.

    Where two sets are paired, each common unit counts the same. Else runs count the same, or tasks
    do if the metric is of tasks.
    """
    n = matched.n_units
    units = [matched.base, matched.new][-len(measures) :]
    shares = [_shares(*each, n) for each in zip(measures, units, strict=True)]
    is_paired = len(measures) > 1 and bool(matched.by)
    if is_paired:
        common = np.prod(shares, axis=0) > 0
        if not common.any():
            raise CannotMeasureError(f"no {matched.by} of both sets has the numbers for it")
        shares = [share * common for share in shares]
    result = []
    for measure, of, share in zip(measures, units, shares, strict=True):
        weight = np.ones(len(of))
        if is_paired or measure.of_tasks:
            weight = share[of]
        result.append(_weighted(measure, of, n, weight))
    return result


@np.errstate(over="ignore", invalid="ignore")
def difference(new: Estimate, base: Estimate, matched: Matching, times: float = 1.0) -> Estimate:
    """Return the new set's metric less the base's, which is multiplied by a factor."""
    errors = new.errors - times * base.errors
    freedom = new.freedom
    n_units = new.n_units
    varies = new.varies and base.varies
    parts = (*new.parts, *((part, -abs(times)) for part, _ in base.parts))
    if not matched.by:
        n_units = min(n_units, base.n_units)
        freedom = min(freedom, base.freedom)
        variances = np.array([new.std_error, base.std_error]) ** 2
        if variances.sum() > 0:  # Welch (1947)
            freedoms = np.maximum([new.freedom, base.freedom], 1e-9)
            freedom = variances.sum() ** 2 / (variances**2 / freedoms).sum()
    elif parts:
        part = new.parts[0][0]
        parts = (part.change_from(base.parts[0][0], abs(times)),)  # both are of one kind
        if (
            isinstance(part, Amount) and not part.has_range
        ):  # only the changes of pairs have to vary
            varies = bool((abs(errors) > _ROUNDING * abs(new.value)).any())
    changes = (*new.changes, *((-times * change, units) for change, units in base.changes))
    value = new.value - times * base.value
    bins = (*new.bins, *base.bins)
    return Estimate(value, errors, freedom, n_units, bins, parts, changes, varies)


def level_of_each(compared: Sequence[Estimate], level: float) -> list[float]:
    """Return levels of one-sided bounds that hold at once.

    Errors are jointly normal; calibration errors, which are not, take Bonferroni's level.
    """
    error = 1 - level
    n = len(compared)
    normal = [estimate for estimate in compared if estimate.std_error > 0]
    bonferroni = 1 - error / (n or 1)
    if len(normal) < 2:
        return [bonferroni] * n
    draws = np.random.default_rng(0).standard_normal((_DRAWS, len(normal)))
    errors = np.stack([estimate.errors / estimate.std_error for estimate in normal], axis=1)
    values, vectors = np.linalg.eigh(errors.T @ errors)
    largest = ((draws * np.sqrt(values.clip(0))) @ vectors.T).max(axis=1)
    joint = min(ndtr(np.quantile(largest, 1 - error * len(normal) / n)), bonferroni)
    return [joint if estimate.std_error > 0 else bonferroni for estimate in compared]


def runs_to_settle(estimate: Estimate, distance: float, n_runs: int, level: float) -> float:
    """Return the runs in each set, in total, that would show a difference of that size.

    NaN where that is unknown.
    """
    error = estimate.std_error
    settles = error > 0 or not distance or estimate.parts
    if estimate.n_units < 2 or not estimate.varies or estimate.bins or not settles:
        return np.nan
    z = ndtri(POWER)

    def shortfall(log_more: float) -> float:
        more = np.exp(log_more)
        return (
            estimate.reaches(level, more)[int(distance < 0)]
            + z * error / np.sqrt(more)
            - abs(distance)
        )

    # two units, of unequal ones as many as count like two: fewer have no t distribution
    least = np.log(2 / min(estimate.n_units, estimate.freedom + 1))
    most = np.log(_MOST_RUNS / n_runs)
    if not distance or shortfall(most) > 0:
        return np.inf
    if shortfall(least) > 0:
        least = brentq(shortfall, least, most)
    return n_runs / estimate.n_units * float(np.ceil(np.exp(least) * estimate.n_units))


def _shares(measure: Measure, units: IntArray, n_units: int) -> FloatArray:
    """One over the number of runs of each unit that the metric is of; 0 where there is none."""
    counts = np.bincount(units[measure.rows], minlength=n_units)
    return np.where(counts > 0, 1 / np.maximum(counts, 1), 0.0)


@np.errstate(over="ignore", invalid="ignore")  # an estimate refuses what is not finite
def _weighted(measure: Measure, units: IntArray, n_units: int, weight: FloatArray) -> Estimate:
    """Return a metric of one set, with these weights of its runs."""
    statistic = measure.statistic
    units = units[measure.rows]
    weight = weight[measure.rows] * measure.weight
    n_runs = len(units)
    sizes = np.bincount(units, weight, n_units)
    n_used = int(np.count_nonzero(sizes))
    scale = left_out_factor(sizes)
    freedom = n_equal(sizes) - 1
    value = float(statistic(weight))
    if isinstance(statistic, CalibrationError):
        mean, influence = statistic.bins(weight)
        totals = Units(units, n_units).sums(influence / n_runs) * scale[:, None]
        bins = (BinMeans(mean, totals),)
        return Estimate(value, np.zeros(n_units), freedom, n_used, bins)
    errors = np.bincount(units, statistic.influence(weight) / n_runs, n_units) * scale
    errors[abs(errors) < _ROUNDING * abs(value)] = 0.0
    result = Estimate(value, errors, freedom, n_used, varies=bool(errors.any()))
    if measure.is_amount:
        below = abs(value)
        above = UNSEEN_COST * below
        rise = UNSEEN_RISE * below
        if measure.most is not None:
            above = rise = measure.most - value
        has_range = measure.most is not None
        amount = Amount(below, above, rise, n_used, result.std_error, has_range)
        return replace(result, parts=((amount, 1.0),), varies=result.varies or has_range)
    if not isinstance(statistic, MeanOfRuns):
        return result
    if measure.is_rate:
        sums = np.bincount(units, weight * statistic.samples, n_units)
        rates = sums / np.where(sizes > 0, sizes, 1.0)
        part = Rates(1 - rates, rates, sizes / sizes.sum())
        return replace(result, parts=((part, 1.0),), varies=True)
    change = (statistic.change(weight), any_units(units, n_runs))
    return replace(result, changes=(change,), varies=True)
