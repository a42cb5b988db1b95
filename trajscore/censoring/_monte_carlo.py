"""Continuation-success probabilities from runs that were resumed where they had been stopped."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy.stats import beta
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from trajscore.censoring._shares import forecasts_of
from trajscore.core.checks import check_trajectories
from trajscore.core.outcomes import CENSORED
from trajscore.core.run_sums import RunSums, contrast_sums, run_sums
from trajscore.core.type_aliases import AnyArray, FloatArray, IntArray
from trajscore.core.values import (
    as_count,
    as_fraction,
    as_numbers,
    is_iterable,
    refuse_first,
    undefined_is_nan,
)
from trajscore.core.weights import Horizon, Weights, as_step_weights
from trajscore.inference import paired_bootstrap

Branches = Sequence[ArrayLike | None] | AnyArray


class MonteCarloContinuation(BaseEstimator):
    """Estimate q_Z by the share of successes among continuations of a stopped run.

    Parameters
    ----------
    min_branches : int, default=5
        Runs with fewer valid continuations get no estimate (NaN) and are counted.
    confidence_level : float, default=0.95
        Level of the interval of each q_Z.

    Attributes
    ----------
    q_z_ : ndarray of shape (n_runs,)
        Estimates; NaN for runs without enough valid continuations. The censored score with them
        is the mean score over the continuations.
    low_, high_ : ndarray of shape (n_runs,)
        Equal-tailed Beta intervals, of Jeffreys' prior; 0 and 1 are kept where all continuations
        failed or succeeded.
    n_valid_, n_unresolved_ : ndarray of int of shape (n_runs,)
        Continuations of each run that count, and those that came to no outcome.
    audited_ : ndarray of bool of shape (n_runs,)
        Runs that have an estimate.
    ids_ : ndarray of shape (n_runs,)
        Identifiers of the runs.

    See Also
    --------
    ContinuationModel : With ``branches=``, for when only some stopped runs can be resumed.

    References
    ----------
    Raghu et al. (2026), Proper Scoring Rules for Agentic Uncertainty Quantification, Appendix H;
    Brown, Cai and DasGupta (2001), Interval Estimation for a Binomial Proportion.

    Examples
    --------
    >>> X, branches = [[0.4, 0.3], [0.7, 0.8]], [[0, 0, 1, 0, -1], [1, 1, 1, 0, 1]]
    >>> audit = MonteCarloContinuation(min_branches=4).fit(X, branches)
    >>> audit.q_z_, audit.low_.round(2), audit.high_.round(2)
    (array([0.25, 0.8 ]), array([0.03, 0.37]), array([0.72, 0.98]))
    """

    def __init__(
        self,
        min_branches: int = 5,
        confidence_level: float = 0.95,
    ) -> None:
        self.min_branches = min_branches
        self.confidence_level = confidence_level

    def fit(self, X: Any, branches: Branches) -> Self:
        """Count successes among the continuations of each run.

        Parameters
        ----------
        X : TrajectoryArray or array-like of shape (n_runs, T_max)
            The runs; only their identifiers are read.
        branches : sequence of n_runs array-likes, or array of shape (n_runs, n_branches)
            Outcomes of continuations from the last step of each run: 1, 0, or -1 where the
            continuation came to none; None or an empty list for a run that was not resumed. NaN
            is a continuation that was not made in an array or DataFrame, and one that came to no
            outcome in a list. Entries are those of the runs by position; an index is not read.

        Returns
        -------
        MonteCarloContinuation
            The fitted estimator.

        Raises
        ------
        ValueError
            If an outcome is not 1, 0 or -1, or no run has enough valid continuations.
        """
        as_count(self.min_branches, "min_branches")
        as_fraction(self.confidence_level, "confidence_level")
        runs = check_trajectories(X, allow_missing=True)
        row, outcome = _flatten_branches(branches, len(runs))
        unresolved = outcome == CENSORED
        self.n_unresolved_ = np.bincount(row[unresolved], minlength=len(runs))
        row = row[~unresolved]
        outcome = outcome[~unresolved]
        self.n_valid_ = np.bincount(row, minlength=len(runs))
        self.audited_ = self.n_valid_ >= self.min_branches
        if not self.audited_.any():
            raise ValueError(
                f"no run has {self.min_branches} valid continuations (the most is "
                f"{self.n_valid_.max(initial=0)}); make more of them, or lower min_branches"
            )
        successes = np.bincount(row, outcome, minlength=len(runs)).astype(float)
        with undefined_is_nan():
            share = successes / self.n_valid_
        self.q_z_ = np.where(self.audited_, share, np.nan)
        tail = (1 - self.confidence_level) / 2
        failures = self.n_valid_ - successes
        jeffreys = beta(successes + 0.5, failures + 0.5)
        low = np.where(successes == 0, 0.0, jeffreys.ppf(tail))
        high = np.where(failures == 0, 1.0, jeffreys.ppf(1 - tail))
        self.low_ = np.where(self.audited_, low, np.nan)
        self.high_ = np.where(self.audited_, high, np.nan)
        self.ids_ = runs.ids
        return self

    def predict(self, X: Any) -> FloatArray:
        """Look up the estimates of runs by their identifiers; NaN for runs that have none."""
        check_is_fitted(self)
        runs = check_trajectories(X, allow_missing=True)
        estimates = pd.Series(self.q_z_, index=self.ids_)
        return estimates.reindex(runs.ids).to_numpy()

    def summary(
        self,
        traces: Any = None,
        *,
        score: Any = "log",
        weights: Weights = "early",
        horizon: Horizon = None,
        n_resamples: int = 1000,
        random_state: Any = 0,
    ) -> pd.DataFrame:
        """Describe the estimates, and what they make of a score, with bootstrap intervals.

        Parameters
        ----------
        traces : TrajectoryArray or array-like of shape (n_runs, T_max), optional
            Forecasts of the runs given to `fit`, found by their identifiers: adds the simple score
            of the audited runs (q_Z = 0), the exact one (q_Z as estimated) and their difference.
        score, weights, horizon : score family and step weights
            As in `trajscore.metrics.tps_score`.
        n_resamples : int, default=1000
            Bootstrap replicates over runs.
        random_state : int, RandomState instance or None, default=0
            Seed.

        Returns
        -------
        DataFrame
            value, low and high of each figure; the intervals are those of means over runs.

        Examples
        --------
        >>> X, branches = [[0.4, 0.3], [0.7, 0.8]], [[0, 0, 0, 0, -1], [1, 1, 1, 0, 1]]
        >>> audit = MonteCarloContinuation(min_branches=4).fit(X, branches)
        >>> audit.summary(X, score="brier")["value"].round(3)
        runs resumed                   2.000
        runs retained                  2.000
        valid branches per run         4.500
        unresolved branches per run    0.500
        mean q_Z                       0.400
        median q_Z                     0.400
        share q_Z = 0                  0.500
        share q_Z > 0.5                0.500
        simple score                  -0.342
        exact score                   -0.148
        exact - simple                 0.193
        Name: value, dtype: float64
        """
        check_is_fitted(self)
        rows = np.flatnonzero(self.audited_)
        counts = {
            "runs resumed": float(((self.n_valid_ + self.n_unresolved_) > 0).sum()),
            "runs retained": float(len(rows)),
            "valid branches per run": float(self.n_valid_[rows].mean()),
            "unresolved branches per run": float(self.n_unresolved_[rows].mean()),
        }
        q = self.q_z_[rows]
        if traces is not None:
            forecasts = forecasts_of(self.ids_, traces)[rows]
            how = as_step_weights(weights, horizon)
            simple = run_sums(np.zeros_like(q), forecasts, score, how)
            contrast = contrast_sums(forecasts, score, how).total

        def figures(q: FloatArray) -> pd.DataFrame:
            samples = {"mean q_Z": q, "share q_Z = 0": q == 0, "share q_Z > 0.5": q > 0.5}
            if traces is not None:
                shift = RunSums(q * contrast, simple.divisor)
                exact = RunSums(simple.total + shift.total, simple.divisor)
                named = {"simple score": simple, "exact score": exact, "exact - simple": shift}
                samples |= {name: sums.samples() for name, sums in named.items()}
            return pd.DataFrame(samples).astype(float)

        values = figures(q)
        described = counts | {"mean q_Z": q.mean(), "median q_Z": np.median(q)}
        # of a dict of dicts, older versions of pandas sort the names
        table = pd.Series(described | values.mean().to_dict()).to_frame("value")
        table[["low", "high"]] = np.nan
        if len(q) > 1:  # one run says nothing of the spread
            boot = paired_bootstrap(
                values,
                n_resamples=n_resamples,
                random_state=random_state,
                other=figures((q < 0.5).astype(float)),
            )
            table[["low", "high"]] = boot[["low", "high"]]
        return table


def _flatten_branches(branches: Any, n_runs: int) -> tuple[IntArray, FloatArray]:
    """Return the row of the run, ascending, and the outcome of every continuation."""
    if isinstance(branches, Mapping) or not is_iterable(branches):
        raise ValueError(
            f"branches must be a sequence with the outcomes of each run, in the order of the runs, "
            f"got {branches!r}"
        )
    if isinstance(branches, pd.DataFrame):
        branches = as_numbers(branches, "branches")
    entries = list(branches)  # by position, whatever the index
    if len(entries) != n_runs:
        raise ValueError(
            f"branches must have {n_runs} entries, one for each run (None if not resumed), got "
            f"{len(entries)}"
        )
    resumed = [k for k, entry in enumerate(entries) if entry is not None]
    lists = [as_numbers(entries[k], f"run {k}: outcomes of continuations").ravel() for k in resumed]
    row = np.repeat(np.array(resumed, dtype=np.int64), [len(entry) for entry in lists])
    outcome = np.concatenate([*lists, np.empty(0)])
    if isinstance(branches, np.ndarray):  # NaN fills up what has no continuation
        there = ~np.isnan(outcome)
        row = row[there]
        outcome = outcome[there]
    outcome = np.where(np.isnan(outcome), CENSORED, outcome)
    refuse_first(
        ~np.isin(outcome, (CENSORED, 0, 1)),
        lambda k: (
            f"run {row[k]}: a continuation has outcome {outcome[k]:g}; use 1 for success, 0 for "
            f"failure and -1 where it came to none"
        ),
    )
    return row, outcome
