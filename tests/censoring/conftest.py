"""Worlds in which the truth about cut-off runs is known."""

from pathlib import Path

import numpy as np
import pytest
from scipy.special import expit

from trajscore.datasets import make_trajectories


def pytest_collection_modifyitems(items):
    """Ignore that outcomes are known here of runs that were cut off."""
    mark = pytest.mark.filterwarnings("ignore:row .* the run ended after:UserWarning")
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(mark)


def _cut(X, lengths):
    """Cut runs whose horizon is known, as theirs was drawn before they began."""
    return X.truncate(lengths).with_horizon(X.lengths)


def _coin_budget(n, seed, budget=3, **options):
    """Half of the runs, by a coin, have a budget; returns runs, X, y, true q of X, cut."""
    runs = make_trajectories(n, lengths=(2, 8), information=0.7, random_state=seed, **options)
    coin = np.random.default_rng(seed).random(n) < 0.5
    cut = coin & (runs.data.lengths > budget)
    lengths = np.where(cut, budget, runs.data.lengths)
    y = np.where(cut, -1, runs.target)
    X, q = (_cut(one, lengths) for one in (runs.data, runs.q))
    return runs, X, y, q, cut


def _monitored(n, seed, smooth=True):
    """A monitor stops runs whose signal is low; returns runs, X, y, stopped."""
    rng = np.random.default_rng(seed)
    runs = make_trajectories(n, lengths=(4, 9), information=0.7, sharpness=1.5, random_state=seed)
    X = runs.data
    chance = expit(-0.5 - 5 * X.cells) if smooth else 0.25 * (X.cells < 0.4) + 0.02
    step = np.arange(len(X.cells)) - np.repeat(X.offsets[:-1], X.lengths) + 1
    hit = (rng.random(len(chance)) < chance) & (step < np.repeat(X.lengths, X.lengths))
    first = np.minimum.reduceat(np.where(hit, step, 10**6), X.offsets[:-1])
    stopped = first < 10**6
    y = np.where(stopped, -1, runs.target)
    return runs, _cut(X, np.where(stopped, first, X.lengths)), y, stopped


@pytest.fixture(scope="session")
def coin_budget():
    return _coin_budget


@pytest.fixture(scope="session")
def monitored():
    return _monitored


@pytest.fixture(scope="session")
def world():
    return _coin_budget(3000, 0)
