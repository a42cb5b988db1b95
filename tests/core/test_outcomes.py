import numpy as np
import pandas as pd
import pytest

from trajscore import TrajectoryArray, check_outcomes
from trajscore.core.outcomes import as_labels, differ, opposite
from trajscore.core.stops import classify_stops, is_scored


@pytest.mark.parametrize(
    ("given", "codes"),
    [
        ([True, False], [1, 0]),
        ([1, 0, None], [1, 0, -1]),
        ([1.0, np.nan, 0.0], [1, -1, 0]),
        ([-1, 0, 1], [-1, 0, 1]),
        (pd.Series([1, pd.NA, 0], dtype="Int64"), [1, -1, 0]),
        (pd.Series([True, None], dtype="boolean"), [1, -1]),
        (np.array([[1], [0]]), [1, 0]),
        (np.ma.array([1, 0], mask=[False, True]), [1, -1]),
        (np.ma.array([True, None], mask=[False, True], dtype=object), [1, -1]),
        (np.ma.array([0.0, 1.0]), [0, 1]),
    ],
)
def test_codes(given, codes):
    out = check_outcomes(given)
    assert out.dtype == np.int64
    assert out.tolist() == codes


def test_grades():
    assert check_outcomes([0.25, 1, -1]).tolist() == [0.25, 1, -1]
    with pytest.raises(ValueError, match=r"run 0: outcome 0\.25 must be 0 or 1"):
        check_outcomes([0.25], allow_soft=False)
    with pytest.raises(ValueError, match=r"run 2: outcome 0\.75 must be 0 or 1"):
        check_outcomes([1, -1, 0.75, 0.25, 0], allow_soft=False)


def test_lists_of_several_lengths_are_no_outcomes():
    with pytest.raises(ValueError, match="outcomes must be one number a run"):
        check_outcomes([[1], [0, 1]])


@pytest.mark.parametrize(
    ("y", "is_kept"), [([0, 1], True), ([1, 1], True), ([0, 0], True), ([-1, 1], False)]
)
def test_plain_labels_are_not_copied(y, is_kept):
    labels = np.array(y)
    assert (check_outcomes(labels) is labels) == is_kept
    assert check_outcomes(labels).tolist() == y


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([0, 1, 2], "run 2: outcome 2; .* meta-estimator"),
        ([0, 3], r"run 1: outcome 3 lies outside \[0, 1\]"),
        ([0, -0.5], "run 1: outcome -0.5 lies"),
        (["yes", "no"], "run 0: outcome 'yes' is text"),
        ([1, "no"], "run 1: outcome 'no'"),
        ([[0, 1]], "one-dimensional"),
        (np.array([1], dtype="m8[s]"), "run 0: outcome .* is not understood"),
    ],
)
def test_refused(given, message):
    with pytest.raises(ValueError, match=message):
        check_outcomes(given)


def test_a_refusal_names_the_run_by_its_id():
    table = pd.DataFrame({"id": ["a", "a", "b"], "t": [1, 2, 1], "p": 0.5, "ok": [1, 1, 5]})
    names = {"id": "id", "step": "t", "value": "p"}
    with pytest.raises(ValueError, match="run 'b': outcome 5 lies outside"):
        TrajectoryArray.from_frame(table, **names, outcome="ok")
    X = TrajectoryArray.from_frame(table, **names)
    for outcome in ("no", 0.5, -1):
        with pytest.raises(ValueError, match="run 'b': "):
            check_outcomes([1, outcome], X, allow_soft=False, allow_censored=False)
    with pytest.raises(ValueError, match="run 2: outcome 'no' is text"):
        check_outcomes([1, 0, "no"], X)


def test_number_of_runs_and_censoring():
    with pytest.raises(ValueError, match="2 outcomes for 3 runs; give one for each run"):
        check_outcomes([0, 1], 3)
    with pytest.raises(
        ValueError, match="run 1: the outcome is not observed .* censored_tps_score"
    ):
        check_outcomes([0, -1], allow_censored=False)


def test_stops():
    y = [1, -1, -1, -1, -1]
    reasons = ["parse_error", "Max Steps", "tool_error", None, "step-limit"]
    assert is_scored(classify_stops(y, reasons)).tolist() == [True, True, False, False, True]


def test_no_outcomes_at_all():
    with pytest.raises(ValueError, match="y is None; give one for each run"):
        check_outcomes(None, 3)


def test_folds_are_balanced_by_whether_a_run_rather_succeeded():
    labels = as_labels(check_outcomes([1, 0, 0.5, 0.49, None]), censored="q_z", q_z=0.5)
    assert labels.stratum.tolist() == [1, 0, 1, 0, 1]


@pytest.mark.parametrize("missing", [None, np.nan, pd.NA, pd.NaT, float("nan"), np.float32("nan")])
def test_what_is_missing_was_not_observed(missing):
    assert check_outcomes([1, missing, 0]).tolist() == [1, -1, 0]
    assert check_outcomes(pd.Series([1, missing, 0], dtype=object)).tolist() == [1, -1, 0]


@pytest.mark.parametrize(
    ("options", "value", "counts"),
    [
        ({}, [1, 0, 0.25, 0, 0], [True] * 5),
        ({"censored": "drop"}, [1, 0, 0.25, 0, 0], [True, True, True, False, False]),
        ({"censored": "q_z", "q_z": 0.75}, [1, 0, 0.25, 0.75, 0.75], [True] * 5),
        ({"censored": "q_z", "q_z": [9, np.nan, 0.5, 0, 1]}, [1, 0, 0.25, 0, 1], [True] * 5),
    ],
)
def test_what_unobserved_runs_stand_for(options, value, counts):
    labels = as_labels(np.array([1, 0, 0.25, -1, -1]), **options)
    assert labels.value.tolist() == value
    assert labels.counts.tolist() == counts
    assert labels.observed.tolist() == [True, True, True, False, False]
    assert labels.stratum.tolist() == [int(one >= 0.5) for one in value]


def test_observed_outcomes_need_no_q_z():
    labels = as_labels([1, 0], censored="q_z")
    assert labels.value.tolist() == [1, 0]
    assert labels.value.dtype == np.float64
    with pytest.raises(ValueError, match='censored="q_z" needs q_z, one for each run'):
        as_labels([1, -1], censored="q_z")
    with pytest.raises(ValueError, match=r"q_z is read only with censored=.q_z., not 'drop'"):
        as_labels([1, -1], censored="drop", q_z=0.5)
    for bad, row in (([0.5, -0.1, 0.5], 1), ([0.5, 1, 1.1], 2), ([0.5, np.nan, 0.5], 1)):
        with pytest.raises(ValueError, match=f"row {row}: its outcome was not observed and q_z is"):
            as_labels([1, -1, -1], censored="q_z", q_z=bad)


def test_outcomes_that_differ_and_their_opposites():
    for y, expected in (([1, 1, -1], False), ([1, 0], True), ([-1, -1], False), ([], False)):
        assert differ(np.array(y)) is expected
    assert differ(np.array([0.5, 0.5, -1, 0.25])) is True
    assert opposite(np.array([0, 1, 0.5, 0.49, 0.51])).tolist() == [1, 0, 0, 1, 0]


def test_no_runs_have_no_outcomes():
    for none in (np.array([], dtype=np.int64), [], pd.Series([], dtype=float)):
        out = check_outcomes(none, 0)
        assert out.dtype == np.int64
        assert out.tolist() == []
