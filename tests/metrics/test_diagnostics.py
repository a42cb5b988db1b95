import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from sklearn.metrics import average_precision_score, brier_score_loss, roc_auc_score

from refused import not_refused
from trajscore import TraceAggregator
from trajscore.metrics import trajectory_diagnostics as diagnostics

OWN = {"weights": "linear_front", "horizon": "own"}  # the convention of the paper
samples = st.lists(st.tuples(st.integers(0, 1), st.integers(0, 4)), min_size=2, max_size=30).filter(
    lambda rows: len({y for y, _ in rows}) == 2
)


@settings(max_examples=15)
@given(samples, st.randoms(use_true_random=False))
def test_rank_metrics_are_scikit_learns(rows, random):
    y, c = np.array(rows).T
    F = c[:, None] / 4
    found = diagnostics(y, F)
    assert found.index.tolist() == ["AUROC", "AUPRC", "AURC", "T-ECE", "T-Brier"]
    assert found["AUROC"] == pytest.approx(roc_auc_score(1 - y, -c), abs=1e-12)
    assert found["AUPRC"] == pytest.approx(average_precision_score(1 - y, -c), abs=1e-12)
    assert found["T-Brier"] == pytest.approx(brier_score_loss(y, c / 4), abs=1e-12)
    # weights are counts, and the order of rows does not matter
    order, weight = list(range(len(y))), np.ones(len(y))
    random.shuffle(order)
    weight[0] = 3
    repeated = np.r_[0, 0, order]
    weighted = diagnostics(y, F, sample_weight=weight)
    np.testing.assert_allclose(weighted, diagnostics(y[repeated], F[repeated]), rtol=0, atol=1e-12)


def test_aurc_of_fractional_weights_continues_harmonic_numbers():
    def harmonic(x):
        return quad(lambda t: (1 - t**x) / (1 - t), 0, 1)[0]

    # a right run above a wrong one: the mean over k of (k - 1.5) / k for k from 1.5 to 2.75
    found = diagnostics([1, 0], [[0.9], [0.1]], sample_weight=[1.5, 1.25])["AURC"]
    expected = (1.25 - 1.5 * (harmonic(2.75) - harmonic(1.5))) / 2.75
    assert found == pytest.approx(expected, rel=1e-9)


def test_bins_of_equal_weight(rng):
    def ece(y, c, **how):
        return diagnostics(y, c[:, None], **how)["T-ECE"]

    # without ties, ten bins of a hundred
    c = rng.random(1000)
    y = (rng.random(1000) < c).astype(int)
    gaps = [abs((y[part] - c[part]).sum()) for part in np.split(np.argsort(c), 10)]
    assert ece(y, c) == pytest.approx(sum(gaps) / 1000)
    assert ece(y, c, n_bins=1) == pytest.approx(abs(y.mean() - c.mean()))
    # 95 runs at .5 and 5 at .9: edges fall inside the tie, which is never split
    y = np.r_[np.arange(95) < 40, np.ones(5)].astype(int)
    c = np.r_[np.full(95, 0.5), np.full(5, 0.9)]
    assert ece(y, c) == pytest.approx(abs(40 - 47.5) / 100 + abs(5 - 4.5) / 100)
    # 20 runs, 10 bins of two: the second and the third run are tied, and go into the lower bin
    c = np.r_[0.1, 0.2, 0.2, np.linspace(0.4, 0.9, 17)]
    y = np.r_[1, 0, 1, np.tile([0, 1], 9)[:17]]
    bins = [slice(0, 3), slice(3, 4), *(slice(k, k + 2) for k in range(4, 20, 2))]
    gaps = [abs((y[part] - c[part]).sum()) for part in bins]
    assert ece(y, c) == pytest.approx(sum(gaps) / 20)
    # the weight of the first run moves the median below the second
    found = ece([0, 1, 0, 1], np.array([0.2, 0.4, 0.6, 0.9]), n_bins=2, sample_weight=[3, 1, 1, 1])
    assert found == pytest.approx((3 * 0.2 + abs((0.4 + 0.6 + 0.9) - 2)) / 6)


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


def test_bad_input(ragged):
    X, y = ragged
    rows = [
        ([], X[[]], {}, "no runs"),
        (np.r_[-1, y[1:]], X, {}, f"run '{X.ids[0]}': the outcome is not observed"),
        (y, X, {"phi": "max"}, "phi .* got 'max'"),
        (y, X, {"strategy": "equal"}, "strategy .* got 'equal'"),
        *((y, X, {"n_bins": n}, "n_bins") for n in (0, 1.5, True, None, "ten")),
    ]
    assert not not_refused(diagnostics, rows)
