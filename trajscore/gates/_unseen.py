"""How far a mean may lie beyond what few units show of it: of a rate, and of a cost.

A rate knows its range. A cost does not, and no bound holds for every law of it (Bahadur and Savage
1956). The bounds here hold where a unit that no run showed lies no farther from the mean than
`Amount` says, or than a most that is known.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from scipy.special import stdtrit

from trajscore.core.type_aliases import FloatArray
from trajscore.inference.intervals import clopper_pearson_excess

ROUNDING = 1e-14  # relative; what is left where all numbers are equal
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
    return np.asarray(size * clopper_pearson_excess(n * rate, n * (1 - rate), level))


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
    n = shares.sum(axis=-1) ** 2 / (shares**2).sum(axis=-1)
    weights = shares / shares.sum(axis=-1, keepdims=True)
    mean = (weights * losses).sum(axis=-1)
    deviations = weights * (losses - mean[..., None])
    second, third = (deviations**2).sum(axis=-1), (deviations**3).sum(axis=-1)
    varies = second > ROUNDING**2
    second = np.where(varies, second, 1.0)
    skewness = np.where(varies, third, 0.0) * np.sqrt(n / second**3)
    seen = two_value_excess(more * n, n * second, skewness, level)
    unseen = unseen_chance(more * np.count_nonzero(shares, axis=-1), level) * (1 - mean)
    return np.where(varies, np.maximum(seen, unseen), unseen)


@dataclass(frozen=True)
class Rates:
    """What independent units lose and gain of a rate, in [0, 1], and the share of each in it."""

    losses: FloatArray
    gains: FloatArray
    shares: FloatArray
    scale: float = 1.0  # factor of losses and gains, of a baseline that is multiplied by it
    has_range: ClassVar[bool] = True

    def reaches(self, level: float, more: float) -> tuple[float, float]:
        """How far the rate may lie below and above what was seen."""
        below, above = (
            float(self.scale * excess(side, self.shares, level, more))
            for side in (self.losses, self.gains)
        )
        return below, above

    def subtracted(self, times: float) -> Self:
        """Return what is lost and gained where a multiple of this is subtracted."""
        return replace(self, losses=self.gains, gains=self.losses, scale=times)

    def change_from(self, base: Any, times: float) -> Self:
        """Return what pairs of units lose and gain."""
        change = self.gains - base.gains
        lost, gained = (-change).clip(0), change.clip(0)
        return replace(self, losses=lost, gains=gained, scale=max(1.0, times))


@dataclass(frozen=True)
class Amount:
    """How far a unit that was not seen may lie below and above a mean cost."""

    below: float
    above: float
    rise: float  # how much more a unit of both sets may take
    n_units: int
    error: float  # standard error of the mean
    has_range: bool  # the most that a run can take is known

    @classmethod
    def of_mean(cls, mean: float, error: float, most: float | None, n_units: int) -> Self:
        """Return it for a mean, and the most that a run can take, if that is known."""
        size = abs(mean)
        if most is None:
            return cls(size, UNSEEN_COST * size, UNSEEN_RISE * size, n_units, error, False)
        return cls(size, most - mean, most - mean, n_units, error, True)

    def reaches(self, level: float, more: float) -> tuple[float, float]:
        """How far the mean may lie below and above what was seen, by its error or the unseen."""
        n = more * self.n_units
        chance, seen = unseen_chance(n, level), stdtrit(n - 1, level) * self.error / np.sqrt(more)
        return max(chance * self.below, seen), max(chance * self.above, seen)

    def subtracted(self, times: float) -> Self:
        """Return it where a multiple of this is subtracted."""
        error = times * self.error
        return replace(self, below=times * self.above, above=times * self.below, error=error)

    def change_from(self, base: Any, times: float) -> Self:
        """Return it for the changes of pairs of units."""
        return replace(self, below=times * base.rise, above=self.rise, error=0.0)
