import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trajscore import TrajectoryArray
from trajscore.core import within_runs

# few different values, so that there are ties
runs_of_values = st.lists(
    st.lists(st.sampled_from([-1.5, 0.0, 0.25, 3.0]), min_size=1, max_size=6), max_size=8
)


def flat(parts):
    return np.concatenate(parts) if parts else np.empty(0)


@given(runs_of_values)
def test_each_run_is_alone(runs):
    X = TrajectoryArray.from_list(runs)
    steps = flat([np.arange(1, len(run) + 1) for run in runs])
    assert within_runs.step_numbers(X).tolist() == steps.tolist()
    rows = flat([np.full(len(run), row) for row, run in enumerate(runs)])
    assert within_runs.run_numbers(X).tolist() == rows.tolist()
    assert X.cells[within_runs.last_cells(X)].tolist() == [run[-1] for run in runs]
    assert within_runs.run_maxima(X, X.cells).tolist() == [max(run) for run in runs]
    sums = flat([np.cumsum(run) for run in runs])
    np.testing.assert_array_equal(within_runs.running_sum(X, X.cells), sums)
    two = np.stack([X.cells, -X.cells], axis=1)
    np.testing.assert_array_equal(within_runs.running_sum(X, two)[:, 1], -sums)
    highest = flat([np.maximum.accumulate(run) for run in runs])
    np.testing.assert_array_equal(within_runs.running_max(X, X.cells), highest)


@given(st.lists(st.lists(st.sampled_from([np.nan, 0.0, 0.25]), min_size=1, max_size=6), max_size=8))
def test_the_last_stated_value_holds_within_its_run(runs):
    X = TrajectoryArray.from_list(runs, missing="allow")
    expected = flat([pd.Series(run, dtype=float).ffill() for run in runs])
    np.testing.assert_array_equal(within_runs.last_stated(X, X.cells), expected)
    two = np.stack([X.cells, X.cells[::-1]], axis=1)
    filled = within_runs.last_stated(X, two)
    np.testing.assert_array_equal(filled[:, 0], expected)
    np.testing.assert_array_equal(filled[:, 1], within_runs.last_stated(X, two[:, 1]))


@given(runs_of_values, st.sampled_from([-1.5, 0.0, 3.0]))
def test_the_first_step_above_is_strictly_above(runs, limit):
    X = TrajectoryArray.from_list(runs)
    steps = within_runs.first_step_above(X, X.cells, np.full(len(runs), limit))
    expected = [next((t for t, one in enumerate(run, 1) if one > limit), 0) for run in runs]
    assert steps.tolist() == expected


@pytest.mark.parametrize("cells", [1, 7, 8, 15, 16, 20, 400])  # the longest run has 8 cells
def test_sums_over_many_chunks_are_those_over_one(monkeypatch, rng, cells):
    lengths = np.r_[8, rng.integers(1, 9, 49)]
    X = TrajectoryArray(rng.random(lengths.sum()), lengths)
    two = np.stack([X.cells, -2 * X.cells], axis=1)
    expected = np.concatenate([np.cumsum(run) for run in X])
    monkeypatch.setattr(within_runs, "_CHUNK_CELLS", cells)
    np.testing.assert_array_equal(within_runs.running_sum(X, X.cells), expected)
    np.testing.assert_array_equal(
        within_runs.running_sum(X, two), np.stack([expected, -2 * expected], axis=1)
    )


def test_of_no_runs_there_is_nothing():
    X = TrajectoryArray.from_list([])
    assert within_runs.running_sum(X, X.cells).shape == (0,)
    assert within_runs.running_max(X, X.cells).shape == (0,)
    assert within_runs.run_maxima(X, X.cells).shape == (0,)
    assert within_runs.last_cells(X).tolist() == []
    assert within_runs.offsets_of(X.lengths).tolist() == [0]


def test_the_end_of_runs_that_have_ended_is_marked():
    X = TrajectoryArray.from_list([[0.1, 0.2], [0.3], [0.4, 0.5, 0.6]])
    ends = within_runs.end_mask(X, np.array([True, False, True]))
    assert np.flatnonzero(ends).tolist() == [1, 5]


@given(runs_of_values)
def test_cells_by_step_are_those_of_the_runs_that_reach_it(runs):
    X = TrajectoryArray.from_list(runs)
    steps = [
        (X.cells[cells].tolist(), ends.tolist()) for cells, ends in within_runs.cells_by_step(X)
    ]
    expected = [
        (
            [run[t] for run in runs if len(run) > t],
            [len(run) == t + 1 for run in runs if len(run) > t],
        )
        for t in range(max(map(len, runs), default=0))
    ]
    assert steps == expected
