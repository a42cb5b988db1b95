"""Steps around the likeliest one that hold the first wrong step with a stated chance."""

from __future__ import annotations

import warnings
from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator

from trajscore.core.array import TrajectoryArray
from trajscore.core.checks import check_groups
from trajscore.core.estimator import TraceTransformer, check_estimator_input, like_input, require_y
from trajscore.core.ties import SUM_ROUNDING
from trajscore.core.type_aliases import FloatArray
from trajscore.core.values import as_fraction
from trajscore.core.within_runs import run_numbers, running_sum, step_numbers
from trajscore.metrics.first_error import (
    check_distributions,
    check_first_error,
    likeliest_steps,
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
        probability of a wrong step; infinite where there are fewer tasks than 1 / alpha - 1.

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

    def __init__(self, alpha: float = 0.1) -> None:
        self.alpha = alpha

    def fit(self, P: Any, first_error: Any, groups: ArrayLike | None = None) -> Self:
        """Learn how much probability a window has to hold.

        Parameters
        ----------
        P : TrajectoryArray or array-like of shape (n_runs, T_max)
            Probability of each step to be the first wrong one, by a locator that has not seen the
            run.
        first_error : array-like of int of shape (n_runs,), or TrajectoryArray
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
            If probabilities of a run add up to more than 1, or no labelled run has a wrong step.

        Warns
        -----
        UserWarning
            If there are so few tasks that each window is the whole run.
        """
        require_y(self, first_error)
        alpha = as_fraction(self.alpha, "alpha")
        traces = self._check(P, reset=True)
        share = check_first_error(first_error, traces).shares.cells
        task = np.arange(len(traces))
        if groups is not None:
            task = check_groups(groups, len(traces))
        wrong = np.flatnonzero(share)
        task = task[run_numbers(traces)[wrong]]
        of_task = np.bincount(task, share[wrong])
        n_tasks = np.count_nonzero(of_task)
        if not n_tasks:
            raise ValueError(
                f"no labelled run (n_samples = {len(traces)}) has a wrong step, so there is one "
                f"class and nothing to learn; give runs in which a step is wrong"
            )
        score = _mass_before(traces)[wrong]
        order = np.argsort(score)
        weight = share[wrong] / of_task[task] / (n_tasks + 1)
        place = np.searchsorted(np.cumsum(weight[order]), 1 - alpha - SUM_ROUNDING)
        self.limit_ = float(np.append(score[order], np.inf)[place])
        if np.isinf(self.limit_):
            warnings.warn(
                f"{n_tasks} tasks with a wrong step are too few for alpha = {alpha:g}, so each "
                f"window is the whole run. Label runs of at least "
                f"{int(np.ceil(1 / alpha - SUM_ROUNDING)) - 1} tasks, or raise alpha",
                UserWarning,
                stacklevel=2,
            )
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
        traces = self._check(P, reset=False)
        inside = _mass_before(traces) <= self.limit_ + SUM_ROUNDING
        window = traces.with_cells(inside.astype(np.float64), channels=self._output_channels)
        return like_input(window, P)

    @property
    def _output_channels(self) -> tuple[str]:
        return ("window",)

    def _check(self, P: Any, *, reset: bool) -> TrajectoryArray:
        return check_distributions(check_estimator_input(self, P, reset=reset, probabilities=True))


def _mass_before(P: TrajectoryArray) -> FloatArray:
    """Return for each step the share of probability that a window holds before it takes it in.

    A window that grows by its likelier neighbour takes steps in the order of the least probability
    between them and the likeliest step.
    """
    run = run_numbers(P)
    total = np.maximum(run_totals(P, P.cells), np.finfo(float).tiny)
    p = P.cells / total[run]
    distance = step_numbers(P) - likeliest_steps(P)[run]
    # of the steps before the likeliest one, from there backwards; of the others forwards
    sides = pd.DataFrame({"p": p, "run": run, "is_before": distance < 0})
    least, least_backwards = (
        table.groupby(["run", "is_before"])["p"].cummin().sort_index().to_numpy()
        for table in (sides, sides[::-1])
    )
    least = np.where(distance < 0, least_backwards, least)
    order = np.lexsort((np.abs(distance), distance > 0, -least, run))
    before = np.empty(len(p))
    before[order] = running_sum(P, p[order]) - p[order]
    return before
