"""What stopping early on a predictor would do, on runs that the rule was not fitted on."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd

from trajscore.core.array import TrajectoryArray
from trajscore.core.errors import CannotMeasureError
from trajscore.core.parallel import Work
from trajscore.core.values import as_count, as_fraction, run_label
from trajscore.core.within_runs import step_numbers
from trajscore.evaluation.options import AS_GIVEN, MonitoringOptions, Note
from trajscore.evaluation.rows import Row, Rows
from trajscore.monitoring import DensityRatioEProcess, StoppingRule, split_report


def monitoring_options(
    monitoring: bool | StoppingRule | MonitoringOptions,
) -> MonitoringOptions | None:
    """Return what `evaluate` was asked for, with a rule; None for nothing."""
    if monitoring is False:
        return None
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
    steps = -step_numbers(alive.traces).astype(np.float64)
    followed.append(replace(alive, traces=alive.traces.with_cells(steps)))
    for row in work.track(followed):
        try:
            tables[row.predictor] = _follow(row, options, work.n_jobs)
        except CannotMeasureError as error:
            notes.append(Note(row.predictor, "text", {"text": f"not monitored; {error}"}))
    return pd.concat(tables, names=["predictor"]) if tables else pd.DataFrame()


def _follow(row: Row, options: MonitoringOptions, n_jobs: int | None) -> pd.DataFrame:
    runs = row.runs.take(np.flatnonzero(row.runs.observed))
    traces = row.traces[row.runs.observed]
    cost = options.cost
    if cost is not None:
        cost = _of_runs(cost, traces)
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
    except ValueError as error:  # as any rule says, also a user's, that it cannot be fitted
        if isinstance(error, TypeError):  # scikit-learn's error of a wrong parameter is both
            raise
        raise CannotMeasureError(str(error)) from error


def _of_runs(cost: TrajectoryArray, traces: TrajectoryArray) -> TrajectoryArray:
    """Return the costs of just these runs, by their ids."""
    place = {name: row for row, name in enumerate(cost.ids.tolist())}
    for name in traces.ids.tolist():
        if name not in place:
            raise CannotMeasureError(
                f"the costs hold no run {run_label(name)}; give costs of all runs"
            )
    return cost[[place[name] for name in traces.ids.tolist()]]
