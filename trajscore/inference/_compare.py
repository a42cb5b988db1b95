"""Simultaneous comparison of any number of predictors on the same runs."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from trajscore.core.type_aliases import FloatArray
from trajscore.core.values import as_fraction, as_numbers
from trajscore.inference._bootstrap import bootstrap_units, check_resamples
from trajscore.inference._units import Units, resampling_units

# Variances below this share of the largest there could be are rounding errors of zero.
_ROUNDING = 1e-24


def compare_predictors(
    samples: Mapping[Any, ArrayLike] | pd.DataFrame,
    *,
    reference: Hashable | None = None,
    n_resamples: int = 10_000,
    confidence_level: float = 0.95,
    groups: ArrayLike | None = None,
    strata: ArrayLike | None = None,
    random_state: Any = None,
    n_jobs: int | None = None,
) -> pd.DataFrame:
    r"""Compare the mean scores of predictors, all pairs or all against one, at one error rate.

    Parameters
    ----------
    samples : dict or DataFrame of shape (n_runs, n_predictors)
        One score a run for each predictor, such as `trajscore.metrics.tps_samples` gives; a dict
        maps names to arrays of shape (n_runs,). Entries are paired by position; where several are
        Series, their indexes must be equal.
    reference : hashable, optional
        Name of the predictor that all others are compared with; by default all pairs are.
    n_resamples : int, default=10000
        Number of replicates.
    confidence_level : float, default=0.95
        Chance that all intervals hold their difference at once.
    groups, strata, random_state, n_jobs : optional
        As in `bootstrap`; the standard errors are those of clusters where there are any.

    Returns
    -------
    DataFrame with one row a comparison
        predictor, reference, difference (of the means, predictor less reference), low, high,
        std_error, p_value (of this comparison alone) and p_holm (Holm's adjustment for all).

    Raises
    ------
    ValueError
        If predictors have scores of different runs, a score is missing, a difference does not
        vary, or there are too few runs, clusters or replicates for the level.

    Notes
    -----
    With the difference :math:`d`, its standard error :math:`s` over clusters, and
    :math:`t^* = (d^* - d) / s^*` in each replicate, the intervals are :math:`d \pm c\,s` for the
    quantile :math:`c` of :math:`\max |t^*|` over all comparisons, and the p-value is
    :math:`(1 + \#\{|t^*| \ge |d / s|\}) / (1 + B)` for :math:`B` replicates.

    References
    ----------
    Romano and Wolf (2005), Exact and Approximate Stepdown Methods for Multiple Hypothesis
    Testing; Holm (1979), A Simple Sequentially Rejective Multiple Test Procedure.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> a = rng.normal(size=200)
    >>> scores = {"a": a, "b": a + rng.normal(0.5, 1, size=200), "c": rng.normal(size=200)}
    >>> compare_predictors(scores, random_state=0).round(2)[
    ...     ["predictor", "reference", "difference", "low", "high", "p_holm"]
    ... ]
      predictor reference  difference   low  high  p_holm
    0         a         b       -0.41 -0.58 -0.24    0.00
    1         a         c        0.01 -0.21  0.23    0.91
    2         b         c        0.42  0.15  0.69    0.00
    """
    table = _checked_table(samples)
    _check_level(confidence_level, n_resamples)
    pairs = _pairs(list(table.columns), reference)
    units = resampling_units(len(table), groups, strata)
    moments = _Moments(table.to_numpy(), pairs, units)
    moments.check_variation(list(table.columns))
    t = bootstrap_units(
        moments.studentised, units, n_resamples=n_resamples, random_state=random_state,
        n_jobs=n_jobs,
    )  # fmt: skip
    critical = _critical_value(t.max(axis=1), confidence_level, units.n_units)
    difference, std_error = moments.difference, moments.std_error
    p = (1 + (t >= np.abs(difference / std_error)).sum(axis=0)) / (1 + n_resamples)
    names = table.columns.to_numpy()
    return pd.DataFrame(
        {
            "predictor": names[pairs[:, 0]],
            "reference": names[pairs[:, 1]],
            "difference": difference,
            "low": difference - critical * std_error,
            "high": difference + critical * std_error,
            "std_error": std_error,
            "p_value": p,
            "p_holm": _holm(p),
        }
    )


class _Moments:
    """Sums over units, from which counts give the studentised differences of all pairs."""

    def __init__(self, values: FloatArray, pairs: NDArray[np.int64], units: Units) -> None:
        m = values.shape[1]
        mean = values.mean(axis=0)
        sizes = units.sizes(len(values))
        residuals = units.sums(values - mean)
        between = residuals[:, pairs[:, 0]] - residuals[:, pairs[:, 1]]
        self.difference = mean[pairs[:, 0]] - mean[pairs[:, 1]]
        self._pairs, self._units = pairs, units
        self._edges = np.cumsum([m, m, len(pairs), 1])
        self._columns = np.concatenate(
            [
                residuals,
                residuals * sizes[:, None],
                between**2,
                sizes[:, None],
                sizes[:, None] ** 2,
            ],
            axis=1,
        )
        largest = np.abs(values).max(axis=0)
        scale = np.maximum(largest[pairs[:, 0]], largest[pairs[:, 1]])
        variance = self._moments(np.ones((1, units.n_units)))[1][0]
        constant = variance <= _ROUNDING * scale**2
        self._floor = np.where(constant, np.inf, 1e-12 * variance)
        self.std_error = np.sqrt(np.maximum(variance, 0.0))

    def check_variation(self, names: list[Hashable]) -> None:
        constant = np.isinf(self._floor)
        if constant.any():
            one, other = (names[k] for k in self._pairs[int(np.argmax(constant))])
            raise ValueError(
                f"the difference between {one!r} and {other!r} does not vary, so it has no "
                f"standard error; leave one of them out"
            )

    def studentised(self, counts: FloatArray) -> FloatArray:
        """Return abs(t) of each replicate and pair; infinite where a replicate does not vary."""
        shift, variance = self._moments(counts)
        varies = variance > self._floor
        return np.where(varies, np.abs(shift) / np.sqrt(np.where(varies, variance, 1.0)), np.inf)

    def _moments(self, counts: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the shift from the sample's difference and its variance, per replicate."""
        strata = self._units.strata
        sums = np.stack([counts[:, s] @ self._columns[s] for s in strata])
        linear, crossed, squares, runs, runs2 = np.split(sums, self._edges, axis=2)
        linear, crossed = self._contrast(linear), self._contrast(crossed)
        total = runs.sum(axis=0)
        shift = linear.sum(axis=0) / total
        # per stratum, the sum of squared residuals about the replicate's own mean
        n_units = np.array([s.stop - s.start for s in strata], dtype=float)[:, None, None]
        spread = squares - 2 * shift * crossed + shift**2 * runs2
        spread -= (linear - shift * runs) ** 2 / n_units
        return shift, (spread * n_units / (n_units - 1)).sum(axis=0) / total**2

    def _contrast(self, sums: FloatArray) -> FloatArray:
        return sums[..., self._pairs[:, 0]] - sums[..., self._pairs[:, 1]]


def _checked_table(samples: Mapping[Any, ArrayLike] | pd.DataFrame) -> pd.DataFrame:
    if not isinstance(samples, (Mapping, pd.DataFrame)):
        raise TypeError(
            f"samples must be a dict or DataFrame of scores by predictor, "
            f"got {type(samples).__name__}"
        )
    given = samples if isinstance(samples, pd.DataFrame) else _from_mapping(samples)
    table = given.astype(np.float64)
    if table.shape[1] < 2:
        raise ValueError(f"a comparison needs at least 2 predictors, got {table.shape[1]}")
    if not table.columns.is_unique:
        twice = table.columns[table.columns.duplicated()][0]
        raise ValueError(f"two predictors are called {twice!r}; give each a name of its own")
    bad = ~np.isfinite(table.to_numpy())
    if bad.any():
        row, column = np.argwhere(bad)[0]
        raise ValueError(
            f"row {row}: the score of {table.columns[column]!r} is missing or infinite; "
            f"drop the run for all predictors, or score it"
        )
    return table


def _from_mapping(samples: Mapping[Any, ArrayLike]) -> pd.DataFrame:
    """Put scores side by side, by position, if nothing says that they are of other runs."""
    columns = {name: as_numbers(one, f"scores of {name!r}") for name, one in samples.items()}
    for name, column in columns.items():
        if column.ndim != 1:
            raise ValueError(f"scores of {name!r} have shape {column.shape}; give one a run")
    if len({len(column) for column in columns.values()}) > 1:
        sizes = ", ".join(f"{name!r} {len(column)}" for name, column in columns.items())
        raise ValueError(
            f"the predictors have different numbers of scores ({sizes}); give one a run"
        )
    indexes = {name: one.index for name, one in samples.items() if isinstance(one, pd.Series)}
    first = next(iter(indexes), None)
    for name, index in indexes.items():
        if not index.equals(indexes[first]):
            raise ValueError(
                f"the scores of {first!r} and {name!r} have different indexes; put both in one "
                f"order of runs, or give arrays, which are paired by position"
            )
    return pd.DataFrame(columns)


def _check_level(confidence_level: float, n_resamples: int) -> None:
    check_resamples(n_resamples)
    as_fraction(confidence_level, "confidence_level")
    if (n_resamples + 1) * (1 - confidence_level) < 1 - 1e-9:
        raise ValueError(
            f"n_resamples={n_resamples} is too few for a level of {confidence_level:g}; "
            f"at least {int(np.ceil(1 / (1 - confidence_level) - 1e-9)) - 1} are needed"
        )


def _pairs(names: list[Hashable], reference: Hashable | None) -> NDArray[np.int64]:
    if reference is None:
        return np.array(list(combinations(range(len(names)), 2)))
    if not isinstance(reference, Hashable) or reference not in names:
        raise ValueError(f"reference {reference!r} is none of the predictors {names}")
    base = names.index(reference)
    return np.array([(k, base) for k in range(len(names)) if k != base])


def _critical_value(largest: FloatArray, confidence_level: float, n_units: int) -> float:
    rank = int(np.ceil((len(largest) + 1) * confidence_level - 1e-9))
    critical = float(np.sort(largest)[rank - 1])
    if not np.isfinite(critical):
        raise ValueError(
            f"{n_units} runs or clusters, or the few in which a difference is not zero, are too "
            f"few for a studentised interval at level {confidence_level:g}"
        )
    return critical


def _holm(p: FloatArray) -> FloatArray:
    """Return Holm's step-down adjustment of p-values."""
    order = np.argsort(p, kind="stable")
    steps = np.minimum(1.0, p[order] * np.arange(len(p), 0, -1))
    adjusted = np.empty_like(p)
    adjusted[order] = np.maximum.accumulate(steps)
    return adjusted
