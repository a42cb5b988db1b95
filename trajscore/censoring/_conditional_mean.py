"""Whether estimated continuation probabilities have the right conditional mean."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
from sklearn.utils import check_random_state

from trajscore.core.checks import check_groups, check_traces
from trajscore.core.outcomes import CENSORED
from trajscore.core.policy import MIN_UNITS_FOR_CRITERION
from trajscore.core.ties import ROUNDING, SUM_ROUNDING
from trajscore.core.values import (
    ArrayLike,
    FloatArray,
    FloatPair,
    IntArray,
    as_count,
    as_numbers,
    check_rows,
    outside_unit,
    refuse_first,
)
from trajscore.core.weights import Horizon, Weights, as_step_weights, contrasts

_MOST_NUMBERS = 1 << 22  # simulated outcomes held at a time
_MOST_BRANCHES = 100
_MOST_ALIKE = 0.99  # correlation within clusters; at 1 some moments would not vary
_NOTHING = 1e-300


def conditional_mean_test(
    outcome: ArrayLike,
    q_z: ArrayLike,
    features: ArrayLike | None = None,
    *,
    traces: Any = None,
    score: Any = "log",
    weights: Weights = "early",
    horizon: Horizon = None,
    groups: ArrayLike | None = None,
    n_resamples: int = 1000,
    random_state: Any = 0,
) -> pd.DataFrame:
    """Test on held-out runs whether the mean outcome given the history is the estimated q_Z.

    A plug-in score stays proper for q_t if and only if the surrogate outcome has conditional
    mean q_t (Remark C.4). Then the residuals, outcome minus estimate, are uncorrelated with
    everything known at the stop; this is tested for the constant, for the estimate itself, for
    each given feature, and for the score's own slope in q_Z.

    Parameters
    ----------
    outcome : array-like of shape (n_runs,)
        What became of held-out runs: outcomes, or shares of successful continuations; NaN or -1
        where it was not observed.
    q_z : array-like of shape (n_runs,)
        Estimates that have not seen these outcomes.
    features : array-like of shape (n_runs, n_features) or DataFrame, optional
        Things known at the stop, a finite number for each run with an outcome and an estimate.
    traces : TrajectoryArray or array-like of shape (n_runs, T_max), optional
        Forecasts under test. Adds the row "score", whose mean is the *bias of the plug-in score*
        on these runs: residual times the sum of w_t {S(F_t, 1) - S(F_t, 0)}.
    score, weights, horizon : score family and step weights
        As in `trajscore.metrics.tps_score`.
    groups : array-like of shape (n_runs,), optional
        Clusters of runs that are not independent.
    n_resamples : int, default=1000
        How often outcomes are simulated; no p-value is below 1 / (1 + n_resamples).
    random_state : int, RandomState instance or None, default=0
        Seed.

    Returns
    -------
    DataFrame
        For each moment: mean of residual times (standardised) feature; std_error, that of the mean
        if the criterion holds; z; and pvalue. In the last row, "all", the joint test of all rows,
        without "q_z" where features are given (its mean and std_error are NaN). A row that does not
        vary over the runs, as that of a constant feature, has no z and no pvalue (NaN).

    Raises
    ------
    ValueError
        If an outcome or an estimate lies outside [0, 1], fewer than ten held-out runs, or clusters
        of them, are known, or no residual could differ from 0.

    Notes
    -----
    A small p-value refutes the criterion. A large one says only that no bias was seen along
    these directions. For score differences of two predictors, subtract their "score" rows.

    The statistic of a row is abs(z), the joint one the quadratic form of all means (a score test).
    The p-value is the share of statistics at least as large, among those of outcomes simulated with
    the chances `q_z`, the observed one included. For independent outcomes 0 and 1 the test is
    exact: with any number of runs it rejects a right q_Z at most as often as its level says.

    Runs of a cluster may depend on each other in any way, so outcomes are simulated twice:
    independent, and alike, as far as the chances allow; the larger p-value holds. Shares of
    successful continuations are simulated with as many continuations as their variance suggests.
    Neither is exact: at .05 both reject in .03 to .07 of 1,000 simulated sets of 20 to 200 runs
    (``benchmarks/censoring.py mean_test``).

    References
    ----------
    Raghu et al. (2026), Proper Scoring Rules for Agentic Uncertainty Quantification, Remarks C.4
    and C.5.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> q = rng.random(2000)
    >>> y = rng.random(2000) < q
    >>> bool(conditional_mean_test(y, q).loc["all", "pvalue"] > 0.05)
    True
    >>> bool(conditional_mean_test(y, 0.8 * q).loc["all", "pvalue"] < 0.002)
    True
    """
    n_resamples = as_count(n_resamples, "n_resamples")
    observed = as_numbers(outcome, "outcome")
    estimate = as_numbers(q_z, "q_z")
    if observed.shape != estimate.shape or observed.ndim != 1:
        raise ValueError(
            f"outcome and q_z must be one number a run each, got shapes {observed.shape} and "
            f"{estimate.shape}"
        )
    observed = np.where(observed == CENSORED, np.nan, observed)
    tested_runs = ~np.isnan(observed) & ~np.isnan(estimate)
    for values, name in ((observed, "outcome"), (estimate, "q_z")):
        remedy = "give a number in [0, 1], or -1 where no outcome was observed"
        check_rows(values, ~(tested_runs & outside_unit(values)), name, remedy)
    n_tested = tested_runs.sum()
    _check_number(n_tested, "held-out runs have both an outcome and an estimate")
    clusters = np.zeros(n_tested, int)
    if groups is not None:
        clusters = check_groups(groups, len(observed))[tested_runs]
        _check_number(len(np.unique(clusters)), "clusters (groups) of held-out runs are known")
    instruments = _instruments(estimate, features)
    if traces is not None:
        X = check_traces(traces, len(observed))
        how = as_step_weights(weights, horizon)
        divisor = how.of(X).divisor()[tested_runs].mean()
        instruments["score"] = contrasts(X, score, how) / divisor
    rows = np.flatnonzero(tested_runs)
    moments = pd.DataFrame(instruments).iloc[rows]
    names = list(instruments)
    refuse_first(
        moments.isna().any(),
        lambda k: f"{names[k]!r} is missing for a run with an outcome; drop the run or feature",
    )
    # beside features, cross-fitted estimates add nothing but the noise between their folds, which
    # goes against the held-out residuals: the joint test would then reject what is right
    joint = [k for k, name in enumerate(names) if features is None or name != "q_z"]
    # in an order of their own, so that the order of rows does not matter
    order = np.lexsort((*moments.to_numpy().T[::-1], estimate[rows], clusters))
    starts = np.arange(len(order))
    if groups is not None:
        starts = np.flatnonzero(np.diff(clusters[order], prepend=-1))
    return _score_test(
        observed[rows[order]],
        estimate[rows[order]],
        moments.iloc[order],
        joint,
        starts,
        n_resamples,
        check_random_state(random_state),
    )


def _check_number(number: int, units: str) -> None:
    if number < MIN_UNITS_FOR_CRITERION:
        raise ValueError(
            f"only {number} {units}; the criterion needs at least {MIN_UNITS_FOR_CRITERION} to be "
            f"checked"
        )


def _instruments(estimate: FloatArray, features: ArrayLike | None) -> dict[str, FloatArray]:
    columns = {"mean": np.ones_like(estimate), "q_z": _standardized(estimate)}
    if features is None:
        return columns
    table = features
    if not isinstance(table, pd.DataFrame):
        numbers = as_numbers(features, "features")
        if numbers.ndim not in (1, 2):
            raise ValueError(f"features must have one row a run, got shape {numbers.shape}")
        table = pd.DataFrame(numbers)
    if len(table) != len(estimate):
        raise ValueError(f"features has {len(table)} rows for {len(estimate)} runs")
    for name in table:
        label = name if isinstance(name, str) else f"feature {name}"
        if label in (*columns, "score", "all"):
            raise ValueError(f"{label!r} is the name of a row of the result; rename the feature")
        columns[label] = _standardized(table[name].to_numpy(dtype=float))
    return columns


def _standardized(x: FloatArray) -> FloatArray:
    spread = np.nanstd(x)
    if not spread > ROUNDING * np.nanmax(abs(x)):
        return np.zeros_like(x)
    return (x - np.nanmean(x)) / spread


def _score_test(
    outcome: FloatArray,
    q_z: FloatArray,
    instruments: pd.DataFrame,
    joint: list[int],
    starts: IntArray,
    n_resamples: int,
    rng: np.random.RandomState,
) -> pd.DataFrame:
    """Hold sums of residuals times instruments against those of outcomes with the chances q_z.

    Returns mean, std_error, z and pvalue of each column, and the p-value of those in `joint`;
    `starts` are the first runs of clusters.
    """
    residual = outcome - q_z
    spread = np.sqrt(q_z * (1 - q_z))
    variance = spread @ spread
    n = len(outcome)
    if not (residual.any() and variance > 0):
        raise ValueError(
            f"q_z is 0, 1 or the outcome itself for each of the {n} held-out runs, so no "
            f"residual could differ from 0; the criterion needs estimates in between"
        )
    n_branches = 1
    if not np.isin(outcome, (0, 1)).all():
        n_branches = int(np.clip(np.rint(variance / (residual @ residual)), 2, _MOST_BRANCHES))
    moments = instruments.to_numpy()
    weighted = moments * spread[:, None]
    sums = np.add.reduceat(weighted, starts)
    independent = weighted.T @ weighted
    between_runs = sums.T @ sums - independent
    # twice the sum over pairs of runs of a cluster
    of_pairs = (np.add.reduceat(spread, starts) ** 2).sum() - variance

    def statistics(residual: FloatArray) -> FloatPair:
        """Return standard errors of the sums, and abs(z) of each with the joint statistic.

        Of residuals of shape (n_draws, n_runs). They tell how much less than single outcomes shares
        vary, and how alike the runs of a cluster are.
        """
        squares = (residual**2).sum(axis=1)
        dispersion = np.ones(len(residual))
        if n_branches > 1:
            dispersion = squares / variance
        products = (np.add.reduceat(residual, starts, axis=1) ** 2).sum(axis=1) - squares
        alike = products / np.maximum(dispersion * of_pairs, _NOTHING)
        alike = np.clip(alike, 0, _MOST_ALIKE)[:, None, None]
        covariance = dispersion[:, None, None] * (independent + alike * between_runs)
        std_error = np.sqrt(np.diagonal(covariance, axis1=1, axis2=2))
        scale = np.where(std_error > 0, std_error, np.inf)
        z = residual @ moments / scale
        correlation = covariance / (scale[:, :, None] * scale[:, None, :])
        inverse = np.linalg.pinv(correlation[:, joint][:, :, joint], rcond=1e-8, hermitian=True)
        form = np.einsum("ij,ijk,ik->i", z[:, joint], inverse, z[:, joint])
        return std_error, np.column_stack([abs(z), form])

    def draws(sizes: IntArray) -> Iterator[FloatArray]:
        """Yield residuals of simulated outcomes, in blocks; `sizes` count runs that end alike."""
        block = max(1, _MOST_NUMBERS // n)
        for start in range(0, n_resamples, block):
            size = min(block, n_resamples - start)
            drawn = np.tile(-q_z, (size, 1))
            for _ in range(n_branches):
                uniform = np.repeat(rng.random_sample((size, len(sizes))), sizes, axis=1)
                drawn += (uniform < q_z) / n_branches
            yield drawn

    std_error, observed = statistics(residual[None])
    n_larger = np.zeros(observed.shape[1])
    ways = [np.ones(n, int)]
    if len(starts) < n:
        ways.append(np.diff(starts, append=n))
    for sizes in ways:
        values = np.concatenate([statistics(drawn)[1] for drawn in draws(sizes)])
        n_larger = np.maximum(n_larger, (values >= observed * (1 - SUM_ROUNDING)).sum(axis=0))
    mean = residual @ moments / n
    error = std_error[0] / n
    varies = error > 0
    z = np.divide(mean, error, out=np.full_like(mean, np.nan), where=varies)
    tested = np.append(varies, varies[joint].any())
    pvalue = np.where(tested, (1 + n_larger) / (1 + n_resamples), np.nan)
    columns = {"mean": mean, "std_error": error, "z": z, "pvalue": pvalue[:-1]}
    table = pd.DataFrame(columns, index=list(instruments))
    table.loc["all"] = [np.nan, np.nan, np.nan, pvalue[-1]]
    return table
