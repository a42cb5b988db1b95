"""Thresholds for the largest log M of a run, each with what it guarantees.

A run is flagged when its statistic exceeds its limit *strictly*. With "at least" instead, the
guarantees fail for verifiers with few distinct scores, whose largest values share atoms.
Randomised tie-breaking flags some of the runs at such an atom, by one uniform a run.
"""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from pandas.util import hash_array
from scipy.stats import binom

from trajscore.core.array import TrajectoryArray
from trajscore.core.type_aliases import FloatArray
from trajscore.core.within_runs import step_numbers

# Values of log M this close are tied: verifiers with few distinct scores have runs exactly at the
# threshold, and a sum may come out differently in the last digit elsewhere.
TIE = 1e-9


# --------------------------------------------------------------------------- binomial bounds


def most_flagged(n: int, rate: float, delta: float) -> int:
    """Largest k with P[Bin(n, rate) <= k] <= delta, for which a lower rate is proven; or -1."""
    return int((binom.cdf(np.arange(n), n, rate) <= delta).sum()) - 1


def pac_needs(alpha: float, delta: float) -> int:
    """Smallest n with a `most_flagged` of at least 0."""
    return int(np.ceil(np.log(delta) / np.log1p(-alpha) - 1e-9))


# --------------------------------------------------------------------------- thresholds


@dataclass
class Threshold(ABC):
    """A limit for each run on its largest log M; over it, strictly, the run is flagged.

    `keyword` is its name in ``DensityRatioEProcess(threshold=)``; `needs_end` says whether the
    forecaster must know the end of a run. Both are of the class, without a type: not fields of the
    dataclass.
    """

    alpha: float
    seed: int | None = None
    """Of the uniforms of runs; None where nothing is randomised."""
    log_threshold: float = field(init=False, default=np.nan)
    """Threshold on log M that people are shown."""
    keyword = ""
    needs_end = False

    @classmethod
    def build(cls, alpha: float, seed: int, rule: Any) -> Self:
        """Take what this threshold needs of the parameters of an e-process."""
        return cls(alpha)

    @abstractmethod
    def fit(self, maxima: FloatArray, uniforms: FloatArray) -> Self:
        """Set the threshold by the largest log M of held-out successes, and a uniform for each."""

    def limits(self, ids: NDArray[Any]) -> FloatArray:
        """Limit of each new run."""
        return np.full(len(ids), self.log_threshold + TIE)

    def final_values(self, values: FloatArray, ids: NDArray[Any]) -> FloatArray:
        """Return what is compared with the limits at the ends of runs, from log M there."""
        return values

    def p_values(self, largest: FloatArray) -> FloatArray:
        """How rarely a success has so large a log M, by Ville's inequality."""
        return np.exp(np.minimum(self.log_threshold + np.log(self.alpha) - largest, 0.0))


@dataclass
class Ville(Threshold):
    """1 / alpha, which a nonnegative martingale that starts at 1 exceeds with chance alpha at most.

    Times a number of steps, each of which exceeds that with its share of alpha at most.
    """

    n_steps: int = 1
    keyword = "ville"

    def fit(self, maxima: FloatArray, uniforms: FloatArray) -> Self:
        self.log_threshold = float(np.log(self.n_steps / self.alpha))
        return self


@dataclass
class Bonferroni(Ville):
    """T / alpha, for the longest run T in fitting."""

    keyword = "bonferroni"

    @classmethod
    def build(cls, alpha: float, seed: int, rule: Any) -> Self:
        return cls(alpha, n_steps=rule.longest_)


@dataclass
class RandomizedVille(Ville):
    """1 / alpha, and U / alpha for the last M of a run, with a uniform U."""

    keyword = "randomized_ville"
    needs_end = True

    @classmethod
    def build(cls, alpha: float, seed: int, rule: Any) -> Self:
        return cls(alpha, seed)

    def final_values(self, values: FloatArray, ids: NDArray[Any]) -> FloatArray:
        return values - np.log(run_uniforms(ids, self.seed or 0))


@dataclass
class HeldOut(Threshold):
    """A held-out value of some rank; infinite, with a warning, where there are too few.

    Its `seed` is that of the uniforms that break ties; None flags no run at the threshold.
    """

    @classmethod
    def build(cls, alpha: float, seed: int, rule: Any) -> Self:
        threshold = cls(alpha)
        if rule.ties == "randomized":
            threshold.seed = seed
        return threshold

    @abstractmethod
    def _rank(self, n: int) -> int:
        """Rank of the threshold among n values; above n if they are too few."""

    @abstractmethod
    def needs(self) -> int:
        """Smallest number of values that is enough."""

    @abstractmethod
    def _randomised(self, uniforms: FloatArray) -> FloatArray:
        """Limits of runs with these uniforms."""

    def n_held_out(self, n: int, n_successes: int) -> int:
        """Return how many successes to hold out, where a user asks for n of them."""
        needed = self.needs()
        if needed > n_successes - 2:  # even all would be too few, and two are left to learn from
            needed = 1
        return max(n, needed)

    def fit(self, maxima: FloatArray, uniforms: FloatArray) -> Self:
        order = np.lexsort((uniforms, maxima))
        self._maxima = maxima[order]
        self._uniforms = uniforms[order]
        self._index = self._rank(len(maxima)) - 1
        if self._index < len(maxima):
            self.log_threshold = float(self._maxima[self._index])
            return self
        self.log_threshold = np.inf
        warnings.warn(
            f"too few held-out successes ({len(maxima)}) for threshold={self.keyword!r} at "
            f"alpha = {self.alpha:g}: no run will be flagged; fit on more runs, of which at least "
            f"{self.needs()} successes are held out, or raise alpha",
            UserWarning,
            stacklevel=3,
        )
        return self

    def p_values(self, largest: FloatArray) -> FloatArray:
        """How rarely a success has so large a log M, among those held out and itself."""
        n = len(self._maxima)
        below = np.searchsorted(self._maxima, largest - TIE, side="left")
        return np.asarray((n - below + 1) / (n + 1))

    def limits(self, ids: NDArray[Any]) -> FloatArray:
        # with too few values no uniform flags a run either
        if self.seed is None or np.isinf(self.log_threshold):
            return super().limits(ids)
        return self._randomised(run_uniforms(ids, self.seed))


@dataclass
class Conformal(HeldOut):
    """Rank ceil((n + 1) (1 - alpha)): the mean rate over held-out sets is at most alpha."""

    keyword = "conformal"

    def _rank(self, n: int) -> int:
        # rounding must not turn (n + 1) alpha = 1 into 0.999...
        return n + 1 - int(np.floor((n + 1) * self.alpha + 1e-9))

    def needs(self) -> int:
        return int(np.ceil(1 / self.alpha - 1e-9)) - 1

    def n_held_out(self, n: int, n_successes: int) -> int:
        n = super().n_held_out(n, n_successes)
        needed = self.needs()
        if n < needed:
            return n
        return n - (n + 1) % (needed + 1)  # the level is exact where alpha (n + 1) is whole

    def _randomised(self, uniforms: FloatArray) -> FloatArray:
        """Limit of each run for which its randomised conformal p-value is at most alpha.

        Over the rising maxima M_i, that of a largest value m with a uniform U is
        (#{M_i > m} + U (1 + #{M_i = m})) / (n + 1), which is uniform for a success.
        """
        maxima = self._maxima
        n = len(maxima)
        room = self.alpha * (n + 1)
        above = np.floor(room - uniforms).astype(np.int64)  # how many greater values are allowed
        value = maxima[np.clip(n - 1 - above, 0, n - 1)]
        greater = n - np.searchsorted(maxima, value, side="right")
        equal = n - greater - np.searchsorted(maxima, value, side="left")
        is_flagged = greater + uniforms * (1 + equal) <= room
        limit = value + np.where(is_flagged, -TIE, TIE)
        return np.select([above >= n, above < 0], [-np.inf, np.inf], limit)


@dataclass
class Pac(HeldOut):
    """Rank min{i : P[Bin(n, 1 - rate) >= i] <= delta}: the rate is exceeded with chance delta."""

    rate: float = np.nan
    delta: float = np.nan
    keyword = "pac"

    @classmethod
    def build(cls, alpha: float, seed: int, rule: Any) -> Self:
        threshold = super().build(alpha, seed, rule)
        threshold.rate = alpha
        threshold.delta = rule.delta
        return threshold

    def _rank(self, n: int) -> int:
        return n - most_flagged(n, self.rate, self.delta)

    def needs(self) -> int:
        return pac_needs(self.rate, self.delta)

    def _randomised(self, uniforms: FloatArray) -> FloatArray:
        # pairs of (largest value, uniform) have no ties: the threshold is one of them
        is_flagged = uniforms > self._uniforms[self._index]
        return self.log_threshold + np.where(is_flagged, -TIE, TIE)


@dataclass
class PacMarginal(Pac):
    """The rate exceeds .9 alpha with chance .1 alpha, so its mean is at most alpha."""

    keyword = "pac_marginal"

    @classmethod
    def build(cls, alpha: float, seed: int, rule: Any) -> Self:
        threshold = super().build(alpha, seed, rule)
        threshold.rate = 0.9 * alpha
        threshold.delta = 0.1 * alpha
        return threshold


THRESHOLDS: dict[str, type[Threshold]] = {
    kind.keyword: kind for kind in (Pac, Conformal, PacMarginal, Ville, Bonferroni, RandomizedVille)
}
"""All thresholds, by the keyword that names them."""


# --------------------------------------------------------------------------- uniforms


def run_uniforms(ids: NDArray[Any], seed: int) -> FloatArray:
    """Uniform in (0, 1) of each run, a hash of its id and the seed: the same in any batch."""
    # as text, so that 7 and "7", which a live log cannot tell apart, are the same run
    text = np.array([str(run_id) for run_id in ids], dtype=object)
    hashed = hash_array(text, hash_key=f"{seed & (2**64 - 1):016x}", categorize=False)
    return np.asarray((hashed >> np.uint64(11)) + 0.5) / 2.0**53


def id_array(run_id: Hashable) -> NDArray[Any]:
    """Return one id as an array of ids."""
    ids = np.empty(1, dtype=object)
    ids[0] = run_id
    return ids


def data_digest(X: TrajectoryArray, y: NDArray[Any]) -> int:
    """Number that depends on scores and outcomes, not on the order of rows; part of a seed."""
    values = hash_array(np.ascontiguousarray(X.cells, dtype=np.float64).ravel())
    per_cell = values.reshape(len(X.cells), -1).sum(axis=1, dtype=np.uint64)
    per_run = np.add.reduceat(per_cell * step_numbers(X).astype(np.uint64), X.offsets[:-1])
    total = (per_run * (y + 2).astype(np.uint64)).sum(dtype=np.uint64)
    return int(total >> np.uint64(2))
