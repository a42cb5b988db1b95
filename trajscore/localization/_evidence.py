"""What labelled runs show of a locator: windows that hold the error, and a margin over position."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from trajscore.core.array import TrajectoryArray
from trajscore.core.checks import check_groups, check_sample
from trajscore.core.estimator import TraceTransformer, like_input
from trajscore.core.ties import SUM_ROUNDING
from trajscore.core.values import ArrayLike, FloatArray, as_fraction
from trajscore.core.within_runs import first_step_above, run_numbers
from trajscore.inference import compare_predictors
from trajscore.localization._locator import FirstErrorLocator
from trajscore.metrics.first_error import (
    check_distributions,
    check_first_error,
    first_error_samples,
    first_wrong_cells,
    likeliest_cells,
    reading_cost,
    run_totals,
)


class FirstErrorWindow(TraceTransformer, BaseEstimator):
    """The steps that hold the first wrong one with chance 1 - alpha, for a run of a new task.

    The window starts as the likeliest step, and takes in the likelier one of its two neighbours
    until it holds enough probability. How much is enough is learnt from labelled runs with a wrong
    step, each task with the same weight.

    Parameters
    ----------
    alpha : float, default=0.1
        Chance that a window does not hold the first wrong step of a run that has one.

    Attributes
    ----------
    limit_ : float
        A step is in the window where the steps taken in before it hold at most this share of the
        probability of a wrong step; infinite, so that a window is the whole run, where fewer than
        1 / alpha - 1 tasks have a wrong step.

    See Also
    --------
    FirstErrorLocator : Its ``fit_transform`` gives the distributions to fit this on.

    Notes
    -----
    The limit is the quantile 1 - alpha of that share at the first wrong steps, where each of n
    tasks has the weight 1 / (n + 1), shared by its runs, and the rest lies at infinity. So if tasks
    are exchangeable, and the distributions are of a locator that has not seen the run, the chance
    holds as a mean over sets of training tasks. Distributions out of fold are so nearly.

    References
    ----------
    Lee, Barber and Willett (2023), Distribution-free Inference with Hierarchical Data,
    arXiv:2306.06342.

    Examples
    --------
    >>> from trajscore.datasets import load_who_and_when
    >>> from trajscore.localization import FirstErrorLocator, FirstErrorWindow
    >>> X, first_error = load_who_and_when(return_X_y=True)
    >>> task = X.meta["question"]
    >>> locator = FirstErrorLocator()
    >>> P = locator.fit_transform(X, first_error, groups=task)
    >>> window = FirstErrorWindow(alpha=0.5).fit(P, first_error, groups=task)
    >>> window.transform(P[:1]).to_list()
    [array([0., 0., 1., 0., 0., 0.])]
    """

    # groups stay whole as in scikit-learn's splitters of groups
    __metadata_request__fit = {"groups": True}  # noqa: RUF012
    _output_channels = ("window",)

    def __init__(self, alpha: float = 0.1) -> None:
        self.alpha = alpha

    def fit(self, P: Any, first_error: Any, groups: ArrayLike | None = None) -> Self:
        """Learn how much probability a window has to hold.

        Parameters
        ----------
        P : TrajectoryArray or array-like of shape (n_runs, T_max)
            Probability of each step to be the first wrong one, by a locator that has not seen the
            run.
        first_error : array-like of int of shape (n_runs,)
            Labels, as of `FirstErrorLocator`. Only runs with a wrong step are read.
        groups : array-like of shape (n_runs,), optional
            Task of each run. Default: each run is a task of its own.

        Returns
        -------
        FirstErrorWindow
            The fitted window.

        Raises
        ------
        ValueError
            If probabilities of a run add up to more than 1, or a label is not a step of its run.
        """
        alpha = as_fraction(self.alpha, "alpha")
        traces = check_distributions(P)
        labels = check_first_error(first_error, traces)
        wrong = np.flatnonzero(labels > 0)
        task = wrong
        if groups is not None:
            task = check_groups(groups, len(traces))[wrong]
        n_tasks = len(np.unique(task))
        before = _mass_before(traces)[first_wrong_cells(labels, traces)[wrong]]
        order = np.argsort(before)
        weight = 1 / np.bincount(task)[task] / (n_tasks + 1)
        is_enough = np.cumsum(weight[order]) >= 1 - alpha - SUM_ROUNDING
        self.limit_ = float(min(before[order[is_enough]], default=np.inf))
        return self

    def transform(self, P: Any) -> Any:
        """Say which steps are in the window.

        Parameters
        ----------
        P : TrajectoryArray or array-like of shape (n_runs, T_max)
            Distributions of new runs.

        Returns
        -------
        TrajectoryArray, or NaN-padded ndarray where P was a plain array
            1 in the window, which has no gap, else 0.

        Raises
        ------
        NotFittedError
            If `fit` has not been called.
        ValueError
            If probabilities of a run add up to more than 1.
        """
        check_is_fitted(self)
        traces = check_distributions(P)
        inside = _mass_before(traces) <= self.limit_ + SUM_ROUNDING
        return like_input(traces.with_cells(inside * 1.0, channels=self._output_channels), P)


def steps_to_read(P: TrajectoryArray, window: FirstErrorWindow) -> pd.DataFrame:
    """Return a row a run: its likeliest step, its window, and the chance that no step is wrong."""
    inside = window.transform(P)
    start = first_step_above(inside, inside.cells, np.zeros(len(P)))
    likeliest = P.to_frame().iloc[likeliest_cells(P)]
    return likeliest.assign(
        window_start=start,
        window_end=start - 1 + run_totals(inside).astype(int),
        probability_of_none=1 - run_totals(P),
    )


def _mass_before(P: TrajectoryArray) -> FloatArray:
    """Return for each step the share of probability that a window holds before it takes it in.

    A window that grows by its likelier neighbour takes steps in the order of the least probability
    between them and the likeliest step.
    """
    run = run_numbers(P)
    share = pd.Series(P.cells / np.maximum(run_totals(P), 1e-300)[run])
    distance = share.index - likeliest_cells(P)[run]
    side = 2 * run + (distance > 0)
    outwards = share.iloc[np.lexsort((np.abs(distance), side))]  # run by run
    least = outwards.groupby(side[outwards.index]).cummin()
    order = outwards.iloc[np.lexsort((-least, run))]
    return (order.groupby(run).cumsum() - order).sort_index().to_numpy()


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
    random_state : int, RandomState instance or None, default=None
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
        distributions, groups=groups, several=True, reserved=("position", "uniform")
    )
    labels = check_first_error(first_error, sample.X)
    sample = sample.take(labels >= 0)
    labels = labels[labels >= 0]
    X = sample.X
    task = sample.groups
    no_signal = X.with_cells(np.zeros(len(X.cells)))
    position = FirstErrorLocator().fit_transform(no_signal, labels, task)
    share = np.repeat((labels > 0).mean() / X.lengths, X.lengths)
    named = sample.traces | {"position": position, "uniform": X.with_cells(share)}
    scores = {name: first_error_samples(labels, P) for name, P in named.items()}
    window = FirstErrorWindow()
    of_runs = {
        name: {
            "log_score": scores[name].mean(),
            "steps_read": np.nanmean(reading_cost(labels, P)),
            "window": run_totals(window.fit_transform(P, labels, groups=task))[labels > 0].mean(),
        }
        for name, P in named.items()
    }
    margins = compare_predictors(
        scores, reference="position", groups=task, random_state=random_state
    ).set_index("predictor")
    table = pd.DataFrame(of_runs).T.rename_axis("locator")
    table = table.join(margins[["difference", "low", "high"]])
    return table.assign(beats_position=table["low"] > 0)
