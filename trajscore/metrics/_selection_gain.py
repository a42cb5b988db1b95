"""What is it worth to choose among several trials of a task by a score?"""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from trajscore.core.checks import check_labels
from trajscore.core.outcomes import CENSORED, check_outcomes
from trajscore.core.values import as_numbers


def selection_gain(y_true: ArrayLike, scores: ArrayLike, groups: ArrayLike) -> pd.DataFrame:
    """Success where the trial with the highest score is taken, beside that of any and of the best.

    Parameters
    ----------
    y_true : array-like of shape (n_runs,)
        Outcomes: 1 success, 0 failure, or a grade between them.
    scores : array-like of shape (n_runs,)
        A number a run, such as its last forecast: higher where success is more likely.
    groups : array-like of shape (n_runs,)
        The task of which a run is a trial.

    Returns
    -------
    DataFrame
        A row a task: ``n_trials``; ``any``, the success rate of its trials; ``chosen``, the success
        of the trial with the highest score, as a mean over those that share it; ``best``, the
        success of the best trial; and ``gain``, chosen minus any. Means over tasks are what
        choosing is worth.

    Raises
    ------
    ValueError
        If an outcome is not observed, a score is missing, or no task has two trials.

    See Also
    --------
    trajscore.inference.influence_interval : Interval of the mean gain, over tasks.
    trajscore.metrics.aggregate : One number a run of its forecasts.

    Examples
    --------
    >>> from trajscore.metrics import selection_gain
    >>> y, judge = [1, 0, 0, 1, 1, 0], [0.9, 0.4, 0.4, 0.2, 0.3, 0.3]
    >>> table = selection_gain(y, judge, groups=["a", "a", "b", "b", "c", "c"])
    >>> table
       n_trials  any  chosen  best  gain
    a         2  0.5     1.0     1   0.5
    b         2  0.5     0.0     1  -0.5
    c         2  0.5     0.5     1   0.0
    >>> float(table["gain"].mean())
    0.0
    """
    score = as_numbers(scores, "scores")
    if score.ndim != 1:
        raise ValueError(f"scores must be a number for each run, got shape {score.shape}")
    y = check_outcomes(y_true, len(score))
    tasks = check_labels(groups, len(score))
    if np.isnan(score).any():
        raise ValueError(
            f"run {int(np.argmax(np.isnan(score)))}: the score is missing; fill it in, with a low "
            f"number where such a trial is never to be chosen"
        )
    if (y == CENSORED).any():
        raise ValueError(
            f"run {int(np.argmax(y == CENSORED))}: the outcome is not observed; leave its task out"
        )
    runs = pd.DataFrame({"y": y, "score": score})
    of_task = runs.groupby(tasks)
    if of_task.size().max() < 2:
        raise ValueError(
            "no task has two trials, so there is nothing to choose; groups must name the task of "
            "each run"
        )
    is_chosen = runs["score"] == of_task["score"].transform("max")
    table = of_task["y"].agg(n_trials="size", any="mean", best="max")
    table.insert(2, "chosen", runs["y"][is_chosen].groupby(tasks[is_chosen]).mean())
    return table.assign(gain=table["chosen"] - table["any"])
