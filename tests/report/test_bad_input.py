"""What evaluate refuses: which argument, which row or name, and what to give instead."""

import numpy as np
import pytest
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from judged import drawn, evaluate
from refused import must_refuse
from trajscore import PlattCrossFitCalibrator
from trajscore.datasets import make_trajectories

NAN = float("nan")
TWO = [[0.5], [0.6]]


@pytest.fixture(scope="module")
def runs():
    return make_trajectories(40, lengths=(4, 4), random_state=0, return_X_y=True)


def test_what_cannot_be_evaluated():
    rows = [
        (TWO, [1, 1], r"every observed outcome \(2\) is 1.*both outcomes"),
        (TWO, [0, -1], r"every observed outcome \(1\) is 0.*1 run without an outcome"),
        (TWO, [0.5, -1], r"every observed outcome \(1\) is 0.5"),
        ([[0.5]] * 4, [1, 1, -1, -1], "its outcome is 0, not -1"),
        (TWO, [-1, -1], "none of the 2 runs has an observed outcome"),
        ([[0.5]], [1], "at least 2 runs, got 1"),
        (TWO, [1, 0, 1], "3 outcomes for 2 runs"),
        (TWO, [1, 10**400], "run 1: outcome 1000"),
        (TWO, None, "y is None"),
        ({}, [], "no predictor"),
        ({"alive rate": TWO}, [0, 1], "'alive rate' is the name of another row"),
        ({"a": TWO, "b": [[0.5, 0.5], [0.4, 0.4]]}, [0, 1], "1 and 2 steps in row 0"),
        ({"a": [[0.5, NAN, 0.5], [0.4, 0.4, 0.4]]}, [0, 1], "'a': run 0.*step 2"),
        ("runs.csv", [0, 1], "TrajectoryArray.from_frame"),
        ([0.1, 0.2], [0, 1], "TrajectoryArray.from_frame"),
    ]
    must_refuse(evaluate, rows)


def test_options_that_are_none(runs):
    rows = [
        ({"families": []}, "families"), ({"families": "logg"}, "'logg'"),
        ({"families": ["log", "log"]}, "families.*log more than once"),
        ({"intervals": drawn(1.5)}, "n_resamples"),
        ({"intervals": drawn(confidence_level=95)}, "confidence_level.*95"),
        ({"intervals": 3}, "intervals must be.*got 3"),
        ({"intervals": "t"}, "intervals must be 'auto', 'bootstrap' or 'influence'.*'t'"),
        ({"calibrator": "spline"}, "calibrator must be.*'platt'.*got 'spline'"),
        ({"calibrator": 3}, "calibrator.*got 3"),
        ({"calibrator": LogisticRegression()}, "calibrator.*transform"),
        ({"phi": "max"}, "phi must be.*'max'"), ({"weights": "late"}, "weights.*'late'"),
        ({"censored": "leave"}, "censored must be.*'leave'"),
        ({"censored": True}, "censored must be.*True"),
        ({"missing": "drop"}, "missing must be.*'drop'"), ({"stop_reason": 3}, "stop_reason.*40"),
        ({"groups": np.arange(30)}, "groups must be 40 labels"),
        ({"groups": "task"}, "groups must be 40 labels.*keep the column"),
        ({"censored": np.full(50, 0.5)}, "q_z must be one number or 40"),
        ({"end": "known"}, "end must be True, False or None.*'known'"),
        ({"end": 1}, "end must be True, False or None.*got 1"),
    ]  # fmt: skip
    must_refuse(lambda options: evaluate(*runs, **options), rows)


def test_what_is_not_fitted_anew_is_refused_by_name(runs):
    fitted = FrozenEstimator(PlattCrossFitCalibrator().fit(*runs))
    for calibrator in (fitted, make_pipeline(fitted)):
        with pytest.raises(ValueError, match="FrozenEstimator.*not fitted anew"):
            evaluate(*runs, calibrator=calibrator)


def test_rows_are_named_as_they_were_given(runs):
    X, y = runs
    with pytest.raises(ValueError, match="row 0 is run 0 in predictor 'a', but run 39 in"):
        evaluate({"a": X, "b": X[::-1]}, y)
    hidden = np.where(np.arange(40) == 3, -1, y)
    q_z = np.where(np.arange(40) == 3, 1.5, 0.5)
    with pytest.raises(ValueError, match="row 3: .* q_z is 1.5"):
        evaluate(X[::-1], hidden, censored=q_z)
    with pytest.raises(ValueError, match="got 0; left out: 40 runs .*parse_error"):
        evaluate(X, np.full(40, -1), stop_reason=["parse_error"] * 40)
