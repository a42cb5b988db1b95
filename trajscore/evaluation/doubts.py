"""What may be wrong with the data: leaks, wrong signs, wrong scales, weight on few runs."""

from collections import Counter
from collections.abc import Iterator, Mapping
from enum import StrEnum

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from trajscore.core import ranking
from trajscore.core.array import TrajectoryArray
from trajscore.core.errors import ArgumentError
from trajscore.core.outcomes import WORDS, words_of
from trajscore.core.policy import (
    MAX_AUROC_OF_RISK,
    MAX_SHARE_OF_RUN,
    MIN_EFFECTIVE_CLUSTERS,
    MIN_RUNS_FOR_IDS,
    MIN_RUNS_FOR_LEAKAGE,
)
from trajscore.core.stops import EXCLUDED, notes_on_stops
from trajscore.core.ties import OrdinaryRange
from trajscore.core.values import AnyArray
from trajscore.core.weights import StepWeights
from trajscore.core.within_runs import last_cells
from trajscore.evaluation.options import ALIVE, AS_GIVEN, REFERENCES, Note
from trajscore.evaluation.rows import Row, Rows
from trajscore.evaluation.runs import EvaluatedRuns
from trajscore.io.fields import USUAL
from trajscore.tracer import StepConfidence

_WITH_GAPS = 1.2

_OUTCOME_WORDS = {*USUAL["outcome"], *WORDS["names"]["outcome"]} - {"y"}
# with one of these, as in p_success, a name is that of a forecast
_FORECAST_WORDS = {*USUAL["confidence"], *WORDS["names"]["forecast"]}
# made of log-probabilities, which the turn itself holds; "verbal" may be a field of its log
_OF_TOKENS = frozenset(StepConfidence().get_feature_names_out()) - {"verbal"}


class Leak(StrEnum):
    """Why a column may leak the outcome, or be an id: what it does."""

    NAME = "is named like an outcome"
    ID = "has another whole number for each run, as an id has"
    SEPARATION = "separates successes from failures without an error at the last step of a run"


def leakage(name: str, trace: TrajectoryArray, y: AnyArray) -> Leak | None:
    """Return why a column may leak the outcome or be an id, by its name or values.

    What is made of log-probabilities knows nothing of the outcome, however well it separates.

    >>> X = TrajectoryArray.from_list([[0.2, 0.9]] * 5 + [[0.8, 0.1]] * 5)
    >>> print(leakage("judge", X, np.repeat([1, 0], 5)))
    separates successes from failures without an error at the last step of a run
    >>> print(leakage("final_reward", X, np.ones(10)))
    is named like an outcome
    """
    words = words_of(name)
    if words & _OUTCOME_WORDS and not words & _FORECAST_WORDS:
        return Leak.NAME
    if name in _OF_TOKENS:
        return None
    has_step = trace.lengths > 0
    y = y[has_step]
    last = trace.cells[last_cells(trace)[has_step]]
    is_whole = np.array_equal(trace.cells, np.repeat(np.round(last), trace.lengths[has_step]))
    is_dense = len(np.unique(last)) == len(last) > np.ptp(last) / _WITH_GAPS
    if is_whole and is_dense and len(last) >= MIN_RUNS_FOR_IDS:
        return Leak.ID
    clear = ((y == 0) | (y == 1)) & ~np.isnan(last)
    last = last[clear]
    success = y[clear].astype(float)
    if min(success.sum(), (1 - success).sum()) < MIN_RUNS_FOR_LEAKAGE:
        return None
    area = ranking.auroc(*ranking.TieGroups(last, success).sums(np.ones(len(last))))
    return Leak.SEPARATION if area in (0, 1) else None


def without_leaky_columns(
    X: TrajectoryArray, y: AnyArray, counts: NDArray[np.bool_]
) -> tuple[TrajectoryArray, list[str]]:
    """Leave out columns that leak the outcome, where nobody named them, and say so."""
    names = X.channels or ()
    leaks = {name: leak for name in names if (leak := leakage(name, X[name][counts], y[counts]))}
    if len(leaks) == len(names):
        reasons = "; ".join(f"{name!r}: {leak}" for name, leak in leaks.items())
        raise ArgumentError(
            f"Every column that looks like a score may leak the outcome ({reasons}). Name one with "
            f"{{argument}} to judge it all the same",
            "scores",
        )
    if not leaks:
        return X, []
    return X[[name for name in names if name not in leaks]], [
        f"Left out: column {name!r} {leak}; name it with {{argument:scores}} to judge it"
        for name, leak in leaks.items()
    ]


def doubts(
    runs: EvaluatedRuns, rows: Rows, intervals: pd.DataFrame, weights: StepWeights
) -> Iterator[Note]:
    """Yield what a reader should know of predictors and runs."""
    for row in rows.predictors:
        if not row.is_probability:
            yield from _out_of_range(row)
    yield from _leaky(runs)
    if not rows.n_alive_folds:
        text = (
            "learnt from the same runs that it is judged on; there are too few runs for two folds"
        )
        yield Note(ALIVE, text=text)
    areas = intervals.xs((AS_GIVEN, "AUROC"), level=("form", "metric"))
    areas = areas.drop(index=list(REFERENCES), errors="ignore")
    is_turned = (areas["value"] < MAX_AUROC_OF_RISK) & (areas["high"] < 0.5)
    for name, area in areas["value"][is_turned].items():
        yield Note(str(name), "risk", {"auroc": area})
    units = rows.runs.units
    if rows.runs.groups is not None and units.n_effective < MIN_EFFECTIVE_CLUSTERS:
        facts = {"n": units.n_units, "effective": units.n_effective}
        yield Note("intervals", "few clusters", facts)
    trace = rows.base.traces
    divisor = weights.of(trace).divisor()
    share = divisor / divisor.sum()
    heaviest = int(np.argmax(share))
    if share[heaviest] > max(MAX_SHARE_OF_RUN, 2 / len(share)):
        facts = {
            "run": trace.ids[heaviest],
            "steps": int(trace.lengths[heaviest]),
            "share": float(share[heaviest]),
        }
        yield Note("weights", "heavy run", facts)
    yield from stop_notes(runs.stops.stop_counts if runs.stops else {})


def _leaky(runs: EvaluatedRuns) -> Iterator[Note]:
    """Warn of predictors that leak the outcome."""
    leaks = ((name, leakage(name, trace, runs.y)) for name, trace in runs.traces.items())
    return (Note(name, "leakage", {"leak": leak}) for name, leak in leaks if leak)


def _out_of_range(row: Row) -> Iterator[Note]:
    """Point at outliers, and at few values outside [0, 1] in what looks like probabilities."""
    values = row.traces.cells
    ordinary = OrdinaryRange.of(values)
    far = ordinary.is_outlier(values)
    outside = row.outside & ~far
    is_positive = bool((values > 0).any())  # minus a risk is not
    is_slip = 2 * outside.sum() < len(values) and is_positive
    of_others = {"low": ordinary.low, "high": ordinary.high}
    for are_meant, limits in ((far, of_others), (outside & is_slip, {})):
        if are_meant.any():
            cell = int(np.argmax(are_meant))
            place = row.traces.place(cell, with_row=False)  # files have other rows
            facts = {"place": place, "value": values[cell], "n": int(are_meant.sum())}
            yield Note(row.predictor, "outside", facts | limits)


def stop_notes(counts: Mapping[tuple[str, str], int]) -> list[Note]:
    """Say of which runs a stop decided the outcome, and which reasons are not known."""
    # runs that are left out are counted in the table `excluded`
    others = Counter({of: n for of, n in counts.items() if of[0] != EXCLUDED})
    where = {"rule": "rule= of from_frame and read_runs, or --stop"}
    texts = (ArgumentError(text).in_options(where) for text in notes_on_stops(others, 0))
    return [Note("stops", "stops", {"text": text}) for text in texts]
