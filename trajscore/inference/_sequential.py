"""Anytime-valid comparison of two forecasters while runs arrive."""

from __future__ import annotations

import math
from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy.special import gammainc, gammaln

from trajscore.core.type_aliases import FloatArray
from trajscore.core.values import as_fraction, as_numbers, is_number

# Newton's method takes about six.
_NEWTON_STEPS = 50
# exp of more overflows; an e-value may always be rounded down.
_LARGEST_LOG = 700.0


class SequentialComparison:
    r"""Confidence sequence and e-values for the mean difference of two scores.

    They hold at every number of runs at once, so one may look after each run and stop at will.

    Parameters
    ----------
    bound : float
        Largest absolute difference of two scores of a run: 1 for Brier TPS, 13.82 for log TPS,
        with the numbers that ``tps_samples(..., horizon=30, normalize=False)`` gives. Weights over
        a horizon add up to one at most, and no number depends on runs that have not arrived yet.
    alpha : float, default=0.05
        Chance that the interval ever misses.
    v_opt : float, optional
        Sum of squared deviations at which the interval is made tightest; by default
        ``10 * bound**2``. Any value is valid, as long as it is chosen before the scores are seen.

    Notes
    -----
    With :math:`\hat\delta_i` the difference on run i, :math:`S_t = \sum_{i \le t} \hat\delta_i`,
    the plug-in :math:`\gamma_i = S_{i-1} / (i - 1)`, :math:`\gamma_1 = 0`, and
    :math:`V_t = \sum_{i \le t} (\hat\delta_i - \gamma_i)^2`,

    .. math:: E_t(\lambda) = \exp\left(\lambda S_t - \frac{-\log(1 - c\lambda) - c\lambda}{c^2}
              V_t\right), \quad 0 \le \lambda < 1 / c, \quad c = 2 \cdot \mathrm{bound}

    is an e-process for "a is no better than b on average so far",
    :math:`\Delta_t = \frac1t \sum_{i \le t} E[\hat\delta_i \mid \mathrm{past}] \le 0`, and so is
    its mixture over :math:`\lambda` with a gamma density for :math:`1 - c\lambda`, which is
    `e_value`. The interval is :math:`S_t / t \pm u(V_t) / t`, where u is the sum at which
    the mixture reaches :math:`2 / \alpha`. It covers :math:`\Delta_t` at all t with chance
    :math:`1 - \alpha`, whatever the forecasts and outcomes: neither independent nor identically
    distributed runs are assumed. For independent runs :math:`\Delta_t` is their mean difference;
    feed repeated trials of a task as one mean a task if tasks are what is sampled.

    References
    ----------
    Choe and Ramdas (2021), Comparing Sequential Forecasters, Theorem 2 and Section 4.3; Howard et
    al. (2021), Time-Uniform, Nonparametric, Nonasymptotic Confidence Sequences, Proposition 9.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> watch = SequentialComparison(bound=1)
    >>> watch.update(-0.2, -0.3).n_runs
    1
    >>> watch.update(rng.uniform(-0.3, 0, 400), rng.uniform(-0.5, 0, 400)).n_runs
    401
    >>> low, high = watch.interval
    >>> bool(0 < low < 0.1 < high)
    True
    >>> watch.e_value > 20
    True
    """

    def __init__(self, bound: float, alpha: float = 0.05, *, v_opt: float | None = None) -> None:
        self.bound = _positive(bound, "bound")
        self.alpha = as_fraction(alpha, "alpha")
        self.v_opt = 10 * self.bound**2 if v_opt is None else _positive(v_opt, "v_opt")
        scale = 2 * self.bound
        self._rho = _best_rho(self.v_opt / scale**2, self.alpha)
        # after each run, with differences divided by the scale; the first entry is before any
        self._sums = np.zeros(1)
        self._variations = np.zeros(1)

    def update(self, score_a: ArrayLike, score_b: ArrayLike) -> Self:
        """Take in the scores of one run, or of several in the order in which they arrived.

        Parameters
        ----------
        score_a, score_b : float or array-like of shape (n_new_runs,)
            Scores of the two forecasters; higher is better.

        Returns
        -------
        SequentialComparison
            Itself.
        """
        a = np.atleast_1d(as_numbers(score_a, "score_a"))
        b = np.atleast_1d(as_numbers(score_b, "score_b"))
        if a.ndim != 1 or a.shape != b.shape:
            raise ValueError(f"score_a has shape {a.shape} and score_b {b.shape}; give one each")
        differences = a - b
        bad = ~(np.abs(differences) <= self.bound * (1 + 1e-12))
        if bad.any():
            run = int(np.argmax(bad))
            raise ValueError(
                f"run {self.n_runs + run}: the difference is {differences[run]:g}; it must be "
                f"finite and at most bound={self.bound:g} in size"
            )
        new = differences / (2 * self.bound)
        sums = np.cumsum(np.concatenate([self._sums[-1:], new]))
        seen = self.n_runs + np.arange(len(new))
        deviations = (new - sums[:-1] / np.maximum(seen, 1)) ** 2
        variations = np.cumsum(np.concatenate([self._variations[-1:], deviations]))
        self._sums = np.concatenate([self._sums, sums[1:]])
        self._variations = np.concatenate([self._variations, variations[1:]])
        return self

    @property
    def n_runs(self) -> int:
        """Number of runs taken in."""
        return len(self._sums) - 1

    @property
    def mean(self) -> float:
        """Mean difference so far, a less b."""
        if not self.n_runs:
            raise ValueError("there is no mean of no runs; call update first")
        return float(2 * self.bound * self._sums[-1] / self.n_runs)

    @property
    def interval(self) -> tuple[float, float]:
        """Ends of the interval now; [-bound, bound] before the first run."""
        if not self.n_runs:
            return -self.bound, self.bound
        low, high = self._intervals(slice(-1, None))
        return float(low[0]), float(high[0])

    @property
    def e_value(self) -> float:
        """Evidence that a is better: if a never is, it ever reaches 1 / alpha with chance alpha."""
        return float(self._e_values(self._sums[-1:], slice(-1, None))[0])

    @property
    def e_value_reversed(self) -> float:
        """Evidence that b is better."""
        return float(self._e_values(-self._sums[-1:], slice(-1, None))[0])

    def history(self) -> pd.DataFrame:
        """Return what was known after each run.

        Returns
        -------
        DataFrame with one row a run
            mean, low, high, e_value and e_value_reversed, indexed by n_runs. An anytime-valid
            p-value is ``1 / e_value.cummax()``.

        Examples
        --------
        >>> watch = SequentialComparison(bound=1).update([0.9, 0.8], [0.1, 0.2])
        >>> watch.history().round(2)[["mean", "low", "high"]]
                mean  low  high
        n_runs
        1        0.8 -1.0   1.0
        2        0.7 -1.0   1.0
        """
        rows = slice(1, None)
        low, high = self._intervals(rows)
        n_runs = pd.RangeIndex(1, len(self._sums), name="n_runs")
        return pd.DataFrame(
            {
                "mean": 2 * self.bound * self._sums[rows] / n_runs,
                "low": low,
                "high": high,
                "e_value": self._e_values(self._sums[rows], rows),
                "e_value_reversed": self._e_values(-self._sums[rows], rows),
            },
            index=n_runs,
        )

    def _intervals(self, rows: slice) -> tuple[FloatArray, FloatArray]:
        n_runs = np.arange(len(self._sums))[rows]
        radius = _boundary(self._variations[rows], math.log(2 / self.alpha), self._rho)
        low = 2 * self.bound * (self._sums[rows] - radius) / n_runs
        high = 2 * self.bound * (self._sums[rows] + radius) / n_runs
        return np.maximum(low, -self.bound), np.minimum(high, self.bound)

    def _e_values(self, sums: FloatArray, rows: slice) -> FloatArray:
        log = _log_mixture(sums, self._variations[rows], self._rho)
        return np.exp(np.minimum(log, _LARGEST_LOG))


def _positive(value: Any, name: str) -> float:
    if not (is_number(value) and 1e-100 < value < 1e100):  # squares of it are numbers as well
        raise ValueError(f"{name} must be finite and positive, got {value!r}")
    return float(value)


def _best_rho(v_opt: float, alpha: float) -> float:
    """Return the rate of the gamma density that suits v_opt (Howard et al. 2021, Section 3.5)."""
    return v_opt / (2 * math.log(1 / alpha) + math.log(1 + 2 * math.log(1 / alpha)))


def _log_mixture(s: FloatArray, v: FloatArray, rho: float) -> FloatArray:
    """Log of the mixture of exp(λ s - (-log(1 - λ) - λ) v), 1 - λ of a gamma density."""
    # rounded down where s is so low that the incomplete gamma function underflows or is not
    # defined; it rises with s throughout
    constant = rho * math.log(rho) - gammaln(rho) - math.log(gammainc(rho, rho))
    a, b = v + rho, s + v + rho
    least = -rho - np.log(a + np.maximum(-b, 0.0))
    positive = np.maximum(b, np.finfo(float).tiny)
    with np.errstate(divide="ignore"):
        exact = gammaln(a) + np.log(gammainc(a, positive)) - a * np.log(positive) + s + v
    return constant + np.where(b > 0, np.maximum(exact, least), least)


def _boundary(v: FloatArray, log_threshold: float, rho: float) -> FloatArray:
    """Return the sum at which the mixture reaches the threshold."""
    # Newton's method: the log of the mixture is convex in the sum, with the mean of λ as its slope
    s = np.sqrt(2 * (v + rho) * log_threshold) + log_threshold
    a = v + rho
    for _ in range(_NEWTON_STEPS):
        b = s + a
        slope = 1 - a / b * gammainc(a + 1, b) / gammainc(a, b)
        step = (_log_mixture(s, v, rho) - log_threshold) / slope
        s = s - step
        if (np.abs(step) <= 1e-9 * s).all():
            break
    return s
