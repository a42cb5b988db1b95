"""What can be said of a score, or of a verdict, when q_Z is known only to lie in a range."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from trajscore.core.outcomes import CENSORED, as_labels
from trajscore.core.run_sums import RunSums, contrast_sums, run_sums
from trajscore.core.sample import check_sample
from trajscore.core.type_aliases import FloatArray
from trajscore.core.weights import Horizon, StepWeights, Weights, as_step_weights


class TPSBounds(NamedTuple):
    """Smallest and largest score that some q_Z in the range gives, as `tps_bounds` describes."""

    low: float
    high: float
    q_low: FloatArray
    q_high: FloatArray


class BreakEven(NamedTuple):
    """The q_Z, common to all unobserved runs, at which two predictors score alike."""

    q: float
    difference_at_0: float
    difference_at_1: float

    @property
    def flips(self) -> bool:
        """Whether some common q_Z in [0, 1] changes the verdict."""
        return bool(np.isfinite(self.q))


def tps_bounds(
    y_true: ArrayLike,
    traces: Any,
    low: ArrayLike = 0.0,
    high: ArrayLike = 1.0,
    *,
    reference: Any = None,
    score: Any = "log",
    weights: Weights = "early",
    horizon: Horizon = None,
    sample_weight: ArrayLike | None = None,
) -> TPSBounds:
    """Sharp bounds of the mean censored score for q_Z anywhere in a range, run by run.

    The score is linear in each q_Z, so it is extreme at the ends of the ranges; which end is
    which depends on the sign of the run's sum of w_t {S(F_t, 1) - S(F_t, 0)}.

    Parameters
    ----------
    y_true, traces : array-like and TrajectoryArray
        Outcomes and forecasts, as in `trajscore.metrics.censored_tps_score`.
    low, high : float or array-like of shape (n_runs,), default=0.0, 1.0
        Range of q_Z of each unobserved run; other entries are not read.
    reference : TrajectoryArray or array-like of shape (n_runs, T_max), optional
        Another predictor's forecasts of the same runs, in the same order: bounds of the
        *difference* from its score. They are tighter than the difference of bounds, as both are
        scored with the same q_Z.
    score, weights, horizon : score family and step weights
        As in `trajscore.metrics.tps_score`.
    sample_weight : array-like of shape (n_runs,), optional
        Weight of each run.

    Returns
    -------
    TPSBounds
        low and high, both of which are attained; q_low and q_high, the q_Z that attain them, NaN
        for observed runs.

    Raises
    ------
    ValueError
        If a range is empty or leaves [0, 1], or the reference is of other runs.

    Notes
    -----
    No assumption on the stops is made if the ranges are [0, 1]. Sampling error comes on top.

    References
    ----------
    Manski (2003), Partial Identification of Probability Distributions.

    Examples
    --------
    >>> bounds = tps_bounds([1, -1], [[0.8, 0.8], [0.6, 0.6]], score="brier")
    >>> round(bounds.low, 3), round(bounds.high, 3), bounds.q_high
    (-0.2, -0.1, array([nan,  1.]))
    """
    how = as_step_weights(weights, horizon)
    y, base, slope, weight = _linear_form(y_true, traces, reference, sample_weight, score, how)
    lower, upper = (as_labels(y, censored="q_z", q_z=end).value for end in (low, high))
    censored = y == CENSORED
    crossed = censored & (lower > upper)
    if crossed.any():
        row = int(np.argmax(crossed))
        raise ValueError(
            f"row {row}: q_z cannot be at least {lower[row]:g} and at most {upper[row]:g}; give "
            f"low <= high"
        )
    worst = np.where(censored, np.where(slope > 0, lower, upper), np.nan)
    best = np.where(censored, np.where(slope > 0, upper, lower), np.nan)
    least, most = (
        RunSums(base.total + np.where(censored, q * slope, 0.0), base.divisor).mean(weight)
        for q in (worst, best)
    )
    return TPSBounds(least, most, worst, best)


def break_even_q(
    y_true: ArrayLike,
    traces: Any,
    other: Any,
    *,
    score: Any = "log",
    weights: Weights = "early",
    horizon: Horizon = None,
    sample_weight: ArrayLike | None = None,
) -> BreakEven:
    """Find the common q_Z at which the verdict between two predictors flips.

    Parameters
    ----------
    y_true : array-like of shape (n_runs,)
        Outcomes: 1 success, 0 failure, -1 not observed, or a grade in [0, 1].
    traces, other : TrajectoryArray or array-like of shape (n_runs, T_max)
        Forecasts of the two predictors, of the same runs in the same order.
    score, weights, horizon : score family and step weights
        As in `trajscore.metrics.tps_score`.
    sample_weight : array-like of shape (n_runs,), optional
        Weight of each run.

    Returns
    -------
    BreakEven
        q, the break-even point, NaN if there is none in [0, 1]; difference_at_0 and
        difference_at_1, the score of the first minus that of the second if all unobserved runs had
        failed, and if all had succeeded (linear in between); flips, whether there is such a point.

    Raises
    ------
    ValueError
        If every outcome was observed, or the predictors are of different runs.

    See Also
    --------
    tps_bounds : With ``reference=``, for q_Z that differ from run to run.

    Examples
    --------
    >>> break_even_q([1, -1], [[0.8], [0.6]], [[0.7], [0.3]], score="brier").q
    0.366...
    """
    how = as_step_weights(weights, horizon)
    y, base, slope, weight = _linear_form(y_true, traces, other, sample_weight, score, how)
    censored = y == CENSORED
    if not censored.any():
        raise ValueError("every outcome was observed; the verdict does not depend on any q_Z")
    at_0 = base.mean(weight)
    at_1 = at_0 + RunSums(np.where(censored, slope, 0.0), base.divisor).mean(weight)
    crosses = at_0 * at_1 <= 0 and at_0 != at_1
    return BreakEven(at_0 / (at_0 - at_1) if crosses else np.nan, at_0, at_1)


def _linear_form(
    y_true: ArrayLike,
    traces: Any,
    other: Any,
    sample_weight: ArrayLike | None,
    score: Any,
    weights: StepWeights,
) -> tuple[NDArray[Any], RunSums, FloatArray, FloatArray]:
    """Return outcomes, sums of runs at q_Z = 0, what these gain per q_Z, and weights of the runs.

    With two predictors they are differences of both.
    """
    predictors = {"traces": traces} | ({} if other is None else {"other": other})
    sample = check_sample(
        predictors,
        y_true,
        sample_weight=sample_weight,
        several=True,
        probabilities=True,
        single_channel=True,
    )
    y = sample.y
    failed = as_labels(y).value
    base, slope = np.zeros((2, len(sample)))
    for sign, X in zip((1, -1), sample.traces.values(), strict=False):
        base += sign * run_sums(failed, X, score, weights).total
        slope += sign * contrast_sums(X, score, weights).total
    return y, RunSums(base, weights.of(sample.X).divisor()), slope, sample.weight
