"""Parts of a container beside its values, and parts of several containers joined."""

import re

import numpy as np
import pandas as pd
import pytest

from trajscore import TrajectoryArray
from trajscore.core.parts import (
    as_channels,
    as_ended,
    as_meta,
    as_row_index,
    row_key,
    width,
)

ONE, TWO = np.zeros(3), np.zeros((3, 2))


@pytest.mark.parametrize(
    ("channels", "cells", "names"),
    [
        (None, ONE, None),
        (None, TWO, ("channel0", "channel1")),
        ("p", ONE, ("p",)),
        (["p", 3], TWO, ("p", "3")),
    ],
)
def test_channels(channels, cells, names):
    assert as_channels(channels, cells) == names
    assert (width(ONE), width(TWO)) == (1, 2)


@pytest.mark.parametrize(
    ("channels", "cells", "words"),
    [
        (3, ONE, "channels must be names, got 3"),
        (["a", "b"], ONE, "expected 1 different channel name, got ['a', 'b']; name each channel"),
        (["a"], TWO, "expected 2 different channel names, got ['a']; name each channel once"),
        (["a", "a"], TWO, "expected 2 different channel names, got ['a', 'a']; name each"),
    ],
)
def test_channels_that_are_refused(channels, cells, words):
    with pytest.raises(ValueError, match="^" + re.escape(words)):
        as_channels(channels, cells)


def test_meta():
    frame = pd.DataFrame({"task": ["a", "b"]}, index=[5, 6])
    found = as_meta(frame, 2)
    assert found.index.tolist() == [0, 1]
    assert frame.index.tolist() == [5, 6]
    assert as_meta({"task": ["a", "b"]}, 2)["task"].tolist() == ["a", "b"]
    assert as_meta(None, 2) is None
    assert as_meta(pd.DataFrame(index=[0, 1, 2]), 2) is None
    with pytest.raises(ValueError, match="meta has 2 rows, but there are 3 runs"):
        as_meta(frame, 3)


def test_ends():
    assert as_ended(True, 2).tolist() == [True, True]
    assert as_ended([True, False], 2).tolist() == [True, False]
    for ended in (1, [True], [1, 0]):
        words = f"ended must be True, False or 2 of these, one for each run, got {ended!r}"
        with pytest.raises(ValueError, match=re.escape(words)):
            as_ended(ended, 2)


def test_indices():
    assert row_key(([1], Ellipsis)) == [1]
    for key in ((1, 2), (1, Ellipsis, Ellipsis), (Ellipsis,)):
        with pytest.raises(IndexError, match=r"index a TrajectoryArray by runs, X\[rows\], or by"):
            row_key(key)
    assert as_row_index(slice(1), 2) == slice(1)
    assert as_row_index([], 2).dtype == np.int64
    assert as_row_index([True, False], 2).tolist() == [True, False]
    assert as_row_index([1, -1], 2).tolist() == [1, -1]
    for key, n_runs, words in (
        ([True], 2, "a boolean index needs 2 entries, got (1,)"),
        (np.zeros(0, bool), 2, "a boolean index needs 2 entries, got (0,)"),
        (1, 2, "index runs by whole numbers, a boolean mask or a slice"),
        ([1.0], 2, "index runs by whole numbers, a boolean mask or a slice"),
    ):
        with pytest.raises(IndexError, match=re.escape(words)):
            as_row_index(key, n_runs)


FIRST = TrajectoryArray([0.1, 0.2, 0.3], [2, 1], ids=["a", "b"], ended=True)
SECOND = TrajectoryArray([0.4], [1], ids=["c"], horizon=[5], meta={"task": [7]})
LAST = TrajectoryArray([0.5], [1], ids=["z"])


def test_runs_after_one_another():
    X = TrajectoryArray.concat([FIRST, SECOND])
    assert X.cells.tolist() == [0.1, 0.2, 0.3, 0.4]
    assert X.lengths.tolist() == [2, 1, 1]
    assert X.horizon.tolist() == [2, 1, 5]
    assert X.ids.tolist() == ["a", "b", "c"]
    assert X.ended.tolist() == [True, True, False]
    assert X.meta["task"].isna().tolist() == [True, True, False]
    assert X.padded().shape == (3, 2)
    assert TrajectoryArray.concat([FIRST, LAST]).horizon is None
    assert TrajectoryArray.concat([FIRST, LAST]).meta.empty
    named = TrajectoryArray([0.4], [1], ids=["c"], channels=["p"])
    with pytest.raises(ValueError, match="concat needs the same channels everywhere, got"):
        TrajectoryArray.concat([FIRST, named])
    empty = TrajectoryArray.concat([SECOND[:0], SECOND])
    assert empty.meta["task"].dtype == np.int64


def test_channels_side_by_side():
    other = TrajectoryArray([0.5, 0.6, 0.7], [2, 1], ids=["a", "b"], horizon=[4, 5])
    X = TrajectoryArray.stack([FIRST, other])
    assert X.cells.tolist() == [[0.1, 0.5], [0.2, 0.6], [0.3, 0.7]]
    assert X.channels == ("value0", "value1")
    assert X.horizon.tolist() == [4, 5]
    assert X.ended.tolist() == [True, True]
    assert TrajectoryArray.stack([FIRST, FIRST]).horizon is None
    assert TrajectoryArray.stack([FIRST, other], channels=["p", "q"]).channels == ("p", "q")
    three = TrajectoryArray.stack([X, other])
    assert three.channels == ("value0", "value1", "value")
    longer = TrajectoryArray([0.5, 0.6, 0.7], [2, 1], ids=["a", "b"], horizon=[4, 6])
    words = "row 1 has horizon 5 in container 1, but 6 in container 2; a run has one horizon"
    with pytest.raises(ValueError, match=words):
        TrajectoryArray.stack([FIRST, other, longer])
