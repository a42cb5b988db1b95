"""The tail functional: what Theorems A.2 to A.4 and A.9 say of it."""

import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from trajscore.core.array import TrajectoryArray
from trajscore.tracer import TracerScorer
from trajscore.tracer._tail import mixed, running_top_means, tail_size, top_means

numbers = st.floats(-5, 5, allow_nan=False).map(lambda x: round(x, 6))
fractions = st.floats(0.01, 1.0)
mixes = st.floats(0.0, 1.0)


@st.composite
def pairs(draw):
    n = draw(st.integers(1, 25))
    one = st.lists(numbers, min_size=n, max_size=n).map(np.array)
    return draw(one), draw(one)


def rho(r, k, w):
    X = TrajectoryArray(r, [len(r)])
    return float(mixed(*top_means(X, X.cells, k), w)[0])


@given(pairs(), fractions, mixes)
def test_coherent_and_stable(two, k, w):
    r, s = two
    assert rho(np.maximum(r, s), k, w) >= rho(r, k, w) - 1e-12  # monotone
    assert rho(r + 1.5, k, w) == pytest.approx(rho(r, k, w) + 1.5, abs=1e-9)
    assert rho(2.5 * r, k, w) == pytest.approx(2.5 * rho(r, k, w), abs=1e-9)
    assert rho(0 * r, k, w) == 0
    assert rho(r + s, k, w) <= rho(r, k, w) + rho(s, k, w) + 1e-9  # subadditive
    assert abs(rho(r, k, w) - rho(s, k, w)) <= np.abs(r - s).max() + 1e-9  # 1-Lipschitz


@given(pairs(), fractions, mixes)
def test_between_mean_and_maximum(two, k, w):
    r, _ = two
    assert r.mean() - 1e-9 <= rho(r, k, w) <= r.max() + 1e-9
    assert rho(r, 1.0, 0.0) == pytest.approx(r.mean(), abs=1e-9)
    assert rho(r, k, 1.0) == r.max()


def test_tail_size_is_that_of_the_number_as_written():
    assert tail_size([1, 9, 10, 100], 0.1).tolist() == [1, 1, 1, 10]
    assert tail_size([100], 0.29).tolist() == [29]  # 0.29 * 100 is 28.999999999999996
    assert tail_size([7], 1.0).tolist() == [7]


@given(hnp.arrays(np.int64, st.integers(1, 8), elements=st.integers(1, 15)), fractions, mixes)
def test_running_tail_is_the_tail_of_each_prefix(lengths, k, w):
    rng = np.random.default_rng(int(lengths.sum()))
    X = TrajectoryArray(rng.integers(0, 4, lengths.sum()) / 3, lengths)  # with ties
    mean, largest = running_top_means(X, X.cells, k)
    trace = X.with_cells((1 - w) * mean + w * largest)
    expected = [rho(run[: t + 1], k, w) for run in X for t in range(len(run))]
    assert np.allclose(trace.cells, expected, rtol=0, atol=1e-12)
    final = top_means(X, X.cells, k)
    assert np.array_equal(mean[X.offsets[1:] - 1], final[0])  # to the last digit
    assert np.array_equal(largest[X.offsets[1:] - 1], final[1])


def test_many_runs_are_cut_into_chunks(rng, monkeypatch):
    lengths = rng.integers(1, 9, 60)
    X = TrajectoryArray(rng.random(lengths.sum()), lengths)
    whole = top_means(X, X.cells, 0.4), running_top_means(X, X.cells, 0.4)
    for cells in (100, 10):  # the second is one run at a time
        monkeypatch.setattr("trajscore.tracer._tail._CHUNK_CELLS", cells)
        assert np.array_equal(top_means(X, X.cells, 0.4), whole[0])
        assert np.array_equal(running_top_means(X, X.cells, 0.4), whole[1])


def test_a_long_run_needs_no_square_of_memory(rng):
    X = TrajectoryArray(rng.random(4000), [4000])
    tracemalloc.start()
    mean, _ = running_top_means(X, X.cells, 0.1)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 50e6  # squares of steps took 290 MB
    assert mean[-1] == top_means(X, X.cells, 0.1)[0][0]


@pytest.mark.parametrize(
    ("k", "w", "message"),
    [(0, 0.1, "k must be a fraction"), (1.2, 0.1, "got 1.2"), (0.1, -1, "w must be a weight")],
)
def test_bad_parameters(k, w, message):
    with pytest.raises(ValueError, match=message):
        TracerScorer(k=k, w=w).fit([[0.1, 0.2]])


def test_the_tail_of_an_array_of_risks(rng):
    risk = rng.random((30, 7))
    found = TracerScorer(k=0.3, w=0.2).fit(risk).score_samples(risk)
    assert found == pytest.approx([rho(row, 0.3, 0.2) for row in risk], abs=1e-15)
