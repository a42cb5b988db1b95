"""What TRACER is measured against, against slow ways to compute it."""

import math

import numpy as np
import pytest

from trajscore import io
from trajscore.tracer import (
    MeanSurprisal,
    RunLength,
    SelfReportedConfidence,
    SemanticEntropy,
    ToolCallCount,
)
from trajscore.tracer._semantic_entropy import semantic_entropy


def test_baselines(signals):
    for scorer, name in ((MeanSurprisal(), "surprisal"), (SelfReportedConfidence(), "confidence")):
        trace = scorer.fit(signals).transform(signals)
        reads = signals[name].to_list()
        for run, values in zip(trace, reads, strict=True):
            for t in range(len(run)):
                so_far = values[: t + 1][~np.isnan(values[: t + 1])]
                expected = so_far.mean() if len(so_far) else np.nan
                if isinstance(scorer, SelfReportedConfidence):
                    expected = 1 - expected
                assert np.allclose(run[t], expected, equal_nan=True)
    calls = signals["tool_calls"].to_list()
    assert np.array_equal(RunLength().fit(signals).score_samples(signals), signals.lengths)
    found = ToolCallCount().fit(signals).score_samples(signals)
    assert np.array_equal(found, [run.sum() for run in calls])
    with pytest.raises(ValueError, match="SelfReportedConfidence needs the channel 'verbal'"):
        SelfReportedConfidence(channel="verbal").fit(signals)


def test_semantic_entropy():
    assert semantic_entropy(["a", "A ", "a"]) == 0
    assert semantic_entropy(list("abcd")) == pytest.approx(math.log(4))
    p = np.array([0.5, 0.25, 0.25])
    found = semantic_entropy(["a", "b", "a"], log_probs=np.log(p))
    assert found == pytest.approx(-(0.75 * math.log(0.75) + 0.25 * math.log(0.25)))

    def first_letter(a, b):
        return a[0] == b[0]

    assert semantic_entropy(["ab", "ac", "b"], equivalence=first_letter) < math.log(2)
    with pytest.raises(ValueError, match="one log-probability for each"):
        semantic_entropy(["a"], log_probs=[0.5])
    with pytest.raises(ValueError, match="log_probs are all -inf"):
        semantic_entropy(["a", "b"], log_probs=[-math.inf, -math.inf])
    assert semantic_entropy(["a", "b"], log_probs=[-math.inf, -1]) == 0
    with pytest.raises(ValueError, match="log_probs must be numbers"):
        semantic_entropy(["a"], log_probs=["x"])
    with pytest.raises(ValueError, match="answer 1 is int, not text"):
        semantic_entropy(["a", 3])
    with pytest.raises(ValueError, match="answer 0 is NoneType, not text"):
        semantic_entropy([None])
    with pytest.raises(ValueError, match="a list of texts, not one text"):
        semantic_entropy("yes")


def test_semantic_entropy_with_an_equivalence_and_a_key_of_ones_own():
    run = io.Run("a", [io.Step("agent", "x", extra={"drawn": ["ab", "ac", "b"]})])
    scorer = SemanticEntropy(samples="drawn", equivalence=lambda a, b: a[0] == b[0])
    expected = -(2 / 3 * math.log(2 / 3) + 1 / 3 * math.log(1 / 3))
    assert scorer.fit([run]).score_samples([run]) == pytest.approx([expected])


def test_semantic_entropy_of_runs():
    def step(*answers):
        return io.Step("agent", "x", extra={"samples": list(answers)})

    runs = [
        io.Run("a", [io.Step("user", "hi"), step("p", "q"), step("p", "p")]),
        io.Run("b", [io.Step("agent", "x")]),
        io.Run("c", [step({"text": "p", "logprob": -0.1}, {"text": "q", "logprob": -0.1})]),
    ]
    scorer = SemanticEntropy().fit(runs)
    assert scorer.n_runs_without_ == 1
    trace = scorer.transform(runs).to_list()
    expected = [math.nan, math.log(2), math.log(2) / 2]
    assert np.allclose(trace[0].ravel(), expected, equal_nan=True)
    assert np.allclose(scorer.score_samples(runs), [expected[2], math.nan, math.log(2)],
                       equal_nan=True)  # fmt: skip
    for samples, said in (("yes", "a list of texts"), ([{"text": None}], "answer 0 is None")):
        bad = io.Run("d", [io.Step("user", "x"), io.Step("agent", "y", extra={"samples": samples})])
        with pytest.raises(ValueError, match=rf"run 'd' \(row 0\), step 2, samples: .*{said}"):
            scorer.transform([bad])
