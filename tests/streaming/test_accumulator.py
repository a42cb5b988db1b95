"""What all accumulators share: the grid, and what may be added and merged."""

import numpy as np
import pytest

from trajscore import TrajectoryArray
from trajscore.core.score_families import CLIP
from trajscore.streaming import CalibrationAccumulator, RankingAccumulator, TPSAccumulator
from trajscore.streaming._accumulator import Grid

END = np.log((1 - CLIP) / CLIP)


def test_cells_of_log_odds_have_equal_widths():
    grid = Grid.between(None, 8)
    assert (grid.low, grid.high, grid.is_probability) == (-END, END, True)
    edges = np.linspace(-END, END, 9)
    inside = 1 / (1 + np.exp(-(edges[:-1] + edges[1:]) / 2))
    np.testing.assert_array_equal(grid.cells(inside), np.arange(8))
    np.testing.assert_array_equal(grid.cells(np.array([0.0, 1.0, 0.5])), [0, 7, 4])
    just_below = 1 / (1 + np.exp(-(edges[1:] - 1e-6)))
    np.testing.assert_array_equal(grid.cells(just_below), np.arange(8))


def test_cells_between_bounds():
    grid = Grid.between((-1, 3), 4)
    assert (grid.low, grid.high, grid.is_probability, grid.n_cells) == (-1, 3, False, 4)
    values = np.array([-9, -1, -0.01, 0, 1.5, 2, 3, 9])
    np.testing.assert_array_equal(grid.cells(values), [0, 0, 0, 1, 2, 3, 3, 3])
    assert Grid.between((2, 2), 4).cells(np.array([1.0, 2.0, 9.0])).tolist() == [0, 0, 3]


@pytest.mark.parametrize(
    ("bounds", "problem"),
    [
        ((1, 0), r"the smaller number first, got \(1, 0\)"),
        ((0, 1, 2), r"two finite numbers, got \(0, 1, 2\)"),
        ((0, np.inf), "two finite numbers"),
        (("a", 1), "two finite numbers"),
        (3, "two finite numbers, got 3"),
    ],
)
def test_bounds_are_two_finite_numbers(bounds, problem):
    with pytest.raises(ValueError, match=problem):
        Grid.between(bounds, 4)


X = TrajectoryArray([0.9, 0.2, 0.6], [1, 1, 1])


@pytest.mark.parametrize("kind", [TPSAccumulator, CalibrationAccumulator, RankingAccumulator])
def test_what_may_be_added(kind):
    one = kind()
    assert one.update([1, 0, 0.5], X) is one
    assert one.update([], TrajectoryArray([], [])) is one
    with pytest.raises(ValueError, match="outcome"):
        kind().update([1, -1, 0], X)
    with pytest.raises(ValueError, match=r"outside \[0, 1\]"):
        kind().update([1, 0, 0], X.with_cells(2 * X.cells))
    two = TrajectoryArray.stack([X, X])
    with pytest.raises(ValueError, match="one value a step"):
        kind().update([1, 0, 0], two)


def test_only_what_has_the_same_parameters_is_merged():
    for kind in (TPSAccumulator, CalibrationAccumulator, RankingAccumulator):
        one = kind().update([1, 0, 1], X)
        assert one.merge(kind()) is one
        with pytest.raises(ValueError, match=f"other must be a {kind.__name__}, got a int"):
            one.merge(3)
        with pytest.raises(ValueError, match=f"two {kind.__name__}s differ in weights; merge"):
            one.merge(kind(weights="uniform"))
    with pytest.raises(ValueError, match="differ in phi and weights and grid"):
        RankingAccumulator().merge(RankingAccumulator("last", "uniform", bounds=(0, 2)))
