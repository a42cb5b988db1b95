import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trajscore import metrics

samples = st.lists(st.tuples(st.integers(0, 1), st.integers(0, 3)), min_size=1, max_size=6)


def mean_over_orders(correct, c, area):
    values = []
    for order in itertools.permutations(range(len(c))):
        ranked = sorted(order, key=lambda k: -c[k])
        values.append(area(1 - correct[ranked]))
    return np.mean(values)


@given(samples)
def test_areas_are_means_over_all_orders_of_ties(rows):
    correct, c = np.array(rows).T
    k = np.arange(1, len(c) + 1)
    expected = mean_over_orders(correct, c, lambda wrong: np.mean(np.cumsum(wrong) / k))
    assert metrics.aurc(correct, c) == pytest.approx(expected, abs=1e-12)
    assert metrics.auarc(correct, c) == pytest.approx(1 - expected, abs=1e-12)

    def generalised(wrong):  # area under a polygon from (0, 0)
        reached = np.r_[0, np.cumsum(wrong)] / len(wrong)
        return np.mean((reached[1:] + reached[:-1]) / 2)

    expected = mean_over_orders(correct, c, generalised)
    assert metrics.augrc(correct, c) == pytest.approx(expected, abs=1e-12)


def test_excess_is_zero_for_a_perfect_ranking():
    correct = np.array([1, 1, 0, 1, 0])
    assert metrics.excess_aurc(correct, correct + 0.1) == pytest.approx(0)
    assert metrics.excess_aurc(correct, np.zeros(5)) > 0


def test_curve_and_recall():
    correct, c = np.array([1, 0, 1, 0]), np.array([0.9, 0.9, 0.5, 0.1])
    coverage, risk, threshold = metrics.risk_coverage_curve(correct, c)
    assert coverage.tolist() == [0.5, 0.75, 1]
    np.testing.assert_allclose(risk, [0.5, 1 / 3, 0.5])
    assert threshold.tolist() == [0.9, 0.5, 0.1]
    assert metrics.fpr_at_recall(correct, c) == 0.5
    assert metrics.fpr_at_recall(correct, c, recall=0.5) == 0.5
    with pytest.raises(ValueError, match="all answers are alike"):
        metrics.fpr_at_recall([1, 1], [0.5, 0.6])


def test_accuracy_rejection_is_risk_coverage_mirrored():
    correct, c = np.array([1, 0, 1, 0]), np.array([0.9, 0.9, 0.5, 0.1])
    rejection, accuracy, threshold = metrics.accuracy_rejection_curve(correct, c)
    assert rejection.tolist() == [0, 0.25, 0.5]
    np.testing.assert_allclose(accuracy, [0.5, 2 / 3, 0.5])
    assert threshold.tolist() == [0.1, 0.5, 0.9]


@given(samples)
def test_trapezoid_rule(rows):
    correct, c = np.array(rows).T
    n = len(c)
    k = np.arange(1, n + 1)

    def trapezoid(wrong):
        risk = np.cumsum(wrong) / k
        return risk[0] if n == 1 else (risk[1:] + risk[:-1]).sum() / 2 / (n - 1)

    expected = mean_over_orders(correct, c, trapezoid)
    assert metrics.aurc(correct, c, rule="trapezoid") == pytest.approx(expected, abs=1e-12)
    with pytest.raises(ValueError, match="rule must be"):
        metrics.aurc(correct, c, rule="simpson")


def test_confidence_scores():
    correct = np.r_[np.ones(80), np.zeros(20)]
    constant = np.full(100, 0.8)
    assert metrics.confidence_brier(correct, constant, normalize=True) == pytest.approx(1)
    assert metrics.confidence_log_loss(correct, constant, normalize=True) == pytest.approx(1)
    assert metrics.confidence_ece(correct, constant) == pytest.approx(0, abs=1e-12)
    # bins are closed on the left: 0.5 belongs to [0.5, 0.6), with 0.55
    gap = metrics.confidence_ece([1, 0], [0.5, 0.55])
    assert gap == pytest.approx(abs(1 - 1.05) / 2)
    assert metrics.confidence_brier(correct, constant, normalize="doubled") == pytest.approx(2)
    with pytest.raises(ValueError, match="normalize must be False, True or 'doubled'"):
        metrics.confidence_brier(correct, constant, normalize="twice")
    for metric in (metrics.confidence_brier, metrics.confidence_log_loss):
        with pytest.raises(ValueError, match="all answers are alike"):
            metric([1, 1], [0.5, 0.6], normalize=True)


def test_weights_are_counts():
    correct, c = np.array([1, 0, 1, 1, 0]), np.array([0.9, 0.8, 0.7, 0.6, 0.6])
    counts = np.array([2, 1, 0, 3, 1])
    rows = np.repeat(np.arange(5), counts)
    for metric in (metrics.aurc, metrics.excess_aurc, metrics.auarc):
        weighted = metric(correct, c, sample_weight=counts)
        assert weighted == pytest.approx(metric(correct[rows], c[rows]))
        for relative in (counts / counts.sum(), np.full(5, 0.1)):
            with pytest.raises(ValueError, match="scale them to add up to the number of samples"):
                metric(correct, c, sample_weight=relative)
    assert metrics.aurc([0], [0.5], sample_weight=[1]) == 1


@pytest.mark.parametrize("recall", [1.5, 0, -1, np.nan, "a"])
def test_bad_recall(recall):
    with pytest.raises(ValueError, match="recall must be a number above 0 and at most 1"):
        metrics.fpr_at_recall([1, 0], [0.9, 0.5], recall=recall)


@pytest.mark.parametrize("n_bins", [0, -1, 2.5, "a"])
def test_bad_number_of_bins(n_bins):
    with pytest.raises(ValueError, match="n_bins must be a whole number >= 1"):
        metrics.confidence_ece([1, 0], [0.9, 0.5], n_bins=n_bins)
