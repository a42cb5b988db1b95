"""Entropy of sampled answers: meanings, weights, and traces of means so far."""

import numpy as np
import pytest

from trajscore.io import Run, Step
from trajscore.tracer import SemanticEntropy

LOG2 = np.log(2)


def entropy(answers, log_probs=None, equivalence=None):
    """Of one step, with answers as they are or as objects with log-probabilities."""
    if log_probs is not None:
        pairs = zip(answers, log_probs, strict=True)
        answers = [{"text": text, "logprob": number} for text, number in pairs]
    run = Run("a", [Step("agent", "x", extra={"samples": answers})])
    return SemanticEntropy(equivalence=equivalence).fit([run]).score_samples([run])[0]


def test_entropies_by_hand():
    quarter = -0.75 * np.log(0.75) - 0.25 * np.log(0.25)
    for answers, log_probs, equivalence, expected in [
        (["yes"], None, None, 0),
        (["Yes ", " yes", "YES"], None, None, 0),
        (["a b", "A  b", "ab"], None, None, np.log(3) - 2 / 3 * LOG2),
        (["a", "b", "c", "d"], None, None, 2 * LOG2),
        (["a", "b", "c", "d"], None, lambda a, b: (a < "c") == (b < "c"), LOG2),
        (["a", "b"], np.log([0.6, 0.2]), None, quarter),
        (["a", "b"], [0, -np.inf], None, 0),
        (["a", "b"], [-1, None], None, LOG2),  # all alike, where one has no probability
    ]:
        assert entropy(answers, log_probs, equivalence) == pytest.approx(expected), answers


def test_bad_samples_are_named_with_their_place():
    for answers, log_probs, problem in [
        ("yes", None, "answers .*list"),
        (["a", ["b"]], None, "answer 1 is list"),
        ([None], None, "answer 0 is NoneType"),
        (["a", "b"], [-1, np.nan], "log-probability"),
        (["a", "b"], [-1, 0.1], "log-probability"),
        (["a", "b"], [-np.inf, -np.inf], "log_probs .*-inf"),
    ]:
        with pytest.raises(ValueError, match=rf"run 'a' \(row 0\), step 1, samples: .*{problem}"):
            entropy(answers, log_probs)


def objects(*pairs):
    return [{"text": text, "logprob": logprob} for text, logprob in pairs]


def test_means_so_far():
    samples = [None, ["a", "b"], [], ("x", "3", "3"), objects(("a", -1), ("b", None)),
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
