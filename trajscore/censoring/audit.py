"""Why runs ended, which of them a censored score may use, and a test of administrative stops."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import chi2, norm

from trajscore.censoring._hazard import as_mask, refuse_observed, steps_at_risk
from trajscore.censoring._monte_carlo import Features, cell_features, forecasts_of
from trajscore.core.array import TrajectoryArray, as_container
from trajscore.core.checks import check_groups, check_sample, check_traces
from trajscore.core.outcomes import CENSORED, as_labels, check_outcomes
from trajscore.core.stops import (
    ADMINISTRATIVE,
    COMPLETE,
    INFORMATIVE,
    MECHANISMS,
    UNKNOWN,
    Rule,
    is_scored,
    normalize_reasons,
    recorded_stops,
    refuse_own_stops,
    settle_stops,
)
from trajscore.core.ties import ROUNDING
from trajscore.core.values import (
    AnyArray,
    ArrayLike,
    BoolArray,
    FloatArray,
    IntArray,
    as_fraction,
    check_choice,
    number_of,
)
from trajscore.core.weights import Horizon, Weights, as_step_weights, run_sums
from trajscore.core.within_runs import run_numbers, step_numbers
from trajscore.inference.intervals import any_units


@dataclass(frozen=True, eq=False)
class TerminationAudit:
    """How runs ended, and which of them theorems on censored scores cover."""

    table: pd.DataFrame
    reasons: pd.DataFrame
    mechanism: AnyArray
    y: AnyArray
    ids: AnyArray | None = None

    def scored(self, informative: str = "exclude") -> BoolArray:
        """Tell which runs enter a censored score.

        "exclude" keeps runs that were stopped informatively out, as the theorems ask;
        "administrative" counts them as if a budget had stopped them: a sensitivity analysis.
        Excluded runs, and those stopped for an unknown reason, are never scored.
        """
        check_choice(informative, "informative", ("exclude", "administrative"))
        taken_for_budget = (self.mechanism == INFORMATIVE) & (informative == "administrative")
        return is_scored(np.where(taken_for_budget, ADMINISTRATIVE, self.mechanism))

    def score(
        self,
        traces: Any,
        *,
        informative: str = "exclude",
        q_z: ArrayLike = 0.0,
        score: Any = "log",
        weights: Weights = "early",
        horizon: Horizon = None,
    ) -> float:
        """Censored Trajectory Proper Score of the runs that may be scored, as by
        `censored_tps_score`.

        `traces` are forecasts of all audited runs, found by their identifiers, or in the order of
        the runs where the audit knows none; `q_z` are in that order, too. `informative` is that of
        `scored`: "administrative" makes the sensitivity run of Appendix G.2.
        """
        if self.ids is None:
            X = check_traces(traces, len(self.y))
        else:
            X = forecasts_of(self.ids, traces, "the audit")
        scored = self.scored(informative)
        refuse_own_stops({"": X})
        if not scored.any():
            raise ValueError(
                f"none of the {len(X)} runs is complete or was stopped by a budget; there is "
                f"nothing that can be scored"
            )
        # q_z is not read for runs that are not scored
        labels = as_labels(np.where(scored, self.y, 0), censored="q_z", q_z=q_z)
        sums = run_sums(labels.value[scored], X[scored], score, as_step_weights(weights, horizon))
        return sums.mean(np.ones(len(sums.total)))


def termination_audit(
    X: Any,
    y: ArrayLike,
    stop_reason: ArrayLike | None = None,
    rule: Rule | None = None,
) -> TerminationAudit:
    """Count how runs ended, and tell which of them a censored score may use.

    Parameters
    ----------
    X : TrajectoryArray, DataFrame or None
        The runs, or their meta table with one row a run; stop reasons are read from the column
        "stop_reason" and lengths, if known, reported. What the log's reader took a reason to
        mean, the column "stop_kind", decides if neither `stop_reason` nor `rule` is given. None if
        `stop_reason` is given.
    y : array-like of shape (n_runs,)
        Outcomes: 1 success, 0 failure, -1 (or missing) not observed, or a grade.
    stop_reason : array-like of shape (n_runs,), optional
        Why each run ended.
    rule : mapping, str or callable, optional
        Which reasons are which mechanism, before the usual ones: such as
        ``{"quota": "administrative"}``, or a function from a reason, in lower case with "_".

    Returns
    -------
    TerminationAudit
        table: n_runs, complete, administrative, informative, excluded (an infrastructure error),
        unknown, n_scored = complete + administrative, and censoring_rate = administrative /
        n_scored. reasons, by stop reason: mechanism of its unobserved runs (the most frequent,
        where "stop_kind" has several), n_runs, n_observed (observed failures under a budget's
        name may be outcomes that a harness filled in), n_successes and mean_steps. mechanism: of
        each run. ``scored()`` tells which runs to score, ``score(traces)`` is their censored score,
        both also with ``informative="administrative"``.

    Raises
    ------
    ValueError
        If there are no stop reasons.

    Warns
    -----
    UserWarning
        If unobserved runs have stop reasons that the rule does not know; they are not scored.

    References
    ----------
    Raghu et al. (2026), Proper Scoring Rules for Agentic Uncertainty Quantification, Appendix G
    and Table 6.

    Examples
    --------
    >>> reasons = ["done", "done", "max_steps", "parse_error"]
    >>> audit = termination_audit(None, [1, 0, -1, -1], reasons)
    >>> audit.table[["n_runs", "complete", "administrative", "informative", "n_scored"]]
       n_runs  complete  administrative  informative  n_scored
    0       4         2               1            1         3
    >>> audit.scored().tolist(), audit.scored(informative="administrative").tolist()
    ([True, True, True, False], [True, True, True, True])
    >>> round(audit.score([[0.8], [0.3], [0.4], [0.1]], score="brier"), 4)
    -0.0967
    """
    outcomes = check_outcomes(y)
    meta, lengths, ids = _meta(X, len(outcomes))
    reasons, kinds = recorded_stops(meta, stop_reason, rule)
    if reasons is None:
        raise ValueError(
            "there are no stop reasons; pass stop_reason=, or keep a column 'stop_reason' in the "
            "meta of the container"
        )
    outcomes, mechanism, *_ = settle_stops(outcomes, reasons, kinds=kinds, rule=rule)
    names = normalize_reasons(reasons)
    unknown = names[mechanism == UNKNOWN]
    if len(unknown):
        unplaced = sorted(set(unknown))
        listed = ", ".join(repr(name) if name else "none was recorded" for name in unplaced)
        problem = "and without a stop reason; give one for each"
        if unplaced != [""]:
            problem = (
                f"that ended for reasons that the rule does not place ({listed}); name them "
                f"in rule, such as rule={{{unplaced[-1]!r}: 'administrative'}}"
            )
        n_runs = number_of(len(unknown), "run")
        warnings.warn(f"not scored: {n_runs} without an outcome {problem}", stacklevel=2)
    table = pd.DataFrame({name: [(mechanism == name).sum()] for name in MECHANISMS})
    table.insert(0, "n_runs", len(mechanism))
    table["n_scored"] = table[COMPLETE] + table[ADMINISTRATIVE]
    table["censoring_rate"] = table[ADMINISTRATIVE] / table["n_scored"].replace(0, np.nan)
    observed = outcomes != CENSORED
    runs = pd.DataFrame(
        {
            "reason": names,
            "mechanism": np.where(observed, "", mechanism.astype(str)),
            "observed": observed,
            "success": observed & (outcomes == 1),
            "steps": np.nan if lengths is None else lengths,
        }
    )
    by_reason = runs.groupby("reason", sort=True).agg(
        mechanism=("mechanism", lambda kinds: kinds[kinds != ""].mode().get(0, COMPLETE)),
        n_runs=("observed", "size"),
        n_observed=("observed", "sum"),
        n_successes=("success", "sum"),
        mean_steps=("steps", "mean"),
    )
    return TerminationAudit(
        table=table,
        reasons=by_reason.sort_values("n_runs", ascending=False, kind="stable"),
        mechanism=mechanism,
        y=outcomes,
        ids=ids,
    )


def _meta(X: Any, n_runs: int) -> tuple[pd.DataFrame, IntArray | None, AnyArray | None]:
    """Return what is known of the runs, their lengths and their identifiers."""
    meta = pd.DataFrame(index=range(n_runs))
    lengths = None
    ids = None
    if isinstance(X, pd.DataFrame):
        meta = X
        if "run" in X:
            ids = X["run"].to_numpy(dtype=object)
    elif X is not None:
        runs = as_container(X)
        meta = runs.meta
        lengths = runs.lengths
        ids = runs.ids
    if len(meta) != n_runs:
        raise ValueError(f"there are {n_runs} outcomes for {len(meta)} runs; give one for each")
    return meta, lengths, ids


@dataclass(frozen=True, eq=False)
class StopTest:
    """Whether the recorded history says who was stopped; see `administrative_stop_test`."""

    statistic: float
    df: int
    pvalue: float
    table: pd.DataFrame
    n_stops: int
    n_comparable_stops: int  # stopped at a step that some other run of the stratum outlived
    alpha: float

    def __str__(self) -> str:
        hidden = "dependence on what was not recorded cannot be seen"
        if np.isnan(self.pvalue):
            return (
                f"nothing to test: none of the {self.n_stops} stops left a like run going at the "
                f"same step with another history, as is so with one fixed budget; that stops are "
                f"administrative rests on how the runs were made; {hidden}"
            )
        if self.pvalue < self.alpha:
            z = self.table["z"]
            name = str(z.abs().idxmax())
            side = "large" if z[name] > 0 else "small"
            return (
                f"stops are not administrative: given the step, history tells who was stopped (p = "
                f"{self.pvalue:.2g}, most of all {side} values of {name!r}); use ipcw_tps_score or "
                f"doubly_robust_tps_score; {hidden}"
            )
        return (
            f"no sign against administrative stops (p = {self.pvalue:.2g}, "
            f"{self.n_comparable_stops} stops that others outlived); {hidden}"
        )


def administrative_stop_test(
    X: Any,
    y: ArrayLike,
    *,
    stopped: ArrayLike | None = None,
    features: Features = None,
    strata: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    alpha: float = 0.05,
) -> StopTest:
    """Test whether stops depend on anything but the number of steps taken.

    A budget fixed in advance stops every run that is still going at the same step. So at each
    step the stopped runs must look like a random draw from those still going: the history up to
    that step (channels, forecast) must not distinguish them.

    Parameters
    ----------
    X : TrajectoryArray or array-like of shape (n_runs, T_max[, n_channels])
        What is known of the runs, step by step.
    y : array-like of shape (n_runs,)
        Outcomes; -1 for runs that were not observed.
    stopped : array-like of bool of shape (n_runs,), optional
        The stops to test, such as ``audit.mechanism == "administrative"``. Default: all
        unobserved runs. Other unobserved runs leave the risk set where they end.
    features : callable, optional
        Maps the container to one row a step. Default: for each channel its latest value, its mean
        so far and its first value.
    strata : array-like of shape (n_runs,), optional
        Runs are compared only within these (data set, task, budget).
    groups : array-like of shape (n_runs,), optional
        Clusters of runs that are not independent, such as the trials of a task. Give them where
        budgets or signals differ from task to task: the test takes 20 runs each of 20 tasks for
        400 independent runs otherwise, and rejects too often.
    alpha : float, default=0.05
        Level at which the text of the result takes a side.

    Returns
    -------
    StopTest
        statistic, df and pvalue (NaN where the data cannot tell), table (z and p-value of each
        feature; z is positive where runs with large values were stopped more), n_stops,
        n_comparable_stops (those that some run of the stratum outlived), and as ``str(test)`` the
        result in a sentence.

    Raises
    ------
    ValueError
        If no run was stopped, or all runs are of one group.

    Warns
    -----
    UserWarning
        If there are so few groups that the test can hardly reject.

    Notes
    -----
    The statistic is the score test of a proportional-hazards model of stops, stratified by step,
    with the hypergeometric variance of tied stops. With `groups` the variance is that between
    groups, and the statistic cannot exceed their number, so that few groups cannot reject.

    *It can see* stops that depend on the recorded history: a monitor that stops runs that look
    bad, budgets of tokens or time that long or rambling runs exhaust sooner. These break
    Assumption 1 of the paper. If they depend on nothing else, Assumption 2 holds still, and
    `ipcw_tps_score` and `doubly_robust_tps_score` repair the score.

    *It cannot see* stops that depend on the outcome through what was not recorded, the breach of
    Assumption 2 proper: the outcome is missing just for these runs. Only resumed runs show it:
    `conditional_mean_test` compares their outcomes with q_Z. It also cannot see anything where one
    fixed budget stops every run that reaches it, as there is nobody left to compare with: then the
    p-value is NaN, the assumption rests on how the benchmark was run, and the text says so.

    References
    ----------
    Raghu et al. (2026), Proper Scoring Rules for Agentic Uncertainty Quantification,
    Assumptions 1 and 2; Cox (1972), Regression Models and Life-Tables.

    Examples
    --------
    A monitor stops one in three of the runs whose signal falls below 0.3:

    >>> import numpy as np
    >>> from trajscore.datasets import make_trajectories
    >>> runs = make_trajectories(400, lengths=6, random_state=0)
    >>> low = runs.data.padded()[:, :5] < 0.3
    >>> hit = low & (np.random.default_rng(0).random(low.shape) < 1 / 3)
    >>> stopped = hit.any(axis=1)
    >>> X = runs.data.truncate(np.where(stopped, hit.argmax(axis=1) + 1, 6))
    >>> bool(administrative_stop_test(X, np.where(stopped, -1, runs.target)).pvalue < 0.001)
    True

    A budget that all runs share leaves nothing to test:

    >>> runs = make_trajectories(400, budget=6, random_state=0)
    >>> administrative_stop_test(runs.data, runs.target).pvalue
    nan
    """
    alpha = as_fraction(alpha, "alpha")
    sample = check_sample(X, y, groups=groups)
    runs = sample.X
    stop = unobserved = sample.y == CENSORED
    if stopped is not None:
        stop = as_mask(stopped, len(runs))
    refuse_observed(stop, unobserved)
    if not stop.any():
        raise ValueError("no run was stopped; there is nothing to test")
    columns = cell_features(runs, features)
    names = [f"feature {k}" for k in range(columns.shape[1])]
    if features is None:  # the step number is constant among the runs that are compared
        columns = columns[:, 1:]
        parts = ("latest", "mean so far", "first")
        names = [f"{channel}, {part}" for channel in runs.channels or ("value",) for part in parts]
    stratum = np.zeros(len(runs), int)
    if strata is not None:
        stratum = check_groups(strata, len(runs), "strata")
    clusters = sample.groups
    score, variance, n_comparable = _score_and_variance(runs, stop, columns, stratum, clusters)
    spread = np.sqrt(np.diag(variance))
    scale = np.where(spread > 0, spread, 1.0)
    correlation = variance / np.outer(scale, scale)
    inverse = np.linalg.pinv(correlation, rcond=1e-8, hermitian=True)
    df = round(np.trace(inverse @ correlation))  # its rank: directions of no variance do not count
    statistic = float(score / scale @ inverse @ (score / scale)) if df else np.nan
    z = np.where(spread > ROUNDING, score / scale, np.nan)
    if clusters is not None and df:
        # if the scores of all groups are equal, the statistic is their number; else it is less
        n_groups = clusters.max() + 1
        needed = math.ceil(2 * float(chi2.isf(alpha, df)))
        if n_groups < needed:
            warnings.warn(
                f"there are only {n_groups} groups, so that this test can hardly reject: a large "
                f"p-value says nothing here. Give at least {needed} groups, or fewer features",
                stacklevel=2,
            )
    return StopTest(
        statistic=statistic,
        df=df,
        pvalue=float(chi2.sf(statistic, df)),
        table=pd.DataFrame({"z": z, "pvalue": 2 * norm.sf(abs(z))}, index=names),
        n_stops=int(stop.sum()),
        n_comparable_stops=n_comparable,
        alpha=alpha,
    )


def _score_and_variance(
    X: TrajectoryArray,
    stopped: BoolArray,
    columns: FloatArray,
    stratum: IntArray,
    clusters: IntArray | None,
) -> tuple[FloatArray, FloatArray, int]:
    """Return the sum over stops of features less their mean over the risk set, and its variance.

    A risk set is the runs of a stratum that could be stopped at a step. The variance is that
    between clusters, or without these hypergeometric. The last number counts comparable stops.
    """
    at_risk, event = steps_at_risk(X, stopped)
    cells = np.flatnonzero(at_risk)
    run = run_numbers(X)[cells]
    stop = event[cells].astype(float)
    spread = columns[cells].std(axis=0)
    x = columns[cells] / np.where(spread > 0, spread, 1.0)
    risk_set = pd.DataFrame(np.column_stack([x, stop])).groupby(
        [stratum[run], step_numbers(X)[cells]]
    )
    mean = risk_set.transform("mean").to_numpy()
    centered = x - mean[:, :-1]
    hazard = mean[:, -1]
    score = stop @ centered
    is_comparable = (hazard > 0) & (hazard < 1)  # somebody was stopped, and somebody was not
    n_comparable = int(stop[is_comparable].sum())
    if clusters is not None:
        units = any_units(clusters[run], len(cells))
        if units.n_units < 2:
            raise ValueError(
                "all runs that could be stopped are of one group; give two or more groups"
            )
        # what a cluster is held against has some of its own runs in it
        others = 1 - units.sizes / len(cells)
        sums = units.sums((stop - hazard)[:, None] * centered) / others[:, None]
        return score, sums.T @ sums, n_comparable
    n = risk_set[0].transform("size").to_numpy()
    of_stop = hazard * (1 - hazard) * n / np.maximum(n - 1, 1)  # 0 where nobody is comparable
    return score, (centered * of_stop[:, None]).T @ centered, n_comparable
