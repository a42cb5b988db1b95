"""X is checked once, at the door of `evaluate`; what is below trusts it."""

import sys
from collections import Counter

import numpy as np
import pytest

from trajscore import evaluate
from trajscore.datasets import make_trajectories
from trajscore.report import IntervalOptions, _rows

CHECKS = ("check_trajectories", "check_outcomes", "check_groups", "check_sample_weight")


def calls_of_checks(*args, **kwargs):
    called = Counter()

    def note(frame, event, _):
        if event == "call" and frame.f_code.co_name in CHECKS:
            called[frame.f_code.co_name] += 1

    sys.setprofile(note)
    try:
        evaluate(*args, intervals=IntervalOptions(3), **kwargs)
    finally:
        sys.setprofile(None)
    return called


@pytest.fixture(autouse=True)
def no_folds(monkeypatch):
    """The alive rate is fitted fold by fold through its public fit, which checks its fold."""
    monkeypatch.setattr(_rows, "out_of_fold", lambda _, X, runs: X.with_cells(0.5 + 0 * X.cells))


@pytest.fixture(scope="module")
def runs():
    made = make_trajectories(90, lengths=(2, 7), budget=5, random_state=0)
    return made.data, made.target


@pytest.mark.parametrize("scale", [1, 5])  # a probability, and a signal that is none
def test_every_input_is_checked_once(runs, scale):
    X, y = runs
    X = X.with_cells(scale * X.cells)
    beside = {
        "groups": np.arange(len(y)) // 2,
        "q_z": np.full(len(y), 0.3),
        "stop_reason": np.where(y < 0, "max_steps", "done"),
    }
    assert calls_of_checks(X, y, **beside) == dict.fromkeys(CHECKS, 1)
    without_groups = {name: 1 for name in CHECKS if name != "check_groups"}
    assert calls_of_checks(X, y) == without_groups
    assert calls_of_checks(X, y, calibrator=None) == without_groups


def test_every_predictor_is_an_input(runs):
    X, y = runs
    holes = X.with_cells(np.where(np.arange(len(X.cells)) < 9, np.nan, X.cells))
    called = calls_of_checks({"a": X, "b": X.padded(), "holes": holes}, y)
    assert called == {"check_trajectories": 3, "check_outcomes": 1, "check_sample_weight": 1}
