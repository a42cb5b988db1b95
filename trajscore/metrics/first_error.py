"""The first wrong step of a run: its labels, scores of a distribution over steps, and its use."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from trajscore.core.array import TrajectoryArray
from trajscore.core.checks import check_traces
from trajscore.core.ids import check_index
from trajscore.core.score_families import CLIP
from trajscore.core.ties import group_ties
from trajscore.core.values import (
    UNIT_ROUNDING,
    FloatArray,
    IntArray,
    check_choice,
    number_of,
    one_per_run,
    refuse_first,
    run_label,
)
from trajscore.core.within_runs import first_step_above, run_numbers, running_sum, step_numbers


def check_first_error(first_error: Any, X: TrajectoryArray) -> IntArray:
    """Return the label of each run, or say of which run a label cannot be."""
    check_index(first_error, X.ids, "first_error")
    labels = one_per_run(first_error, "first_error", len(X))
    refuse_first(
        labels != np.clip(np.round(labels), -1, X.lengths),
        lambda row: (
            f"run {run_label(X.ids[row])} (row {row}): first_error is {labels[row]:g}, and the run "
            f"has {number_of(X.lengths[row], 'step')}; give the number of a step from 1, 0 where "
            f"no step is wrong, or -1 where the run is not labelled"
        ),
    )
    return labels.astype(np.int64)


def first_error_labels(X: TrajectoryArray, is_verdict: bool) -> FloatArray:
    """Return labels of runs by a number that stands beside each step, or by verdicts on steps.

    A step is wrong where its verdict is the lowest, and at most 0; where one before it is missing,
    the run is not labelled.
    """
    values = np.append(X.cells, np.nan)  # a last run may have no step
    first = values[X.offsets[:-1]]
    if is_verdict:
        stops = np.isnan(values) | (values == np.nanmin(values, initial=0))
        step = first_step_above(X, stops[:-1], np.zeros(len(X)))
        first = np.where(np.isnan(values[first_wrong_cells(step, X)]), np.nan, step)
    return np.where(np.isnan(first) | (X.lengths == 0), -1.0, first)


def first_wrong_cells(labels: IntArray, X: TrajectoryArray) -> IntArray:
    """Return the cell of each run's first wrong step; its first one where there is none."""
    return X.offsets[:-1] + np.maximum(labels - 1, 0)


def check_distributions(P: Any) -> TrajectoryArray:
    """Return probabilities of the steps of runs, which add up to 1 at most."""
    traces = check_traces(P)
    total = run_totals(traces)
    refuse_first(
        total > 1 + UNIT_ROUNDING,
        lambda row: (
            f"run {run_label(traces.ids[row])} (row {row}): the probabilities add up to "
            f"{total[row]:g}, more than 1; give for each step the probability that it is the first "
            f"wrong one"
        ),
    )
    return traces


def run_totals(P: TrajectoryArray) -> FloatArray:
    """Return the sum of each run."""
    return np.add.reduceat(P.cells, P.offsets[:-1])


def likeliest_cells(P: TrajectoryArray) -> IntArray:
    """Return the cell of the likeliest step of each run, the first of several."""
    return np.lexsort((-P.cells, run_numbers(P)))[P.offsets[:-1]]


def first_error_samples(first_error: Any, P: Any, *, score: str = "log") -> FloatArray:
    r"""Score the distribution of each run over its steps and "no step is wrong"; higher is better.

    Parameters
    ----------
    first_error : array-like of int of shape (n_runs,)
        First wrong step of each run, counted from 1; 0 where no step is wrong, -1 where the run is
        not labelled.
    P : TrajectoryArray or array-like of shape (n_runs, T_max)
        Probability of each step to be the first wrong one; the rest is that of no wrong step.
    score : {"log", "rps"}, default="log"
        The logarithm of the probability of what happened, at least 1e-6, in nats; or minus the
        ranked probability score, to which a step that is near the true one is nearly right.

    Returns
    -------
    ndarray of shape (n_runs,)
        One number a run; NaN where it is not labelled.

    Raises
    ------
    ValueError
        If a label is not a step of its run, or the probabilities of a run add up to more than 1.

    See Also
    --------
    trajscore.localization.compare_locators : Compares scores, with intervals.

    Notes
    -----
    Both are proper. With :math:`G_t = \sum_{s \le t} P_s` and a first error at step F, the ranked
    probability score of a run of T steps is :math:`\sum_t (G_t - 1[F \le t])^2 / T`. Where
    annotators differ, take the mean over them.

    References
    ----------
    Epstein (1969), A Scoring System for Probability Forecasts of Ranked Categories, J. Appl.
    Meteor. 8.

    Examples
    --------
    >>> from trajscore.metrics import first_error_samples
    >>> first_error_samples([2, 0], [[0.2, 0.5], [0.2, 0.3]]).round(2)
    array([-0.69, -0.69])
    >>> first_error_samples([2, 0], [[0.2, 0.5], [0.2, 0.3]], score="rps").round(3)
    array([-0.065, -0.145])
    """
    check_choice(score, "score", ("log", "rps"))
    traces = check_distributions(P)
    labels = check_first_error(first_error, traces)
    if score == "log":
        p = traces.cells[first_wrong_cells(labels, traces)]
        happened = np.where(labels > 0, p, 1 - run_totals(traces))
        values = np.log(np.maximum(happened, CLIP))
    else:
        first = np.repeat(labels, traces.lengths)
        is_wrong_by_now = (first > 0) & (first <= step_numbers(traces))
        error = (running_sum(traces, traces.cells) - is_wrong_by_now) ** 2
        values = -run_totals(traces.with_cells(error)) / traces.lengths
    return np.where(labels >= 0, values, np.nan)


def first_error_score(first_error: Any, P: Any, *, score: str = "log") -> float:
    """Mean score of distributions over the first wrong step; higher is better.

    Parameters
    ----------
    first_error, P, score : labels, distributions and score
        As in `first_error_samples`, of which this is the mean over labelled runs.

    Returns
    -------
    float
        The score; NaN where no run is labelled.

    Raises
    ------
    ValueError
        As `first_error_samples`.

    Examples
    --------
    >>> from trajscore.metrics import first_error_score
    >>> round(first_error_score([2, 0, -1], [[0.2, 0.5], [0.2, 0.3], [0.1, 0.1]]), 2)
    -0.69
    """
    samples = first_error_samples(first_error, P, score=score)
    return float(pd.Series(samples).mean())  # of labelled runs


def reading_cost(first_error: Any, P: Any) -> FloatArray:
    """Count the steps that a person reads, the likeliest first, up to the first wrong one.

    Parameters
    ----------
    first_error, P : labels and distributions
        As in `first_error_samples`. Equally likely steps are read in random order.

    Returns
    -------
    ndarray of shape (n_runs,)
        Number of steps, a mean where there is chance; NaN where no step is wrong, or the run is not
        labelled.

    Raises
    ------
    ValueError
        As `first_error_samples`.

    Notes
    -----
    Who reads from the start reads as many steps as the number of the first wrong one, in random
    order (T + 1) / 2 of T steps.

    Examples
    --------
    >>> from trajscore.metrics import reading_cost
    >>> reading_cost([3, 3, 0], [[0.1, 0.2, 0.4], [0.2, 0.2, 0.2], [0.1, 0.1, 0.1]])
    array([ 1.,  2., nan])
    """
    traces = check_distributions(P)
    labels = check_first_error(first_error, traces)
    tie = pd.Series(group_ties(-traces.cells)[1])
    place = tie.groupby(run_numbers(traces)).rank().to_numpy()
    return np.where(labels > 0, place[first_wrong_cells(labels, traces)], np.nan)


def first_error_scorer(locator: Any, X: Any, first_error: Any, *, score: str = "log") -> float:
    """Score a fitted locator, as ``scoring=`` of a search; higher is better.

    For another score, take ``functools.partial(first_error_scorer, score="rps")``.

    Parameters
    ----------
    locator : estimator
        Its ``transform`` gives distributions over steps.
    X : TrajectoryArray or array-like
        What it reads.
    first_error : array-like of int of shape (n_runs,)
        Labels, as in `first_error_samples`.
    score : {"log", "rps"}, default="log"
        As in `first_error_samples`.

    Returns
    -------
    float
        The score.

    See Also
    --------
    trajscore.localization.FirstErrorLocator : A locator.

    Examples
    --------
    >>> from sklearn.model_selection import GridSearchCV, GroupKFold
    >>> from trajscore.datasets import load_who_and_when
    >>> from trajscore.localization import FirstErrorLocator
    >>> from trajscore.metrics import first_error_scorer
    >>> X, first_error = load_who_and_when(return_X_y=True)
    >>> grid = {"live": [True, False]}
    >>> how = {"scoring": first_error_scorer, "cv": GroupKFold(3)}
    >>> search = GridSearchCV(FirstErrorLocator(), grid, **how)
    >>> search.fit(X, first_error, groups=X.meta["question"]).best_params_
    {'live': False}
    """
    return first_error_score(first_error, locator.transform(X), score=score)
