"""Class probabilities: which rows are refused, in which words, and which column is which class."""

import numpy as np
import pandas as pd
import pytest

from trajscore.metrics import _class_probabilities
from trajscore.metrics._class_probabilities import (
    check_classes,
    check_rows,
    encode_labels,
    row_slices,
)

NAN, INF = float("nan"), float("inf")


def words_of(rows, *, log=False):
    with pytest.raises(ValueError) as error:
        check_rows(np.array(rows, dtype=float), slice(None), log=log)
    return str(error.value)


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ([[0.5, NAN]], "row 0: a value is NaN; leave the row out or fill it in"),
        ([[0, INF]], "row 0: a value is infinite; probabilities lie in [0, 1]"),
        ([[0, -INF]], "row 0: these look like log-probabilities; pass log_proba=True"),
        (np.log([[0.3, 0.7]]), "row 0: these look like log-probabilities; pass log_proba=True"),
        ([[-1e-4, -INF]], "row 0: these look like log-probabilities; pass log_proba=True"),
        ([[-1.1e-4, -INF]], "row 0: a value is infinite; probabilities lie in [0, 1]"),
        ([[1.5, -0.5]], "row 0: probability -0.5 is negative; probabilities lie in [0, 1]"),
        ([[1.25, -0.125, -0.125]], "row 0: probability -0.125 is negative; probabilities lie"),
        ([[1.6, -0.6]], "row 0: these look like logits, not probabilities; take their softmax"),
        (
            [[0.8, -0.8, 1.0]],
            "row 0: these look like logits, not probabilities; take their softmax",
        ),
        ([[-1, -2]], "row 0: these look like logits, not probabilities; take their softmax first"),
        ([[0, 2]], "row 0: these look like logits, not probabilities; take their softmax first"),
        (
            [[0.2, 0.3]],
            "row 0: the probabilities add up to 0.5, not 1 (tolerance 0.0001); divide them by",
        ),
        ([[1.00005, 0.0001]], "row 0: the probabilities add up to 1.00015, not 1"),
        ([[0.25, 1.0]], "row 0: the probabilities add up to 1.25, not 1"),
        ([[1.6, -0.3, -0.3]], "row 0: these look like logits, not probabilities; take their"),
        ([[0, 100]], "row 0: these look like percentages; divide them by 100"),
        ([[40, 60]], "row 0: these look like percentages; divide them by 100"),
    ],
)
def test_what_is_wrong_with_probabilities(rows, words):
    assert words_of(rows).startswith(words)


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ([[0.4, 0.6]], "row 0: these look like plain probabilities; pass log_proba=False"),
        ([[0.0, 1.0]], "row 0: these look like plain probabilities; pass log_proba=False"),
        ([[-0.5, 1.5]], "row 0: these look like logits, not log-probabilities"),
        ([[0.1, 0.1]], "row 0: these look like logits, not log-probabilities"),
        (
            [[-np.log(4), -np.log(4)]],
            (
                "row 0: the log-probabilities' exponentials add up to 0.5, not 1 (tolerance "
                "0.0001); subtract their logsumexp"
            ),
        ),
        ([[0.0, 0.0]], "row 0: the log-probabilities' exponentials add up to 2, not 1"),
    ],
)
def test_what_is_wrong_with_log_probabilities(rows, words):
    assert words_of(rows, log=True).startswith(words)


@pytest.mark.parametrize("log", [False, True])
def test_sums_may_miss_one_by_a_ten_thousandth(log):
    for total, is_good in (
        (1 + 9e-5, True),
        (1 - 9e-5, True),
        (1 + 3e-4, False),
        (1 - 3e-4, False),
    ):
        rows = np.array([[0.5, 0.5], [0.5, total - 0.5]])
        rows = np.log(rows) if log else rows
        if is_good:
            check_rows(rows, slice(None), log=log)
        else:
            assert words_of(rows, log=log).startswith("row 1: the ")


def test_a_negative_probability_is_refused_though_the_sum_is_one():
    assert words_of([[0.5, 0.5], [1.00001, -0.00001]]).startswith("row 1: probability -1e-05 is")
    check_rows(np.array([[0.0, 1.0]]), slice(None), log=False)


@pytest.mark.parametrize(
    ("rows", "worst"),
    [
        ([[0.5, 0.4], [0.5, 0.1], [0.5, 0.2]], 1),
        ([[0.5, 0.4], [1.3, -0.3], [0.5, 0.3]], 1),  # .3 below zero is worse than a sum .2 off
        ([[0.5, 0.4], [1.1, -0.1], [0.5, 0.1]], 2),
        ([[9, 9], [INF, 0], [0.5, 0.5]], 1),
        ([[9, 9], [INF, 0], [0.5, NAN]], 2),
        ([[NAN, NAN], [NAN, 0.5], [1e307, 1e307]], 0),
    ],
)
@pytest.mark.parametrize("cells", [2, 100])
def test_the_worst_row_of_all_is_named(monkeypatch, rows, worst, cells):
    monkeypatch.setattr(_class_probabilities, "_CHUNK_CELLS", cells)
    with pytest.raises(ValueError, match=f"row {worst}:"):
        check_rows(np.array(rows, dtype=float), slice(0, 3), log=False)


@pytest.mark.parametrize("row", [[1e308, 1e308], [1e308, -1e308], [INF, -INF], [1e308, INF]])
@pytest.mark.parametrize("log", [False, True])
def test_values_whose_sum_overflows_are_refused_without_a_warning(row, log):
    assert words_of([row], log=log).startswith("row 0: ")


def test_only_the_asked_rows_are_checked():
    check_rows(np.array([[9.0, 9.0], [0.5, 0.5]]), slice(1, 2), log=False)


@pytest.mark.parametrize(
    ("shape", "cells", "slices"),
    [
        ((5, 3), 6, [(0, 2), (2, 4), (4, 5)]),
        ((4, 3), 7, [(0, 2), (2, 4)]),
        ((2, 9), 4, [(0, 1), (1, 2)]),
        ((3, 2), 100, [(0, 3)]),
    ],
)
def test_slices_of_rows(monkeypatch, shape, cells, slices):
    monkeypatch.setattr(_class_probabilities, "_CHUNK_CELLS", cells)
    assert row_slices(np.zeros(shape)) == [slice(a, b) for a, b in slices]


def test_a_slice_holds_131072_cells():
    assert row_slices(np.empty((70_000, 2)))[0] == slice(0, 65_536)


@pytest.mark.parametrize(
    ("y", "n_classes", "labels", "columns"),
    [
        (["b", "a", "c", "a"], 3, None, [1, 0, 2, 0]),
        ([7, 3, 7], 2, None, [1, 0, 1]),
        ([2, 0], 3, None, [2, 0]),
        ([0.0, 2.0], 3, None, [0, 2]),
        ([False, True, True], 2, None, [0, 1, 1]),
        ([True, True], 2, None, [1, 1]),
        ([[1], [0]], 2, None, [1, 0]),
        (["x", "y"], 2, ["y", "x"], [1, 0]),
        (["x"], 3, ["z", "y", "x"], [2]),
        ([True, False], 2, [True, False], [0, 1]),
    ],
)
def test_columns_of_classes(y, n_classes, labels, columns):
    found = encode_labels(y, n_classes, labels, len(y))
    assert found.tolist() == columns
    assert found.dtype == np.int64


@pytest.mark.parametrize(
    ("y", "n_classes", "labels", "words"),
    [
        ([0, 1], 2, None, "y_true has shape (2,), but there are 3 rows"),
        ([[0, 1], [1, 0], [1, 1]], 2, None, "y_true has shape (3, 2), but there are 3 rows"),
        (["a", None, "b"], 2, None, "row 1: the class is missing; leave the row out"),
        (
            ["a", "b", "a"],
            3,
            None,
            "2 classes occur and there are 3 columns; pass labels=, the class of each column",
        ),
        (
            ["a", "b", "c"],
            2,
            None,
            "3 classes occur, but there are 2 columns; give one column for each",
        ),
        (
            [1, 0, 2],
            2,
            None,
            (
                "row 2: class 2 has no column; the columns stand for [0, 1], so pass labels= if "
                "that is not so, and leave the row out if it is"
            ),
        ),
        (
            [1, -1, 0],
            2,
            None,
            (
                "row 1: class -1 has no column; -1 stands for an outcome that was not observed, so "
                "leave such runs out before scoring"
            ),
        ),
        ([1.0, 0.0, -1.0], 2, None, "row 2: class -1.0 has no column; -1 stands for an outcome"),
        ([0, 1, -1], 2, [1, 0], "row 2: class -1 has no column; the columns stand for [1, 0], so"),
        (["a", "z", "b"], 2, ["a", "b"], "row 1: class 'z' has no column; the columns stand for"),
        ([0, 1, 0], 2, [0, 1, 2], "labels must be 2 different classes, one per column"),
        ([0, 1, 0], 2, [1, 1], "labels must be 2 different classes, one per column"),
    ],
)
def test_classes_that_have_no_column(y, n_classes, labels, words):
    with pytest.raises(ValueError) as error:
        encode_labels(y, n_classes, labels, 3)
    assert str(error.value).startswith(words)


def test_classes_of_text_and_numbers():
    y = np.array(["a", 1], dtype=object)
    with pytest.raises(ValueError, match="the classes in y_true are partly text, partly numbers"):
        encode_labels(y, 2, None, 2)


def test_floats_are_read_in_place_and_missing_values_are_named():
    P = np.array([[0.5, 0.5]], dtype=np.float32)
    read, y, weight = check_classes([1], P, None, None)
    assert read is P
    assert (y.tolist(), weight.tolist()) == ([1], [1])
    frame = pd.DataFrame({"a": pd.array([0.5, None], "Float64"), "b": [0.5, 0.5]})
    np.testing.assert_array_equal(
        check_classes([0, 1], frame, None, None)[0], [[0.5] * 2, [NAN, 0.5]]
    )
    for bad, words in (([0.5, 0.5], r"got \(2,\)"), ([[1.0]], r"got \(1, 1\)")):
        with pytest.raises(ValueError, match=words):
            check_classes([0], bad, None, None)
    with pytest.raises(ValueError, match="there are no samples; give at least one"):
        check_classes([], np.empty((0, 2)), None, None)
