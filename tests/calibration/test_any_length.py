"""Recalibrated forecasts state what happens where the length of a run tells how it ends.

`benchmarks/proper.py` has more of the same simulation.
"""

import numpy as np
import pytest
from scipy.special import expit, logit

from trajscore import PlattCrossFitCalibrator, TrajectoryArray
from trajscore.calibration import (
    BetaCrossFitCalibrator,
    EnsembleCrossFitCalibrator,
    IsotonicCrossFitCalibrator,
)

CALIBRATORS = [
    PlattCrossFitCalibrator,
    BetaCrossFitCalibrator,
    IsotonicCrossFitCalibrator,
    EnsembleCrossFitCalibrator,
]
PAPER = {"weights": "linear_front", "horizon": "own"}


def noisy_runs(n_runs, seed):
    """Successes end after 1 to 10 steps, failures after 11 to 30; the truth, with noise."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n_runs)
    lengths = np.where(y == 1, rng.integers(1, 11, n_runs), rng.integers(11, 31, n_runs))
    steps = np.concatenate([np.arange(1, n + 1) for n in lengths])
    going = np.maximum(11 - steps, 0) / 10  # share of the successes that are still going
    odds = logit(np.clip(going / (going + 1), 1e-4, 1 - 1e-4))
    return TrajectoryArray(expit(odds + rng.normal(size=len(odds))), lengths), y


def stated_and_happened(calibrator, X, y):
    """Mean forecast and success rate over all steps, and in each tenth of them."""
    p, won = calibrator.fit_transform(X, y).cells, np.repeat(y, X.lengths)
    parts = np.array_split(np.argsort(p), 10)
    table = np.array([[p[part].mean(), won[part].mean()] for part in parts])
    return p.mean(), won.mean(), table


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("kind", CALIBRATORS)
def test_forecasts_state_what_happens(kind, seed):
    X, y = noisy_runs(3000, seed)
    stated, happened, tenths = stated_and_happened(kind(), X, y)
    assert abs(stated - happened) < 0.03
    assert np.abs(tenths[:, 0] - tenths[:, 1]).max() < 0.12


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("kind", CALIBRATORS)
def test_by_the_convention_of_the_paper_they_lean_towards_how_short_runs_end(kind, seed):
    X, y = noisy_runs(3000, seed)
    stated, happened, tenths = stated_and_happened(kind(**PAPER), X, y)
    assert stated > happened + 0.08
    assert tenths[-1, 0] > tenths[-1, 1] + 0.2


def test_evenly_weighted_they_state_the_rate_over_forecasts():
    X, y = noisy_runs(3000, 0)
    stated, happened, _ = stated_and_happened(PlattCrossFitCalibrator(weights="uniform"), X, y)
    assert stated == pytest.approx(happened, abs=0.001)
    assert happened < y.mean() - 0.2
