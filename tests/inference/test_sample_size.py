import numpy as np
import pytest
from scipy import stats

from trajscore.inference import runs_needed
from trajscore.inference._sample_size import _design_effect, up_to_one_digit


@pytest.mark.parametrize(("difference", "power"), [(1.0, 0.8), (0.4, 0.9), (0.15, 0.8)])
def test_power_of_the_paired_test_is_as_asked(rng, difference, power):
    n = runs_needed(difference, sd=1.0, power=power)
    samples = rng.normal(difference, 1.0, size=(4000, n))
    seen = stats.ttest_1samp(samples, 0, axis=1).pvalue < 0.05
    assert seen.mean() == pytest.approx(power, abs=0.025)


def test_power_with_clusters_is_as_asked(rng):
    # trials of a task share half of their variance
    def draw(size, n_tasks, trials):
        shared = rng.normal(size=(size, n_tasks, 1))
        return shared + rng.normal(size=(size, n_tasks, trials))

    pilot = draw(1, 3000, 4)[0]
    groups = np.repeat(np.arange(3000), 4)
    assert _design_effect(pilot.ravel(), groups) == pytest.approx(1 + 3 * 0.5, rel=0.05)
    n = runs_needed(0.3, pilot.ravel(), groups=groups)
    assert n == pytest.approx(runs_needed(0.3, sd=np.sqrt(2), design_effect=2.5), rel=0.08)
    means = 0.3 + draw(3000, n // 4, 4).mean(axis=2)
    seen = stats.ttest_1samp(means, 0, axis=1).pvalue < 0.05
    assert seen.mean() == pytest.approx(0.8, abs=0.04)


def test_two_columns_are_their_difference(rng):
    pair = rng.normal(size=(50, 2))
    assert runs_needed(0.1, pair) == runs_needed(0.1, pair[:, 0] - pair[:, 1])
    assert runs_needed(-0.1, pair) == runs_needed(0.1, pair)


def test_design_effect_of_runs_that_repeat_others(rng):
    # 10 runs in 5 clusters of two equal ones: the variance of 5, estimated with n - 1, over that
    # of 10, estimated with n - 1
    values = np.repeat(rng.normal(size=5), 2)
    assert _design_effect(values, np.repeat(np.arange(5), 2)) == pytest.approx(9 / 4)


def test_a_design_effect_below_one_is_not_used():
    values = np.tile([1.0, -1.1], 20)
    groups = np.repeat(np.arange(20), 2)
    assert _design_effect(values, groups) < 1
    assert runs_needed(0.5, values, groups=groups) == runs_needed(0.5, values)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: runs_needed(0, sd=1), "difference must be finite and not zero"),
        (lambda: runs_needed(1, sd=0), "sd must be finite and positive"),
        (lambda: runs_needed(1), "either the samples of a pilot or sd"),
        (lambda: runs_needed(1, [1, 2], sd=1), "either the samples of a pilot or sd"),
        (lambda: runs_needed(1, sd=1, power=1), "power must lie"),
        (lambda: runs_needed(1, sd=1, alpha=0), "alpha must lie"),
        (lambda: runs_needed(1, sd=1, design_effect=0), "design_effect must be"),
        (lambda: runs_needed(1, sd=1, groups=[1, 2]), "groups go with samples"),
        (lambda: runs_needed(1, [1.0]), "2 runs or more"),
        (lambda: runs_needed(1, [1.0, np.nan]), "row 1: the score is nan"),
        (lambda: runs_needed(1, [1.1, 1.1, 1.1]), "does not vary"),
        (lambda: runs_needed(1, [1, 2, 3], groups=[1, 1, 1]), "one cluster"),
        (lambda: runs_needed(1, [1, 2, 3], groups=[1, 2, 3]), "every cluster has one run"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize(
    ("n", "rounded"),
    [(0.2, 1), (1, 1), (9, 9), (9.1, 10), (10, 10), (11, 20), (99, 100), (101, 200), (2e5, 200000)],
)
def test_up_to_one_digit(n, rounded):
    assert up_to_one_digit(n) == rounded


def test_the_formula_by_hand():
    z, power = stats.norm.ppf(0.995), stats.norm.ppf(0.7)
    expected = 1.7 * ((z + power) ** 2 * (0.3 / 0.05) ** 2 + z**2 / 2)
    options = {"sd": 0.3, "design_effect": 1.7, "power": 0.7, "alpha": 0.01}
    assert runs_needed(0.05, **options) == int(np.ceil(expected))
    # the deviation of a pilot is over n - 1
    pilot = np.array([0.1, -0.2, 0.4, 0.0, 0.3])
    assert runs_needed(0.05, pilot) == runs_needed(0.05, sd=pilot.std(ddof=1))


@pytest.mark.parametrize("value", [np.inf, np.nan, -1, "1"])
def test_what_is_no_positive_number(value):
    with pytest.raises(ValueError, match="sd must be finite and positive"):
        runs_needed(1, sd=value)
    with pytest.raises(ValueError, match="design_effect must be finite and positive"):
        runs_needed(1, sd=1, design_effect=value)


def test_no_number_is_large_enough():
    with pytest.raises(ValueError, match="no number of runs is large enough"):
        runs_needed(1e-200, sd=1e200)
    with pytest.raises(ValueError, match="difference must be finite and not zero"):
        runs_needed(np.inf, sd=1)
