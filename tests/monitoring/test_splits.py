"""What a rule does over random splits."""

import numpy as np
import pandas as pd
import pytest

from trajscore import DensityRatioEProcess, TrajectoryArray
from trajscore.datasets import make_trajectories
from trajscore.monitoring import RandomStop, split_report

RULE = DensityRatioEProcess(alpha=[0.3, 0.1])


@pytest.fixture(scope="module")
def runs():
    """Ids in another order than the rows; one run is longer than all others."""
    X, y = make_trajectories(240, lengths=(1, 6), random_state=0, return_X_y=True)
    lengths = X.lengths.copy()
    lengths[-1] += 3
    cells = np.r_[X.cells, 0.4, 0.4, 0.4]
    return TrajectoryArray(cells, lengths, ids=np.random.default_rng(1).permutation(240)), y


def test_each_split_is_judged_on_runs_that_it_does_not_know(runs):
    X, y = runs
    seen = []

    class Recorder(RandomStop):
        def fit(self, X, y=None):
            seen.append(set(X.ids.tolist()))
            return super().fit(X, y)

        def report(self, X, y, **kwargs):
            assert not seen[-1] & set(X.ids.tolist())
            assert len(seen[-1]) + len(X) == 240
            return super().report(X, y, **kwargs)

    table = split_report(Recorder(alpha=0.2), X, y, known_share=0.25, n_splits=3)
    assert [len(one) for one in seen] == [60, 60, 60]
    assert len(set.union(*seen)) > 100  # other runs each time
    assert table["n_known"].tolist() == [60]


def test_rates_are_means_over_splits_with_intervals(runs):
    X, y = runs
    table = split_report(RULE, X, y, n_splits=5)
    assert table.index.tolist() == [0.3, 0.1]
    alone = [
        split_report(RULE, X, y, n_splits=1, random_state=np.random.RandomState(seed))["power"]
        for seed in range(2)
    ]
    assert (alone[0] != alone[1]).any()
    one = split_report(RULE, X, y, n_splits=1)
    assert one["power_low"].isna().all()
    for name in ("power", "false_alarm_rate", "steps_saved"):
        assert (table[f"{name}_low"] < table[name]).all()
        half = table[f"{name}_high"] - table[name]
        np.testing.assert_allclose(half, table[name] - table[f"{name}_low"])
    order = np.random.default_rng(2).permutation(240)
    again = split_report(RULE, X[order], y[order], n_splits=5, n_jobs=2)
    pd.testing.assert_frame_equal(again, table)


def test_too_few_successes_for_a_threshold_are_a_column(runs):
    X, y = runs
    table = split_report(DensityRatioEProcess(alpha=[0.5, 1e-4]), X, y, n_splits=2)
    assert table["too_few"].tolist() == [0, 1]
    assert table["power"].iloc[1] == 0


def test_groups_are_known_whole_and_told_to_the_rule(runs):
    X, y = runs
    groups = X.ids // 4
    told = []

    class Recorder(DensityRatioEProcess):
        def fit(self, X, y, calibration=None, groups=None):
            told.append((X.ids // 4, groups))
            return super().fit(X, y, calibration, groups)

    split_report(Recorder(alpha=0.3), X, y, groups=groups, known_share=0.5, n_splits=2)
    for known, given in told:
        assert (np.bincount(known)[np.unique(known)] == 4).all()
        assert len(np.unique(given)) == 30


def test_unobserved_runs_are_left_out(runs):
    X, y = runs
    codes = np.where(np.arange(240) < 60, -1, y)
    table = split_report(RULE, X, codes, n_splits=2)
    pd.testing.assert_frame_equal(table, split_report(RULE, X[60:], y[60:], n_splits=2))
    with pytest.raises(ValueError, match="none of the 240 runs has an observed outcome"):
        split_report(RULE, X, np.full(240, -1))


def test_too_few_successes_flag_nothing_without_a_warning(runs):
    assert split_report(RandomStop(alpha=0.001), *runs, n_splits=2)["power"].tolist() == [0]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"known_share": 1}, "known_share must lie strictly between 0 and 1"),
        ({"n_splits": 0}, "n_splits must be a whole number of at least 1"),
    ],
)
def test_bad_options(runs, options, message):
    with pytest.raises(ValueError, match=message):
        split_report(RULE, *runs, **options)
    with pytest.raises(ValueError, match=r"rule must be a stopping rule, got \[\]"):
        split_report([], *runs)
