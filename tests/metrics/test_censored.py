import itertools

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trajscore import TrajectoryArray, make_censored_tps_scorer
from trajscore.core.score_families import get_family
from trajscore.core.weights import WEIGHT_SCHEDULES, step_weights
from trajscore.metrics import censored_tps_samples, censored_tps_score, tps_samples, tps_score

# outcomes are known here of runs that were cut off
pytestmark = pytest.mark.filterwarnings("ignore:row .* the run ended after:UserWarning")

FAMILIES = ["log", "brier", ("beta", 2, 4)]
# the convention of the paper, and weights of steps
WAYS = [
    *({"weights": name, "horizon": "own"} for name in WEIGHT_SCHEDULES),
    {},
    {"weights": "uniform"},
    {"weights": "linear_front", "horizon": 60},
]


def name_of(how):
    return "-".join(str(value) for value in how.values()) or "default"


@pytest.mark.parametrize(
    ("score", "shift"), [("log", "+0.1623"), ("brier", "+0.0797"), (("beta", 2, 4), "+0.00057")]
)
@pytest.mark.parametrize("how", WAYS, ids=name_of)
def test_webshop_base_rate_shift(score, shift, how):
    # 163 complete runs (118 successes) and 145 stopped at the budget (Table 11, last rows), here
    # all of one length, so that it is the same by step
    y = np.r_[np.ones(118), np.zeros(45), -np.ones(145)]
    F = np.full((308, 30), 118 / 308)
    extended = censored_tps_score(y, F, score=score, **how)
    complete = tps_score(y[:163], F[:163], score=score, **how)
    digits = len(shift) - 3
    assert f"{extended - complete:+.{digits}f}" == shift


@given(
    branches=st.lists(st.lists(st.integers(0, 1), min_size=1, max_size=10), min_size=1, max_size=4),
    seed=st.integers(0, 99),
)
@pytest.mark.parametrize("score", FAMILIES, ids=str)
def test_three_forms_agree(score, branches, seed):
    rng = np.random.default_rng(seed)
    n = len(branches)
    lengths = rng.integers(1, 6, n)
    X = TrajectoryArray(rng.random(lengths.sum()), lengths, horizon=lengths + 2)
    y = -np.ones(n)
    q_z = [np.mean(b) for b in branches]
    for how in ({"normalize": False}, {"weights": "linear_front", "horizon": "own"}):
        exact = censored_tps_samples(y, X, q_z=q_z, score=score, **how)
        # the mean score over continuations, each scored as if it were the run's outcome
        run = np.repeat(np.arange(n), [len(branch) for branch in branches])
        continued = tps_samples(np.concatenate(branches), X[run], score=score, **how)
        abstract = np.bincount(run, continued) / np.bincount(run)
        np.testing.assert_allclose(exact, abstract, rtol=1e-14, atol=1e-15)
        failures = tps_samples(np.zeros(n), X, score=score, **how)
        np.testing.assert_array_equal(censored_tps_samples(y, X, score=score, **how), failures)
    # a set's score is linear in the outcomes, as its divisor knows none of them
    every = [
        tps_score(one, X, score=score)
        for one in itertools.product(*(sorted({0, 1} & set(b)) for b in branches))
    ]
    assert min(every) - 1e-12 <= censored_tps_score(y, X, q_z=q_z, score=score)
    assert censored_tps_score(y, X, q_z=q_z, score=score) <= max(every) + 1e-12
    swapped = censored_tps_score(y, X, q_z=1 - np.array(q_z), score=score)
    both = tps_score(np.ones(n), X, score=score) + tps_score(np.zeros(n), X, score=score)
    assert swapped + censored_tps_score(y, X, q_z=q_z, score=score) == pytest.approx(both)


def test_the_mean_of_the_samples_is_the_score(ragged, rng):
    X, y = ragged
    codes = np.where(rng.random(len(y)) < 0.3, -1, y)
    q_z = rng.random(len(y))
    for v in (None, rng.random(len(y))):
        for how in ({}, {"normalize": False}, {"weights": "uniform", "horizon": "own"}):
            samples = censored_tps_samples(codes, X, q_z=q_z, sample_weight=v, **how)
            score = censored_tps_score(codes, X, q_z=q_z, sample_weight=v, **how)
            assert np.average(samples, weights=v) == pytest.approx(score, rel=1e-13)
            soft = tps_score(np.where(codes < 0, q_z, y), X, sample_weight=v, **how)
            assert score == pytest.approx(soft, rel=1e-14)


def test_observed_runs_are_scored_as_always(ragged):
    X, y = ragged
    np.testing.assert_array_equal(
        censored_tps_samples(y, X, q_z=np.full(len(y), np.nan)), tps_samples(y, X)
    )


def decomposition(y, X, Z, score, how):
    """Prefix swap plus tail omission of each cut run's sum, in closed form (Appendix I)."""
    family = get_family(score)
    lengths = X.lengths
    w = step_weights(lengths, **how)
    step = np.arange(len(X.cells)) - np.repeat(X.offsets[:-1], lengths)
    label = np.repeat(y, lengths)
    success, failure = family.success(X.cells), family.failure(X.cells)
    own = np.where(label == 1, success, failure)
    seen = step < np.repeat(Z, lengths)
    swap = np.where(seen, w * (failure - own), 0)
    tail = np.where(seen, 0, -w * own)
    return np.add.reduceat(swap + tail, X.offsets[:-1]), tail


@pytest.mark.parametrize("rate", [0.25, 0.5, 0.75])
@pytest.mark.parametrize("score", FAMILIES, ids=str)
@pytest.mark.parametrize("how", WAYS, ids=name_of)
def test_artificial_censoring_identity_on_real_traces(hotpotqa, rate, score, how):
    X, y = hotpotqa
    rng = np.random.default_rng(int(100 * rate))
    cut = (rng.random(len(y)) < rate) & (X.lengths > 1)
    Z = np.where(cut, rng.integers(1, np.maximum(X.lengths, 2)), X.lengths)
    short = X.truncate(Z).with_horizon(X.lengths)
    codes = np.where(cut, -1, y)
    sums = {"score": score, "normalize": False, **how}
    after, before = censored_tps_samples(codes, short, **sums), tps_samples(y, X, **sums)
    direct = after - before
    parts, tail = decomposition(y, X, Z, score, how)
    scale = np.maximum(1, np.maximum(np.abs(after), np.abs(before)))
    assert (np.abs(direct[cut] - parts[cut]) / scale[cut]).max() <= 2e-15
    assert (direct[~cut] == 0).all()
    assert (tail >= 0).all()


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        ({"q_z": [0.5, np.nan]}, r"row 1: .*q_z is nan"),
        ({"q_z": [0.5, 1.2]}, r"row 1: .*q_z is 1\.2"),
        ({"q_z": [0.5]}, "one for each run"),
    ],
)
def test_bad_input(kwargs, message):
    with pytest.raises(ValueError, match=message):
        censored_tps_score([1, -1], [[0.5], [0.5]], **kwargs)


def test_no_runs(ragged):
    with pytest.raises(ValueError, match="there are no runs to score"):
        censored_tps_score([], ragged[0][[]])


@pytest.mark.parametrize(
    ("q_z", "message"),
    [
        (3, "q_z is 3; it must be a probability"),
        (np.nan, "q_z is nan"),
        ("a", "q_z must be numbers"),
    ],
)
def test_scorer_checks_q_z_when_it_is_made(q_z, message):
    with pytest.raises(ValueError, match=message):
        make_censored_tps_scorer(censored="q_z", q_z=q_z)
    make_censored_tps_scorer(censored="q_z", q_z=[0.5, np.nan])  # missing where it is not needed


@pytest.mark.parametrize("q_z", ["a", ["a", "b"], [0.5, {}]])
def test_q_z_that_is_no_number(q_z):
    with pytest.raises(ValueError, match="q_z must be numbers"):
        censored_tps_samples([1, -1], [[0.5], [0.5]], q_z=q_z)


def test_q_z_from_pandas_may_be_missing_where_it_is_not_needed():
    q_z = pd.Series([None, 0.25], dtype="Float64")
    found = censored_tps_samples([1, -1], [[0.5], [0.5]], q_z=q_z, score="brier")
    assert found.tolist() == [-0.25, -0.25]
    with pytest.raises(ValueError, match="row 1: its outcome was not observed and q_z is nan"):
        censored_tps_samples([1, -1], [[0.5], [0.5]], q_z=q_z[::-1])
