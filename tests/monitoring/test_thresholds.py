"""Thresholds of an e-process against what they guarantee, spelled out."""

import re
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expit
from scipy.stats import beta, binom
from sklearn.model_selection import GridSearchCV

from refused import must_refuse
from trajscore import DensityRatioEProcess, TrajectoryArray
from trajscore.datasets import make_trajectories
from trajscore.monitoring import Conformal, LearnThenTestStop, Pac


def fitted(log_m, threshold, alpha, **options):
    """A process whose held-out successes have these log M; half of what is left succeeds."""
    runs = expit(-np.r_[log_m, -9, 9])[:, None]
    y = np.r_[np.ones(len(log_m) + 1), 0]
    process = DensityRatioEProcess("passthrough", threshold=threshold, alpha=alpha, **options)
    return process.fit(runs, y, calibration=np.arange(len(log_m)))


def forecasts(log_m):
    return expit(-np.asarray(log_m, dtype=float))[:, None]


def rank(n, threshold, alpha):
    """Rank of the threshold among n held-out values, n + 1 with too few; and what is said then."""
    values = np.linspace(-4, 4, n)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        log_c = np.log(fitted(values, threshold, alpha).thresholds_.iloc[0])
    said = "".join(str(one.message) for one in caught if "too few" in str(one.message))
    return int((values < log_c - 1e-6).sum()) + 1, said


def conformal_rank(n, alpha):
    # a new success exceeds the k-th of n with chance (n + 1 - k) / (n + 1)
    return next(k for k in range(1, n + 2) if (n + 1 - k) / (n + 1) <= alpha + 1e-9)


def pac_rank(n, alpha, delta):
    # the rate of the k-th of n exceeds alpha with chance P[Bin(n, 1 - alpha) >= k]
    k = np.arange(1, n + 1)
    return int(min(k[binom.sf(k - 1, n, 1 - alpha) <= delta], default=n + 1))


@given(
    st.integers(1, 200), st.sampled_from([0.01, 0.05, 0.1, 0.3, 0.7]), st.sampled_from([0.05, 0.2])
)
def test_ranks_are_the_smallest_that_keep_their_guarantee(n, alpha, delta):
    kinds = [
        ("conformal", lambda n: conformal_rank(n, alpha)),
        (Pac(delta=delta), lambda n: pac_rank(n, alpha, delta)),
        ("pac_marginal", lambda n: pac_rank(n, 0.9 * alpha, 0.1 * alpha)),
    ]
    for kind, rank_of in kinds:
        k, said = rank(n, kind, alpha)
        assert k == rank_of(n), kind
        if k > n:
            needed = int(re.search(r"at least (\d+)", said)[1])
            assert rank_of(needed) <= needed, kind
            assert rank_of(needed - 1) > needed - 1, kind
        if kind == "pac_marginal" and k <= n:  # the rate, given the held-out set, is beta
            assert beta(n + 1 - k, k).sf(0.9 * alpha) <= 0.1 * alpha + 1e-12
            assert (n + 1 - k) / (n + 1) <= alpha


def test_ranks_do_not_depend_on_the_rounding_of_a_product():
    assert 100 * 0.29 < 29  # in floating point
    assert rank(99, "conformal", 0.29)[0] == 71
    assert 1 / (1 / 49) > 49
    assert rank(48, "conformal", 1 / 49) == (48, "")
    assert "at least 48 succ" in rank(47, "conformal", 1 / 49)[1]


def test_a_run_at_the_threshold_is_not_flagged():
    process = fitted(np.arange(-2.0, 7), "conformal", 0.2)
    assert process.thresholds_.iloc[0] == pytest.approx(np.exp(5))
    assert process.predict(forecasts([5 - 1e-6, 5, 5 + 1e-10, 5 + 1e-6])).tolist() == [1, 1, 1, 0]


def test_thresholds_that_hold_out_no_runs():
    runs, y = TrajectoryArray(np.full(9, 0.5), [7, 2]).with_cells(np.linspace(0.2, 0.8, 9)), [0, 1]
    for threshold, value in [("ville", 20), ("randomized_ville", 20), ("bonferroni", 140)]:
        process = DensityRatioEProcess("passthrough", threshold=threshold, alpha=0.05).fit(runs, y)
        assert process.thresholds_.iloc[0] == pytest.approx(value)
        largest = np.array([0.5, 1, value / 19, value / 2, value, 2 * value])
        p = process.p_values(TrajectoryArray(1 / (1 + largest), np.ones(6, int), ended=False))
        np.testing.assert_allclose(p, np.minimum(0.05 * value / largest, 1))


def test_p_values_are_shares_of_held_out_successes_that_are_at_least_as_bad():
    held_out = np.array([2.0, 1.0, 3.0, 2.0])
    process = fitted(held_out, "conformal", 0.4)
    largest = np.array([0, 1, 2 - 5e-10, 2 + 5e-10, 2 + 1e-6, 9])
    p = [(1 + (held_out >= m - 1e-9).sum()) / 5 for m in largest]
    np.testing.assert_allclose(process.p_values(forecasts(largest)), p)
    assert p == [1, 1, 0.8, 0.8, 0.4, 0.2]
    assert process.predict(forecasts(largest)).tolist() == [1, 1, 1, 1, 0, 0]


def test_parameters_of_thresholds():
    rows = [
        (Conformal, {"ties": "maybe"}, "ties must be"),
        *((Pac, {"delta": delta}, "delta must be") for delta in (0, "a")),
        *((Conformal, {"end_worth": worth}, "end_worth must be") for worth in (-1, np.inf)),
    ]
    must_refuse(lambda kind, options: kind(**options), rows)
    X, y = make_trajectories(300, random_state=0, return_X_y=True)
    grid = {"threshold": ["ville", "pac", Pac(), Pac(delta=0.4)]}
    search = GridSearchCV(DensityRatioEProcess(alpha=0.2), grid, cv=2, refit=False).fit(X, y)
    *pac, sure = search.cv_results_["mean_test_score"][1:]
    assert pac[0] == pac[1] < sure


@pytest.mark.parametrize("alpha", [0.22, 0.35, 0.5, 0.7, 0.95])
def test_randomised_conformal_flags_where_the_p_value_is_at_most_alpha(alpha):
    """With a uniform U it is (#{M_i > m} + U (1 + #{M_i = m})) / (n + 1)."""
    held_out, n_new = np.array([2.0, 1.0, 3.0, 2.0]), 4000
    process = fitted(held_out, Conformal("randomized"), alpha)
    for m in (0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5):
        share = (process.predict(forecasts(np.full(n_new, m))) == 0).mean()
        expected = (5 * alpha - (held_out > m).sum()) / (1 + (held_out == m).sum())
        expected = np.clip(expected, 0, 1)
        assert abs(share - expected) <= 4 * np.sqrt(expected * (1 - expected) / n_new), m


def test_randomised_pac_flags_ties_that_come_after_the_threshold():
    """Uniforms order the held-out ties, so the rate is Beta(n + 1 - k, k) as without ties."""
    k = pac_rank(30, 0.2, 0.1)
    rates = []
    for seed in range(100):
        process = fitted(np.ones(30), Pac("randomized"), 0.2, random_state=seed)
        rates.append((process.predict(forecasts(np.ones(30))) == 0).mean())  # ids of held-out ones
        assert process.predict(forecasts([0.9, 1.1])).tolist() == [1, 0]
    law = beta(31 - k, k)
    assert np.mean(rates) == pytest.approx(law.mean(), abs=4 * law.std() / 10)
    assert np.std(rates) > law.std() * 0.7


def test_uniforms_belong_to_ids_the_seed_and_the_data():
    process = fitted(np.ones(30), Conformal("randomized"), 0.3)
    ties = np.full(300, expit(-1.0))
    flags = process.predict(ties[:, None])
    order = np.random.default_rng(0).permutation(300)
    for ids in (order, order.astype(str)):  # 7 and "7" are one run
        runs = TrajectoryArray(ties, np.ones(300, int), ids=ids)
        np.testing.assert_array_equal(process.predict(runs), flags[order])
    for other in (
        fitted(np.ones(30), Conformal("randomized"), 0.3, random_state=1),
        fitted(np.ones(31), Conformal("randomized"), 0.3),
    ):
        assert (other.predict(ties[:, None]) != flags).any()


@pytest.mark.parametrize("threshold", [Conformal("randomized"), Pac("randomized")])
def test_no_uniform_flags_a_run_where_successes_are_too_few(threshold):
    with pytest.warns(UserWarning, match="no run will be flagged"):
        process = fitted(np.linspace(0, 1, 20), threshold, 0.003)
    assert np.isinf(process.thresholds_.iloc[0])
    assert process.predict(forecasts(np.full(600, 5.0))).all()
    monitor = process.monitor()
    assert not any(monitor.update(1e-3, row).flagged for row in range(600))


def world(rng, n, discrete):
    """Forecasts of succeeding runs, (n, 3), of a known law: continuous, or of 3 values."""
    if not discrete:
        return np.clip(rng.normal(0.6, 0.2, (n, 3)), 0.01, 0.99)
    traces = np.full((n, 3), 0.8)
    steps = rng.integers(0, 3, n)
    traces[np.arange(n), steps] = rng.choice([0.2, 0.5, 0.8], n, p=[0.02, 0.38, 0.6])
    return traces


def rates(threshold, discrete, n_sets=80):
    """True false-alarm rates of the thresholds of many sets of 50 held-out successes."""
    rng = np.random.default_rng(0)
    worst = np.sort(world(rng, 100_000, discrete).min(axis=1))
    y, out = np.r_[np.ones(51), 0], np.empty(n_sets)
    for k in range(n_sets):
        runs = np.vstack([world(rng, 50, discrete), np.full((2, 3), 0.3)])
        process = DensityRatioEProcess("passthrough", threshold=threshold, alpha=0.2)
        limit = 1 / (1 + process.fit(runs, y, calibration=np.arange(50)).thresholds_.iloc[0])
        out[k] = np.searchsorted(worst, limit * (1 - 1e-9)) / len(worst)
    return out


@pytest.mark.parametrize("discrete", [False, True])
def test_held_out_thresholds_keep_their_guarantee(discrete):
    assert (rates("pac", discrete) > 0.2).mean() <= 0.1 + 4 * np.sqrt(0.09 / 80)
    for threshold in ("conformal", "pac_marginal"):
        found = rates(threshold, discrete)
        assert found.mean() <= 0.2 + 4 * found.std() / np.sqrt(80) + 1e-3
    if not discrete:  # no more careful than it has to be
        assert rates("conformal", discrete).mean() > 0.15


@pytest.mark.parametrize("discrete", [False, True])
def test_randomised_ties_are_exact(discrete):
    rng, flagged, n_sets, n_new = np.random.default_rng(1), 0, 100, 20
    for _ in range(n_sets):
        traces = world(rng, 40 + n_new, discrete)
        runs = np.vstack([traces[:40], np.full((2, 3), 0.3)])
        process = DensityRatioEProcess("passthrough", Conformal("randomized"), alpha=0.15)
        process.fit(runs, np.r_[np.ones(41), 0], calibration=np.arange(40))
        # one seed, and the ids of held-out runs: as a user may
        flagged += (process.predict(traces[40:]) == 0).sum()
    spread = np.sqrt(0.15 * 0.85 * (1 / 41 + 1 / n_new) / n_sets)
    assert flagged / (n_sets * n_new) == pytest.approx(0.15, abs=4 * spread)


def test_thresholds_on_the_true_density_ratio_hold_at_all_steps():
    """Forecasts are true posteriors, so that M is a martingale for runs that succeed."""
    rng, n, steps, alpha = np.random.default_rng(2), 20_000, 30, 0.1
    log_m = np.cumsum(rng.normal(0.125, 0.5, (n, steps)) * -1, axis=1)  # of N(+-1/4, 1) each step
    runs = TrajectoryArray.from_padded(np.clip(expit(-log_m), 1e-5, 1 - 1e-5)).with_ended()
    seen = {}
    for threshold in ("ville", "randomized_ville", "bonferroni"):
        process = DensityRatioEProcess("passthrough", threshold=threshold, alpha=alpha)
        process.fit(np.tile([[0.01], [0.99]], steps), [0, 1])
        seen[threshold] = (process.predict(runs) == 0).mean()
        assert seen[threshold] <= alpha + 4 * np.sqrt(alpha * (1 - alpha) / n), threshold
    assert seen["bonferroni"] < seen["ville"] < seen["randomized_ville"]
    assert seen["randomized_ville"] > 0.07


def test_the_uniform_of_the_end_divides_the_last_value_of_runs_that_ended():
    """One step of M = m: flagged where m > U / alpha, with chance alpha m."""
    n, m, alpha = 4000, 3.0, 0.2
    process = DensityRatioEProcess("passthrough", threshold="randomized_ville", alpha=alpha)
    process.fit([[0.01], [0.99]], [0, 1])
    runs = TrajectoryArray.from_padded(np.full((n, 1), 1 / (1 + m)))
    share = (process.predict(runs.with_ended()) == 0).mean()
    assert share == pytest.approx(alpha * m, abs=4 * np.sqrt(0.24 / n))
    assert process.predict(runs.with_ended(False)).all()


@pytest.mark.parametrize("kind", ["continuous", "three values"])
def test_learn_then_test_keeps_both_bounds(kind):
    """Of forecasts whose law is known: a threshold's false alarms and lost accuracy are, too."""
    rng = np.random.default_rng(0)
    rate, alpha, lost, delta, n_sets, broken = 0.4, 0.15, 0.05, 0.2, 200, 0
    for _ in range(n_sets):
        y = (rng.random(150) < rate).astype(int)
        F = rng.random(150) ** np.where(y == 1, 0.5, 2.0)  # success: P(F < c) = c**2
        if kind == "three values":
            F = np.ceil(3 * F) / 3 - 0.1
        rule = LearnThenTestStop("passthrough", alpha=alpha, lost_accuracy=lost, delta=delta)
        c = rule.fit(F[:, None], y).thresholds_[alpha]
        below = np.floor(3 * (c + 0.1) - 1e-9) / 3 if kind == "three values" else c
        broken += below**2 > alpha or rate * below**2 > lost
    assert broken <= binom.ppf(0.999, n_sets, delta)
    if kind == "continuous":
        assert broken > n_sets * delta / 4  # no more careful than it has to be
