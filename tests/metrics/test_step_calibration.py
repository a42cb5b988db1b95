import numpy as np
import pytest

from trajscore import PlattCrossFitCalibrator, TrajectoryArray
from trajscore.core.weights import step_weights
from trajscore.metrics import step_calibration_error, trajectory_diagnostics
from trajscore.metrics._step_calibration import step_calibration_statistics
from trajscore.metrics._weighted_steps import weighted_steps


def cells_of(y, X, weights):
    """Weight, forecast, outcome and place in the run of each step, one by one."""
    w = step_weights(X.lengths, X.horizon, weights)
    for k, length in enumerate(X.lengths):
        for t in range(1, length + 1):
            cell = X.offsets[k] + t - 1
            yield k, w[cell], X.cells[cell], y[k], (t - 0.5) / length


@pytest.mark.parametrize("weights", ["linear_front", "uniform", "linear_back"])
@pytest.mark.parametrize("part", [None, "early", "middle", "late"])
def test_bins_of_equal_width_one_step_at_a_time(ragged, rng, weights, part):
    X, y = ragged
    run_weight = rng.integers(0, 3, len(y))
    gaps, total = np.zeros(7), 0.0
    for k, w, p, label, place in cells_of(y, X, weights):
        third = "early" if place < 1 / 3 else "late" if place > 2 / 3 else "middle"
        if part in (None, third):
            gaps[min(int(p * 7), 6)] += run_weight[k] * w * (label - p)
            total += run_weight[k] * w
    how = {"weights": weights, "part": part, "n_bins": 7, "strategy": "uniform"}
    found = step_calibration_error(y, X, sample_weight=run_weight, **how)
    assert found == pytest.approx(np.abs(gaps).sum() / total, abs=1e-12)


def test_bins_of_equal_weight(rng):
    p = rng.random(1000)
    y = (rng.random(1000) < p**2).astype(int)
    runs = p.reshape(200, 5)
    same = np.repeat(y[::5], 5)
    gaps = [abs((same[part] - p[part]).sum()) for part in np.split(np.argsort(p), 10)]
    assert step_calibration_error(y[::5], runs, weights="uniform") == pytest.approx(
        sum(gaps) / 1000
    )


def test_one_step_a_run_is_the_error_of_whole_runs(rng):
    p, y = rng.integers(0, 30, 400)[:, None] / 29, rng.integers(0, 2, 400)
    weight = rng.integers(1, 4, 400)
    for strategy in ("quantile", "uniform"):
        how = {"sample_weight": weight, "strategy": strategy, "n_bins": 8}
        whole = trajectory_diagnostics(y, p, **how)["T-ECE"]
        assert step_calibration_error(y, p, **how) == pytest.approx(whole, abs=1e-13)
        assert step_calibration_error(y, p, part="middle", **how) == pytest.approx(whole)
        assert np.isnan(step_calibration_error(y, p, part="early", **how))


def test_the_base_rate_has_no_error(ragged):
    X, y = ragged
    for strategy in ("quantile", "uniform"):
        constant = X.with_cells(np.full(len(X.cells), y.mean()))
        assert step_calibration_error(y, constant, strategy=strategy) == pytest.approx(0, abs=1e-15)


def test_a_run_that_was_cut_off_has_its_steps_where_its_horizon_puts_them():
    # q_Z of the run that was cut off is .5
    cut = TrajectoryArray.from_list([[0.4, 0.4, 0.4], [0.4] * 9], horizon=[9, 9])
    assert step_calibration_error([0.5, 0.2], cut, part="early") == pytest.approx(0.05)
    assert step_calibration_error([0.5, 0.2], cut, part="late") == pytest.approx(0.2)


def test_ties_to_twelve_digits_share_a_bin():
    # the middle of a tie lies on the edge of two bins: it goes into the lower one, as one
    p = np.array([0.1, 0.3, 0.1 + 0.2, 0.9])
    exact, noisy = (
        step_calibration_error([1, 0, 1, 0], F[:, None], n_bins=2) for F in (p.round(1), p)
    )
    assert noisy == pytest.approx(exact)
    assert exact == pytest.approx((1.3 + 0.9) / 4)


def test_counts_of_runs_change_the_sums_and_not_the_bins(ragged, rng):
    X, y = ragged
    (statistic,) = step_calibration_statistics(
        weighted_steps(y.astype(float), X, "uniform"), n_bins=5, strategy="uniform"
    )
    counts = rng.integers(0, 3, (4, len(y))).astype(float)
    expected = [
        step_calibration_error(
            y, X, weights="uniform", n_bins=5, strategy="uniform", sample_weight=row
        )
        for row in counts
    ]
    np.testing.assert_allclose(statistic(counts), expected, rtol=1e-12)


def test_rows_and_order_do_not_matter(ragged, rng):
    X, y = ragged
    order = rng.permutation(len(y))
    found = step_calibration_error(y[order], X[order])
    assert found == pytest.approx(step_calibration_error(y, X), rel=1e-12)


def test_calibration_of_the_public_judge(hotpotqa):
    X, y = hotpotqa
    calibrated = PlattCrossFitCalibrator().fit_transform(X, y)
    assert step_calibration_error(y, X) == pytest.approx(0.0846, abs=5e-5)
    assert step_calibration_error(y, calibrated) == pytest.approx(0.0473, abs=5e-5)
    # the collapsed trace moves the other way
    whole = [trajectory_diagnostics(y, F)["T-ECE"] for F in (X, calibrated)]
    np.testing.assert_allclose(whole, [0.0429, 0.0778], atol=5e-5)


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"part": "first"}, "part must be .*, got 'first'"),
        ({"strategy": "kmeans"}, "strategy must be .*, got 'kmeans'"),
        ({"n_bins": 0}, "n_bins must be a whole number of at least 1"),
        ({"weights": "front"}, "unknown weights 'front'"),
    ],
)
def test_refused(how, message):
    with pytest.raises(ValueError, match=message):
        step_calibration_error([1, 0], [[0.5], [0.5]], **how)
    with pytest.raises(ValueError, match="the outcome is not observed"):
        step_calibration_error([1, -1], [[0.5], [0.5]])
    with pytest.raises(ValueError, match="there are no runs to score"):
        step_calibration_error([], TrajectoryArray.from_list([[0.5]])[[]])
