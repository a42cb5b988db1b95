"""Are locators better than what costs nothing: the position of a step, or all steps alike?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from trajscore.core.array import TrajectoryArray
from trajscore.core.checks import check_labels
from trajscore.core.ids import check_same_runs
from trajscore.core.type_aliases import FloatArray
from trajscore.inference import compare_predictors
from trajscore.localization._locator import FirstErrorLocator
from trajscore.localization._window import FirstErrorWindow
from trajscore.metrics.first_error import (
    check_distributions,
    check_first_error,
    first_error_samples,
    first_error_score,
    likeliest_steps,
    reading_cost,
    run_totals,
)

POSITION = "position"
UNIFORM = "uniform"


def compare_locators(
    first_error: Any,
    distributions: Mapping[str, Any],
    *,
    groups: ArrayLike | None = None,
    alpha: float = 0.1,
    random_state: Any = None,
) -> pd.DataFrame:
    """Judge locators of the first wrong step, and tell which are better than the position alone.

    Two references are added, which need no signal: "uniform" gives all steps of a run the same
    probability, and the rest the share of runs without a wrong step; "position" is a
    `FirstErrorLocator` without a channel, which knows the number of the step and how many follow.
    A locator that does not beat position has not shown that its signals locate anything.

    Parameters
    ----------
    first_error : array-like of int of shape (n_runs,), or TrajectoryArray
        Labels, as of `FirstErrorLocator`; runs without one are left out.
    distributions : dict of str to TrajectoryArray
        Out-of-fold distributions by name, as `FirstErrorLocator.fit_transform` gives them.
    groups : array-like of shape (n_runs,), optional
        Task of each run: for folds, windows and intervals.
    alpha : float, default=0.1
        Chance of windows to miss the first wrong step.
    random_state : int, Generator, RandomState instance or None, default=None
        Seed of the intervals.

    Returns
    -------
    DataFrame indexed by locator
        log_score (nats) and rps, higher is better; top_1: share of runs in which the likeliest of
        the steps and "no step" is right; steps_read: mean of `trajscore.metrics.reading_cost`;
        window: mean number of steps of windows, of runs with a wrong step; above_position: by how
        many nats the log score is higher, with low and high of intervals that hold at once (level
        .95), and beats_position: whether low is above 0.

    Raises
    ------
    ValueError
        If a name is that of a reference, distributions are of other runs, or a label is not a step
        of its run.

    See Also
    --------
    trajscore.inference.compare_predictors : Makes the intervals.

    Examples
    --------
    >>> from trajscore.datasets import load_who_and_when
    >>> from trajscore.localization import FirstErrorLocator, compare_locators
    >>> X, first_error = load_who_and_when(return_X_y=True)
    >>> task = X.meta["question"]
    >>> P = FirstErrorLocator().fit_transform(X, first_error, groups=task)
    >>> table = compare_locators(first_error, {"text": P}, groups=task, random_state=0)
    >>> table[["log_score", "steps_read", "beats_position"]].round(1)
              log_score  steps_read  beats_position
    locator
    text           -2.1         4.9            True
    position       -2.6         7.9           False
    uniform        -2.6        11.6           False
    """
    if not distributions:
        raise ValueError("there is no locator to compare; give the distributions of at least one")
    for name in (POSITION, UNIFORM):
        if name in distributions:
            raise ValueError(f"{name!r} is the name of a reference; rename the locator")
    named = {str(name): check_distributions(P, str(name)) for name, P in distributions.items()}
    first, X = next(iter(named.items()))
    for name, P in named.items():
        check_same_runs(X, P, f"locator {first!r}", f"locator {name!r}")
    labels = check_first_error(first_error, X)
    without = X.with_cells(np.empty((len(X.cells), 0)), channels=[])
    named[POSITION] = FirstErrorLocator().fit_transform(without, first_error, groups)
    rate = labels.none[labels.labelled].mean()
    named[UNIFORM] = X.with_cells(np.repeat((1 - rate) / X.lengths, X.lengths))
    units = np.arange(len(X)) if groups is None else check_labels(groups, len(X))
    scores = {name: first_error_samples(first_error, P) for name, P in named.items()}
    differences = compare_predictors(
        {name: samples[labels.labelled] for name, samples in scores.items()},
        reference=POSITION,
        groups=units[labels.labelled],
        random_state=random_state,
    ).set_index("predictor")
    rows = {name: _row(first_error, P, scores[name], units, alpha) for name, P in named.items()}
    table = pd.DataFrame.from_dict(rows, orient="index").rename_axis("locator")
    margin = differences.reindex(table.index)
    table["above_position"] = margin["difference"]
    table[["low", "high"]] = margin[["low", "high"]]
    table["beats_position"] = table["low"] > 0
    return table


def _row(
    first_error: Any, P: TrajectoryArray, scores: FloatArray, units: NDArray[Any], alpha: float
) -> dict[str, float]:
    """Return the means over labelled runs of what is said of a locator."""
    labels = check_first_error(first_error, P)
    top = P.offsets[:-1] + likeliest_steps(P) - 1
    says_none = 1 - run_totals(P, P.cells) >= P.cells[top]
    right = np.where(says_none, labels.none, labels.shares.cells[top])
    wrong = run_totals(P, labels.shares.cells)
    inside = FirstErrorWindow(alpha).fit(P, first_error, units).transform(P)
    return {
        "log_score": np.nanmean(scores),
        "rps": first_error_score(first_error, P, score="rps"),
        "top_1": right[labels.labelled].mean(),
        "steps_read": np.nanmean(reading_cost(first_error, P)),
        "window": np.average(run_totals(inside, inside.cells), weights=wrong),
    }
