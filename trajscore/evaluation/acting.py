"""What acting on forecasts costs and saves: accept or review a run, or stop it early.

Also by a rule that is judged on runs that it was not fitted on.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from trajscore.core.array import TrajectoryArray
from trajscore.core.errors import CannotMeasureError
from trajscore.core.parallel import Work
from trajscore.core.policy import MATERIAL_SAVING, MIN_ACCEPTED_RUNS
from trajscore.core.ties import SUM_ROUNDING
from trajscore.core.values import FloatArray, as_count, as_fraction
from trajscore.core.weights import collapse
from trajscore.core.within_runs import run_numbers, running_max, step_numbers
from trajscore.evaluation.options import AS_GIVEN, MonitoringOptions, Note
from trajscore.evaluation.rows import Row, Rows

if TYPE_CHECKING:
    from trajscore.monitoring import StoppingRule

PRICE = 2.0
"""What a failing run that is let through costs, in reviews, until the reader says."""
LOST = 5.0
"""Good runs that may be stopped, of 100, until the reader says."""
_ENOUGH_THRESHOLDS = 15
_MOST_DIGITS = 4
_MOST_THRESHOLDS = 101


@dataclass(frozen=True)
class Accepting:
    """Thresholds on one number a run, with the runs that reach them; the first accepts all."""

    threshold: FloatArray
    accepted: FloatArray  # share of all runs
    failing: FloatArray  # share of all runs that are accepted and fail
    digits: int

    def cost(self, price: float) -> FloatArray:
        """Return the reviews a run of each threshold, and of reviewing every run, at the end."""
        return np.append(price * self.failing + 1 - self.accepted, 1.0)

    def cheapest(self, price: float) -> int:
        """Return the place of the cheapest: accept all, or none, unless a threshold pays."""
        cost = self.cost(price)
        end = 0
        if cost[0] > cost[-1] + SUM_ROUNDING:
            end = len(cost) - 1
        best = int(np.argmax(cost <= cost.min() + SUM_ROUNDING))  # of ties, the lowest
        if cost[best] < cost[end] - MATERIAL_SAVING - SUM_ROUNDING:
            return best
        return end


@dataclass(frozen=True)
class Stopping:
    """Thresholds on the forecast of a step, with the runs that fall below; the lowest first."""

    threshold: FloatArray
    good: FloatArray  # share of the good runs that are stopped
    bad: FloatArray  # share of the failing runs
    saved: dict[str, FloatArray]  # share of what all runs take: of steps, tokens, money
    digits: int

    @property
    def highest(self) -> int | None:
        """The place of the highest threshold that stops no more good runs than may be lost."""
        allowed = np.flatnonzero(self.good <= LOST / 100 + SUM_ROUNDING)
        return int(allowed[-1]) if len(allowed) else None


def thresholds_of(values: FloatArray) -> tuple[FloatArray, int]:
    """Return round numbers that part the values, ascending, and their digits."""
    for digits in range(2, _MOST_DIGITS + 1):
        scale = 10.0**digits
        marks = np.unique(np.ceil(values * scale - SUM_ROUNDING)) / scale
        if len(marks) >= _ENOUGH_THRESHOLDS or digits == _MOST_DIGITS:
            break
    if len(marks) > _MOST_THRESHOLDS:
        marks = marks[np.linspace(0, len(marks) - 1, _MOST_THRESHOLDS).astype(int)]
    return marks, digits


def accepting(number: FloatArray, labels: FloatArray) -> Accepting:
    """Return what accepting runs from thresholds lets through, of runs and their labels."""
    marks, digits = thresholds_of(number)
    order = np.argsort(number, kind="stable")
    n = len(number)
    failing = np.cumsum((1 - labels)[order][::-1])[::-1]  # from each run on
    first = np.searchsorted(number[order], marks - SUM_ROUNDING)
    # thresholds that few runs reach say little; one that all reach stands first
    used = (first > 0) & (n - first >= MIN_ACCEPTED_RUNS)
    first = np.append(0, first[used])
    lowest = np.floor(number.min() * 10.0**digits + SUM_ROUNDING) / 10.0**digits
    return Accepting(np.append(lowest, marks[used]), (n - first) / n, failing[first] / n, digits)


def stopping(
    trace: TrajectoryArray, labels: FloatArray, costs: Mapping[str, FloatArray]
) -> Stopping:
    """Return what it comes to when a run is stopped once its forecast falls below a threshold.

    `costs` are those of each step; steps themselves are counted, too.
    """
    run = run_numbers(trace)
    lowest = collapse(trace, "min")
    marks, digits = thresholds_of(np.append(np.unique(lowest), np.quantile(trace.cells, 0.9)))
    marks = marks[marks > lowest.min() + SUM_ROUNDING]
    n = len(marks)
    # a run is stopped at a step by the thresholds that it falls below there for the first time
    above = np.searchsorted(marks, trace.cells + SUM_ROUNDING, side="right")
    reached = -running_max(trace, -above)
    before = np.where(step_numbers(trace) == 1, n, np.append(n, reached[:-1]))
    falls = np.flatnonzero(reached < before)

    def added(values: FloatArray) -> FloatArray:
        """Add up, by threshold, a value of the step at which it stops a run."""
        change = np.bincount(reached[falls], values, n + 1) - np.bincount(
            before[falls], values, n + 1
        )
        return np.cumsum(change)[:n]

    success = labels[run[falls]]
    saved = {}
    for name, cost in {"steps": np.ones(len(run)), **costs}.items():
        total = np.cumsum(cost)
        after = total[trace.offsets[1:] - 1][run[falls]] - total[falls]
        saved[name] = added(after) / total[-1]
    return Stopping(
        marks, added(success) / max(labels.sum(), SUM_ROUNDING),
        added(1 - success) / max((1 - labels).sum(), SUM_ROUNDING), saved, digits,
    )  # fmt: skip


# -------------------------------------------------------------------- on other runs


def monitoring_options(
    monitoring: bool | StoppingRule | MonitoringOptions,
) -> MonitoringOptions | None:
    """Return what `evaluate` was asked for, with a rule; None for nothing."""
    if monitoring is False:
        return None
    from trajscore.monitoring import DensityRatioEProcess, StoppingRule  # imported if asked for

    options = monitoring
    if options is True:
        options = MonitoringOptions()
    if isinstance(options, StoppingRule):
        options = MonitoringOptions(options)
    if not isinstance(options, MonitoringOptions):
        raise ValueError(
            f"monitoring must be True, False, a stopping rule such as DensityRatioEProcess(), or "
            f"MonitoringOptions, got {monitoring!r}"
        )
    as_fraction(options.known_share, "known_share")
    as_count(options.n_splits, "n_splits")
    if options.rule is None:
        return replace(options, rule=DensityRatioEProcess(alpha=[0.05, 0.1, 0.2]))
    return options


def monitoring_table(
    rows: Rows, options: MonitoringOptions, work: Work, notes: list[Note]
) -> pd.DataFrame:
    """Follow predictors that vary, as given, and steps; the table of `split_report` for each."""
    tables = {}
    followed = [row for row in rows.predictors if row.form == AS_GIVEN and np.isnan(row.only_value)]
    # the rule learns the alive rate from the steps taken, on the runs that it is fitted on alone
    alive = rows.counting[0]
    steps = -step_numbers(alive.traces).astype(float)
    followed.append(replace(alive, traces=alive.traces.with_cells(steps)))
    for row in work.track(followed):
        try:
            tables[row.predictor] = _follow(row, options, work.n_jobs)
        except CannotMeasureError as error:
            notes.append(Note(row.predictor, text=f"not monitored; {error}"))
    return pd.concat(tables, names=["predictor"]) if tables else pd.DataFrame()


def _follow(row: Row, options: MonitoringOptions, n_jobs: int | None) -> pd.DataFrame:
    from trajscore.monitoring import split_report

    runs = row.runs.take(np.flatnonzero(row.runs.observed))
    traces = row.traces[row.runs.observed]
    cost = options.cost
    if cost is not None:
        rows = pd.Index(cost.ids).get_indexer(traces.ids)
        if absent := traces.ids[rows < 0].tolist():
            raise CannotMeasureError(f"the costs hold no run {absent[0]!r}; give costs of all runs")
        cost = cost[rows]
    try:
        return split_report(
            options.rule,
            traces,
            runs.y,
            known_share=options.known_share,
            n_splits=options.n_splits,
            groups=runs.groups,
            cost=cost,
            n_jobs=n_jobs,
        )
    except TypeError:  # scikit-learn's error of a wrong parameter is a ValueError, too
        raise
    except ValueError as error:  # as any rule says, also a user's, that it cannot be fitted
        raise CannotMeasureError(str(error)) from error
