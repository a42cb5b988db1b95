"""What a rule does over random splits."""

import functools

import numpy as np
import pandas as pd
import pytest
from joblib import parallel_config
from scipy.stats import norm
from sklearn.base import clone

from refused import not_refused
from trajscore import DensityRatioEProcess, TrajectoryArray
from trajscore.datasets import make_trajectories
from trajscore.monitoring import LearnThenTestStop, split_report

RULE = DensityRatioEProcess("passthrough", alpha=[0.3, 0.1])


@functools.cache
def runs():
    """Ids in another order than the rows; one run is longer than all others."""
    X, y = make_trajectories(240, lengths=(1, 6), random_state=0, return_X_y=True)
    lengths = X.lengths.copy()
    lengths[-1] += 3
    cells = np.r_[X.cells, 0.4, 0.4, 0.4]
    return TrajectoryArray(cells, lengths, ids=np.random.default_rng(1).permutation(240)), y


def recorded(rule, seen):
    """The same rule, which notes runs and groups of each fit, and each report."""

    class Recorder(type(rule)):
        def fit(self, X, y=None, groups=None):
            seen.append({"ids": set(X.ids.tolist()), "groups": groups})
            return super().fit(X, y) if groups is None else super().fit(X, y, groups=groups)

        def report(self, X, y, **kwargs):
            table = super().report(X, y, **kwargs)
            seen[-1] |= {"new": set(X.ids.tolist()), "table": table}
            return table

    return Recorder(**rule.get_params())


def test_rates_are_means_over_splits_of_runs_that_are_not_known():
    X, y = runs()
    seen, cost = [], X.with_cells(X.cells + 1)
    rule = recorded(RULE, seen)
    table = split_report(rule, X, y, known_share=0.75, n_splits=5, cost=cost)
    assert [len(one["ids"]) for one in seen] == [180] * 5
    assert table["n_known"].tolist() == [180, 180]
    for one in seen:
        assert not one["ids"] & one["new"]
        assert len(one["ids"] | one["new"]) == 240
    assert len({frozenset(one["ids"]) for one in seen}) == 5  # other runs each time
    assert table.index.tolist() == [0.3, 0.1]
    for name in ("power", "false_alarm_rate", "steps_saved", "cost_saved"):
        values = np.array([one["table"][name] for one in seen])
        half = norm.ppf(0.975) * values.std(axis=0, ddof=1) / np.sqrt(5)
        np.testing.assert_allclose(table[name], values.mean(axis=0))
        np.testing.assert_allclose(table[f"{name}_low"], values.mean(axis=0) - half)
        np.testing.assert_allclose(table[f"{name}_high"], values.mean(axis=0) + half)
    assert split_report(RULE, X, y, n_splits=1)["power_low"].isna().all()


def test_neither_the_order_of_rows_nor_the_jobs_matter_but_the_seed_does(rng):
    X, y = runs()
    table, order = split_report(RULE, X, y, n_splits=3), rng.permutation(240)
    with parallel_config(backend="threading"):
        again = split_report(RULE, X[order], y[order], n_splits=3, n_jobs=2)
    pd.testing.assert_frame_equal(again, table)
    other = split_report(RULE, X, y, n_splits=3, random_state=np.random.RandomState(1))
    assert (other["power"] != table["power"]).any()


def test_groups_are_known_whole_and_told_to_the_rule():
    X, y = runs()
    seen = []
    split_report(recorded(RULE, seen), X, y, groups=X.ids // 4, known_share=0.5, n_splits=2)
    for one in seen:
        tasks = np.array(sorted(one["ids"])) // 4
        assert (np.bincount(tasks)[np.unique(tasks)] == 4).all()
        assert len(np.unique(one["groups"])) == 30
    with pytest.warns(UserWarning, match="LearnThenTestStop.fit takes no groups"):
        split_report(LearnThenTestStop(), X, y, groups=X.ids // 4, n_splits=2)


def test_unobserved_runs_are_left_out():
    X, y = runs()
    codes = np.where(np.arange(240) < 60, -1, y)
    table = split_report(RULE, X, codes, n_splits=2)
    pd.testing.assert_frame_equal(table, split_report(RULE, X[60:], y[60:], n_splits=2))


def test_too_few_successes_are_a_column_and_no_warning():
    X, y = runs()
    table = split_report(clone(RULE).set_params(alpha=[0.5, 1e-4]), X, y, n_splits=2)
    assert table["too_few"].tolist() == [0, 1]
    assert table["power"].iloc[1] == 0
    table = split_report(LearnThenTestStop(alpha=[0.5, 0.05]), X[:60], y[:60], n_splits=2)
    assert table["too_few"].tolist() == [1, 1]  # 45 runs must be held out for lost_accuracy=0.05


def test_bad_input():
    X, y = runs()
    rows = [
        (RULE, X, y, {"known_share": 1}, "known_share must be"),
        (RULE, X, y, {"n_splits": 0}, "n_splits must be"),
        (RULE, X, np.full(240, -1), {}, "none of the 240 runs"),
        ([], X, y, {}, r"rule must be a stopping rule, got \[\]"),
    ]
    assert not not_refused(split_report, rows)
