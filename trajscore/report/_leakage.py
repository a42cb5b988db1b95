"""Columns that leak the outcome, and columns that point the other way."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from trajscore.core import ranking
from trajscore.core.array import TrajectoryArray
from trajscore.core.meanings import words_of
from trajscore.core.within_runs import last_cells
from trajscore.io.fields import USUAL
from trajscore.report._data import AS_GIVEN, REFERENCES, Note
from trajscore.tracer import StepConfidence

# Fewer runs of an outcome may well be told apart by chance.
_FEWEST_TOLD_APART = 5
# What ranks worse than this, and worse than chance beyond its interval, looks like a risk.
_LOOKS_LIKE_A_RISK = 0.4

_OUTCOME_WORDS = {
    *USUAL["outcome"], "succeeded", "failed", "failure", "resolved", "passed", "correct", "label",
    "target",
} - {"y"}  # fmt: skip
# with one of these, as in p_success, a name is that of a forecast
_FORECAST_WORDS = {
    *USUAL["confidence"], "proba", "chance", "prediction", "predicted", "expected", "estimate",
    "estimated", "judge", "verifier", "model",
}  # fmt: skip
# made of log-probabilities, which the turn itself holds; "verbal" may be a field of its log
_OF_TOKENS = frozenset(StepConfidence().get_feature_names_out()) - {"verbal"}


def leakage(name: str, trace: TrajectoryArray, y: NDArray[Any]) -> str:
    """Say why a column may leak the outcome: its name or its last values; "" if it does not.

    What is made of log-probabilities knows nothing of the outcome, however well it separates.

    >>> X = TrajectoryArray.from_list([[0.2, 0.9]] * 5 + [[0.8, 0.1]] * 5)
    >>> leakage("judge", X, np.repeat([1, 0], 5))
    'separates successes from failures without an error at the last step of a run'
    >>> leakage("final_reward", X, np.ones(10))
    'is named like an outcome'
    """
    words = words_of(name)
    if words & _OUTCOME_WORDS and not words & _FORECAST_WORDS:
        return "is named like an outcome"
    if name in _OF_TOKENS:
        return ""
    last = trace.cells[last_cells(trace)]
    clear = ((y == 0) | (y == 1)) & ~np.isnan(last)
    last, success = last[clear], y[clear].astype(np.float64)
    if min(success.sum(), (1 - success).sum()) < _FEWEST_TOLD_APART:
        return ""
    area = ranking.auroc(*ranking.TieGroups(last, success).sums(np.ones(len(last))))
    if area in (0, 1):
        return "separates successes from failures without an error at the last step of a run"
    return ""


def leaky_predictors(traces: Mapping[str, TrajectoryArray], y: NDArray[Any]) -> list[Note]:
    """Warn of predictors that leak the outcome."""
    reasons = {name: leakage(name, trace, y) for name, trace in traces.items()}
    return [Note(name, "leakage", {"how": reason}) for name, reason in reasons.items() if reason]


def risks(intervals: pd.DataFrame) -> list[Note]:
    """Warn of predictors that rank runs far worse than chance, as given."""
    notes = []
    areas = intervals.xs((AS_GIVEN, "AUROC"), level=("form", "metric"))
    for name, row in areas.drop(index=list(REFERENCES), errors="ignore").iterrows():
        if row["value"] < _LOOKS_LIKE_A_RISK and row["high"] < 0.5:
            notes.append(Note(str(name), "risk", {"auroc": row["value"]}))
    return notes
