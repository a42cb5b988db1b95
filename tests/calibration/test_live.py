"""How well a risk ranks and scores at one step, where it was made out of fold too."""

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from known_intervals import t_interval
from trajscore import PlattCrossFitCalibrator, PrefixForecaster, TrajectoryArray
from trajscore.calibration import cross_fit_traces
from trajscore.datasets import make_trajectories
from trajscore.metrics import tps_score
from trajscore.tracer import early_warning


@pytest.fixture(scope="module")
def runs():
    return make_trajectories(150, lengths=(1, 6), random_state=0, return_X_y=True)


def slow_auroc(c, y, stratum):
    pairs = [
        (c[a] > c[b]) + (c[a] == c[b]) / 2
        for a in np.flatnonzero(y == 1)
        for b in np.flatnonzero((y == 0) & (stratum == stratum[a]))
    ]
    return np.mean(pairs)


def table_of(y, confidence, lengths, **how):
    return early_warning(y, TrajectoryArray(-confidence, lengths), **how).by_step


def test_risks_made_out_of_fold_are_compared_within_folds(runs):
    X, y = runs
    forecaster = PrefixForecaster(features="running", pooled=True)
    traces = cross_fit_traces(forecaster, X, y, cv=3)
    risk = traces.with_cells(1 - traces.cells)
    table, fold = early_warning(y, risk).by_step, traces.meta["cross_fit_fold"].to_numpy()
    for t in table.index:
        alive = np.flatnonzero(X.lengths >= t)
        c = np.array([traces[int(row)][t - 1] for row in alive])
        area = table.loc[t, "AUROC"]
        assert area == pytest.approx(slow_auroc(c, y[alive], fold[alive]))
        # its interval is that of the derivatives in the weights of runs
        won, n = y[alive] == 1, len(alive)
        of_fold = [fold[alive] == k for k in range(3)]
        n_pairs = sum((won & here).sum() * (~won & here).sum() for here in of_fold)
        psi = np.zeros(n)
        for here in of_fold:
            for a in np.flatnonzero(won & here):
                for b in np.flatnonzero(~won & here):
                    above = ((c[a] > c[b]) + (c[a] == c[b]) / 2 - area) * n / n_pairs
                    psi[a] += above
                    psi[b] += above
        low, high = t_interval(area, psi, on_logit=True)
        found = table.loc[t, ["AUROC_low", "AUROC_high"]].tolist()
        assert found == pytest.approx([float(low), float(high)])


def test_perfect_order_of_few_runs_is_not_certain():
    y, ordered, ones = np.repeat([1, 0], [12, 48]), np.arange(60.0)[::-1], np.ones(60, dtype=int)
    reach = 0.025 ** (1 / 12)
    for sign, expected in ((1, (1, reach, 1)), (-1, (0, 0, 1 - reach))):
        row = table_of(y, sign * ordered, ones).loc[1]
        assert tuple(row[["AUROC", "AUROC_low", "AUROC_high"]]) == pytest.approx(expected)
    tasks = np.repeat(np.arange(20), 3)  # four tasks hold all successes
    row = table_of(y, ordered, ones, groups=tasks).loc[1]
    assert row["AUROC_low"] == pytest.approx(0.025 ** (1 / 4))


def test_ten_runs_of_each_outcome_are_enough_and_those_without_a_value_are_left_out():
    lengths = np.repeat([1, 2, 3], [8, 25, 15])
    y = np.zeros(48, dtype=int)
    y[[*range(8), *range(8, 13), *range(33, 38)]] = 1
    starts = np.cumsum(lengths) - lengths
    cells = np.arange(lengths.sum()) % 7.0
    cells[starts[23:30] + 1] = np.nan
    # their last value is there, so that the runs count
    X = TrajectoryArray.from_list(
        [np.r_[run, 1.0] for run in TrajectoryArray(cells, lengths, missing="allow")],
        missing="allow",
    )
    table = early_warning(y, X.with_cells(-X.cells)).by_step
    assert table.index.tolist() == [1, 2, 3]
    long = TrajectoryArray(np.arange(48 * 60.0), [60] * 48)
    assert early_warning(y, long).by_step.index.tolist() == [1, 2, 3, 4, 6, 8, 10, 15, 20, 30, 50]
    rates = [(len(y), y.mean())]
    second = np.array([run[1] for run in X])
    there = ~np.isnan(second)
    assert table["n_runs"].tolist()[:2] == [48, there.sum()]
    assert table.loc[1, "success_rate"] == pytest.approx(rates[0][1])
    assert table.loc[2, "AUROC"] == pytest.approx(roc_auc_score(y[there], second[there]))
    for n_won in (9, 10, 11):
        y = (np.arange(20) < n_won).astype(int)
        assert len(table_of(y, np.arange(40.0), [2] * 20)) == (2 if n_won == 10 else 0)


def test_the_score_of_a_step_is_above_the_rate_of_the_runs_that_reach_it():
    X, y = make_trajectories(200, lengths=(2, 5), random_state=0, return_X_y=True)
    table = early_warning(y, X.with_cells(1 - X.cells)).by_step
    signal = X.with_cells(X.cells - 1)
    p = cross_fit_traces(PlattCrossFitCalibrator(link="identity", increasing=True), signal, y, cv=2)
    for t in table.index:
        alive = X.lengths >= t
        at_step = TrajectoryArray(p.steps(t)[:, -1], np.ones(alive.sum(), dtype=int))
        score = tps_score(y[alive], at_step)
        rate = y[alive].mean()
        constant = rate * np.log(rate) + (1 - rate) * np.log(1 - rate)
        assert table.loc[t, "score"] == pytest.approx(score, abs=0.05)
        assert table.loc[t, "margin"] == pytest.approx(table.loc[t, "score"] - constant)
        assert table.loc[t, "margin_low"] < table.loc[t, "margin"] < table.loc[t, "margin_high"]
