import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from refused import not_refused
from trajscore import metrics
from trajscore.metrics import aurc, risk_coverage_curve

samples = st.lists(st.tuples(st.integers(0, 1), st.integers(0, 3)), min_size=1, max_size=5)


def augrc(correct, confidence, sample_weight=None):
    """Of any confidences, which only rank, as log-odds do."""
    how = {"log_odds": True, "sample_weight": sample_weight}
    return metrics.Answers.from_confidence(correct, confidence, **how).metrics(n=())["AUGRC"]


def mean_over_orders(correct, c, area):
    values = []
    for order in itertools.permutations(range(len(c))):
        ranked = sorted(order, key=lambda k: -c[k])
        values.append(area(1 - correct[ranked]))
    return np.mean(values)


@settings(max_examples=25)
@given(samples)
def test_areas_are_means_over_all_orders_of_ties(rows):
    correct, c = np.array(rows).T
    n = len(c)

    def risk(wrong):
        return np.cumsum(wrong) / np.arange(1, n + 1)

    def trapezoid(wrong):
        r = risk(wrong)
        return r[0] if n == 1 else (r[1:] + r[:-1]).sum() / 2 / (n - 1)

    def generalised(wrong):  # area under a polygon from (0, 0)
        reached = np.r_[0, np.cumsum(wrong)] / n
        return np.mean((reached[1:] + reached[:-1]) / 2)

    expected = [
        mean_over_orders(correct, c, area)
        for area in (lambda wrong: risk(wrong).mean(), trapezoid, generalised)
    ]
    found = [aurc(correct, c), aurc(correct, c, rule="trapezoid"), augrc(correct, c)]
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)


def test_curve():
    correct, c = np.array([1, 0, 1, 0]), np.array([0.9, 0.9, 0.5, 0.1])
    coverage, risk, threshold = risk_coverage_curve(correct, c)
    assert coverage.tolist() == [0.5, 0.75, 1]
    np.testing.assert_allclose(risk, [0.5, 1 / 3, 0.5])
    assert threshold.tolist() == [0.9, 0.5, 0.1]


def test_weights_are_counts():
    correct, c = np.array([1, 0, 1, 1, 0]), np.array([0.9, 0.8, 0.7, 0.6, 0.6])
    counts = np.array([2, 1, 0, 3, 1])
    rows = np.repeat(np.arange(5), counts)
    for metric in (aurc, augrc):
        weighted = metric(correct, c, sample_weight=counts)
        assert weighted == pytest.approx(metric(correct[rows], c[rows]))
    table = metrics.Answers.from_confidence(correct, c, sample_weight=counts).metrics()
    again = metrics.Answers.from_confidence(correct[rows], c[rows]).metrics()
    np.testing.assert_allclose(table, again, rtol=1e-12)
    # shares and not counts
    for relative in (counts / counts.sum(), np.full(5, 0.1)):
        rows = [(correct, c, {"sample_weight": relative}, "sample weights add up to")]
        assert not not_refused(aurc, rows)
    for weight in (1, 0.5):
        assert aurc([0], [0.5], sample_weight=[weight]) == 1


def test_large_counts_are_samples_too(rng):
    # beyond the harmonic numbers that are looked up
    correct, c, counts = rng.integers(0, 2, 40), rng.integers(0, 9, 40), rng.integers(1, 9000, 40)
    repeated = np.repeat(np.arange(40), counts)
    assert len(repeated) > 100_000
    expected = aurc(correct[repeated], c[repeated])
    assert aurc(correct, c, sample_weight=counts) == pytest.approx(expected, rel=1e-12)
    # weights that are almost whole go another way
    near = aurc(correct, c, sample_weight=counts + 1e-6)
    assert near == pytest.approx(expected, abs=1e-9)
    for total in (65535, 65536, 65537):
        # one wrong answer, the most confident; then only right ones
        found = aurc([0, 1], [0.9, 0.1], sample_weight=[1, total - 1])
        assert found == pytest.approx(np.mean(1 / np.arange(1, total + 1)), rel=1e-12)


@pytest.mark.parametrize("others", [[], [0.95], [0.05], [0.99, 0.7, 0.01]])
def test_answers_that_weigh_nothing_change_nothing(others):
    right = [1, 0, 1, *([0] * len(others))]
    confidence = [0.9, 0.5, 0.1, *others]
    how = {"sample_weight": [1, 1, 1, *([0] * len(others))]}
    assert aurc(right, confidence, **how) == pytest.approx((1 / 2 + 1 / 3) / 3)
    assert aurc(right, confidence, rule="trapezoid", **how) == pytest.approx(1 / 3)
    assert augrc(right, confidence, **how) == pytest.approx(augrc([1, 0, 1], [9, 5, 1]))
    found = risk_coverage_curve(right, confidence, **how)
    for part, exact in zip(found, risk_coverage_curve([1, 0, 1], [0.9, 0.5, 0.1]), strict=True):
        np.testing.assert_allclose(part, exact)
