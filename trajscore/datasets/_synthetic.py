"""Runs whose true success probability is known at every step."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, logit, ndtr, ndtri
from sklearn.utils import check_random_state

from trajscore.core.array import TrajectoryArray
from trajscore.core.values import (
    as_amount,
    as_count,
    as_fraction,
    as_lengths,
    as_within,
    is_iterable,
)
from trajscore.core.within_runs import last_cells, running_sum, step_numbers
from trajscore.datasets._real import as_data


def make_trajectories(
    n_runs: int = 200,
    *,
    lengths: int | tuple[int, int] | ArrayLike = (3, 12),
    base_rate: float = 0.5,
    information: float = 0.6,
    sharpness: float = 1.0,
    bias: float = 0.0,
    noise: float = 0.0,
    budget: int | None = None,
    random_state: Any = None,
    return_X_y: bool = False,
) -> Any:
    """Make runs with a known q_t, a martingale that ends in the outcome.

    Hidden evidence arrives step by step: a random walk W of unit variance over the horizon. The
    run succeeds if W ends above a threshold, and only the share `information` of the walk is
    seen; so q_t = P(success | what was seen up to t) has a closed form. A signal is made from
    q_t by shifting and stretching its log-odds and adding noise.

    Parameters
    ----------
    n_runs : int, default=200
        Number of runs.
    lengths : int, pair of int or array-like of int, default=(3, 12)
        One length for all; a tuple with the smallest and the largest of uniformly drawn ones; or
        one for each run.
    base_rate : float, default=0.5
        P(success), in (0, 1).
    information : float, default=0.6
        Share of the outcome's variance seen by the end of a run, in (0, 1).
    sharpness, bias : float, default=1.0, 0.0
        The signal's log-odds are ``sharpness * logit(q) + bias``: sharpness > 1 is
        overconfident, bias > 0 optimistic.
    noise : float, default=0.0
        Standard deviation of noise on the signal's log-odds, in each step.
    budget : int, optional
        Runs longer than this are cut there, administratively: their outcome is -1.
    random_state : int, RandomState instance or None, default=None
        Seed.
    return_X_y : bool, default=False
        Whether to return ``(X, y)`` instead of a Bunch.

    Returns
    -------
    Bunch or tuple
        data: the signal; target: outcomes, -1 where cut; q: the true q_t for the same steps;
        final_outcome: outcomes also of the runs that were cut.

    Raises
    ------
    ValueError
        If a parameter lies outside its range, or `lengths` are not whole numbers of at least 1,
        one for each run.

    Examples
    --------
    >>> from trajscore.datasets import make_trajectories
    >>> from trajscore.metrics import tps_score
    >>> runs = make_trajectories(500, sharpness=3, random_state=0)
    >>> tps_score(runs.target, runs.q) > tps_score(runs.target, runs.data)
    True
    """
    n_runs = as_count(n_runs, "n_runs")
    base_rate = as_fraction(base_rate, "base_rate")
    information = as_fraction(information, "information")
    sharpness = as_within(sharpness, "sharpness", -np.inf, np.inf)
    bias = as_within(bias, "bias", -np.inf, np.inf)
    noise = as_amount(noise, "noise")
    if budget is not None:
        budget = as_count(budget, "budget")
    rng = check_random_state(random_state)
    T = _draw_lengths(lengths, n_runs, rng)
    # each step shows an equal part of `information`; the rest comes after the last step
    walk = TrajectoryArray(
        rng.standard_normal(int(T.sum())) * np.sqrt(information / np.repeat(T, T)), T, ended=True
    )
    seen = running_sum(walk, walk.cells)
    rest = rng.standard_normal(n_runs) * np.sqrt(1 - information)
    threshold = ndtri(1 - base_rate)
    outcome = (seen[last_cells(walk)] + rest > threshold).astype(np.int64)
    left = 1 - information * step_numbers(walk) / np.repeat(T, T)
    q = ndtr((seen - threshold) / np.sqrt(left))
    log_odds = sharpness * logit(np.clip(q, 1e-12, 1 - 1e-12)) + bias
    log_odds += noise * rng.standard_normal(len(q))

    X = walk.with_cells(expit(log_odds))
    truth = walk.with_cells(q)
    y = outcome.copy()
    if budget is not None:
        y[budget < T] = -1
        X, truth = (_cut(traces, budget) for traces in (X, truth))
    return as_data(X, y, return_X_y, q=truth, final_outcome=outcome)


def _cut(X: TrajectoryArray, budget: int) -> TrajectoryArray:
    """Cut runs at a budget; their horizon is known, as lengths are drawn before runs begin."""
    return X.prefix(budget).with_horizon(X.lengths).with_ended(X.lengths <= budget)


def _draw_lengths(lengths: Any, n_runs: int, rng: Any) -> NDArray[np.int64]:
    if not is_iterable(lengths):
        return np.full(n_runs, as_count(lengths, "lengths"), dtype=np.int64)
    if isinstance(lengths, tuple) and len(lengths) == 2:
        low, high = (as_count(end, "each of the two lengths") for end in lengths)
        if low > high:
            raise ValueError(
                f"lengths must give the smaller length first, got {lengths}; pass ({high}, {low})"
            )
        return rng.randint(low, high + 1, size=n_runs).astype(np.int64)
    T = as_lengths(lengths)
    if T.shape != (n_runs,):
        raise ValueError(f"lengths must be a number, a pair, or {n_runs} numbers, got {len(T)}")
    return T
