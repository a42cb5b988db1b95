"""Thresholds against what they guarantee, spelled out."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import beta, binom

from trajscore.monitoring._thresholds import (
    Bonferroni,
    Conformal,
    CrossConformal,
    Pac,
    PacMarginal,
    Ville,
    conformal_needs,
    conformal_rank,
    pac_needs,
    pac_rank,
    randomised_conformal_limits,
    run_uniforms,
)


@pytest.mark.parametrize("alpha", np.arange(0.2, 1, 0.05).round(2))
def test_randomised_conformal_flags_where_the_p_value_is_at_most_alpha(alpha):
    maxima, ids = np.array([2.0, 1.0, 3.0, 2.0]), np.arange(300)
    limits = Conformal(alpha, seed=3).fit(maxima, np.zeros(4)).limits(ids)
    U = run_uniforms(ids, 3)
    for m in (0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5):
        p = ((maxima > m).sum() + U * (1 + (maxima == m).sum())) / 5
        np.testing.assert_array_equal(m > limits, p <= alpha)


def test_randomised_pac_flags_all_that_come_after_the_threshold():
    # largest values are tied: uniforms put the held-out runs in an order, and one is the threshold
    ids = np.arange(60)
    threshold = Pac(0.2, seed=3).fit(np.ones(60), run_uniforms(ids, 3))
    assert (threshold.limits(ids) < 1).sum() == 60 - pac_rank(60, 0.2, 0.1)


@given(st.integers(1, 300), st.sampled_from([0.01, 0.05, 0.1, 0.3]), st.sampled_from([0.05, 0.2]))
def test_ranks_are_the_smallest_that_keep_their_guarantee(n, alpha, delta):
    k = pac_rank(n, alpha, delta)
    if k <= n:
        assert binom.sf(k - 1, n, 1 - alpha) <= delta
    if k > 1:
        assert binom.sf(k - 2, n, 1 - alpha) > delta
    k = conformal_rank(n, alpha)
    assert (n + 1 - k) / (n + 1) <= alpha + 1e-9
    assert (n + 2 - k) / (n + 1) > alpha + 1e-9
    needed = conformal_needs(alpha)
    assert conformal_rank(needed, alpha) <= needed
    assert conformal_rank(needed - 1, alpha) > needed - 1
    needed = pac_needs(alpha, delta)
    assert pac_rank(needed, alpha, delta) <= needed
    assert pac_rank(needed - 1, alpha, delta) > needed - 1


def test_ranks_do_not_depend_on_the_rounding_of_a_product():
    assert 100 * 0.29 < 29  # in floating point
    assert conformal_rank(99, 0.29) == 71
    assert 1 / (1 / 49) > 49
    assert conformal_needs(1 / 49) == 48
    # on either side of 3, as the library rounds logarithms
    assert np.log(0.027) / np.log1p(-0.7) == pytest.approx(3)
    assert pac_needs(0.7, 0.027) == 3


@given(
    st.lists(st.integers(0, 3), min_size=1, max_size=12),
    st.integers(-1, 4),
    st.floats(0.001, 0.999),
    st.floats(0.02, 0.98),
)
def test_randomised_limits_are_randomised_p_values(maxima, value, coin, alpha):
    maxima = np.sort(np.array(maxima, dtype=float))
    p = ((maxima > value).sum() + coin * (1 + (maxima == value).sum())) / (len(maxima) + 1)
    if abs(p - alpha) < 1e-9:
        return
    limit = randomised_conformal_limits(maxima, alpha, np.array([coin]))[0]
    assert (value > limit) == (p <= alpha)


def fitted_rank(threshold, n):
    """Rank of the threshold among the largest log M of n successes, which are 1, ..., n."""
    return threshold.fit(np.arange(1.0, n + 1), np.full(n, 0.5)).log_threshold


@pytest.mark.parametrize(
    ("threshold", "n", "rank"),
    [
        (Conformal(0.1), 100, 91),
        (Conformal(0.05), 19, 19),
        (Pac(0.1, delta=0.05), 100, 96),
        (Pac(0.05, delta=0.1), 45, 45),
        # 0.9 alpha = 0.09 and 0.1 alpha = 0.01: P[Bin(200, 0.91) >= 192] = .0053, >= 191: .0121
        (PacMarginal(0.1), 200, 192),
        (PacMarginal(0.5), 50, 34),  # P[Bin(50, 0.55) >= 34] = .0427, >= 33: .0765; delta = .05
    ],
    ids=repr,
)
def test_thresholds_are_values_of_known_ranks(threshold, n, rank):
    assert fitted_rank(threshold, n) == rank
    limits = threshold.limits(np.arange(3))
    assert ((limits > rank) & (limits < rank + 1e-8)).all()  # the value itself is not flagged


@pytest.mark.parametrize("alpha", [0.05, 0.2, 0.5])
@pytest.mark.parametrize("n", [300, 1000])
def test_the_mean_rate_of_a_rank_is_at_most_alpha(alpha, n):
    """A new success exceeds the k-th of n with chance (n + 1 - k) / (n + 1)."""
    for threshold in (Conformal(alpha), PacMarginal(alpha)):
        rank = fitted_rank(threshold, n)
        assert (n + 1 - rank) / (n + 1) <= alpha + 1e-12
        # the rate given the held-out set is Beta(n + 1 - k, k)
    rate = beta(n + 1 - rank, rank)
    assert rate.sf(0.9 * alpha) <= 0.1 * alpha < beta(n + 2 - rank, rank - 1).sf(0.9 * alpha)


def test_thresholds_without_held_out_runs():
    none = np.empty(0)
    assert Ville(0.05).fit(none, none).log_threshold == pytest.approx(np.log(20))
    assert Bonferroni(0.05, n_steps=7).fit(none, none).log_threshold == pytest.approx(np.log(140))
    limits = CrossConformal(0.1).fit(np.zeros(29), np.zeros(29)).limits(np.arange(2))
    assert limits.tolist() == [-3.5, -3.5]  # flagged where at most 3 of 30 look as bad


@pytest.mark.parametrize(
    ("threshold", "needed"),
    [(Conformal(0.05), 19), (Pac(0.05), 45), (PacMarginal(0.05), 116)],
    ids=repr,
)
def test_too_few_values_are_said_with_the_number_needed(threshold, needed):
    with pytest.warns(UserWarning, match=f"at least {needed} successes are held out, or"):
        assert fitted_rank(threshold, needed - 1) == np.inf
    assert fitted_rank(threshold, needed) == needed


@pytest.mark.parametrize(
    ("threshold", "largest", "p"),
    [
        (Ville(0.05), np.log([0.5, 1, 2, 20, 100]), [1, 1, 0.5, 0.05, 0.01]),
        (Bonferroni(0.05, n_steps=7), np.log([1, 7, 14, 140]), [1, 1, 0.5, 0.05]),
        (Conformal(0.4), [0, 1, 2 - 5e-10, 2 + 5e-10, 2 + 1e-6, 9], [1, 1, 0.8, 0.8, 0.4, 0.2]),
        (CrossConformal(0.4), [-1, -3, -5], [0.2, 0.6, 1]),  # 4 held-out successes
    ],
    ids=["ville", "bonferroni", "conformal", "cross"],
)
def test_p_values_are_the_levels_at_which_runs_are_flagged(threshold, largest, p):
    threshold.fit(np.array([2.0, 1.0, 3.0, 2.0]), np.zeros(4))
    assert threshold.p_values(np.array(largest)) == pytest.approx(p)


def test_conformal_limits_with_one_value():
    # (#{M > m} + U (1 + #{M = m})) / 2 <= alpha, for the value 1 and a half that is spent
    uniforms = np.array([0.2, 0.6, 1.0])
    limits = randomised_conformal_limits(np.array([1.0]), 0.4, uniforms)
    # room 0.8: below 1 none, at 1 where 2 U <= 0.8, above 1 where U <= 0.8
    assert (limits < 1).tolist() == [True, False, False]
    assert (limits < 2).tolist() == [True, True, False]
    assert limits[2] == np.inf
    assert (randomised_conformal_limits(np.array([1.0]), 0.9, uniforms) == -np.inf).tolist() == [
        True, True, False,
    ]  # fmt: skip
