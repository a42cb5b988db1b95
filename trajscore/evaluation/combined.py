"""All signals together: one more row, and what each signal adds to it."""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import NamedTuple

import numpy as np
import pandas as pd

from trajscore.calibration import CombinedForecaster
from trajscore.calibration.combination import OutOfFold
from trajscore.core.array import TrajectoryArray
from trajscore.core.errors import TooFewRunsError
from trajscore.core.policy import MOST_CANDIDATES, MOST_SIGNALS
from trajscore.core.statistics import MeanOfRuns
from trajscore.core.values import unknown_name
from trajscore.evaluation.acting import stopping
from trajscore.evaluation.options import (
    AS_GIVEN,
    RECALIBRATED,
    TOGETHER,
    WITH_HISTORY,
    Note,
    Options,
    columns_of,
)
from trajscore.evaluation.recommendation import intervals_of
from trajscore.evaluation.rows import Row, Rows

NOW = "now"
HISTORY = "with_history"
LOSS = "loss"
"""What a signal is worth: its value, with its history, and to the others, which lose so much."""

_ENOUGH_LEVEL = 0.8  # of the interval of what few signals miss, which ends below what matters
_MOST_STEPS = 50_000  # to learn from
_MOST_RUNS = 20_000  # to compare signals on


class Combined(NamedTuple):
    """The row of all signals, and the fits that it comes from, from which those of fewer come."""

    row: Row
    held: OutOfFold

    def of(self, signals: Sequence[int]) -> Row:
        """Return the row of some of the signals."""
        return replace(self.row, traces=self.held.forecasts(signals)[0])


def combine(
    rows: Rows, options: Options, notes: list[Note], *, compares: bool = True
) -> tuple[Rows, Combined | None]:
    """Add the row of all signals that vary, where there are some, and enough runs.

    The fits are returned where it is to be asked what each signal adds.
    """
    varying = [row for row in rows.predictors if row.form == AS_GIVEN and np.isnan(row.only_value)]
    names = [row.predictor for row in varying if row.predictor in rows.recalibrated]
    if not names or not options.settings.together:
        return rows, None
    runs = rows.runs
    is_compared = compares and len(names) > 1 and len(runs) <= _MOST_RUNS
    called = TOGETHER if len(names) > 1 else f"{names[0]} {WITH_HISTORY}"
    X = TrajectoryArray.stack([runs.traces[name] for name in names], channels=names)
    weights = options.weights
    forecaster = CombinedForecaster(
        subsample=_MOST_STEPS, weights=weights.schedule, horizon=weights.horizon
    )
    try:
        with warnings.catch_warnings():  # of an outcome that some folds do not have
            warnings.filterwarnings("ignore", "The least populated class", UserWarning)
            held = forecaster.held_out(X, runs.labels, groups=runs.groups, apart=is_compared)
    except TooFewRunsError as error:
        notes.append(Note(called, text=f"not made; {error}"))
        return rows, None
    traces, *_ = held.forecasts(range(len(names)))
    row = Row(called, RECALIBRATED, traces, runs, True, forecaster, tuple(names))
    combined = Combined(row, held) if is_compared else None
    return replace(rows, predictors=[*rows.predictors, row]), combined


class Purchase(NamedTuple):
    """What the signals that cost something buy."""

    signals: list[str]
    cost: float  # of them at all steps of a run, on average
    stopped: float  # share of the failing runs that are stopped, with few of the good ones
    stopped_without: float  # the same by the signals that cost nothing


def purchase(combined: Combined, prices: Mapping[str, float]) -> Purchase:
    """Return what it costs to forecast a run, and what signals with a price add to it."""
    names = combined.row.signals
    if unknown := [name for name in prices if name not in names]:
        raise ValueError(unknown_name("signal", unknown[0], names))

    def share_stopped(row: Row) -> float:
        curve = stopping(row.traces, row.runs.labels, {})
        place = curve.highest
        return 0.0 if place is None else curve.bad[place]

    free = [k for k, name in enumerate(names) if not prices.get(name)]
    return Purchase(
        signals=[name for name in names if prices.get(name)],
        cost=sum(prices.values()) * combined.row.traces.lengths.mean(),
        stopped=share_stopped(combined.row),
        stopped_without=share_stopped(combined.of(free)) if free else 0.0,
    )


def signal_table(combined: Combined, rows: Rows, matters: float, options: Options) -> pd.DataFrame:
    """Return what each signal is worth: its value, with its history, and to the others.

    `order` numbers the fewest signals, added one by one, with which all is reached but for half of
    what matters, and `reached` is the margin then; they are 0 and NaN where more are needed, or
    it is not shown that they miss less than matters.
    """
    leading = options.leading
    names = combined.row.signals
    every = range(len(names))
    base = rows.base.score(*leading)
    whole = combined.row.score(*leading)
    by_name = rows.recalibrated

    @cache  # a set of signals is asked about more than once
    def score(signals: frozenset[int]) -> MeanOfRuns:
        return combined.of(sorted(signals)).score(*leading)

    of_columns = {
        NOW: [by_name[name].score(*leading) - base for name in names],
        HISTORY: [score(frozenset({k})) - base for k in every],
        LOSS: [whole - score(frozenset(every) - {k}) for k in every],
    }
    level = 1 - (1 - options.settings.confidence_level) / len(names)
    table = pd.DataFrame(index=pd.Index(names, name="signal"))
    for name, differences in of_columns.items():
        of_signals = dict(zip(names, differences, strict=True))
        intervals = intervals_of(of_signals, rows.runs.units, options.settings, level)
        table[columns_of(name)] = list(intervals.values())
    promising = np.argsort(-table[HISTORY].to_numpy(), kind="stable")[:MOST_CANDIDATES].tolist()
    reached: dict[int, float] = {}
    missing = np.inf
    while missing > matters / 2 and len(reached) < min(MOST_SIGNALS, len(promising)):
        scores = {k: score(frozenset({*reached, k})) for k in promising if k not in reached}
        best = max(scores, key=lambda k: scores[k].mean)
        reached[best] = (scores[best] - base).mean
        missed = whole - scores[best]
        missing = missed.mean
    shown = intervals_of({LOSS: missed}, rows.runs.units, options.settings, _ENOUGH_LEVEL)[LOSS]
    if missing > matters / 2 or shown.high > matters:
        reached = {}
    table["order"] = [1 + list(reached).index(k) if k in reached else 0 for k in every]
    table["reached"] = [reached.get(k, np.nan) for k in every]
    return table
