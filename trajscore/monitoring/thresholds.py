"""Thresholds for the largest log M of a run, each with what it guarantees.

A run is flagged when its statistic exceeds its limit *strictly*. With "at least" instead, the
guarantees fail for verifiers with few distinct scores, whose largest values share atoms.
Randomised tie-breaking flags some of the runs at such an atom, by one uniform a run.
"""

import warnings
from abc import ABC, abstractmethod
from collections.abc import Hashable
from copy import copy
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from pandas.util import hash_array
from scipy.stats import binom

from trajscore.core.array import TrajectoryArray
from trajscore.core.values import AnyArray, FloatArray, as_amount, as_fraction, check_choice
from trajscore.core.within_runs import step_numbers

# Values of log M this close are tied: verifiers with few distinct scores have runs exactly at the
# threshold, and a sum may come out differently in the last digit elsewhere.
TIE = 1e-9
Ids = AnyArray | list[Hashable]


# --------------------------------------------------------------------------- binomial bounds


def most_flagged(n: int, rate: float, delta: float) -> int:
    """Largest k with P[Bin(n, rate) <= k] <= delta, for which a lower rate is proven; or -1."""
    return int((binom.cdf(np.arange(n), n, rate) <= delta).sum()) - 1


def pac_needs(alpha: float, delta: float) -> int:
    """Smallest n with a `most_flagged` of at least 0."""
    return int(np.ceil(np.log(delta) / np.log1p(-alpha) - 1e-9))


# --------------------------------------------------------------------------- thresholds


class Promise(NamedTuple):
    """At most a share `alpha` is flagged of the "successes", the "failures", or all "runs".

    `holds` says on average over what, or how surely.
    """

    alpha: float
    of: str
    holds: str

    def __str__(self) -> str:
        return f"at most {self.alpha:g} of the {self.of}, {self.holds}"


@dataclass
class Threshold(ABC):
    """A limit for each run on its largest log M; over it, strictly, the run is flagged.

    Fields are parameters. `keyword` is its name in ``DensityRatioEProcess(threshold=)``;
    `needs_end` says whether the forecaster must know the end of a run, `holds` when the promise
    holds, or how surely, and `draws` whether a uniform of each run, by its id, takes part in what
    is decided. These are of the class, without a type: not fields of the dataclass. So are the
    three that a process sets: the seed of the uniforms, the steps of the longest run, and `of`
    which runs at most a share alpha is to be flagged.
    """

    keyword = ""
    needs_end = False
    end_worth = None
    holds = "if the learned ratio is the true one"
    draws = False
    seed = 0
    longest = 0
    of = "successes"

    @abstractmethod
    def log_threshold(self, alpha: float) -> float:
        """Threshold on log M that people are shown."""

    def limits(self, ids: Ids, alpha: float) -> FloatArray:
        """Limit of each new run."""
        return np.full(len(ids), self.log_threshold(alpha) + TIE)

    def final_values(self, values: FloatArray, ids: Ids) -> FloatArray:
        """Return what is compared with the limits at the ends of runs, from log M there."""
        return values

    @abstractmethod
    def p_values(self, largest: FloatArray) -> FloatArray:
        """How rarely a success has so large a log M."""


@dataclass
class Ville(Threshold):
    """1 / alpha, which a nonnegative martingale that starts at 1 exceeds with chance alpha at most.

    Times a number of steps, each of which exceeds that with its share of alpha at most.
    """

    keyword = "ville"
    _n_steps = 1

    def log_threshold(self, alpha: float) -> float:
        return float(np.log(self._n_steps / alpha))

    def p_values(self, largest: FloatArray) -> FloatArray:
        """How rarely a success has so large a log M, by Ville's inequality."""
        return np.exp(np.minimum(np.log(self._n_steps) - largest, 0.0))


@dataclass
class Bonferroni(Ville):
    """T / alpha, for the longest run T in fitting."""

    keyword = "bonferroni"

    @property
    def _n_steps(self) -> int:  # type: ignore[override]
        return self.longest


@dataclass
class RandomizedVille(Ville):
    """1 / alpha, and U / alpha for the last M of a run, with a uniform U."""

    keyword = "randomized_ville"
    needs_end = True
    draws = True

    def final_values(self, values: FloatArray, ids: Ids) -> FloatArray:
        return values - np.log(run_uniforms(ids, self.seed))


@dataclass
class HeldOut(Threshold):
    """A held-out value of some rank; infinite, with a warning, where there are too few."""

    ties: str = "strict"
    end_worth: float | None = None  # type: ignore[assignment]
    holds = "on average over sets of known runs"

    def __post_init__(self) -> None:
        check_choice(self.ties, "ties", ("strict", "randomized"))
        if self.end_worth is not None:
            as_amount(self.end_worth, "end_worth")

    @abstractmethod
    def _rank(self, n: int, alpha: float) -> int:
        """Rank of the threshold among n values; n + 1 if they are too few."""

    @abstractmethod
    def needs(self, alpha: float) -> int:
        """Smallest number of values that is enough."""

    @abstractmethod
    def _randomised(self, uniforms: FloatArray, alpha: float) -> FloatArray:
        """Limits of runs with these uniforms."""

    @property
    def draws(self) -> bool:  # type: ignore[override]
        return self.ties == "randomized"

    def n_held_out(self, n: int, n_successes: int, alpha: float) -> int:
        """Return how many successes to hold out.

        Parameters
        ----------
        n : int
            How many a user asks for.
        n_successes : int
            How many there are.
        alpha : float
            The strictest level.

        Returns
        -------
        int
            At least the number that the threshold needs, if there are enough.
        """
        needed = self.needs(alpha)
        if needed > n_successes - 2:  # even all would be too few, and two are left to learn from
            needed = 1
        return max(n, needed)

    def fit(self, maxima: FloatArray, ids: Ids, alphas: FloatArray) -> None:
        """Set a threshold for each level.

        Parameters
        ----------
        maxima : array of shape (n_runs,)
            Largest log M of held-out runs.
        ids : sequence of shape (n_runs,)
            Their ids.
        alphas : array of shape (n_alphas,)
            Levels.
        """
        n = len(maxima)
        self._maxima = np.sort(maxima)
        if self.draws:
            uniforms = run_uniforms(ids, self.seed + 1)  # not those of new runs with the same ids
            self._uniforms = uniforms[np.lexsort((uniforms, maxima))]
        self._ranks = {alpha: self._rank(n, alpha) for alpha in alphas.tolist()}
        for alpha, rank in self._ranks.items():
            if rank > n:
                warnings.warn(
                    f"too few held-out {self.of} ({n}) for threshold={self.keyword!r} at "
                    f"alpha = {alpha:g}: no run will be flagged; fit on more runs, of which at "
                    f"least {self.needs(alpha)} {self.of} are held out, or raise alpha",
                    stacklevel=3,
                )

    def log_threshold(self, alpha: float) -> float:
        return float(np.append(self._maxima, np.inf)[self._ranks[alpha] - 1])

    def p_values(self, largest: FloatArray) -> FloatArray:
        """How rarely a success has so large a log M, among those held out and itself."""
        n = len(self._maxima)
        below = np.searchsorted(self._maxima, largest - TIE, side="left")
        return (n - below + 1) / (n + 1)

    def limits(self, ids: Ids, alpha: float) -> FloatArray:
        # with too few values no uniform flags a run either
        if not self.draws or np.isinf(self.log_threshold(alpha)):
            return super().limits(ids, alpha)
        return self._randomised(run_uniforms(ids, self.seed), alpha)


@dataclass
class Conformal(HeldOut):
    """A run that would succeed is flagged with probability at most alpha.

    That is a mean over training sets. Of n held-out successes, the one of rank
    ceil((n + 1) (1 - alpha)) sets the threshold.

    Parameters
    ----------
    ties : {"strict", "randomized"}, default="strict"
        Verifiers with few distinct scores make ties at the threshold. "strict" never flags them,
        which is safe and gives power away; "randomized" flags some of them, by one uniform a run,
        and makes the level exact. The uniform is a hash of the run's id, the seed and the data of
        the fit. Forecasts below 1e-6, or above 1 - 1e-6, are clipped and tie, too.
    end_worth : float, optional
        What a flag at the end of a run is worth, where one before all of its steps is worth 1; 0 or
        more. M then counts r_t + end_worth times, r_t the mean share of their steps that failing
        training runs still had after step t: flags come earlier and save more, and power falls a
        little. The promise is the same. Default: the same worth at every step.

    See Also
    --------
    trajscore.DensityRatioEProcess : Takes it as `threshold`.

    Examples
    --------
    >>> from trajscore import DensityRatioEProcess
    >>> from trajscore.monitoring import Conformal
    >>> DensityRatioEProcess(threshold=Conformal(ties="randomized")).threshold
    Conformal(ties='randomized', end_worth=None)
    """

    keyword = "conformal"

    def _rank(self, n: int, alpha: float) -> int:
        # rounding must not turn (n + 1) alpha = 1 into 0.999...
        return n + 1 - int(np.floor((n + 1) * alpha + 1e-9))

    def needs(self, alpha: float) -> int:
        return int(np.ceil(1 / alpha - 1e-9)) - 1

    def n_held_out(self, n: int, n_successes: int, alpha: float) -> int:
        n = super().n_held_out(n, n_successes, alpha)
        needed = self.needs(alpha)
        if n < needed:
            return n
        return n - (n + 1) % (needed + 1)  # the level is exact where alpha (n + 1) is whole

    def _randomised(self, uniforms: FloatArray, alpha: float) -> FloatArray:
        """Limit of each run for which its randomised conformal p-value is at most alpha.

        Over the rising maxima M_i, that of a largest value m with a uniform U is
        (#{M_i > m} + U (1 + #{M_i = m})) / (n + 1), which is uniform for a success.
        """
        maxima = self._maxima
        n = len(maxima)
        room = alpha * (n + 1)
        above = np.floor(room - uniforms).astype(int)  # how many greater values are allowed
        value = maxima[np.clip(n - 1 - above, 0, n - 1)]
        greater = n - np.searchsorted(maxima, value, side="right")
        equal = n - greater - np.searchsorted(maxima, value, side="left")
        is_flagged = greater + uniforms * (1 + equal) <= room
        limit = value + np.where(is_flagged, -TIE, TIE)
        return np.select([above >= n, above < 0], [-np.inf, np.inf], limit)


@dataclass
class _Bounded(HeldOut):
    """Rank min{i : P[Bin(n, 1 - rate) >= i] <= delta}: the rate is exceeded with chance delta."""

    @abstractmethod
    def _bound(self, alpha: float) -> tuple[float, float]:
        """Return the rate and delta."""

    def _rank(self, n: int, alpha: float) -> int:
        return n - most_flagged(n, *self._bound(alpha))

    def needs(self, alpha: float) -> int:
        return pac_needs(*self._bound(alpha))

    def _randomised(self, uniforms: FloatArray, alpha: float) -> FloatArray:
        # pairs of (largest value, uniform) have no ties: the threshold is one of them
        is_flagged = uniforms > self._uniforms[self._ranks[alpha] - 1]
        return self.log_threshold(alpha) + np.where(is_flagged, -TIE, TIE)


@dataclass
class Pac(_Bounded):
    """The false-alarm rate exceeds alpha with probability at most delta, over held-out sets.

    Parameters
    ----------
    ties : {"strict", "randomized"}, default="strict"
        As of `Conformal`.
    end_worth : float, optional
        As of `Conformal`.
    delta : float, default=0.1
        Chance of a higher rate.

    See Also
    --------
    trajscore.DensityRatioEProcess : Takes it as `threshold`.

    References
    ----------
    Sadhuka et al. (2025), E-valuator, arXiv:2512.03109, Algorithm 3.

    Examples
    --------
    >>> from trajscore import DensityRatioEProcess
    >>> from trajscore.datasets import make_trajectories
    >>> from trajscore.monitoring import Pac
    >>> X, y = make_trajectories(2000, lengths=6, random_state=0, return_X_y=True)
    >>> process = DensityRatioEProcess(threshold=Pac(delta=0.05), alpha=0.1).fit(X[:1000], y[:1000])
    >>> process.report(X[1000:], y[1000:])[["false_alarm_rate", "power"]].round(2).to_dict("list")
    {'false_alarm_rate': [0.06], 'power': [0.43]}
    """

    delta: float = 0.1
    keyword = "pac"

    def __post_init__(self) -> None:
        super().__post_init__()
        as_fraction(self.delta, "delta")

    @property
    def holds(self) -> str:  # type: ignore[override]
        return f"with {1 - self.delta:.0%} confidence for this set"

    def _bound(self, alpha: float) -> tuple[float, float]:
        return alpha, self.delta


@dataclass
class PacMarginal(_Bounded):
    """What `Conformal` promises, by `Pac` with 0.9 alpha and delta = 0.1 alpha.

    Parameters
    ----------
    ties : {"strict", "randomized"}, default="strict"
        As of `Conformal`.
    end_worth : float, optional
        As of `Conformal`.

    See Also
    --------
    trajscore.DensityRatioEProcess : Takes it as `threshold`.

    Examples
    --------
    >>> from trajscore import DensityRatioEProcess
    >>> from trajscore.monitoring import PacMarginal
    >>> DensityRatioEProcess(threshold=PacMarginal(end_worth=0.3)).threshold.end_worth
    0.3
    """

    keyword = "pac_marginal"

    def _bound(self, alpha: float) -> tuple[float, float]:
        return 0.9 * alpha, 0.1 * alpha


THRESHOLDS: dict[str, type[Threshold]] = {
    kind.keyword: kind for kind in (Pac, Conformal, PacMarginal, Ville, Bonferroni, RandomizedVille)
}
"""All thresholds, by the keyword that names them."""
GUARANTEES = {"average": "conformal", "confident": "pac"}
"""Those that hold for any forecasts, by what they guarantee."""


def as_threshold(threshold: Any) -> Threshold:
    """Return an unfitted copy of a threshold, or the one of a keyword."""
    if isinstance(threshold, Threshold):
        return copy(threshold)
    check_choice(threshold, "threshold", tuple(THRESHOLDS))
    return THRESHOLDS[threshold]()


# --------------------------------------------------------------------------- uniforms


def run_uniforms(ids: Ids, seed: int) -> FloatArray:
    """Uniform in (0, 1) of each run, a hash of its id and the seed: the same in any batch."""
    # as text, so that 7 and "7", which a live log cannot tell apart, are the same run
    text = np.array([str(run_id) for run_id in ids], dtype=object)
    hashed = hash_array(text, hash_key=f"{seed & (2**64 - 1):016x}", categorize=False)
    return ((hashed >> np.uint64(11)) + 0.5) / 2.0**53


def data_digest(X: TrajectoryArray, y: AnyArray) -> int:
    """Number that depends on scores and outcomes, not on the order of rows; part of a seed."""
    values = hash_array(np.ascontiguousarray(X.cells, dtype=float).ravel())
    per_cell = values.reshape(len(X.cells), -1).sum(axis=1, dtype=np.uint64)
    per_run = np.add.reduceat(per_cell * step_numbers(X).astype(np.uint64), X.offsets[:-1])
    total = (per_run * (y + 2).astype(np.uint64)).sum(dtype=np.uint64)
    return int(total >> np.uint64(2))
