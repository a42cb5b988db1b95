import numpy as np
import pytest
from scipy.stats import binomtest, norm

from trajscore.inference.rate_intervals import clopper_pearson_excess, wilson_interval


@pytest.mark.parametrize("n", [1, 7, 40])
def test_the_interval_is_that_of_scipy(n):
    k = np.arange(n + 1)
    low, high = wilson_interval(k / n, n)
    expected = [binomtest(int(one), n).proportion_ci(method="wilson") for one in k]
    assert low == pytest.approx([one.low for one in expected], abs=1e-12)
    assert high == pytest.approx([one.high for one in expected], abs=1e-12)


def test_another_quantile_and_certain_rates():
    low, high = wilson_interval(0.2, 50, norm.ppf(0.9))
    expected = binomtest(10, 50).proportion_ci(0.8, method="wilson")
    assert (low, high) == pytest.approx((expected.low, expected.high), abs=1e-12)
    # of a rate of 0 or 1 one end is z^2 / (n + z^2), or as far from 1
    z = 1.959963984540054
    assert wilson_interval([0.0, 1.0], [5, 20])[0] == pytest.approx([0, 20 / (20 + z**2)])
    assert wilson_interval([0.0, 1.0], [5, 20])[1] == pytest.approx([z**2 / (5 + z**2), 1])


def test_the_excess_is_that_of_the_exact_bound():
    events, others = np.array([0, 1, 3, 9]), np.array([10, 9, 7, 1])
    excess = clopper_pearson_excess(events, others, 0.975)
    for found, k, rest in zip(excess, events, others, strict=True):
        exact = binomtest(int(k), int(k + rest)).proportion_ci(0.95, method="exact").high
        assert found == pytest.approx(exact - k / (k + rest), abs=1e-12)
    # without any event, at level 1 - alpha, it is 1 - alpha^(1/n)
    assert clopper_pearson_excess(0, 20, 0.95) == pytest.approx(1 - 0.05 ** (1 / 20))
    # where all are events there is nothing above
    assert clopper_pearson_excess([4, 1], [0, 0], 0.95).tolist() == [0, 0]
