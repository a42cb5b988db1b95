"""Anytime-valid comparison of two sets of scores while runs arrive, by betting."""

from __future__ import annotations

from typing import Any, NamedTuple, Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from trajscore.core.ties import ROUNDING
from trajscore.core.values import as_fraction, as_numbers, is_number, refuse_first

# Bets, as the share of its capital that each may lose in a run, and the capital that each starts
# with: the density 2 (1 - share), on points of which the next is 1.26 times the last.
_SHARES = np.geomspace(0.002, 0.99, 28)
_CAPITAL = _SHARES * (1 - _SHARES) / (_SHARES * (1 - _SHARES)).sum()
# Means that are tried, from 0 to the bound; far from 0 the next is 1.024 times the last.
_MEANS = np.sinh(np.linspace(0, 7, 301)) / np.sinh(7)
# exp of more overflows; an e-value may always be rounded down.
_LARGEST_LOG = 700.0


class _State(NamedTuple):
    """What is known after a run: a row of `SequentialComparison.history`."""

    mean: float
    low: float
    high: float
    e_value: float
    e_value_reversed: float


class _Bets:
    """Capital of bets that the mean of numbers is above m, for each m of a grid.

    No number is below `lowest`; `bound` is the largest m at which the capital ever reached the
    `threshold`.
    """

    def __init__(self, lowest: float, highest: float, threshold: float) -> None:
        self._lowest = lowest
        self._threshold = threshold
        self._means = np.concatenate([lowest * _MEANS[-2:0:-1], highest * _MEANS[:-1]])
        self._capital = np.tile(_CAPITAL, (len(self._means), 1))  # of the means not yet exceeded
        self._log_at_zero = np.log(_CAPITAL)
        self.bound = lowest  # all means up to it are exceeded

    def add(self, number: float) -> None:
        """Settle the bets on the next number."""
        gain = (number - self._means) / (self._means - self._lowest)
        times = np.multiply.outer(gain, _SHARES)
        times += 1
        self._capital *= times
        self._log_at_zero += np.log1p(_SHARES * (number / -self._lowest))
        # the capital falls with the mean, so the first row is the largest
        while len(self._means) and self._capital[0].sum() >= self._threshold:
            self.bound = float(self._means[0])
            self._means = self._means[1:]
            self._capital = self._capital[1:]

    @property
    def e_value(self) -> float:
        """Capital of the bets that the mean is above 0."""
        return float(np.exp(min(np.logaddexp.reduce(self._log_at_zero), _LARGEST_LOG)))


class SequentialComparison:
    r"""Confidence sequence and e-values for the mean difference of two scores, by betting.

    They hold at every number of runs at once, so you may look after each run and stop at will. The
    level is exact for any number of runs and any distribution within the bound.

    Parameters
    ----------
    bound : float or tuple of (float, float)
        Largest absolute difference of two scores of a run, or the smallest (below 0) and the
        largest (above 0): 1 for successes and failures and for Brier TPS, 13.82 for log TPS, with
        the numbers that ``tps_samples(..., horizon=30, normalize=False)`` gives. Weights over a
        horizon add up to one at most, and no number depends on runs that have not arrived yet.
    alpha : float, default=0.05
        Chance that the interval ever misses, half of it on each side.

    Attributes
    ----------
    decision : {"a", "b", None}
        Which of the two is shown to be better. The first decision stays, whatever comes later. It
        is wrong with chance ``alpha / 2`` at most on each side.
    decided_after : int or None
        Number of runs after which it was decided.

    Notes
    -----
    With :math:`\delta_i` the difference on run i, :math:`-b` the smallest possible one, and F a
    fixed density, the capital of a bettor who says that the mean is above m is

    .. math:: K_t(m) = \int_0^1 \prod_{i \le t} \left(1 + \kappa
              \frac{\delta_i - m}{m + b}\right) dF(\kappa), \qquad F' = 2 (1 - \kappa).

    `e_value` is :math:`K_t(0)`. It is an e-process for "a was never better than b on the average
    so far": :math:`\frac1t \sum_{i \le t} E[\delta_i \mid \mathrm{past}] \le 0` at all t, the null
    hypothesis of Choe and Ramdas. Neither independent nor identically distributed runs are assumed.

    The lower end of `interval` is the largest m for which :math:`K_t(m)` has ever reached
    :math:`2 / \alpha`; the upper end is that of the negative differences, reversed. So the interval
    only narrows. It holds a mean difference that does not change, at all t with chance
    :math:`1 - \alpha`. Where the mean changes, the lower end is a bound of the largest average so
    far, the upper end of the smallest; a lower end above the upper one shows such a change. Feed
    repeated trials of a task as one mean a task if tasks are what is sampled.

    For differences of -1, 0 and 1 ties leave :math:`K_t(0)` as it is: it is then the sequential
    sign test of the runs that differ. Ends are rounded outwards to a grid, by 2.4% at most far
    from 0, and by .00004 of the bound near it.

    References
    ----------
    Waudby-Smith and Ramdas (2024), Estimating means of bounded random variables by betting,
    Sections 4 and 5; Choe and Ramdas (2021), Comparing Sequential Forecasters.

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
    >>> watch.decision, watch.e_value > 40
    ('a', True)
    """

    def __init__(self, bound: float | tuple[float, float], alpha: float = 0.05) -> None:
        self.bound = bound
        self.alpha = as_fraction(alpha, "alpha")
        self._lowest, self._highest = _ends(bound)
        threshold = 2 / self.alpha
        self._for_a = _Bets(self._lowest, self._highest, threshold)
        self._for_b = _Bets(-self._highest, -self._lowest, threshold)
        self._sum = 0.0
        self._states: list[_State] = []
        self.decision: str | None = None
        self.decided_after: int | None = None

    def update(self, score_a: ArrayLike, score_b: ArrayLike) -> Self:
        """Take in the scores of one run, or of several in the order in which they arrived."""
        a = np.atleast_1d(as_numbers(score_a, "score_a"))
        b = np.atleast_1d(as_numbers(score_b, "score_b"))
        if a.ndim != 1 or a.shape != b.shape:
            raise ValueError(f"score_a has shape {a.shape} and score_b {b.shape}; give one each")
        differences = a - b
        rounding = ROUNDING * max(self._highest, -self._lowest)
        within = (differences >= self._lowest - rounding) & (
            differences <= self._highest + rounding
        )
        refuse_first(
            ~within,
            lambda run: (
                f"run {self.n_runs + run}: the difference is {differences[run]:g}; it must be "
                f"between {self._lowest:g} and {self._highest:g}, as bound={self.bound!r} says"
            ),
        )
        for difference in differences.tolist():
            self._for_a.add(difference)
            self._for_b.add(-difference)
            self._sum += difference
            mean = self._sum / (self.n_runs + 1)
            low, high = self.interval
            self._states.append(_State(mean, low, high, self.e_value, self.e_value_reversed))
            if self.decision is None and (low >= 0 or high <= 0):
                self.decision = "a" if low >= 0 else "b"
                self.decided_after = self.n_runs
        return self

    @property
    def n_runs(self) -> int:
        """Number of runs taken in."""
        return len(self._states)

    @property
    def mean(self) -> float:
        """Mean difference so far, a less b."""
        if not self._states:
            raise ValueError("there is no mean of no runs; call update first")
        return self._states[-1].mean

    @property
    def interval(self) -> tuple[float, float]:
        """Ends of the interval now; those of the bound before the first run."""
        return self._for_a.bound, -self._for_b.bound

    @property
    def e_value(self) -> float:
        """Evidence that a is better: if a never is, it ever reaches 1 / alpha with chance alpha."""
        return self._for_a.e_value

    @property
    def e_value_reversed(self) -> float:
        """Evidence that b is better."""
        return self._for_b.e_value

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
                mean   low  high
        n_runs
        1        0.8 -1.00   1.0
        2        0.7 -0.89   1.0
        """
        n_runs = pd.RangeIndex(1, self.n_runs + 1, name="n_runs")
        return pd.DataFrame(self._states, index=n_runs, columns=_State._fields, dtype=float)


def _ends(bound: Any) -> tuple[float, float]:
    """Return the smallest and the largest difference."""
    sizes = bound, bound
    if isinstance(bound, tuple) and len(bound) == 2 and is_number(bound[0]):
        sizes = -bound[0], bound[1]
    if not all(is_number(size) and 1e-100 < size < 1e100 for size in sizes):
        raise ValueError(
            f"bound must be a positive number, or a pair of a number below 0 and a number above "
            f"0, got {bound!r}"
        )
    return -float(sizes[0]), float(sizes[1])
