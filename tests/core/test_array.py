"""The container: one set of runs in every form, and what is taken from it."""

import copy
import pickle

import joblib
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from refused import must_refuse
from trajscore import TrajectoryArray

NAN = float("nan")
RUNS = [[0.1, 0.2, 0.3], [0.4], [0.5, 0.6]]
X = TrajectoryArray.from_list(RUNS, ids=list("abc"), horizon=[5, 1, 2], meta={"task": list("xyz")})
TWO = TrajectoryArray(np.arange(12.0).reshape(6, 2) / 12, [3, 1, 2], channels=("p", "q"))
ROWS = TrajectoryArray.from_list(RUNS)


@st.composite
def containers(draw, least=0):
    """Containers of every kind: any ids, channels, horizons, meta, missing values."""
    lengths = np.array(draw(st.lists(st.integers(1, 5), min_size=least, max_size=6)), dtype=int)
    n, width = len(lengths), draw(st.sampled_from([None, 1, 3]))
    rng = np.random.default_rng(draw(st.integers(0, 2**16)))
    cells = rng.choice([np.nan, 0.5, -1 / 3, 1e300], (lengths.sum(), *([width] if width else [])))
    return TrajectoryArray(
        cells,
        lengths,
        ids=draw(st.sampled_from([None, rng.permutation(n) - 2, [f"é{k}" for k in range(n)]])),
        horizon=draw(st.sampled_from([None, lengths + rng.integers(0, 3, n)])),
        meta=draw(st.sampled_from([None, {"task": np.arange(n) / 3, 5: ["é"] * n}])),
        ended=rng.random(n) < 0.5,
        missing="allow",
    )


def rows_of(n):
    masks = st.lists(st.booleans(), min_size=n, max_size=n)
    return st.one_of(
        st.slices(n),
        st.lists(st.integers(-n, n - 1), max_size=8) if n else st.just([]),
        masks.map(lambda mask: np.array(mask, dtype=bool)),
    )


def details(X):
    """All that a container holds, row by row."""
    horizon = [None] * len(X) if X.horizon is None else X.horizon.tolist()
    runs = [repr(run.tolist()) for run in X]
    meta = X.meta.to_dict("records") or [{}] * len(X)
    return list(zip(runs, X.ids.tolist(), horizon, X.ended.tolist(), meta, strict=True))


@settings(max_examples=25)
@given(st.data())
def test_rows_are_picked_as_from_an_array(data):
    X = data.draw(containers())
    key = data.draw(rows_of(len(X)))
    rows = np.arange(len(X))[key if isinstance(key, slice) or len(key) else []]
    part = X[key]
    assert details(part) == [details(X)[row] for row in rows]
    assert part.shape == (len(rows), part.lengths.max(initial=0), *X.shape[2:])
    assert part.channels == X.channels
    assert part.meta.index.tolist() == list(range(len(rows)))
    assert part == X[key, ...]


@settings(max_examples=25)
@given(containers())
def test_every_form_holds_the_same_container(tmp_path_factory, X):
    kwargs = {"ids": X.ids, "horizon": X.horizon, "channels": X.channels, "meta": X.meta}
    kwargs |= {"ended": X.ended, "missing": "allow"}
    assert TrajectoryArray(X.cells, X.lengths, **kwargs) == X
    assert TrajectoryArray.from_padded(X.padded(7), X.lengths, **kwargs) == X
    assert pickle.loads(pickle.dumps(X)) == copy.deepcopy(X) == X
    assert (X.offsets == np.append(0, np.cumsum(X.lengths))).all()
    assert (X.mask == (np.arange(X.shape[1]) < X.lengths[:, None])).all()
    if len(X):  # joblib tells even an empty array of NumPy's from its copy
        assert joblib.hash(pickle.loads(pickle.dumps(X))) == joblib.hash(X)
        assert TrajectoryArray.from_list(X.to_list(), **kwargs) == X
        columns = {"id": "run", "step": "step", "value": [*X.channels] if X.channels else "value"}
        frame = X.to_frame().sample(frac=1, random_state=0)
        back = TrajectoryArray.from_frame(frame, **columns, missing="allow")
        back = back[[back.ids.tolist().index(one) for one in X.ids.tolist()]]
        assert np.array_equal(back.cells, X.cells, equal_nan=True)
        path = tmp_path_factory.getbasetemp() / "x.npz"
        for part in (X, X[1:], X.prefix(1)):
            part.save(path)
            assert (again := TrajectoryArray.load(path)) == part
            assert again.meta.columns.tolist() == part.meta.columns.tolist()


@settings(max_examples=25)
@given(containers(), st.integers(1, 6))
def test_prefixes_are_the_first_steps_of_every_run(X, t):
    short = X.prefix(t)
    assert short == X.truncate(np.minimum(X.lengths, t))
    assert [run.tobytes() for run in short] == [run[:t].tobytes() for run in X]
    assert short.ids.tolist() == X.ids.tolist()
    assert short.horizon is None
    assert not short.ended.any()
    alive = [run[:t].tobytes() for run in X if len(run) >= t]
    assert [run.tobytes() for run in X.steps(t)] == alive


@settings(max_examples=25)
@given(st.data())
def test_pieces_put_together_are_the_whole(data):
    X = data.draw(containers(least=1))
    cut = data.draw(st.integers(0, len(X)))
    assert TrajectoryArray.concat([X[:cut], X[cut:]]) == np.concatenate([X[:cut], X[cut:]]) == X
    both = TrajectoryArray.stack([X, X], channels=[f"c{j}" for j in range(2 * X.n_channels)])
    back = both[list(both.channels[: X.n_channels])]
    assert back == X.with_cells(X.cells.reshape(len(X.cells), -1), channels=back.channels)


runs_with_gaps = st.lists(st.sampled_from([NAN, 0.0, 0.25]), min_size=1, max_size=6)


@settings(max_examples=25)
@given(st.lists(runs_with_gaps, min_size=1, max_size=6))
def test_the_last_stated_value_holds_within_its_run(runs):
    X = TrajectoryArray.from_list(runs, missing="allow")
    filled = [pd.Series(run, dtype=float).ffill().tolist() for run in runs]
    assert repr([run.tolist() for run in X.ffill()]) == repr(filled)
    two = X.with_cells(np.stack([X.cells, X.cells[::-1]], axis=1), channels=["a", "b"]).ffill()
    assert np.array_equal(two["a"].cells, X.ffill().cells, equal_nan=True)
    assert np.array_equal(two["b"].cells, X.with_cells(X.cells[::-1]).ffill().cells, equal_nan=True)
    assert TrajectoryArray.from_list(runs, missing="ffill") == X.ffill()


def test_looks_like_a_padded_array():
    assert (X.shape, X.ndim, len(X), X.n_channels) == ((3, 3), 2, 3, 1)
    assert (TWO.shape, TWO.ndim, TWO.n_channels) == ((3, 3, 2), 3, 2)
    assert [X[k].tolist() for k in (0, -1, np.int64(1))] == [RUNS[0], RUNS[2], RUNS[1]]
    np.testing.assert_array_equal(X.padded(-1), [[0.1, 0.2, 0.3], [0.4, -1, -1], [0.5, 0.6, -1]])
    assert (TWO.padded().shape, TWO.padded(n_steps=5).shape) == ((3, 3, 2), (3, 5, 2))
    assert X.to_frame(id="i", step="t", value="v").columns.tolist() == ["i", "t", "v"]
    none = TrajectoryArray([], [])
    assert (none.shape, none.meta.shape) == ((0, 0), (0, 0))
    for key in ([True, False, True], ([0, 2], Ellipsis), pd.Series([0, 2]), slice(0, 3, 2)):
        assert X[key] == X[np.array([0, 2])], key
    assert X.place(3) == "run 'b' (row 1), step 1"
    assert ("1 to 3 steps" in repr(X), "0 runs" in repr(none)) == (True, True)


def test_no_runs_keep_their_channels():
    none = TWO[:0]
    assert (none["q"], none[["q"]]) == (TWO["q"][:0], TWO[["q"]][:0])
    assert none[["q", "p"]].channels == ("q", "p")
    assert none.to_frame().columns.tolist() == ["run", "step", "p", "q"]
    assert len(none.to_frame()) == 0
    both = TrajectoryArray.stack([none, X[:0]])
    assert (len(both), both.channels) == (0, ("p", "q", "value"))
    assert TrajectoryArray.concat([both["value"], both["value"]]).n_channels == 1


def test_is_immutable():
    for change in (lambda: setattr(X, "cells", 0), lambda: delattr(X, "_cells")):
        with pytest.raises(AttributeError, match="immutable"):
            change()
    for name in ("cells", "ids", "horizon", "offsets", "lengths", "mask", "ended"):
        with pytest.raises(ValueError, match="read-only"):
            getattr(X, name)[0] = 0
    meta = X.meta
    meta["task"] = 0
    assert X.meta["task"].tolist() == list("xyz")
    cells = np.array([0.1, 0.2, 0.3])
    shared = [TrajectoryArray(cells, [3]), TrajectoryArray(cells[:2], [2])]
    cells[:] = 9
    assert [one.cells[0] for one in shared] == [0.1, 0.1]


def test_is_never_turned_into_an_array_unasked():
    for work in (np.asarray, np.mean, lambda X: np.concatenate([X, X], axis=2)):
        with pytest.raises(TypeError, match=r"\.padded\(\)|implementation"):
            work(ROWS)


def test_what_differs_is_not_equal():
    others = [
        X.with_horizon(None),
        X.with_ended(),
        X.with_cells(X.cells, channels=["p"]),
        X[[1, 0, 2]],
        TrajectoryArray(X.cells, [2, 2, 2], ids=X.ids, meta=X.meta, horizon=[5, 2, 2]),
        TrajectoryArray(X.cells, X.lengths, ids=list("abd"), meta=X.meta, horizon=X.horizon),
        TrajectoryArray(X.cells, X.lengths, ids=X.ids, horizon=X.horizon),
        RUNS,
        3,
    ]
    assert [k for k, other in enumerate(others) if other == X] == []
    assert X.__eq__(3) is X.__eq__(X[:2]) is False
    assert X[:] == X == X[[0, 1, 2]]
    gap = TrajectoryArray([0.1, NAN], [2], missing="allow")
    assert gap == TrajectoryArray([0.1, NAN], [2], missing="allow")
    assert joblib.hash(X) != joblib.hash(X[[0, 1]])


def test_channels_keep_their_names():
    assert TWO["q"].cells.tolist() == TWO.cells[:, 1].tolist()
    swapped = TWO[["q", "p"]]
    assert swapped.channels == ("q", "p")
    np.testing.assert_array_equal(swapped.cells, TWO.cells[:, ::-1])
    assert TWO[["q"]].cells.shape == (6, 1)
    one = TWO["p"]
    for kept in (one, one[1:], one.with_cells(np.ones(6)), one.with_cells(np.ones((6, 1)))):
        assert kept.channels == ("p",)
    assert TWO.with_cells(-TWO.cells).channels == ("p", "q")
    assert TWO.with_cells(np.ones(6)).channels is None
    assert one.with_cells(TWO.cells).channels == ("channel0", "channel1")
    assert TrajectoryArray([0.1], [1], channels="p").channels == ("p",)


def test_a_run_has_a_horizon_and_an_end_only_where_it_is_said():
    assert (ROWS.horizon, ROWS.ended.any()) == (None, False)
    assert X.with_horizon(None).with_ended([True, False, True]).ended.tolist() == [1, 0, 1]
    assert TrajectoryArray.concat([ROWS, ROWS]).horizon is None
    numbered = ROWS.with_horizon([9, 9, 9])
    assert TrajectoryArray.concat([ROWS[:1], numbered[1:]]).horizon.tolist() == [3, 9, 9]
    assert TrajectoryArray.stack([ROWS, ROWS.with_ended(), numbered]).horizon.tolist() == [9] * 3
    assert TrajectoryArray.stack([ROWS, ROWS.with_ended()]).ended.all()
    assert TrajectoryArray.stack([ROWS, ROWS]).horizon is None


def test_joins_fill_meta_with_missing_values_and_number_names_that_are_shared():
    bare = TrajectoryArray.from_list([[0.7]], ids=["d"])
    both = TrajectoryArray.concat([X, bare, bare[[]]])
    assert both.meta["task"].fillna("-").tolist() == [*"xyz", "-"]
    assert TrajectoryArray.concat([bare, bare]).meta.shape == (2, 0)
    assert TrajectoryArray.concat([ROWS, np.array([[0.7, NAN, NAN, NAN]])]).shape == (4, 3)
    for join in (np.hstack, lambda both: np.concatenate(both, 1), TrajectoryArray.stack):
        assert join([X, X]).channels == ("value0", "value1")
    assert np.concatenate([X, X], axis=-1) == np.hstack([X, X])
    three = TrajectoryArray.stack([TWO, TWO["p"], TWO])
    assert three.channels == ("p0", "q0", "p1", "p2", "q1")
    np.testing.assert_array_equal(three.cells[:, [1, 2]], TWO.cells[:, [1, 0]])


NAMED = TrajectoryArray.from_list([[0.1], [0.2], [0.3]], ids=list("abc"))
BARE = TrajectoryArray.from_list([[0.1], [0.2], [0.3]])
NUMBERED = TrajectoryArray.from_list([[0.1], [0.2], [0.3]], ids=[7, 8, 9])


def test_only_the_same_runs_go_side_by_side():
    # ids that a container gets by default go with any
    for one, other in ((NAMED, BARE), (BARE, NUMBERED), (BARE, BARE), (NUMBERED, NUMBERED)):
        assert len(TrajectoryArray.stack([one, other])) == 3
        assert len(TrajectoryArray.stack([other, one])) == 3
    rows = [
        (NAMED, NAMED[::-1], "row 0 .*'a'.* 'c'"),
        (BARE, BARE[[0, 2, 1]], "row 1 .* 1 .* 2 "),
        (BARE[[0, 2, 1]], BARE, "row 1 .* 2 .* 1 "),
        (NUMBERED, NAMED, "row 0 .* 7 .*'a'"),
        (NAMED, NAMED[:2], "3 and 2 runs"),
        (NAMED, TrajectoryArray.from_list([[0.1], [0.2, 0.2], [0.3]]), "1 and 2 .*row 1"),
        (NAMED.with_horizon([3, 3, 3]), BARE.with_horizon([3, 4, 3]), "row 1 .* 3 and 4"),
    ]
    must_refuse(lambda one, other: TrajectoryArray.stack([one, other]), rows)


@settings(max_examples=25)
@given(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=4, unique=True))
def test_ids_are_kept_to_the_last_digit(ids):
    for given_ids in (ids, np.array(ids), np.array(ids, dtype=object), pd.Series(ids)):
        found = TrajectoryArray(np.zeros(len(ids)), [1] * len(ids), ids=given_ids).ids
        assert (found.tolist(), found.dtype) == (ids, np.int64)


BAD = [
    (lambda: TrajectoryArray.from_list([[0.1], []]), "row 1"),
    (lambda: TrajectoryArray.from_padded([[0.1, NAN, 0.2]], ids=["a"]), "'a' .*step 2.*NaN"),
    (lambda: TrajectoryArray.from_list([[0.1], [np.inf]]), r"row 1\), step 1.*inf"),
    (lambda: TrajectoryArray([0.1, 0.2, -np.inf, NAN], [2, 2], missing="allow"), "row 1.*-inf"),
    (lambda: TrajectoryArray.from_list([[0.1, np.inf]], missing="ffill"), "step 2.*inf"),
    (lambda: TrajectoryArray(np.ma.array([0.1, 0.2], mask=[0, 1]), [2]), "step 2.*NaN"),
    (lambda: X.with_cells([0, 0, 0, np.inf, 0, 0]), "'b' .*step 1.*inf"),
    (lambda: X.with_cells(np.ones(5)), "6 cells, got 5"),
    (lambda: TrajectoryArray.from_padded([[0.1]], [2]), "lengths"),
    (lambda: TrajectoryArray.from_padded([[[[1]]]]), "got 4D"),
    (lambda: TrajectoryArray([[0.1, 0.2], [0.3]]), "from_list"),
    (lambda: TrajectoryArray([[0.1, 0.2], [0.3]], [2]), "from_list"),
    (lambda: TrajectoryArray.from_list([[0.1], [[0.1, 0.2]]]), "rows 0 and 1"),
    (lambda: TrajectoryArray.from_list([[0.1], 0.5]), "row 1"),
    (lambda: TrajectoryArray.from_list(0.5), "runs"),
    (lambda: TrajectoryArray.from_list([[10**400]]), "row 0"),
    (lambda: TrajectoryArray(["x"], [1]), "'x'"),
    (lambda: TrajectoryArray(np.array(["2020"], "M8[D]"), [1]), "dates"),
    (lambda: TrajectoryArray([0.1 + 1j], [1]), "Complex"),
    (lambda: TrajectoryArray([0.1], [2]), "lengths .* 2, .* 1 cells"),
    (lambda: TrajectoryArray([0.1], [1.0]), "lengths"),
    (lambda: TrajectoryArray([0.1, 0.2], [2], horizon=[1]), "row 0: horizon 1"),
    (lambda: TrajectoryArray([0.1, 0.2], [1, 1], horizon=[10**7, 10**7 + 1]), "row 1: horizon"),
    (lambda: TrajectoryArray([0.1], [1], ids=[1, 2]), "ids"),
    (lambda: TrajectoryArray([0.1, 0.2], [1, 1], ids=[1, "a"]), "text"),
    (lambda: TrajectoryArray([0.1, 0.2], [1, 1], ids=[3, 2**63]), r"64-bit.*astype\(str\)"),
    (lambda: TrajectoryArray([0.1], [1], ids=[-(2**63) - 1]), "64-bit"),
    (lambda: TrajectoryArray([0.1], [1], meta={"task": [1, 2]}), "meta has 2 rows"),
    (lambda: TrajectoryArray([0.1], [1], channels=3), "channels"),
    (lambda: TrajectoryArray([[0.1, 1.0]], [1], channels=["a", "a"]), "2 .*channel"),
    (lambda: TrajectoryArray([0.1], [1], missing="fill"), "missing .*'ffill'.* 'fill'"),
    (lambda: TrajectoryArray([0.1], [1], ended=[True, False]), "ended"),
    (lambda: X.truncate([2, 2, 2]), r"'b' \(row 1\).*2"),
    (lambda: X.truncate([1.0, 1.0, 1.0]), "3 whole numbers"),
    (lambda: TWO[["p", "p"]], "'p'"),
    (lambda: TrajectoryArray.concat(X), "list"),
    (lambda: TrajectoryArray.concat([X, "a"]), "'a'"),
    (lambda: TrajectoryArray.concat([]), "at least one"),
    (lambda: TrajectoryArray.stack([]), "at least one"),
    (lambda: TrajectoryArray.concat([X, ROWS]), "text"),
    (lambda: TrajectoryArray.concat([X, TWO]), "channels"),
]


def test_bad_input_names_the_place():
    must_refuse(lambda make: make(), BAD)
    for t in (0, -1, 1.5, "a", True, None):
        for cut in (X.steps, X.prefix):
            with pytest.raises(ValueError, match="t, "):
                cut(t)


def test_bad_indices_say_what_to_type():
    rows = [
        (3, "run 3 .*3 runs"), (-4, "run -4"), ((0, 1), r"\.steps\(t\)"),
        ((1, Ellipsis, Ellipsis), r"\.steps\(t\)"), (np.array([True, False]), "3 entries"),
        (np.zeros(0, bool), "3 entries"), ([1.0], "whole numbers"), (["p", 0], "whole numbers"),
    ]  # fmt: skip
    must_refuse(lambda key: X[key], rows, IndexError)
    with pytest.raises(KeyError, match="did you mean 'verbal'"):
        TrajectoryArray([[0.1, 1.0]], [1], channels=["verbal", "length"])["verbl"]
