"""Ranks, costs and errors of one confidence for each run."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from sklearn.metrics import average_precision_score, brier_score_loss, roc_auc_score

from refused import not_refused
from trajscore import TraceAggregator, metrics
from trajscore.metrics import aurc, risk_coverage_curve
from trajscore.metrics import trajectory_diagnostics as diagnostics

OWN = {"weights": "linear_front", "horizon": "own"}  # the convention of the paper
# outcomes in quarters, confidences, weights
samples = st.lists(
    st.tuples(st.integers(0, 4), st.integers(0, 4), st.integers(1, 6)), min_size=2, max_size=30
).filter(lambda rows: any(y < 4 for y, *_ in rows) and any(y > 0 for y, *_ in rows))


@settings(max_examples=25)
@given(samples, st.randoms(use_true_random=False))
def test_rank_metrics_are_scikit_learns(rows, random):
    quarters, c, counts = np.array(rows).T
    y, F, weight = quarters / 4, c[:, None] / 4, counts * 0.7
    found = diagnostics(y, F, sample_weight=weight)
    assert found.index.tolist() == ["AUROC", "AUPRC", "AURC", "T-ECE", "T-Brier"]
    # a grade is a success and a failure by weight
    outcome, twice = np.repeat([1, 0], len(y)), np.tile(c / 4, 2)
    parts = {"sample_weight": np.r_[weight * y, weight * (1 - y)]}
    assert found["AUROC"] == pytest.approx(roc_auc_score(outcome, twice, **parts))
    assert found["AUPRC"] == pytest.approx(average_precision_score(1 - outcome, -twice, **parts))
    assert found["T-Brier"] == pytest.approx(brier_score_loss(outcome, twice, **parts))
    of_parts = diagnostics(outcome, twice[:, None], **parts)
    np.testing.assert_allclose(found, of_parts, rtol=0, atol=1e-12)
    # weights are counts, and the order of rows does not matter
    again = np.repeat(np.arange(len(y)), counts)
    random.shuffle(again)
    weighted = diagnostics(y, F, sample_weight=counts)
    np.testing.assert_allclose(weighted, diagnostics(y[again], F[again]), rtol=0, atol=1e-12)
    won = quarters > 1
    if 0 < won.sum() < len(won):
        assert diagnostics(won, F)["AURC"] == pytest.approx(aurc(won, c), abs=1e-12)
        assert diagnostics(won, F)["AUROC"] == pytest.approx(roc_auc_score(won, c), abs=1e-12)


def test_aurc_of_fractional_weights_continues_harmonic_numbers():
    def harmonic(x):
        return quad(lambda t: (1 - t**x) / (1 - t), 0, 1)[0]

    # a right run above a wrong one: the mean over k of (k - 1.5) / k for k from 1.5 to 2.75
    found = diagnostics([1, 0], [[0.9], [0.1]], sample_weight=[1.5, 1.25])["AURC"]
    expected = (1.25 - 1.5 * (harmonic(2.75) - harmonic(1.5))) / 2.75
    assert found == pytest.approx(expected, rel=1e-9)


@pytest.mark.filterwarnings("ignore:horizon=2 leaves:UserWarning")
def test_a_trace_is_collapsed_first():
    traces, y = [[0.9, 0.6, 0.3], [0.2]], [1, 0]
    early = (0.9 + 0.6 / 2**0.5 + 0.3 / 3**0.5) / (1 + 1 / 2**0.5 + 1 / 3**0.5)
    for how, expected in (
        ({"phi": "last"}, 0.3), ({"phi": "mean"}, 0.6), ({"phi": "min"}, 0.3), ({}, early),
        (OWN, (3 * 0.9 + 2 * 0.6 + 0.3) / 6),
        ({"weights": "exponential_front"}, (4 * 0.9 + 2 * 0.6 + 0.3) / 7),
        ({"weights": "linear_front", "horizon": 2}, (2 * 0.9 + 0.6) / 3),
    ):  # fmt: skip
        collapsed = (
            TraceAggregator(**{"phi": "weighted", **how}).fit(traces, y).predict_proba(traces)[:, 1]
        )
        np.testing.assert_allclose(collapsed, [expected, 0.2], err_msg=str(how))
        found = diagnostics(y, traces, **how)["T-Brier"]
        assert found == pytest.approx(((1 - expected) ** 2 + 0.04) / 2), how


orders = st.lists(st.tuples(st.integers(0, 1), st.integers(0, 3)), min_size=1, max_size=5)


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
@given(orders)
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
