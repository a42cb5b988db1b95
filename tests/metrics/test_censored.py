import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trajscore import TrajectoryArray
from trajscore.metrics import censored_tps_score, tps_samples, tps_score

# outcomes are known here of runs that were cut off
pytestmark = pytest.mark.filterwarnings("ignore:row .* the run ended after:UserWarning")

# weights of steps, and the convention of the paper


@settings(max_examples=15)
@given(
    branches=st.lists(st.lists(st.integers(0, 1), min_size=1, max_size=10), min_size=1, max_size=4),
    seed=st.integers(0, 99),
    score=st.sampled_from(["log", "brier", ("beta", 2, 4)]),
)
def test_three_forms_agree(score, branches, seed):
    rng = np.random.default_rng(seed)
    n = len(branches)
    lengths = rng.integers(1, 6, n)
    X = TrajectoryArray(rng.random(lengths.sum()), lengths, horizon=lengths + 2)
    y = -np.ones(n)
    q_z = [np.mean(b) for b in branches]
    for how in ({"normalize": False}, {"weights": "linear_front", "horizon": "own"}):
        exact = tps_samples(q_z, X, score=score, **how)
        # the mean score over continuations, each scored as if it were the run's outcome
        run = np.repeat(np.arange(n), [len(branch) for branch in branches])
        continued = tps_samples(np.concatenate(branches), X[run], score=score, **how)
        abstract = np.bincount(run, continued) / np.bincount(run)
        np.testing.assert_allclose(exact, abstract, rtol=1e-14, atol=1e-15)
        failures = tps_samples(np.zeros(n), X, score=score, **how)
        simple = censored_tps_score(y, X, score=score, **how)
        assert simple == pytest.approx(failures.mean(), rel=1e-13)
    # a set's score is linear in the outcomes, as its divisor knows none of them
    found, swapped, failed, solved = (
        censored_tps_score(y, X, q_z=q, score=score) for q in (q_z, 1 - np.array(q_z), 0, 1)
    )
    assert swapped + found == pytest.approx(failed + solved)


def test_the_score_is_that_of_soft_labels(ragged, rng):
    X, y = ragged
    codes = np.where(rng.random(len(y)) < 0.3, -1, y)
    q_z = rng.random(len(y))
    for v in (None, rng.random(len(y))):
        for how in ({}, {"normalize": False}, {"weights": "uniform", "horizon": "own"}):
            score = censored_tps_score(codes, X, q_z=q_z, sample_weight=v, **how)
            soft = tps_score(np.where(codes < 0, q_z, y), X, sample_weight=v, **how)
            assert score == pytest.approx(soft, rel=1e-14)


def test_the_chance_of_an_observed_run_is_not_read(ragged):
    X, y = ragged
    missing = np.full(len(y), np.nan)
    assert censored_tps_score(y, X, q_z=missing) == tps_score(y, X)
    q_z = pd.Series([None, 0.25], dtype="Float64")
    assert censored_tps_score([1, -1], [[0.5], [0.5]], q_z=q_z, score="brier") == -0.25
