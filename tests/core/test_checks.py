from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from trajscore import PlattCrossFitCalibrator, TrajectoryArray, check_trajectories
from trajscore.core.checks import (
    check_groups,
    check_labels,
    check_sample_weight,
    check_values,
)
from trajscore.core.ids import check_same_runs
from trajscore.core.values import as_array, as_count, as_flag, as_path, check_jobs, is_iterable

NAN = float("nan")


@pytest.mark.parametrize(
    "given",
    [
        [[0.1, 0.2], [0.3]],
        [[0.1, 0.2], [0.3, np.nan]],
        np.array([[0.1, 0.2], [0.3, np.nan]]),
        pd.DataFrame([[0.1, 0.2], [0.3, None]]),
        TrajectoryArray.from_list([[0.1, 0.2], [0.3]]),
        np.ma.array([[0.1, 0.2], [0.3, 0.9]], mask=[[False, False], [False, True]]),
        np.array([[0.1, 0.2], [0.3]], dtype=object),
        pd.Series([[0.1, 0.2], np.array([0.3])]),
    ],
)
def test_all_forms_are_the_same_runs(given):
    X = check_trajectories(given, probabilities=True, single_channel=True)
    assert [run.tolist() for run in X] == [[0.1, 0.2], [0.3]]


def test_a_series_of_runs_keeps_its_labels():
    runs = pd.Series([[0.1, 0.2], [0.3, 0.4]], index=["a", "b"])
    assert check_trajectories(runs).ids.tolist() == ["a", "b"]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (np.array([["2020-01-01"]], dtype="M8[D]"), r"dates \(datetime64\[D\]\) are not numbers"),
        (pd.DataFrame({"a": pd.to_datetime(["2020"])}), "column 'a' must .* dates"),
        (pd.DataFrame({"a": pd.to_timedelta(["1h"])}), "column 'a' must .* durations"),
        (pd.DataFrame({"a": [0.5 + 1j]}), "column 'a' must .* Complex data not supported"),
    ],
)
def test_what_only_passes_for_a_number_is_refused(values, message):
    with pytest.raises(ValueError, match=message):
        check_trajectories(values)
    with pytest.raises(ValueError, match=message):
        PlattCrossFitCalibrator().fit(values, [1])


@pytest.mark.parametrize(
    "runs",
    [
        pd.Series([[0.9, 0.8], [0.7], [0.2], [0.1, 0.3]]),
        np.ma.array(
            [[0.9, 0.8], [0.7, 0.1], [0.2, 0.9], [0.1, 0.3]],
            mask=[[False, False], [False, True], [False, True], [False, False]],
        ),
    ],
)
def test_estimators_take_masked_arrays_and_series_of_runs(runs):
    y, plain = [1, 1, 0, 0], TrajectoryArray.from_list([[0.9, 0.8], [0.7], [0.2], [0.1, 0.3]])
    got = check_trajectories(PlattCrossFitCalibrator().fit(runs, y).transform(runs))
    expected = PlattCrossFitCalibrator().fit(plain, y).transform(plain)
    assert np.array_equal(got.cells, expected.cells)
    assert np.array_equal(got.lengths, expected.lengths)


def test_out_of_range_names_run_step_and_remedy():
    X = TrajectoryArray.from_list([[0.1], [0.2, 1.5]], ids=["a", "b"])
    with pytest.raises(ValueError, match=r"run 'b' \(row 1\), step 2: forecast 1\.5 .*Platt"):
        check_trajectories(X, probabilities=True)


def test_channels_and_missing():
    X = TrajectoryArray([[0.1, np.nan], [0.1, 1]], [2], channels=["a", "b"], missing="allow")
    with pytest.raises(ValueError, match="channel 'b' has no value at any step; leave it out"):
        check_trajectories(X.prefix(1))
    with pytest.raises(ValueError, match="2 channels .*pick one"):
        check_trajectories(X, single_channel=True)
    with pytest.raises(ValueError, match="step 1, channel 'b': the value is missing"):
        check_trajectories(X)
    assert check_trajectories(X, allow_missing=True, probabilities=True) is X


def test_a_long_table_is_pointed_to_from_frame():
    with pytest.raises(ValueError, match="from_frame"):
        check_trajectories(pd.DataFrame({"run": ["a"], "p": [0.5]}))


def test_sample_weight():
    assert check_sample_weight(None, 2).tolist() == [1, 1]
    with pytest.raises(ValueError, match="row 1: sample_weight -1 is negative"):
        check_sample_weight([1, -1], 2)
    with pytest.raises(ValueError, match="row 2: sample_weight -2 is negative"):
        check_sample_weight([0, 1, -2, -3], 4)
    assert check_sample_weight(3, 2).tolist() == [3, 3]
    with pytest.raises(ValueError, match="one for each run"):
        check_sample_weight([1], 2)
    with pytest.raises(ValueError, match="all sample weights are zero"):
        check_sample_weight([0, 0], 2)


@pytest.fixture
def named():
    return TrajectoryArray.from_list([[0.1], [0.2], [0.3]], ids=["a", "b", "c"])


def test_runs_in_another_order_are_refused(named):
    with pytest.raises(ValueError, match="row 0 is run 'a' in judge, but run 'c' in verbal; bring"):
        check_same_runs(named, named[::-1], "judge", "verbal")
    bare = TrajectoryArray.from_list([[0.1], [0.2], [0.3]])
    with pytest.raises(ValueError, match="row 1 is run 1 in judge, but run 2 in verbal"):
        check_same_runs(bare, bare[[0, 2, 1]], "judge", "verbal")
    numbered = TrajectoryArray.from_list([[0.1], [0.2], [0.3]], ids=[7, 8, 9])
    with pytest.raises(ValueError, match="row 0 is run 7 in judge, but run 'a' in verbal"):
        check_same_runs(numbered, named, "judge", "verbal")


def test_runs_without_ids_of_their_own_go_with_any(named):
    bare = TrajectoryArray.from_list([[0.1], [0.2], [0.3]])
    numbered = TrajectoryArray.from_list([[0.1], [0.2], [0.3]], ids=[7, 8, 9])
    for one in (named, numbered, bare):
        check_same_runs(bare, one, "a", "b")
        check_same_runs(one, bare, "a", "b")
        check_same_runs(one, one[[0, 1, 2]], "a", "b")


def test_runs_of_other_number_or_length_are_refused(named):
    with pytest.raises(ValueError, match="judge and verbal have 3 and 2 runs"):
        check_same_runs(named, named[:2], "judge", "verbal")
    longer = TrajectoryArray.from_list([[0.1], [0.2, 0.2], [0.3]])
    with pytest.raises(ValueError, match="have 1 and 2 steps in row 1"):
        check_same_runs(named, longer, "judge", "verbal")


@pytest.mark.parametrize(
    "given",
    [["b", "a", "b"], [2, 1, 2], pd.Series(["b", "a", "b"]), np.array([1.5, 0.5, 1.5])],
)
def test_groups_become_codes_in_the_order_of_their_names(given):
    assert check_groups(given, 3).tolist() == [1, 0, 1]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([1, 2], r"groups must be 3 labels, one for each run, got shape \(2,\)"),
        ([1, 2, 3, 4], r"got shape \(4,\)"),
        (["a", None, "b"], "row 1: groups is missing"),
        (["a", "b", np.nan], r"row 2: groups is missing \(1 of 3"),
        ([1.0, np.nan, np.nan], r"row 1: .*\(2 of 3"),
        (["a", 1, 2], "mixes labels of several kinds"),
    ],
)
def test_groups_that_do_not_name_one_for_each_run(given, message):
    with pytest.raises(ValueError, match=message):
        check_groups(given, 3)


def test_arguments_of_other_kinds_are_refused_in_words():
    assert [as_flag(one, "done") for one in (True, np.bool_(False), 0, 1.0)] == [1, 0, 0, 1]
    for value in (None, "yes", 2, [], pd.NA, pd.Series([True, False])):
        with pytest.raises(ValueError, match="done must be True or False"):
            as_flag(value, "done")
    for value in (None, 1, -1, np.int64(4)):
        check_jobs(value)
    for value in (0, 1.5, "2", True, [1], 2**63, float("nan")):
        with pytest.raises(ValueError, match="n_jobs must be None or a whole number"):
            check_jobs(value)
    with pytest.raises(ValueError, match="stopped must be an array"):
        as_array([[0.5], [0.5, 0.6]], "stopped")
    with pytest.raises(ValueError, match="n_bins must be a whole number"):
        as_count(10**400, "n_bins")
    with pytest.raises(ValueError, match="is not a file name"):
        as_path("\ud800")
    assert [is_iterable(one) for one in ([], "a", np.ones(2), np.array(3), 3)] == [1, 1, 1, 0, 0]


def test_weights_whose_sum_no_float_holds():
    with pytest.raises(ValueError, match="sample weights add up to infinity; divide them by the"):
        check_sample_weight([1e308, 1e308], 2)
    assert check_sample_weight([1e308, 0], 2).tolist() == [1e308, 0]


# ------------------------------------------------------------------ bounds of values


@pytest.mark.parametrize(("bounds", "probabilities"), [((0.0, 1.0), True), ((-3.0, 7.0), False)])
def test_values_in_the_known_range_are_not_looked_at_again(bounds, probabilities):
    without_cells = SimpleNamespace(value_range=lambda: bounds)
    assert check_values(without_cells, probabilities) is None


@pytest.mark.parametrize(
    ("cells", "outside", "of_percentages"),
    [
        ([0.0, 1.5], "step 2: forecast 1.5", True),
        ([0.0, 100.0], "step 2: forecast 100", True),
        ([0.0, 101.0], "step 2: forecast 101", False),
        ([-0.5, 50.0], "step 1: forecast -0.5", False),
        ([-0.5, 1.0], "step 1: forecast -0.5", False),
    ],
)
def test_only_what_may_be_percentages_is_to_be_divided(cells, outside, of_percentages):
    with pytest.raises(ValueError, match=rf"{outside} lies outside \[0, 1\]; ") as error:
        check_values(TrajectoryArray(cells, [2]), True)
    assert ("divide percentages by 100, or turn" in str(error.value)) is of_percentages
    check_values(TrajectoryArray(cells, [2]), False)


def test_one_channel_becomes_one_value_a_step():
    X = check_trajectories(TrajectoryArray([[0.1], [0.2], [0.3]], [2, 1]))
    assert X.cells.tolist() == [0.1, 0.2, 0.3]
    assert X.channels == ("channel0",)
    several = TrajectoryArray([[0.1, 0.2], [0.3, 0.4]], [2])
    assert check_trajectories(several) is several
    with pytest.raises(
        ValueError, match=r"one value a step, got 2 channels \(channel0, channel1\); pick one"
    ):
        check_trajectories(several, single_channel=True)


def test_a_value_outside_names_its_channel():
    X = TrajectoryArray([[0.1, 0.2], [0.3, 1.2], [2.0, 0.4]], [1, 2], channels=["a", "b"])
    with pytest.raises(ValueError, match=r"^run 1 \(row 1\), step 1, channel 'b': forecast 1.2 "):
        check_values(X, True)
    one = TrajectoryArray([[0.1], [1.2]], [2], channels=["a"])
    with pytest.raises(ValueError, match=r"^run 0 \(row 0\), step 2: forecast 1.2 "):
        check_values(one, True)


@pytest.mark.parametrize(
    ("cells", "message"),
    [
        ([[NAN, NAN]] * 2, "channel 'a' has no value at any step; give signals that were recorded"),
        ([[0.1, NAN]] * 2, r"channel 'b' has no value at any step; leave it out: X\[\['a'\]\]"),
        ([[0.1, NAN], [NAN, 0.1]], r"run 0 \(row 0\), step 1, channel 'b': the value is missing; "),
    ],
)
def test_missing_values_and_what_else_helps(cells, message):
    X = TrajectoryArray(cells, [2], channels=["a", "b"], missing="allow")
    for probabilities in (False, True):
        with pytest.raises(ValueError, match=f"^{message}.*, or this$"):
            check_values(X, probabilities, remedy=", or this")
        check_values(X, probabilities, allow_missing=True)


def test_values_outside_beside_missing_ones():
    X = TrajectoryArray([NAN, 1.5], [2], missing="allow")
    with pytest.raises(ValueError, match="step 2: forecast 1.5 lies outside") as error:
        check_values(X, True, allow_missing=True)
    assert "percentages" not in str(error.value)
    unnamed = TrajectoryArray([NAN, NAN], [2], missing="allow")
    with pytest.raises(ValueError, match=r"^run 0 \(row 0\), step 1: the value is missing"):
        check_values(unnamed, False)


def test_labels_that_are_text():
    assert check_labels(["a", "b"], 2).tolist() == ["a", "b"]
    with pytest.raises(ValueError, match="task must be a label for each run, got the text 'ab'"):
        check_labels("ab", 2, "task")
