"""Runs in which a value of a predictor is missing."""

from types import SimpleNamespace

import numpy as np
import pytest

from trajscore import TrajectoryArray
from trajscore.report._missing import fill_forward, leave_out_missing, lost_runs, whole_runs
from trajscore.report._runs import Coverage, Judged, check_predictors

NAN = float("nan")
FULL = [[0.1, 0.2]] * 5
ONE_LOST = [[0.1, NAN], *FULL[1:]]
TWO_LOST = [[NAN, 0.2], *FULL[1:4], [NAN, NAN]]
ALL_LOST = [[NAN, 0.2]] * 5


def judged(y=(1, 0, 1, 0, 1), **predictors):
    traces = {
        name: TrajectoryArray.from_list(runs, missing="allow") for name, runs in predictors.items()
    }
    y = np.array(y)
    runs = Coverage(y, y.astype(float), None, np.arange(len(y)))
    return Judged(traces, runs, {("all", "before"): 3})


def test_whole_runs():
    trace = TrajectoryArray.from_list([[1, NAN], [1], [NAN], [1, 2]], missing="allow")
    assert whole_runs(trace).tolist() == [False, True, False, True]
    assert whole_runs(trace[[1, 3]]).tolist() == [True, True]


def test_the_same_runs_for_all():
    notes = []
    found = leave_out_missing(judged(a=ONE_LOST, b=TWO_LOST, c=FULL), "same_runs", notes)
    assert found.runs.y.tolist() == [0, 1, 0]
    assert [len(trace) for trace in found.traces.values()] == [3, 3, 3]
    assert found.excluded == {
        ("all", "before"): 3,
        ("all", "values of a and b are missing"): 1,
        ("all", "a value of b is missing"): 1,
    }
    assert notes == []


def test_the_own_runs_of_each():
    found = leave_out_missing(judged(a=ONE_LOST, b=TWO_LOST, c=FULL), "own_runs", [])
    assert len(found.runs) == 5
    assert found.excluded == {
        ("all", "before"): 3,
        ("a", "a value of a is missing"): 1,
        ("b", "a value of b is missing"): 2,
    }


def test_predictors_with_too_few_whole_runs():
    notes = []
    found = leave_out_missing(judged(a=FULL, b=ALL_LOST), "same_runs", notes)
    assert list(found.traces) == ["a"]
    assert len(found.runs) == 5
    assert [(note.predictor, note.kind) for note in notes] == [("b", "too few runs")]
    with pytest.raises(
        ValueError, match="no predictor has enough runs without missing values; each of b"
    ):
        leave_out_missing(judged(b=ALL_LOST), "same_runs", [])


def test_no_two_outcomes_among_the_runs_of_all():
    late = [*FULL[:3], [NAN, 1], [0.3, 0.4]]
    words = "3 of 5 runs have a value of every predictor at every step, and they do not"
    with pytest.raises(ValueError, match=words):
        leave_out_missing(judged((0, 1, 1, 0, 1), a=ONE_LOST, b=late), "same_runs", [])
    kept = leave_out_missing(judged((0, 1, 1, 0, 1), a=ONE_LOST, b=late), "own_runs", [])
    assert len(kept.runs) == 5


def test_patterns_of_what_is_lost():
    whole = {"a": np.array([False, True, False, True]), "b": np.array([True, True, False, True])}
    assert lost_runs(whole) == {
        ("all", "a value of a is missing"): 1,
        ("all", "values of a and b are missing"): 1,
    }


def test_filling_forward():
    runs = [[0.1, NAN, 0.3, NAN], [NAN, 0.5, NAN, NAN]]
    X = {
        "a": TrajectoryArray.from_list(runs, missing="allow"),
        "b": TrajectoryArray.from_list([[1.0] * 4] * 2),
    }
    sample, notes = check_predictors(X, [0, 1], None, None), []
    for missing in ("same_runs", "own_runs"):
        assert fill_forward(sample, missing, notes) is sample
    filled = fill_forward(sample, "ffill", notes)
    np.testing.assert_array_equal(
        filled.traces["a"].cells, [0.1, 0.1, 0.3, 0.3, NAN, 0.5, 0.5, 0.5]
    )
    assert [(note.predictor, note.kind, note.facts) for note in notes] == [
        ("a", "filled", {"share": 0.5})
    ]
    words = "missing must be 'same_runs', 'own_runs' or 'ffill', got 'drop'"
    with pytest.raises(ValueError, match=words):
        fill_forward(SimpleNamespace(), "drop", notes)
