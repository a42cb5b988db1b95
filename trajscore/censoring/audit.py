"""Why the runs ended, and which of them a censored score may use."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from trajscore.censoring._monte_carlo import forecasts_of
from trajscore.core.array import TrajectoryArray
from trajscore.core.checks import check_traces, check_trajectories
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
from trajscore.core.type_aliases import AnyArray, BoolArray, IntArray
from trajscore.core.values import check_choice, number_of
from trajscore.core.weights import Horizon, Weights, as_step_weights, run_sums


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
        X = self._forecasts(traces)
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

    def _forecasts(self, traces: Any) -> TrajectoryArray:
        if self.ids is not None:
            return forecasts_of(self.ids, traces, "the audit")
        return check_traces(traces, len(self.y))


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
    _warn_unknown(mechanism, names)
    return TerminationAudit(
        table=_table(mechanism),
        reasons=_reason_table(mechanism, names, outcomes, lengths),
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
        runs = X if isinstance(X, TrajectoryArray) else check_trajectories(X)
        meta = runs.meta
        lengths = runs.lengths
        ids = runs.ids
    if len(meta) != n_runs:
        raise ValueError(f"there are {n_runs} outcomes for {len(meta)} runs; give one for each")
    return meta, lengths, ids


def _warn_unknown(mechanism: AnyArray, names: AnyArray) -> None:
    unknown = mechanism == UNKNOWN
    if not unknown.any():
        return
    reasons = sorted(set(names[unknown]))
    listed = ", ".join(repr(name) if name else "none was recorded" for name in reasons)
    problem = "and without a stop reason; give one for each"
    if reasons != [""]:
        problem = (
            f"that ended for reasons that the rule does not place ({listed}); name them "
            f"in rule, such as rule={{{reasons[-1]!r}: 'administrative'}}"
        )
    n_runs = number_of(int(unknown.sum()), "run")
    message = f"not scored: {n_runs} without an outcome {problem}"
    warnings.warn(message, stacklevel=3)


def _table(mechanism: AnyArray) -> pd.DataFrame:
    counts = pd.DataFrame({name: [int((mechanism == name).sum())] for name in MECHANISMS})
    counts.insert(0, "n_runs", len(mechanism))
    counts["n_scored"] = counts[COMPLETE] + counts[ADMINISTRATIVE]
    counts["censoring_rate"] = counts[ADMINISTRATIVE] / counts["n_scored"].replace(0, np.nan)
    return counts


def _reason_table(
    mechanism: AnyArray, names: AnyArray, y: AnyArray, lengths: IntArray | None
) -> pd.DataFrame:
    observed = y != CENSORED
    frame = pd.DataFrame(
        {
            "reason": names,
            "mechanism": np.where(observed, "", mechanism.astype(str)),
            "observed": observed,
            "success": observed & (y == 1),
            "steps": np.nan if lengths is None else lengths,
        }
    )
    table = frame.groupby("reason", sort=True).agg(
        mechanism=("mechanism", lambda kinds: kinds[kinds != ""].mode().get(0, COMPLETE)),
        n_runs=("observed", "size"),
        n_observed=("observed", "sum"),
        n_successes=("success", "sum"),
        mean_steps=("steps", "mean"),
    )
    return table.sort_values("n_runs", ascending=False, kind="stable")
