"""Table 3 of the ECUAS paper, in one call."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import log_softmax, logit, softmax
from sklearn.metrics import brier_score_loss, log_loss, roc_auc_score, roc_curve
from sklearn.model_selection import StratifiedKFold, cross_val_predict

from refused import not_refused
from trajscore import metrics
from trajscore.calibration import AffineCalibrator
from trajscore.metrics import Answers

both = st.lists(st.tuples(st.integers(0, 1), st.integers(1, 9)), min_size=2, max_size=30).filter(
    lambda rows: len({right for right, _ in rows}) == 2
)


@settings(max_examples=15)
@given(both, st.sampled_from([0.5, 0.8, 0.95, 1.0]))
def test_entries_are_what_others_compute(rows, recall):
    correct, c = np.array(rows).T
    fpr, tpr, _ = roc_curve(correct, c, drop_intermediate=False)
    c = c / 10
    found = Answers.from_confidence(correct, c).metrics(recall=recall)
    rate = correct.mean()
    brier, surprise = brier_score_loss(correct, c), log_loss(correct, c)
    expected = {
        "accuracy": rate,
        "AUC": roc_auc_score(correct, c),
        "BS of confidence": brier,
        "CE of confidence": surprise,
        "N-BS of confidence": brier / (rate * (1 - rate)),
        "N-CE of confidence": surprise / log_loss(correct, np.full(len(c), rate)),
        "AURC": metrics.aurc(correct, c),
        "excess AURC": metrics.aurc(correct, c) - metrics.aurc(correct, correct),
        "AUARC": 1 - metrics.aurc(correct, c),
        "FPR at recall": fpr[tpr >= recall - 1e-12][0],
        **{f"ECUAS_{n}": metrics.ecuas_from_confidence(correct, c, n=n) for n in (0, 1, 128)},
    }
    for name, value in expected.items():
        assert found[name] == pytest.approx(value, rel=1e-9, abs=1e-12), name
    odds = Answers.from_confidence(correct, logit(c), log_odds=True).metrics(recall=recall)
    # ECE apart: a confidence on the edge of a bin may be rounded out of it
    kept = found.index != "ECE"
    np.testing.assert_allclose(odds[kept], found[kept], rtol=1e-9, atol=1e-12)


def test_calibration_error_by_hand():
    for correct, c, n_bins, expected in (
        ([1, 0, 1, 1], [0.9, 0.8, 0.7, 0.6], 10, (0.1 + 0.8 + 0.3 + 0.4) / 4),
        ([1, 0], [0.5, 0.55], 10, abs(1 - 1.05) / 2),  # bins are closed on the left
        ([1, 0, 0, 0], [0.7, 0.2, 0.1, 0.4], 1, 0.4 / 4),
    ):
        found = Answers.from_confidence(correct, c).metrics(n_bins=n_bins)["ECE"]
        assert found == pytest.approx(expected)


@pytest.mark.parametrize("right", [0, 1])
def test_answers_that_are_all_alike(right):
    table = Answers.from_confidence([right, right], [0.5, 0.6]).metrics()
    missing = ["AUC", "N-BS of confidence", "N-CE of confidence", "FPR at recall"]
    assert table.index[table.isna()].tolist() == missing
    P, y = np.tile([0.4, 0.6], (37, 1)), [right] * 37
    table = Answers.from_proba(y, P, labels=[0, 1], sample_weight=np.full(37, 0.1)).metrics()
    assert table[["N-ER", "N-BS", "N-CE", "N-ECUAS_0", "N-ECUAS_128"]].isna().all()


@pytest.mark.parametrize("eps", [1e-7, 1e-2])
def test_eps_caps_what_a_certain_error_costs(eps):
    table = Answers.from_confidence([0, 1], [1.0, 0.5], eps=eps).metrics(n=0)
    assert table["CE of confidence"] == pytest.approx((-np.log(eps) + np.log(2)) / 2)
    assert table["ECUAS_0"] == pytest.approx((eps - np.log(eps) + 0.5) / 2)
    table = Answers.from_proba([1, 0], [[1.0, 0.0], [0.5, 0.5]], eps=eps).metrics(n=[0])
    assert table["N-CE"] == pytest.approx((-np.log(eps) + np.log(2)) / 2 / np.log(2))
    # a confidence that rounding has pushed above 1 is 1
    with np.errstate(divide="ignore"):
        for P, log in (([[1.00005, 0.0]] * 2, False), (np.log([[1.00005, 0.0]] * 2), True)):
            table = Answers.from_proba([0, 1], P, log_proba=log).metrics()
            assert table["BS of confidence"] == 0.5
    # certain answers that are right still cost the clip
    table = Answers.from_confidence([1, 1], [1.0, 1.0], eps=eps).metrics()
    assert table["CE of confidence"] == pytest.approx(-np.log(1 - eps), rel=1e-8)


def test_classes_against_a_naive_system(rng):
    y = rng.integers(0, 3, 90)
    naive = np.tile(np.bincount(y) / 90, (90, 1))
    P = softmax(rng.normal(size=(90, 3)) + np.eye(3)[y], axis=1)
    weight = rng.integers(0, 3, 90)
    rows = np.repeat(np.arange(90), weight)
    normalized = ["N-ER", "N-BS", "N-CE", "N-ECUAS_0", "N-ECUAS_1", "N-ECUAS_128"]
    np.testing.assert_allclose(Answers.from_proba(y, naive).metrics()[normalized], 1)
    table = Answers.from_proba(y, P).metrics()
    # of the confidence too: ranked by its log-odds, it is the same confidence
    logs = Answers.from_proba(y, np.log(P), log_proba=True).metrics()
    np.testing.assert_allclose(logs, table, rtol=1e-9)
    repeated = Answers.from_proba(y[rows], P[rows]).metrics()
    np.testing.assert_allclose(Answers.from_proba(y, P, sample_weight=weight).metrics(), repeated)
    for n in (0, 1, 128):
        assert table[f"N-ECUAS_{n}"] == metrics.ecuas_score(y, P, n=n, normalize=True)
    squares = ((P - np.eye(3)[y]) ** 2).sum(axis=1).mean()
    assert table["N-BS"] == pytest.approx(squares / (1 - (naive[0] ** 2).sum()))
    assert table["N-CE"] == pytest.approx(log_loss(y, P) / log_loss(y, naive))
    right = P.argmax(axis=1) == y
    assert table["N-ER"] == pytest.approx((1 - right.mean()) / (1 - naive[0].max()))
    # the answer is the likeliest class
    how = {"n": [2.5], "rule": "trapezoid", "recall": 0.7}
    expected = Answers.from_confidence(right, P.max(axis=1), n_classes=3).metrics(**how)
    found = Answers.from_proba(y, P).metrics(**how)
    np.testing.assert_allclose(found[expected.index], expected, rtol=1e-12)
    assert found["AURC"] == metrics.aurc(right, P.max(axis=1), rule="trapezoid")


def test_confidences_that_saturate_are_scored_from_log_odds():
    how = {"labels": [0, 1], "log_proba": True}
    log_p = log_softmax([[50.0, 0.0], [0.0, 1.0]], axis=1)
    exact = Answers.from_proba([1, 1], log_p, **how).metrics()
    assert exact["CE of confidence"] == pytest.approx((50 + np.log1p(np.exp(-1))) / 2)
    odds = Answers.from_confidence([0, 1], [50, 1], n_classes=2, log_odds=True).metrics()
    expected = metrics.ecuas_score([1, 1], log_p, n=0, **how)
    assert odds["ECUAS_0"] == pytest.approx(expected)
    assert exact["ECUAS_0"] == pytest.approx(expected)
    # above 1 - 6e-8 confidences are alike in plain form, not in their log-odds
    log_p = log_softmax([[60.0, 0.0], [50.0, 0.0], [40.0, 0.0]], axis=1)
    assert Answers.from_proba([0, 1, 0], log_p, log_proba=True).metrics()["AUC"] == 0.5
    assert Answers.from_proba([0, 0, 1], log_p, log_proba=True).metrics()["AUC"] == 1
    assert Answers.from_proba([0, 0, 1], np.exp(log_p)).metrics()["AUC"] == 0.5
    # infinite log-odds are certain answers, and a weight of 0 leaves them out
    log_p = [[0.0, -np.inf], [-np.inf, 0.0], [np.log(0.7), np.log(0.3)]]
    odds = [np.inf, np.inf, logit(0.7)]
    infinite = ["CE of confidence", "ECUAS_0"]
    for y, correct, weight, worst in (
        ([0, 1, 1], [1, 1, 0], None, False),
        ([1, 1, 1], [0, 1, 0], None, True),
        ([1, 1, 0], [0, 1, 1], [0, 1, 1], False),
    ):
        table = Answers.from_proba(y, log_p, sample_weight=weight, **how).metrics()
        again = Answers.from_confidence(
            correct, odds, log_odds=True, n_classes=2, sample_weight=weight
        ).metrics()
        np.testing.assert_allclose(table[again.index], again)
        assert np.isinf(table[infinite]).tolist() == [worst] * 2


COLUMNS = [
    "N-ER", "ECE", "AUC", "N-CE of confidence", "N-BS of confidence", "N-CE", "N-BS", "AURC",
    "N-ECUAS_0", "N-ECUAS_1", "N-ECUAS_128",
]  # fmt: skip
PUBLISHED = {
    ("sst2_gpt2", "raw"): (
        "0.8284 0.2069 0.8059 0.9375 1.8975 0.9172 0.9204 0.1821 0.9162 0.9204 0.8348"
    ),
    ("cifar10_resnet-20", "raw"): (
        "0.0822 0.0382 0.9216 0.7942 1.5977 0.1223 0.1319 0.0092 0.2368 0.1407 0.0829"
    ),
    ("pneumoniamnist_resnet50", "cal"): (
        "0.2350 0.0101 0.8597 0.7457 1.6354 0.3361 0.2804 0.0198 0.3605 0.2804 0.2351"
    ),
}


@pytest.mark.parametrize(("name", "kind"), PUBLISHED)
def test_published_table(name, kind, public_file):
    scores = np.load(public_file("expected_cost", name, "scores.npy")).astype(np.float64)
    y = np.load(public_file("expected_cost", name, "targets.npy")).ravel().astype(int)
    log_p = log_softmax(scores, axis=1)
    if kind == "cal":
        folds = StratifiedKFold(5, shuffle=True, random_state=42)
        P = cross_val_predict(AffineCalibrator(), log_p, y, cv=folds, method="predict_proba")
        log_p = np.log(P)
    table = Answers.from_proba(y, log_p, log_proba=True).metrics(rule="trapezoid")
    table["N-BS of confidence"] *= 2  # as the paper prints it
    assert " ".join(f"{value:.4f}" for value in table[COLUMNS]) == PUBLISHED[name, kind]


def test_bad_input():
    answers = Answers.from_confidence([1, 0], [0.9, 0.5])
    rows = [({"recall": r}, "recall must") for r in (1.5, 0, -1, np.nan, "a")]
    rows += [({"n_bins": n}, "n_bins") for n in (0, -1, 2.5, "a")]
    rows += [({"n": [1, -1]}, "n must be .* -1"), ({"n": np.inf}, "n must be .* inf")]
    rows += [({"rule": "simpson"}, "rule .* got 'simpson'")]
    assert not not_refused(answers.metrics, rows)
    for answers in (
        Answers.from_decisions([1, 0], [0.5, 0.4], u_max=1),
        Answers.from_proba([0, 1], [[0.9, 0.1], [0.2, 0.8]], cost="log"),
    ):
        assert not not_refused(answers.metrics, [({}, "Answers.from_confidence")])
    with pytest.warns(UserWarning, match="1 uncertainties lie above") as caught:
        Answers.from_confidence([1, 0], [0.1, 0.9], n_classes=2).metrics()
    assert [one.filename for one in caught] == [__file__]
