"""Which runs to label next, and how many."""

from __future__ import annotations

import math
from typing import Any, Self

import numpy as np
from scipy.special import ndtri
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from trajscore.core.array import TrajectoryArray
from trajscore.core.checks import check_sample
from trajscore.core.estimator import check_estimator_input
from trajscore.core.outcomes import CENSORED
from trajscore.core.policy import MIN_LABELS
from trajscore.core.score_families import get_family
from trajscore.core.values import (
    ArrayLike,
    FloatArray,
    IntArray,
    as_count,
    as_fraction,
    as_within,
    number_of,
)
from trajscore.core.weights import Horizon, Weights, as_step_weights, collapse
from trajscore.inference._labels import (
    FewLabels,
    above_constant,
    best_constant,
    check_label_probability,
    check_verdict,
    score_of_outcomes,
    weighted_rate,
)

# Shares of the draw that are uniform: a third, so that the forecast learns from all kinds of runs,
# and of the rest three tenths, so that no run weighs too much.
_UNIFORM = 1 / 3 + 2 / 3 * 0.3


class LabelDesign(BaseEstimator):
    """Choose which runs to label, with known probabilities.

    Runs whose outcome is hard to forecast and moves the margin far are more likely to be chosen.
    Every run has a chance, so that `label_intervals` holds whatever the judge is worth.

    Parameters
    ----------
    n_labels : int, default=100
        Number of runs to label in this batch.
    score, weights, horizon : score family and step weights
        Of the Trajectory Proper Score whose margin over the best constant is to be known best, as
        in `trajscore.metrics.tps_score`. The labels serve the score and the success rate as well.
    random_state : int, RandomState instance or None, default=None
        Seed of the draw.

    Attributes
    ----------
    rows_ : ndarray of int
        Rows that were drawn, in rising order.
    probabilities_ : ndarray of shape (n_runs,)
        The `label_probability` of each run, to be kept with its label. Of runs that were labelled
        in earlier batches it replaces the one that they had.
    n_channels_in_ : int
        Number of channels.

    See Also
    --------
    label_intervals : What the labels say.
    labels_needed : How many labels an interval of a given width takes.

    Notes
    -----
    With g the forecast of a run's outcome, a run's probability is proportional to .53 plus .47
    times the margin's slope in the run's outcome times sqrt(g (1 - g)), over its mean. Before there
    are labels, g is the mean of the judge's verdict and the last forecast, neither taken to be
    surer than .97; with 20 labels it is fitted to them. Runs are drawn systematically in the order
    of g, so that each batch has some of all kinds.

    A batch may depend on the labels of those before it. Each batch gives an unbiased estimate, in
    which earlier labels count as they are; ``probabilities_`` weighs batches by their sizes.

    References
    ----------
    Sarndal, Swensson and Wretman (1992), Model Assisted Survey Sampling, sections 3.6 and 12.2;
    Zrnic and Candes (2024), Active Statistical Inference.

    Examples
    --------
    >>> import numpy as np
    >>> from trajscore.datasets import make_trajectories
    >>> runs = make_trajectories(1000, random_state=0)
    >>> judge = runs.data.cells[runs.data.offsets[1:] - 1] > 0.5
    >>> design = LabelDesign(n_labels=50, random_state=0).fit(runs.data, judge=judge)
    >>> rows = design.query()
    >>> len(rows)
    50

    Read these runs, and keep each label with its probability:

    >>> y = np.full(1000, -1)
    >>> y[rows] = runs.target[rows]
    >>> probability = design.probabilities_

    Later, 30 more:

    >>> more = LabelDesign(n_labels=30, random_state=1)
    >>> more = more.fit(runs.data, y, judge=judge, label_probability=probability)
    >>> len(np.intersect1d(more.query(), rows))
    0
    """

    def __init__(
        self,
        n_labels: int = 100,
        score: Any = "log",
        weights: Weights = "early",
        horizon: Horizon = None,
        random_state: Any = None,
    ) -> None:
        self.n_labels = n_labels
        self.score = score
        self.weights = weights
        self.horizon = horizon
        self.random_state = random_state

    def fit(
        self,
        X: Any,
        y: ArrayLike | None = None,
        *,
        judge: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        label_probability: ArrayLike | None = None,
    ) -> Self:
        """Draw runs to label.

        Parameters
        ----------
        X : TrajectoryArray or array-like of shape (n_runs, T_max)
            One trace a run. Of a signal that leaves [0, 1] the success rate is to be known best.
        y : array-like of shape (n_runs,), optional
            Labels of earlier batches: 1 success, 0 failure, -1 not labelled.
        judge : array-like of shape (n_runs,), optional
            A judge's verdict on every run: 0 or 1, or a grade in [0, 1].
        groups : array-like of shape (n_runs,), optional
            Clusters of runs, which stay whole where the forecast is fitted to earlier labels.
        label_probability : array-like of shape (n_runs,), optional
            ``probabilities_`` of the batch before; needed with `y`.

        Returns
        -------
        LabelDesign
            The design, with the rows that were drawn.

        Raises
        ------
        ValueError
            If a parameter cannot be used, or no run is left to label.
        """
        n_labels = as_count(self.n_labels, "n_labels")
        rng = check_random_state(self.random_state)
        traces = check_estimator_input(self, X, reset=True)
        if y is None:
            y = np.full(len(traces), CENSORED)
        sample = check_sample(traces, y, groups=groups, allow_soft=False)
        labelled = sample.y != CENSORED
        if labelled.all():
            raise ValueError("every run is labelled; there is none left to choose")
        if labelled.any() and label_probability is None:
            raise ValueError(
                "y has labels, but label_probability is not given; pass probabilities_ of the "
                "batch before, by which those runs were chosen"
            )
        before = np.ones(len(sample))
        if label_probability is not None:
            before = check_label_probability(label_probability, sample.y)
        order = sample.id_order()
        ordered = sample.take(order)
        verdict = check_verdict(judge, order)
        # so sure is a judge, or a trace, taken to be before there are labels
        guesses = [] if verdict is None else [verdict]
        if ordered.X.is_within_unit():
            guesses.append(collapse(ordered.X, "last"))
        forecast = np.full(len(order), 0.5)
        if guesses:
            forecast = np.mean(np.clip(guesses, 0.03, 0.97), axis=0)
        if labelled.sum() >= MIN_LABELS:
            forecast = FewLabels.of(ordered, before[order], verdict).forecast
        sizes = self._sizes(ordered.X, forecast)
        left = np.flatnonzero(ordered.y == CENSORED)
        n_drawn = min(n_labels, len(left))
        n_before = len(sample) - len(left)
        # weight of this batch among all; at least the mean chance, as no chance may exceed it
        share = max(n_drawn / (n_before + n_drawn), n_drawn / len(left))
        mean = sizes[left].mean()
        relative = sizes[left] / mean if mean > 0 else np.ones(len(left))
        chance = capped(_UNIFORM + (1 - _UNIFORM) * relative, n_drawn, share)
        row = np.lexsort((rng.random_sample(len(left)), forecast[left]))
        edges = np.cumsum(chance[row]) * (n_drawn / chance.sum())
        marks = rng.random_sample() + np.arange(n_drawn)
        at = np.minimum(np.searchsorted(edges, marks, side="right"), len(left) - 1)
        self.rows_ = np.sort(order[left[row[at]]])
        self.probabilities_ = 1 / ((1 - share) / before + share)  # of all batches together
        self.probabilities_[order[left]] = chance / share
        return self

    def query(self) -> IntArray:
        """Return the rows to label, in rising order."""
        check_is_fitted(self)
        return self.rows_.copy()

    def _sizes(self, X: TrajectoryArray, forecast: FloatArray) -> FloatArray:
        """Return how far each run's outcome, not known, is expected to move the margin."""
        metric = weighted_rate(np.ones(len(X)))
        if X.is_within_unit():
            family = get_family(self.score)
            score = score_of_outcomes(X, family, as_step_weights(self.weights, self.horizon))
            metric = above_constant(score, family, best_constant(score).value(forecast))
        return abs(metric.slope(forecast)) * np.sqrt(forecast * (1 - forecast))


def labels_needed(
    half_width: float,
    *,
    n_runs: int,
    success_rate: float = 0.5,
    sensitivity: float = 0.5,
    specificity: float = 0.5,
    confidence_level: float = 0.95,
) -> int:
    r"""Return how many labels it takes until the interval of the success rate is short enough.

    Parameters
    ----------
    half_width : float
        Half the width of the interval: 0.05 is 5 points.
    n_runs : int
        Number of runs.
    success_rate : float, default=0.5
        What it is expected to be.
    sensitivity, specificity : float, default=0.5
        Share of successes, and of failures, on which the judge is expected to be right. At .5 it
        says nothing; `label_intervals` has the shares on which it was wrong.
    confidence_level : float, default=0.95
        Level of the interval.

    Returns
    -------
    int
        Number of labels, at least 20 and at most all runs.

    Raises
    ------
    ValueError
        If labels of all runs would not do, so that more runs are needed.

    See Also
    --------
    runs_needed : How many runs a comparison takes.

    Notes
    -----
    The variance is that of all runs being labelled, plus :math:`K (1/n - 1/N)` for n labels of N
    runs. K is the mean of p (1 - p) with p the success rate among the runs of each verdict.

    Examples
    --------
    >>> labels_needed(0.05, n_runs=2000)
    387
    >>> labels_needed(0.05, n_runs=2000, sensitivity=0.9, specificity=0.8)
    217
    """
    level = as_fraction(confidence_level, "confidence_level")
    as_within(half_width, "half_width", 0, 0.5)
    n = as_count(n_runs, "n_runs", 2)
    rate = as_fraction(success_rate, "success_rate")
    passed = as_fraction(sensitivity, "sensitivity")
    refused = as_fraction(specificity, "specificity")
    of_runs = rate * (1 - rate) / n
    success = rate * np.array([passed, 1 - passed])  # by verdict
    failure = (1 - rate) * np.array([1 - refused, refused])
    # variance of outcomes among the runs of one verdict
    of_labels = (success * failure / (success + failure)).sum()
    z = ndtri((1 + level) / 2)
    spare = (half_width / z) ** 2 - of_runs
    if spare <= 0:
        least = z * math.sqrt(of_runs)
        raise ValueError(
            f"labels of all {number_of(n, 'run')} would give a half-width of {least:.3g}, more "
            f"than {half_width:g}; collect more runs"
        )
    # the variance is estimated, which costs z^2 / 2 labels (Guenther 1981)
    needed = math.ceil(1 / (spare / of_labels + 1 / n) + z**2 / 2) if of_labels > 0 else 0
    return min(max(needed, MIN_LABELS), n)


def capped(sizes: FloatArray, total: float, cap: float) -> FloatArray:
    """Return numbers that add up to `total`, proportional to sizes where they are below `cap`."""
    out = np.full(len(sizes), cap)
    free = np.ones(len(sizes), dtype=bool)
    while free.any():
        room = total - cap * (len(sizes) - free.sum())
        scaled = sizes * (room / sizes[free].sum())
        over = free & (scaled > cap)
        if not over.any():
            out[free] = scaled[free]
            break
        free &= ~over
    return np.minimum(out, cap)
