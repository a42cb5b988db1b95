"""AUROC at one step, and its interval where all pairs of runs are in order."""

import numpy as np
import pytest
from scipy.stats import t as student
from sklearn.metrics import roc_auc_score

from trajscore import TrajectoryArray
from trajscore.calibration.fixed_step import (
    COLUMNS,
    auroc_estimate,
    auroc_interval,
    step_table,
)
from trajscore.datasets import make_trajectories
from trajscore.inference.mean_intervals import interval_of

SUCCESS = np.repeat([1.0, 0.0], [6, 54])
ORDERED = np.arange(60.0)[::-1]
ONE_STRATUM = np.zeros(60, dtype=np.int64)


def test_perfect_order_of_few_runs_is_not_certain():
    area, low, high = auroc_interval(ORDERED, SUCCESS, ONE_STRATUM, None, 0.95)
    assert (area, high) == (1, 1)
    assert low == pytest.approx(0.025 ** (1 / 6))
    area, low, high = auroc_interval(-ORDERED, SUCCESS, ONE_STRATUM, None, 0.95)
    assert (area, low) == (0, 0)
    assert high == pytest.approx(1 - 0.025 ** (1 / 6))


def test_only_pairs_that_are_compared_count():
    stratum = np.repeat([0, 1, 0, 1, 2], [4, 2, 1, 23, 30])  # three pairs
    low = auroc_interval(ORDERED, SUCCESS, stratum, None, 0.95)[1]
    assert low == pytest.approx(0.025 ** (1 / 3))
    tasks = np.repeat(np.arange(20), 3)  # two tasks hold all successes
    low = auroc_interval(ORDERED, SUCCESS, ONE_STRATUM, tasks, 0.95)[1]
    assert low == pytest.approx(0.025 ** (1 / 2))


def test_clusters_in_several_strata_count_once():
    success, scores = np.array([1.0, 1, 0, 0] * 2), np.array([9.0, 8, 1, 2] * 2)
    fold, task = np.repeat([0, 1], 4), np.arange(8) % 4  # the same four tasks in both folds
    low = auroc_interval(scores, success, fold, task, 0.95)[1]
    assert low == pytest.approx(0.025 ** (1 / 2))


def test_clusters_are_paired_within_their_stratum():
    success, scores = np.array([1.0, 1, 0, 0, 0, 0]), np.array([9.0, 8, 1, 2, 3, 4])
    fold, task = np.array([0, 0, 0, 1, 1, 1]), np.arange(6)
    low = auroc_interval(scores, success, fold, task, 0.95)[1]
    assert low == pytest.approx(0.025)  # one failure in the fold of the two successes


@pytest.mark.parametrize(("rate", "n"), [(0.1, 60), (0.2, 30)])
def test_intervals_of_nearly_perfect_scores_hold(rate, n):
    # AUROC is .99 where the scores of successes are higher by 3.29 standard deviations
    rng, held = np.random.default_rng(0), 0
    for _ in range(200):
        success = (np.arange(n) < rate * n).astype(float)
        scores = rng.normal(size=n) + 3.29 * success
        _, low, high = auroc_interval(scores, success, np.zeros(n, dtype=np.int64), None, 0.95)
        held += low <= 0.99 <= high
    assert held >= 184  # .92


def test_signals_without_forecasts_have_no_score():
    X, y = make_trajectories(60, lengths=3, random_state=0, return_X_y=True)
    table, scored = (
        step_table(X, (y == 1).astype(float), None, forecasts=forecasts) for forecasts in (None, X)
    )
    of_scores = ["score", "margin", "margin_low", "margin_high"]
    assert table[of_scores].isna().all(axis=None)
    assert scored[of_scores].notna().all(axis=None)
    assert table.drop(columns=of_scores).equals(scored.drop(columns=of_scores))


def test_a_table_by_hand():
    # 40 runs reach step 2, of which 30 have a value there, 10 of them successes; 15 reach step 3
    lengths = np.repeat([1, 2, 3], [8, 25, 15])
    success = np.zeros(48)
    success[[*range(8), *range(8, 13), *range(33, 38)]] = 1
    starts = np.concatenate([[0], np.cumsum(lengths)[:-1]])
    cells, p = np.arange(lengths.sum()) % 7.0, np.full(lengths.sum(), 0.25)
    cells[starts[23:33] + 1] = np.nan
    p[starts[8:13] + 1] = 0.75
    X = TrajectoryArray(cells, lengths, missing="allow")
    forecasts = TrajectoryArray(p, lengths)
    table = step_table(X, success, None, forecasts=forecasts, confidence_level=0.9)
    assert table.columns.tolist() == list(COLUMNS)
    assert table.index.tolist() == [1, 2]  # of 15 runs 5 are successes: too few of them
    assert (table.index.name, table["n_runs"].tolist()) == ("step", [48, 30])
    assert table["success_rate"].tolist() == pytest.approx([18 / 48, 10 / 30])
    second = cells[starts[8:] + 1]
    there = ~np.isnan(second)
    won = success[8:][there]
    assert table.loc[2, "AUROC"] == pytest.approx(roc_auc_score(won, second[there]))
    score = (5 * np.log(0.75) + 5 * np.log(0.25) + 20 * np.log(0.75)) / 30
    constant = (10 * np.log(1 / 3) + 20 * np.log(2 / 3)) / 30
    assert table.loc[2, "score"] == pytest.approx(score)
    assert table.loc[2, "margin"] == pytest.approx(score - constant)
    each = np.where(won == 1, np.log(3), np.log(1.5))
    each[:5] += np.log(0.75)
    each[5:] += np.where(won[5:] == 1, np.log(0.25), np.log(0.75))
    reach = student.ppf(0.95, 29) * each.std(ddof=1) / np.sqrt(30)
    low, high = table.loc[2, ["margin_low", "margin_high"]]
    assert low <= score - constant - reach * (1 - 1e-9)
    assert high >= score - constant + reach * (1 - 1e-9)
    brier = step_table(X, success, None, forecasts=forecasts, score="brier")
    expected = -(5 * 0.25**2 + 5 * 0.75**2 + 20 * 0.25**2) / 30
    assert brier.loc[2, "score"] == pytest.approx(expected)
    assert brier.loc[2, "margin"] == pytest.approx(expected + 2 / 9)


@pytest.mark.parametrize("n_won", [9, 10])
def test_ten_runs_of_each_outcome_are_enough(n_won):
    X = TrajectoryArray(np.arange(40.0), [2] * 20)
    success = (np.arange(20) < n_won).astype(float)
    for labels in (success, 1 - success):
        assert len(step_table(X, labels, None, forecasts=None)) == (2 if n_won == 10 else 0)
    assert step_table(X[:0], success[:0], None, forecasts=None).empty


def test_auroc_between_its_ends_has_the_interval_of_its_influences():
    rng = np.random.default_rng(3)
    success = (np.arange(60) % 3 == 0).astype(float)
    scores, stratum = rng.normal(size=60) + success, np.arange(60) % 2
    area, influence = auroc_estimate(scores, success, stratum)
    pairs = [
        (scores[i] > scores[j]) + 0.5 * (scores[i] == scores[j])
        for i in np.flatnonzero(success == 1)
        for j in np.flatnonzero((success == 0) & (stratum == stratum[i]))
    ]
    assert area == pytest.approx(np.mean(pairs))
    assert influence.shape == (60,)
    assert influence.sum() == pytest.approx(0, abs=1e-9)
    expected = interval_of(area, influence, None, 0.8, on_logit=True)
    assert auroc_interval(scores, success, stratum, None, 0.8) == pytest.approx(expected)


def test_one_pair_alone_bounds_next_to_nothing():
    area, low, high = auroc_interval(
        np.array([1.0, 0.0]), np.array([1.0, 0.0]), np.zeros(2, dtype=np.int64), None, 0.9
    )
    assert (area, low, high) == (1, pytest.approx(0.05), 1)
