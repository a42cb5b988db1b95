"""The tables of an evaluation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pandas as pd

from trajscore.core.score_families import count_clipped
from trajscore.report._data import (
    BASE_RATE,
    GAIN,
    MARGIN,
    OVER_ALIVE,
    OVER_ALIVE_END,
    OVER_AS_GIVEN,
    RECALIBRATED,
    Options,
)
from trajscore.report._rows import Row

CLIPS = {"clip_1e-6": 1e-6, "clip_1e-2": 1e-2}
"""Columns of the margins of log scores with another clip; a sure forecast costs 13.8 or 4.6."""


def count_table(rows: list[Row]) -> pd.DataFrame:
    """Return how many runs each row is of, and how many of these have no observed outcome."""
    counts = [(len(row.runs), int((~row.runs.observed).sum())) for row in rows]
    return pd.DataFrame(counts, index=_index(rows), columns=["n_runs", "n_censored"])


def row_table(counts: pd.DataFrame, options: Options, intervals: pd.DataFrame) -> pd.DataFrame:
    """Return counts, all metrics, and what scores and AUROC are above the references."""
    values = intervals["value"].unstack("metric")
    table = counts.join(values.reindex(index=counts.index, columns=options.metrics))
    for metric in (*options.score_names, "AUROC"):
        differences = intervals.xs(metric, level="metric")
        over = OVER_ALIVE + OVER_ALIVE_END
        for column in over if metric == "AUROC" else MARGIN + over:
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


def excluded_table(excluded: Mapping[str, int]) -> pd.DataFrame:
    """Return how many runs were left out, for all predictors, by reason."""
    rows = [("all", why, n_runs) for why, n_runs in excluded.items() if n_runs]
    return pd.DataFrame(rows, columns=["predictor", "reason", "n_runs"])


def sensitivity_table(
    rows: list[Row], cards: pd.DataFrame, observed: pd.DataFrame | None, options: Options
) -> pd.DataFrame:
    """Return the margin of each probability, of the observed runs alone, and with other clips."""
    judged = [row for row in rows if row.predictor in cards.index and row.is_probability]
    base = next(row for row in rows if row.predictor == BASE_RATE)
    table = pd.DataFrame({"margin": _margins(judged, cards)}, index=_index(judged))
    if observed is not None:
        table["observed_only"] = _margins(judged, observed)
    clipping = [family for family in options.families if family.clip is not None]
    if clipping:
        table["clipped"] = [
            count_clipped(row.traces, clipping[0]) / len(row.traces.cells) for row in judged
        ]
    if options.families[0].clip is not None:
        for name, clip in CLIPS.items():
            is_leading = clip == options.families[0].clip
            table[name] = table["margin"] if is_leading else _with_clip(judged, base, clip, options)
    return table


def _margins(rows: list[Row], cards: pd.DataFrame) -> list[float]:
    return [float(cards.loc[row.predictor, row.form]) for row in rows]


def _with_clip(rows: list[Row], base: Row, clip: float, options: Options) -> list[float]:
    score = replace(options.families[0], clip=clip)  # type: ignore[call-arg]
    constant, once = base.score(score, options.weights), np.ones(len(base.runs))
    return [float((row.score(score, options.weights) - constant)(once)) for row in rows]


def _index(rows: list[Row]) -> pd.MultiIndex:
    return pd.MultiIndex.from_tuples([row.key for row in rows], names=["predictor", "form"])
