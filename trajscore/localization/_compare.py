"""Are locators better than what costs nothing: the position of a step, or all steps alike?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from trajscore.core.sample import check_sample
from trajscore.inference import compare_predictors
from trajscore.localization._locator import FirstErrorLocator
from trajscore.localization._window import FirstErrorWindow
from trajscore.metrics.first_error import (
    check_first_error,
    first_error_samples,
    reading_cost,
    run_totals,
)


def compare_locators(
    first_error: Any,
    distributions: Mapping[str, Any],
    *,
    groups: ArrayLike | None = None,
    random_state: Any = None,
) -> pd.DataFrame:
    """Judge locators of the first wrong step, and tell which are better than the position alone.

    Two references are added, which need no signal: "uniform" gives all steps of a run the same
    probability, and the rest the share of runs without a wrong step; "position" is a
    `FirstErrorLocator` without a signal, which knows the number of the step and how many follow.
    A locator that does not beat position has not shown that its signals locate anything.

    Parameters
    ----------
    first_error : array-like of int of shape (n_runs,)
        Labels, as of `FirstErrorLocator`; runs without one are left out.
    distributions : dict of str to TrajectoryArray
        Out-of-fold distributions by name, as `FirstErrorLocator.fit_transform` gives them.
    groups : array-like of shape (n_runs,), optional
        Task of each run: for folds, windows and intervals.
    random_state : int, Generator, RandomState instance or None, default=None
        Seed of the intervals.

    Returns
    -------
    DataFrame indexed by locator
        log_score, in nats; steps_read: mean of `trajscore.metrics.reading_cost`; window: mean
        number of steps of a `FirstErrorWindow`, of runs with a wrong step; difference: by how many
        nats the log score is above that of position, with low and high of intervals that hold at
        once (level .95); beats_position: whether low is above 0.

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
    sample = check_sample(
        distributions,
        groups=groups,
        several=True,
        reserved=("position", "uniform"),
        probabilities=True,
        single_channel=True,
    )
    X = sample.X
    labels = check_first_error(first_error, X)
    has_error = labels > 0
    labelled = labels >= 0
    no_signal = X.with_cells(np.zeros(len(X.cells)))
    position = FirstErrorLocator().fit_transform(no_signal, labels, groups)
    share = np.repeat(has_error[labelled].mean() / X.lengths, X.lengths)
    named = sample.traces | {"position": position, "uniform": X.with_cells(share)}
    scores = {name: first_error_samples(labels, P)[labelled] for name, P in named.items()}
    units = None if sample.groups is None else sample.groups[labelled]
    margins = compare_predictors(
        scores, reference="position", groups=units, random_state=random_state
    )
    rows = {}
    for name, P in named.items():
        window = FirstErrorWindow().fit(P, labels, groups).transform(P)
        rows[name] = {
            "log_score": scores[name].mean(),
            "steps_read": reading_cost(labels, P)[has_error].mean(),
            "window": run_totals(window)[has_error].mean(),
        }
    of_margins = margins.set_index("predictor")[["difference", "low", "high"]]
    table = pd.DataFrame(rows).T.rename_axis("locator").join(of_margins)
    return table.assign(beats_position=table["low"] > 0)
