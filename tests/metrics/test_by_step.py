"""What is measured at each step, a step at a time."""

import numpy as np
import pandas as pd
import pytest

from trajscore import PlattCrossFitCalibrator, TrajectoryArray
from trajscore.metrics import step_calibration_error, step_profile, trajectory_diagnostics

OWN = {"weights": "linear_front", "horizon": "own"}  # the convention of the paper
STEPS = {None: (1, 99), "early": (1, 3), "middle": (4, 10), "late": (11, 99)}
WAYS = [
    ({}, lambda t, T: t**-0.5),
    ({"weights": "linear_back"}, lambda t, T: t),
    ({"weights": "linear_front", "horizon": 30}, lambda t, T: 31 - t),
    ({"weights": lambda step: 1 / (1 + step)}, lambda t, T: 1 / (1 + t)),
    (OWN, lambda t, T: (T + 1 - t) / (T * (T + 1))),
]


@pytest.fixture
def long_runs(rng):
    """Runs of 1 to 25 steps."""
    lengths = rng.integers(1, 26, 150)
    return TrajectoryArray(rng.random(lengths.sum()), lengths), rng.integers(0, 2, 150)


@pytest.mark.parametrize(("how", "weight"), WAYS)
def test_bins_of_equal_width_one_step_at_a_time(long_runs, rng, how, weight):
    X, y = long_runs
    counts = rng.integers(0, 3, len(y))
    options = {"n_bins": 7, "strategy": "uniform", "sample_weight": counts, **how}
    for part, (first, last) in STEPS.items():
        gaps, total = np.zeros(7), 0.0
        for v, run, label in zip(counts, X, y, strict=True):
            for t, p in enumerate(run, start=1):
                if first <= t <= last:
                    w = v * weight(t, len(run))
                    gaps[min(int(p * 7), 6)] += w * (label - p)
                    total += w
        found = step_calibration_error(y, X, part=part, **options)
        assert found == pytest.approx(np.abs(gaps).sum() / total, abs=1e-12), part


def test_bins_of_equal_weight(long_runs, rng):
    X, y = long_runs
    counts = rng.integers(1, 3, len(y))
    options = {"n_bins": 7, "sample_weight": counts, "weights": "linear_back"}
    step = np.concatenate([np.arange(1, T + 1) for T in X.lengths])
    for part, (first, last) in STEPS.items():
        used = (first <= step) & (step <= last)
        w = (np.repeat(counts, X.lengths) * step)[used]
        p, label = X.cells[used], np.repeat(y, X.lengths)[used]
        order = np.argsort(p)
        middle = np.empty(len(p))
        middle[order] = np.cumsum(w[order]) - w[order] / 2
        gaps = np.bincount((middle * 7 / w.sum()).astype(int), w * (label - p))
        found = step_calibration_error(y, X, part=part, **options)
        assert found == pytest.approx(np.abs(gaps).sum() / w.sum(), abs=1e-12), part


@pytest.mark.parametrize("horizon", [None, [12, 12]])
def test_a_part_is_a_range_of_steps_wherever_the_run_may_end(horizon):
    # q_Z of the run that was cut off is .5
    cut = TrajectoryArray.from_list([[0.4, 0.4, 0.4], [0.4] * 12], horizon=horizon)
    for part, error in {"early": 0.05, "middle": 0.2, "late": 0.2}.items():
        found = step_calibration_error([0.5, 0.2], cut, part=part, weights="uniform")
        assert found == pytest.approx(error), part


def test_calibration_of_the_public_judge(hotpotqa):
    X, y = hotpotqa
    # by step and by run, of the judge and recalibrated: the collapsed trace moves the other way
    for how, expected in (
        (OWN, [[0.0846, 0.0429], [0.0473, 0.0778]]),
        ({}, [[0.1113, 0.0494], [0.0339, 0.1123]]),
    ):
        traces = (X, PlattCrossFitCalibrator(**how).fit_transform(X, y))
        errors = (step_calibration_error, lambda *a, **b: trajectory_diagnostics(*a, **b)["T-ECE"])
        found = [[error(y, F, **how) for error in errors] for F in traces]
        np.testing.assert_allclose(found, expected, atol=5e-5)


NAN = float("nan")
F = [[0.9, 0.8, 0.7], [0.4, 0.2, NAN], [0.5, 0.6, NAN], [0.3, NAN, NAN]]
Y = [1, 0, -1, 0]


def test_all_columns():
    table = step_profile(Y, F, score="brier", q_z=0.25)
    first = -np.array([0.1**2, 0.4**2, 0.25 * 0.5**2 + 0.75 * 0.5**2, 0.3**2])
    second = -np.array([0.2**2, 0.2**2, 0.25 * 0.4**2 + 0.75 * 0.6**2])
    expected = pd.DataFrame(
        {
            "n_runs": [4, 3, 1],
            "score": [first.mean(), second.mean(), -0.09],
            "std_error": [first.std(ddof=1) / 2, second.std(ddof=1) / np.sqrt(3), NAN],
            "forecast": [2.1 / 4, 1.6 / 3, 0.7],
            "success_rate": [1.25 / 4, 1.25 / 3, 1],
            "n_observed": [3, 2, 1],
            "score_observed": [first[[0, 1, 3]].mean(), -0.04, -0.09],
            "std_error_observed": [first[[0, 1, 3]].std(ddof=1) / np.sqrt(3), 0, NAN],
        },
        index=pd.RangeIndex(1, 4, name="step"),
    )
    pd.testing.assert_frame_equal(table, expected)


def test_a_weight_says_how_often_a_run_counts():
    table = step_profile(Y, F, sample_weight=[2, 1, 3, 1])
    rows = [0, 0, 1, 2, 2, 2, 3]
    twice = step_profile(np.take(Y, rows), np.take(F, rows, axis=0))
    pd.testing.assert_frame_equal(table, twice)
    halves = step_profile(Y, F, sample_weight=[0.5, 1, 1, 1])
    assert halves["n_runs"].tolist() == [3.5, 2.5, 0.5]
    assert halves["n_observed"].tolist() == [2.5, 1.5, 0.5]
    assert step_profile(Y, F, sample_weight=[0, 1, 1, 1]).index.tolist() == [1, 2]


def test_standard_errors_need_a_weight_above_one():
    scores = [-0.25, -0.81]
    for weight, error in ((1.0, NAN), (1.5, np.sqrt(1.5 * 0.28**2 / 0.5 / 1.5)), (2.0, 0.28)):
        table = step_profile(
            [1, 0], [[0.5], [0.9]], score="brier", sample_weight=[weight / 2, weight / 2]
        )
        assert table.loc[1, "score"] == pytest.approx(np.mean(scores))
        assert table.loc[1, "std_error"] == pytest.approx(error, nan_ok=True)


def test_unobserved_runs_are_failures_where_nothing_else_is_said():
    found = step_profile(Y, F, score="brier")
    pd.testing.assert_frame_equal(found, step_profile(Y, F, score="brier", q_z=0.0))
    assert found["success_rate"].tolist() == pytest.approx([1 / 4, 1 / 3, 1])
