"""What the leading margin over the base rate would be under other choices."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd

from trajscore.calibration.calibrators import CalibratorMaker
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


def sensitivity_table(
    rows: list[Row], cards: pd.DataFrame, observed_cards: pd.DataFrame | None, options: Options
) -> pd.DataFrame:
    """Return the margin of each probability, of the observed runs alone, and with other clips."""
    judged = [row for row in rows if row.predictor in cards.index and row.is_probability]
    index = pd.MultiIndex.from_tuples([row.key for row in judged], names=["predictor", "form"])
    table = pd.DataFrame({"margin": _margins(judged, cards)}, index=index)
    if observed_cards is not None:
        table["observed_only"] = _margins(judged, observed_cards)
    clipping = [family for family in options.families if family.clip is not None]
    if clipping:
        table["clipped"] = [
            count_clipped(row.traces, clipping[0]) / len(row.traces.cells) for row in judged
        ]
    if options.is_clipped:
        for name, clip in CLIPS.items():
            is_leading = clip == options.families[0].clip
            table[name] = table["margin"] if is_leading else _with_clip(judged, clip, options)
    return table


def _margins(rows: list[Row], cards: pd.DataFrame) -> list[float]:
    return [float(cards.loc[row.predictor, row.form]) for row in rows]


def _with_clip(rows: list[Row], clip: float, options: Options) -> list[float]:
    score = replace(options.families[0], clip=clip)  # type: ignore[call-arg]
    weights = options.weights
    constants: dict[int, RunSums] = {}  # scores of the base rate, of the runs that it is of
    margins = []
    for row in rows:
        labels, of_runs = row.runs.labels, id(row.runs)
        if of_runs not in constants:
            constant = base_rate(row.traces, row.runs, weights).traces
            constants[of_runs] = run_sums(labels, constant, score, weights)
        gained = run_sums(labels, row.traces, score, weights) - constants[of_runs]
        margins.append(gained.mean(np.ones(len(labels))))
    return margins
