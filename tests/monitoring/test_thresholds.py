"""Thresholds against what they guarantee, spelled out."""

import numpy as np
import pytest

from trajscore.monitoring._thresholds import Conformal, Pac, pac_rank, run_uniforms


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
