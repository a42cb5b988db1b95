"""From lists, padded arrays and tables to the parts of a container."""

import re
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal

from trajscore import TrajectoryArray
from trajscore.core.convert import (
    check_columns,
    holds_runs,
    is_padded,
    parts_of_any,
    parts_of_list,
    parts_of_padded,
    refuse_log,
    row_ids,
)

NAN = float("nan")
RUNS = pd.Series([[0.1, 0.2], [0.3]], index=["a", "b"])
FRAME = pd.DataFrame([[0.1, 0.2], [0.3, None]], index=[7, 3], columns=[1, 2])


def plain(parts):
    return {name: np.asarray(part).tolist() for name, part in parts.items()}


@pytest.mark.parametrize(
    ("X", "parts"),
    [
        (RUNS, {"cells": [0.1, 0.2, 0.3], "lengths": [2, 1], "ids": ["a", "b"]}),
        (RUNS.to_numpy(), {"cells": [0.1, 0.2, 0.3], "lengths": [2, 1], "ids": None}),
        (FRAME, {"cells": [0.1, 0.2, 0.3], "lengths": [2, 1], "n_steps": 2, "ids": [7, 3]}),
        ([[0.1, 0.2], [0.3]], {"cells": [0.1, 0.2, 0.3], "lengths": [2, 1]}),
        (([0.1], [0.2, 0.3]), {"cells": [0.1, 0.2, 0.3], "lengths": [1, 2]}),
        ([[0.1, 0.2], [0.3, NAN]], {"cells": [0.1, 0.2, 0.3], "lengths": [2, 1], "n_steps": 2}),
    ],
)
def test_plain_forms(X, parts):
    assert plain(parts_of_any(X)) == parts


@pytest.mark.parametrize(
    ("X", "of_runs", "padded"),
    [
        (RUNS, True, False),
        (pd.Series(["ab", "c"]), False, True),
        (pd.Series([[1], 2]), False, True),
        (pd.Series([], dtype=object), False, True),
        (np.zeros(2), False, True),
        (np.zeros((2, 2), dtype=object), False, True),
        (FRAME, False, True),
        (np.zeros((2, 2, 1)), False, False),
        ([[1], [1, 2]], False, False),
        ([[1, 2], [1, 2]], False, True),
        ([1, [1, 2]], False, True),
        ([], False, True),
    ],
)
def test_forms_are_told_apart(X, of_runs, padded):
    assert holds_runs(X) is of_runs
    assert is_padded(X) is padded


@pytest.mark.parametrize(
    ("index", "ids"),
    [
        ([3, 1], [3, 1]),
        (["b", "a"], ["b", "a"]),
        ([1, 1], None),
        ([0.5, 1.5], None),
        ([1, "a"], None),
    ],
)
def test_row_labels(index, ids):
    for X in (pd.Series([0, 1], index=index), pd.DataFrame({1: [0, 1]}, index=index)):
        found = row_ids(X)
        assert (None if found is None else found.tolist()) == ids
    assert row_ids([[1]]) is None


def test_runs_of_a_log():
    run = SimpleNamespace(steps=[], outcome=1)
    for X in ([run], (run,)):
        with pytest.raises(ValueError, match="expected numbers, got runs of a log; make signals"):
            refuse_log(X)
    refuse_log([SimpleNamespace(steps=[])])
    refuse_log([])
    refuse_log(3)


def test_lists():
    channels = parts_of_list([[[1, 2], [3, 4]], [[5, 6]]])
    assert plain(channels) == {"cells": [[1, 2], [3, 4], [5, 6]], "lengths": [2, 1]}
    assert plain(parts_of_list([])) == {"cells": [], "lengths": []}


@pytest.mark.parametrize(
    ("runs", "words"),
    [
        (3, "runs must be a sequence of runs, got 3"),
        ([[1], ["a"]], "row 1: the values must be numbers: "),
        ([[1], [10**400]], "row 1: the values must be numbers: "),
        ([[1], 0.5], "row 1: a run is a list of steps, such as [0.1, 0.2], got the number 0.5"),
        ([[[[1]]]], "row 0: a run is a list of steps, such as [0.1, 0.2], got 3 dimensions"),
        (
            [[[1, 2]], [[3, 4]], [[5]]],
            (
                "rows 0 and 2 have values of shapes (2,) and (1,) a step; all runs need the same "
                "number of channels"
            ),
        ),
        ([[1], [[1]]], "rows 0 and 1 have values of shapes () and (1,) a step; all runs need"),
    ],
)
def test_lists_that_are_refused(runs, words):
    with pytest.raises(ValueError, match="^" + re.escape(words)):
        parts_of_list(runs)


@pytest.mark.parametrize(
    ("values", "lengths", "found", "cells"),
    [
        ([[1, NAN, 3], [4, NAN, NAN]], None, [3, 1], [1, NAN, 3, 4]),
        ([[1, NAN, 3], [4, NAN, NAN]], [2, 3], [2, 3], [1, NAN, 4, NAN, NAN]),
        ([[NAN, 2], [NAN, NAN]], None, [2, 0], [NAN, 2]),
        ([[[1, NAN], [NAN, NAN]], [[NAN, 2], [NAN, 4]]], None, [1, 2], None),
        (np.zeros((2, 0)), None, [0, 0], []),
    ],
)
def test_padded(values, lengths, found, cells):
    parts = parts_of_padded(values, lengths)
    assert parts["lengths"].tolist() == found
    assert parts["n_steps"] == np.shape(values)[1]
    if cells is None:
        cells = [[1, NAN], [NAN, 2], [NAN, 4]]
    assert_array_equal(parts["cells"], cells)


@pytest.mark.parametrize(
    ("values", "lengths", "words"),
    [
        ([[1, 2], [3, 4]], [1], "lengths must hold 2 numbers of at most 2, one for each row"),
        ([[1, 2], [3, 4]], [1, 3], "lengths must hold 2 numbers of at most 2, one for each row"),
        ([1, 2], None, "Expected 2D or 3D array, got 1D array instead. X needs a row for each run"),
        ([[[[1]]]], None, "Expected 2D or 3D array, got 4D array instead"),
        ([["a"]], None, "values must be real numbers: "),
    ],
)
def test_padded_arrays_that_are_refused(values, lengths, words):
    with pytest.raises(ValueError, match="^" + re.escape(words)) as error:
        parts_of_padded(values, lengths)
    assert ("swap X and y" in str(error.value)) == ("1D" in words)


@pytest.mark.parametrize(
    ("frame", "words"),
    [
        ({"id": [1], "step1": [2]}, "column 'id' is not a step: a DataFrame needs a row"),
        ({1: ["a"]}, "a DataFrame given as trajectories must hold one run a row and one step a"),
        (
            {1: pd.to_datetime(["2025-01-02"])},
            "column 1 must hold real numbers, but dates (datetime64[",
        ),
    ],
)
def test_tables_that_are_refused(frame, words):
    with pytest.raises(ValueError, match="^" + re.escape(words)):
        parts_of_any(pd.DataFrame(frame))
    check_columns(FRAME)


def test_text():
    words = "expected numbers, got the text 'runs.csv'; read a table with pandas and"
    with pytest.raises(ValueError, match=words):
        parts_of_any("runs.csv")
    assert parts_of_any(pd.DataFrame({"t1": [0.5]}))["lengths"].tolist() == [1]


def test_a_pair_that_was_not_unpacked():
    pair = TrajectoryArray([0.5, 0.4], [1, 1]), np.array([1, 0])
    with pytest.raises(ValueError, match=r"X is a pair \(X, y\), .* write X, y = Traj"):
        parts_of_any(pair)


def test_runs_of_a_log_in_a_series_or_an_array():
    class Run(list):
        steps, outcome = (), 1

    for X in (pd.Series([Run(), Run()]), pd.Series([Run([0.5])])):
        with pytest.raises(ValueError, match="expected numbers, got runs of a log; make signals"):
            parts_of_any(X)
    assert refuse_log(pd.Series([[0.5]])) is None
    assert refuse_log([SimpleNamespace(outcome=1)]) is None


def test_a_series_of_one_run_holds_runs():
    assert holds_runs(pd.Series([[0.5, 0.6]]))
    assert plain(parts_of_any(pd.Series([[0.5, 0.6]])))["lengths"] == [2]
    assert is_padded(SimpleNamespace())
