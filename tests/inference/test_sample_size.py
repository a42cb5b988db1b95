import numpy as np
import pytest
from scipy import stats

from trajscore.inference import runs_needed


def test_the_formula_by_hand():
    z, power = stats.norm.ppf(0.995), stats.norm.ppf(0.7)
    expected = (z + power) ** 2 * (0.3 / 0.05) ** 2 + z**2 / 2
    options = {"sd": 0.3, "power": 0.7, "alpha": 0.01}
    assert runs_needed(0.05, **options) == int(np.ceil(expected))
    # the deviation of a pilot is over n - 1
    pilot = np.array([0.1, -0.2, 0.4, 0.0, 0.3])
    assert runs_needed(0.05, pilot) == runs_needed(0.05, sd=pilot.std(ddof=1))


@pytest.mark.parametrize(("difference", "power"), [(1.0, 0.8), (0.4, 0.9), (0.15, 0.8)])
def test_power_of_the_paired_test_is_as_asked(rng, difference, power):
    n = runs_needed(difference, sd=1.0, power=power)
    samples = rng.normal(difference, 1.0, size=(4000, n))
    seen = stats.ttest_1samp(samples, 0, axis=1).pvalue < 0.05
    assert seen.mean() == pytest.approx(power, abs=0.025)


def with_effect(values, effect):
    """How many runs it takes at a design effect, of values with the pilot's deviation."""
    z, sd = stats.norm.ppf(0.975), values.std(ddof=1)
    return np.ceil(effect * ((z + stats.norm.ppf(0.8)) ** 2 * (sd / 0.3) ** 2 + z**2 / 2))


def test_power_with_clusters_is_as_asked(rng):
    # trials of a task share half of their variance
    def draw(size, n_tasks, trials):
        shared = rng.normal(size=(size, n_tasks, 1))
        return shared + rng.normal(size=(size, n_tasks, trials))

    pilot = draw(1, 3000, 4)[0]
    n = runs_needed(0.3, pilot.ravel(), groups=np.repeat(np.arange(3000), 4))
    assert n == pytest.approx(runs_needed(0.3, sd=np.sqrt(2)) * (1 + 3 / 2), rel=0.08)
    means = 0.3 + draw(3000, n // 4, 4).mean(axis=2)
    seen = stats.ttest_1samp(means, 0, axis=1).pvalue < 0.05
    assert seen.mean() == pytest.approx(0.8, abs=0.04)


def test_design_effects_by_hand(rng):
    # 10 runs in 5 clusters of two equal ones: the variance of 5, estimated with n - 1, over that
    # of 10, estimated with n - 1
    values, groups = np.repeat(rng.normal(size=5), 2), np.repeat(np.arange(5), 2)
    assert runs_needed(0.3, values, groups=groups) == with_effect(values, 9 / 4)
    # below one it is not used
    values, groups = np.tile([1.0, -1.1], 20), np.repeat(np.arange(20), 2)
    assert runs_needed(0.3, values, groups=groups) == with_effect(values, 1)


def test_bad_input_is_named():
    for arguments, options, problem in [
        ((0,), {"sd": 1}, "difference"),
        ((np.inf,), {"sd": 1}, "difference"),
        (("1",), {"sd": 1}, "difference"),
        ((1,), {}, "either the samples .* sd"),
        ((1, [1, 2]), {"sd": 1}, "either the samples .* sd"),
        ((1,), {"sd": 1, "power": 1}, "power"),
        ((1,), {"sd": 1, "alpha": 0}, "alpha"),
        ((1,), {"sd": 1, "groups": [1, 2]}, "groups"),
        ((1, [1.0]), {}, "samples .*2 runs"),
        ((1, np.eye(3)), {}, "samples"),
        ((1, [1.0, np.nan]), {}, "row 1.* missing"),
        ((1, [1.1, 1.1, 1.1]), {}, "does not vary"),
        ((1e-200,), {"sd": 1e200}, "larger difference"),
        ((1, [1, 2, 3]), {"groups": [1, 1, 1]}, "one cluster"),
        ((1, [1, 2, 3]), {"groups": [1, 2, 3]}, "every cluster has one run"),
        *(((1,), {"sd": value}, "sd") for value in (0, np.inf, np.nan, -1, "1")),
    ]:
        with pytest.raises(ValueError, match=problem):
            runs_needed(*arguments, **options)
