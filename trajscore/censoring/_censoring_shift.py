"""What cutting runs off would do to their score, and by which way."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from trajscore.core.outcomes import CENSORED, FAILURE, SUCCESS, as_labels
from trajscore.core.run_sums import run_sums
from trajscore.core.sample import check_forecasts
from trajscore.core.values import as_count, as_horizon, as_lengths, is_iterable
from trajscore.core.weights import Horizon, Weights, as_step_weights


def censoring_shift(
    y_true: ArrayLike,
    traces: Any,
    lengths: ArrayLike,
    *,
    q_z: ArrayLike = 0.0,
    score: Any = "log",
    weights: Weights = "early",
    horizon: Horizon = None,
    sample_weight: ArrayLike | None = None,
) -> pd.DataFrame:
    """Say by outcome what cutting complete runs off does to their Trajectory Proper Score.

    A run that is cut loses the outcome and the rest of its steps. The first swaps its own outcome
    for `q_z` on the prefix, which moves the score either way; the second leaves out the forecasts
    of the rest. Where these are worse than those of the prefix, leaving them out raises the score.

    Parameters
    ----------
    y_true : array-like of shape (n_runs,)
        Outcomes, all observed: 1 success, 0 failure.
    traces : TrajectoryArray or array-like of shape (n_runs, T_max)
        Forecasts of success in [0, 1] up to the end of each run.
    lengths : int or array-like of int of shape (n_runs,)
        Steps that are kept, for all runs (a budget) or for each; shorter runs stay as they are.
    q_z : float or array-like of shape (n_runs,), default=0.0
        Continuation-success probability that stands for the outcome of a cut run; 0 is the simple
        censored score.
    score, weights, horizon, sample_weight : score family, step weights and array-like
        As in `trajscore.metrics.tps_score`.

    Returns
    -------
    DataFrame indexed by outcome: "failure", "success", "all"
        n_runs and n_cut, numbers of runs; complete and censored, mean scores before and after;
        shift = censored - complete = prefix_swap + tail_omission. Scores are of all runs of the
        outcome, cut or not; NaN where there are none. The tail omission is the share of the weight
        that is left out, times what the forecasts there score below those that are kept. With
        ``horizon="own"`` a cut run keeps the weights of its whole length, and an omitted tail never
        lowers the score, as in the paper.

    Raises
    ------
    ValueError
        If an outcome was not observed or is a grade, a length is not a whole number of at least 1,
        or `q_z` of a run that is cut lies outside [0, 1].

    See Also
    --------
    practice_shift : For runs that were really cut off.

    References
    ----------
    Raghu et al. (2026), Proper Scoring Rules for Agentic Uncertainty Quantification, Appendix I.1
    and Table 10.

    Examples
    --------
    >>> traces = [[0.8, 0.9, 0.9], [0.6, 0.4, 0.2], [0.7, 0.8]]
    >>> own = {"weights": "linear_front", "horizon": "own"}
    >>> censoring_shift([1, 0, 1], traces, 2, score="brier", **own).round(3).T
    outcome        failure  success    all
    n_runs           1.000    2.000  3.000
    n_cut            1.000    1.000  2.000
    complete        -0.240   -0.049 -0.113
    censored        -0.233   -0.332 -0.299
    shift            0.007   -0.283 -0.186
    prefix_swap      0.000   -0.283 -0.189
    tail_omission    0.007    0.001  0.003
    """
    sample = check_forecasts(y_true, traces, sample_weight=sample_weight, allow_soft=False)
    whole = sample.X
    y = sample.y
    n_steps: Any = as_lengths(lengths) if is_iterable(lengths) else as_count(lengths, "lengths")
    if np.ndim(n_steps) and len(n_steps) != len(whole):
        raise ValueError(f"lengths must be one number or {len(whole)}, got {len(n_steps)}")
    # with horizon="own" a prefix keeps the weights of the whole run
    short = whole.truncate(np.minimum(n_steps, whole.lengths)).with_horizon(
        as_horizon(whole.horizon, whole.lengths)
    )
    cut = short.lengths < whole.lengths
    labels = as_labels(np.where(cut, CENSORED, y), censored="q_z", q_z=q_z).value
    how = as_step_weights(weights, horizon)
    complete, prefix = (run_sums(y, X, score, how) for X in (whole, short))
    censored = run_sums(labels, short, score, how)
    masks = {"failure": y == FAILURE, "success": y == SUCCESS, "all": np.ones(len(y), dtype=bool)}
    rows = {}
    for name, here in masks.items():
        counts = {"n_runs": int(here.sum()), "n_cut": int((here & cut).sum())}
        weight = sample.weight[here]
        scores = [np.nan] * 3
        if weight.any():
            scores = [sums[here].mean(weight) for sums in (complete, prefix, censored)]
        whole_score, prefix_score, censored_score = scores
        rows[name] = counts | {
            "complete": whole_score,
            "censored": censored_score,
            "shift": censored_score - whole_score,
            "prefix_swap": censored_score - prefix_score,
            "tail_omission": prefix_score - whole_score,
        }
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis("outcome")
