"""Scores of one forecast, written down from the papers: S(p, 1) and S(p, 0); and of a trace."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.special import beta, betainc

from trajscore import TraceAggregator
from trajscore.metrics import tps_samples, tps_score


class Score(NamedTuple):
    success: Callable
    failure: Callable


class ShiftedBrier:
    """A Brier score to which a constant is added: no forecast is worth more for that."""

    name = "shifted"

    def success(self, p):
        return 5 - (1 - p) ** 2

    def failure(self, p):
        return 5 - p**2


def log_score(clip=1e-6):
    return Score(
        lambda p: np.log(np.clip(p, clip, 1 - clip)),
        lambda p: np.log1p(-np.clip(p, clip, 1 - clip)),
    )


def brier_score():
    return Score(lambda p: -((1 - np.asarray(p)) ** 2), lambda p: -(np.asarray(p) ** 2))


def beta_score(a, b):
    return Score(
        lambda p: -beta(a, b + 1) * (1 - betainc(a, b + 1, p)),
        lambda p: -beta(a + 1, b) * betainc(a + 1, b, p),
    )


FAMILIES = {
    "log": log_score(),
    "brier": brier_score(),
    ("beta", 2, 4): beta_score(2, 4),
    ("beta", 0.5, 2.5): beta_score(0.5, 2.5),
}
"""All families by their score=, which every test of what is proper goes through."""


OWN = {"weights": "linear_front", "horizon": "own"}
"""The convention of the paper."""
WAYS = [
    {},
    OWN,
    {"weights": "uniform"},
    {"weights": "uniform", "horizon": "own"},
    {"weights": "linear_back"},
    {"weights": "linear_front", "horizon": 8},
    {"weights": lambda step: 1 / (1 + step / 10)},
]


def as_text(score):
    """The family as a command line and tables write it."""
    return (
        score if isinstance(score, str) else f"{score[0]}({','.join(f'{n:g}' for n in score[1:])})"
    )


def steps_of(X):
    return np.concatenate([np.arange(1, n + 1) for n in X.lengths])


def collapsed(X, phi="weighted", **weights):
    """One number of each trace."""
    return TraceAggregator(phi, **weights).fit(X).predict_proba(X)[:, 1]


def margin_over_best_constant(y, X, **how):
    """The score over forecasts with early weights, less that of their success rate."""
    rate = np.average(np.repeat(y, X.lengths), weights=1 / np.sqrt(steps_of(X)))
    return tps_score(y, X, **how) - tps_score(y, X.with_cells(np.full(len(X.cells), rate)), **how)


def censored_tps_samples(y, X, q_z=0.0, **how):
    """Of runs whose outcome is their q_Z where it was not observed."""
    y = np.asarray(y)
    return tps_samples(np.where(y == -1, q_z, y), X, **how)


def z_score(samples):
    return samples.mean() / (samples.std() / np.sqrt(len(samples)))
