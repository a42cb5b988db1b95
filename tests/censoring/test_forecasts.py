"""Forecasts of given runs, and those that q_Z must not be learnt from."""

import warnings

import numpy as np
import pytest

from trajscore import TrajectoryArray
from trajscore.censoring._forecasts import forecasts_of, refuse_predictor

X = TrajectoryArray.from_list([[0.1, 0.5], [0.2], [0.3]], ids=list("abc"))


def test_forecasts_in_the_order_of_ids():
    found = forecasts_of(np.array(["c", "a"]), X)
    assert found.ids.tolist() == ["c", "a"]
    assert found.to_list()[0].tolist() == [0.3]
    assert forecasts_of(np.array(["b", "b"]), X).ids.tolist() == ["b", "b"]


def test_default_ids_are_paired_by_position():
    plain = TrajectoryArray(X.cells, X.lengths)
    assert forecasts_of(X.ids, plain) == plain
    assert forecasts_of(np.arange(3), X) == X
    twice = TrajectoryArray(X.cells, X.lengths, ids=list("aab"))
    assert forecasts_of(np.array(list("aab")), twice) == twice


@pytest.mark.parametrize(
    ("ids", "traces", "problem"),
    [
        (list("abcd"), X, "there are 3 traces for the 4 runs of audit"),
        (list("abd"), X, "the traces are missing run 'd' of audit"),
        (list("xby"), X, "the traces are missing run 'x' of audit"),
        (
            list("abc"),
            X[[0, 1, 1]],
            "the traces hold run 'b' twice; give one for each run of",
        ),
        (list("abc"), X.with_cells(X.cells + 1), "outside"),
    ],
)
def test_other_runs_are_refused(ids, traces, problem):
    with pytest.raises(ValueError, match=problem):
        forecasts_of(np.array(ids), traces, "audit")


# ------------------------------------------------------------------ predictors


RNG = np.random.default_rng(0)
CELLS = RNG.random((40, 2))
HISTORY = TrajectoryArray(CELLS, np.full(10, 4), channels=("a", "b"))


@pytest.mark.parametrize(
    "forecast", [CELLS[:, 1], 1 / (1 + np.exp(-5 * CELLS[:, 1])), 1 - CELLS[:, 1] ** 2]
)
def test_a_forecast_under_test_is_refused_in_any_monotone_form(forecast):
    predictor = HISTORY.with_cells(forecast, channels=("f",))
    with pytest.raises(ValueError, match="'b' is the forecast under test or a recalibration of it"):
        refuse_predictor(HISTORY, predictor, allowed=False)
    refuse_predictor(HISTORY, predictor, allowed=True)
    one = HISTORY.with_cells(CELLS[:, 1])
    with pytest.raises(ValueError, match="^X is the forecast under test"):
        refuse_predictor(one, predictor, allowed=False)


@pytest.mark.parametrize("other", [RNG.random(40), np.full(40, 0.5), CELLS.mean(axis=1)])
def test_other_forecasts_are_not(other):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        refuse_predictor(HISTORY, HISTORY.with_cells(other, channels=("f",)), allowed=False)


def test_each_of_several_forecasts_is_looked_at():
    two = HISTORY.with_cells(np.column_stack([RNG.random(40), CELLS[:, 0]]), channels=("f", "g"))
    with pytest.raises(ValueError, match="'a' is the forecast under test"):
        refuse_predictor(HISTORY, two, allowed=False)


def test_forecasts_of_other_runs_are_refused():
    with pytest.raises(ValueError, match="predictor"):
        refuse_predictor(HISTORY, HISTORY[:5]["a"], allowed=True)


def test_without_a_forecast_a_warning_says_that_nothing_was_checked():
    with pytest.warns(UserWarning, match="without predictor= nothing checks"):
        refuse_predictor(HISTORY, None, allowed=False)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        refuse_predictor(HISTORY, None, allowed=True)
