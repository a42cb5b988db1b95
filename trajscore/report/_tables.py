"""The tables of an evaluation."""

from __future__ import annotations

import pandas as pd

from trajscore.report._data import (
    GAIN,
    MARGIN,
    OVER_ALIVE,
    OVER_ALIVE_END,
    OVER_AS_GIVEN,
    RECALIBRATED,
    Options,
)
from trajscore.report._rows import Row
from trajscore.report._runs import Judged


def row_table(rows: list[Row], options: Options, intervals: pd.DataFrame) -> pd.DataFrame:
    """Return all metrics of each row, and what scores and AUROC are above the references."""
    index = pd.MultiIndex.from_tuples([row.key for row in rows], names=["predictor", "form"])
    values = intervals["value"].unstack("metric")
    table = values.reindex(index=index, columns=options.metrics)
    table.insert(0, "n_runs", [len(row.runs) for row in rows])
    table.insert(1, "n_censored", [int((~row.runs.observed).sum()) for row in rows])
    return with_differences(table, options, intervals)


def with_differences(
    table: pd.DataFrame, options: Options, intervals: pd.DataFrame
) -> pd.DataFrame:
    """Add the scores' margins over the base rate, and theirs and AUROC's over the alive rate."""
    for metric in (*options.score_names, "AUROC"):
        differences = intervals.xs(metric, level="metric")
        over = (*OVER_ALIVE, *OVER_ALIVE_END)
        for column in over if metric == "AUROC" else (*MARGIN, *over):
            table[f"{metric} {column}"] = differences[column]
    return table


def gain_table(options: Options, intervals: pd.DataFrame) -> pd.DataFrame:
    """Return what recalibration does to each metric of each predictor; a gain above 0 is better."""
    is_calibrated = intervals.index.get_level_values("form") == RECALIBRATED
    rows = intervals[is_calibrated].droplevel("form").dropna(subset=OVER_AS_GIVEN[0])
    is_lower = rows.index.get_level_values("metric").isin(options.lower_is_better)
    change, low, high = (rows[name] for name in OVER_AS_GIVEN)
    ends = {
        GAIN[0]: change.mask(is_lower, -change),
        GAIN[1]: low.mask(is_lower, -high),
        GAIN[2]: high.mask(is_lower, -low),
    }
    return pd.DataFrame({"as_given": rows["value"] - change, "recalibrated": rows["value"], **ends})


def excluded_table(judged: Judged) -> pd.DataFrame:
    """Return how many runs were left out, by predictor and reason."""
    rows = [(*of, n_runs) for of, n_runs in judged.excluded.items()]
    return pd.DataFrame(rows, columns=["predictor", "reason", "n_runs"])
