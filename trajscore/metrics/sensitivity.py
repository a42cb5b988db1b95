"""How much of a verdict hangs on the score family and the step weights."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from trajscore.core.array import TrajectoryArray
from trajscore.core.checks import check_forecasts
from trajscore.core.score_families import USUAL_SCORES, family_name
from trajscore.core.ties import group_ties
from trajscore.core.type_aliases import FloatArray, IntArray
from trajscore.core.values import several
from trajscore.core.weights import Horizon, RunSums, StepWeights, Weights, run_sums, schedules_of

BASE_RATE = "base rate"


def tps_sensitivity(
    y_true: ArrayLike,
    traces: Any,
    *,
    scores: Sequence[Any] = USUAL_SCORES,
    weights: Sequence[Weights] | None = None,
    horizon: Horizon = None,
    sample_weight: ArrayLike | None = None,
) -> pd.DataFrame:
    """Score and rank predictors by every score family and weight schedule.

    The schedule is the analyst's choice, and nothing in the data says which is right: a verdict
    that another schedule reverses is one about the schedule too.

    Parameters
    ----------
    y_true : array-like of shape (n_runs,)
        Outcomes: 1 success, 0 failure, or a grade in [0, 1].
    traces : dict of str to traces, or TrajectoryArray or array-like of shape (n_runs, T_max)
        Forecasts of success in [0, 1], one a step, for each predictor: the items of a dict, or the
        channels of a container.
    scores : sequence of score families, default=("log", "brier", ("beta", 4, 2))
        Families, as in `tps_score`.
    weights : sequence of str or callable, optional
        Step weights. Default: all schedules that need no horizon, or with one all.
    horizon : int, "own" or None, default=None
        Of all these, as in `tps_score`; "own" is the convention of the paper's tables.
    sample_weight : array-like of shape (n_runs,), optional
        Weight of each run.

    Returns
    -------
    DataFrame indexed by predictor, score, weights
        score: the Trajectory Proper Score; margin: what it is above that of the best constant, the
        base rate over forecasts, which is a predictor too; rank: 1 for the best, ties share a rank;
        rank_flip and sign_flip: whether the rank, or the sign of the margin, is another than under
        the first of `scores` and `weights`.

    Raises
    ------
    ValueError
        If there are no runs, a forecast lies outside [0, 1], an outcome was not observed, or
        predictors are not of the same runs in the same order.

    See Also
    --------
    trajscore.inference.compare_predictors : Tells whether a flip is more than chance.
    trajscore.censoring.practice_shift : The same where some outcomes were not observed.

    Notes
    -----
    Forecasts are taken as they are: one that was calibrated with the weights of one schedule is at
    home there.

    References
    ----------
    Raghu et al. (2026), Proper Scoring Rules for Agentic Uncertainty Quantification, Appendix I.

    Examples
    --------
    >>> late = {"early bird": [[0.9, 0.6], [0.2, 0.5]], "late riser": [[0.5, 0.9], [0.6, 0.1]]}
    >>> table = tps_sensitivity([1, 0], late, scores=["brier"], horizon="own")
    >>> table.loc["early bird", ["score", "rank", "rank_flip"]].round(3)
                             score  rank  rank_flip
    score weights
    brier early             -0.100     1      False
          uniform           -0.115     1      False
          linear_front      -0.085     1      False
          exponential_front -0.085     1      False
          linear_back       -0.145     2       True
    """
    sample = check_forecasts(
        y_true, traces, sample_weight=sample_weight, several=True, reserved=[BASE_RATE]
    )
    if not len(sample):
        raise ValueError("there are no runs to score; give at least one")
    scores = several(scores, family_name, "scores")
    schedules = schedules_of(weights, horizon)
    schedules[0].of(sample.X).warn_unscored(stacklevel=2)
    y = np.asarray(sample.y, dtype=float)
    forecasts = {name: [X] * len(schedules) for name, X in sample.traces.items()}
    index, sums = panel_sums(y, forecasts, scores, schedules, sample.weight)
    table = pd.DataFrame({"score": [of_runs.mean(sample.weight) for of_runs in sums]}, index=index)
    wide = table["score"].to_numpy().reshape(len(forecasts), -1)
    margin = wide - wide[-1]
    rank = ranks(wide)
    sign = rank[-1] - rank  # that of the margin, where rounding is no difference
    table["margin"] = margin.ravel()
    table["rank"] = rank.ravel()
    table["rank_flip"] = (rank != rank[:, :1]).ravel()
    table["sign_flip"] = (sign * sign[:, :1] < 0).ravel()
    return table


def panel_sums(
    labels: FloatArray,
    forecasts: dict[str, list[TrajectoryArray]],
    scores: Sequence[Any],
    schedules: Sequence[StepWeights],
    run_weight: FloatArray | None = None,
) -> tuple[pd.MultiIndex, list[RunSums]]:
    """Return sums of runs for each predictor, score and schedule, with their names.

    `forecasts` has the traces of a predictor for each schedule; those of the base rate are added.
    """
    X = next(iter(forecasts.values()))[0]
    forecasts[BASE_RATE] = [
        X.with_cells(np.full(len(X.cells), how.of(X).rate(labels, run_weight))) for how in schedules
    ]
    sums = [
        run_sums(labels, trace, score, how)
        for traces, score in product(forecasts.values(), scores)
        for trace, how in zip(traces, schedules, strict=True)
    ]
    # the order of names is the order of the levels
    names = [list(forecasts), [family_name(score) for score in scores]]
    names.append([how.schedule_name for how in schedules])
    codes = np.indices([len(level) for level in names]).reshape(len(names), -1)
    order = ["predictor", "score", "weights"]
    return pd.MultiIndex(levels=names, codes=list(codes), names=order), sums


def ranks(scores: FloatArray) -> IntArray:
    """Return the rank of each score in its column, 1 for the highest; ties have the best rank."""
    group = np.stack([group_ties(column)[1] for column in scores.T], axis=1)
    return 1 + (group > group[:, None]).sum(axis=1)
