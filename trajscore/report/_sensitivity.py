"""What the leading margin over the base rate would be under other choices."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from trajscore.calibration._maker import CalibratorMaker
from trajscore.core.parallel import Work
from trajscore.core.run_sums import RunSums, run_sums
from trajscore.core.score_families import count_clipped
from trajscore.core.weights import StepWeights
from trajscore.report._data import Options
from trajscore.report._rows import Row, base_rate, make_rows
from trajscore.report._runs import Judged

CLIPS = {"clip_1e-6": 1e-6, "clip_1e-2": 1e-2}
"""Columns of the margins of log scores with another clip; a sure forecast costs 13.8 or 4.6."""


def observed_rows(
    judged: Judged, maker: CalibratorMaker | None, weights: StepWeights, work: Work
) -> list[Row]:
    """Return rows of the observed runs alone, all fitted anew; none where all are observed."""
    if judged.runs.observed.all():
        return []
    return make_rows(judged.observed(), maker, weights, work, [])


def sensitivity_table(rows: list[Row], observed: list[Row], options: Options) -> pd.DataFrame:
    """Return the margin of each row that is a probability, and what else it might be.

    That is, of the observed runs alone (see `observed_rows`), and with another clip of the log
    score.
    """
    leading, weights = options.scores[0], options.weights
    columns: dict[str, dict[tuple[str, str], float]] = {"margin": _margins(rows, leading, weights)}
    if observed:
        columns["observed_only"] = _margins(observed, leading, weights)
    clipping = [family for family in options.families if family.clip is not None]
    if clipping:
        columns["clipped"] = {
            row.key: count_clipped(row.traces, clipping[0]) / len(row.traces.cells) for row in rows
        }
    if options.is_clipped:
        for name, clip in CLIPS.items():
            leading = replace(options.families[0], clip=clip)  # type: ignore[call-arg]
            columns[name] = _margins(rows, leading, weights)
    index = pd.MultiIndex.from_tuples([row.key for row in rows], names=["predictor", "form"])
    return pd.DataFrame(columns, index=index).dropna(subset="margin")


def _margins(rows: list[Row], score: Any, weights: StepWeights) -> dict[tuple[str, str], float]:
    margins = {}
    constants: dict[int, RunSums] = {}  # scores of the base rate, of the runs that it is of
    for row in rows:
        if row.is_probability:
            labels, of_runs = row.runs.labels, id(row.runs)
            if of_runs not in constants:
                constant = base_rate(row.traces, row.runs, weights).traces
                constants[of_runs] = run_sums(labels, constant, score, weights)
            gained = run_sums(labels, row.traces, score, weights) - constants[of_runs]
            margins[row.key] = gained.mean(np.ones(len(labels)))
    return margins
