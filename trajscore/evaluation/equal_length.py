"""How well a predictor ranks runs of equal length, and runs at one step."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from trajscore.calibration.cross_fit import folds_of
from trajscore.calibration.fixed_step import (
    AUROC,
    auroc_interval,
    has_both,
    length_bins,
    runs_with_a_partner,
    step_table,
)
from trajscore.core.ids import pair_codes
from trajscore.core.ranking import auroc_within
from trajscore.core.run_sums import collapse
from trajscore.evaluation.options import Options, columns_of
from trajscore.evaluation.rows import Row
from trajscore.inference.mean_intervals import interval_of

OVER_LENGTH = columns_of("over_length")
"""What a ranking of equally long runs is above that by what is left of their length."""
_COLUMNS = ["n_runs", *AUROC, *OVER_LENGTH]


def by_step_table(rows: list[Row], options: Options) -> pd.DataFrame:
    """Return AUROC and leading score at steps, of the runs that are at least that long."""

    def table(row: Row) -> pd.DataFrame:
        return step_table(
            row.traces,
            row.runs.labels,
            row.runs.groups,
            forecasts=row.traces if row.is_probability else None,
            score=options.scores[0],
            confidence_level=options.settings.confidence_level,
        )

    tables = options.work.share(table, rows)
    keys = [row.key for row in rows]
    return pd.concat(list(tables), keys=keys, names=["predictor", "form"])


def equal_length_table(rows: list[Row], options: Options) -> pd.DataFrame:
    """Return AUROC over pairs of equally long runs, and what it is above that of length there."""
    index = pd.MultiIndex.from_tuples([row.key for row in rows], names=["predictor", "form"])
    numbers = options.work.share(lambda row: _of_equals(row, options), rows)
    table = pd.DataFrame(list(numbers), index=index, columns=_COLUMNS, dtype=np.float64)
    return table.astype({"n_runs": np.int64})


def _of_equals(row: Row, options: Options) -> tuple[Any, ...]:
    level = options.settings.confidence_level
    confidence = collapse(row.traces, options.settings.phi, options.weights)
    lengths = row.traces.lengths.astype(np.float64)
    # with the sign with which it ranks all runs better
    area, _ = auroc_within(lengths, row.runs.labels, np.zeros(len(lengths), dtype=np.int64))
    if area <= 0.5:
        lengths = -lengths
    stratum = pair_codes(length_bins(row.traces.lengths), folds_of(row.traces))
    runs = runs_with_a_partner(row.runs.labels, stratum)
    labels = row.runs.labels[runs]
    groups = row.runs.groups
    if groups is not None:
        groups = groups[runs]
    if not has_both(labels):
        return len(runs), *[np.nan] * 6
    estimate, influence = auroc_within(confidence[runs], labels, stratum[runs])
    # within a bin of lengths something may be left of them
    of_length, influence_of_length = auroc_within(lengths[runs], labels, stratum[runs])
    return (
        len(runs),
        *auroc_interval(confidence[runs], labels, stratum[runs], groups, level),
        *interval_of(estimate - of_length, influence - influence_of_length, groups, level),
    )
