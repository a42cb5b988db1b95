"""Intervals of means: by bootstrap, by influences, and which of the two holds."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd
from sklearn.utils import check_random_state, gen_batches

from trajscore.core.errors import ArgumentError
from trajscore.core.parallel import Progress, Work
from trajscore.core.policy import MIN_UNITS_FOR_RARE_LOSSES
from trajscore.core.statistics import MeanOfRuns
from trajscore.core.values import (
    ArrayLike,
    BoolArray,
    FloatArray,
    FloatPair,
    IntArray,
    as_numbers,
    check_choice,
    is_count,
)
from trajscore.inference.intervals import (
    Spread,
    Units,
    any_units,
    bca_interval,
    bounds,
    percentile_interval,
    resampling_units,
    with_unseen,
)

# Replicates drawn at a time, each block from a seed of its own: results do not depend on n_jobs.
_BLOCK = 64
_IN_CACHE = 1 << 14  # units drawn at a time
_MOST_COUNTS = 1 << 24  # counts of units held at a time
_MOST = 10**8
# Rows of each column that `bootstrap_many_means` draws one by one.
_LARGEST = 512


def bootstrap(
    statistic: Callable[[FloatArray], FloatArray],
    n_runs: int,
    *,
    n_resamples: int = 1000,
    groups: ArrayLike | None = None,
    random_state: Any = None,
    n_jobs: int | None = None,
) -> FloatArray:
    """Evaluate a statistic on bootstrap replicates, given as weightings of the runs.

    Parameters
    ----------
    statistic : callable
        Maps counts of shape (n_replicates, n_runs), how often each run was drawn, to values of
        shape (n_replicates, ...).
    n_runs : int
        Number of runs.
    n_resamples : int, default=1000
        Number of replicates.
    groups : array-like of shape (n_runs,), optional
        Clusters (say, tasks that several runs tried): whole clusters are drawn.
    random_state : int, RandomState instance or None, default=None
        Seed.
    n_jobs : int, optional
        Threads; the result does not depend on it.

    Returns
    -------
    ndarray of shape (n_resamples, ...)
        The statistic of each replicate. All come from the same draws, so differences are paired.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.array([1.0, 2.0, 3.0, 4.0])
    >>> means = bootstrap(lambda counts: counts @ x / 4, 4, n_resamples=200, random_state=0)
    >>> means.shape
    (200,)
    """
    if not callable(statistic):
        raise ValueError(
            f"statistic must be a function of the count of each run, got {statistic!r}"
        )
    units = resampling_units(n_runs, groups)
    return bootstrap_units(
        lambda counts: statistic(units.to_runs(counts)),
        units,
        n_resamples=n_resamples,
        random_state=random_state,
        n_jobs=n_jobs,
    )


def bootstrap_units(
    statistic: Callable[[FloatArray], FloatArray],
    units: Units,
    *,
    n_resamples: int,
    random_state: Any,
    n_jobs: int | None = None,
    progress: Progress | None = None,
) -> FloatArray:
    """Evaluate a statistic of the counts of units, of shape (n_replicates, n_units)."""
    check_resamples(n_resamples)
    work = Work(n_jobs, progress)
    n = units.n_units
    at_once = max(1, min(_BLOCK, _MOST_COUNTS // n))
    sizes = [min(at_once, n_resamples - start) for start in range(0, n_resamples, at_once)]
    seeds = np.random.SeedSequence(_seed(random_state)).spawn(len(sizes))

    def block(job: tuple[int, np.random.SeedSequence]) -> FloatArray:
        size, block_seed = job
        generator = np.random.default_rng(block_seed)
        counts = np.empty((size, n))
        for rows in gen_batches(size, max(1, _IN_CACHE // n)):
            part = counts[rows]
            for of_replicate, drawn in zip(
                part, generator.integers(n, size=part.shape), strict=True
            ):
                of_replicate[:] = np.bincount(drawn, minlength=n)
        return statistic(counts)

    return np.concatenate(list(work.share(block, list(zip(sizes, seeds, strict=True)))))


def bootstrap_means(values: FloatArray, units: Units, **options: Any) -> FloatArray:
    """Means of the columns of `values`, of shape (n_runs, n_columns), in each replicate."""
    sums = units.sums(values)
    return bootstrap_units(
        lambda counts: counts @ sums / (counts @ units.sizes)[:, None], units, **options
    )


def bootstrap_many_means(samples: FloatArray, *, n_resamples: int, random_state: Any) -> FloatArray:
    """Bootstrap means of very many rows: the largest are drawn, the others have a normal sum.

    With the rows of the largest deviations set apart, what is drawn of the others adds up to a
    normal sum, whatever they are distributed like, of a mean and covariance that are known.
    """
    n = len(samples)
    generator = np.random.default_rng(_seed(random_state))
    largest = np.argpartition(-abs(samples - samples.mean(axis=0)), _LARGEST, axis=0)
    is_large = np.zeros(n, dtype=bool)
    is_large[largest[:_LARGEST]] = True
    others = samples[~is_large]
    n_largest = is_large.sum()
    n_drawn = generator.binomial(n, n_largest / n, n_resamples)
    counts = generator.multinomial(n_drawn, np.full(n_largest, 1 / n_largest))
    n_others = (n - n_drawn)[:, None]
    covariance = np.atleast_2d(np.cov(others, rowvar=False, bias=True))
    noise = generator.multivariate_normal(
        np.zeros(samples.shape[1]), covariance, n_resamples, method="eigh"
    )
    sums = counts @ samples[is_large] + n_others * others.mean(axis=0) + np.sqrt(n_others) * noise
    return sums / n


def _seed(random_state: Any) -> int:
    return int(check_random_state(random_state).randint(np.iinfo(np.int32).max))


def check_resamples(n_resamples: Any) -> None:
    """Refuse numbers of replicates that are not whole, or below 1."""
    if not is_count(n_resamples) or n_resamples > _MOST:
        raise ArgumentError(
            f"{{argument}} must be a whole number, at least 1 and at most {_MOST:,}, got "
            f"{n_resamples!r}",
            "n_resamples",
        )


def paired_bootstrap(
    samples: ArrayLike,
    *,
    reference: Any = None,
    n_resamples: int = 10_000,
    confidence_level: float = 0.95,
    groups: ArrayLike | None = None,
    method: Literal["percentile", "bca"] = "percentile",
    random_state: Any = None,
    n_jobs: int | None = None,
    other: ArrayLike | None = None,
) -> pd.DataFrame:
    """Bootstrap intervals of means, or of differences from a reference column.

    Parameters
    ----------
    samples : DataFrame or array-like of shape (n_runs, n_columns)
        One score a run and predictor, such as columns of `trajscore.metrics.tps_samples`.
    reference : int or str, optional
        Name of the column that is subtracted from all columns, run by run: of an array its number.
    n_resamples : int, default=10000
        Number of replicates.
    confidence_level : float, default=0.95
        Level of each interval; `compare_predictors` gives simultaneous ones.
    groups : optional
        As in `bootstrap`.
    method : {"percentile", "bca"}, default="percentile"
        Kind of interval. BCa corrects for bias and skewness, over clusters where there are any; it
        is NaN where all replicates lie on one side of the mean. Both are expanded to make up for
        few runs or clusters, unequal ones too, as an interval of t would be.
    random_state, n_jobs : optional
        As in `bootstrap`.
    other : DataFrame or array-like of shape (n_runs, n_columns), optional
        The scores, had each run ended the other way: of `trajscore.metrics.tps_samples` those of
        ``1 - y``; of what no outcome changes, `samples`. Columns of zeros and ones need none.

    Returns
    -------
    DataFrame indexed by column
        mean, low, high and std_error.

    Raises
    ------
    ValueError
        If a score is missing, or there are fewer than two runs, or clusters.

    Warns
    -----
    UserWarning
        If there are fewer than 100 runs, or clusters, and neither `other` nor zeros and ones alone.

    Notes
    -----
    A rare loss may have happened to none of the runs. With `other`, and for rates, intervals hold
    such losses, as those of `trajscore.evaluate` do: the number of runs bounds how often they
    happen (Clopper and Pearson 1934). Without it they do not, see :doc:`/user_guide/inference`.

    References
    ----------
    Efron (1987), Better Bootstrap Confidence Intervals; Hesterberg (2015), What Teachers Should
    Know About the Bootstrap, Section 5.2, for the width where runs or clusters are few.

    Examples
    --------
    >>> import numpy as np
    >>> y = np.repeat([1, 0], [19, 1])  # one run of twenty failed
    >>> samples, other = (-np.c_[(of - 0.9) ** 2, (of - 0.8) ** 2] for of in (y, 1 - y))
    >>> paired_bootstrap(samples, reference=1, other=other, random_state=0).round(2)
       mean   low  high  std_error
    0  0.02 -0.01  0.03       0.01
    1  0.00  0.00  0.00       0.00
    """
    table = scores_table(samples)
    values = table.to_numpy()
    names = table.columns
    opposite = np.where(np.isin(values, (0, 1)).all(axis=0), 1 - values, np.nan)
    if other is not None:
        others = scores_table(other, "other")
        if not others.columns.equals(names) or len(others) != len(values):
            raise ValueError(
                f"other must have the rows and columns of samples, of shape {values.shape}, got "
                f"{others.shape} and {others.columns.tolist()}"
            )
        opposite = others.to_numpy()
    check_choice(method, "method", ("percentile", "bca"))
    if reference is not None:
        if not isinstance(reference, Hashable) or reference not in names:
            raise ValueError(f"reference {reference!r} is not one of the columns {names.tolist()}")
        base = names == reference
        values = values - values[:, base]
        opposite = opposite - opposite[:, base]
    if groups is None:  # in an order of their own, so that the order of rows cannot matter
        order = np.lexsort(values.T)
        values = values[order]
        opposite = opposite[order]
    units = resampling_units(len(values), groups)
    change = (opposite - values) / len(values)
    if np.isnan(change).any() and units.n_units < MIN_UNITS_FOR_RARE_LOSSES:
        warnings.warn(
            f"intervals of the mean of {units.n_units} runs or clusters do not know of rare losses "
            f"that happened to none of them; pass other=, the scores had each run ended the other "
            f"way, or other=samples if no outcome changes them",
            stacklevel=2,
        )
    replicates = bootstrap_means(
        values, units, n_resamples=n_resamples, random_state=random_state, n_jobs=n_jobs
    )
    mean = values.mean(axis=0)
    level = units.expanded_level(confidence_level)
    if method == "bca":
        sums = units.sums(values)
        left_out = (sums.sum(axis=0) - sums) / (len(values) - units.sizes)[:, None]
        skewness = Spread(
            left_out.mean(axis=0) - left_out, any_units(None, units.n_units)
        ).acceleration()
        low, high = bca_interval(replicates, mean, skewness, level)
    else:
        low, high = percentile_interval(replicates, level)
    low, high = with_unseen(low, high, mean, np.nan_to_num(change).T, units, confidence_level)
    columns = {"mean": mean, "low": low, "high": high, "std_error": replicates.std(axis=0, ddof=1)}
    return pd.DataFrame(columns, index=names)


def scores_table(samples: Any, name: str = "samples") -> pd.DataFrame:
    """Return one row a run and one column a predictor, of which no score is missing."""
    table = pd.DataFrame(as_numbers(samples, name), columns=getattr(samples, "columns", None))
    if not len(table):
        raise ValueError(f"{name} must have one row a run and one column a predictor; give some")
    bad = np.argwhere(~np.isfinite(table.to_numpy()))
    if len(bad):
        row, column = bad[0]
        raise ValueError(
            f"row {row}: the score of {table.columns[column]!r} is missing or infinite; drop the "
            f"run for all predictors, or score it"
        )
    return table


METHODS = ("auto", "bootstrap", "influence")

# With fewer runs, or clusters, that carry the variance an interval by influences covers too little
# (benchmarks/intervals.py). Of few a quarter will do, as t allows for their number, and more where
# they are unequal.
ENOUGH = 30
_SHARE = 0.25
_MOST_DRAWS = 4000
# of means over more runs those of the largest deviations are drawn
_MANY = 1 << 13
# with so few of a rare outcome it is chance whether enough runs seem to carry the variance
_RARE = 0.1
_FEW = 60


def n_of_rarer_outcome(n_success: Any, n_runs: Any) -> Any:
    """Return the number of runs of the rarer outcome, of one set of runs or of several."""
    return np.round(np.minimum(n_success, n_runs - n_success), 9)  # rates may be off by rounding


def is_rare(labels: FloatArray) -> bool:
    """Whether there are few runs of an outcome that is rare."""
    return bool(n_of_rarer_outcome(labels.sum(), len(labels)) < min(_FEW, _RARE * len(labels)))


@dataclass(frozen=True)
class InfluenceIntervals:
    """Intervals by influences, where they hold, and the skewness that a bootstrap corrects for."""

    low: FloatArray
    high: FloatArray
    holds: BoolArray
    skewness: FloatArray


def by_influence(
    estimate: FloatArray,
    influence: FloatArray,
    units: Units,
    confidence_level: float,
    on_logit: ArrayLike = False,
) -> InfluenceIntervals:
    """Return intervals by influences, none of which may be NaN, and which intervals hold."""
    quantile = units.t_quantile(confidence_level)
    spread = Spread(influence, units)
    low, high = bounds(estimate, spread.half_width(quantile), np.asarray(on_logit))
    enough = min(ENOUGH, _SHARE * units.n_units**2 / units.n_effective)
    return InfluenceIntervals(low, high, spread.n_carrying() >= enough, spread.acceleration())


def by_bootstrap(
    replicates: FloatArray, estimate: FloatArray, skewness: FloatArray, confidence_level: float
) -> FloatPair:
    """Return BCa intervals, or percentiles where all replicates lie on one side."""
    low, high = bca_interval(replicates, estimate, skewness, confidence_level)
    plain_low, plain_high = percentile_interval(replicates, confidence_level)
    missing = np.isnan(low)
    return np.where(missing, plain_low, low), np.where(missing, plain_high, high)


def interval_of(
    estimate: float,
    influence: FloatArray,
    groups: IntArray | None,
    confidence_level: float,
    *,
    on_logit: bool = False,
) -> tuple[float, float, float]:
    """Return a statistic with its interval, by each run's influence; NaN: it does not count."""
    units = any_units(groups, len(influence))
    psi = np.nan_to_num(influence)[:, None]
    intervals = by_influence(np.array([estimate]), psi, units, confidence_level, on_logit)
    return estimate, float(intervals.low[0]), float(intervals.high[0])


def intervals_of_means(
    means: Sequence[MeanOfRuns],
    units: Units,
    confidence_level: float,
    *,
    n_resamples: int = 1000,
    random_state: Any = 0,
) -> list[list[float]]:
    """Return each mean of the same runs with an interval that knows of losses not seen yet.

    By influences where these hold, else by bootstrap, never shorter than by influences: few runs
    hide what is rare.
    """
    values = np.stack([each.pseudo_values() for each in means], axis=1)
    n = len(values)
    changes = [each.change(np.ones(n)) for each in means]
    mean = values.mean(axis=0)
    intervals = by_influence(mean, values - mean, units, confidence_level)
    low = intervals.low
    high = intervals.high
    if not intervals.holds.all():
        # a tail of the level has to hold some replicates
        least = min(_MOST_DRAWS, math.ceil(40 / (1 - confidence_level)))
        options = {"n_resamples": max(n_resamples, least), "random_state": random_state}
        if units.codes is None and n > _MANY:
            drawn = bootstrap_many_means(values, **options)
        else:
            drawn = bootstrap_means(values, units, **options)
        expanded = units.expanded_level(confidence_level)
        lowest, highest = by_bootstrap(drawn, mean, intervals.skewness, expanded)
        low = np.where(intervals.holds, low, np.minimum(low, lowest))
        high = np.where(intervals.holds, high, np.maximum(high, highest))
    ends = with_unseen(low, high, mean, changes, units, confidence_level)
    return np.stack([mean, *ends], axis=1).tolist()
