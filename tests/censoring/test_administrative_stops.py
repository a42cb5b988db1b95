import numpy as np
import pytest
from scipy.stats import chi2, norm

from refused import not_refused
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
    X, y = blind(80, 5, True)
    X = X.truncate(np.minimum(X.lengths, 5))  # some were stopped at the last step of all
    stratum = np.arange(80) % 2
    table = rng.normal(size=(len(X.cells), 2))
    found = administrative_stop_test(X, y, features=lambda X: table, strata=stratum)
    step = np.concatenate([np.arange(n) for n in X.lengths])
    row = np.repeat(np.arange(80), X.lengths)
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
    assert found.n_comparable_stops == telling
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


def test_runs_of_one_task_are_not_independent():
    alone, together = [], []
    for seed in range(30):
        X, y, task = by_task(40, seed)
        alone.append(administrative_stop_test(X, y).pvalue)
        together.append(administrative_stop_test(X, y, groups=task).pvalue)
    assert (np.array(alone) < 0.05).mean() > 0.12
    assert (np.array(together) < 0.05).mean() < 0.15
    X, y, task = by_task(60, 0, True)
    assert administrative_stop_test(X, y, groups=task).pvalue < 0.05
    # few groups are reported
    X, y, task = by_task(10, 1)
    with pytest.warns(UserWarning, match="only 10 groups.* at least 16 groups"):
        few = administrative_stop_test(X, y, groups=task)
    assert few.statistic < 10
    X, y, task = by_task(16, 1)
    assert administrative_stop_test(X, y, groups=task).df == 3
    # a group may be of one step alone
    found = administrative_stop_test([[0.5, 0.6], [0.4, 0.3]], [-1, 0], groups=[1, 2])
    assert found.n_comparable_stops == 0
    X, y = blind(40, 0, by_signal=False)
    with pytest.warns(UserWarning, match="only 2 groups"):
        found = administrative_stop_test(X, y, groups=np.arange(40) % 2)
    assert np.isfinite(found.statistic)


def test_size_and_power(monitored):
    p = np.array([administrative_stop_test(*blind(80, seed, False)).pvalue for seed in range(80)])
    assert 0.01 < (p < 0.05).mean() < 0.11
    assert 0.4 < p.mean() < 0.6
    seen = administrative_stop_test(*blind(200, 0, True))
    assert seen.pvalue < 1e-4
    assert seen.table.loc["value, latest", "z"] < -4
    assert "small values of 'value, latest'" in str(seen)
    assert "not recorded cannot be seen" in str(administrative_stop_test(*blind(200, 0, False)))
    _, X, y, stopped = monitored(800, 0)
    found = administrative_stop_test(X, y, stopped=stopped)
    assert found.pvalue < 1e-6
    assert found.n_stops == stopped.sum()


def test_one_budget_gives_no_number(coin_budget):
    X = TrajectoryArray(np.random.default_rng(0).random(60), np.tile([2, 4], 10))
    found = administrative_stop_test(X, np.where(X.lengths == 4, -1, 1))
    assert np.isnan([found.pvalue, found.statistic]).all()
    assert found.n_comparable_stops == 0
    assert "nothing to test" in str(found)
    # a coin decides who has a budget: there is something to test, and nothing to find
    _, X, y, _, _ = coin_budget(1000, 0)
    assert administrative_stop_test(X, y).pvalue > 0.01
    strata = np.where(y == -1, "budget", "none")
    assert np.isnan(administrative_stop_test(X, y, strata=strata).pvalue)


def test_bad_input():
    X = [[0.5, 0.6], [0.4, 0.3]]
    rows = [
        (X, [1, 0], {}, "no run was stopped"),
        (X, [-1, 0], {"stopped": [True, True]}, "row 1: its outcome was observed"),
        (X, [-1, 0], {"stopped": [1, 0]}, "stopped must be 2 booleans"),
        (X, [-1, 0], {"features": lambda X: np.ones(3)}, "features must give 4 rows"),
        (X, [-1, 0], {"strata": [1]}, "strata must be 2 labels"),
        (X, [-1, 0], {"groups": [1]}, "groups must be 2 labels"),
        (X, [-1, 0], {"groups": [1, 1]}, "two or more groups"),
        (X, [-1, 0], {"alpha": 5}, "alpha .* got 5"),
    ]
    assert not not_refused(administrative_stop_test, rows)
