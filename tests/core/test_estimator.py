import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError

from trajscore import TrajectoryArray
from trajscore.core.estimator import (
    TraceTransformer,
    check_estimator_input,
    like_input,
    require_y,
    track_channels,
)


class Doubler(TraceTransformer, BaseEstimator):
    def fit(self, X, y=None):
        check_estimator_input(self, X, reset=True, single_channel=False)
        return self

    def transform(self, X):
        traces = check_estimator_input(self, X, reset=False, single_channel=False)
        return like_input(traces.with_cells(2 * traces.cells, channels=traces.channels), X)


def with_channels(*names):
    return TrajectoryArray(np.ones((2, len(names))), [2], channels=names)


@pytest.mark.parametrize(
    "X",
    [
        np.array([[0.1, 0.2], [0.3, np.nan]]),
        pd.DataFrame([[0.1, 0.2], [0.3, np.nan]], index=["a", "b"], columns=["t1", "t2"]),
        np.ma.array([[0.1, 0.2], [0.3, 9]], mask=[[0, 0], [0, 1]]),
        [[0.1, 0.2], [0.3, np.nan]],
    ],
)
def test_a_padded_array_stays_one(X):
    fitted = Doubler().fit(X)
    np.testing.assert_array_equal(fitted.transform(X), [[0.2, 0.4], [0.6, np.nan]])
    assert (fitted.n_channels_in_, fitted.channels_in_) == (1, None)
    assert fitted.n_features_in_ == 2


def test_a_padded_array_of_another_width_is_pointed_to_the_container():
    with pytest.raises(ValueError, match="wrap both arrays with TrajectoryArray.from_padded"):
        Doubler().fit([[0.1, 0.2]]).transform([[0.1, 0.2, 0.3]])


@pytest.mark.parametrize(
    "X", [[[0.1, 0.2], [0.3]], TrajectoryArray.from_list([[0.1, 0.2], [0.3]], ids=["a", "b"])]
)
def test_other_forms_become_containers_of_any_width(X):
    fitted = Doubler().fit(X)
    assert [run.tolist() for run in fitted.transform(X)] == [[0.2, 0.4], [0.6]]
    assert fitted.transform([[0.1], [0.1, 0.2, 0.3]]).shape == (2, 3)
    assert not hasattr(fitted, "n_features_in_")


def test_labels_of_rows_are_ids():
    frame = pd.DataFrame([[0.1], [0.2]], index=["b", "a"])
    assert check_estimator_input(Doubler(), frame, reset=True).ids.tolist() == ["b", "a"]


def test_the_channels_of_fit_are_asked_for_later():
    fitted = Doubler().fit(with_channels("a", "b"))
    assert fitted.channels_in_ == ("a", "b")
    with pytest.raises(ValueError, match="fitted on 2 channels, got 1"):
        fitted.transform(with_channels("a"))
    with pytest.raises(ValueError, match="fitted on the channels a, b, got b, a; pick the same"):
        fitted.transform(with_channels("b", "a"))
    unnamed = Doubler().fit(TrajectoryArray.from_list([[0.1]]))
    track_channels(unnamed, with_channels("a"), reset=False)  # no names, no matter


def test_values_may_be_missing_only_where_that_is_said():
    X = TrajectoryArray.from_list([[0.1, np.nan]], missing="allow")
    assert check_estimator_input(Doubler(), X, reset=True, allow_missing=True) is X
    with pytest.raises(ValueError, match="step 2: the value is missing"):
        check_estimator_input(Doubler(), X, reset=True)


def test_what_scikit_learn_expects():
    with pytest.raises(NotFittedError):
        Doubler().transform([[0.1]])
    assert Doubler().set_output(transform="default").fit([[0.1]]).transform([[0.1]]) == [[0.2]]
    with pytest.raises(ValueError, match=r"^Doubler gives runs of different lengths.*\.to_frame"):
        Doubler().set_output(transform="pandas")
    assert Doubler().get_feature_names_out().tolist() == ["probability"]
    with pytest.raises(ValueError, match="Doubler requires y to be passed"):
        require_y(Doubler(), None)


@pytest.mark.parametrize("names", [["verbal"], ["verbal", "judge"]])
def test_a_table_with_one_row_a_step_is_refused(names):
    table = pd.DataFrame(np.ones((3, len(names))), columns=names)
    with pytest.raises(ValueError, match=r"column 'verbal' is not a step: .*from_frame"):
        Doubler().fit(table)
