import numpy as np
import pytest
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

from trajscore import TrajectoryArray
from trajscore.censoring import (
    administrative_stop_test,
    doubly_robust_tps_samples,
    doubly_robust_tps_score,
    ipcw_tps_samples,
    ipcw_tps_score,
    tps_bounds,
)
from trajscore.metrics import censored_tps_score, tps_score

REPEATS = 8


def errors_of(monitored, estimators, smooth=True):
    """Mean error of each estimator over repeats, and the same in standard errors."""
    errors = []
    for seed in range(REPEATS):
        runs, X, y, stopped = monitored(3000, seed, smooth)
        truth = tps_score(runs.final_outcome, runs.data, score="brier")
        errors.append([estimate(X, y, stopped) - truth for estimate in estimators])
    table = np.array(errors)
    mean = table.mean(axis=0)
    return mean, mean / (table.std(axis=0, ddof=1) / np.sqrt(REPEATS))


def complete_only(X, y, stopped):
    return tps_score(y[~stopped], X[~stopped], score="brier")


def simple(X, y, stopped):
    return censored_tps_score(y, X, score="brier")


def ipcw(X, y, stopped, **options):
    return ipcw_tps_score(y, X, score="brier", cv=2, **options)


def robust(X, y, stopped, **options):
    return doubly_robust_tps_score(y, X, score="brier", cv=2, **options)


def test_repaired_scores_are_right_where_the_others_are_not(monitored):
    _, z = errors_of(monitored, [complete_only, simple, ipcw, robust])
    assert (np.abs(z[:2]) > 4).all()
    assert (np.abs(z[2:]) < 3).all()


def test_one_right_model_is_enough(monitored):
    flat = DummyClassifier(strategy="prior")  # stops at the same rate, whatever the history
    none = DummyRegressor()  # no model of the score
    rich = make_pipeline(StandardScaler(), PolynomialFeatures(2), Ridge())
    error, z = errors_of(
        monitored,
        [
            lambda *run: ipcw(*run, hazard=flat),
            lambda *run: robust(*run, hazard=flat, regressor=rich),
            lambda *run: robust(*run, regressor=none),
        ],
    )
    assert abs(z[0]) > 4
    # the quadratic model of the score is nearly right, that of stops exactly
    assert abs(error[1]) < 0.5 * abs(error[0])
    assert abs(z[1]) < 3
    assert abs(z[2]) < 3


def test_contributions_average_to_the_score(monitored):
    _, X, y, _ = monitored(600, 0)
    for samples, score in [
        (ipcw_tps_samples, ipcw_tps_score),
        (doubly_robust_tps_samples, doubly_robust_tps_score),
    ]:
        found = samples(y, X, cv=2)
        np.testing.assert_allclose(found.mean(), score(y, X, cv=2))
        weight = np.arange(600) % 3
        np.testing.assert_allclose(
            np.average(found, weights=weight), score(y, X, cv=2, sample_weight=weight)
        )


def test_no_stop_no_repair_and_row_order_does_not_matter(monitored, rng):
    runs, X, y, _ = monitored(600, 1)
    order = rng.permutation(600)
    for score in (ipcw_tps_score, doubly_robust_tps_score):
        assert score(runs.final_outcome, runs.data) == tps_score(runs.final_outcome, runs.data)
        plain = score(y, X, cv=2)
        np.testing.assert_allclose(score(y[order], X[order], cv=2), plain, rtol=1e-6)
        grouped = score(y, X, cv=2, groups=np.arange(600) // 2)
        np.testing.assert_allclose(grouped, plain, atol=0.03)


def test_budget_stops_keep_their_q(monitored, rng):
    _, X, y, stopped = monitored(600, 2)
    budget = ~stopped & (rng.random(600) < 0.2)
    codes = np.where(budget, -1, y)
    q = rng.random(600)
    mixed = ipcw_tps_score(codes, X, stopped=stopped, q_z=q)
    low, high, *_ = tps_bounds(np.where(budget, -1, np.maximum(y, 0)), X)
    assert low - 0.5 < mixed < high + 0.5
    same = ipcw_tps_score(codes, X, stopped=stopped, q_z=np.where(budget, y, np.nan))
    np.testing.assert_allclose(same, ipcw_tps_score(y, X), rtol=1e-12)


def test_small_chances_are_reported():
    runs = 400
    X = TrajectoryArray(np.tile([0.1, 0.9], runs // 2).repeat(2), np.full(runs, 2))
    X = X.truncate(np.where((np.arange(runs) % 2 == 0) & (np.arange(runs) > 3), 1, 2))
    y = np.where(X.lengths == 1, -1, np.arange(runs) // 2 % 2)
    with pytest.warns(UserWarning, match="of not being stopped, raised to 0.2"):
        ipcw_tps_score(y, X, min_probability=0.2)


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"stopped": [True, True, False]}, "row 1: its outcome was observed"),
        ({"stopped": ["parse_error", "", ""]}, "3 booleans"),
        ({"history": [[0.5], [0.5], [0.5]]}, "history and traces have 1 and 2 steps"),
        ({"cv": 1}, "cv must be a whole number"),
        ({"groups": [1, 1, 1]}, "1 groups for 5 folds"),
    ],
)
def test_bad_input_gets_one_sentence(options, match):
    X = [[0.5, 0.4], [0.6, 0.6], [0.7, 0.2]]
    for score in (ipcw_tps_score, doubly_robust_tps_score):
        with pytest.raises(ValueError, match=match):
            score([-1, 1, 0], X, **options)
        with pytest.raises(ValueError, match="all 3 runs were stopped"):
            score([-1, -1, -1], X)


# ------------------------------------------------------------- the test of the assumption


def blind(n, seed, by_signal):
    """Runs that are stopped at random steps, or where the signal is low."""
    rng = np.random.default_rng(seed)
    X = TrajectoryArray(rng.random(6 * n), np.full(n, 6))
    chance = np.where(X.padded()[:, :5] < 0.3, 0.3, 0.05) if by_signal else 0.12
    hit = rng.random((n, 5)) < chance
    stopped = hit.any(axis=1)
    y = np.where(stopped, -1, rng.integers(0, 2, n))
    return X.truncate(np.where(stopped, hit.argmax(axis=1) + 1, 6)), y


def test_size_and_power():
    p = np.array([administrative_stop_test(*blind(80, seed, False)).pvalue for seed in range(200)])
    assert 0.02 < (p < 0.05).mean() < 0.09
    assert 0.4 < p.mean() < 0.6
    seen = administrative_stop_test(*blind(200, 0, True))
    assert seen.pvalue < 1e-4
    assert seen.table.loc["value, latest", "z"] < -4
    assert "stops are not administrative" in str(seen)
    assert "cannot be seen" in str(administrative_stop_test(*blind(200, 0, False)))


def test_monitor_is_caught(monitored):
    _, X, y, stopped = monitored(800, 0)
    found = administrative_stop_test(X, y, stopped=stopped)
    assert found.pvalue < 1e-6
    assert found.n_stops == stopped.sum()


def test_one_budget_gives_no_number(coin_budget):
    X = TrajectoryArray(np.random.default_rng(0).random(60), np.tile([2, 4], 10))
    found = administrative_stop_test(X, np.where(X.lengths == 4, -1, 1))
    assert np.isnan(found.pvalue)
    assert np.isnan(found.statistic)
    assert found.n_informative_stops == 0
    assert "nothing to test" in str(found)
    # a coin decides who has a budget: there is something to test, and nothing to find
    _, X, y, _, _ = coin_budget(1000, 0)
    assert administrative_stop_test(X, y).pvalue > 0.01
    strata = np.where(y == -1, "budget", "none")
    assert np.isnan(administrative_stop_test(X, y, strata=strata).pvalue)


def test_hidden_dependence_is_seen_only_in_resumed_runs(rng):
    X, y = blind(600, 3, False)
    stopped = y == -1
    q = np.full(600, 0.5)
    fair = administrative_stop_test(
        X, y, continuation=np.where(stopped, rng.random(600) < 0.5, np.nan), q_z=q
    )
    rigged = administrative_stop_test(
        X, y, continuation=np.where(stopped, rng.random(600) < 0.2, np.nan), q_z=q
    )
    lucky = administrative_stop_test(
        X, y, continuation=np.where(stopped, rng.random(600) < 0.8, -1), q_z=q
    )
    assert fair.pvalue == rigged.pvalue
    assert f"as q_z expects (p = {fair.outcome.loc['all', 'pvalue']:.2g})" in str(fair)
    assert "no sign against" in str(fair)
    # the test of outcomes decides, and history, which knows nothing, is not asked for a remedy
    for found, side in ((rigged, "less"), (lucky, "more")):
        assert str(found).startswith("stops are not administrative, or q_z is wrong")
        assert f"(p = {found.outcome.loc['all', 'pvalue']:.2g}, {side} success" in str(found)
        assert "ipcw" not in str(found)
    one_budget = TrajectoryArray(rng.random(120), np.tile([2, 4], 20))
    resumed = administrative_stop_test(
        one_budget,
        np.where(one_budget.lengths == 4, -1, 1),
        continuation=np.tile([0, 1], 20)[rng.permutation(40)],
        q_z=np.full(40, 0.5),
    )
    assert "nothing to test" in str(resumed)
    assert "but outcomes of resumed runs are as q_z expects" in str(resumed)
    seen = administrative_stop_test(
        *blind(400, 0, True), continuation=rng.random(400) < 0.5, q_z=np.full(400, 0.5)
    )
    assert "history tells who was stopped" in str(seen)
    assert "though outcomes of resumed runs are as q_z expects" in str(seen)
    assert fair.outcome.loc["mean", "pvalue"] > 0.01
    assert rigged.outcome.loc["mean", "pvalue"] < 1e-6


@pytest.mark.parametrize(
    ("y", "options", "match"),
    [
        ([1, 0], {}, "no run was stopped"),
        ([-1, 0], {"stopped": [True, True]}, "row 1: its outcome was observed"),
        ([-1, 0], {"stopped": [1, 0]}, "2 booleans"),
        ([-1, 0], {"strata": [1]}, "one label for each of the 2 runs"),
        ([-1, 0], {"q_z": [0.5, 0.5]}, "given together"),
        ([-1, 0], {"q_z": [0.5, 0.5], "continuation": [1]}, "one number for each of the 2 runs"),
        ([-1, 0], {"alpha": 5}, r"alpha must lie in \(0, 1\), got 5"),
        ([-1, 0], {"alpha": "a"}, r"alpha must lie in \(0, 1\), got 'a'"),
    ],
)
def test_bad_stop_tests(y, options, match):
    with pytest.raises(ValueError, match=match):
        administrative_stop_test([[0.5, 0.6], [0.4, 0.3]], y, **options)


@pytest.mark.parametrize("score", [ipcw_tps_score, doubly_robust_tps_score])
@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"min_probability": 0}, r"min_probability must lie in \(0, 1\], got 0"),
        ({"min_probability": "a"}, r"min_probability must lie in \(0, 1\], got 'a'"),
        ({"q_z": [0.1, 0.2]}, r"q_z must be one number or 60"),
        ({"q_z": 2, "stopped": np.arange(60) < 5}, r"row 5: .* q_z is 2"),
    ],
)
def test_bad_parameters_of_repaired_scores(score, options, match):
    X = TrajectoryArray(np.random.default_rng(0).random(180), [3] * 60)
    y = np.where(np.arange(60) < 10, -1, np.arange(60) % 2)
    with pytest.raises(ValueError, match=match):
        score(y, X, **options)


def test_history_and_traces_are_of_the_same_runs():
    X = TrajectoryArray.from_list([[0.5], [0.6], [0.7]], ids=["a", "b", "c"])
    with pytest.raises(ValueError, match="row 0 is run 'c' in history, but run 'a' in traces"):
        ipcw_tps_score([1, 0, -1], X, history=X[::-1])
