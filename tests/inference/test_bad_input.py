"""What comparisons, intervals and designs refuse, and what their errors name."""

import numpy as np
import pandas as pd
import pytest

from refused import not_refused
from trajscore.datasets import make_trajectories
from trajscore.inference import (
    LabelDesign,
    SequentialComparison,
    bootstrap,
    compare_predictors,
    label_intervals,
    labels_needed,
    paired_bootstrap,
    runs_needed,
)

pytestmark = pytest.mark.filterwarnings("ignore:intervals of the mean of:UserWarning")

NAN, INF = np.nan, np.inf
X, Y = make_trajectories(400, sharpness=2, random_state=1, return_X_y=True)
TWO, A, B = [[1.0], [2.0]], [1.0, 2, 3], [3.0, 2, 2]
ALL = {"label_probability": 1.0}


def design(y=None, judge=None, label_probability=None, **parameters):
    LabelDesign(**parameters).fit(X, y, judge=judge, label_probability=label_probability)


def follow(bound, a, b):
    SequentialComparison(bound).update(a, b)


BAD = [
    (bootstrap, [
        ("mean", 5, {}, "statistic"),
        *((sum, 5, {"n_resamples": n}, "n_resamples must be a whole number, at least 1")
          for n in (0, -1, 1.5, 10**8 + 1, "9")),
    ]),
    (paired_bootstrap, [
        ([[1.0]], {}, "2 runs"),
        (np.empty((0, 2)), {}, "samples"),
        (pd.DataFrame({"b": [1.0, NAN]}), {}, "row 1.*'b'"),
        (TWO, {"groups": [1, 1]}, "one cluster"),
        (TWO, {"groups": [1]}, "groups"),
        (TWO, {"n_resamples": 2.5}, "n_resamples.* 2.5"),
        (TWO, {"confidence_level": 95}, "confidence_level"),
        (TWO, {"method": "bc"}, "method"),
        (TWO, {"other": [[1.0]]}, r"other .*\(2, 1\), got \(1, 1\)"),
        (TWO, {"other": [[1.0], [NAN]]}, "row 1"),
    ]),
    (compare_predictors, [
        ({"a": A}, {}, "2 predictors"),
        ([0.1, 0.2], {}, "at least 2 predictors"),
        ({"a": [1.0], "b": [2.0]}, {}, "2 runs"),
        ({"a": [1.0, 2, NAN], "b": A}, {}, "row 2.*'a'"),
        ({"a": A, "b": B}, {"groups": [0, 0, 0]}, "one cluster"),
        ({"a": A, "b": B}, {"reference": "c"}, "reference 'c'"),
        ({"a": A, "b": B}, {"reference": ["a"]}, "reference"),
        ({"a": A, "b": B}, {"confidence_level": 95}, "confidence_level"),
        ({"a": A, "b": B}, {"n_resamples": 99.5}, "n_resamples"),
        ({"a": A, "b": [3.0, 2]}, {}, r"'a' \(3,\), 'b' \(2,\)"),
        ({"a": A, "b": [3.0, 2, "x"]}, {}, "'b'"),
        ({"a": A, "b": [[3.0], [2], [1]]}, {}, r"'b' .*\(3, 1\)"),
        ({"a": pd.Series(A), "b": pd.Series(B, index=[2, 1, 0])}, {}, "'a' and 'b'.*index"),
        (pd.DataFrame(np.eye(3), columns=["a", "a", "b"]), {}, "'a'"),
    ]),
    (SequentialComparison, [
        *((bound, {}, "bound")
          for bound in (0, "a", INF, (0.1, 1), (-1, 0), (-1, 1, 2), (None, 1))),
        *((1, alpha, {}, "alpha") for alpha in (None, 1.5)),
    ]),
    (follow, [
        ((-0.5, 1), 0, 0.6, {}, "run 0.* -0.6.*bound"),
        (1, [0, 0], [0, 2], {}, "run 1.* -2"),
        (1, NAN, 0, {}, "run 0.* nan"),
        (1, [0, 0], [0], {}, "score_a .*score_b"),
        (1, "x", 0, {}, "score_a"),
    ]),
    (label_intervals, [
        (X, Y, {"label_probability": [0.1, 0.2]}, r"label_probability .*400.*\(2,\)"),
        (X, Y, ALL | {"judge": [1, 0]}, r"judge .*400.*\(2,\)"),
        (X, Y, ALL | {"judge": ["yes"] * 400}, "judge"),
        (X, [0.5] + [1] * 399, ALL, "0.5"),
        (X, Y, ALL | {"confidence_level": 95}, "confidence_level"),
        (X, Y, ALL | {"score": "logg"}, "score"),
        (X, Y, ALL | {"weights": lambda step: 0.0 * step}, "weights"),
        (X, [1] * 19 + [-1] * 381, {"label_probability": 0.05}, "19 runs .*at least 20"),
    ]),
    (design, [
        ({"n_labels": 0}, "n_labels"),
        ({"score": "logg"}, "score 'logg'"),
        ({"random_state": "a"}, "seed a numpy"),
        (np.where(np.isin(np.arange(400), [1, 2]), Y, -1), {}, "label_probability"),
        (Y, {"label_probability": 1}, "every run is labelled"),
        ({"judge": [1]}, "judge .*400"),
    ]),
    (labels_needed, [
        *((width, {"n_runs": 100}, "half_width") for width in (0, -0.1, INF, NAN, "wide", 0.5, 5)),
        (0.1, {"n_runs": 100, "sensitivity": 2}, "sensitivity"),
        (0.1, {"n_runs": 1}, "n_runs"),
        (0.1, {"n_runs": 100, "confidence_level": 95}, "confidence_level"),
    ]),
    (runs_needed, [
        *((difference, {"sd": 1}, "difference") for difference in (0, INF, "1")),
        (1, {}, "either the samples .* sd"),
        (1, [1, 2], {"sd": 1}, "either the samples .* sd"),
        (1, {"sd": 1, "power": 1}, "power"),
        (1, {"sd": 1, "alpha": 0}, "alpha"),
        (1, {"sd": 1, "groups": [1, 2]}, "groups"),
        (1, [1.0], {}, "samples .*2 runs"),
        (1, np.eye(3), {}, "samples"),
        (1, [1.0, NAN], {}, "row 1.* missing"),
        (1, [1.1, 1.1, 1.1], {}, "does not vary"),
        (1e-200, {"sd": 1e200}, "larger difference"),
        (1, [1, 2, 3], {"groups": [1, 1, 1]}, "one cluster"),
        (1, [1, 2, 3], {"groups": [1, 2, 3]}, "every cluster has one run"),
        *((1, {"sd": value}, "sd") for value in (0, INF, NAN, -1, "1")),
    ]),
]  # fmt: skip


@pytest.mark.parametrize(("function", "rows"), BAD, ids=[function.__name__ for function, _ in BAD])
def test_bad_input_is_named(function, rows):
    assert not not_refused(function, rows)
