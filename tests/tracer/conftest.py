"""Signals and runs made on the spot."""

import numpy as np
import pytest

from trajscore import TrajectoryArray, io

CHANNELS = (
    "surprisal", "repetition", "agent_gap", "user_gap", "is_agent", "tool_calls", "confidence",
)  # fmt: skip


def make_signals(rng, n_runs=40, longest=12, absent=0.3):
    """Random signals in which components are often absent."""
    lengths = rng.integers(1, longest + 1, n_runs)
    n = lengths.sum()
    agent = rng.random(n) < 0.6
    parts = rng.exponential(0.5, size=(n, 4))
    parts[rng.random((n, 4)) < absent] = np.nan
    parts[~agent, 1] = parts[~agent, 2] = parts[agent, 3] = np.nan
    confidence = np.where(rng.random(n) < 0.5, rng.random(n), np.nan)
    cells = np.column_stack([parts, agent, rng.integers(0, 3, n), confidence])
    ids = [f"r{k:03d}" for k in rng.permutation(n_runs)]
    return TrajectoryArray(cells, lengths, channels=CHANNELS, ids=ids, missing="allow")


@pytest.fixture
def signals(rng):
    return make_signals(rng)


@pytest.fixture
def talk():
    """A few runs of two turns or more, some failed."""
    runs = []
    for k in range(12):
        steps = [io.Step("user", f"Where is bag {k}?")]
        for _ in range(1 + k % 3):
            steps.append(io.Step("agent", "Please tell me your booking number"))
            steps.append(io.Step("user", "I said it before" if k % 2 else "It is seven"))
        runs.append(io.Run(f"r{k}", steps, outcome=int(k % 2 == 0), task=f"t{k // 2}"))
    return runs


@pytest.fixture(scope="session")
def signals_of():
    """Make random signals from a seed."""
    return make_signals
