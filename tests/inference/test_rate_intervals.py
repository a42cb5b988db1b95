import numpy as np
import pytest
from scipy.stats import binomtest

from trajscore.inference.rate_intervals import wilson_interval


@pytest.mark.parametrize("n", [1, 7, 40])
def test_the_interval_is_that_of_scipy(n):
    k = np.arange(n + 1)
    low, high = wilson_interval(k / n, n)
    expected = [binomtest(int(one), n).proportion_ci(method="wilson") for one in k]
    assert low == pytest.approx([one.low for one in expected], abs=1e-12)
    assert high == pytest.approx([one.high for one in expected], abs=1e-12)
