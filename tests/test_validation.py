import numpy as np
import pandas as pd
import pytest

from trajscore import TrajectoryArray, check_trajectories
from trajscore.validation import check_sample_weight


@pytest.mark.parametrize(
    "given",
    [
        [[0.1, 0.2], [0.3]],
        np.array([[0.1, 0.2], [0.3, np.nan]]),
        pd.DataFrame([[0.1, 0.2], [0.3, None]]),
        TrajectoryArray.from_list([[0.1, 0.2], [0.3]]),
    ],
)
def test_all_forms_are_the_same_runs(given):
    X = check_trajectories(given, probabilities=True, single_channel=True)
    assert [run.tolist() for run in X] == [[0.1, 0.2], [0.3]]


def test_out_of_range_names_run_step_and_remedy():
    X = TrajectoryArray.from_list([[0.1], [0.2, 1.5]], ids=["a", "b"])
    with pytest.raises(ValueError, match=r"run 'b' \(row 1\), step 2: forecast 1\.5 .*Platt"):
        check_trajectories(X, probabilities=True)


def test_channels_and_missing():
    X = TrajectoryArray([[0.1, np.nan]], [1], channels=["a", "b"], missing="allow")
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
    with pytest.raises(ValueError, match="one for each run"):
        check_sample_weight([1], 2)
    with pytest.raises(ValueError, match="all sample weights are zero"):
        check_sample_weight([0, 0], 2)
