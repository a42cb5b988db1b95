"""What a rule does on runs that it was not fitted on: over random splits, and what it saves."""

import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from numpy.typing import ArrayLike
from scipy.stats import norm
from sklearn.base import clone
from sklearn.metrics import auc
from sklearn.utils import check_random_state

from trajscore.calibration.forecaster import fit_arguments
from trajscore.core.checks import Sample, check_sample
from trajscore.core.outcomes import CENSORED
from trajscore.core.values import as_count, as_fraction, check_jobs, is_number
from trajscore.core.within_runs import (
    first_step_above,
    last_cells,
    running_max,
    running_sum,
)
from trajscore.monitoring._stopping_rule import (
    StoppingRule,
    check_cost,
    rate_with_interval,
    spent_until,
)

RATES = (
    "false_alarm_rate", "power", "power_before_end", "power_longer", "mean_stopping_step",
    "steps_saved", "steps_saved_overall", "cost_saved", "cost_saved_overall",
)  # fmt: skip
# warnings whose cause the table of `split_report` shows
_SHOWN = (
    ".*no run will be flagged",
    "The forecasts of all .* are the same",
    ".*longer than the longest run in fitting",
    "score .* is out of range",
    "Line search of Newton",
)
_COST = "cost"


def split_report(
    rule: StoppingRule,
    X: Any,
    y: ArrayLike,
    *,
    known_share: float = 0.8,
    n_splits: int = 20,
    groups: ArrayLike | None = None,
    cost: Any = None,
    random_state: Any = 0,
    n_jobs: int | None = None,
) -> pd.DataFrame:
    """Fit a rule on a share of the runs and judge it on the others, over random splits.

    Parameters
    ----------
    rule : StoppingRule
        Fitted or not; it is fitted again for each split.
    X : TrajectoryArray or array-like of shape (n_runs, T_max)
        Scores.
    y : array-like of shape (n_runs,)
        Outcomes: 1 success, 0 failure; runs with -1 are left out.
    known_share : float, default=0.8
        Share of the runs that the rule is fitted on.
    n_splits : int, default=20
        Number of splits.
    groups : array-like of shape (n_runs,), optional
        Runs of one group (trials of one task) are known together; they are passed to the rule if
        its fit takes them, with a warning if it does not.
    cost : TrajectoryArray or array-like of shape (n_runs, T_max), optional
        Cost of each step, for example in tokens, for the same runs in the same order.
    random_state : int, RandomState instance or None, default=0
        Draws the splits.
    n_jobs : int, optional
        Splits are judged in parallel; the result does not depend on it.

    Returns
    -------
    DataFrame indexed by alpha
        The rates of `StoppingRule.report` with the ends of their 95% intervals, which are of the
        mean over such splits of these runs, not of other runs; n_known, the runs that the rule is
        fitted on, and n_success and n_failure, the runs that it is judged on, in the mean over
        splits; too_few, the share of splits in which too few runs are held out to set a threshold,
        so that no run is flagged.

    Raises
    ------
    ValueError
        If `rule` is none or cannot be fitted on a split, `known_share` or `n_splits` cannot be
        used, no outcome is observed or one is a grade, or costs are of other runs or negative.

    See Also
    --------
    StoppingRule.report : Of a fitted rule, on runs that are new to it.

    Examples
    --------
    >>> from trajscore import DensityRatioEProcess
    >>> from trajscore.datasets import make_trajectories
    >>> from trajscore.monitoring import split_report
    >>> X, y = make_trajectories(1000, lengths=(1, 6), random_state=0, return_X_y=True)
    >>> table = split_report(DensityRatioEProcess(alpha=0.1), X, y, n_splits=4)
    >>> table[["false_alarm_rate", "power", "power_before_end"]].round(2).to_dict("list")
    {'false_alarm_rate': [0.13], 'power': [0.62], 'power_before_end': [0.37]}
    """
    if not isinstance(rule, StoppingRule):
        raise ValueError(f"rule must be a stopping rule, got {rule!r}")
    as_fraction(known_share, "known_share")
    n_splits = as_count(n_splits, "n_splits")
    sample = check_sample(X, y, groups=groups, allow_soft=False)
    if cost is not None:  # split with the runs
        sample = replace(sample, traces={**sample.traces, _COST: check_cost(cost, sample.X)})
    observed = sample.y != CENSORED
    if not observed.any():
        raise ValueError(
            f"none of the {len(sample)} runs has an observed outcome; give runs that have one"
        )
    if sample.groups is not None and not fit_arguments(rule, {"groups": sample.groups}):
        warnings.warn(
            f"{type(rule).__name__}.fit takes no groups: it counts runs of one group as "
            f"independent, so a guarantee that it gives may not hold. Take a rule that does, such "
            f"as DensityRatioEProcess",
            stacklevel=2,
        )
    sample = sample.take(observed).in_id_order()
    seeds = check_random_state(random_state).randint(2**31, size=n_splits)
    check_jobs(n_jobs)
    tables = Parallel(n_jobs=n_jobs)(
        delayed(_report_of_split)(rule, sample, known_share, seed) for seed in seeds.tolist()
    )
    by_alpha = pd.concat(tables).groupby(level="alpha", sort=False)
    mean = by_alpha.mean()
    half = norm.ppf(0.975) * by_alpha.sem()
    columns = {}
    for name in mean:
        columns[name] = mean[name]
        if name in RATES:
            columns[f"{name}_low"] = mean[name] - half[name]
            columns[f"{name}_high"] = mean[name] + half[name]
    return pd.DataFrame(columns)


def _report_of_split(
    rule: StoppingRule, sample: Sample, known_share: float, seed: int
) -> pd.DataFrame:
    """Fit on some runs, or groups, and report on the others."""
    units = sample.groups
    if units is None:
        units = np.arange(len(sample))
    order = np.random.default_rng(seed).permutation(np.unique(units))
    is_training = np.isin(units, order[: int(known_share * len(order))])
    train = sample.take(is_training)
    test = sample.take(~is_training)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="|".join(_SHOWN))
        fitted = clone(rule).fit(train.X, train.y, **fit_arguments(rule, {"groups": train.groups}))
        table = fitted.report(test.X, test.y, cost=test.traces.get(_COST))
    too_few = np.isinf(table["threshold"]).astype(float)
    rates = table.filter(items=[*RATES, "n_success", "n_failure"])
    return rates.assign(n_known=len(train), too_few=too_few)


@dataclass(frozen=True, eq=False)
class TokenSavings:
    """Accuracy kept against cost spent, as a stopping rule's threshold moves.

    `curve` has threshold (a limit on the rule's statistic: log M for a density ratio, minus the
    score for a verifier); cost_share, the cost spent as a share of that of all runs to their ends;
    accuracy, the share of runs that succeed and are not flagged, and accuracy_share, the same as a
    share of the accuracy without flags. The first row flags no run, the last one all runs at their
    first step; a run is flagged where its statistic exceeds the threshold, strictly. `at_alpha` is
    the same at the fitted levels, with the threshold in the rule's own units, and false_alarm_rate
    with its 95% Clopper-Pearson interval.
    """

    curve: pd.DataFrame
    at_alpha: pd.DataFrame
    total_cost: float  # of all runs to their ends
    accuracy: float  # mean outcome without flags
    n_runs: int
    n_dropped: int  # runs left out, as their outcome was not observed

    @property
    def area(self) -> float:
        """Mean accuracy_share over the cost shares between all first steps and all steps.

        Between thresholds the curve is joined by straight lines, which a random choice between
        the two attains. 0.5 is what a random share of runs flagged at their first step comes to;
        NaN if no run costs anything after its first step.
        """
        cost = self.curve["cost_share"]
        span = np.ptp(cost)
        if not span > 0:
            return float("nan")
        return float(auc(cost, self.curve["accuracy_share"]) / span)

    def point(self, accuracy_share: float = 0.9) -> pd.Series:
        """Return the cheapest row of `curve` that keeps a share of the accuracy without flags."""
        if not is_number(accuracy_share) or not 0 <= accuracy_share <= 1:
            raise ValueError(f"accuracy_share must lie in [0, 1], got {accuracy_share!r}")
        enough = self.curve[self.curve["accuracy_share"] >= accuracy_share - 1e-12]
        return enough.iloc[-1]  # cost falls from row to row

    def __repr__(self) -> str:
        return f"TokenSavings(area={self.area:.3f}, n_runs={self.n_runs})"


def token_savings(process: StoppingRule, X: Any, y: ArrayLike, *, cost: Any = None) -> TokenSavings:
    """Weigh the cost that flags save against the accuracy that they lose.

    A flagged run ends after the step that was flagged and counts as a failure.

    Parameters
    ----------
    process : StoppingRule
        Fitted; `DensityRatioEProcess` or any baseline.
    X : TrajectoryArray or array-like of shape (n_runs, T_max)
        Scores of runs that were not used in fitting.
    y : array-like of shape (n_runs,)
        Outcomes: 1 success, 0 failure, or a grade; runs with -1 are ignored.
    cost : TrajectoryArray or array-like of shape (n_runs, T_max), optional
        Cost of each step, for example in tokens, for the same runs in the same order. Default: 1
        a step.

    Returns
    -------
    TokenSavings
        The curve, its area, and what the fitted levels come to.

    Raises
    ------
    ValueError
        If costs are of other runs, negative or all zero, no run succeeded, or the process flags
        successes, none of which is lost: `StoppingRule.report` says what they save.

    See Also
    --------
    trajscore.plotting.SavingsDisplay : Draws it.

    References
    ----------
    Sadhuka et al. (2025), E-valuator, arXiv:2512.03109, section 4.3.

    Examples
    --------
    >>> from trajscore import DensityRatioEProcess
    >>> from trajscore.datasets import make_trajectories
    >>> from trajscore.monitoring import token_savings
    >>> X, y = make_trajectories(2000, lengths=6, random_state=0, return_X_y=True)
    >>> process = DensityRatioEProcess(alpha=0.1).fit(X[:1000], y[:1000])
    >>> savings = token_savings(process, X[1000:], y[1000:])
    >>> savings
    TokenSavings(area=0.519, n_runs=1000)
    >>> print(f"{savings.point(0.9).cost_share:.2f}")
    0.89
    """
    if not isinstance(process, StoppingRule):
        raise ValueError(f"process must be a fitted stopping rule, got {process!r}")
    if not process._spared:
        raise ValueError(
            "flagged successes are not lost; process.report(X, y, cost=cost) says what they save"
        )
    traces, labels, costs, n_dropped = process._observed(X, y, cost, allow_soft=True)
    if not labels.any():
        raise ValueError("no run succeeded, so the share of accuracy kept is undefined")
    statistic = process._statistic(traces)
    spent = running_sum(traces, costs.cells)
    last = last_cells(traces)
    total = float(spent[last].sum())
    if not total > 0:
        raise ValueError(
            "all costs are zero, so nothing can be saved; pass cost=, that of each step"
        )

    def shares(threshold: Any, cost: Any, accepted: Any) -> dict[str, Any]:
        """Columns of thresholds, from the cost that each leaves and the successes it keeps."""
        return {
            "threshold": threshold,
            "cost_share": np.maximum(cost / total, 0.0),
            "accuracy": accepted / len(labels),
            "accuracy_share": accepted / labels.sum(),
        }

    # From none to all runs flagged: a threshold below the largest statistic of a run up to a step
    # spares the run the step after it; one below that of the whole run takes its outcome.
    largest = running_max(traces, statistic)
    saved = np.diff(spent, append=0.0)
    saved[last] = 0.0
    lost = np.zeros(len(saved))
    lost[last] = labels
    order = np.lexsort((lost, saved, -largest))  # ties too in an order that rows cannot change
    value = largest[order]
    ends = np.append(value[1:] != value[:-1], True)
    left = total - np.append(0.0, np.cumsum(saved[order])[ends])
    accepted = labels.sum() - np.append(0.0, np.cumsum(lost[order])[ends])
    accepted[-1] = 0.0
    curve = shares(np.append(value[ends], -np.inf), left, accepted)
    at_alpha = []
    for alpha, threshold in process.thresholds_.items():
        stops = first_step_above(traces, statistic, process._limits(traces, alpha))
        until, _ = spent_until(traces, spent, stops)
        row = shares(threshold, until.sum(), labels[stops == 0].sum())
        at_alpha.append(row | rate_with_interval("false_alarm_rate", stops[labels == 1] > 0))
    return TokenSavings(
        curve=pd.DataFrame(curve),
        at_alpha=pd.DataFrame(at_alpha, process.thresholds_.index),
        total_cost=total,
        accuracy=float(labels.mean()),
        n_runs=len(labels),
        n_dropped=n_dropped,
    )
