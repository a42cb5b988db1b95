"""What thresholds cost and save, against counting run by run."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trajscore import TrajectoryArray
from trajscore.datasets import make_trajectories
from trajscore.report._acting import (
    Accepting,
    Stopping,
    accepting,
    price_text,
    stopping,
    thresholds_of,
)


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


def curve_of(accepted, failing):
    threshold = np.arange(1, len(accepted) + 1) / 10
    return Accepting(threshold, np.array(accepted), np.array(failing), 2, 100)


@pytest.mark.parametrize(
    ("accepted", "failing", "best"),
    [
        ([1, 0.5], [0.6, 0.079], 1),  # 0.579 against 0.6
        ([1, 0.5], [0.6, 0.081], 0),  # 0.581: that saves less than 0.02
        ([1, 0.5], [1.0, 0.5], 0),  # all cost the same: accept
        ([1, 0.5], [1.1, 0.485], 2),  # 0.985 against 1: review
        ([1, 0.5], [1.1, 0.475], 1),
        ([1, 0.6, 0.5], [0.6, 0.1, 0.0], 1),  # of two at 0.5, the lower threshold
    ],
)
def test_a_threshold_has_to_save_two_hundredths(accepted, failing, best):
    assert curve_of(accepted, failing).cheapest(1.0) == best


@pytest.mark.parametrize(
    ("costs", "ends"),
    [
        ([0.9, 0.509, 0.5, 0.511, 0.5], (1, 2)),
        ([0.9, 0.511, 0.5, 0.509, 0.501], (2, 4)),
        ([0.505, 0.501, 0.45, 0.455, 0.459], (2, 4)),
        ([0.525, 0.5, 0.505, 0.505, 0.53], (1, 3)),
        ([0.51, 0.505, 0.5, 0.505, 0.6], (0, 3)),  # nothing pays, so that all are accepted
    ],
)
def test_thresholds_that_cost_the_same_within_a_hundredth(costs, ends):
    accepted = 1 - np.arange(5) / 10
    curve = curve_of(accepted, np.array(costs) - 1 + accepted)
    assert curve.cost(1.0)[:-1] == pytest.approx(costs)
    assert curve.as_cheap(1.0) == ends


def test_a_threshold_needs_twenty_runs_that_reach_it():
    number = np.arange(1, 101) / 100
    labels = (number > 0.5).astype(float)
    curve = accepting(number, labels)
    assert curve.threshold == pytest.approx(np.arange(1, 82) / 100)  # twenty reach 0.81
    assert curve.accepted == pytest.approx(np.arange(100, 19, -1) / 100)
    assert curve.failing == pytest.approx(np.maximum(50 - np.arange(81), 0) / 100)
    assert (curve.digits, curve.n_runs) == (2, 100)


def test_the_lowest_threshold_is_rounded_down():
    number = np.append(0.1234567, np.linspace(0.5, 0.99, 50))
    assert accepting(number, np.ones(51)).threshold[0] == pytest.approx(0.12)


def test_fifteen_thresholds_are_enough():
    assert thresholds_of(np.arange(15) / 100)[1] == 2
    assert thresholds_of(np.arange(14) / 100)[1] == 4
    marks, digits = thresholds_of(np.array([0.1, 0.1001, 0.2]))
    assert (marks.tolist(), digits) == ([0.1, 0.1001, 0.2], 4)
    marks, _ = thresholds_of(np.array([0.12341]))
    assert marks == pytest.approx([0.1235])  # rounded up


def test_a_hundred_and_one_thresholds_are_enough():
    values = np.arange(130) / 1000  # 14 at two digits, and all at three
    marks, digits = thresholds_of(values)
    assert (len(marks), digits) == (101, 3)
    assert (marks[0], marks[-1]) == (0, 0.129)
    assert set(np.diff(marks).round(9)) == {0.001, 0.002}
    assert thresholds_of(np.arange(101) / 100)[0] == pytest.approx(np.arange(101) / 100)


def test_stopping_by_hand():
    X = TrajectoryArray.from_list([[0.5, 0.15, 0.4], [0.3, 0.1, 0.05], [0.9, 0.8]])
    money = np.array([1.0, 2, 3, 4, 5, 6, 7, 8])
    curve = stopping(X, np.array([1.0, 0, 1]), {"money": money})
    # lowest forecasts are 0.15, 0.05 and 0.8; 0.9 of all forecasts lie below 0.83
    assert curve.threshold == pytest.approx([0.15, 0.8, 0.83])
    assert curve.good.tolist() == pytest.approx([0, 0.5, 1])
    assert curve.bad.tolist() == [1, 1, 1]
    assert curve.saved["steps"] == pytest.approx(np.array([1, 4, 4]) / 8)
    assert curve.saved["money"] == pytest.approx(np.array([6, 5 + 11, 16]) / 36)
    assert curve.highest(0.5) == 1
    assert curve.highest(0.49) == 0


def test_stopping_where_all_runs_end_alike():
    X = TrajectoryArray.from_list([[0.5, 0.2], [0.3, 0.1]])
    good, bad = (stopping(X, np.full(2, label), {}) for label in (1.0, 0.0))
    assert good.good.tolist() == bad.bad.tolist() == [0.5, 1]
    assert good.bad.tolist() == bad.good.tolist() == [0, 0]


def test_ties_within_rounding_cost_the_same():
    # half a billionth more costs the same
    curve = curve_of([1, 0.5], np.array([1 + 5e-10, 0.5]))
    assert curve.cost(1.0) == pytest.approx([1, 1, 1])
    assert curve.cheapest(1.0) == 0
    assert curve_of([1, 0.5], [1 + 5e-9, 0.5]).cheapest(1.0) == 2
    assert curve_of([1, 0.6, 0.5], [0.6, 0.1 + 5e-10, 0.0]).cheapest(1.0) == 1
    assert curve_of([1, 0.6, 0.5], [0.6, 0.1 + 5e-9, 0.0]).cheapest(1.0) == 2


@pytest.mark.parametrize(("lost", "place"), [(0.1, 1), (0.1 - 5e-10, 1), (0.0999, 0), (0.5, 2)])
def test_a_limit_is_kept_but_for_rounding(lost, place):
    shares = np.array([0.0, 0.1, 0.3])
    curve = Stopping(shares, shares, shares, {}, 2)
    assert curve.highest(lost) == place
    assert Stopping(shares, shares + 0.6, shares, {}, 2).highest(lost) is None


def test_a_value_that_is_a_threshold_but_for_rounding_reaches_it():
    number = np.append(np.linspace(0.5, 0.69, 20), 0.3 - 1e-12)
    curve = accepting(number, np.ones(21))
    assert curve.threshold[0] == pytest.approx(0.3)
    X = TrajectoryArray.from_list([[0.5, 0.3 - 1e-12], [0.2, 0.1]])
    stopped = stopping(X, np.array([1.0, 0]), {})
    assert stopped.threshold == pytest.approx([0.3, 0.44])
    assert stopped.good.tolist() == pytest.approx([0, 1])  # 0.3 lies not below 0.3
