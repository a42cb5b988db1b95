"""Entropy of sampled answers: meanings, weights, and traces of means so far."""

import numpy as np
import pytest

from trajscore.io import Run, Step
from trajscore.tracer import SemanticEntropy
from trajscore.tracer._semantic_entropy import semantic_entropy

LOG2 = np.log(2)


@pytest.mark.parametrize(
    ("answers", "log_probs", "equivalence", "expected"),
    [
        (["yes"], None, None, 0),
        (["Yes ", " yes", "YES"], None, None, 0),
        (["a b", "A  b", "ab"], None, None, np.log(3) - 2 / 3 * LOG2),
        (["a", "b", "c", "d"], None, None, 2 * LOG2),
        (["a", "b", "c", "d"], None, lambda a, b: (a < "c") == (b < "c"), LOG2),
        (["a", "b"], np.log([0.6, 0.2]), None, -0.75 * np.log(0.75) - 0.25 * np.log(0.25)),
        (["a", "b"], [0, -np.inf], None, 0),
    ],
)
def test_entropy(answers, log_probs, equivalence, expected):
    assert semantic_entropy(answers, log_probs, equivalence) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("answers", "log_probs", "message"),
    [
        ("yes", None, "answers must be a list of texts, not one text"),
        (["a", 3], None, "answer 1 is int, not text; leave it out"),
        ([None], None, "answer 0 is NoneType, not text"),
        (["a"], ["x"], "log_probs must be numbers"),
        (["a", "b"], [-1], "one log-probability for each of the 2 answers"),
        (["a", "b"], [-1, np.nan], "one log-probability for each of the 2 answers"),
        (["a", "b"], [-1, 0.1], "one log-probability for each of the 2 answers"),
        (["a", "b"], [-np.inf, -np.inf], "log_probs are all -inf; give at least one finite"),
    ],
)
def test_refused(answers, log_probs, message):
    with pytest.raises(ValueError, match=message):
        semantic_entropy(answers, log_probs)


def objects(*pairs):
    return [{"text": text, "logprob": logprob} for text, logprob in pairs]


def test_means_so_far():
    samples = [None, ["a", "b"], [], ("x", 3, 3), objects(("a", -1), ("b", None)),
               objects(("a", np.log(0.75)), ("b", np.log(0.25)))]  # fmt: skip
    steps = [Step("agent", "", extra={"samples": part} if part else {}) for part in samples]
    runs = [Run("a", steps), Run("b", [Step("user", "", extra={"more": ["a", "b"]})])]
    scorer = SemanticEntropy().fit(runs)
    assert scorer.n_runs_without_ == 1
    third = np.log(3) - 2 / 3 * LOG2
    last = -0.75 * np.log(0.75) - 0.25 * np.log(0.25)
    means = [np.nan, LOG2, LOG2, (LOG2 + third) / 2, (2 * LOG2 + third) / 3,
             (2 * LOG2 + third + last) / 4]  # fmt: skip
    trace = scorer.transform(runs)
    np.testing.assert_allclose(trace.cells.ravel(), [*means, np.nan])
    assert trace.channels == ("risk",)
    np.testing.assert_allclose(scorer.score_samples(runs), [means[-1], np.nan])
    np.testing.assert_allclose(
        SemanticEntropy("more").fit(runs).score_samples(runs), [np.nan, LOG2]
    )


def test_an_equivalence_of_ones_own():
    run = Run("a", [Step("agent", "x", extra={"samples": ["ab", "ac", "b"]})])
    scorer = SemanticEntropy(equivalence=lambda a, b: a[0] == b[0]).fit([run])
    assert scorer.score_samples([run]) == pytest.approx([np.log(3) - 2 / 3 * LOG2])
    no_text = Run("a", [Step("agent", "x", extra={"samples": [{"text": None}]})])
    with pytest.raises(ValueError, match="answer 0 is NoneType, not text"):
        scorer.transform([no_text])


def test_place_of_bad_samples():
    run = Run("a", [Step("agent", "", extra={"samples": ["a"]}),
                    Step("agent", "", extra={"samples": "b"})])  # fmt: skip
    with pytest.raises(ValueError, match=r"run 'a' \(row 0\), step 2, samples: answers must be"):
        SemanticEntropy().fit([run]).transform([run])
