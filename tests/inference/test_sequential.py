import numpy as np
import pandas as pd
import pytest
from scipy.integrate import quad
from scipy.special import gammainc, gammaln

from trajscore.inference import SequentialComparison
from trajscore.inference._sequential import _boundary, _log_mixture


@pytest.mark.parametrize("s", [-8.0, -2.5, 0.0, 1.3, 7.0])
@pytest.mark.parametrize("v", [0.0, 0.4, 9.0])
def test_mixture_is_its_integral(s, v):
    rho = 0.8

    def weighted(u):  # u = 1 - λ
        density = rho * np.log(rho) + (rho - 1) * np.log(u) - rho * u
        density -= gammaln(rho) + np.log(gammainc(rho, rho))
        return np.exp((1 - u) * s + (np.log(u) + 1 - u) * v + density)

    integral = np.log(quad(weighted, 0, 1, epsabs=0, epsrel=1e-10, limit=500)[0])
    ours = float(_log_mixture(np.array(s), np.array(v), rho))
    if s + v + rho > 0:
        assert ours == pytest.approx(integral, abs=1e-6)
    else:  # rounded down, by little
        assert integral - 1.5 <= ours <= integral


def test_mixture_rises_with_the_sum_and_stays_finite():
    s = np.linspace(-2000, 2000, 4001)
    for v in (0.0, 1.0, 500.0, 1e5):
        out = _log_mixture(s, np.full_like(s, v), 0.3)
        assert np.isfinite(out).all()
        assert (np.diff(out) >= -1e-7).all()


def test_boundary_reaches_the_threshold():
    v = np.array([0.0, 1e-3, 1.0, 50.0, 1e4])
    reached = _log_mixture(_boundary(v, np.log(40), 0.3), v, 0.3)
    np.testing.assert_allclose(reached, np.log(40), atol=1e-8)


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


@pytest.mark.parametrize("kind", ["coin", "rare", "small", "drift", "adaptive"])
def test_coverage_holds_at_all_times_at_once(kind):
    alpha, missed = 0.1, 0
    differences, means = streams(kind, 250, 400)
    for d, mean in zip(differences, means, strict=True):
        history = SequentialComparison(1, alpha, v_opt=20).update(d, np.zeros_like(d)).history()
        target = np.cumsum(mean) / np.arange(1, 401)
        missed += ((history["low"] > target) | (target > history["high"])).any()
    assert missed / 250 <= alpha
    assert history["high"].iloc[-1] - history["low"].iloc[-1] < 0.45


@pytest.mark.parametrize("kind", ["coin", "rare"])
def test_e_values_rarely_grow_under_the_null(kind):
    differences, _ = streams(kind, 400, 300)
    histories = [SequentialComparison(1).update(d, 0 * d).history() for d in differences]
    for name in ("e_value", "e_value_reversed"):
        values = np.array([history[name] for history in histories])
        for level in (0.5, 0.1, 0.05):
            assert (values.max(axis=1) >= 1 / level).mean() <= level
        assert values[:, -1].mean() <= 1.2


def test_evidence_for_a_better_forecaster(rng):
    a = rng.uniform(-0.3, 0.0, 1500)
    watch = SequentialComparison(1).update(a, a - 0.05 + rng.normal(0, 0.1, 1500))
    low, high = watch.interval
    assert 0 < low < 0.05 < high
    assert watch.e_value > 1e4
    assert watch.e_value_reversed < 1
    # an interval beside zero and an e-value of 2 / alpha are the same event
    history = watch.history()
    assert ((history["low"] > 0) == (history["e_value"] >= 40)).all()


def test_interval_narrows_to_the_fixed_sample_one(rng):
    d = rng.normal(0, 0.1, 20_000).clip(-1, 1)
    low, high = SequentialComparison(1).update(d, 0 * d).interval
    fixed = 2 * 1.96 * d.std() / np.sqrt(len(d))
    assert 1 < (high - low) / fixed < 2.5


def test_one_by_one_is_all_at_once(rng):
    a, b = rng.random((2, 50))
    whole = SequentialComparison(1).update(a, b)
    single = SequentialComparison(1)
    rows = []
    for pair in zip(a, b, strict=True):
        single.update(*pair)
        rows.append([single.mean, *single.interval, single.e_value, single.e_value_reversed])
    assert single.n_runs == whole.n_runs == 50
    pd.testing.assert_frame_equal(whole.history(), single.history(), check_exact=True)
    np.testing.assert_allclose(whole.history().to_numpy(), rows, rtol=1e-12)


def test_scores_swap_and_scale(rng):
    a, b = rng.random((2, 80))
    one = SequentialComparison(1).update(a, b).history()
    swapped = SequentialComparison(1).update(b, a).history()
    np.testing.assert_allclose(one["low"], -swapped["high"])
    np.testing.assert_allclose(one["e_value"], swapped["e_value_reversed"])
    scaled = SequentialComparison(5).update(5 * a, 5 * b).history()
    np.testing.assert_allclose(5 * one["low"], scaled["low"])
    np.testing.assert_allclose(one["e_value"], scaled["e_value"])


def test_before_the_first_run():
    watch = SequentialComparison(2)
    assert watch.interval == (-2, 2)
    assert watch.e_value == pytest.approx(1)
    assert len(watch.history()) == 0
    assert watch.update([], []).n_runs == 0
    with pytest.raises(ValueError, match="no mean of no runs"):
        _ = watch.mean


def test_large_evidence_does_not_overflow():
    watch = SequentialComparison(1).update(np.full(5000, 0.9), np.zeros(5000))
    assert np.isfinite(watch.e_value)
    assert watch.e_value_reversed >= 0


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: SequentialComparison(0), "bound must be finite and positive"),
        (lambda: SequentialComparison("a"), "bound must be finite and positive, got 'a'"),
        (
            lambda: SequentialComparison(1, None),
            "alpha must lie strictly between 0 and 1, got None",
        ),
        (lambda: SequentialComparison(1, v_opt="a"), "v_opt must be finite and positive, got 'a'"),
        (lambda: SequentialComparison(np.inf), "bound must be finite and positive"),
        (lambda: SequentialComparison(1, 1.5), "alpha must lie strictly between 0 and 1"),
        (lambda: SequentialComparison(1, v_opt=-1), "v_opt must be finite and positive"),
        (lambda: SequentialComparison(1).update([0, 0], [0, 2]), "run 1: the difference is -2"),
        (lambda: SequentialComparison(1).update(np.nan, 0), "run 0: the difference is nan"),
        (lambda: SequentialComparison(1).update([0, 0], [0]), "give one each"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_a_refused_update_changes_nothing():
    watch = SequentialComparison(1).update(0.5, 0.1)
    with pytest.raises(ValueError, match="run 2"):
        watch.update([0, 3], [0, 0])
    assert watch.n_runs == 1
