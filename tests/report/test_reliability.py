"""Bins of what forecasts say against what happens."""

import numpy as np
import pytest

from trajscore import TrajectoryArray, evaluate
from trajscore.datasets import make_trajectories
from trajscore.report import IntervalOptions
from trajscore.report._reliability import Bins, reliability

QUICK = IntervalOptions(20, method="influence")
KEY = "forecast", "as_given"


def report_of(cells, lengths, y, **options):
    X = TrajectoryArray(cells, lengths)
    return evaluate(X, y, calibrator=None, intervals=QUICK, **options)


def test_bins_hold_the_mean_forecast_and_the_share_of_successes():
    p = np.repeat([0.2, 0.8], 100)
    y = np.tile([0, 0, 0, 0, 1], 40)
    y[100:] = 1 - y[100:]
    bins = reliability(report_of(p, np.ones(200, dtype=int), y), KEY)
    assert bins.forecast == pytest.approx([0.2, 0.8])
    assert bins.rate == pytest.approx([0.2, 0.8])
    assert bins.weight == pytest.approx([0.5, 0.5])
    assert bins.error == pytest.approx(0, abs=1e-12)
    assert bins.largest_gaps() == []
    assert bins.low[0] == pytest.approx(0.133, abs=1e-3)  # Wilson's, of 20 of 100
    assert bins.high[0] == pytest.approx(0.289, abs=1e-3)


def test_steps_weigh_as_in_the_score():
    X, y = make_trajectories(400, lengths=(1, 9), random_state=0, return_X_y=True)
    report = evaluate(X, y, calibrator=None, intervals=QUICK)
    bins = reliability(report, KEY)
    weight = 1 / np.sqrt(np.concatenate([np.arange(1, n + 1) for n in X.lengths]))
    label = np.repeat(y == 1, X.lengths)
    assert len(bins.rate) == 10
    assert bins.weight == pytest.approx(np.full(10, 0.1), abs=0.02)
    assert bins.weight @ bins.forecast == pytest.approx(np.average(X.cells.ravel(), weights=weight))
    assert bins.weight @ bins.rate == pytest.approx(np.average(label, weights=weight))


def test_a_part_of_the_run_alone():
    X, y = make_trajectories(400, lengths=12, random_state=0, return_X_y=True)
    report = evaluate(X, y, calibrator=None, intervals=QUICK)
    steps = np.tile(np.arange(1, 13), 400)
    late = steps > 10
    weight = 1 / np.sqrt(steps[late])
    bins = reliability(report, KEY, "late")
    own = np.average(X.cells.ravel()[late], weights=weight)
    assert bins.weight @ bins.forecast == pytest.approx(own)


def test_some_runs_alone_are_counted_in_the_bins_of_all():
    X, y = make_trajectories(400, lengths=4, random_state=0, return_X_y=True)
    report = evaluate(X, y, calibrator=None, intervals=QUICK)
    whole = reliability(report, KEY)
    some = reliability(report, KEY, which=np.arange(400) % 2 == 0)
    other = reliability(report, KEY, which=np.arange(400) % 2 == 1)
    shared = [k for k in range(10) if k in some.place and k in other.place]
    assert len(shared) > 5
    for k in shared:
        a, b, c = (part.rate[part.place == k][0] for part in (some, other, whole))
        assert min(a, b) <= c <= max(a, b)


def test_the_runs_of_a_cluster_stand_or_fall_together():
    rng = np.random.default_rng(0)
    task = np.repeat(np.arange(50), 8)
    y = (rng.random(50) < 0.5).astype(int)[task]
    cells, lengths = np.full(400, 0.5), np.ones(400, dtype=int)
    alone = reliability(report_of(cells, lengths, y), KEY)
    clustered = reliability(report_of(cells, lengths, y, groups=task), KEY)
    assert clustered.rate == pytest.approx(alone.rate)
    ratio = (clustered.high - clustered.low) / (alone.high - alone.low)
    assert ratio[0] == pytest.approx(np.sqrt(8), rel=0.05)


def test_a_bin_of_one_outcome_has_an_interval():
    y = np.append(np.zeros(50), np.ones(50))
    bins = reliability(report_of(np.repeat([0.01, 0.99], 50), np.ones(100, dtype=int), y), KEY)
    assert bins.rate.tolist() == [0, 1]
    assert bins.high[0] == pytest.approx(0.0713, abs=1e-3)
    assert bins.low[1] == pytest.approx(1 - 0.0713, abs=1e-3)


def test_bins_of_few_runs_are_left_out():
    few = report_of(np.full(18, 0.5), np.ones(18, dtype=int), np.arange(18) % 2)
    assert len(reliability(few, KEY).rate) == 1
    fewer = report_of(np.full(9, 0.5), np.ones(9, dtype=int), np.arange(9) % 2)
    assert len(reliability(fewer, KEY).rate) == 0
    assert np.isnan(reliability(fewer, KEY).error)


def bins_of(forecast, rate, half=0.05, weight=None):
    forecast, rate = np.array(forecast), np.array(rate)
    weight = np.full(len(rate), 1 / len(rate)) if weight is None else np.array(weight)
    return Bins(forecast, rate, rate - half, rate + half, weight, np.arange(len(rate)))


def test_the_gaps_to_name():
    assert bins_of([0.1, 0.9], [0.4, 0.6]).largest_gaps() == [0, 1]
    assert bins_of([0.1, 0.9], [0.5, 0.8]).largest_gaps() == [0]  # the other is a quarter of it
    assert bins_of([0.1, 0.3], [0.4, 0.5]).largest_gaps() == [0]  # both on one side
    assert bins_of([0.1, 0.9], [0.4, 0.6], half=0.35).largest_gaps() == []  # may be chance
    assert bins_of([0.1, 0.9], [0.3, 0.6], weight=[0.9, 0.1]).largest_gaps() == [0]


@pytest.mark.parametrize(("n_runs", "n_bins"), [(15, 1), (39, 1), (40, 2), (199, 9), (260, 10)])
def test_bins_have_twenty_runs_or_more_and_are_ten_at_most(n_runs, n_bins):
    p = np.linspace(0.1, 0.9, n_runs)
    bins = reliability(report_of(p, np.ones(n_runs, dtype=int), np.arange(n_runs) % 2), KEY)
    assert len(bins.rate) == n_bins


def test_a_gap_of_35_percent_of_the_largest_is_named():
    assert bins_of([0.0, 1.0], [1.0, 0.65], weight=[1, 1]).largest_gaps() == [0, 1]
    assert bins_of([0.0, 1.0], [1.0, 0.66], weight=[1, 1]).largest_gaps() == [0]


def test_intervals_are_of_as_many_runs_as_would_vary_as_much():
    rng = np.random.default_rng(1)
    task = np.arange(60) // 3
    lengths, y = 1 + task % 7, (task % 3 == 0).astype(int)
    cells = rng.random(lengths.sum()).round(2)
    report = report_of(cells, lengths, y, groups=task)
    bins = reliability(report, KEY)
    weight = 1 / np.sqrt(np.concatenate([np.arange(1, n + 1) for n in lengths]))
    run = np.repeat(np.arange(60), lengths)
    assert len(bins.rate) == 1  # 20 tasks are one bin
    rate = np.average(y[run], weights=weight)
    assert bins.rate == pytest.approx([rate])
    assert bins.forecast == pytest.approx([np.average(cells, weights=weight)])
    sums = [weight[task[run] == k] @ (y[run][task[run] == k] - rate) for k in range(20)]
    variance = np.square(sums).sum() * 20 / 19 / weight.sum() ** 2
    n = min(max(rate * (1 - rate) / variance, 1), 20)
    assert 1 < n < 20
    z = 1.959963984540054
    half = z / (1 + z * z / n) * np.sqrt(rate * (1 - rate) / n + (z / n / 2) ** 2)
    middle = (rate + z * z / n / 2) / (1 + z * z / n)
    assert (bins.low[0], bins.high[0]) == pytest.approx((middle - half, middle + half))


@pytest.mark.parametrize(("n_runs", "n_bins"), [(9, 0), (10, 1)])
def test_a_bin_needs_ten_runs(n_runs, n_bins):
    report = report_of(np.full(n_runs, 0.5), np.ones(n_runs, int), np.arange(n_runs) % 2)
    assert len(reliability(report, KEY).rate) == n_bins
