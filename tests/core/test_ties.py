import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trajscore import metrics
from trajscore.core import ranking
from trajscore.core.ties import group_ties, rises


@given(st.lists(st.sampled_from([-np.inf, -3.7, -0.1, 0.0, 1e-300, 0.3, 1 - 1e-9, 1.0, np.inf])))
def test_exact_values_are_grouped_as_unique_does(values):
    values = np.array(values, dtype=float)
    distinct, group = group_ties(values)
    expected, inverse = np.unique(values, return_inverse=True)
    np.testing.assert_array_equal(distinct, expected)
    np.testing.assert_array_equal(group, inverse.ravel())


@pytest.mark.parametrize("value", [0.3, -0.3, 1e-9, 12345.678, -7e20])
def test_twelve_digits(value):
    near, far = value * (1 + 3e-13), value * (1 + 3e-12)
    assert rises(np.sort([value, near])).tolist() == [True, False]
    assert rises(np.sort([value, far])).tolist() == [True, True]
    # the smallest stands for all, whatever the order of rows
    for values in ([value, near], [near, value]):
        assert group_ties(np.array(values))[0].tolist() == [min(value, near)]


def test_means_that_are_equal_are_tied():
    y, traces = [0, 1], [[0.6, 0.3], [0.5, 0.5]]
    own = {"weights": "linear_front", "horizon": "own"}
    found = metrics.trajectory_diagnostics(y, traces, **own)  # both means are .5
    assert found["AUROC"] == found["AUPRC"] == found["AURC"] == 0.5
    assert found["T-ECE"] == pytest.approx(0, abs=1e-12)
    found = metrics.trajectory_diagnostics(y, [[0.1, 0.2], [0.15, 0.15]], phi="mean")
    assert found["AUROC"] == 0.5


def test_the_public_judge_has_864_confidences(hotpotqa):
    X, y = hotpotqa
    confidence = metrics.aggregate(X, weights="linear_front", horizon="own")
    assert len(np.unique(confidence)) == 1790
    assert len(ranking.TieGroups(confidence, y.astype(float)).confidence) == 864


def test_rounding_moves_no_metric_of_answers():
    right, c = [1, 0, 1, 0, 1], np.array([0.1 + 0.2, 0.3, 0.3, 0.7, 0.9])
    exact = np.array([0.3, 0.3, 0.3, 0.7, 0.9])
    assert metrics.aurc(right, c) == metrics.aurc(right, exact)
    assert metrics.augrc(right, c) == metrics.augrc(right, exact)
    np.testing.assert_array_equal(
        metrics.risk_coverage_curve(right, c), metrics.risk_coverage_curve(right, exact)
    )
    found = metrics.Answers.from_confidence(right, c).metrics()
    np.testing.assert_allclose(found, metrics.Answers.from_confidence(right, exact).metrics())


def test_rounding_moves_no_part_of_a_score():
    y, F = [1, 0, 0, 1], np.array([[0.3, 0.1 + 0.2], [0.1 + 0.2, 0.8], [0.3, 0.3], [0.8, 0.8]])
    for by in ("pooled", "step"):
        noisy, exact = (
            metrics.tps_decomposition(y, values, score="brier", by=by) for values in (F, F.round(3))
        )
        if by == "pooled":
            noisy, exact = (np.array([*vars(parts).values()]) for parts in (noisy, exact))
        np.testing.assert_allclose(noisy, exact, atol=1e-12)


@pytest.mark.parametrize("c", [0.07, 0.29, 0.57, 0.58])
def test_an_edge_belongs_to_the_bin_above_it(c):
    # 0.57 * 100 is 56.99999999999999
    right, n_bins = np.array([1.0, 0.0]), 100
    together = metrics.Answers.from_confidence(right, [c, c + 0.005]).metrics(n_bins=n_bins)["ECE"]
    assert together == pytest.approx(abs(1 - 2 * c - 0.005) / 2)
