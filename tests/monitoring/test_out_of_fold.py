"""Stopping steps of each run by a rule that was fitted on the other folds."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold

from trajscore import DensityRatioEProcess, TrajectoryArray
from trajscore.datasets import make_trajectories
from trajscore.monitoring import RandomStop
from trajscore.monitoring._stopping_rule import out_of_fold_steps, rates_table

RULE = DensityRatioEProcess(threshold="conformal", alpha=[0.3, 0.1])


@pytest.fixture(scope="module")
def runs():
    """Ids in another order than the rows; one run is longer than all others."""
    X, y = make_trajectories(240, lengths=(1, 6), random_state=0, return_X_y=True)
    lengths = X.lengths.copy()
    lengths[-1] += 3
    cells = np.r_[X.cells, 0.4, 0.4, 0.4]
    return TrajectoryArray(cells, lengths, ids=np.random.default_rng(1).permutation(240)), y


@pytest.mark.parametrize("kind", [StratifiedKFold, StratifiedGroupKFold])
def test_every_fold_by_a_fit_to_the_others(runs, kind):
    X, y = runs
    groups = X.ids // 4 if kind is StratifiedGroupKFold else None
    cv = kind(5, shuffle=True, random_state=0)
    found = out_of_fold_steps(RULE, X, y, groups=groups, cv=cv)
    order = np.argsort(X.ids)  # in which splitters see the runs
    for train, test in cv.split(y, y[order], None if groups is None else groups[order]):
        known = {} if groups is None else {"groups": groups[order[train]]}
        fitted = clone(RULE).fit(X[order[train]], y[order[train]], **known)
        new = X.with_ended()[order[test]].prefix(fitted.longest_)
        for alpha in (0.3, 0.1):
            np.testing.assert_array_equal(
                found[alpha][order[test]], fitted.stopping_steps(new, alpha)
            )
    assert list(found) == [0.3, 0.1]
    shuffled = np.random.default_rng(2).permutation(len(y))
    other = out_of_fold_steps(
        RULE, X[shuffled], y[shuffled], groups=None if groups is None else groups[shuffled], cv=cv
    )
    np.testing.assert_array_equal(other[0.1], found[0.1][shuffled])


def test_unobserved_runs_are_followed_but_not_fitted_on(runs):
    X, y = runs
    codes = np.where(np.arange(len(y)) < 60, -1, y)
    found = out_of_fold_steps(RULE, X, codes, cv=3)[0.3]
    alone = out_of_fold_steps(RULE, X[60:], y[60:], cv=3)[0.3]
    np.testing.assert_array_equal(found[60:], alone)
    assert (found[:60] > 0).any()
    assert rates_table(X[60:], y[60:], {0.3: alone})["power"].iloc[0] > 0.2


def test_too_few_successes_flag_nothing_without_a_warning(runs):
    X, y = runs
    assert not out_of_fold_steps(RandomStop(alpha=0.001), X, y)[0.001].any()
