"""Which interval is taken, and bounds of calibration errors: that they hold."""

import numpy as np
import pytest
from scipy.stats import ttest_1samp

from trajscore.inference._influence import Spread
from trajscore.inference.absolute_errors import Parts, absolute_interval
from trajscore.inference.mean_intervals import by_bootstrap, by_influence
from trajscore.inference.units import units_of
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
