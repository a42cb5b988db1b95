import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from sklearn.metrics import average_precision_score, brier_score_loss, roc_auc_score

from trajscore import TraceAggregator
from trajscore.metrics import aurc
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
    np.testing.assert_allclose(found, diagnostics(outcome, twice[:, None], **parts), rtol=1e-9)
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
        ({"phi": "last"}, 0.3),
        ({"phi": "mean"}, 0.6),
        ({"phi": "min"}, 0.3),
        ({}, early),
        (OWN, (3 * 0.9 + 2 * 0.6 + 0.3) / 6),
        ({"weights": "exponential_front"}, (4 * 0.9 + 2 * 0.6 + 0.3) / 7),
        ({"weights": "linear_front", "horizon": 2}, (2 * 0.9 + 0.6) / 3),
    ):
        collapsed = (
            TraceAggregator(**{"phi": "weighted", **how}).fit(traces, y).predict_proba(traces)[:, 1]
        )
        np.testing.assert_allclose(collapsed, [expected, 0.2], err_msg=str(how))
        found = diagnostics(y, traces, **how)["T-Brier"]
        assert found == pytest.approx(((1 - expected) ** 2 + 0.04) / 2), how
