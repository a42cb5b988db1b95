import numpy as np
import pandas as pd
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


def test_sums_over_many_chunks_are_those_over_one(monkeypatch, rng):
    lengths = rng.integers(1, 9, 50)
    X = TrajectoryArray(rng.random(lengths.sum()), lengths)
    whole = within_runs.running_sum(X, X.cells)
    monkeypatch.setattr(within_runs, "_CHUNK_CELLS", 20)
    np.testing.assert_array_equal(within_runs.running_sum(X, X.cells), whole)


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
