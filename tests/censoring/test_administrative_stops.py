import numpy as np
import pytest
from scipy.stats import chi2, norm

from trajscore import TrajectoryArray
from trajscore.censoring import administrative_stop_test


def blind(n, seed, by_signal):
    """Runs that are stopped at random steps, or where the signal is low."""
    rng = np.random.default_rng(seed)
    X = TrajectoryArray(rng.random(6 * n), np.full(n, 6))
    chance = np.where(X.padded()[:, :5] < 0.3, 0.3, 0.05) if by_signal else 0.12
    hit = rng.random((n, 5)) < chance
    stopped = hit.any(axis=1)
    y = np.where(stopped, -1, rng.integers(0, 2, n))
    return X.truncate(np.where(stopped, hit.argmax(axis=1) + 1, 6)), y


def test_statistic_is_that_of_the_book(rng):
    # two features, few runs: the hypergeometric variance of tied stops in each stratum and step
    X, y = blind(24, 5, True)
    stratum = np.arange(24) % 2
    table = rng.normal(size=(len(X.cells), 2))
    found = administrative_stop_test(X, y, features=lambda X: table, strata=stratum)
    step = np.concatenate([np.arange(n) for n in X.lengths])
    row = np.repeat(np.arange(24), X.lengths)
    goes_on = step + 1 < X.lengths[row]
    at_risk = goes_on | (y == -1)[row]
    x = table / table[at_risk].std(axis=0)
    score, variance, telling = np.zeros(2), np.zeros((2, 2)), 0
    for s in (0, 1):
        for t in range(6):
            here = at_risk & (stratum[row] == s) & (step == t)
            n, d = here.sum(), (here & ~goes_on).sum()
            if not 0 < d < n:
                continue
            centered = x[here] - x[here].mean(axis=0)
            score += x[here & ~goes_on].sum(axis=0) - d * x[here].mean(axis=0)
            variance += d * (n - d) / (n * (n - 1)) * centered.T @ centered
            telling += d
    statistic = score @ np.linalg.solve(variance, score)
    np.testing.assert_allclose(found.statistic, statistic, rtol=1e-9)
    assert found.df == 2
    np.testing.assert_allclose(found.pvalue, chi2.sf(statistic, 2), rtol=1e-9)
    assert found.n_informative_stops == telling
    z = score / np.sqrt(np.diag(variance))
    np.testing.assert_allclose(found.table["z"], z, rtol=1e-9)
    np.testing.assert_allclose(found.table["pvalue"], 2 * norm.sf(abs(z)), rtol=1e-9)


def by_task(n_tasks, seed, by_signal=False):
    """Runs of tasks that differ in their signal and in their budget; some stops are by signal."""
    rng, n = np.random.default_rng(seed), 5 * n_tasks
    task = np.repeat(np.arange(n_tasks), 5)
    signal = rng.normal(rng.normal(size=n_tasks)[task][:, None], 1, (n, 8))
    whole, budget = rng.integers(4, 9, n), rng.integers(2, 9, n_tasks)[task]
    low = (signal < -0.6) & (rng.random((n, 8)) < (0.3 if by_signal else 0))
    stop = np.minimum(budget, np.where(low.any(axis=1), low.argmax(axis=1) + 1, 99))
    y = np.where(stop < whole, -1, rng.integers(0, 2, n))
    return TrajectoryArray.from_padded(signal).truncate(np.minimum(stop, whole)), y, task


def test_runs_of_one_task_are_not_independent():
    alone, together = [], []
    for seed in range(60):
        X, y, task = by_task(40, seed)
        alone.append(administrative_stop_test(X, y).pvalue)
        together.append(administrative_stop_test(X, y, groups=task).pvalue)
    assert (np.array(alone) < 0.05).mean() > 0.12
    assert (np.array(together) < 0.05).mean() < 0.1
    assert (
        administrative_stop_test(*by_task(60, 0, True)[:2], groups=by_task(60, 0)[2]).pvalue < 0.05
    )


def test_variance_between_groups_is_that_of_the_book():
    X, y, task = by_task(20, 3)
    found = administrative_stop_test(X, y, groups=[f"task {one}" for one in task])
    x, run = X.cells, np.repeat(np.arange(100), X.lengths)
    step = np.concatenate([np.arange(n) for n in X.lengths])
    last = step + 1 == X.lengths[run]
    stop = last & (y == -1)[run]
    at_risk = ~last | stop
    x = (x - x[at_risk].mean()) / x[at_risk].std()
    sums = np.zeros(20)
    for t in range(8):
        here = at_risk & (step == t)
        if here.any():
            residual = (stop[here] - stop[here].mean()) * (x[here] - x[here].mean())
            np.add.at(sums, task[run[here]], residual)
    share = np.bincount(task[run[at_risk]], minlength=20) / at_risk.sum()
    expected = sums.sum() / np.sqrt(((sums / (1 - share)) ** 2).sum())
    np.testing.assert_allclose(found.table.loc["value, latest", "z"], expected, rtol=1e-9)


def test_few_groups_are_reported():
    X, y, task = by_task(10, 1)
    with pytest.warns(UserWarning, match=r"only 10 groups.* Give at least 16 groups"):
        few = administrative_stop_test(X, y, groups=task)
    assert few.statistic < 10
    X, y, task = by_task(16, 1)
    assert administrative_stop_test(X, y, groups=task).df == 3


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
    for wrong in (stopped[1:], stopped.astype(int)):
        with pytest.raises(ValueError, match="stopped must be 800 booleans, one for each run"):
            administrative_stop_test(X, y, stopped=wrong)


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
        ([-1, 0], {"strata": [1]}, "strata must be 2 labels, one for each run"),
        ([-1, 0], {"groups": [1]}, "groups must be 2 labels, one for each run"),
        ([-1, 0], {"groups": [1, 1]}, "of one group; give two or more groups"),
        ([-1, 0], {"q_z": [0.5, 0.5]}, "given together"),
        ([-1, 0], {"q_z": [0.5, 0.5], "continuation": [1]}, "one number for each of the 2 runs"),
        ([-1, 0], {"alpha": 5}, "alpha must lie strictly between 0 and 1, got 5"),
        ([-1, 0], {"alpha": "a"}, "alpha must lie strictly between 0 and 1, got 'a'"),
    ],
)
def test_bad_stop_tests(y, options, match):
    with pytest.raises(ValueError, match=match):
        administrative_stop_test([[0.5, 0.6], [0.4, 0.3]], y, **options)


def test_two_groups_are_enough_to_have_a_variance():
    X, stop = blind(40, 0, by_signal=False)[:2]
    with pytest.warns(UserWarning, match="there are only 2 groups"):
        found = administrative_stop_test(X, stop, groups=np.arange(40) % 2)
    assert np.isfinite(found.statistic)
