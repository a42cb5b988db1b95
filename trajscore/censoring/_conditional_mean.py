"""Whether estimated continuation probabilities have the right conditional mean."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy.stats import chi2, norm

from trajscore.core.checks import check_groups, check_trajectories
from trajscore.core.outcomes import CENSORED
from trajscore.core.run_sums import contrast_sums
from trajscore.core.ties import ROUNDING
from trajscore.core.type_aliases import BoolArray, FloatArray, IntArray
from trajscore.core.values import as_numbers, outside_unit
from trajscore.core.weights import Horizon, Weights, as_step_weights

# the normal approximation needs some independent units, runs or clusters
_AT_LEAST = 10


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

    Returns
    -------
    DataFrame
        For each moment: mean of residual times (standardised) feature, std_error, z and pvalue;
        in the last row, "all", the joint chi-squared test of all rows, without "q_z" where
        features are given (its mean and std_error are NaN). A row that does not vary over the
        runs, as that of a constant feature, has no z and no pvalue (NaN).

    Raises
    ------
    ValueError
        If an outcome or an estimate lies outside [0, 1], fewer than ten held-out runs, or clusters
        of them, are known, or outcome minus estimate is the same for all: the mean then has no
        standard error to be judged by.

    Notes
    -----
    A small p-value refutes the criterion. A large one says only that no bias was seen along
    these directions. For score differences of two predictors, subtract their "score" rows.

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
    >>> bool(conditional_mean_test(y, 0.8 * q).loc["all", "pvalue"] < 1e-6)
    True
    """
    observed, estimate = as_numbers(outcome, "outcome"), as_numbers(q_z, "q_z")
    if observed.shape != estimate.shape or observed.ndim != 1:
        raise ValueError(
            f"outcome and q_z must be one number a run each, got shapes {observed.shape} and "
            f"{estimate.shape}"
        )
    observed = np.where(observed == CENSORED, np.nan, observed)
    known = ~np.isnan(observed) & ~np.isnan(estimate)
    _check_shares(observed, known, "outcome")
    _check_shares(estimate, known, "q_z")
    clusters = None
    if groups is not None:
        clusters = pd.factorize(check_groups(groups, len(observed))[known], sort=True)[0]
    _check_number(int(known.sum()), "held-out runs have both an outcome and an estimate")
    if clusters is not None:
        _check_number(int(clusters.max()) + 1, "clusters (groups) of held-out runs are known")
    instruments = _instruments(estimate, features)
    if traces is not None:
        X = check_trajectories(traces, probabilities=True, single_channel=True)
        if len(X) != len(observed):
            raise ValueError(f"there are {len(X)} traces for {len(observed)} runs")
        slope = contrast_sums(X, score, as_step_weights(weights, horizon))
        instruments["score"] = slope.total / slope.divisor[known].mean()
    residual = (observed - estimate)[known]
    if np.ptp(residual) <= ROUNDING:
        raise ValueError(
            f"outcome minus q_z is {residual[0]:.3g} for each of the {len(residual)} held-out "
            f"runs, so its mean has no standard error; the criterion needs runs that differ"
        )
    moments = np.column_stack([column[known] * residual for column in instruments.values()])
    if np.isnan(moments).any():
        name = list(instruments)[int(np.argmax(np.isnan(moments).any(axis=0)))]
        raise ValueError(f"{name!r} is missing for a run with an outcome; drop the run or feature")
    # beside features, cross-fitted estimates add nothing but the noise between their folds, which
    # goes against the held-out residuals: the joint test would then reject what is right
    joint = [name for name in instruments if features is None or name != "q_z"]
    return _moment_table(moments, list(instruments), clusters, joint)


def _check_shares(values: FloatArray, known: BoolArray, name: str) -> None:
    bad = known & outside_unit(values)
    if bad.any():
        row = int(np.argmax(bad))
        hint = ", or -1 where it was not observed" if name == "outcome" else ""
        raise ValueError(f"run {row}: {name} is {values[row]:g}; give a number in [0, 1]{hint}")


def _check_number(number: int, units: str) -> None:
    if number < _AT_LEAST:
        raise ValueError(
            f"only {number} {units}; the criterion needs at least {_AT_LEAST} to be checked"
        )


def _instruments(estimate: FloatArray, features: ArrayLike | None) -> dict[str, FloatArray]:
    columns = {"mean": np.ones(len(estimate)), "q_z": _standardized(estimate)}
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
        columns[label] = _standardized(table[name].to_numpy(dtype=np.float64))
    return columns


def _standardized(x: FloatArray) -> FloatArray:
    spread = np.nanstd(x)
    if not spread > ROUNDING * np.nanmax(np.abs(x)):
        return np.zeros_like(x)
    return np.asarray((x - np.nanmean(x)) / spread)


def _moment_table(
    moments: FloatArray, names: list[str], groups: IntArray | None, joint: list[str]
) -> pd.DataFrame:
    mean = moments.mean(axis=0)
    centered = moments - mean
    if groups is not None:
        sums = np.zeros((groups.max() + 1, moments.shape[1]))
        np.add.at(sums, groups, centered)
        centered = sums
    covariance = centered.T @ centered / len(moments) ** 2
    std_error = np.sqrt(np.diag(covariance))
    varies = std_error > ROUNDING * np.abs(moments).max(axis=0)
    z = np.full(len(mean), np.nan)
    np.divide(mean, std_error, out=z, where=varies)
    table = pd.DataFrame(
        {"mean": mean, "std_error": std_error, "z": z, "pvalue": 2 * norm.sf(np.abs(z))},
        index=names,
    )
    tested = [names.index(name) for name in joint if varies[names.index(name)]]
    scale = np.where(varies, std_error, 1.0)
    correlation = covariance / np.outer(scale, scale)
    pvalue = np.nan
    if tested:
        form = quadratic_form((mean / scale)[tested], correlation[np.ix_(tested, tested)])
        pvalue = chi2.sf(*form)
    table.loc["all"] = [np.nan, np.nan, np.nan, pvalue]
    return table


def quadratic_form(x: FloatArray, covariance: FloatArray) -> tuple[float, int]:
    """Return x' C^- x and the rank of C, where directions of no variance do not count."""
    values, vectors = np.linalg.eigh(covariance)
    used = values > 1e-8 * max(values[-1], 1e-300)
    along = vectors[:, used].T @ x
    return float((along**2 / values[used]).sum()), int(used.sum())
