"""Bins of equal width and of equal weight."""

import numpy as np
import pytest

from trajscore.core.binning import binned_error, bins_of, quantile_bins, uniform_bins


@pytest.mark.parametrize("n_bins", [1, 3, 10, 15])
def test_uniform_bins_are_closed_on_the_left_and_the_last_on_both_sides(n_bins):
    edges = np.arange(n_bins + 1) / n_bins
    assert uniform_bins(edges, n_bins).tolist() == [*range(n_bins), n_bins - 1]
    assert uniform_bins(edges[1:] - 1e-6, n_bins).tolist() == list(range(n_bins))
    assert bins_of(edges, np.ones(n_bins + 1), n_bins, "uniform").tolist() == [
        *range(n_bins), n_bins - 1,
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("size", "n_bins", "bins"),
    [
        ([1, 1, 1, 1], 2, [0, 0, 1, 1]),
        ([1, 1, 1], 2, [0, 0, 1]),  # a middle on an edge goes below it
        ([3, 1], 2, [0, 1]),
        ([1, 3], 2, [0, 1]),
        ([0, 1, 0], 2, [0, 0, 1]),
        ([1, 1], 10, [2, 7]),
        ([0, 0], 3, [0, 0]),
        ([1, 0], 2**40, [2**39, 2**40 - 1]),  # where rounding is larger than what is allowed
    ],
)
def test_ties_go_where_their_middle_rank_is(size, n_bins, bins):
    size = np.array(size, dtype=float)
    assert quantile_bins(size, n_bins).tolist() == bins
    assert quantile_bins(np.stack([size, 2 * size]), n_bins).tolist() == [bins, bins]


def test_values_that_are_equal_share_a_bin():
    values = np.array([0.5, 0.1, 0.5, 0.9, 0.5])
    assert bins_of(values, np.ones(5), 5, "quantile").tolist() == [2, 0, 2, 4, 2]
    assert bins_of(values, np.array([1.0, 0, 1, 6, 0]), 2, "quantile").tolist() == [0, 0, 0, 1, 0]


@pytest.mark.parametrize(
    ("size", "gap", "n_bins", "error"),
    [
        ([1, 1, 1, 1], [0.5, -0.25, 0.5, 0.5], 2, (0.25 + 1) / 4),
        ([1, 1, 1, 1], [0.5, -0.25, 0.5, 0.5], 1, 1.25 / 4),
        ([1, 1, 1, 1], [0.5, -0.25, 0.5, 0.5], 4, 1.75 / 4),
        ([0, 2, 0, 2], [0, 1, 0, -1], 2, 0.5),
        ([0.25, 0.25], [0.25, -0.25], 10, 1),
    ],
)
def test_calibration_error_of_counts(size, gap, n_bins, error):
    found = binned_error(np.array(size, dtype=float), np.array(gap, dtype=float), n_bins)
    assert found == pytest.approx(error)


def test_without_weight_there_is_no_calibration_error():
    assert np.isnan(binned_error(np.zeros(3), np.zeros(3), 10))
