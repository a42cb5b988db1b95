"""Which interval is taken, and bounds of calibration errors: that they hold."""

import numpy as np
import pytest
from scipy.stats import t, ttest_1samp

from trajscore.inference import mean_intervals
from trajscore.inference._bootstrap import bootstrap_means
from trajscore.inference.absolute_errors import Parts, absolute_interval
from trajscore.inference.influence import Spread, influence_interval
from trajscore.inference.mean_intervals import (
    by_bootstrap,
    by_influence,
    interval_of,
    intervals_of_means,
    is_rare,
    n_of_rarer_outcome,
)
from trajscore.inference.units import any_units, units_of
from trajscore.metrics.run_metrics import DIAGNOSTICS, CollapsedRuns

LEVEL = 0.95


def runs(rng, n, overconfidence=1.0):
    z = 1.5 * rng.normal(size=n)
    y = (rng.random(n) < 1 / (1 + np.exp(-z))).astype(float)
    return y, 1 / (1 + np.exp(-overconfidence * z))


def centred(x):
    return x - x.mean(axis=0)


def test_rare_runs_carry_the_variance():
    rare = (np.arange(1000) < 12).astype(float)
    largest = Spread(centred(np.c_[rare, np.arange(1000) % 2, np.ones(1000)]), units_of(None, 1000))
    assert largest.effective_n() == pytest.approx([12, 1000, np.inf], rel=0.05)


@pytest.mark.parametrize(
    ("n", "rare", "holds"), [(1000, 500, True), (1000, 12, False), (24, 12, True), (24, 3, False)]
)
def test_influences_are_taken_where_enough_runs_carry_the_variance(n, rare, holds):
    x = (np.arange(n) < rare).astype(float)[:, None]
    found = by_influence(x.mean(axis=0), centred(x), units_of(None, n), LEVEL)
    assert found.holds.tolist() == [holds]


@pytest.mark.parametrize(("sizes", "holds"), [([5] * 8, True), ([1, 1, 2, 2, 4, 6, 8, 16], False)])
def test_more_is_asked_of_unequal_clusters(sizes, holds):
    codes = np.repeat(np.arange(8), sizes)
    three = np.where(codes < 3, 1 / np.array(sizes)[codes], 0.0)  # as much in each of three
    found = by_influence(np.zeros(1), three[:, None], units_of(codes, 40), LEVEL)
    assert found.holds.tolist() == [holds]


def test_rank_metrics_are_covered_by_their_influences(n_simulations):
    rng, n_repeats = np.random.default_rng(1), max(n_simulations // 4, 200)
    truth, hits = 0.8121, 0
    for _ in range(n_repeats):
        y, c = runs(rng, 150)
        auroc = DIAGNOSTICS["AUROC"].statistic(CollapsedRuns(c, y))
        value = np.atleast_1d(auroc(np.ones(150)))
        found = by_influence(value, auroc.influence(150)[:, None], units_of(None, 150), LEVEL, True)
        hits += int(found.low[0] <= truth <= found.high[0])
    assert hits / n_repeats > 0.95 - 3 * np.sqrt(0.05 * 0.95 / n_repeats)


def test_percentiles_stand_in_where_all_replicates_lie_on_one_side():
    replicates = np.array([[0.5], [0.6], [0.7]])
    low, high = by_bootstrap(replicates, np.array([1.0]), np.zeros(1), 0.5)
    assert (low[0], high[0]) == pytest.approx((0.55, 0.65))


@pytest.mark.parametrize(("overconfidence", "truth"), [(1.0, 0.0), (4.0, 0.1773)])
def test_calibration_errors_are_bounded_wherever_the_truth_is(overconfidence, truth):
    rng, n, hits, plain = np.random.default_rng(2), 300, 0, 0
    units = units_of(None, n)
    for _ in range(150):
        y, c = runs(rng, n, overconfidence)
        error = DIAGNOSTICS["T-ECE"].statistic(CollapsedRuns(c, y))
        low, high = absolute_interval(Parts(*error.parts(n)), None, units, LEVEL)
        hits += int(low <= truth <= high)
        value = np.atleast_1d(error(np.ones(n)))
        found = by_influence(value, error.influence(n)[:, None], units, LEVEL)
        plain += int(found.low[0] <= truth <= found.high[0])
    assert hits / 150 > 0.93
    assert (plain / 150 < 0.5) == (truth == 0)  # what the bounds are for


def test_an_error_far_from_zero_is_bounded_as_a_mean_is_by_student():
    x = np.array([0.2, 0.25, 0.3, 0.35, 0.4])
    for units in (units_of(None, 5), units_of(np.arange(5), 5)):
        parts = Parts(np.array([x.mean()]), centred(x)[:, None])
        _, high = absolute_interval(parts, None, units, LEVEL)
        reach = ttest_1samp(x, 0).confidence_interval(LEVEL).high - x.mean()
        assert high - x.mean() == pytest.approx(reach, rel=0.04)


def test_bounds_of_an_error_stay_between_zero_and_one():
    x = np.array([0.7, 1.0, 1.0, 1.0, 1.0])
    for mean, end in ((0.94, 1), (0.01, 0)):
        parts = Parts(np.array([mean]), centred(x)[:, None])
        ends = absolute_interval(parts, None, units_of(None, 5), LEVEL)
        assert ends[end] == end
        assert 0 <= ends[0] < mean < ends[1] <= 1


def test_differences_of_calibration_errors_are_paired(rng):
    y, c = runs(rng, 2000, 4.0)
    units = units_of(None, 2000)
    one, other = (
        Parts(*DIAGNOSTICS["T-ECE"].statistic(CollapsedRuns(p, y)).parts(2000))
        for p in (c, np.clip(c, 0.1, 0.9))
    )
    low, high = absolute_interval(one, other, units, LEVEL)
    assert 0 < low < np.abs(one.mean).sum() - np.abs(other.mean).sum() < high
    back = absolute_interval(other, one, units, LEVEL)
    assert back == pytest.approx((-high, -low), abs=0.004)


def test_runs_of_the_rarer_outcome():
    assert n_of_rarer_outcome(3, 10) == n_of_rarer_outcome(7, 10) == 3
    assert n_of_rarer_outcome(np.array([0, 5, 9.5]), 10).tolist() == [0, 5, 0.5]
    assert n_of_rarer_outcome(0.1 + 0.2, 10) == 0.3  # but for rounding


@pytest.mark.parametrize(
    ("n_rare", "n_runs", "rare"),
    [
        (0, 10, True), (1, 10, False), (9, 100, True), (10, 100, False),  # a tenth
        (59, 600, True), (60, 600, False), (59, 5000, True), (60, 5000, False),  # 60 runs
    ],
)  # fmt: skip
def test_a_rare_outcome(n_rare, n_runs, rare):
    labels = (np.arange(n_runs) < n_rare).astype(float)
    assert is_rare(labels) is rare
    assert is_rare(1 - labels) is rare


def test_interval_of_a_statistic_is_that_by_its_influences():
    psi = np.array([0.3, -0.2, np.nan, 0.1, -0.2])
    groups = np.array([0, 0, 1, 1, 2])
    for on_logit in (False, True):
        found = interval_of(0.6, psi, None, 0.9, on_logit=on_logit)
        ends = influence_interval(0.6, psi, on_logit=on_logit, confidence_level=0.9)
        assert found == pytest.approx((0.6, *map(float, ends)))
    with pytest.warns(UserWarning, match="3 clusters"):
        ends = influence_interval(0.6, psi, groups=groups, confidence_level=0.9)
    assert interval_of(0.6, psi, groups, 0.9) == pytest.approx((0.6, *map(float, ends)))


def of_means(values, change=0.0, groups=None, level=0.9, **options):
    values = np.asarray(values, dtype=float)
    units = any_units(groups, len(values))
    changes = [np.full(len(values), change)]
    found = intervals_of_means(values[:, None], changes, units, level, **options)
    return tuple(float(part[0]) for part in found)


def test_a_mean_that_many_runs_carry_has_the_interval_of_student():
    x = np.sin(np.arange(200.0))
    low, high = ttest_1samp(x, 0).confidence_interval(0.9)
    assert of_means(x) == pytest.approx((x.mean(), low, high))


def test_losses_that_were_not_seen_reach_beyond_the_interval():
    x = np.sin(np.arange(200.0))
    mean, low, high = of_means(x, change=-0.1)
    plain = of_means(x)
    # no run of 200 has suffered its loss of .1: up to 1 - .1^(1/200) of them may
    assert mean - low == pytest.approx((1 - 0.1 ** (1 / 200)) * 200 * 0.1)
    assert low < plain[1]
    assert high == plain[2]
    mean, low, high = of_means(x, change=0.1)
    assert high - mean == pytest.approx((1 - 0.1 ** (1 / 200)) * 200 * 0.1)
    assert low == plain[1]


@pytest.mark.parametrize("groups", [None, np.repeat(np.arange(50), 2)])
def test_few_runs_that_carry_a_mean_have_an_interval_no_shorter_than_that_by_influences(groups):
    x = np.where(np.arange(100) < 4, 25.0, 0.0)
    mean, low, high = of_means(x, groups=groups)
    units = any_units(groups, 100)
    found = by_influence(np.array([1.0]), (x - 1)[:, None], units, 0.9)
    assert not found.holds[0]
    assert mean == 1
    assert low <= found.low[0]
    assert high > found.high[0]


@pytest.mark.parametrize(
    ("level", "asked", "drawn"), [(0.75, 100, 160), (0.75, 700, 700), (0.995, 100, 4000)]
)
@pytest.mark.parametrize(("n_runs", "by"), [(100, "bootstrap_means"), (9000, "many")])
def test_how_many_replicates_are_drawn(monkeypatch, level, asked, drawn, n_runs, by):
    seen = []

    def recorded(name, size):
        def draw(values, *_, n_resamples, random_state):
            seen.append((name, n_resamples, random_state))
            return np.linspace(-1, 1, size)[:, None]

        return draw

    monkeypatch.setattr(mean_intervals, "bootstrap_means", recorded("bootstrap_means", 9))
    monkeypatch.setattr(mean_intervals, "bootstrap_many_means", recorded("many", 9))
    x = np.where(np.arange(n_runs) < 4, 1.0, 0.0)
    of_means(x, level=level, n_resamples=asked, random_state=5)
    assert seen == [(by, drawn, 5)]
    of_means(x, groups=np.arange(n_runs), level=level, n_resamples=asked)
    assert seen[1:] == [("bootstrap_means", drawn, 0)]  # clusters are always drawn whole


@pytest.mark.parametrize(("n_far", "holds"), [(29, False), (31, True)])
def test_thirty_runs_carry_a_variance(n_far, holds):
    psi = (np.arange(1000) < n_far).astype(float)[:, None]
    assert by_influence(np.zeros(1), psi, units_of(None, 1000), LEVEL).holds.tolist() == [holds]


def test_the_width_is_by_t_of_the_effective_number_of_clusters():
    codes = np.repeat(np.arange(3), [2, 2, 4])
    psi = np.repeat([1.0, -1.0, 0.0], [2, 2, 4])[:, None]
    found = by_influence(np.array([0.5]), psi, any_units(codes, 8), 0.8)
    # left out, a cluster of 2 of 8 runs changes a sum of 2 by 4/3 of it; and 64 / 24 clusters
    error = np.sqrt(2 / 3) * np.sqrt(2 * (2 * 4 / 3) ** 2) / 8
    assert found.high[0] - 0.5 == pytest.approx(error * t.ppf(0.9, 64 / 24 - 1))
    assert found.skewness[0] == 0


def test_a_mean_of_many_alike_and_one_of_few_unlike_have_their_own_intervals(rng):
    values = np.stack([rng.normal(size=200), np.r_[np.ones(3), np.zeros(197)]], axis=1)
    units, options = any_units(None, 200), {"n_resamples": 99, "random_state": 0}
    mean = values.mean(axis=0)
    by_both = by_influence(mean, values - mean, units, LEVEL)
    assert by_both.holds.tolist() == [True, False]
    drawn = bootstrap_means(values, units, n_resamples=800, random_state=0)  # 40 in a tail
    level = units.expanded_level(200, LEVEL)
    ends = by_bootstrap(drawn, mean, by_both.skewness, level)
    found = intervals_of_means(values, np.zeros((2, 200)), units, LEVEL, **options)
    np.testing.assert_allclose(found[0], mean)
    low, high = by_both.low, by_both.high
    np.testing.assert_allclose(found[1], [low[0], min(low[1], ends[0][1])])
    np.testing.assert_allclose(found[2], [high[0], max(high[1], ends[1][1])])
    assert ends[0][0] != low[0]
    assert ends[1][1] > high[1]
