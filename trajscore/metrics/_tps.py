"""Trajectory Proper Scores: is a trace of forecasts truthful at every step?"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from trajscore.core.array import TrajectoryArray
from trajscore.core.checks import check_sample_weight
from trajscore.core.outcomes import CENSORED
from trajscore.core.own_stops import refuse_own_stops
from trajscore.core.sample import check_forecasts
from trajscore.core.score_families import get_family
from trajscore.core.type_aliases import FloatArray, IntArray
from trajscore.core.values import as_flag, as_horizon
from trajscore.core.weights import Horizon, StepWeights, Weights, as_step_weights

# Cells worked on at a time: all temporaries of a chunk together stay inside a core's cache.
_CHUNK_CELLS = 1 << 16
NOTHING_COUNTS = "no step has a positive weight; at least one must count"


def tps_score(
    y_true: ArrayLike,
    traces: Any,
    *,
    score: Any = "log",
    weights: Weights = "early",
    horizon: Horizon = None,
    normalize: bool = True,
    sample_weight: ArrayLike | None = None,
) -> float:
    """Trajectory Proper Score of a set of runs; higher is better.

    The score of the forecasts of all steps, in which the forecast at step t counts w_t::

        sum over runs and steps of w_t S(F_t, y) / sum over runs and steps of w_t

    For a graded outcome y in [0, 1] the score is y S(F_t, 1) + (1 - y) S(F_t, 0).

    Parameters
    ----------
    y_true : array-like of shape (n_runs,)
        Outcomes: 1 success, 0 failure, or a grade or probability in [0, 1].
    traces : TrajectoryArray or array-like of shape (n_runs, T_max)
        Forecasts of success in [0, 1], one a step; trailing NaN of a plain array is padding.
    score : "log", "brier", ("beta", a, b) or object, default="log"
        Score family, in nats for "log"; an object needs ``success(p)`` and ``failure(p)``, which
        give S(p, 1) and S(p, 0) for an array of forecasts.
    weights : str or callable, default="early"
        Weight of the forecast at step t: "early" 1/sqrt(t), so that early ones count more and a
        run four times as long counts about twice; "uniform" 1; "exponential_front" 2^(1-t);
        "linear_back" t; "linear_front" H-t+1, which needs a horizon; or a function from the array
        of step numbers to as many numbers >= 0.
    horizon : int, "own" or None, default=None
        A number of steps H, over which weights add up to one; steps beyond it are not scored, and
        a warning counts them. ``horizon="own"`` with ``weights="linear_front"`` gives the numbers
        of the paper: the weights of each run add up to one over its own length (or the horizon
        that the container holds), and the score is the mean over runs.
    normalize : bool, default=True
        Whether to divide by the weights of the set. False gives the mean over runs of the weighted
        sum of each, for sets of fewer than 20 runs, such as small folds whose scores are averaged.
    sample_weight : array-like of shape (n_runs,), optional
        Weight of each run, known at its start.

    Returns
    -------
    float
        The score.

    Raises
    ------
    ValueError
        If a forecast lies outside [0, 1], an outcome was not observed, there are no runs, or the
        score, the weights or the horizon are unknown.

    Warns
    -----
    UserWarning
        If steps lie beyond the horizon, or with ``horizon="own"`` the horizon of an observed run
        beyond its end.

    See Also
    --------
    tps_samples : One number a run, for intervals and comparisons.
    censored_tps_score : For runs whose outcome was not observed.
    make_tps_scorer : The same for model selection.

    Notes
    -----
    Weights that depend on the step are known when the forecast is made. The expected sum is then
    highest, and only highest, for the true q_t = P(Y = 1 | history, still running at t), whatever
    the law of lengths and outcomes, and all predictors of a set share the divisor. Weights divided
    by a sum over the run's own length reward leaning towards how short runs end, unless the
    forecaster knows the length at the start (Remark A.4 of the paper).

    References
    ----------
    Raghu et al. (2026), Proper Scoring Rules for Agentic Uncertainty Quantification, Eq. 2 and
    Theorem 4.1, for weights that are fixed exogenously.

    Examples
    --------
    A base-rate forecast on a set with 84.2% successes scores -0.436 nats:

    >>> import numpy as np
    >>> y = np.arange(1000) < 842
    >>> round(tps_score(y, np.full((1000, 5), 0.842)), 3)
    -0.436
    """
    how = as_step_weights(weights, horizon)
    y, X = check_scored(y_true, traces, how)
    weight = check_sample_weight(sample_weight, len(X))
    sums = run_sums(y, X, score, how, normalize=as_flag(normalize, "normalize"))
    return sums.mean(weight)


def tps_samples(
    y_true: ArrayLike,
    traces: Any,
    *,
    score: Any = "log",
    weights: Weights = "early",
    horizon: Horizon = None,
    normalize: bool = True,
    sample_weight: ArrayLike | None = None,
) -> FloatArray:
    """Return one number a run whose mean is the Trajectory Proper Score; higher is better.

    Parameters
    ----------
    y_true, traces, score, weights, horizon, normalize : array-likes, score and step weights
        As in `tps_score`.
    sample_weight : array-like of shape (n_runs,), optional
        Weight of each run in that mean.

    Returns
    -------
    ndarray of shape (n_runs,)
        Pseudo-values: with N_i the weighted sum of the scores of run i and D_i that of its weights,
        R + (N_i - R D_i) / mean(D) for the score R of the set. Their mean is R, differences of two
        predictors on the same runs have the right mean and spread, and so have means over clusters.
        With ``horizon="own"`` or ``normalize=False``: N_i.

    Raises
    ------
    ValueError
        As in `tps_score`.

    See Also
    --------
    trajscore.inference.compare_predictors : Compares predictors by such numbers.

    References
    ----------
    Raghu et al. (2026), Proper Scoring Rules for Agentic Uncertainty Quantification, Eq. 2.

    Examples
    --------
    >>> y, traces = [1, 0], [[0.5, 0.5], [0.9, 0.1]]
    >>> tps_samples(y, traces, score="brier", weights="uniform")
    array([-0.25, -0.41])
    """
    how = as_step_weights(weights, horizon)
    y, X = check_scored(y_true, traces, how)
    weight = check_sample_weight(sample_weight, len(X))
    sums = run_sums(y, X, score, how, normalize=as_flag(normalize, "normalize"))
    return sums.samples(weight)


def check_scored(
    y_true: ArrayLike, traces: Any, weights: StepWeights, *, allow_censored: bool = False
) -> tuple[NDArray[Any], TrajectoryArray]:
    """Check outcomes and forecasts; warn of steps that do not count, or never came."""
    y, X = check_forecasts(y_true, traces, allow_censored=allow_censored)
    if (y == CENSORED).any():
        refuse_own_stops({"": X})
    weights.warn_unscored(X.lengths)
    if weights.is_own and X.horizon is not None:
        beyond = beyond_end(X) & ((y == 0) | (y == 1))
        if beyond.any():
            row = int(np.argmax(beyond))
            warnings.warn(
                f"row {row}: the outcome was observed after {X.lengths[row]} steps, but the "
                f"horizon is {X.horizon[row]} ({int(beyond.sum())} such runs): with horizon='own' "
                f"weights are shared out over steps that never came; the horizon of a run that "
                f"came to its end is its length",
                UserWarning,
                stacklevel=3,
            )
    return y, X


def beyond_end(X: TrajectoryArray) -> NDArray[np.bool_]:
    """Whether the horizon of each run lies beyond its last step."""
    return np.asarray(as_horizon(X.horizon, X.lengths) > X.lengths)


@dataclass(frozen=True)
class RunSums:
    """Weighted sum of scores of each run, and what the run adds to the divisor of a set's score.

    >>> sums = RunSums(np.array([-1.0, -3.0]), np.array([1.0, 2.0]))
    >>> round(sums.mean(np.ones(2)), 3), sums.samples().round(3)
    (-1.333, array([-1.111, -1.556]))
    """

    total: FloatArray
    divisor: FloatArray

    def mean(self, weight: FloatArray) -> float:
        """Score of the set, of which there must be some runs."""
        if not len(self.total):
            raise ValueError("there are no runs to score; give at least one")
        divisor = float((weight * self.divisor).sum())
        if not divisor:
            raise ValueError(NOTHING_COUNTS)
        return float((weight * self.total).sum() / divisor)

    def samples(self, weight: FloatArray | None = None) -> FloatArray:
        """Pseudo-values, whose mean is the score and which vary as it does."""
        if not len(self.total) or (self.divisor == 1).all():
            return self.total
        weight = np.ones(len(self.total)) if weight is None else weight
        mean = self.mean(weight)
        unit = float(np.average(self.divisor, weights=weight))
        return np.asarray(mean + (self.total - mean * self.divisor) / unit)

    def __sub__(self, other: RunSums) -> RunSums:
        return RunSums(self.total - other.total, self.divisor)

    def __getitem__(self, rows: Any) -> RunSums:
        return RunSums(self.total[rows], self.divisor[rows])


def run_sums(
    y: ArrayLike, X: TrajectoryArray, score: Any, weights: StepWeights, *, normalize: bool = True
) -> RunSums:
    """Sum over t of w_t S(F_t, y) for each trusted run, in chunks of runs; y lies in [0, 1]."""
    family, of_runs = get_family(score), weights.of(X)
    outcomes, offsets = np.asarray(y), X.offsets
    out = np.empty(len(X))
    for rows in row_chunks(offsets):
        cells = X.cells[offsets[rows.start] : offsets[rows.stop]]
        scored = score_cells(family, cells, outcomes[rows], of_runs.lengths[rows])
        out[rows] = of_runs.sums(scored, rows)
    return RunSums(out, of_runs.divisor(normalize))


def average(samples: FloatArray, weight: FloatArray) -> float:
    """Mean over runs, of which there must be some."""
    return RunSums(samples, np.ones(len(samples))).mean(weight)


def row_chunks(offsets: IntArray, n_cells: int = _CHUNK_CELLS) -> list[slice]:
    """Cut runs into slices of about `n_cells` cells, none empty; a longer run is one by itself."""
    marks = np.arange(0, offsets[-1], n_cells)
    edges = np.unique(np.append(np.searchsorted(offsets, marks), len(offsets) - 1))
    return [slice(int(a), int(b)) for a, b in pairwise(edges)]


def score_cells(
    family: Any, p: FloatArray, y: NDArray[Any], lengths: IntArray | int = 1
) -> FloatArray:
    """Score cells against outcomes in [0, 1], each of `lengths` cells; may be written to."""
    if ((y == 0) | (y == 1)).all():
        return np.asarray(family.observed(p, np.repeat(1.0 - y, lengths)))
    label = np.repeat(y.astype(np.float64), lengths)
    success, failure = family.success(p), family.failure(p)
    if np.isfinite(success).all() and np.isfinite(failure).all():
        return np.asarray(label * success + (1 - label) * failure)
    return earned(label, success) + earned(1 - label, failure)


def earned(weight: FloatArray, score: FloatArray) -> FloatArray:
    """Weigh scores of an outcome; one that never occurs costs nothing, however bad its score."""
    return np.multiply(weight, score, out=np.zeros_like(weight), where=weight > 0)
