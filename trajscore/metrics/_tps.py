"""Trajectory Proper Scores: is a trace of forecasts truthful at every step?"""

from __future__ import annotations

import warnings
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from trajscore.core.array import TrajectoryArray
from trajscore.core.checks import check_sample_weight
from trajscore.core.sample import check_forecasts
from trajscore.core.type_aliases import FloatArray, IntArray
from trajscore.core.values import as_horizon
from trajscore.core.weights import Weights, get_schedule
from trajscore.metrics._proper_scores import get_family

# Cells worked on at a time: all temporaries of a chunk together stay inside a core's cache.
_CHUNK_CELLS = 1 << 16


def tps_score(
    y_true: ArrayLike,
    traces: Any,
    *,
    score: Any = "log",
    weights: Weights = "linear_front",
    sample_weight: ArrayLike | None = None,
) -> float:
    """Mean Trajectory Proper Score; higher is better.

    TPS(F, y) = sum over t of w_t S(F_t, y). For a graded outcome y in [0, 1] the score is
    y S(F_t, 1) + (1 - y) S(F_t, 0).

    Parameters
    ----------
    y_true : array-like of shape (n_runs,)
        Outcomes: 1 success, 0 failure, or a grade or probability in [0, 1].
    traces : TrajectoryArray or array-like of shape (n_runs, T_max)
        Forecasts of success in [0, 1], one a step; trailing NaN of a plain array is padding.
    score : "log", "brier", ("beta", a, b) or object, default="log"
        Score family, in nats for "log"; an object needs ``success(p)`` and ``failure(p)``, which
        give S(p, 1) and S(p, 0) for an array of forecasts.
    weights : str or callable, default="linear_front"
        Step weights: "linear_front" 2(T-t+1)/(T(T+1)), "uniform" 1/T, "exponential_front"
        2^-(t-1)/(2(1-2^-T)), "linear_back" 2t/(T(T+1)), or a function from a horizon T to T
        weights, which are divided by their sum. T is the length of a run that came to its end;
        where the horizon of one with an outcome is larger, its weights add up to less than 1,
        and a warning says so.
    sample_weight : array-like of shape (n_runs,), optional
        Weight of each run.

    Returns
    -------
    float
        The (weighted) mean over runs.

    Raises
    ------
    ValueError
        If a forecast lies outside [0, 1], an outcome was not observed, or there are no runs.

    See Also
    --------
    tps_samples : The score of every run.
    censored_tps_score : For runs whose outcome was not observed.
    make_tps_scorer : The same for model selection.

    References
    ----------
    Raghu et al. (2026), Proper Scoring Rules for Agentic Uncertainty Quantification, Eq. 2 and
    Theorem 4.1: the expected score is highest, and only highest, for the true q_t.

    Examples
    --------
    A base-rate forecast on a set with 84.2% successes scores -0.436 nats:

    >>> import numpy as np
    >>> y = np.arange(1000) < 842
    >>> round(tps_score(y, np.full((1000, 5), 0.842)), 3)
    -0.436
    """
    y, X = check_scored(y_true, traces)
    weight = check_sample_weight(sample_weight, len(X))
    return average(run_scores(y, X, score, weights), weight)


def tps_samples(
    y_true: ArrayLike, traces: Any, *, score: Any = "log", weights: Weights = "linear_front"
) -> FloatArray:
    """Trajectory Proper Score of every run; higher is better.

    Parameters
    ----------
    y_true, traces, score, weights : array-likes, score family and step weights
        As in `tps_score`, which is the mean.

    Returns
    -------
    ndarray of shape (n_runs,)
        The score of each run.

    Raises
    ------
    ValueError
        If a forecast lies outside [0, 1] or an outcome was not observed.

    References
    ----------
    Raghu et al. (2026), Proper Scoring Rules for Agentic Uncertainty Quantification, Eq. 2.

    Examples
    --------
    >>> tps_samples([1, 0], [[0.5, 0.5], [0.9, 0.1]], score="brier", weights="uniform")
    array([-0.25, -0.41])
    """
    y, X = check_scored(y_true, traces)
    return run_scores(y, X, score, weights)


def check_scored(
    y_true: ArrayLike, traces: Any, *, allow_censored: bool = False
) -> tuple[NDArray[Any], TrajectoryArray]:
    """Check outcomes and forecasts, and warn of horizons beyond the end of observed runs."""
    y, X = check_forecasts(y_true, traces, allow_censored=allow_censored)
    horizon = as_horizon(X.horizon, X.lengths)
    beyond = (horizon > X.lengths) & ((y == 0) | (y == 1))
    if beyond.any():
        row = int(np.argmax(beyond))
        warnings.warn(
            f"row {row}: the outcome was observed after {X.lengths[row]} steps, but the horizon is "
            f"{horizon[row]} ({int(beyond.sum())} such runs): weights are shared out over steps "
            f"that never came; the horizon of a run that came to its end is its length",
            UserWarning,
            stacklevel=3,
        )
    return y, X


def run_scores(y: ArrayLike, X: TrajectoryArray, score: Any, weights: Weights) -> FloatArray:
    """Sum over t of w_t S(F_t, y) for each trusted run, in chunks of runs; y lies in [0, 1]."""
    family, schedule = get_family(score), get_schedule(weights)
    outcomes, offsets = np.asarray(y), X.offsets
    horizons, out = as_horizon(X.horizon, X.lengths), np.empty(len(X))
    for rows in row_chunks(offsets):
        starts = offsets[rows] - offsets[rows.start]
        lengths = np.diff(offsets[rows.start : rows.stop + 1])
        horizon = horizons[rows].astype(np.float64)
        cells = X.cells[offsets[rows.start] : offsets[rows.stop]]
        scored = score_cells(family, cells, outcomes[rows], lengths)
        scored *= schedule.cell_ramp(starts, lengths, horizon)
        out[rows] = np.add.reduceat(scored, starts) / schedule.total(horizon)
    return out


def average(samples: FloatArray, weight: FloatArray) -> float:
    """Mean over runs, of which there must be some."""
    if not len(samples):
        raise ValueError("there are no runs to score; give at least one")
    return float(np.average(samples, weights=weight))


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
        if hasattr(family, "observed"):
            return np.asarray(family.observed(p, np.repeat(1.0 - y, lengths)))
        return np.where(np.repeat(y == 1, lengths), family.success(p), family.failure(p))
    label = np.repeat(y.astype(np.float64), lengths)
    success, failure = family.success(p), family.failure(p)
    if np.isfinite(success).all() and np.isfinite(failure).all():
        return np.asarray(label * success + (1 - label) * failure)
    return earned(label, success) + earned(1 - label, failure)


def earned(weight: FloatArray, score: FloatArray) -> FloatArray:
    """Weigh scores of an outcome; one that never occurs costs nothing, however bad its score."""
    return np.multiply(weight, score, out=np.zeros_like(weight), where=weight > 0)
