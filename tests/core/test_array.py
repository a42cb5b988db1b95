import copy
import pickle
import tempfile
from pathlib import Path

import joblib
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trajscore import TrajectoryArray, check_trajectories

RUNS = [[0.1, 0.2, 0.3], [0.4], [0.5, 0.6]]


@pytest.fixture
def X():
    return TrajectoryArray.from_list(RUNS, ids=["a", "b", "c"], meta={"task": [1, 1, 2]})


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
        ids=draw(st.sampled_from([None, rng.permutation(n) - 2, [f"r{k}" for k in range(n)]])),
        horizon=draw(st.sampled_from([None, lengths + rng.integers(0, 3, n)])),
        meta=draw(st.sampled_from([None, {"task": np.arange(n) % 2, "note": ["é"] * n}])),
        missing="allow",
    )


def as_mask(flags):
    return np.array(flags, dtype=bool)


def rows_of(n):
    positions = st.integers(-n, n - 1)
    return st.one_of(
        st.slices(n),
        st.lists(positions, max_size=8) if n else st.just([]),
        st.lists(st.booleans(), min_size=n, max_size=n).map(
            lambda mask: np.array(mask, dtype=bool)
        ),
    )


def details(X):
    """All that a container holds, as plain lists."""
    return (
        [repr(run.tolist()) for run in X],
        X.ids.tolist(),
        None if X.horizon is None else X.horizon.tolist(),
        X.meta.to_dict("list"),
    )


@given(st.data())
def test_rows_are_picked_as_from_an_array(data):
    X = data.draw(containers())
    key = data.draw(rows_of(len(X)))
    rows = np.arange(len(X))[key if isinstance(key, slice) or len(key) else []]
    part = X[key]
    runs, ids, horizon, meta = details(X)
    assert details(part) == (
        [runs[row] for row in rows],
        [ids[row] for row in rows],
        None if horizon is None else [horizon[row] for row in rows],
        {name: [values[row] for row in rows] for name, values in meta.items()},
    )
    assert part.shape == (len(rows), *X.shape[1:])  # the nominal number of steps stays
    assert part.channels == X.channels
    assert part == X[key, ...]


@given(containers())
def test_every_form_holds_the_same_container(X):
    kwargs = {"ids": X.ids, "horizon": X.horizon, "channels": X.channels, "meta": X.meta}
    kwargs["missing"] = "allow"
    assert TrajectoryArray(X.cells, X.lengths, **kwargs) == X
    assert TrajectoryArray.from_padded(X.padded(7), X.lengths, **kwargs) == X
    assert pickle.loads(pickle.dumps(X)) == copy.deepcopy(X) == X
    assert [run.tobytes() for run in X.to_list()] == [X[row].tobytes() for row in range(len(X))]
    if len(X):  # joblib tells even an empty array of NumPy's from its copy
        assert joblib.hash(pickle.loads(pickle.dumps(X))) == joblib.hash(X)
        assert TrajectoryArray.from_list(X.to_list(), **kwargs) == X


@settings(max_examples=15)
@given(containers())
def test_every_file_holds_the_same_container(X):
    with tempfile.TemporaryDirectory() as folder:
        for ending in ("npz", "parquet"):
            path = Path(folder) / f"x.{ending}"
            X.save(path)
            back = TrajectoryArray.load(path)
            assert back == X
            assert back.shape == X.shape


@given(containers(least=1), st.randoms(use_true_random=False))
def test_a_long_table_in_any_order_holds_the_same_runs(X, random):
    names = X.channels or "value"
    frame = X.to_frame().sample(frac=1, random_state=random.randrange(99))
    value = list(names) if X.channels else names
    assert frame.columns.tolist() == ["run", "step", *(value if X.channels else [value])]
    back = TrajectoryArray.from_frame(frame, id="run", step="step", value=value, missing="allow")
    back = back[[back.ids.tolist().index(one) for one in X.ids.tolist()]]
    assert np.array_equal(back.cells, X.cells, equal_nan=True)
    assert np.array_equal(back.offsets, X.offsets)


@given(containers(), st.integers(1, 6))
def test_prefixes_are_the_first_steps_of_every_run(X, t):
    short = X.prefix(t)
    assert details(short) == details(X.truncate(np.minimum(X.lengths, t)))
    assert [run.tobytes() for run in short] == [run[:t].tobytes() for run in X]
    assert short.horizon is None
    assert not X.with_ended().prefix(t).ended.any()
    alive = [run[:t].tobytes() for run in X if len(run) >= t]
    assert [run.tobytes() for run in X.steps(t)] == alive


@given(st.data())
def test_pieces_put_together_are_the_whole(data):
    X = data.draw(containers(least=1))
    cut = data.draw(st.integers(0, len(X)))
    assert TrajectoryArray.concat([X[:cut], X[cut:]]) == np.concatenate([X[:cut], X[cut:]]) == X
    both = TrajectoryArray.stack([X, X], channels=[f"c{j}" for j in range(2 * X.n_channels)])
    back = both[list(both.channels[: X.n_channels])]
    assert back == X.with_cells(X.cells.reshape(len(X.cells), -1), channels=back.channels)


def test_looks_like_a_padded_array(X):
    assert X.shape == (3, 3)
    assert X.ndim == 2
    assert len(X) == 3
    np.testing.assert_array_equal(X[0], RUNS[0])
    np.testing.assert_array_equal(X[-1], RUNS[2])
    np.testing.assert_array_equal(X[np.int64(1)], RUNS[1])
    with pytest.raises(IndexError):
        X[3]


@pytest.mark.parametrize("key", [[True, False, True], ([0, 2], Ellipsis), pd.Series([0, 2])])
def test_other_indices_of_rows(X, key):
    assert X[key] == X[np.array([0, 2])]


def test_index_of_steps_is_refused_with_the_remedy(X):
    with pytest.raises(IndexError, match=r"\.steps\(t\)"):
        X[0, 1]
    with pytest.raises(IndexError, match="3 entries"):
        X[np.array([True, False])]


def test_is_immutable(X):
    X = X.with_horizon(X.lengths)
    with pytest.raises(AttributeError, match="immutable"):
        X.cells = np.zeros(6)
    with pytest.raises(ValueError, match="read-only"):
        X.cells[0] = 1
    for name in ("ids", "horizon", "offsets", "lengths", "mask"):
        with pytest.raises(ValueError, match="read-only"):
            getattr(X, name)[0] = 0
    with pytest.raises(AttributeError, match="immutable; '_cells' cannot be deleted"):
        del X._cells
    meta = X.meta
    meta["task"] = 0
    assert X.meta["task"].tolist() == [1, 1, 2]


def test_does_not_share_memory_that_the_caller_can_write_to():
    cells = np.array([0.1, 0.2])
    X = TrajectoryArray(cells, [2])
    cells[0] = 9
    assert X.cells[0] == 0.1


def test_is_never_turned_into_an_array_unasked(X):
    with pytest.raises(TypeError, match=r"\.padded\(\)"):
        np.asarray(X)
    with pytest.raises(TypeError, match=r"\.padded\(\)"):
        np.asarray(TrajectoryArray.from_list([[1.0], [2.0]]))


def test_equality_is_one_bool(X):
    assert X[:] == X
    assert (X[[0, 1]] == X) is False
    assert (X == 3) is False
    assert X.with_cells(X.cells + 1) != X


def test_pickles_and_hashes_by_value(X):
    same = TrajectoryArray.from_list(RUNS, ids=["a", "b", "c"], meta={"task": [1, 1, 2]})
    same.value_range()
    assert joblib.hash(X) == joblib.hash(same) == joblib.hash(pickle.loads(pickle.dumps(X)))
    assert joblib.hash(X) != joblib.hash(X[[0, 1]])


def test_runs_are_cut_to_steps_that_they_have(X):
    with pytest.raises(ValueError, match="run 'b' .* has 1 step and cannot be cut to 2"):
        X.truncate([2, 2, 2])
    with pytest.raises(ValueError, match="cut to 0"):
        X.truncate([0, 1, 1])
    with pytest.raises(ValueError, match="truncate needs 3 whole numbers"):
        X.truncate([1.0, 1.0, 1.0])
    assert X.steps(4).shape == (0, 4)


@pytest.mark.parametrize("t", [0, -1, 1.5, "a", True, None])
def test_a_number_of_steps_is_a_whole_number(X, t):
    for cut in (X.steps, X.prefix):
        with pytest.raises(ValueError, match="t, the number of steps, must be a whole number"):
            cut(t)


def test_channels():
    X = TrajectoryArray([[0.1, 1.0], [0.2, 2.0], [0.3, 3.0]], [2, 1], channels=["verbal", "length"])
    assert X.shape == (2, 2, 2)
    assert X["length"].cells.tolist() == [1, 2, 3]
    assert X[["length", "verbal"]].channels == ("length", "verbal")
    assert X[0].shape == (2, 2)
    assert X.padded().shape == (2, 2, 2)
    with pytest.raises(KeyError, match="did you mean 'verbal'"):
        X["verbl"]
    with pytest.raises(ValueError, match="2 different channel names"):
        TrajectoryArray([[0.1, 1.0]], [1], channels=["a"])
    with pytest.raises(ValueError, match="'verbal' is picked twice"):
        X[["verbal", "verbal"]]
    assert TrajectoryArray([[0.1, 1.0]], [1]).channels == ("channel0", "channel1")


def test_concat_fills_meta_with_missing_values(X):
    bare = TrajectoryArray.from_list([[0.7]], ids=["d"])
    both = TrajectoryArray.concat([X, bare, bare[[]]])
    assert both.meta["task"].tolist()[:3] == [1, 1, 2]
    assert both.meta["task"].isna().tolist() == [False, False, False, True]
    assert TrajectoryArray.concat([bare, X]).meta["task"].isna().tolist() == [True] + [False] * 3
    assert TrajectoryArray.concat([X, X]).meta["task"].dtype == X.meta["task"].dtype
    assert TrajectoryArray.concat([X, X[[]]]) == X
    assert TrajectoryArray.concat([bare, bare]).meta.shape == (2, 0)


def test_concat_takes_what_can_be_made_a_container(X):
    numbered = TrajectoryArray.from_list(RUNS)
    missing = TrajectoryArray.from_list([[0.1, np.nan]], missing="allow")
    joined = TrajectoryArray.concat([numbered, np.array([[0.7, np.nan]]), missing])
    assert joined.lengths.tolist() == [3, 1, 2, 1, 2]
    assert np.concatenate([numbered, np.array([[0.7, np.nan]])]) == joined[:4]
    for wrong, message in (
        (X, "takes a list"),
        ([X, "a"], "expected numbers, got the text 'a'"),
        ([], "at least one"),
        ([X, numbered], "all whole numbers or all text"),
    ):
        with pytest.raises(ValueError, match=message):
            TrajectoryArray.concat(wrong)


def test_numpy_joins_rows_and_channels(X):
    assert np.concatenate([X, X]).shape == (6, 3)
    for join in (np.hstack, lambda both: np.concatenate(both, 1)):
        assert join([X, X]).channels == ("value0", "value1")
    assert np.concatenate([X, X], axis=-1) == np.hstack([X, X])
    with pytest.raises(TypeError):
        np.mean(X)
    with pytest.raises(ValueError, match="row 0 is run 'a' in container 0, but run 'b'"):
        np.hstack([X, X[[1, 0, 2]]])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: TrajectoryArray.from_list([[0.1], []]), "row 1 has no steps"),
        (lambda: TrajectoryArray.from_padded([[np.nan, np.nan]]), "row 0 has no steps"),
        (
            lambda: TrajectoryArray.from_padded([[0.1, np.nan, 0.2]], ids=["a"]),
            r"run 'a' \(row 0\), step 2: the value is NaN",
        ),
        (
            lambda: TrajectoryArray.from_list([[0.1], [np.inf]]),
            r"row 1\), step 1: the value is inf",
        ),
        (lambda: TrajectoryArray.from_padded([[0.1]], [2]), "1 numbers of at most 1"),
        (lambda: TrajectoryArray.from_padded([[0.1]], [1, 1]), "1 numbers of at most 1"),
        (
            lambda: TrajectoryArray.from_list([[0.1], [[0.1, 0.2]]]),
            r"rows 0 and 1 .* \(2,\) a step",
        ),
        (lambda: TrajectoryArray([0.1], [2]), "add up to 2, but there are 1 cells"),
        (lambda: TrajectoryArray([0.1], [1.0]), "whole numbers"),
        (lambda: TrajectoryArray([0.1, 0.2], [2], horizon=[1]), "row 0: horizon 1 is shorter"),
        (
            lambda: TrajectoryArray([0.1], [1], horizon=np.array([2**63 + 1], "uint64")),
            "row 0: horizon 9223372036854775809 is too large",
        ),
        (
            lambda: TrajectoryArray([0.1, 0.2], [1, 1], horizon=[2**53, 2**53 + 1]),
            "row 1: horizon 9007199254740993 is too large",
        ),
        (lambda: TrajectoryArray([0.1], np.array([1], "m8[s]")), "lengths must be whole numbers"),
        (lambda: TrajectoryArray([0.1], [1], ids=[1, 2]), "1 identifiers"),
        (
            lambda: TrajectoryArray([0.1, 0.2], [1, 1], ids=[1, "a"]),
            "all whole numbers or all text",
        ),
        (lambda: TrajectoryArray(["x"], [1]), "must be real numbers"),
        (lambda: TrajectoryArray([0.1], [1], meta={"task": [1, 2]}), "meta has 2 rows"),
        (lambda: TrajectoryArray(np.array(["2020"], "M8[D]"), [1]), "dates .* are not numbers"),
        (lambda: TrajectoryArray(np.array([1], "m8[s]"), [1]), "durations .* are not numbers"),
        (lambda: TrajectoryArray([0.1 + 1j], [1]), "Complex data not supported"),
        (
            lambda: TrajectoryArray.from_list([[0.1], np.array([1j])]),
            "row 1: .* Complex data not supported",
        ),
        (
            lambda: TrajectoryArray(np.ma.array([0.1, 0.2], mask=[0, 1]), [2]),
            "step 2: the value is NaN",
        ),
        (
            lambda: TrajectoryArray([0.1, 0.2], [1, 1], ids=np.array([3, 2**63 + 1], "uint64")),
            r"row 1: run identifier 9223372036854775809 is too large .*\.astype\(str\)",
        ),
        (lambda: TrajectoryArray([0.1], [1], ids=[-(2**63) - 1]), "row 0: run identifier -9223"),
        (lambda: TrajectoryArray.from_list(0.5), "runs must be a sequence of runs, got 0.5"),
        (lambda: TrajectoryArray.from_list([[10**400]]), "row 0: the values must be numbers"),
        (lambda: TrajectoryArray([10**400], [1]), "must be real numbers"),
        (lambda: TrajectoryArray([0.1], [1], channels=3), "channels must be names, got 3"),
        (lambda: TrajectoryArray([0.1], [1]).with_cells([np.inf]), "step 1: the value is inf"),
    ],
)
def test_bad_input_names_the_place(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_missing_values_only_when_allowed():
    X = TrajectoryArray.from_list([[0.1, np.nan]], missing="allow")
    assert np.isnan(X.cells[1])
    with pytest.raises(ValueError, match="inf"):
        TrajectoryArray.from_list([[0.1, np.inf]], missing="allow")
    with pytest.raises(ValueError, match="missing must be .*'ffill'.*, got 'fill'"):
        TrajectoryArray.from_list([[0.1]], missing="fill")


def test_a_stated_value_holds_until_the_next_one():
    runs = [[[np.nan, 1], [2, np.nan], [np.nan, 3]], [[4, np.nan]]]
    how = {"channels": ["a", "b"], "ids": ["x", "y"], "horizon": [5, 1], "meta": {"task": [7, 8]}}
    gaps = TrajectoryArray.from_list(runs, missing="allow", **how)
    filled = gaps.ffill()
    np.testing.assert_array_equal(filled.cells, [[np.nan, 1], [2, 1], [2, 3], [4, np.nan]])
    assert filled == TrajectoryArray.from_list(runs, missing="ffill", **how)
    assert filled == gaps.with_cells(filled.cells)
    assert filled["a"][1:].value_range() == (4, 4)
    once = TrajectoryArray.from_list([[0.5, np.nan]], missing="ffill")
    assert once.value_range() == (0.5, 0.5)
    assert once.ffill() is once


def test_a_channel_keeps_its_name():
    X = TrajectoryArray([[0.1, 0.2], [0.3, 0.4]], [1, 1], channels=["a", "b"])
    for one in (X["a"], X["a"][1:], X["a"].with_cells([0.5, 0.6]), X["a"].with_cells([[1], [2]])):
        assert one.channels == ("a",)
    assert X.with_cells(-X.cells).channels == ("a", "b")
    assert X.with_cells([0.5, 0.6]).channels is None
    assert X["a"].with_cells(X.cells).channels == ("channel0", "channel1")
    assert X[:0].with_cells([]).channels is None


def test_stack_wants_the_same_runs_and_horizons():
    X = TrajectoryArray.from_list([[0.1], [0.2]], ids=["a", "b"])
    with pytest.raises(ValueError, match="row 0 is run 'a' in container 0, but run 'b' in contain"):
        TrajectoryArray.stack([X, X[::-1]])
    longer = TrajectoryArray.from_list([[0.1], [0.2]], ids=["a", "b"], horizon=[1, 4])
    message = "row 1 has horizon 1 in container 1, but 4 in container 2"
    with pytest.raises(ValueError, match=message):
        TrajectoryArray.stack([X, X.with_horizon([1, 1]), longer])
    assert TrajectoryArray.stack([X, longer]).horizon.tolist() == [1, 4]
    assert TrajectoryArray.stack([X, X]).horizon is None


def test_a_run_has_a_horizon_only_where_it_is_given():
    X = TrajectoryArray.from_list([[0.1, 0.2], [0.3]])
    known = X.with_horizon([2, 5])
    assert X.horizon is None
    assert known.horizon.tolist() == [2, 5]
    assert known != X
    assert known.with_horizon(None) == X
    assert known[[1]].with_cells([0.7]).horizon.tolist() == [5]
    assert X[[1]].horizon is X[:1].horizon is None
    assert TrajectoryArray.concat([X, X]).horizon is None
    assert TrajectoryArray.concat([X, known]).horizon.tolist() == [2, 1, 2, 5]
    with pytest.raises(ValueError, match="row 0: horizon 1 is shorter than the run's 2 steps"):
        X.with_horizon([1, 1])


def test_a_run_has_ended_only_where_it_is_said():
    X = TrajectoryArray([0.1, 0.2, 0.3, 0.4], [3, 1])
    assert X.ended.tolist() == [False, False]  # length == horizon says nothing
    X = X.with_ended([True, True])
    assert X[[1, 0]].with_cells(np.ones(4)).ended.tolist() == [True, True]
    assert not X.prefix(1).ended.any()  # nor does a prefix say so that is as long as its run
    assert X.with_ended(False) != X
    joined = TrajectoryArray.concat([X[:1], X.prefix(1)[:1]])
    assert joined.ended.tolist() == [True, False]
    assert TrajectoryArray.stack([X.with_ended(False), X]).ended.all()
    with pytest.raises(ValueError, match="True, False or 2 of these"):
        X.with_ended([1, 0])
    with pytest.raises(ValueError, match="True, False or 2 of these"):
        X.with_ended([True])
    with pytest.raises(ValueError, match="read-only"):
        X.ended[0] = False


def test_runs_of_a_table_have_ended_where_their_outcome_was_observed():
    table = pd.DataFrame({"run": [1, 2], "t": [1, 1], "p": [0.5, 0.6], "ok": [1.0, np.nan]})
    X, y = TrajectoryArray.from_frame(table, id="run", step="t", value="p", outcome="ok")
    assert y.tolist() == [1, -1]
    assert X.ended.tolist() == [True, False]
    assert not TrajectoryArray.from_frame(table, id="run", step="t", value="p").ended.any()


def test_a_table_of_columns_that_are_not_steps_is_refused():
    scores = pd.DataFrame({"verbal": [0.5, 0.6], "judge": [0.1, 0.2]})
    with pytest.raises(ValueError, match="column 'verbal' is not a step: a DataFrame needs a row"):
        check_trajectories(scores)
    for names in ([1, 2], ["1", "2"], ["step 1", "step 2"]):
        assert len(check_trajectories(scores.set_axis(names, axis=1))) == 2


def test_a_run_that_does_not_exist_is_named():
    X = TrajectoryArray.from_list([[0.1], [0.2, 0.3]])
    assert X[-2].tolist() == [0.1]
    for row in (2, -3):
        with pytest.raises(IndexError, match=f"run {row} does not exist; the container has 2 runs"):
            X[row]


def test_a_padded_array_has_at_most_ten_million_steps_beyond_the_longest_run():
    parts = {"cells": [0.5, 0.6, 0.7], "lengths": [1, 2]}
    for n_steps, width in ((0, 2), (1, 2), (2, 2), (3, 3), (10_000_000, 10_000_000)):
        assert TrajectoryArray._of_parts(n_steps, **parts).shape == (2, width)
    with pytest.raises(ValueError, match="a padded array of 10,000,001 steps is too wide"):
        TrajectoryArray._of_parts(10_000_001, **parts)
