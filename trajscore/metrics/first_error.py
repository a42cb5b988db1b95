"""The first wrong step of a run: its labels, scores of a distribution over steps, and its use."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from trajscore.core.array import TrajectoryArray
from trajscore.core.checks import check_sample_weight, check_trajectories
from trajscore.core.ids import check_index, check_same_runs
from trajscore.core.score_families import CLIP
from trajscore.core.ties import group_ties
from trajscore.core.type_aliases import BoolArray, FloatArray, IntArray
from trajscore.core.values import (
    UNIT_ROUNDING,
    check_choice,
    first_true,
    number_of,
    one_per_run,
    run_label,
)
from trajscore.core.within_runs import run_maxima, run_numbers, running_sum, step_numbers
from trajscore.metrics._scorers import TPSScorer

_SCORES = ("log", "rps")


class FirstErrors(NamedTuple):
    """Labels of checked runs."""

    shares: TrajectoryArray  # of annotators that say of a step that it is the first wrong one
    labelled: BoolArray  # of the other runs all shares are 0

    @property
    def none(self) -> FloatArray:
        """Share of annotators that say of a run that no step is wrong."""
        return np.maximum(self.labelled - run_totals(self.shares, self.shares.cells), 0.0)


def run_totals(X: TrajectoryArray, values: FloatArray) -> FloatArray:
    """Return the sum of each run's values."""
    return np.add.reduceat(values, X.offsets[:-1]) if len(X) else np.empty(0)


def check_first_error(first_error: Any, X: TrajectoryArray) -> FirstErrors:
    """Return the labels of runs, or say of which run a label cannot be."""
    if isinstance(first_error, TrajectoryArray):
        check_same_runs(first_error, X, "first_error", "X")
        shares = check_distributions(first_error, "first_error")
        return FirstErrors(shares, np.ones(len(X), dtype=bool))
    check_index(first_error, X.ids, "first_error")
    steps = one_per_run(first_error, "first_error", len(X))
    is_label = (steps >= -1) & (steps <= X.lengths) & (steps == np.floor(steps))
    row = first_true(~is_label)
    if row is not None:
        raise ValueError(
            f"run {run_label(X.ids[row])} (row {row}): first_error is {steps[row]:g}, but the run "
            f"has {number_of(X.lengths[row], 'step')}; give the number of a step from 1, 0 where "
            f"no step is wrong, or -1 where the run is not labelled"
        )
    is_first = step_numbers(X) == np.repeat(steps, X.lengths)
    return FirstErrors(X.with_cells(is_first.astype(np.float64)), steps >= 0)


def check_distributions(P: Any, name: str = "P") -> TrajectoryArray:
    """Return probabilities of the steps of runs, which add up to 1 at most."""
    traces = check_trajectories(P, probabilities=True, single_channel=True)
    total = run_totals(traces, traces.cells)
    row = first_true(total > 1 + UNIT_ROUNDING)
    if row is not None:
        raise ValueError(
            f"run {run_label(traces.ids[row])} (row {row}): the probabilities in {name} add up to "
            f"{total[row]:g}, more than 1; give for each step the probability that it is the first "
            f"wrong one"
        )
    return traces


def likeliest_steps(P: TrajectoryArray) -> IntArray:
    """Return the likeliest step of each run, the first of several."""
    largest = run_maxima(P, P.cells)
    is_largest = P.cells == np.repeat(largest, P.lengths)
    run, cell = np.unique(run_numbers(P)[is_largest], return_index=True)
    return np.flatnonzero(is_largest)[cell] - P.offsets[run] + 1


def first_error_samples(first_error: Any, P: Any, *, score: str = "log") -> FloatArray:
    r"""Score the distribution of each run over its steps and "no step is wrong"; higher is better.

    Parameters
    ----------
    first_error : array-like of int of shape (n_runs,), or TrajectoryArray
        First wrong step of each run, counted from 1; 0 where no step is wrong, -1 where the run is
        not labelled. Or, of several annotators, the share that says so of each step; the rest says
        that no step is wrong.
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
    probability score of a run of T steps is :math:`\sum_t (G_t - 1[F \le t])^2 / T`. Shares of
    annotators count as so many runs.

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
    check_choice(score, "score", _SCORES)
    traces = check_distributions(P)
    labels = check_first_error(first_error, traces)
    p = traces.cells
    shares = labels.shares.cells
    if score == "log":
        rest = 1 - run_totals(traces, p)
        values = run_totals(traces, shares * np.log(np.maximum(p, CLIP)))
        values += labels.none * np.log(np.maximum(rest, CLIP))
    else:
        wrong_by_now = running_sum(traces, shares)
        error = (running_sum(traces, p) - wrong_by_now) ** 2
        # where annotators differ, the mean over them
        error += wrong_by_now * (1 - wrong_by_now)
        values = -run_totals(traces, error) / traces.lengths
    return np.where(labels.labelled, values, np.nan)


def first_error_score(
    first_error: Any, P: Any, *, score: str = "log", sample_weight: ArrayLike | None = None
) -> float:
    """Mean score of distributions over the first wrong step; higher is better.

    Parameters
    ----------
    first_error, P, score : labels, distributions and score
        As in `first_error_samples`, of which this is the mean over labelled runs.
    sample_weight : array-like of shape (n_runs,), optional
        Weight of each run.

    Returns
    -------
    float
        The score.

    Raises
    ------
    ValueError
        As `first_error_samples`, or if no run is labelled.

    Examples
    --------
    >>> from trajscore.metrics import first_error_score
    >>> round(first_error_score([2, 0, -1], [[0.2, 0.5], [0.2, 0.3], [0.1, 0.1]]), 2)
    -0.69
    """
    samples = first_error_samples(first_error, P, score=score)
    weight = check_sample_weight(sample_weight, len(samples))
    labelled = ~np.isnan(samples)
    if not weight[labelled].any():
        raise ValueError("no run is labelled; give the first wrong step of some, or 0")
    return float(np.average(samples[labelled], weights=weight[labelled]))


def reading_cost(first_error: Any, P: Any) -> FloatArray:
    """Count the steps that a person reads, the likeliest first, up to the first wrong one.

    Parameters
    ----------
    first_error, P : labels and distributions
        As in `first_error_samples`. Equally likely steps are read in random order.

    Returns
    -------
    ndarray of shape (n_runs,)
        Number of steps, a mean where there is chance or annotators differ; NaN where no step is
        wrong, or the run is not labelled.

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
    shares = check_first_error(first_error, traces).shares.cells
    place = pd.Series(group_ties(-traces.cells)[1]).groupby(run_numbers(traces)).rank().to_numpy()
    wrong = run_totals(traces, shares)
    cost = run_totals(traces, shares * place)
    return np.divide(cost, wrong, out=np.full(len(traces), np.nan), where=wrong > 0)


class FirstErrorScorer(TPSScorer):
    """Scores the distributions that a locator's ``transform`` gives."""

    __name__ = first_error_score.__name__
    maker = "make_first_error_scorer"

    def __call__(  # type: ignore[override]
        self, estimator: Any, X: Any, y: Any, *, sample_weight: ArrayLike | None = None
    ) -> float:
        """Return the score of a fitted locator on labels of the first wrong step."""
        P = estimator.transform(X)
        return first_error_score(y, P, sample_weight=sample_weight, **self.options)


def make_first_error_scorer(score: str = "log") -> FirstErrorScorer:
    """Make a scorer of locators of the first wrong step, for searches; higher is better.

    Parameters
    ----------
    score : {"log", "rps"}, default="log"
        As in `first_error_samples`.

    Returns
    -------
    callable
        ``scorer(locator, X, first_error)``; takes ``sample_weight`` by metadata routing, or
        directly when routing is off.

    Raises
    ------
    ValueError
        If the score is unknown.

    See Also
    --------
    trajscore.localization.FirstErrorLocator : A locator.

    Examples
    --------
    >>> from sklearn.model_selection import GridSearchCV, GroupKFold
    >>> from trajscore.datasets import load_who_and_when
    >>> from trajscore.localization import FirstErrorLocator
    >>> from trajscore.metrics import make_first_error_scorer
    >>> data = load_who_and_when()
    >>> scorer = make_first_error_scorer("rps")
    >>> search = GridSearchCV(FirstErrorLocator(), {"live": [True, False]}, scoring=scorer,
    ...                       cv=GroupKFold(3))
    >>> search.fit(data.data, data.target, groups=data.data.meta["question"]).best_params_
    {'live': False}
    """
    check_choice(score, "score", _SCORES)
    return FirstErrorScorer(score=score)
