"""Columns that leak the outcome, and columns that point the other way."""

import numpy as np
import pandas as pd
import pytest

from trajscore import TrajectoryArray
from trajscore.report._leakage import leakage, leaky_predictors, risks

NO_ERROR = "separates successes from failures without an error at the last step of a run"
NAN = float("nan")


def last_values(values):
    return TrajectoryArray.from_list([[0.5, value] for value in values], missing="allow")


@pytest.mark.parametrize(
    ("name", "is_outcome"),
    [
        ("final_reward", True),
        ("resolved", True),
        ("label", True),
        ("p_success", False),
        ("predicted_reward", False),
        ("judge_label", False),
        ("y", False),
        ("signal", False),
    ],
)
def test_names(name, is_outcome):
    found = leakage(name, last_values([0.1, 0.2]), np.array([0, 1]))
    assert found == ("is named like an outcome" if is_outcome else "")


@pytest.mark.parametrize(
    ("values", "y", "reason"),
    [
        ([0.9] * 5 + [0.1] * 5, [1] * 5 + [0] * 5, NO_ERROR),
        ([0.1] * 5 + [0.9] * 5, [1] * 5 + [0] * 5, NO_ERROR),
        ([0.9] * 4 + [0.1] * 6, [1] * 4 + [0] * 6, ""),
        ([0.9] * 6 + [0.1] * 4, [1] * 6 + [0] * 4, ""),
        ([0.9] * 4 + [0.1] * 6, [1] * 5 + [0] * 5, ""),
        # runs without an outcome or a last value do not count
        ([0.9] * 5 + [0.1] * 5 + [0.95], [1] * 5 + [0] * 5 + [-1], NO_ERROR),
        ([0.9] * 5 + [0.1] * 5 + [NAN], [1] * 5 + [0] * 5 + [0], NO_ERROR),
        ([0.9] * 5 + [0.1] * 4 + [NAN], [1] * 5 + [0] * 5, ""),
        ([0.9] * 5 + [0.1] * 5 + [0.0], [1] * 5 + [0] * 5 + [0.5], NO_ERROR),
    ],
)
def test_last_values(values, y, reason):
    assert leakage("signal", last_values(values), np.array(y)) == reason


def test_notes_of_leaky_predictors():
    y = np.repeat([1, 0], 5)
    traces = {"signal": last_values([0.9] * 5 + [0.1] * 5), "noise": last_values([0.5] * 10)}
    (note,) = leaky_predictors(traces, y)
    assert (note.predictor, note.kind, note.facts) == ("signal", "leakage", {"how": NO_ERROR})


@pytest.mark.parametrize(
    ("value", "high", "is_risk"),
    [(0.39, 0.49, True), (0.4, 0.45, False), (0.39, 0.5, False), (0.7, 0.8, False)],
)
def test_risks(value, high, is_risk):
    index = [
        ("a", "as_given", "AUROC"),
        ("a", "recalibrated", "AUROC"),
        ("a", "as_given", "AURC"),
        ("alive rate", "as_given", "AUROC"),
    ]
    index = pd.MultiIndex.from_tuples(index, names=["predictor", "form", "metric"])
    rows = [[value, high], [0.1, 0.2], [0.1, 0.2], [0.1, 0.2]]
    notes = risks(pd.DataFrame(rows, index, ["value", "high"]))
    assert [(note.predictor, note.kind, note.facts) for note in notes] == is_risk * [
        ("a", "risk", {"auroc": value})
    ]
