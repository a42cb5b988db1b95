"""Runs of different lengths, by hand: what is stored, picked, shown, and named in errors."""

import pickle

import numpy as np
import pandas as pd
import pytest

from trajscore import TrajectoryArray

NAN = np.nan
RUNS = [[0.1, 0.2, 0.3], [0.4], [0.5, 0.6]]
META = pd.DataFrame({"task": list("xyz")})
X = TrajectoryArray.from_list(RUNS, ids=list("abc"), meta=META).with_horizon([5, 1, 2])
TWO = TrajectoryArray(np.arange(12.0).reshape(6, 2) / 12, [3, 1, 2], channels=("p", "q"))


def test_parts():
    assert X.cells.tolist() == [0.1, 0.2, 0.3, 0.4, 0.5, 0.6]
    assert X.offsets.tolist() == [0, 3, 4, 6]
    assert X.lengths.tolist() == [3, 1, 2]
    assert X.horizon.tolist() == [5, 1, 2]
    assert (X.shape, X.ndim, X.n_channels, len(X)) == ((3, 3), 2, 1, 3)
    assert (TWO.shape, TWO.ndim, TWO.n_channels) == ((3, 3, 2), 3, 2)
    assert X.mask.astype(int).tolist() == [[1, 1, 1], [1, 0, 0], [1, 1, 0]]
    assert [run.tolist() for run in X] == RUNS
    assert X.ended.tolist() == [False] * 3
    assert TWO.meta.shape == (3, 0)
    none = TrajectoryArray([], [])
    assert (none.shape, none.mask.shape, none.value_range()) == ((0, 0), (0, 0), (0.0, 0.0))


def test_how_it_is_shown():
    assert repr(X) == "<TrajectoryArray: 3 runs of 1 to 3 steps>"
    assert repr(TWO) == "<TrajectoryArray: 3 runs of 1 to 3 steps, channels p, q>"
    assert repr(TrajectoryArray([], [])) == "<TrajectoryArray: 0 runs of no steps>"


def test_places_of_cells():
    places = [X.place(cell) for cell in range(6)]
    assert places[0] == "run 'a' (row 0), step 1"
    assert places[2] == "run 'a' (row 0), step 3"
    assert places[3] == "run 'b' (row 1), step 1"
    assert places[5] == "run 'c' (row 2), step 2"


@pytest.mark.parametrize(
    ("cells", "missing", "place"),
    [
        ([0.1, NAN, 0.3, NAN], "raise", "row 0\\), step 2: the value is NaN, .* missing='ffill'"),
        (
            [0.1, 0.2, -np.inf, NAN],
            "allow",
            "row 1\\), step 1: the value is -inf, .* drop the run$",
        ),
        ([0.1, 0.2, 0.3, np.inf], "ffill", "row 1\\), step 2: the value is inf, "),
    ],
)
def test_values_that_are_not_numbers(cells, missing, place):
    with pytest.raises(ValueError, match=place):
        TrajectoryArray(cells, [2, 2], missing=missing)


def test_range_of_values():
    assert X.value_range() == (0.1, 0.6)
    assert TWO.value_range() == (0.0, 11 / 12)
    gap = TrajectoryArray([0.1, NAN], [2], missing="allow")
    assert np.isnan(gap.value_range()).all()


def test_gaps_are_filled_within_each_run():
    gaps = TrajectoryArray([NAN, 0.2, NAN, NAN, 0.5, NAN], [3, 3], missing="allow")
    np.testing.assert_array_equal(gaps.ffill().cells, [NAN, 0.2, 0.2, NAN, 0.5, 0.5])
    filled = TrajectoryArray([NAN, 0.2, NAN], [3], missing="ffill")
    np.testing.assert_array_equal(filled.cells, [NAN, 0.2, 0.2])
    assert X.ffill() is X


# ------------------------------------------------------------------ picking


@pytest.mark.parametrize(
    ("key", "rows"),
    [
        (slice(1, None), [1, 2]), (slice(None, -1), [0, 1]), (slice(2, 1), []),
        (slice(0, 3, 2), [0, 2]), (slice(None, None, -1), [2, 1, 0]), ([2, 0], [2, 0]),
        (np.array([True, False, True]), [0, 2]), ([1, 1], [1, 1]), ([-1], [2]),
        ([0, 1, 2], [0, 1, 2]),
    ],
)  # fmt: skip
def test_rows(key, rows):
    some = X.with_ended([True, False, True])[key]
    assert [run.tolist() for run in some] == [RUNS[row] for row in rows]
    assert some.ids.tolist() == ["abc"[row] for row in rows]
    assert some.horizon.tolist() == [[5, 1, 2][row] for row in rows]
    assert some.ended.tolist() == [row != 1 for row in rows]
    assert some.meta["task"].tolist() == ["xyz"[row] for row in rows]
    assert some.meta.index.tolist() == list(range(len(rows)))
    plain = TrajectoryArray.from_list(RUNS)[key]
    assert (plain.horizon, len(plain)) == (None, len(rows))


def test_one_run():
    assert [X[k].tolist() for k in (0, 2, -1, np.int64(1))] == [RUNS[0], RUNS[2], RUNS[2], RUNS[1]]
    for key in (3, -4):
        with pytest.raises(IndexError, match=f"run {key} does not exist; the container has 3 runs"):
            X[key]


def test_channels():
    assert TWO["q"].cells.tolist() == TWO.cells[:, 1].tolist()
    assert TWO["q"].channels == ("q",)
    assert TWO["q"].cells.ndim == 1
    swapped = TWO[["q", "p"]]
    assert swapped.channels == ("q", "p")
    np.testing.assert_array_equal(swapped.cells, TWO.cells[:, ::-1])
    assert TWO[["q"]].cells.shape == (6, 1)
    with pytest.raises(KeyError, match="no channel named 'r'"):
        TWO["r"]
    with pytest.raises(ValueError, match="channel 'p' is picked twice"):
        TWO[["p", "p"]]
    with pytest.raises(IndexError, match="index runs by whole numbers"):
        TWO[["p", 0]]


def test_other_cells():
    assert X.with_cells(X.cells * 2).ids.tolist() == list("abc")
    assert TWO.with_cells(TWO.cells / 2).channels == ("p", "q")
    assert TWO.with_cells(TWO.cells[:, 0]).channels is None
    assert X.with_cells(np.ones((6, 2)), channels=["a", "b"]).channels == ("a", "b")
    with pytest.raises(ValueError, match="expected 6 cells, got 5"):
        X.with_cells(np.ones(5))
    with pytest.raises(ValueError, match="'b' \\(row 1\\), step 1: the value is inf"):
        X.with_cells([0, 0, 0, np.inf, 0, 0])


# ------------------------------------------------------------------ equality


@pytest.mark.parametrize(
    "other",
    [
        X.with_cells(X.cells * 1.5),
        X.with_horizon(None),
        X.with_ended(),
        TrajectoryArray.from_list(RUNS, ids=list("abd"), meta=META).with_horizon([5, 1, 2]),
        TrajectoryArray.from_list(RUNS, ids=list("abc")).with_horizon([5, 1, 2]),
        TrajectoryArray(X.cells, [2, 2, 2], ids=list("abc"), meta=META, horizon=[5, 2, 2]),
        X.with_cells(X.cells, channels=["p"]),
        RUNS,
    ],
)
def test_what_differs_is_not_equal(other):
    assert other != X
    assert other != X


def test_equality_and_pickles():
    again = TrajectoryArray.from_list(RUNS, ids=list("abc"), meta=META).with_horizon([5, 1, 2])
    assert X == again == pickle.loads(pickle.dumps(X))
    gap = TrajectoryArray([0.1, NAN], [2], missing="allow")
    assert gap == TrajectoryArray([0.1, NAN], [2], missing="allow")


# ------------------------------------------------------------------ joins


def test_numpy_joins():
    two = np.concatenate([X, X])
    assert [run.tolist() for run in two] == RUNS + RUNS
    assert np.concatenate([X, X], 0) == two
    for joined in (np.hstack([X, X]), np.concatenate([X, X], axis=1), np.concatenate([X, X], -1)):
        np.testing.assert_array_equal(joined.cells, np.column_stack([X.cells, X.cells]))
    with pytest.raises(TypeError):
        np.concatenate([X, X], axis=2)
    with pytest.raises(TypeError, match="does not become an array by itself"):
        np.asarray(X)


def test_nothing_to_join():
    for join in (TrajectoryArray.concat, TrajectoryArray.stack):
        with pytest.raises(ValueError, match="needs at least one TrajectoryArray"):
            join([])
    with pytest.raises(ValueError, match="container 2"):
        TrajectoryArray.stack([X, X, X[::-1]])


def test_it_cannot_be_changed():
    with pytest.raises(AttributeError, match="is immutable"):
        X.cells = 3
    with pytest.raises(AttributeError, match="cannot be deleted"):
        del X.cells
    for array in (X.cells, X.offsets, X.lengths, X.ids, X.horizon, X.ended, X.mask):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0
    copy = X.meta
    copy["task"] = 0
    assert X.meta["task"].tolist() == list("xyz")


def test_containers_with_other_horizons_differ():
    X = TrajectoryArray([0.1, 0.2], [1, 1])
    three = X.with_horizon([3, 3])
    assert X.with_horizon(None) == X
    assert three == X.with_horizon([3, 3])
    for other in (X, X.with_horizon([3, 4])):
        assert three != other
        assert other != three
    no_runs = TrajectoryArray([], [])
    assert no_runs != no_runs.with_horizon(np.array([], dtype=int))


def test_runs_without_lengths_are_refused():
    with pytest.raises(ValueError, match="make it with .from_list, .from_padded or .from_frame"):
        TrajectoryArray([[0.1, 0.2], [0.3]])


def test_a_gap_names_what_fills_it():
    with pytest.raises(
        ValueError,
        match=r"drop the run\. TrajectoryArray.from_frame and .from_padded fill it in with",
    ):
        TrajectoryArray.from_padded([[0.5, NAN, 0.6]])


def test_all_runs_in_their_order_are_the_container_itself():
    for rows in ([0, 1, 2], np.array([True] * 3), np.arange(3), [-3, -2, -1]):
        assert X[rows] is X
    for rows in ([0, 1], [0, 2, 1], [0, 1, 2, 2]):
        assert X[rows] is not X
        assert X[rows].ids.tolist() == X.ids[rows].tolist()
