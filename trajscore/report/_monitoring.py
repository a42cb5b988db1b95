"""What stopping early on a predictor would do, on runs that the rule was not fitted on."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd

from trajscore.core.outcomes import check_outcomes
from trajscore.monitoring import DensityRatioEProcess, StoppingRule, split_report
from trajscore.report._data import RAW, MonitoringOptions, Note
from trajscore.report._rows import Row


def monitoring_options(
    monitoring: bool | StoppingRule | MonitoringOptions,
) -> MonitoringOptions | None:
    """Return what `evaluate` was asked for, with a rule; None for nothing."""
    if monitoring is False:
        return None
    options = MonitoringOptions() if monitoring is True else monitoring
    if isinstance(options, StoppingRule):
        options = MonitoringOptions(options)
    if not isinstance(options, MonitoringOptions):
        raise ValueError(
            f"monitoring must be True, False, a stopping rule such as DensityRatioEProcess(), or "
            f"MonitoringOptions, got {monitoring!r}"
        )
    if options.rule is None:
        return replace(options, rule=DensityRatioEProcess(alpha=[0.05, 0.1, 0.2]))
    return options


def monitoring_table(
    rows: list[Row], options: MonitoringOptions, n_jobs: int | None, notes: list[Note]
) -> pd.DataFrame:
    """Follow predictors as given, and the length of runs; the table of `split_report` for each."""
    tables = {}
    for row in rows:
        if row.form != RAW:
            continue
        try:
            tables[row.predictor] = _follow(row, options, n_jobs)
        except ValueError as error:
            notes.append(Note(row.predictor, "not monitored", {"why": str(error)}))
    return pd.concat(tables, names=["predictor"]) if tables else pd.DataFrame()


def _follow(row: Row, options: MonitoringOptions, n_jobs: int | None) -> pd.DataFrame:
    runs, known = row.runs, row.runs.observed
    return split_report(
        options.rule,
        row.traces[known],
        check_outcomes(runs.y[known], allow_soft=False),
        known_share=options.known_share,
        n_splits=options.n_splits,
        groups=None if runs.groups is None else runs.groups[known],
        n_jobs=n_jobs,
    )
