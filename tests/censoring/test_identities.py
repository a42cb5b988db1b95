"""What holds of scores of cut runs whatever their outcomes, added up step by step."""

import numpy as np
import pytest

from trajscore import TrajectoryArray
from trajscore.metrics import BetaScore, BrierScore, LogScore, censored_tps_score, tps_score

FAMILIES = {"log": LogScore(), "brier": BrierScore(), ("beta", 2, 4): BetaScore(2, 4)}
HOW = [
    ({}, lambda T: 1 / np.sqrt(np.arange(1, T + 1))),
    ({"weights": "linear_front", "horizon": 12}, lambda T: np.arange(12, 0, -1)[:T] / 78),
]


@pytest.fixture
def runs(rng):
    """Runs of 1 to 9 steps, of which a third was cut off; q_Z; numbers of times each counts."""
    n = 90
    X = TrajectoryArray.from_list([rng.uniform(0.02, 0.98, T) for T in rng.integers(1, 10, n)])
    y = rng.integers(-1, 2, n)
    return X, y, np.where(y == -1, rng.random(n), np.nan), rng.integers(0, 3, n)


@pytest.mark.parametrize("score", FAMILIES, ids=str)
@pytest.mark.parametrize(("how", "of_steps"), HOW)
def test_exact_minus_simple(runs, score, how, of_steps):
    X, y, q, v = runs
    family, gap, divisor = FAMILIES[score], 0.0, 0.0
    for run, outcome, chance, count in zip(X, y, q, v, strict=True):
        w = of_steps(len(run))
        divisor += count * w.sum()
        if outcome == -1:
            gap += count * chance * (w @ (family.success(run) - family.failure(run)))
    exact, simple = (
        censored_tps_score(y, X, q_z=one, score=score, sample_weight=v, **how) for one in (q, 0)
    )
    np.testing.assert_allclose(exact - simple, gap / divisor, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("score", FAMILIES, ids=str)
@pytest.mark.parametrize(("how", "of_steps"), HOW)
def test_all_is_complete_and_the_share_of_weight_that_was_cut_times_the_gap(
    runs, score, how, of_steps
):
    X, y, q, v = runs
    cut = y == -1
    D = v * np.array([of_steps(T).sum() for T in X.lengths])
    share = D[cut].sum() / D.sum()
    options = {"score": score, **how}
    complete = tps_score(y[~cut], X[~cut], sample_weight=v[~cut], **options)
    of_cut = tps_score(q[cut], X[cut], sample_weight=v[cut], **options)
    of_all = censored_tps_score(y, X, q_z=q, sample_weight=v, **options)
    np.testing.assert_allclose(of_all, complete + share * (of_cut - complete), rtol=1e-12)
