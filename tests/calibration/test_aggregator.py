"""The last step of a pipeline: traces pass through, and collapse to probabilities."""

import numpy as np
import pytest

from trajscore import TraceAggregator

X = [[0.9, 0.1, 0.5], [0.2, 0.6]]


@pytest.mark.parametrize(
    ("options", "success"),
    [
        ({}, [0.5, 0.6]),
        ({"phi": "mean"}, [0.5, 0.4]),
        ({"phi": "min"}, [0.1, 0.2]),
        ({"phi": "weighted", "weights": lambda step: 1 / step}, [6.7 / 11, 0.5 / 1.5]),
    ],
)
def test_columns_are_failure_and_success(options, success):
    model = TraceAggregator(**options).fit(X)
    np.testing.assert_allclose(model.predict_proba(X), np.c_[1 - np.array(success), success])
    np.testing.assert_array_equal(model.classes_, [0, 1])
    np.testing.assert_array_equal(model.predict(X), np.array(success) >= 0.5)


def test_traces_pass_through():
    model = TraceAggregator().fit(X, [1, 0])
    assert [list(run) for run in model.transform(X)] == X


@pytest.mark.parametrize(
    ("options", "runs", "y", "message"),
    [
        ({"phi": "max"}, X, None, "phi"),
        ({"weights": "late"}, X, None, "weights"),
        ({}, [[0.5, 1.5]], None, "outside"),
        ({}, X, [1], "1"),
        ({}, X, [1, 2], "outcome 2 lies outside"),
    ],
)
def test_refused(options, runs, y, message):
    with pytest.raises(ValueError, match=message):
        TraceAggregator(**options).fit(runs, y)
