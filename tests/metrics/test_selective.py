import itertools
import tracemalloc

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

    def generalised(wrong):  # area under a polygon from (0, 0)
        reached = np.r_[0, np.cumsum(wrong)] / len(wrong)
        return np.mean((reached[1:] + reached[:-1]) / 2)

    expected = mean_over_orders(correct, c, generalised)
    assert metrics.augrc(correct, c) == pytest.approx(expected, abs=1e-12)


def test_curve():
    correct, c = np.array([1, 0, 1, 0]), np.array([0.9, 0.9, 0.5, 0.1])
    coverage, risk, threshold = metrics.risk_coverage_curve(correct, c)
    assert coverage.tolist() == [0.5, 0.75, 1]
    np.testing.assert_allclose(risk, [0.5, 1 / 3, 0.5])
    assert threshold.tolist() == [0.9, 0.5, 0.1]


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


def test_weights_are_counts():
    correct, c = np.array([1, 0, 1, 1, 0]), np.array([0.9, 0.8, 0.7, 0.6, 0.6])
    counts = np.array([2, 1, 0, 3, 1])
    rows = np.repeat(np.arange(5), counts)
    for metric in (metrics.aurc, metrics.augrc):
        weighted = metric(correct, c, sample_weight=counts)
        assert weighted == pytest.approx(metric(correct[rows], c[rows]))
    table = metrics.Answers.from_confidence(correct, c, sample_weight=counts).metrics()
    again = metrics.Answers.from_confidence(correct[rows], c[rows]).metrics()
    np.testing.assert_allclose(table, again, rtol=1e-12)
    for relative in (counts / counts.sum(), np.full(5, 0.1)):
        with pytest.raises(ValueError, match="scale them to add up to the number of samples"):
            metrics.aurc(correct, c, sample_weight=relative)
        with pytest.raises(ValueError, match="scale them to add up to the number of samples"):
            metrics.Answers.from_confidence(correct, c, sample_weight=relative).metrics()
    assert metrics.aurc([0], [0.5], sample_weight=[1]) == 1


def test_counts_cost_no_memory(rng):
    # 20,000 runs weighted by 10^10 tokens
    n = 20_000
    correct, c, tokens = rng.integers(0, 2, n), rng.integers(0, 5000, n), rng.integers(1, 10**6, n)
    tracemalloc.start()
    area = metrics.aurc(correct, c, sample_weight=tokens)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 * 2**20
    # weights that are almost whole go another way
    assert metrics.aurc(correct, c, sample_weight=tokens + 1e-4) == pytest.approx(area, abs=1e-9)


def test_large_counts_are_samples_too(rng):
    # beyond the harmonic numbers that are looked up
    correct, c, counts = rng.integers(0, 2, 40), rng.integers(0, 9, 40), rng.integers(1, 9000, 40)
    repeated = np.repeat(np.arange(40), counts)
    assert len(repeated) > 100_000
    expected = metrics.aurc(correct[repeated], c[repeated])
    assert metrics.aurc(correct, c, sample_weight=counts) == pytest.approx(expected, rel=1e-12)
    order = np.argsort(-c[repeated], kind="stable")
    wrong = 1 - correct[repeated][order]
    size = np.unique(-c[repeated][order], return_inverse=True)[1]
    rate = (np.bincount(size, wrong) / np.bincount(size))[size]
    by_hand = np.mean(np.cumsum(rate) / np.arange(1, len(rate) + 1))
    assert expected == pytest.approx(by_hand, rel=1e-10)


@pytest.mark.parametrize("total", [65535, 65536, 65537])
def test_counts_up_to_the_last_that_is_looked_up(total):
    # one wrong answer, the most confident; then only right ones
    expected = np.mean(1 / np.arange(1, total + 1))
    found = metrics.aurc([0, 1], [0.9, 0.1], sample_weight=[1, total - 1])
    assert found == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("scale", [1e160, 1e300])
def test_huge_weights(scale):
    correct, c, weight = [1, 0, 1, 0], [0.9, 0.8, 0.3, 0.2], np.array([3, 2, 1, 4])
    huge = {"sample_weight": weight * scale}
    usual = {"sample_weight": weight * 1e9}
    for function in (metrics.aurc, metrics.augrc):
        assert function(correct, c, **huge) == pytest.approx(function(correct, c, **usual))
    traces = np.array(c)[:, None]
    np.testing.assert_allclose(
        metrics.trajectory_diagnostics(correct, traces, **huge),
        metrics.trajectory_diagnostics(correct, traces, **usual),
    )


@pytest.mark.parametrize(
    ("rule", "expected"), [("mean", (1 / 2 + 1 / 3) / 3), ("trapezoid", 1 / 3)]
)
@pytest.mark.parametrize("others", [[], [0.95], [0.05], [0.99, 0.7, 0.01]])
def test_answers_that_weigh_nothing_change_nothing(rule, expected, others):
    right = [1, 0, 1, *([0] * len(others))]
    confidence = [0.9, 0.5, 0.1, *others]
    weight = [1, 1, 1, *([0] * len(others))]
    found = metrics.aurc(right, confidence, rule=rule, sample_weight=weight)
    assert found == pytest.approx(expected)
    assert metrics.augrc(right, confidence, sample_weight=weight) == pytest.approx(
        metrics.augrc([1, 0, 1], [9, 5, 1])
    )
    for part, exact in zip(
        metrics.risk_coverage_curve(right, confidence, sample_weight=weight),
        metrics.risk_coverage_curve([1, 0, 1], [0.9, 0.5, 0.1]),
        strict=True,
    ):
        np.testing.assert_allclose(part, exact)
