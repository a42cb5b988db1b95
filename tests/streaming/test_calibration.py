"""Calibration from counts on a grid, by hand on few runs."""

import numpy as np
import pytest

from trajscore import PlattCrossFitCalibrator, TrajectoryArray
from trajscore.calibration import IsotonicCrossFitCalibrator
from trajscore.metrics import step_calibration_error, tps_decomposition
from trajscore.streaming import CalibrationAccumulator

# one step a run: forecasts of 0.2 come true in 1 of 4 runs, those of 0.8 in 2 of 4
X = TrajectoryArray([0.2] * 4 + [0.8] * 4, [1] * 8)
Y = np.array([1, 0, 0, 0, 1, 1, 0, 0])
LONG = TrajectoryArray(np.linspace(0.05, 0.95, 24), [12, 12])


def counted(**options):
    return CalibrationAccumulator(**options).update(Y, X)


@pytest.mark.parametrize("n_bins", [1, 2, 10])
def test_calibration_error_by_hand(n_bins):
    errors = counted().compute(n_bins=n_bins)
    exact = (abs(0.25 - 0.2) + abs(0.5 - 0.8)) / 2 if n_bins > 1 else abs(3 / 8 - 0.5)
    assert errors["S-ECE"] == pytest.approx(exact)
    assert errors["S-ECE early"] == pytest.approx(exact)
    assert np.isnan(errors["S-ECE middle"])
    assert np.isnan(errors["S-ECE late"])
    with pytest.raises(ValueError, match="n_bins"):
        counted().compute(n_bins=0)


def test_parts_of_the_brier_score_by_hand():
    parts = counted().compute("brier")
    assert parts["miscalibration"] == pytest.approx((0.05**2 + 0.3**2) / 2)
    assert parts["discrimination"] == pytest.approx(0.125**2)
    assert parts["uncertainty"] == pytest.approx(3 / 8 * 5 / 8)
    assert parts["success_rate"] == 3 / 8


@pytest.mark.parametrize("how", [{}, {"weights": "uniform", "horizon": "own"}], ids=str)
def test_steps_of_each_part_of_a_run(how):
    y = [1, 0]
    found = CalibrationAccumulator(**how).update(y, LONG).compute()
    for part in ("early", "middle", "late"):
        exact = step_calibration_error(y, LONG, part=part, **how)
        assert found[f"S-ECE {part}"] == pytest.approx(exact, abs=1e-12)
    exact = tps_decomposition(y, LONG, **how)
    assert found["miscalibration"] == pytest.approx(exact.miscalibration, abs=1e-12)


def test_grades_count_as_parts_of_both_outcomes():
    halves = CalibrationAccumulator().update([0.5], X[:1]).compute("brier")
    assert (halves["success_rate"], halves["uncertainty"]) == (0.5, 0.25)
    assert halves["S-ECE"] == pytest.approx(0.3)


def test_merged_counts_are_those_of_all():
    merged = CalibrationAccumulator().update(Y[:3], X[:3])
    merged.merge(CalibrationAccumulator().update(Y[3:], X[3:]))
    assert merged.n_runs == counted().n_runs == 8
    assert merged.divisor == pytest.approx(counted().divisor)
    np.testing.assert_allclose(merged.compute(), counted().compute())


def test_no_runs_no_numbers():
    with pytest.raises(ValueError, match="There are no runs yet"):
        CalibrationAccumulator().compute()
    assert CalibrationAccumulator().update([], TrajectoryArray([], [])).n_runs == 0


def test_values_of_one_cell_are_pooled_at_their_mean():
    near = X.with_cells(X.cells + np.tile([0.0, 1e-9], 4))
    counts = CalibrationAccumulator().update(Y, near)
    sample = counts._pooled()
    np.testing.assert_allclose(sample.values, [0.2 + 5e-10, 0.8 + 5e-10], rtol=1e-12)
    np.testing.assert_allclose(sample.success, [1, 2])
    np.testing.assert_allclose(sample.failure, [3, 2])
    assert sample.n_runs == 8
    by_outcome = counts._by_outcome()
    np.testing.assert_allclose(by_outcome.success, [1, 0, 2, 0])
    np.testing.assert_allclose(by_outcome.failure, [0, 3, 0, 2])
    means = [0.2, 0.2 + 2e-9 / 3, 0.8 + 5e-10, 0.8 + 5e-10]
    np.testing.assert_allclose(by_outcome.values, means, rtol=1e-12)


@pytest.mark.parametrize("forecast", [0.0, 0.3, 1.0])
def test_a_constant_forecast_of_the_same_runs(forecast):
    y = [1, 0]
    counts = CalibrationAccumulator().update(y, LONG)
    same = LONG.with_cells(np.full(24, forecast))
    direct = CalibrationAccumulator().update(y, same)
    constant = counts._constant(forecast)
    assert (constant.n_runs, constant.divisor) == (counts.n_runs, counts.divisor)
    np.testing.assert_allclose(constant.sums, direct.sums, rtol=1e-12)


# ------------------------------------------------------------------ maps


ENDS = np.array([0.2, 0.8])


def test_isotonic_regression_of_few_values_is_that_of_memory():
    calibrator = IsotonicCrossFitCalibrator(cv=2)
    exact = calibrator.fit(X, Y).full_map_(ENDS)
    np.testing.assert_allclose(counted().fit(calibrator)(ENDS), exact, atol=1e-9)


@pytest.mark.parametrize("how", [{}, {"weights": "uniform"}, {"horizon": "own"}], ids=str)
def test_a_strong_penalty_means_the_same_as_in_memory(how):
    calibrator = PlattCrossFitCalibrator(C=1e-2, cv=2, **how)
    values = np.array([0.1, 0.5, 0.9])
    found = counted(**how).fit(calibrator)(values)
    np.testing.assert_allclose(found, calibrator.fit(X, Y).full_map_(values), atol=1e-7)
    twice = counted(**how).merge(counted(**how)).fit(calibrator)(values)
    assert np.ptp(twice) > np.ptp(found)  # more runs outweigh the penalty


def test_signals_between_bounds():
    signal = X.with_cells(100 * X.cells)
    counts = CalibrationAccumulator(bounds=(0, 100)).update(Y, signal)
    exact = counted().fit(IsotonicCrossFitCalibrator())(ENDS)
    fitted = counts.fit(IsotonicCrossFitCalibrator())
    np.testing.assert_allclose(fitted(100 * ENDS), exact, atol=1e-9)
    with pytest.raises(ValueError, match=r"outside \[0, 1\]"):
        CalibrationAccumulator().update(Y, signal)
    with pytest.raises(ValueError, match="differ in grid"):
        counts.merge(CalibrationAccumulator())


@pytest.mark.parametrize("label", [0, 1])
def test_maps_need_both_outcomes(label):
    counts = CalibrationAccumulator().update([label] * 8, X)
    with pytest.raises(ValueError, match="needs both successes and failures"):
        counts.fit(PlattCrossFitCalibrator())


def test_maps_need_a_calibrator_with_the_same_weights():
    with pytest.raises(ValueError, match="calibrator must be a cross-fit calibrator .*, got 'a'"):
        counted().fit("a")
    with pytest.raises(ValueError, match="has weights uniform, the accumulator early"):
        counted().fit(PlattCrossFitCalibrator(weights="uniform"))
