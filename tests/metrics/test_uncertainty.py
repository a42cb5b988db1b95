"""Decisions, their uncertainty and their costs, by hand."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from trajscore.metrics._uncertainty import (
    LEAST_UNCERTAINTY,
    LogCost,
    MatrixCost,
    ZeroOneCost,
    as_cost,
    cost_of_reliance,
    decisions,
    ecuas_costs,
    largest_uncertainty,
    log_of_others,
    mean_cost,
)

P = np.array([[0.5, 0.3, 0.2], [0.1, 0.1, 0.8], [0.4, 0.4, 0.2]])
Y = np.array([1, 2, 1])
ENTROPY = -(P * np.log(P)).sum(axis=1)
MATRIX = [[0.0, 3.0], [2.0, 0.0], [2.0, 1.0]]


@pytest.mark.parametrize("log_proba", [False, True])
@pytest.mark.parametrize(
    ("cost", "u", "paid"),
    [
        (None, [0.5, 0.2, 0.6], [1, 0, 1]),
        ("log", ENTROPY, -np.log([0.3, 0.8, 0.4])),
        # of decision 0 and 1: (1.0, 1.7), (1.8, 1.1), (1.2, 1.4)
        (MATRIX, [1.0, 1.1, 1.2], [2, 1, 2]),
    ],
)
def test_decisions(cost, u, paid, log_proba):
    values = np.log(P) if log_proba else P
    log_u, found = decisions(values, Y, as_cost(cost, 3, 0.0), log_proba)
    assert_allclose(np.exp(log_u), u)
    assert_allclose(found, paid)


@pytest.mark.parametrize("log_proba", [False, True])
@pytest.mark.parametrize("cost", [None, "log", [[0, 1], [1, 0]]])
def test_a_certain_row_has_no_uncertainty(cost, log_proba):
    rows = np.array([[1.0, 0.0], [0.0, 1.0]])
    with np.errstate(divide="ignore"):
        rows = np.log(rows) if log_proba else rows
    log_u, paid = decisions(rows, np.array([0, 1]), as_cost(cost, 2, 0.0), log_proba)
    assert log_u.tolist() == [-np.inf, -np.inf]
    assert paid.tolist() == [0, 0]


@pytest.mark.parametrize("log_r", [-1.0, -20.0, -35.9, -36.1, -50.0, -300.0, -800.0])
def test_entropy_of_nearly_certain_rows(log_r):
    rest = np.log1p(-np.exp(log_r))
    rows = np.array([[rest, log_r], [log_r, rest]])
    log_u, paid = LogCost(2, 0.0).decide_log(rows, np.array([0, 1]))
    # of r and -log r: -(1 - r) log(1 - r) is r where r is small
    if log_r < -20:
        expected = log_r + np.log1p(-log_r)
    else:
        r = np.exp(log_r)
        expected = np.log(-(r * log_r + (1 - r) * rest))
    assert_allclose(log_u, expected, rtol=1e-12)
    assert_allclose(paid, -rest)


def test_floors_and_largest_uncertainties():
    assert (ZeroOneCost(4, 0.1).u_max, ZeroOneCost(4, 0.1).floor) == (0.75, 0.1)
    assert (LogCost(4, 0.1).u_max, LogCost(4, 0.1).floor) == (np.log(4), 0.1)
    matrix = MatrixCost(4.0 * (1 - np.eye(4)), 0.1)
    assert_allclose((matrix.u_max, matrix.floor), (3.0, 0.4))
    assert LEAST_UNCERTAINTY == 1e-7


def test_the_log_cost_states_no_probability_below_the_floor():
    rows, y = np.array([[0.9, 0.1], [0.95, 0.05]]), np.array([1, 1])
    log_u, paid = LogCost(2, 0.1).decide(rows, y)
    assert_allclose(paid, -np.log(0.1))
    assert_allclose(np.exp(log_u)[1], -0.95 * np.log(0.95) - 0.05 * np.log(0.1))


def test_the_first_of_equally_cheap_decisions_is_taken():
    cost = MatrixCost(np.array([[0.3, 0.1 + 0.2], [0.3, 0.3]]), 0.0)
    assert cost._cheapest(np.log([[0.3 + 1e-16, 0.3]]), np.array([0]))[1].tolist() == [0.3]
    several = MatrixCost(np.array([[1.0, 2.0, 3.0]]), 0.0)
    found = several._cheapest(np.array([[0.5, 0.5 - 1e-9, 0.5]]), np.array([0]))
    assert_allclose(found, [[0.5 - 1e-9], [2.0]])


@pytest.mark.parametrize(
    ("cost", "u_max"),
    [
        ([[0, 1], [1, 0]], 0.5),
        ([[0, 3], [1, 0]], 0.75),
        ([[0, 1, 0.4], [1, 0, 0.4]], 0.4),
        (1 - np.eye(5), 0.8),
        ([[2, 1]], 1.0),
        ([[1e-6, 3e-6], [4e-6, 1e-6]], 2.2e-6),
        ([[0, 0], [0, 1], [1, 0]], 0.5),  # a class for which all is free
        ([[0, 1e6], [1, 0]], 1e6 / (1e6 + 1)),
        ([[0, 1], [0, 2]], 0.0),  # a decision that is free
        # one class that costs next to nothing, one in which both decisions are dear
        ([[0, 136.5], [7824, 493.455], [0, 2.35e-6], [1.37, 0.43]], 493.455),
        ([[0, 3e-4], [2571, 148942], [4269, 0], [0, 0], [0.08, 0.3]], 4269 / (1 + 1698 / 148942)),
    ],
)
def test_largest_uncertainty(cost, u_max):
    assert largest_uncertainty(cost) == pytest.approx(u_max, rel=1e-9)
    assert largest_uncertainty(1000 * np.asarray(cost)) == pytest.approx(1000 * u_max, rel=1e-9)


@pytest.mark.parametrize(
    ("cost", "words"),
    [
        ("brier", "cost must be a matrix, 'log' or None, got 'brier'"),
        ([1, 2], "cost must be a matrix with a row for each class and a column for each decision"),
        (np.empty((0, 2)), "cost must be a matrix with a row for each class and a column for"),
        ([[0, 1], [np.inf, -1]], r"cost\[1, 0\] is inf; costs are finite and >= 0"),
        ([[0, -1], [1, 0]], r"cost\[0, 1\] is -1; costs are finite and >= 0"),
        ([[0, 1]], r"cost must have one row for each of the 2 classes, got shape \(1, 2\)"),
        ([[0, 0], [0, 0]], "all costs are zero; at least one decision must cost something"),
        ([[1, 1, 0], [1, 0, 0]], "decision 2 costs nothing for any class, so nothing is uncertain"),
    ],
)
def test_costs_that_are_refused(cost, words):
    with pytest.raises(ValueError, match=words):
        as_cost(cost, 2, 0.0)


def test_a_class_may_be_free_whatever_is_decided():
    assert as_cost([[1, 2], [0, 0]], 2, 0.0).u_max == pytest.approx(1.0)


def test_log_of_others():
    with np.errstate(divide="ignore"):
        rows = np.log(np.array([[0.2, 0.3, 0.5], [1.0, 0.0, 0.0]], dtype=np.float32))
    assert_allclose(np.exp(log_of_others(rows, np.array([1, 0]))), [0.7, 0.0], rtol=1e-6)
    assert np.isfinite(rows[0]).all()


def test_a_weight_of_zero_leaves_out_an_infinite_cost():
    assert mean_cost(np.array([1.0, np.inf, 4.0]), np.array([1.0, 0.0, 2.0])) == 3.0
    assert mean_cost(np.array([1.0, np.inf]), np.ones(2)) == np.inf


U, PAID = np.array([0.2, 0.4, 0.5, 0.8]), np.array([0.0, 1.0, 2.0, 1.0])


@pytest.mark.parametrize("n", [0.5, 1, 2, 3.0])
def test_ecuas_costs(n):
    x = np.minimum(U / 0.5, 1)
    expected = x ** (n + 1) + (n + 1) / n * (1 - x**n) * PAID / 0.5
    assert_allclose(ecuas_costs(np.log(U), PAID, n, 0.5, 0.1), expected)


@pytest.mark.parametrize(
    ("floor", "x"),
    [(0.0, [0.4, 0.8, 1, 1]), (0.3, [0.6, 0.8, 1, 1]), (0.7, [1, 1, 1, 1])],
)
def test_ecuas_costs_without_n(floor, x):
    found = ecuas_costs(np.log(U), PAID, 0, 0.5, floor)
    assert_allclose(found, x - np.log(x) * PAID / 0.5)


def test_certain_answers():
    log_u = np.array([-np.inf, -np.inf])
    assert ecuas_costs(log_u, np.array([0.0, 1.0]), 0, 0.5, 0.0).tolist() == [0, np.inf]
    assert ecuas_costs(log_u, np.array([0.0, 1.0]), 1, 0.5, 0.0).tolist() == [0, 4]
    right, wrong = cost_of_reliance(np.array([1.0, 1.0]), np.array([1.0, 0.0]), 0)
    assert_allclose((right, wrong), (1e-7, 1e-7 - np.log(1e-7)))
    found = cost_of_reliance(np.array([0.6, 0.6]), np.array([1.0, 0.0]), 1)
    assert_allclose(found, [0.16, 0.16 + 2 * 0.6])
