"""Which step failed: what labelled runs show of the predictors as signals of it."""

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from trajscore.core.array import TrajectoryArray
from trajscore.core.sample import Sample
from trajscore.core.type_aliases import IntArray
from trajscore.evaluation.options import TOGETHER, EvaluationOptions
from trajscore.evaluation.runs import EvaluatedRuns
from trajscore.localization import FirstErrorLocator, FirstErrorWindow, compare_locators
from trajscore.localization._evidence import steps_to_read
from trajscore.metrics.first_error import check_first_error


@dataclass(frozen=True)
class FirstErrors:
    """How surely signals tell the first wrong step of labelled runs, out of fold."""

    labels: IntArray  # of each run that is judged: 0 no step is wrong, -1 not labelled
    table: pd.DataFrame  # of `trajscore.localization.compare_locators`, the best locator first
    best: str  # locator that finds it, better than position; "" where none is shown to
    steps: pd.DataFrame | None  # of each run the likeliest step and its window, by the best locator

    @property
    def n_labelled(self) -> int:
        """Runs with a label."""
        return int((self.labels >= 0).sum())

    @property
    def n_wrong(self) -> int:
        """Runs of which a step is known to be wrong."""
        return int((self.labels > 0).sum())

    @property
    def from_start(self) -> float:
        """Steps that a person reads from the start of a run, up to the first wrong one."""
        return float(self.labels[self.labels > 0].mean())


def find_first_errors(
    first_error: Any, sample: Sample, runs: EvaluatedRuns, settings: EvaluationOptions
) -> FirstErrors:
    """Learn from labels of the rows of a sample, and judge all signals together and each alone.

    Those of runs that are judged count. All together go before single signals that are better than
    position, too: what is best of several is so by chance in part.
    """
    labels = check_first_error(first_error, sample.X)[runs.source_rows]
    X = TrajectoryArray.stack(list(runs.traces.values()), channels=list(runs.traces))
    signals = {name: [name] for name in runs.traces}
    if len(signals) > 1:
        signals[TOGETHER] = list(runs.traces)
    distributions = {}
    for name, channels in signals.items():
        with warnings.catch_warnings(action="ignore"):  # of few errors, which the report says
            P = FirstErrorLocator().fit_transform(X[channels], labels, runs.groups)
        distributions[name] = P
    table = compare_locators(
        labels, distributions, groups=runs.groups, random_state=settings.random_state
    ).sort_values("log_score", ascending=False)
    better = table.index[table["beats_position"]]
    best = TOGETHER if TOGETHER in better else next(iter(better), "")
    steps = None
    if best:
        P = distributions[best]
        steps = steps_to_read(P, FirstErrorWindow().fit(P, labels, runs.groups).transform(P))
    return FirstErrors(labels, table, best, steps)
