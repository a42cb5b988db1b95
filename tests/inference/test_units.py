"""Units of resampling by hand: their codes, sums and sizes, and the level that few of them ask."""

import numpy as np
import pytest
from scipy.stats import norm, t

from trajscore.inference.units import (
    Units,
    any_units,
    draw_counts,
    left_out_factor,
    n_equal,
    resampling_units,
    t_quantile,
    units_of,
)

CLUSTERS = ["b", "a", "c", "a", "c", "c"]


def test_runs_are_units_where_there_are_no_clusters():
    units = resampling_units(3)
    assert (units.codes, units.strata, units.n_units) == (None, (slice(0, 3),), 3)
    values = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    np.testing.assert_array_equal(units.sums(values), values)
    np.testing.assert_array_equal(units.sizes(3), [1, 1, 1])
    assert units.n_effective(3) == 3
    counts = np.array([[2.0, 0.0, 1.0]])
    np.testing.assert_array_equal(units.to_runs(counts), counts)


def test_clusters_are_numbered_by_name():
    units = resampling_units(6, CLUSTERS)
    assert units.codes.tolist() == [1, 0, 2, 0, 2, 2]
    assert units.n_units == 3
    values = np.arange(12.0).reshape(6, 2)
    np.testing.assert_array_equal(units.sums(values), [[8, 10], [0, 1], [22, 25]])
    np.testing.assert_array_equal(units.sizes(6), [2, 1, 3])
    assert units.n_effective(6) == pytest.approx(36 / 14)
    np.testing.assert_array_equal(units.to_runs(np.array([[7.0, 8.0, 9.0]])), [[8, 7, 9, 7, 9, 9]])


def test_units_of_a_stratum_lie_side_by_side():
    units = resampling_units(4, strata=["y", "x", "y", "x"])
    assert units.strata == (slice(0, 2), slice(2, 4))
    assert units.codes.tolist() == [2, 0, 3, 1]
    clusters = [3, 1, 2, 2, 0, 4]
    both = resampling_units(6, clusters, strata=["y", "x", "x", "x", "y", "y"])
    assert both.strata == (slice(0, 2), slice(2, 5))
    assert both.codes.tolist() == [3, 0, 1, 1, 2, 4]


@pytest.mark.parametrize(
    ("clusters", "strata", "problem"),
    [
        (["a", "a", "b", "c"], ["x", "y", "y", "x"], "row 0: its cluster lies in more than one"),
        (["a", "b", "c", "c"], ["x", "x", "x", "y"], "row 2: its cluster lies in more than one"),
        (None, ["x", "x", "z", "x"], "stratum 'z' has one run or cluster only; merge it"),
        (["a", "b", "c", "c"], ["x", "x", "y", "y"], "stratum 'y' has one run or cluster only"),
    ],
)
def test_strata_are_made_of_two_whole_units_or_more(clusters, strata, problem):
    with pytest.raises(ValueError, match=problem):
        resampling_units(4, clusters, strata)


def test_an_interval_needs_two_units():
    with pytest.raises(ValueError, match="an interval needs at least 2 runs, got 1"):
        units_of(None, 1)
    with pytest.raises(ValueError, match="all runs are of one cluster"):
        units_of(np.array([4, 4, 4]), 3)
    assert units_of(None, 2).n_units == 2
    gaps = units_of(np.array([7, 3, 7]), 3)
    assert (gaps.codes.tolist(), gaps.n_units) == ([1, 0, 1], 2)
    assert any_units(np.array([4, 4]), 2).n_units == any_units(None, 1).n_units == 1


@pytest.mark.parametrize(
    ("sizes", "n"), [([1, 1, 1], 3), ([5, 5], 2), ([3, 1], 1.6), ([2, 1, 1], 16 / 6), ([4], 1)]
)
def test_effective_number(sizes, n):
    assert n_equal(np.array(sizes)) == pytest.approx(n)


def test_quantiles_of_t():
    assert t_quantile(4, 0.95) == pytest.approx(t.ppf(0.975, 4))
    assert t_quantile(0, 0.95) == t_quantile(-1, 0.95) == np.inf
    with pytest.raises(ValueError, match="confidence_level"):
        t_quantile(4, 95)
    units = resampling_units(6, CLUSTERS)
    assert units.t_quantile(6, 0.9) == pytest.approx(t.ppf(0.95, 36 / 14 - 1))
    strata = resampling_units(4, strata=["y", "x", "y", "x"])
    assert strata.t_quantile(4, 0.9) == pytest.approx(t.ppf(0.95, 2))


def test_a_bootstrap_of_few_units_is_as_wide_as_t():
    level = resampling_units(5).expanded_level(5, 0.9)
    assert norm.ppf((1 + level) / 2) == pytest.approx(np.sqrt(5 / 4) * t.ppf(0.95, 4))
    strata = resampling_units(6, strata=[0, 0, 0, 1, 1, 1]).expanded_level(6, 0.9)
    assert norm.ppf((1 + strata) / 2) == pytest.approx(np.sqrt(6 / 4) * t.ppf(0.95, 4))
    assert resampling_units(10**6).expanded_level(10**6, 0.9) == pytest.approx(0.9, abs=1e-5)
    assert resampling_units(2).expanded_level(2, 0.99999) == 1 - 1e-12


def test_leaving_out_a_unit_changes_a_mean_by_what_cr3_says():
    sizes = np.array([2.0, 1.0, 3.0])
    np.testing.assert_allclose(
        left_out_factor(sizes), np.sqrt(2 / 3) / np.array([4 / 6, 5 / 6, 3 / 6])
    )
    values = np.array([1.0, 4.0, -2.0, 5.0])
    left_out = np.array([np.delete(values, k).mean() for k in range(4)])
    influence = (values - values.mean()) / 4
    jackknife = 3 / 4 * ((left_out - values.mean()) ** 2).sum()
    changes = influence * left_out_factor(np.ones(4))
    assert (changes**2).sum() == pytest.approx(jackknife)
    # units without runs are none
    np.testing.assert_allclose(left_out_factor(np.array([2.0, 0.0, 1.0, 3.0]))[[0, 2, 3]],
                               left_out_factor(sizes))  # fmt: skip


def test_each_stratum_is_drawn_by_itself():
    units = Units(None, (slice(0, 2), slice(2, 5)))
    counts = draw_counts(400, units, np.random.default_rng(0))
    assert counts.shape == (400, 5)
    assert (counts[:, :2].sum(axis=1) == 2).all()
    assert (counts[:, 2:].sum(axis=1) == 3).all()
    np.testing.assert_allclose(counts.mean(axis=0), 1, atol=0.15)
