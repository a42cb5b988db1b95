"""Intervals from influences."""

import warnings

import numpy as np
import pytest
from scipy.stats import binomtest, t, ttest_1samp

from joint_laws import short_runs_succeed
from trajscore.inference import influence_interval
from trajscore.metrics import tps_samples


def of_mean(x, **options):
    return influence_interval(x.mean(axis=0), x - x.mean(axis=0), **options)


def test_interval_of_a_mean_is_that_of_student(rng):
    x = rng.normal(size=5000)  # more than are added up at a time
    for n in (20, 5000):
        for level in (0.95, 0.8):
            student = tuple(ttest_1samp(x[:n], 0).confidence_interval(level))
            assert of_mean(x[:n], confidence_level=level) == pytest.approx(student)


def test_errors_of_clusters_are_of_leaving_one_out(rng):
    groups = np.repeat(np.arange(20), rng.integers(1, 6, 20))
    x = rng.normal(size=len(groups)) + groups
    sizes, n = np.bincount(groups), len(groups)
    # what the mean would be without a cluster, with weights that leave the others as they are
    left_out = np.array([x[groups != k].mean() for k in range(20)]) - x.mean()
    error = np.sqrt(19 / 20 * (left_out**2).sum())
    reach = t.ppf(0.975, n**2 / (sizes**2).sum() - 1) * error
    shuffled = rng.permutation(n)
    low, high = of_mean(x[shuffled], groups=groups[shuffled])
    assert (low, high) == pytest.approx((x.mean() - reach, x.mean() + reach))


def test_clusters_of_one_run_change_nothing_and_copies_add_nothing(rng):
    x = rng.normal(size=(30, 2))
    np.testing.assert_allclose(of_mean(x), of_mean(x, groups=np.arange(30)))
    twice = of_mean(np.repeat(x, 2, axis=0), groups=np.repeat(np.arange(30), 2))
    np.testing.assert_allclose(of_mean(x), twice)
    unused = np.where(np.arange(30) < 5, np.nan, x[:, 0])  # runs that a statistic does not use
    assert influence_interval(0.5, unused) == influence_interval(0.5, np.nan_to_num(unused))
    with pytest.warns(UserWarning, match="1 clusters"):
        low, high = influence_interval(0.2, [0.1, 0.3, 0.2], groups=["a"] * 3)
    assert np.isinf([low, high]).all()


@pytest.mark.parametrize(
    ("sizes", "warns"),
    [
        ([2] * 15, None),
        ([2] * 14, "14 clusters of runs;"),
        ([1] * 29 + [60], "30 clusters of runs, .* 2.2 "),
    ],
)
def test_few_clusters_warn(sizes, warns):
    groups = np.repeat(np.arange(len(sizes)), sizes)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        influence_interval(0.0, np.resize([0.5, -0.5], len(groups)), groups=groups)
    if warns is None:
        assert not caught
    else:
        with pytest.warns(UserWarning, match=warns):
            influence_interval(0.0, np.zeros(len(groups)), groups=groups)


@pytest.mark.parametrize("sizes", [[5] * 8, [1, 1, 2, 2, 4, 6, 8, 16]])
def test_few_clusters_are_covered_be_they_unequal(sizes):
    rng, n_repeats = np.random.default_rng(6), 1000
    groups = np.repeat(np.arange(8), sizes)
    x = 2 * rng.normal(size=(8, n_repeats))[groups] + rng.normal(size=(40, n_repeats))
    with pytest.warns(UserWarning, match="8 clusters"):
        low, high = of_mean(x, groups=groups)
    assert ((low <= 0) & (high >= 0)).mean() > 0.935  # 0.88 for the unequal, at 7 degrees


def test_each_statistic_may_have_its_own_scale():
    psi = np.stack([np.resize([0.5, -0.5], 40)] * 3 + [np.zeros(40)], axis=1)
    scales = [True, False, True, True]
    low, high = influence_interval([0.9, 0.9, 1.0, 0.4], psi, on_logit=scales)
    reach = t.ppf(0.975, 39) * 0.5 / np.sqrt(39)
    assert (low[1], high[1]) == pytest.approx((0.9 - reach, 0.9 + reach))
    odds = np.log(9) + np.array([-1, 1]) * reach / 0.09
    assert [low[0], high[0]] == pytest.approx(list(1 / (1 + np.exp(-odds))))
    assert (low[2], high[2]) == pytest.approx((1 - reach, 1 + reach))  # 1 has no logit
    assert (low[3], high[3]) == pytest.approx((0.4, 0.4), abs=1e-15)  # what does not vary
    assert influence_interval(1.0, np.zeros(5), on_logit=True) == (1.0, 1.0)


def test_intervals_of_a_score_hold_where_length_tells(n_simulations):
    law, rng = short_runs_succeed(), np.random.default_rng(0)

    def numbers(n_runs):
        """Samples of a score, and of its margin over that of another forecast."""
        runs = law.sample(n_runs, rng)
        forecasts = law.forecasts(runs)
        first, second = (tps_samples(runs.y, forecasts[name]) for name in ("truth", "down"))
        return np.stack([first, first - second], axis=1)

    truth, hits, means, errors = numbers(100_000).mean(axis=0), np.zeros(2), [], []
    for _ in range(n_simulations):
        x = numbers(100)
        low, high = of_mean(x)
        hits += (low <= truth) & (truth <= high)
        means.append(x.mean(axis=0))
        errors.append(x.std(axis=0, ddof=1) / 10)
    for count in hits.astype(int):
        assert binomtest(count, n_simulations, 0.94).proportion_ci(0.999).high > 0.94
        assert count / n_simulations < 0.985  # not merely wide
    np.testing.assert_allclose(np.mean(errors, axis=0), np.std(means, axis=0), rtol=0.15)


def test_bad_input_is_named():
    two = np.zeros((3, 2))
    for estimate, influence, options, problem in [
        ([], np.zeros((3, 0)), {}, "estimate"),
        (0.5, two, {}, r"influence .*\(3, 2\)"),
        (0.5, two[..., None], {}, r"influence .*\(3, 2, 1\)"),
        ([0.1, 0.2], [0.1, 0.2, -0.3], {}, r"influence .*\(3, 1\)"),
        ([[0.5]], [0.1, -0.1], {}, "influence"),
        (0.5, two[:, 0], {"on_logit": 1}, "on_logit"),
        ([0.5, 0.5], two, {"on_logit": [True]}, "on_logit"),
        (0.5, two[:, 0], {"groups": [1, 2]}, "groups"),
        (0.5, two[:, 0], {"confidence_level": 95}, "confidence_level"),
    ]:
        with pytest.raises(ValueError, match=problem):
            influence_interval(estimate, influence, **options)
