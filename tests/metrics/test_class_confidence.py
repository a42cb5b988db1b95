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
    once = class_confidence(np.repeat(question, count), np.repeat(answer, count))
    pd.testing.assert_frame_equal(found, once)


def test_order_of_rows_does_not_matter(rng):
    question, answer = rng.integers(0, 9, 80), rng.integers(0, 3, 80)
    order = rng.permutation(80)
    pd.testing.assert_frame_equal(
        class_confidence(question, answer), class_confidence(question[order], answer[order])
    )


def test_probabilities_leave_the_rest_to_what_was_not_seen():
    found = class_confidence(["q", "q", "q"], ["a", "b", "b"], proba=[0.4, 0.3, 0.2])
    assert found.loc["q"].tolist() == ["b", 0.5, 0.5]


def test_ties_go_to_the_first_class_whatever_the_rounding():
    for proba in ([0.1, 0.2, 0.3], [0.2, 0.1, 0.3]):
        found = class_confidence([1, 1, 1], ["b", "b", "a"], proba=proba)
        assert found["decision"].item() == "a"


def test_the_cost_is_that_of_the_distribution_over_classes(rng):
    P = rng.dirichlet(np.ones(4), 30)
    y = rng.integers(0, 4, 30)
    # every class has two wordings
    wording = rng.random((30, 4))
    proba = np.stack([P * wording, P * (1 - wording)], axis=2).ravel()
    question, answer = np.repeat(np.arange(30), 8), np.tile(np.repeat(np.arange(4), 2), 30)
    found = class_confidence(question, answer, proba=proba)
    np.testing.assert_array_equal(found["decision"], P.argmax(axis=1))
    for n in (0, 1):
        cost = ecuas_from_confidence(found["decision"] == y, found["confidence"], n=n, n_classes=4)
        assert cost == pytest.approx(ecuas_score(y, P, n=n, labels=range(4)), rel=1e-9)


def test_frames_and_columns_are_taken():
    table = pd.DataFrame({"q": ["x", "x", "y"], "a": [1, 1, 2], "p": [0.5, 0.25, 1.00001]})
    found = class_confidence(table["q"], table["a"], proba=table["p"])
    assert found["confidence"].tolist() == [0.75, 1.0]
    assert found["u"].tolist() == [0.25, 0.0]
    assert found.index.name == "question"


@pytest.mark.parametrize(
    ("question", "answer", "how", "message"),
    [
        (["q", None], ["a", "b"], {}, "row 1: question is missing"),
        (["q", "q"], ["a", None], {}, "row 1: answer is missing"),
        (["q", "q"], ["a"], {}, "answer must be 2 labels"),
        (["q"], ["a"], {"count": [1], "proba": [1]}, "give count or proba, not both"),
        (["q", "q"], ["a", "b"], {"count": [1]}, r"count must be 2 numbers, got shape \(1,\)"),
        (["q", "q"], ["a", "b"], {"count": [1, -1]}, "row 1: count is -1; it must be finite"),
        (["q", "q"], ["a", "b"], {"proba": [0.5, np.nan]}, "row 1: proba is nan"),
        (["p", "q"], ["a", "b"], {"count": [1, 0]}, "question q: all its counts are zero"),
        (
            ["q", "q"],
            ["a", "a"],
            {"proba": [0.7, 0.7]},
            "question q: its probabilities add up to 1.4",
        ),
        ([], [], {}, "there are no answers; give at least one"),
    ],
)
def test_refused(question, answer, how, message):
    with pytest.raises(ValueError, match=message):
        class_confidence(question, answer, **how)


def test_questions_are_one_label_per_sample():
    with pytest.raises(ValueError, match=r"one label per sample, got shape \(1, 2\)"):
        class_confidence([["q", "q"]], ["a", "b"])


def test_the_question_whose_probabilities_add_up_to_too_much_is_named():
    question, answer = [1, 1, 2, 2, 3], ["a", "b", "a", "b", "a"]
    with pytest.raises(ValueError, match=r"question 2: its probabilities add up to 1\.3; "):
        class_confidence(question, answer, proba=[0.5, 0.5, 0.6, 0.7, 0.2])
    found = class_confidence(question, answer, proba=[0.5, 0.4, 0.3, 0.7, 0.2])
    assert found["decision"].tolist() == ["a", "b", "a"]
    np.testing.assert_allclose(found["confidence"], [0.5, 0.7, 0.2])
    np.testing.assert_allclose(found["u"], [0.5, 0.3, 0.8])
