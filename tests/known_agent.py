"""Runs of an agent whose chance of success is known, to be held against others."""

import numpy as np
from scipy.special import expit

from trajscore import TrajectoryArray
from trajscore.gates import RunSet


def runs_of(seed, drop=0.0, n_tasks=40, n_trials=5, tasks=True, outcomes=None, **options):
    """Runs whose chance of success is that of their task, less a drop; a forecast a step."""
    chance = np.random.default_rng(99).beta(2.4, 1.6, n_tasks)
    rng = np.random.default_rng(seed)
    code = np.repeat(np.arange(n_tasks), n_trials)
    y = (rng.random(len(code)) < np.clip(chance - drop, 0, 1)[code]).astype(int)
    lengths = rng.integers(2, 6, len(code))
    run = np.repeat(np.arange(len(code)), lengths)
    cells = np.clip(0.5 + 0.2 * (y[run] - 0.5) + rng.normal(0, 0.2, len(run)), 0.01, 0.99)
    X = TrajectoryArray(cells, lengths, channels=("judge",))
    spent = {"cost": 0.01 * lengths * (1 + drop)}
    labels = np.array([f"task {k}" for k in code]) if tasks else None
    return RunSet(X, y if outcomes is None else outcomes(y), tasks=labels, spent=spent, **options)


def bent_forecasts(rng, n_runs=2000, a=2.0, b=0.5, c=0.3):
    """Forecasts whose truth is a beta map of them, 3 steps a run."""
    p = rng.uniform(0.02, 0.98, n_runs)
    truth = expit(a * np.log(p) - b * np.log(1 - p) + c)
    y = (rng.random(n_runs) < truth).astype(int)
    return TrajectoryArray(np.repeat(p, 3), np.full(n_runs, 3)), y, truth
