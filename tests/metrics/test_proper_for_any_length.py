"""Theorem: weights known at each step make the truth win, however length and outcome depend.

`benchmarks/proper.py` tries 200 laws of 20,000 runs each.
"""

import numpy as np
import pytest

from joint_laws import JointLaw, draw_law, linear_front
from known_scores import FAMILIES, OWN
from trajscore.metrics import tps_samples

STEP_WEIGHTS = [
    {"weights": "early"},
    {"weights": "uniform"},
    {"weights": "linear_front", "horizon": 30},
    {"weights": "exponential_front"},
    {"weights": lambda step: 1 / (1 + step / 10)},
    *({"score": score} for score in FAMILIES if score != "log"),
]
RIVALS = ("tilted", "up", "down", "sharpened", "flattened")


@pytest.fixture(scope="module")
def worlds():
    """Outcomes of runs of 10 random laws, and forecasts that do not and that do know the end."""
    rng = np.random.default_rng(0)
    out = []
    for _ in range(10):
        law = draw_law(rng)
        runs = law.sample(2_000, rng)
        out.append((runs.y, [law.forecasts(runs, knows_end=known) for known in (False, True)]))
    return out


def ahead(y, forecast, truth, **how):
    """Standard errors by which a forecast is ahead of the truth."""
    d = tps_samples(y, forecast, **how) - tps_samples(y, truth, **how)
    return d.mean() / (d.std(ddof=1) / np.sqrt(len(d)))


@pytest.mark.parametrize("how", STEP_WEIGHTS, ids=lambda how: str(next(iter(how.values())))[:12])
def test_the_truth_wins_whatever_tells_of_the_length(worlds, how):
    for y, filtrations in worlds:
        for forecasts in filtrations:
            for name in RIVALS:
                assert ahead(y, forecasts[name], forecasts["truth"], **how) < 3, name


def test_published_weights_reward_the_tilted_forecast(worlds):
    z = [ahead(y, forecasts["tilted"], forecasts["truth"], **OWN) for y, (forecasts, _) in worlds]
    assert np.sum(np.greater(z, 2)) >= len(worlds) / 2
    assert min(z) > -3


def test_chances_of_a_law_are_those_of_its_runs():
    # one state: a run ends after step 1 with chance .5 and then succeeds; else at step 2 with .2
    law = JointLaw(np.ones(1), np.ones((1, 1)), np.array([[0.5], [1.0]]), np.array([[1.0], [0.2]]))
    assert law.chances().ravel() == pytest.approx([0.6, 0.2])
    assert law.chances(end=True).ravel() == pytest.approx([1.0, 0.2])
    assert law.chances(end=False)[0, 0] == pytest.approx(0.2)
    # own weights of step 1 are 1 in a run of one step and 2/3 in a run of two
    tilted = (0.5 + 0.5 * 0.2 * 2 / 3) / (0.5 + 0.5 * 2 / 3)
    assert law.chances(linear_front).ravel() == pytest.approx([tilted, 0.2])
