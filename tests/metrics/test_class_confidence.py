import numpy as np
import pandas as pd
import pytest

from trajscore.metrics import class_confidence, ecuas_from_confidence, ecuas_score


def test_shares_of_draws_one_question_at_a_time(rng):
    question = rng.integers(0, 20, 300)
    answer = np.array([f"c{k}" for k in rng.integers(0, 6, 300)])
    count = rng.integers(0, 4, 300)
    found = class_confidence(question, answer, count=count)
    assert found.index.tolist() == sorted(set(question.tolist()))
    for one, row in found.iterrows():
        here = question == one
        votes = pd.Series(count[here]).groupby(answer[here]).sum()  # sorted, so the first is best
        assert row["decision"] == votes.idxmax()
        assert row["confidence"] == pytest.approx(votes.max() / votes.sum())
        assert row["u"] == pytest.approx(1 - votes.max() / votes.sum())
    rows = rng.permutation(np.repeat(np.arange(300), count))
    pd.testing.assert_frame_equal(found, class_confidence(question[rows], answer[rows]))


def test_probabilities_leave_the_rest_to_what_was_not_seen():
    table = pd.DataFrame(
        {"q": list("xxxyz"), "a": list("abbcd"), "p": [0.4, 0.3, 0.2, 1.00001, 0.2]}
    )
    found = class_confidence(table["q"], table["a"], proba=table["p"])
    assert found["decision"].tolist() == ["b", "c", "d"]
    np.testing.assert_allclose(found["confidence"], [0.5, 1.0, 0.2], rtol=1e-12)
    np.testing.assert_allclose(found["u"], [0.5, 0.0, 0.8], rtol=1e-12)
    assert found.index.name == "question"
    nothing = class_confidence(["q", "q"], ["b", "a"], proba=[0.0, 0.0])
    assert nothing.loc["q"].tolist() == ["a", 0, 1]
    # ties go to the first class whatever the rounding
    for proba in ([0.1, 0.2, 0.3], [0.2, 0.1, 0.3]):
        found = class_confidence([1, 1, 1], ["b", "b", "a"], proba=proba)
        assert found["decision"].item() == "a"


def test_the_cost_is_that_of_the_distribution_over_classes(rng):
    P, y = rng.dirichlet(np.ones(4), 30), rng.integers(0, 4, 30)
    # every class has two wordings
    wording = rng.random((30, 4))
    proba = np.stack([P * wording, P * (1 - wording)], axis=2).ravel()
    question, answer = np.repeat(np.arange(30), 8), np.tile(np.repeat(np.arange(4), 2), 30)
    found = class_confidence(question, answer, proba=proba)
    np.testing.assert_array_equal(found["decision"], P.argmax(axis=1))
    for n in (0, 1):
        cost = ecuas_from_confidence(found["decision"] == y, found["confidence"], n=n, n_classes=4)
        assert cost == pytest.approx(ecuas_score(y, P, n=n, labels=range(4)), rel=1e-9)
