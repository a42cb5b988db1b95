"""Ranking from counts on a grid, by hand on few runs."""

import numpy as np
import pandas as pd
import pytest

from trajscore import TrajectoryArray
from trajscore.inference.units import any_units
from trajscore.metrics import trajectory_diagnostics
from trajscore.streaming import RankingAccumulator
from trajscore.streaming._ranking import _split_cells

X = TrajectoryArray([0.9, 0.9, 0.1, 0.6, 0.6, 0.3], np.ones(6, dtype=int))
Y = np.array([1, 0, 0, 1, 1, 0])


def counted(y=Y, traces=X, **options):
    return RankingAccumulator(**options).update(y, traces)


def test_values_are_those_of_all_runs_in_memory():
    found, exact = counted().compute(), trajectory_diagnostics(Y, X)
    for name in ("AUROC", "AUPRC", "AURC"):
        assert found.loc[name, "value"] == pytest.approx(exact[name], rel=1e-12)
    assert found.loc["T-ECE", "value"] == pytest.approx(exact["T-ECE"], abs=1e-6)


def test_auroc_by_hand():
    # of 9 pairs 6 are in order, 2 are tied with the failure at 0.9 above, 1 is a tie
    row = counted().compute().loc["AUROC"]
    assert row["value"] == pytest.approx(6.5 / 9)
    assert (row["least"], row["most"]) == pytest.approx((6 / 9, 7 / 9))


@pytest.mark.parametrize("name", ["AUPRC", "AURC"])
def test_without_a_grid_failures_of_a_cell_rank_before_or_after_its_successes(name):
    row = counted().compute().loc[name]
    values = []
    for shift in (-1e-9, 1e-9):  # the failure at 0.9 below, then above the success there
        moved = X.with_cells(X.cells + shift * np.array([0, 1, 0, 0, 0, 0]))
        values.append(trajectory_diagnostics(Y, moved)[name])
    assert (row["least"], row["most"]) == pytest.approx((min(values), max(values)))
    assert row["least"] <= row["value"] <= row["most"]
    assert row["least"] < row["most"]


def test_intervals_are_those_of_influences_of_runs():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 80)
    traces = TrajectoryArray(rng.random(80).round(2), np.ones(80, dtype=int))
    narrow, wide = (counted(y, traces).compute(level).loc["AUROC"] for level in (0.8, 0.95))
    assert wide["low"] < narrow["low"] < narrow["value"] < narrow["high"] < wide["high"]
    # DeLong's variance, on the logit scale
    good, bad = traces.cells[y == 1], traces.cells[y == 0]
    wins = (good[:, None] > bad) + 0.5 * (good[:, None] == bad)
    auroc, n = wins.mean(), len(y)
    squares = ((wins.mean(axis=1) - auroc) ** 2).sum() / len(good) ** 2
    squares += ((wins.mean(axis=0) - auroc) ** 2).sum() / len(bad) ** 2
    half = any_units(None, n).t_quantile(n, 0.95) * np.sqrt(squares) / (auroc * (1 - auroc))
    logits = np.log(auroc / (1 - auroc)) + np.array([-half, half])
    expected = 1 / (1 + np.exp(-logits))
    np.testing.assert_allclose(wide[["low", "high"]].to_numpy(float), expected, rtol=0.01)
    ece = counted(y, traces).compute().loc["T-ECE"]
    assert np.isnan(ece["low"]) == np.isnan(ece["high"]) == True  # noqa: E712
    assert ece["least"] == ece["most"] == ece["value"]


def test_calibration_error_by_hand():
    # two confidences, each in bins of their own: 0.2 came true once in 2, 0.8 never
    few = TrajectoryArray([0.2, 0.2, 0.8, 0.8], np.ones(4, dtype=int))
    error = counted([1, 0, 0, 0], few).compute().loc["T-ECE", "value"]
    assert error == pytest.approx((abs(1 - 0.4) + abs(0 - 1.6)) / 4)


def test_a_signal_that_is_not_a_probability_has_no_calibration_error():
    signal = X.with_cells(100 * X.cells - 50)
    found = counted(traces=signal, bounds=(-50, 50)).compute()
    assert "T-ECE" not in found.index
    pd.testing.assert_series_equal(
        found["value"], counted().compute()["value"].drop("T-ECE"), rtol=1e-12
    )


@pytest.mark.parametrize("phi", ["last", "mean", "min", "weighted"])
def test_traces_are_collapsed(phi):
    long = TrajectoryArray.from_list([[0.9, 0.2], [0.3, 0.6], [0.8, 0.7], [0.1, 0.4]])
    y = [1, 0, 1, 0]
    for how in ({}, {"weights": "uniform"}):
        found = counted(y, long, phi=phi, **how).compute()
        exact = trajectory_diagnostics(y, long, phi=phi, **how)
        assert found.loc["AUROC", "value"] == pytest.approx(exact["AUROC"])
    with pytest.raises(ValueError, match="phi"):
        RankingAccumulator(phi="max")


def test_grades_are_parts_of_both_outcomes():
    once = counted([0.25, 1, 0], X[:3])
    np.testing.assert_allclose(once.sums[:, once.sums[:2].any(axis=0)].sum(axis=1),
                               [1.75, 1.25, 1.9])  # fmt: skip


def test_merged_counts_are_those_of_all():
    merged = counted(Y[:2], X[:2]).merge(counted(Y[2:], X[2:]))
    pd.testing.assert_frame_equal(merged.compute(), counted().compute())
    with pytest.raises(ValueError, match="differ in phi"):
        merged.merge(RankingAccumulator("last"))


def test_no_runs_no_numbers():
    with pytest.raises(ValueError, match="There are no runs yet"):
        RankingAccumulator().compute()


@pytest.mark.parametrize("forecast", [0.0, 0.3, 1.0])
def test_a_constant_forecast_of_the_same_runs(forecast):
    direct = counted(traces=X.with_cells(np.full(6, forecast)))
    np.testing.assert_allclose(counted()._constant(forecast).sums, direct.sums)
    row = counted()._constant(forecast).compute().loc["AUROC"]
    assert (row["value"], row["least"], row["most"]) == (0.5, 0, 1)


def test_cells_are_split_in_two():
    failures, successes = np.array([1.0, 2.0]), np.array([3.0, 4.0])
    low, high = _split_cells(failures, successes, 0), _split_cells(failures, successes, 1)
    np.testing.assert_array_equal(low, [[1, 0, 2, 0], [0, 3, 0, 4]])
    np.testing.assert_array_equal(high, [[0, 1, 0, 2], [3, 0, 4, 0]])


@pytest.mark.parametrize(("outcome", "auprc", "aurc"), [(0, 1, 1), (1, np.nan, 0)])
def test_runs_of_one_outcome(outcome, auprc, aurc):
    found = counted([outcome] * 2, [[0.9], [0.2]]).compute()["value"]
    expected = [np.nan, auprc, aurc, (abs(outcome - 0.9) + abs(outcome - 0.2)) / 2]
    np.testing.assert_allclose(found[["AUROC", "AUPRC", "AURC", "T-ECE"]], expected, atol=1e-6)
