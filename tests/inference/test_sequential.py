import numpy as np
import pandas as pd
import pytest
from scipy.integrate import quad
from scipy.optimize import brentq

from trajscore.inference import SequentialComparison

# shares of the capital that bets may lose, each 1.26 times the last, and what each starts with
SHARES = np.geomspace(0.002, 0.99, 28)
CAPITAL = SHARES * (1 - SHARES) / (SHARES * (1 - SHARES)).sum()


def capital(differences, mean, lowest, weights=CAPITAL):
    """The capital of a bettor on a mean above `mean`, written out."""
    factors = 1 + SHARES * (np.asarray(differences)[:, None] - mean) / (mean - lowest)
    return weights @ factors.prod(axis=0)


def test_bets_are_as_written_on_the_page(rng):
    first, second = rng.random((2, 60))
    d = 0.8 * ((first < 0.7).astype(float) - (second < 0.5)) - 0.1
    watch = SequentialComparison((-0.9, 0.7)).update(d, 0 * d)
    assert watch.e_value == pytest.approx(capital(d, 0, -0.9))
    assert watch.e_value_reversed == pytest.approx(capital(-d, 0, -0.7))
    # the grid of shares stands for the density 2 (1 - share)
    exact = quad(lambda k: 2 * (1 - k) * np.prod(1 + k * d / 0.9), 0, 1)[0]
    assert watch.e_value == pytest.approx(exact, rel=0.1)


@pytest.mark.parametrize("end", [-0.6, -0.02, -1e-5, 1e-5, 0.02, 0.6])
def test_ends_are_rounded_outwards_by_as_much_as_the_page_says(rng, end):
    lowest, highest = bounds = -0.8, 1.6
    noise = rng.uniform(-0.05, 0.05, 60)

    def missing(shift):
        so_far = [capital(shift + noise[:n], end, lowest) for n in range(1, 61)]
        return max(so_far) - 40

    d = brentq(missing, lowest + 0.05, highest - 0.05, xtol=1e-15) + noise  # `end` is just exceeded
    low = SequentialComparison(bounds).update(d, 0 * d).interval[0]
    bound = highest if end > 0 else -lowest
    assert end - max(0.024 * abs(end), 4.3e-5 * bound) <= low <= end + 1e-9


def streams(kind, n_streams, n_runs):
    """Differences in [-1, 1] and the mean that each has given the past."""
    rng = np.random.default_rng(0)
    shape = (n_streams, n_runs)
    if kind == "coin":
        return rng.choice([-1.0, 1.0], size=shape), np.zeros(shape)
    if kind == "rare":  # mostly a small gain, rarely a large loss: hard for a variance estimate
        return np.where(rng.random(shape) < 0.04, -0.96, 0.04), np.zeros(shape)
    if kind == "small":
        return rng.normal(0.1, 0.05, size=shape).clip(-1, 1), np.full(shape, 0.1)
    if kind == "drift":
        mean = np.broadcast_to(0.5 * np.sin(np.arange(n_runs) / 40), shape)
        return mean + rng.uniform(-0.5, 0.5, size=shape), mean
    # the mean answers to the past: it goes against the sum so far
    out, mean, total = np.empty(shape), np.empty(shape), np.zeros(n_streams)
    for t in range(n_runs):
        mean[:, t] = np.where(total > 0, -0.2, 0.2)
        out[:, t] = np.where(rng.random(n_streams) < (1 + mean[:, t]) / 2, 1.0, -1.0)
        total += out[:, t]
    return out, mean


def largest(d, lowest=-1.0):
    """The largest e-value of each stream, by the written formula."""
    capital = np.tile(CAPITAL, (len(d), 1))
    most = np.ones(len(d))
    for column in d.T:
        capital *= 1 + column[:, None] * SHARES / -lowest
        most = np.maximum(most, capital.sum(axis=1))
    return most


@pytest.mark.parametrize("kind", ["coin", "rare", "small"])
def test_interval_holds_a_mean_that_does_not_change_at_all_times(kind):
    differences, means = streams(kind, 1500, 300)
    d, mean = differences - means, means[0, 0]
    missed = (largest(d, -1 - mean) >= 20) | (largest(-d, mean - 1) >= 20)
    assert missed.mean() <= 0.1
    # an end beyond the mean is such an e-value
    for row in np.concatenate([np.flatnonzero(missed)[:3], [0]]):
        watch = SequentialComparison(1, 0.1).update(differences[row], 0 * d[row])
        history, (low, high) = watch.history(), watch.interval
        assert (low - 0.03 > mean or high + 0.03 < mean) <= missed[row]
        assert missed[row] <= (low >= mean - 0.03 or high <= mean + 0.03)
        assert (history["low"].diff()[1:] >= 0).all()  # it only narrows
        assert (history["high"].diff()[1:] <= 0).all()
        assert high - low < 0.45


@pytest.mark.parametrize("kind", ["drift", "adaptive"])
def test_ends_bound_the_averages_so_far_where_the_mean_changes(kind):
    missed = 0
    differences, means = streams(kind, 20, 150)
    for d, mean in zip(differences, means, strict=True):
        history = SequentialComparison(1, 0.1).update(d, np.zeros_like(d)).history()
        so_far = pd.Series(np.cumsum(mean) / np.arange(1, 151), index=history.index)
        missed += (history["low"] > so_far.cummax()).any()
        missed += (history["high"] < so_far.cummin()).any()
    assert missed / 20 <= 0.1


def test_evidence_for_a_better_forecaster(rng):
    a = rng.uniform(-0.3, 0.0, 1500)
    watch = SequentialComparison(1).update(a, a - 0.05 + rng.normal(0, 0.1, 1500))
    low, high = watch.interval
    assert 0 < low < 0.05 < high
    assert watch.e_value > 1e4
    assert watch.e_value_reversed < 1
    # an interval beside zero, a decision, and an e-value that has ever been 2 / alpha are the same
    history = watch.history()
    assert ((history["low"] >= 0) == (history["e_value"].cummax() >= 40)).all()
    assert watch.decision == "a"
    assert watch.decided_after == (history["low"] >= 0).idxmax()


def test_a_decision_stays_whatever_comes_later():
    watch = SequentialComparison(1).update(np.ones(12), np.zeros(12))
    assert (watch.decision, watch.decided_after) == ("a", 10)
    watch.update(np.zeros(300), np.ones(300))
    assert (watch.decision, watch.decided_after) == ("a", 10)
    assert watch.e_value < 0.01 < 1e6 < watch.e_value_reversed
    low, high = watch.interval
    assert high < 0 < low  # which shows that the mean has changed
    assert SequentialComparison(1).update(np.zeros(12), np.ones(12)).decision == "b"
    assert SequentialComparison(1).decision is None


def test_one_by_one_is_all_at_once(rng):
    a, b = rng.random((2, 50))
    whole, parts = SequentialComparison(1).update(a, b), SequentialComparison(1)
    single = SequentialComparison(1)
    rows = []
    for pair in zip(a, b, strict=True):
        single.update(*pair)
        rows.append([single.mean, *single.interval, single.e_value, single.e_value_reversed])
    for cut in np.split(np.arange(50), [7, 7, 31]):
        parts.update(a[cut], b[cut])
    assert single.n_runs == whole.n_runs == 50
    for other in (single, parts):
        pd.testing.assert_frame_equal(whole.history(), other.history(), check_exact=True)
        assert other.decided_after == whole.decided_after
    np.testing.assert_array_equal(whole.history().to_numpy(), rows)


def test_before_the_first_run_and_at_the_bounds():
    watch = SequentialComparison(2)
    assert watch.interval == (-2, 2)
    assert watch.e_value == pytest.approx(1)
    assert watch.update([], []).n_runs == len(watch.history()) == 0
    with pytest.raises(ValueError, match="update first"):
        _ = watch.mean
    for sign in (-2.0, 2.0):  # a difference may be off the bound by rounding
        watch.update(sign * (1 + 1e-12), 0.0)
        with pytest.raises(ValueError, match=f"run {watch.n_runs}"):
            watch.update(sign * (1 + 2e-12), 0.0)
    assert watch.n_runs == 2  # what is refused changes nothing
    large = SequentialComparison(1).update(np.full(1200, 0.9), np.zeros(1200))
    assert 1e300 < large.e_value < np.inf
    assert large.e_value_reversed >= 0
