import numpy as np
import pytest
from sklearn.dummy import DummyClassifier, DummyRegressor

from joint_laws import JointLaw, draw_law
from known_scores import OWN, censored_tps_samples, z_score
from trajscore.censoring import (
    ContinuationModel,
    StopHazard,
    doubly_robust_tps_score,
    ipcw_tps_score,
)
from trajscore.metrics import censored_tps_score, tps_score

RIVALS = ("tilted", "up", "down", "sharpened", "flattened")


@pytest.fixture(scope="module")
def budgets():
    """Runs of 10 random laws, each cut by a budget of its own: outcomes, q_Z and forecasts."""
    rng, out = np.random.default_rng(0), []
    for _ in range(10):
        law = draw_law(rng)
        runs = law.sample(4000, rng)
        budget = rng.geometric(1 / max(2, np.median(runs.lengths)), 4000)
        Z = np.minimum(runs.lengths, budget)
        last = np.cumsum(runs.lengths) - runs.lengths + Z - 1
        going = law.chances(end=False)[Z - 1, runs.states[last]]  # success, given that it goes on
        y = np.where(budget < runs.lengths, -1, runs.y)
        for knows_end in (False, True):
            whole = law.forecasts(runs, knows_end=knows_end)
            cut = {name: X.truncate(Z) for name, X in whole.items()}
            out.append((y, np.where(y == -1, going, 0.0), cut))
    return out


def ahead(y, forecasts, q):
    """Standard errors by which the best of the rivals is ahead of the truth."""
    truth = censored_tps_samples(y, forecasts["truth"], q_z=q)
    return max(z_score(censored_tps_samples(y, forecasts[name], q_z=q) - truth) for name in RIVALS)


def test_with_the_chance_of_runs_that_go_on_the_truth_wins_in_every_law(budgets):
    assert max(ahead(y, forecasts, q) for y, q, forecasts in budgets) < 3


# struggling runs are long and fail, the others short and good
STRUGGLING = JointLaw(
    start=np.array([0.5, 0.5]),
    move=np.array([[0.85, 0.15], [0.15, 0.85]]),
    stop=np.vstack([np.tile([0.1, 0.35], (9, 1)), [[1.0, 1.0]]]),
    success=np.tile([0.2, 0.85], (10, 1)),
)


def stopped_where_struggling(seed, n_runs=1000):
    """Runs, a forecast of the whole runs that grows hopeful, and states up to stops."""
    rng = np.random.default_rng(seed)
    runs = STRUGGLING.sample(n_runs, rng)
    chance = np.where(runs.states == 0, 0.2, 0.03) * ~runs.at_end
    hit = np.where(rng.random(len(chance)) < chance, runs.steps, 99)
    first = np.minimum.reduceat(hit, np.cumsum(runs.lengths) - runs.lengths)
    stopped, Z = first < 99, np.minimum(first, runs.lengths)
    odds = np.log(STRUGGLING.forecast(runs)) - np.log1p(-STRUGGLING.forecast(runs))
    F = runs.container(1 / (1 + np.exp(-odds - 0.3 * runs.steps)))
    return runs, F, runs.container(runs.states.astype(float)).truncate(Z), stopped


@pytest.mark.parametrize(
    "how", [pytest.param({}, id="early"), pytest.param(OWN, marks=pytest.mark.slow, id="own")]
)
def test_repaired_scores_are_of_all_steps_that_runs_would_have_come_to(how):
    errors = []
    for seed in range(5):
        runs, F, states, stopped = stopped_where_struggling(seed)
        X, y = F.truncate(states.lengths), np.where(stopped, -1, runs.y)
        options = {"cv": 2, "features": lambda X: X.cells}
        right = StopHazard(**options).fit(states, stopped)
        # stops at the same rate, whatever the history
        flat = StopHazard(DummyClassifier(strategy="prior"), **options).fit(states, stopped)
        scores = [
            ipcw_tps_score(y, X, right, **how),
            doubly_robust_tps_score(y, X, right, **how),
            doubly_robust_tps_score(y, X, right, regressor=DummyRegressor(), **how),
            tps_score(runs.y, X, **how),  # of the steps that were taken, had outcomes been seen
            tps_score(y[~stopped], X[~stopped], **how),
            censored_tps_score(y, X, **how),
            ipcw_tps_score(y, X, flat, **how),
            doubly_robust_tps_score(y, X, flat, **how),
        ]
        errors.append(np.array(scores) - tps_score(runs.y, F, **how))
    z = [z_score(error) for error in np.transpose(errors)]
    assert np.abs(z[:3]).max() < 3
    assert np.abs(z[3:7]).min() > 3
    # one right model is enough, and that of the score is nearly right
    *_, weighted, robust = np.abs(np.mean(errors, axis=0))
    assert robust < 0.4 * weighted


def test_runs_that_ended_by_themselves_do_not_tell_of_those_that_were_stopped(rng):
    # after step 3 half of the runs have ended, mostly well; the others fail at step 6
    n = 4000
    ends = rng.random(n) < 0.5
    final = rng.random(n) < np.where(ends, 0.9, 0.3)
    cut = ~ends & (rng.random(n) < 0.5)
    X = [[0.5] * k for k in np.where(ends | cut, 3, 6)]
    y = np.where(cut, -1, final)
    model = ContinuationModel(allow_predictor=True, cv=None).fit(X, y)
    assert model.predict(X)[cut] == pytest.approx(0.3, abs=0.04)
    assert y[y >= 0].mean() > 0.6
