"""Find the forecasts of given runs, and refuse those that q_Z must not be learnt from."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.stats import rankdata

from trajscore.core.array import TrajectoryArray
from trajscore.core.checks import check_trajectories
from trajscore.core.ids import are_default_ids, check_same_runs
from trajscore.core.sample import check_sample
from trajscore.core.type_aliases import FloatArray
from trajscore.core.values import run_label

# a recalibration, cross-fitted or not, keeps the ranks of a forecast up to a few ties
_SAME_RANKS = 0.999


def forecasts_of(ids: NDArray[Any], traces: Any, of: str = "fit") -> TrajectoryArray:
    """Return forecasts in the order of `ids`; default ids are paired with others by position."""
    X = check_trajectories(traces, probabilities=True, single_channel=True)
    known = pd.Index(X.ids)
    if known.is_unique:
        rows = known.get_indexer(pd.Index(ids))
        if (rows >= 0).all():
            return X[rows]
    if len(X) != len(ids):
        raise ValueError(f"there are {len(X)} traces for the {len(ids)} runs of {of}")
    if known.equals(pd.Index(ids)) or are_default_ids(ids) or are_default_ids(X.ids):
        return X
    if not known.is_unique:
        twice = run_label(known[known.duplicated()][0])
        raise ValueError(f"the traces hold run {twice} twice; give one for each run of {of}")
    lost = run_label(ids[int(np.argmax(rows < 0))])
    raise ValueError(
        f"the traces are missing run {lost} of {of}; give the forecasts of all its runs"
    )


def refuse_predictor(X: TrajectoryArray, predictor: Any, allowed: bool) -> None:
    """Refuse history channels that are a forecast under test, or a recalibration of one."""
    if predictor is None:
        if not allowed:
            warnings.warn(
                "without predictor= nothing checks that q_Z is not learnt from the forecast that "
                "it will help to judge; pass that forecast, or allow_predictor=True",
                stacklevel=3,
            )
        return
    for forecast in check_sample(predictor, several=True).traces.values():
        check_same_runs(forecast, X, "predictor", "X")
        if not allowed:
            _refuse_same_ranks(X, forecast)


def _refuse_same_ranks(X: TrajectoryArray, forecast: TrajectoryArray) -> None:
    history, tested = _ranks(X), _ranks(forecast)
    with np.errstate(invalid="ignore"):  # a constant has no correlation
        correlation = np.corrcoef(history, tested)[: len(history), len(history) :]
    same = (np.abs(correlation) > _SAME_RANKS).any(axis=1)
    if same.any():
        name = repr(X.channels[int(np.argmax(same))]) if X.channels else "X"
        raise ValueError(
            f"{name} is the forecast under test or a recalibration of it: a score whose q_Z "
            f"comes from the forecast that it judges favours it; give other channels, or say "
            f"allow_predictor=True"
        )


def _ranks(X: TrajectoryArray) -> FloatArray:
    return np.stack([rankdata(column) for column in X.cells.reshape(len(X.cells), -1).T])
