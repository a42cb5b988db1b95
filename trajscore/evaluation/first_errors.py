"""Which step of each run failed, as labels of steps show it, and how surely signals find it."""

import warnings
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd

from trajscore.core.array import TrajectoryArray
from trajscore.core.errors import TooFewRunsError
from trajscore.core.values import IntArray
from trajscore.evaluation.options import TOGETHER, EvaluationOptions, Note
from trajscore.evaluation.runs import EvaluatedRuns
from trajscore.localization import FirstErrorLocator, FirstErrorWindow, compare_locators
from trajscore.localization._evidence import steps_to_read
from trajscore.metrics.first_error import check_first_error


class FirstErrors(NamedTuple):
    """How surely signals find the first wrong step of labelled runs, out of fold."""

    labels: IntArray  # of each run that is judged: 0 no step is wrong, -1 not labelled
    table: pd.DataFrame  # of `trajscore.localization.compare_locators`
    best: str  # the locator that is shown to gain most over position
    windows: Mapping[int, Sequence[int]]
    """By it, where it beats position: the likeliest step of a run, and those to read from and to.

    Keys are the rows of runs in which a step may be wrong.
    """


def find_first_errors(
    X: TrajectoryArray, runs: EvaluatedRuns, settings: EvaluationOptions, notes: list[Note]
) -> FirstErrors | None:
    """Learn which step failed by labels of X, from all signals together and from each alone.

    A note says why nothing is learnt from too few of them.
    """
    if settings.first_error is None:
        return None
    labels = check_first_error(settings.first_error, X)[runs.source_rows]
    traces = dict(runs.traces)
    if len(traces) > 1:
        traces[TOGETHER] = TrajectoryArray.stack(list(traces.values()), channels=list(traces))
    try:
        with warnings.catch_warnings(action="ignore"):  # of few errors, which the report says
            located = {
                name: FirstErrorLocator().fit_transform(trace, labels, runs.groups)
                for name, trace in traces.items()
            }
            table = compare_locators(
                labels, located, groups=runs.groups, random_state=settings.random_state
            ).sort_values("log_score", ascending=False)
    except TooFewRunsError as error:
        notes.append(Note("step labels", text=f"not used; {error}"))
        return None
    best = table["low"][list(located)].idxmax()
    windows = {}
    if table["beats_position"][best]:
        P = located[best]
        window = FirstErrorWindow().fit(P, labels, runs.groups)
        steps = steps_to_read(P, window)[["step", "window_start", "window_end"]].to_numpy()
        windows = {row: steps[row] for row in np.flatnonzero(labels).tolist()}
    return FirstErrors(labels, table, best, windows)
