"""What a fleet monitor bets, by hand."""

import numpy as np
import pytest

from trajscore.monitoring._fleet_bets import GRID, bets_on_outcomes, bets_on_ranks, cells_of


def test_bets_on_ranks_are_lines_down_and_up_and_none():
    expected = [[1.75, 1, 0.25], [1.375, 1, 0.625], [1, 1, 1], [0.25, 1, 1.75]]
    np.testing.assert_allclose(bets_on_ranks(np.array([0, 0.25, 0.5, 1])), expected)


@pytest.mark.parametrize("splits", [[[0.5], [0.5]], [[0.3, 0.3], [0.2, 0.6], [0.01, 0.99]]])
def test_bets_on_outcomes_move_their_log_odds(splits):
    splits = np.array(splits)
    n_rows, n_bins = splits.shape
    above, below = bets_on_outcomes(splits)
    assert above.shape == below.shape == (2 * n_rows - 1, n_bins, 3)
    for row in range(2 * n_rows - 1):
        for k in range(n_bins):
            # levels of all rows, then slopes of all but the first, from -sqrt(3) to sqrt(3)
            is_slope = row >= n_rows
            rate = splits[row - n_rows + 1 if is_slope else row, k]
            stretch = np.sqrt(3) * (2 * (k + 0.5) / n_bins - 1) if is_slope else 1
            for sign in (-1, 0, 1):
                odds = rate / (1 - rate) * np.exp(0.45 * stretch * sign)
                moved = odds / (1 + odds)
                assert below[row, k, sign + 1] == pytest.approx(moved / rate)
                assert above[row, k, sign + 1] == pytest.approx((1 - moved) / (1 - rate))


@pytest.mark.parametrize(
    ("length", "cell"),
    # from 33 steps on there are 32 cells for each doubling: 32 (log2(48 / 32) + 1) = 50.7
    [(1, 1), (31, 31), (32, 32), (33, 33), (48, 50), (63, 63), (64, 64), (128, 96), (2**30, 511)],
)
def test_cells_of_lengths(length, cell):
    assert cells_of(np.array([length]), np.array([[0.5]])).tolist() == [[cell, 255]]


@pytest.mark.parametrize(
    ("logit", "cell"),
    # (logit / 8 + 1) / 2 * 511, from -8 to 8
    [(-np.inf, 0), (-9, 0), (-8, 0), (-4, 127), (0, 255), (4, 383), (7.99, 510), (9, 511)],
)
def test_cells_of_forecasts(logit, cell):
    forecast = 1 / (1 + np.exp(-logit))
    (row,) = cells_of(np.array([5]), np.array([[forecast, 0.5]]))
    assert row.tolist() == [5, cell, 255]
    assert GRID == 512
