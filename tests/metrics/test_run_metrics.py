"""Metrics of one number a run: their direction, what they need, and their values by hand."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from trajscore.metrics.run_metrics import (
    DIAGNOSTICS,
    T_ECE,
    BinnedError,
    CollapsedRuns,
    squared_error,
    statistics_of,
)

C, SUCCESS = np.array([0.2, 0.4, 0.6, 0.9]), np.array([0.0, 1.0, 0.0, 1.0])
ONES = np.ones(4)


def value_of(metric, runs, weight):
    return float(metric.statistic(runs)(np.asarray(weight, dtype=float)[None])[0])


@pytest.mark.parametrize(
    ("name", "value", "lower_is_better", "needs_probabilities"),
    [
        ("AUROC", 3 / 4, False, False),
        ("AUPRC", (1 + 2 / 3) / 2, False, False),
        ("AURC", (0 + 1 / 2 + 1 / 3 + 2 / 4) / 4, True, False),
        ("T-ECE", (0.2 + 0.6 + 0.6 + 0.1) / 4, True, True),
        ("T-Brier", (0.04 + 0.36 + 0.36 + 0.01) / 4, True, True),
    ],
)
def test_values_and_directions(name, value, lower_is_better, needs_probabilities):
    metric = DIAGNOSTICS[name]
    assert value_of(metric, CollapsedRuns(C, SUCCESS), ONES) == pytest.approx(value)
    assert metric.lower_is_better is lower_is_better
    assert metric.needs_probabilities is needs_probabilities


def test_values_that_are_not_probabilities_have_ranks_alone():
    runs = CollapsedRuns(C, SUCCESS)
    assert list(statistics_of(DIAGNOSTICS, runs, is_probability=True)) == [*DIAGNOSTICS]
    some = statistics_of(DIAGNOSTICS, runs, is_probability=False)
    assert list(some) == ["AUROC", "AUPRC", "AURC"]


def test_what_a_run_would_cost_had_it_ended_the_other_way():
    assert_allclose(squared_error(C, SUCCESS), [0.04, 0.36, 0.36, 0.01])
    assert_allclose(squared_error(np.array([0.8]), np.array([0.25])), 0.25 * 0.04 + 0.75 * 0.64)
    statistic = DIAGNOSTICS["T-Brier"].statistic(CollapsedRuns(C, SUCCESS))
    assert any(
        isinstance(part, np.ndarray) and np.allclose(part, [0.64, 0.16, 0.16, 0.81])
        for part in vars(statistic).values()
    )


def test_bins_of_calibration_errors():
    assert (T_ECE.n_bins, T_ECE.strategy) == (10, "quantile")
    two = BinnedError("", n_bins=2)
    # below and above the median: (.3, 1/2) and (.75, 1/2)
    assert value_of(two, CollapsedRuns(C, SUCCESS), ONES) == pytest.approx((0.2 + 0.25) / 2)
    wide = BinnedError("", n_bins=2, strategy="uniform")
    assert value_of(wide, CollapsedRuns(C, SUCCESS), ONES) == pytest.approx((0.2 + 0.25) / 2)
    # the weight of the first run moves the median below the second
    heavy = CollapsedRuns(C, SUCCESS, np.array([3.0, 1, 1, 1]))
    gaps = abs(0.2 * 1) + abs((0.4 + 0.6 + 0.9) - 2)
    assert value_of(two, heavy, ONES) == pytest.approx(gaps / 4)


def test_ties_are_counted_once():
    runs = CollapsedRuns(np.array([0.5, 0.5, 0.1]), np.array([1.0, 0, 0]))
    assert runs.ties is runs.ties
    assert runs.ties.confidence.tolist() == [0.1, 0.5]
    assert value_of(DIAGNOSTICS["AUROC"], runs, np.ones(3)) == 0.75


@pytest.mark.parametrize("n_bins", [1, 2])
def test_calibration_error_over_bins_by_hand(n_bins):
    runs = CollapsedRuns(C, SUCCESS)
    # gaps -.2, .6, -.6, .1 of the runs, of which the first two share the lower of two bins
    expected = 0.1 / 4 if n_bins == 1 else (0.4 + 0.5) / 4
    found = value_of(BinnedError("", n_bins=n_bins), runs, ONES)
    assert found == pytest.approx(abs(expected))
