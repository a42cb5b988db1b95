"""What a rule does on runs that it was not fitted on, as a mean over random splits."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from numpy.typing import ArrayLike
from scipy.stats import norm
from sklearn.base import clone
from sklearn.utils import check_random_state

from trajscore.calibration.forecaster import fit_arguments
from trajscore.core.outcomes import CENSORED
from trajscore.core.sample import Sample, check_sample
from trajscore.core.values import as_count, as_fraction, check_jobs
from trajscore.monitoring._stopping_rule import StoppingRule, check_cost

RATES = (
    *("false_alarm_rate", "power", "power_before_end", "power_longer"),
    *("mean_stopping_step", "steps_saved", "steps_saved_overall"),
    *("cost_saved", "cost_saved_overall"),
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
    observed = np.asarray(sample.y != CENSORED)
    if not observed.any():
        raise ValueError(
            f"none of the {len(sample)} runs has an observed outcome; give runs that have one"
        )
    if sample.groups is not None and not fit_arguments(rule, {"groups": sample.groups}):
        warnings.warn(
            f"{type(rule).__name__}.fit takes no groups: it counts runs of one group as "
            f"independent, so a guarantee that it gives may not hold. Take a rule that does, such "
            f"as DensityRatioEProcess",
            UserWarning,
            stacklevel=2,
        )
    sample = sample.take(observed).in_id_order()
    seeds = check_random_state(random_state).randint(2**31, size=n_splits)
    check_jobs(n_jobs)
    tables = Parallel(n_jobs=n_jobs)(
        delayed(_one_split)(rule, sample, known_share, seed) for seed in seeds.tolist()
    )
    return _means(pd.concat(tables, keys=range(n_splits), names=["split"]))


def _one_split(rule: StoppingRule, sample: Sample, known_share: float, seed: int) -> pd.DataFrame:
    """Fit on some runs, or groups, and report on the others."""
    units = np.arange(len(sample)) if sample.groups is None else sample.groups
    order = np.random.default_rng(seed).permutation(np.unique(units))
    is_known = np.isin(units, order[: int(known_share * len(order))])
    known, new = sample.take(is_known), sample.take(~is_known)
    fit_params = {} if known.groups is None else fit_arguments(rule, {"groups": known.groups})
    with warnings.catch_warnings():  # what these warnings say shows in the table
        warnings.filterwarnings("ignore", message=".*no run will be flagged")
        warnings.filterwarnings("ignore", message="The forecasts of all .* are the same")
        warnings.filterwarnings("ignore", message=".*longer than the longest run in fitting")
        warnings.filterwarnings("ignore", message="score .* is out of range|Line search of Newton")
        fitted = clone(rule).fit(known.X, known.y, **fit_params)
        table = fitted.report(new.X, new.y, cost=new.traces.get(_COST))
    columns = [name for name in (*RATES, "n_success", "n_failure") if name in table]
    too_few = np.isinf(table["threshold"]).astype(float)
    return table[columns].assign(n_known=len(known), too_few=too_few)


def _means(tables: pd.DataFrame) -> pd.DataFrame:
    """Mean over splits of each column, of rates with a 95% interval."""
    by_alpha = tables.groupby(level="alpha", sort=False)
    mean, error = by_alpha.mean(), by_alpha.sem()
    half = norm.ppf(0.975) * error
    columns = {}
    for name in mean:
        columns[name] = mean[name]
        if name in RATES:
            columns[f"{name}_low"] = mean[name] - half[name]
            columns[f"{name}_high"] = mean[name] + half[name]
    return pd.DataFrame(columns)
