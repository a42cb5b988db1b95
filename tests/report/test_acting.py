"""What thresholds cost and save, against counting run by run."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trajscore import TrajectoryArray
from trajscore.datasets import make_trajectories
from trajscore.report._acting import accepting, price_text, stopping, thresholds_of


@pytest.fixture(scope="module")
def runs():
    X, y = make_trajectories(300, random_state=0, return_X_y=True)
    return X, (y == 1).astype(float)


def test_accepting_counts_the_runs_that_reach_a_threshold(runs):
    X, labels = runs
    number = np.array([run.mean() for run in X])
    curve = accepting(number, labels)
    assert curve.accepted[0] == 1
    assert curve.failing[0] == pytest.approx(1 - labels.mean())
    for t, accepted, failing in zip(curve.threshold, curve.accepted, curve.failing, strict=True):
        reached = number >= t
        assert accepted == pytest.approx(reached.mean())
        assert failing == pytest.approx((reached * (1 - labels)).mean())
    assert (300 * curve.accepted >= 20).all()  # few runs say little
    assert (np.diff(curve.accepted) < 0).any()


def test_the_cheapest_threshold_is_cheapest(runs):
    X, labels = runs
    curve = accepting(np.array([run.mean() for run in X]), labels)
    for price in (0, 0.5, 1, 2, 3.7, 10, 1000):
        cost = price * np.append(curve.failing, 0) + 1 - np.append(curve.accepted, 0)
        assert curve.cost(price) == pytest.approx(cost)
        best = curve.cheapest(price)
        least, ends = cost.min(), cost[[0, -1]].min()
        assert cost[best] == pytest.approx(least if least < ends - 0.02 else ends)
    assert curve.cheapest(0) == 0  # a failure that costs nothing: accept all
    bad = accepting(np.linspace(0, 1, 100), np.arange(100) % 2.0)
    assert bad.cheapest(1000) == len(bad.threshold)  # review all


def test_accepting_all_or_none_is_said_where_a_threshold_saves_less_than_is_shown():
    number = np.linspace(0, 1, 1000)
    labels = np.ones(1000)
    labels[0] = 0
    curve = accepting(number, labels)
    assert curve.cost(2)[0] == pytest.approx(0.002)
    assert curve.cheapest(2) == 0


def test_thresholds_that_cost_the_same_lie_side_by_side(runs):
    X, labels = runs
    curve = accepting(np.array([run.mean() for run in X]), labels)
    cost, best = curve.cost(2)[:-1], curve.cheapest(2)
    low, high = curve.as_cheap(2)
    assert low <= best <= high
    assert (cost[low : high + 1] <= cost[best] + 0.01).all()
    assert low == 0 or cost[low - 1] > cost[best] + 0.01
    assert high == len(cost) - 1 or cost[high + 1] > cost[best] + 0.01


def test_stopping_counts_runs_and_what_comes_after_the_stop(runs):
    X, labels = runs
    tokens = np.random.default_rng(0).integers(1, 100, len(X.cells)).astype(float)
    curve = stopping(X, labels, {"tokens": tokens})
    assert len(curve.threshold) > 10
    for k, t in enumerate(curve.threshold):
        stopped, steps, spent = np.zeros(300, dtype=bool), 0, 0.0
        for row, run in enumerate(X):
            below = np.flatnonzero(run.ravel() < t)
            if len(below):
                stopped[row] = True
                steps += len(run) - below[0] - 1
                spent += tokens[X.offsets[row] + below[0] + 1 : X.offsets[row + 1]].sum()
        assert curve.good[k] == pytest.approx(stopped[labels == 1].mean())
        assert curve.bad[k] == pytest.approx(stopped[labels == 0].mean())
        assert curve.saved["steps"][k] == pytest.approx(steps / len(X.cells))
        assert curve.saved["tokens"][k] == pytest.approx(spent / tokens.sum())


def test_the_highest_threshold_within_a_limit(runs):
    curve = stopping(*runs, {})
    assert curve.highest(1.0) == len(curve.threshold) - 1
    for lost in (0.0, 0.05, 0.3):
        k = curve.highest(lost)
        if k is None:
            assert curve.good[0] > lost
        else:
            assert curve.good[k] <= lost + 1e-9 < curve.good[k + 1]


def test_runs_of_one_value_have_no_threshold_to_stop_at():
    X = TrajectoryArray(np.full(60, 0.5), np.full(20, 3))
    curve = stopping(X, np.arange(20) % 2.0, {})
    assert len(curve.threshold) == 0
    assert curve.highest(0.5) is None
    assert accepting(np.full(20, 0.5), np.arange(20) % 2.0).threshold.tolist() == [0.5]


@given(st.lists(st.floats(0, 1), min_size=1, max_size=300))
def test_thresholds_are_round_and_hold_all_values(values):
    marks, digits = thresholds_of(np.array(values))
    assert 2 <= digits <= 4
    assert 1 <= len(marks) <= 101
    assert marks == pytest.approx(np.round(marks, digits), abs=1e-12)
    assert marks[-1] >= max(values) - 1e-9
    assert (np.diff(marks) > 0).all()


def test_close_values_get_more_digits():
    assert thresholds_of(np.linspace(0, 1, 50))[1] == 2
    assert thresholds_of(np.linspace(0.9, 0.95, 50))[1] == 3
    assert thresholds_of(np.linspace(0.9, 0.905, 50))[1] == 4
    assert thresholds_of(np.array([0.2, 0.4]))[1] == 4  # two values are parted by any digits


def test_halves_are_rounded_up():
    texts = [price_text(cost) for cost in (0.125, 0.005, 0.0049, 1.115)]
    assert texts == ["0.13", "0.01", "0.00", "1.12"]
