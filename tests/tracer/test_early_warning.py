"""How early a risk tells of failure, by hand."""

import math

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from trajscore import TrajectoryArray
from trajscore.tracer import early_warning


def test_early_warning_by_hand():
    risk = TrajectoryArray.from_list(
        [[0.1, 0.9, 0.9, 0.9, 0.9], [0.2, 0.2, 0.7], [0.1, 0.2], [0.3, 0.3, 0.8], [0.9]]
    )
    warning = early_warning([0, 0, 0, 1, -1], risk)
    # flagging at 0.9 catches one failure of three and no success; so does no other do better
    assert warning.threshold == 0.9
    assert np.array_equal(warning.failure_times, [0.25, np.nan, np.nan], equal_nan=True)
    assert warning.detected_within(0.25) == pytest.approx(1 / 3)
    assert warning.detected_within() == 0  # by default within a fifth of a run
    assert warning.false_alarms_within() == 0
    low = early_warning([0, 0, 0, 1, -1], risk, threshold=0.2)
    assert low.failure_times.tolist() == [0.25, 0.0, 1.0]
    assert low.success_times.tolist() == [0.0]
    _, detected, alarms = low.curve()
    assert detected[[0, 50, 100]] == pytest.approx([1 / 3, 2 / 3, 1])
    assert alarms.tolist() == [1] * 101
    with pytest.raises(ValueError, match="needs failures and successes"):
        early_warning([0, 0], [[0.1], [0.2]])
    for threshold in (math.nan, "high"):
        with pytest.raises(ValueError, match="threshold must be a number or None"):
            early_warning([0, 1], [[0.1], [0.2]], threshold=threshold)


@pytest.mark.parametrize(
    ("failed", "succeeded", "threshold"),
    [
        ([0.9, 0.3], [0.5, 0.1], 0.9),
        ([0.9, 0.5, 0.3], [0.7, 0.2, 0.1], 0.3),
        ([0.9, 0.4], [0.9, 0.4], 0.9),
        # 3/5 - 0 and 4/5 - 1/5 are the same but for the last digit
        ([0.9, 0.9, 0.9, 0.5, 0.1], [0.7, 0.2, 0.2, 0.2, 0.2], 0.9),
    ],
)
def test_of_thresholds_that_separate_alike_the_largest_is_taken(failed, succeeded, threshold):
    y, risk = [0] * len(failed) + [1] * len(succeeded), [[p] for p in (*failed, *succeeded)]
    assert early_warning(y, risk).threshold == threshold


def test_runs_without_a_risk_are_left_out_and_grades_refused():
    risk = TrajectoryArray([0.9, 0.1, np.nan], [1, 1, 1], missing="allow")
    warning = early_warning([0, 1, 0], risk)
    assert warning.failure_times.tolist() == [0.0]
    with pytest.raises(
        ValueError, match=r"run 1: outcome 0\.5 must be 0 or 1; leave out graded runs"
    ):
        early_warning([0, 0.5, 1], risk)


def test_intervals_know_of_clusters(rng):
    y, task = rng.integers(0, 2, 120), np.repeat(np.arange(30), 4)
    y = np.where(rng.random(120) < 0.9, np.repeat(y[::4], 4), y)  # trials of a task end alike
    risk = TrajectoryArray(rng.random(240), [2] * 120)
    alone, clustered = early_warning(y, risk), early_warning(y, risk, groups=task)
    assert clustered.threshold == alone.threshold
    width = [w.by_step["AUROC_high"] - w.by_step["AUROC_low"] for w in (alone, clustered)]
    assert not np.allclose(*width)


def test_by_step(rng):
    lengths = rng.integers(2, 6, 120)
    y = rng.integers(-1, 2, 120)
    cells = rng.random(lengths.sum()) + np.repeat(y == 0, lengths)
    cells[0] = np.nan
    risk = TrajectoryArray(cells, lengths, missing="allow")
    table = early_warning(y, risk).by_step
    there = (lengths >= 2) & (y >= 0)
    second = risk.cells[risk.offsets[:-1][there] + 1]
    assert table.loc[2, "AUROC"] == pytest.approx(roc_auc_score(1 - y[there], second))
    assert table.loc[2, "n_runs"] == there.sum()
    assert table.loc[1, "n_runs"] == (y >= 0).sum() - (y[0] >= 0)
    assert table["score"].notna().all()  # also where one run has no risk at its first step
    whole = early_warning(y[1:], risk[1:]).by_step
    assert (whole["margin_low"] > 0).all()
    few = early_warning(y[:12], risk[:12]).by_step
    assert few.empty
    assert few.columns.tolist() == table.columns.tolist()


def test_without_failures_or_successes_there_is_no_share():
    risk = TrajectoryArray.from_list([[0.1, 0.9], [0.2, 0.3]])
    none_failed, none_won = (early_warning([y, y], risk, threshold=0.5) for y in (1, 0))
    assert math.isnan(none_failed.detected_within())
    assert none_failed.false_alarms_within() == 0.5
    assert math.isnan(none_won.false_alarms_within())
    assert none_won.detected_within(0.99) == 0
    assert none_won.detected_within(1) == 0.5
    grid, detected, alarms = none_won.curve()
    np.testing.assert_allclose(grid, np.arange(101) / 100)
    assert detected.tolist() == [0] * 100 + [0.5]
    assert np.isnan(alarms).all()
