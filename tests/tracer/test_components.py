"""The components of a step's risk: their combination, and what is refused."""

import numpy as np
import pytest

from trajscore import TrajectoryArray
from trajscore.tracer import _components
from trajscore.tracer._components import Components

nan = np.nan
CELLS = [  # surprisal, repetition, agent_gap, user_gap, is_agent
    [0.5, nan, 0.2, nan, 1],
    [nan, nan, nan, 0.7, 0],
    [nan, nan, nan, nan, 1],
    [nan, nan, nan, 0.3, 0],
    [nan, nan, nan, nan, 0],
]
NAMES = ("surprisal", "repetition", "agent_gap", "user_gap", "is_agent")
X = TrajectoryArray(CELLS, [2, 2, 1], channels=NAMES, missing="allow")
PLAIN = X["is_agent"]


@pytest.mark.parametrize(
    ("aggregation", "expected"),
    [
        ("max", [7, 4, 9, 10]),
        ("additive", [7 + 2 + 3 + 5, 1 + 4 + 3 + 0, 1 + 2 + 9 + 5, 0 + 2 + 3 + 10]),
        ("multiplicative", [7 * 11, 1 * 8, 1 * 17, 0]),
    ],
)
def test_risk(aggregation, expected):
    values = [[7, 1, 1, 0], [1, 2, 1, 1], [1, 1, 3, 1], [1, 0, 1, 2]]
    parts = Components(*np.array(values, dtype=float))
    np.testing.assert_allclose(parts.risk(2.0, 3.0, 5.0, aggregation), expected)
    penalty = [2 + 3 + 5, 4 + 3 + 0, 2 + 9 + 5, 2 + 3 + 10]
    np.testing.assert_allclose(parts.penalty(2.0, 3.0, 5.0), penalty)


@pytest.mark.parametrize(
    ("actors", "surprisal", "user_gap"),
    [
        ("both", [0.5, 0, 0, 0, 0], [0, 0.7, 0, 0.3, 0]),
        ("agent", [0.5, 0, 0, 0, 0], [0, 0, 0, 0, 0]),
        ("user", [0, 0, 0, 0, 0], [0, 0.7, 0, 0.3, 0]),
    ],
)
def test_components_of_actors(actors, surprisal, user_gap):
    parts = _components.components_of(X, actors)
    np.testing.assert_array_equal(parts.surprisal, surprisal)
    np.testing.assert_array_equal(parts.user_gap, user_gap)
    np.testing.assert_array_equal(parts.repetition, np.zeros(5))


def test_nothing_yet():
    assert _components.nothing_yet(X).tolist() == [False, False, True, False, True]
    assert _components.nothing_yet(X, ["user_gap"]).tolist() == [True, False, True, False, True]
    assert _components.nothing_recorded(X).tolist() == [False, False, True]


@pytest.mark.parametrize("value", [-0.1, np.inf, nan, "1", None])
@pytest.mark.parametrize("name", ["alpha", "beta", "gamma"])
def test_bad_weights(name, value):
    weights = {"alpha": 0, "beta": 0.0, "gamma": 2} | {name: value}
    with pytest.raises(ValueError, match=f"{name} must be a number of at least 0, got"):
        _components.check_weights(**weights)


def test_channels():
    _components.check_weights(0, 0.0, 2)
    _components.check_channel(X, "is_agent", "R")
    _components.check_components(X, "R")
    with pytest.raises(ValueError, match="R needs the channel 'confidence'; X has surprisal, rep"):
        _components.check_channel(X, "confidence", "R")
    with pytest.raises(ValueError, match="R needs at least one of the channels surprisal, .*; X h"):
        _components.check_components(PLAIN, "R")
    with pytest.raises(ValueError, match=r"R needs the channel 'surprisal'; X has is_agent"):
        _components.check_surprisal(PLAIN, "R")
    with pytest.raises(ValueError, match=r"1.*: R multiplies surprisal, and the run has no token"):
        _components.check_surprisal(X, "R")
    _components.check_surprisal(X[:1], "R")
    bad = X.with_cells(np.where(X.cells == 0.3, -0.3, X.cells))
    with pytest.raises(ValueError, match=r"row 1.*step 2.*'user_gap' has -0\.3; components"):
        _components.check_components(bad, "R")


@pytest.mark.parametrize(("n_first", "message"), [(3, "2 of 3 runs"), (2, "1 of 2 runs")])
def test_some_runs_without_surprisal(n_first, message):
    with pytest.warns(UserWarning, match=f"{message} have no surprisal"):
        _components.warn_of_some_surprisal(X[:n_first])


@pytest.mark.parametrize("signals", [X[:1], X[1:], PLAIN])
@pytest.mark.filterwarnings("error")
def test_all_runs_or_none_with_surprisal(signals):
    _components.warn_of_some_surprisal(signals)
