"""One forecast from all signals, their history and the step."""

import pickle

import numpy as np
import pytest
from scipy.special import expit
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, GroupKFold

from followed import followed
from trajscore import DensityRatioEProcess, TrajectoryArray, tps_scorer
from trajscore.calibration import CombinedForecaster, EnsembleCrossFitCalibrator, cross_fit_traces
from trajscore.core.weights import StepWeights
from trajscore.datasets import load_chess
from trajscore.metrics import tps_score


def made(n, seed, worth=(0.5, 0.5), n_noise=0, missing=0.0):
    """Runs with signals that are worth something each by itself, and noise."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, 7, n)
    y = rng.integers(0, 2, n)
    known = np.repeat(2.0 * y - 1, lengths)[:, None] * np.append(worth, np.zeros(n_noise))
    cells = expit(known + rng.normal(size=known.shape))
    cells[rng.random(cells.shape) < missing] = np.nan
    names = [f"s{k}" for k in range(cells.shape[1])]
    return TrajectoryArray(cells, lengths, channels=names, missing="allow"), y


def margin(fitted, X, y):
    """What forecasts of new runs gain over the success rate."""
    p = fitted.transform(X)
    constant = p.with_cells(np.full(len(p.cells), StepWeights().of(X).rate(y)))
    return tps_score(y, p) - tps_score(y, constant)


@pytest.fixture(scope="module")
def runs():
    return made(200, 0, missing=0.2)


@pytest.fixture(scope="module")
def fitted(runs):
    return CombinedForecaster().fit(*runs)


def test_live_forecasts_are_those_of_whole_runs(fitted):
    X, _ = made(30, 1, missing=0.2)
    whole = fitted.transform(X).cells
    np.testing.assert_array_equal(followed(fitted, X), whole)
    alone = np.concatenate([followed(fitted, X[[row]]) for row in range(len(X))])
    np.testing.assert_array_equal(alone, whole)
    again = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(again.transform(X).cells, whole)


def test_the_order_of_rows_changes_nothing(runs, fitted, rng):
    X, y = runs
    order = rng.permutation(len(y))
    again = CombinedForecaster().fit(X[order], y[order])
    new, _ = made(20, 3)
    np.testing.assert_allclose(
        again.transform(new).cells, fitted.transform(new).cells, rtol=0, atol=1e-12
    )


def test_signals_and_their_history_are_worth_more_than_the_best_one():
    X, y = made(400, 4)
    new, outcome = made(4000, 5)
    fitted = CombinedForecaster().fit(X, y)
    best = f"s{fitted.best_}"
    alone = EnsembleCrossFitCalibrator().fit(X[best], y)
    gain = margin(fitted, new, outcome) - margin(alone, new[best], outcome)
    assert fitted.share_ > 0.5
    assert gain > 0.1


@pytest.mark.slow
def test_noise_costs_next_to_nothing():
    gains = []
    for seed in range(2):
        X, y = made(60, 10 + seed, worth=(1.0,), n_noise=20)
        new, outcome = made(2000, 50, worth=(1.0,), n_noise=20)
        alone = EnsembleCrossFitCalibrator().fit(X["s0"], y)
        gains.append(
            margin(CombinedForecaster().fit(X, y), new, outcome) - margin(alone, new["s0"], outcome)
        )
    assert np.mean(gains) > -0.01


def test_a_risk_and_a_signal_of_any_scale_are_used():
    X, y = made(300, 6, worth=(1.0,))
    risk = X.with_cells(-100 * X.cells)
    given, turned = (CombinedForecaster().fit(of, y) for of in (X, risk))
    assert turned.share_ > 0  # as the best single map rises alone
    assert margin(turned, risk, y) > 0.8 * margin(given, X, y) > 0


def test_a_missing_value_leaves_what_was_said():
    X, y = made(300, 7, worth=(1.0, 0.0))
    fitted = CombinedForecaster().fit(X, y)
    state, p = fitted.advance(fitted.begin(), [[0.9, 0.5]])
    assert p[0] > 0.5
    later, missing = fitted.advance(state, [[np.nan, np.nan]])
    assert abs(missing[0] - p[0]) < 0.2
    np.testing.assert_array_equal(later.history.last, state.history.last)


def test_a_signal_without_a_value_changes_nothing():
    X, y = made(120, 11, worth=(1.0,))
    cells = np.column_stack([X.cells, np.full(len(X.cells), np.nan)])
    more = TrajectoryArray(cells, X.lengths, channels=["s0", "s1"], missing="allow")
    alone, both = (CombinedForecaster().fit(of, y).transform(of).cells for of in (X, more))
    np.testing.assert_allclose(both, alone, atol=1e-4)


def test_forecasts_of_training_runs_are_out_of_fold(runs):
    out = CombinedForecaster(cv=3).fit_transform(*runs)
    assert sorted(out.meta["cross_fit_fold"].unique()) == [0, 1, 2]


def test_soft_outcomes_and_weights():
    X, y = made(150, 8)
    hard = CombinedForecaster().fit(X, y)
    soft = CombinedForecaster().fit(X, np.clip(y, 1e-12, 1 - 1e-12))
    np.testing.assert_allclose(soft.transform(X).cells, hard.transform(X).cells, atol=1e-6)
    some = np.arange(150) < 120
    weighted = CombinedForecaster().fit(X, y, sample_weight=some.astype(float))
    alone = CombinedForecaster().fit(X[some], y[some])
    np.testing.assert_allclose(weighted.transform(X).cells, alone.transform(X).cells, atol=1e-12)
    assert (weighted.n_dropped_, alone.n_dropped_) == (30, 0)
    unknown = np.where(some, y, -1)
    dropped = CombinedForecaster(censored="drop").fit(X, unknown)
    np.testing.assert_allclose(dropped.transform(X).cells, alone.transform(X).cells, atol=1e-12)


def test_what_is_refused():
    for how, y, message in (
        ({"penalty": 0}, [0, 1] * 10, "penalty must be a number"),
        ({"handicap": -1}, [0, 1] * 10, "handicap must be a number"),
        ({}, [1] * 20, "successes"),
        ({}, [0, 1] * 3, "cv = 5 is more than"),
    ):
        X = TrajectoryArray(np.linspace(0, 1, len(y)), np.ones(len(y), dtype=int))
        with pytest.raises(ValueError, match=message):
            CombinedForecaster(**how).fit(X, y)


def test_it_is_a_forecaster_like_the_others():
    X, y = made(200, 9)
    process = DensityRatioEProcess(forecaster=CombinedForecaster(), alpha=0.2).fit(X, y)
    assert np.isfinite(process.transform(X).cells).all()
    tasks = np.arange(len(y)) // 2
    search = GridSearchCV(
        CombinedForecaster(), {"penalty": [1.0, 8.0]}, scoring=tps_scorer, cv=GroupKFold(3)
    ).fit(X, y, groups=tasks)
    assert search.best_params_["penalty"] in (1.0, 8.0)
    assert clone(search.best_estimator_).get_params() == search.best_estimator_.get_params()


@pytest.mark.slow
def test_chess_is_worth_more_together():
    X, y = load_chess(return_X_y=True)
    y = (y == 1).astype(int)  # unobserved runs count as failures
    constant = X["engine"].with_cells(np.full(len(X.cells), StepWeights().of(X).rate(y)))
    gained = tps_score(y, cross_fit_traces(CombinedForecaster(), X, y)) - tps_score(y, constant)
    assert gained >= 0.115
