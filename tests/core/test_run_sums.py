"""Weighted sums of scores, by hand."""

from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from trajscore import TrajectoryArray
from trajscore.core.run_sums import (
    RunSums,
    beyond_end,
    contrast_sums,
    earned,
    row_chunks,
    run_sums,
    score_cells,
)
from trajscore.core.score_families import BrierScore, LogScore
from trajscore.core.weights import as_step_weights

SUMS = RunSums(np.array([-1.0, -3.0, -5.0]), np.array([1.0, 2.0, 3.0]))
X = TrajectoryArray([0.9, 0.6, 0.2, 0.5, 0.5], [2, 1, 2], horizon=[3, 1, 2])
UNIFORM = as_step_weights("uniform")


def test_score_of_a_set_and_its_pseudo_values():
    weight = np.array([2.0, 1.0, 1.0])
    mean = (-2 - 3 - 5) / (2 + 2 + 3)
    assert SUMS.mean(weight) == pytest.approx(mean)
    samples = mean + (SUMS.total - mean * SUMS.divisor) / (7 / 4)
    assert_allclose(SUMS.samples(weight), samples)
    assert np.average(SUMS.samples(weight), weights=weight) == pytest.approx(mean)
    assert_allclose(SUMS.samples(), -1.5 + (SUMS.total + 1.5 * SUMS.divisor) / 2)


def test_runs_that_add_one_to_the_divisor_are_their_own_samples():
    sums = RunSums(np.array([-1.0, -2.0]), np.ones(2))
    assert sums.samples() is sums.total
    assert RunSums(np.empty(0), np.empty(0)).samples().tolist() == []


def test_sets_without_a_score():
    with pytest.raises(ValueError, match="there are no runs to score; give at least one"):
        RunSums(np.empty(0), np.empty(0)).mean(np.empty(0))
    with pytest.raises(ValueError, match="no step has a positive weight; at least one must count"):
        SUMS.mean(np.zeros(3))


def test_differences_and_rows():
    less = SUMS - RunSums(np.array([-2.0, -2.0, -2.0]), np.array([9.0, 9.0, 9.0]))
    assert (less.total.tolist(), less.divisor.tolist()) == ([1, -1, -3], [1, 2, 3])
    some = SUMS[[2, 0]]
    assert (some.total.tolist(), some.divisor.tolist()) == ([-5, -1], [3, 1])


@pytest.mark.parametrize("normalize", [True, False])
def test_sums_of_runs(normalize):
    sums = run_sums([1, 0, 0.5], X, "brier", UNIFORM, normalize=normalize)
    assert_allclose(sums.total, [-0.01 - 0.16, -0.04, -0.5])
    assert_allclose(sums.divisor, [2, 1, 2] if normalize else [1, 1, 1])


def test_success_over_failure():
    contrast = contrast_sums(X, "brier", UNIFORM)
    # -(1 - p)^2 + p^2 = 2 p - 1
    assert_allclose(contrast.total, [0.8 + 0.2, -0.6, 0])
    assert_allclose(contrast.divisor, [2, 1, 2])


def test_horizons_beyond_the_last_step():
    assert beyond_end(X).tolist() == [True, False, False]
    assert beyond_end(TrajectoryArray([0.5, 0.5], [1, 1])).tolist() == [False, False]


@pytest.mark.parametrize(
    ("lengths", "n_cells", "slices"),
    [
        ([2, 2, 2], 4, [(0, 2), (2, 3)]),
        ([2, 2, 2], 6, [(0, 3)]),
        ([2, 2, 2], 7, [(0, 3)]),
        ([2, 2, 2], 5, [(0, 3)]),
        ([2, 2, 2, 2], 5, [(0, 3), (3, 4)]),
        ([9, 1, 9, 1], 4, [(0, 1), (1, 3), (3, 4)]),
        ([1], 4, [(0, 1)]),
        ([], 4, []),
    ],
)
def test_chunks(lengths, n_cells, slices):
    offsets = np.append(0, np.cumsum(lengths)).astype(int)
    assert row_chunks(offsets, n_cells) == [slice(a, b) for a, b in slices]


def test_a_chunk_has_65536_cells():
    offsets = np.arange(0, 200_001, 2)
    assert row_chunks(offsets)[:2] == [slice(0, 32_768), slice(32_768, 65_536)]


def test_scores_of_cells():
    p = np.array([0.9, 0.6, 0.2])
    brier = BrierScore()
    assert_allclose(
        score_cells(brier, p, np.array([1, 0]), np.array([2, 1])), [-0.01, -0.16, -0.04]
    )
    graded = score_cells(brier, p, np.array([0.25, 1, 0]))
    assert_allclose(graded, [-(0.25 * 0.01 + 0.75 * 0.81), -0.16, -0.04])
    log = score_cells(LogScore(), p, np.array([0.25, 0.5]), np.array([2, 1]))
    assert_allclose(
        log,
        [
            0.25 * np.log(0.9) + 0.75 * np.log(0.1),
            0.25 * np.log(0.6) + 0.75 * np.log(0.4),
            0.5 * np.log(0.2) + 0.5 * np.log(0.8),
        ],
    )


def test_an_outcome_that_never_occurs_costs_nothing():
    @np.errstate(divide="ignore")
    def log(p):
        return np.log(p)

    unclipped = SimpleNamespace(success=log, failure=lambda p: log(1 - p))
    found = score_cells(unclipped, np.array([1.0, 0.0, 1.0]), np.array([1.0, 0.0, 0.5]))
    assert found.tolist() == [0, 0, -np.inf]
    # where one outcome alone may cost infinitely much
    found = score_cells(unclipped, np.array([1.0, 0.5]), np.array([1.0, 0.5]))
    assert found.tolist() == [0, np.log(0.5)]
    found = score_cells(unclipped, np.array([0.0, 0.5]), np.array([0.0, 0.5]))
    assert found.tolist() == [0, np.log(0.5)]
    assert earned(np.array([0.0, 2.0]), np.array([-np.inf, 3.0])).tolist() == [0, 6]


def test_observed_outcomes_are_scored_at_once():
    family = SimpleNamespace(observed=lambda p, failed: 10 * p + failed)
    for y, failed in (([1, 0], [0, 0, 1]), ([0, 0], [1, 1, 1]), ([1, 1], [0, 0, 0])):
        found = score_cells(family, np.array([0.1, 0.2, 0.3]), np.array(y), np.array([2, 1]))
        assert_allclose(found, np.array([1, 2, 3]) + failed)
