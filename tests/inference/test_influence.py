"""Intervals from influences: coverage, clusters, draws."""

import warnings

import numpy as np
import pytest
from scipy.stats import binomtest, t, ttest_1samp

from joint_laws import short_runs_succeed
from trajscore.inference.influence import Spread, influence_interval
from trajscore.inference.units import any_units
from trajscore.metrics import tps_samples


def test_interval_of_a_mean_is_that_of_student(rng):
    x = rng.normal(size=20)
    low, high = influence_interval(x.mean(), x - x.mean())
    assert (low, high) == pytest.approx(tuple(ttest_1samp(x, 0).confidence_interval()))


def test_clusters_of_one_run_change_nothing(rng):
    x = rng.normal(size=(30, 2))
    plain = influence_interval(x.mean(axis=0), x - x.mean(axis=0))
    alone = influence_interval(x.mean(axis=0), x - x.mean(axis=0), groups=np.arange(30))
    np.testing.assert_allclose(plain, alone)


def test_runs_given_twice_in_a_cluster_add_nothing(rng):
    x = np.repeat(rng.normal(size=30), 2)
    once = influence_interval(x[::2].mean(), x[::2] - x.mean())
    twice = influence_interval(x.mean(), x - x.mean(), groups=np.repeat(np.arange(30), 2))
    np.testing.assert_allclose(once, twice)


def test_few_clusters_warn_and_one_has_no_bound():
    x = np.array([0.1, 0.3, 0.2])
    with pytest.warns(UserWarning, match="there are 1 clusters"):
        low, high = influence_interval(x.mean(), x - x.mean() + 0.1, groups=["a"] * 3)
    assert np.isinf([low, high]).all()


@pytest.mark.parametrize("sizes", [[5] * 8, [1, 1, 2, 2, 4, 6, 8, 16]])
def test_few_clusters_are_covered_be_they_unequal(sizes):
    rng, n_repeats = np.random.default_rng(6), 1000
    groups = np.repeat(np.arange(8), sizes)
    x = 2 * rng.normal(size=(8, n_repeats))[groups] + rng.normal(size=(40, n_repeats))
    mean = x.mean(axis=0)
    with pytest.warns(UserWarning, match="there are 8 clusters"):
        low, high = influence_interval(mean, x - mean, groups=groups)
    assert ((low <= 0) & (high >= 0)).mean() > 0.935  # 0.88 for the unequal, at 7 degrees


def test_warning_counts_equally_large_clusters():
    sizes = [1] * 29 + [60]
    x = np.ones(89)
    with pytest.warns(UserWarning, match="30 clusters of runs, equivalent to 2.2 equal ones"):
        influence_interval(1.0, x - 1, groups=np.repeat(np.arange(30), sizes))


def test_logit_scale_stays_inside():
    psi = np.array([0.5, -0.5] * 10)
    low, high = influence_interval([0.97, 0.5], np.stack([psi, psi], axis=1), on_logit=True)
    assert (low > 0).all()
    assert (high < 1).all()
    plain = influence_interval(0.97, psi)[1]
    assert plain > 1
    # what does not vary has no width, on either scale
    assert influence_interval(1.0, np.zeros(5), on_logit=True) == (1.0, 1.0)


def test_draws_do_not_jump_with_the_last_digit(rng):
    x = rng.normal(size=(40, 3))
    x -= x.mean(axis=0)
    x = np.column_stack([x, x[:, 0] + x[:, 1]])  # of a singular covariance
    nudged = x * (1 + 1e-13 * rng.normal(size=x.shape))
    one, other = (Spread(psi, any_units(None, 40)).draw(100) for psi in (x, nudged))
    np.testing.assert_allclose(one, other, rtol=0, atol=1e-6)


def test_intervals_of_a_score_hold_where_length_tells(n_simulations):
    law, rng = short_runs_succeed(), np.random.default_rng(0)

    def numbers(n_runs):
        """Samples of a score, and of its margin over that of another forecast."""
        runs = law.sample(n_runs, rng)
        forecasts = law.forecasts(runs)
        first, second = (tps_samples(runs.y, forecasts[name]) for name in ("truth", "down"))
        return np.stack([first, first - second], axis=1)

    truth, hits, means, errors = numbers(200_000).mean(axis=0), np.zeros(2), [], []
    for _ in range(n_simulations):
        x = numbers(100)
        low, high = influence_interval(x.mean(axis=0), x - x.mean(axis=0))
        hits += (low <= truth) & (truth <= high)
        means.append(x.mean(axis=0))
        errors.append(x.std(axis=0, ddof=1) / 10)
    for count in hits.astype(int):
        assert binomtest(count, n_simulations, 0.94).proportion_ci(0.999).high > 0.94
        assert count / n_simulations < 0.985  # not merely wide
    np.testing.assert_allclose(np.mean(errors, axis=0), np.std(means, axis=0), rtol=0.15)


@pytest.mark.parametrize(
    ("estimate", "influence", "message"),
    [
        ([], [0.1], "estimate is empty"),
        ([0.1, 0.2], [[0.1], [-0.1]], "a column for each of 2 statistics, got shape \\(2, 1\\)"),
        ([0.1, 0.2], [0.1, 0.2, -0.3, 0.0], "statistics, got shape \\(4, 1\\)"),
        ([0.1, 0.2], [0.1, 0.2, -0.3], "a column for each of 2 statistics, got shape \\(3, 1\\)"),
        (0.1, np.zeros((2, 1, 1)), "a column for each of 1 statistics, got shape \\(2, 1, 1\\)"),
        ([[0.1]], [0.1, -0.1], "a column for each of 1 statistics"),
    ],
)
def test_bad_input(estimate, influence, message):
    with pytest.raises(ValueError, match=message):
        influence_interval(estimate, influence)


def test_what_does_not_vary_has_no_width_be_it_alone_or_among_others():
    psi = np.array([0.5, -0.5] * 10)
    low, high = influence_interval([0.3, 0.4], np.c_[psi, 0 * psi])
    assert low[0] < 0.3 < high[0]
    assert low[1] == high[1] == 0.4
    assert influence_interval(0.3, 0 * psi) == (0.3, 0.3)


def test_acceleration_is_the_skewness_of_influences():
    influence = np.array([[3.0, 0.0, -3.0], [-1.0, 0.0, 1.0], [-2.0, 0.0, 2.0]])
    # sums of cubes 18, of squares 14
    expected = 18 / (6 * 14**1.5)
    acceleration = Spread(influence, any_units(None, 3)).acceleration()
    np.testing.assert_allclose(acceleration, [expected, 0, -expected])


@pytest.mark.parametrize("n", [4096, 4097, 10_000])
@pytest.mark.parametrize("clustered", [False, True])
def test_powers_are_summed_over_all_blocks_of_runs(n, clustered):
    x = np.stack([np.sin(np.arange(n)), np.arange(n) % 7.0], axis=1)
    x -= x.mean(axis=0)
    spread = Spread(x, any_units(np.arange(n) if clustered else None, n))
    squares = (x**2).sum(axis=0)
    np.testing.assert_allclose(spread.half_width(2.0), 2 * np.sqrt(squares / (n * (n - 1))))
    np.testing.assert_allclose(spread.effective_n(), squares**2 / (x**4).sum(axis=0))
    np.testing.assert_allclose(spread.acceleration(), (x**3).sum(axis=0) / (6 * squares**1.5))
    np.testing.assert_allclose(spread.left_out()[:5], x[:5] * np.sqrt(n / (n - 1)))


def test_draws_have_the_covariance_of_units_left_out(rng):
    x = rng.normal(size=(30, 2)) @ np.array([[1.0, 0.8], [0.0, 0.6]])
    x -= x.mean(axis=0)
    for groups in (None, np.arange(30) // 2):
        spread = Spread(x, any_units(groups, 30))
        expected = spread.left_out().T @ spread.left_out() / 30**2
        drawn = spread.draw(40_000)
        np.testing.assert_allclose(drawn.T @ drawn / 40_000, expected, rtol=0.05)
        assert np.sqrt(np.diag(expected)) == pytest.approx(spread.half_width(1.0))
        np.testing.assert_array_equal(drawn[:10], spread.draw(10))  # seeded
        assert (drawn[:10] != spread.draw(10, random_state=1)).all()


@pytest.mark.parametrize(("n_clusters", "warns"), [(14, True), (15, False)])
def test_fewer_than_fifteen_clusters_are_few(n_clusters, warns):
    groups, psi = np.repeat(np.arange(n_clusters), 2), np.resize([0.5, -0.5], 2 * n_clusters)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        influence_interval(0.0, psi, groups=groups)
    assert [str(one.message).split(";")[0] for one in caught] == (
        [f"there are {n_clusters} clusters of runs"] if warns else []
    )


@pytest.mark.parametrize(
    ("estimate", "influence", "options", "match"),
    [
        ([], np.zeros((3, 0)), {}, "estimate is empty"),
        (0.5, np.zeros((3, 2)), {}, r"a column for each of 1 statistics, got shape \(3, 2\)"),
        ([[0.5]], np.zeros((3, 1)), {}, "a column for each of 1 statistics"),
        (0.5, np.zeros(3), {"on_logit": 1}, "on_logit must be true or false, or one for each"),
        ([0.5, 0.5], np.zeros((3, 2)), {"on_logit": [True]}, "on_logit must be true or false"),
    ],
)
def test_what_does_not_fit_is_refused(estimate, influence, options, match):
    with pytest.raises(ValueError, match=match):
        influence_interval(estimate, influence, **options)


def test_each_statistic_may_have_its_own_scale():
    psi = np.stack([np.resize([0.5, -0.5], 40)] * 3, axis=1)
    low, high = influence_interval([0.9, 0.9, 1.0], psi, on_logit=[True, False, True])
    reach = t.ppf(0.975, 39) * 0.5 / np.sqrt(39)
    assert (low[1], high[1]) == pytest.approx((0.9 - reach, 0.9 + reach))
    odds = np.log(9) + np.array([-1, 1]) * reach / 0.09
    assert [low[0], high[0]] == pytest.approx(list(1 / (1 + np.exp(-odds))))
    assert (low[2], high[2]) == pytest.approx((1 - reach, 1 + reach))  # 1 has no logit


def test_acceleration_by_hand():
    totals = np.array([[0.1, 0.0, 3.0], [-0.05, 0.0, -1.0], [-0.05, 0.0, -2.0]])
    found = Spread(totals, any_units(None, 3)).acceleration()
    expected = [0.00075 / (6 * 0.015**1.5), 0, 18 / (6 * 14**1.5)]
    np.testing.assert_allclose(found, expected)
