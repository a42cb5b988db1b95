"""What TRACER is measured against, against slow ways to compute it."""

import numpy as np
import pytest

from trajscore import TrajectoryArray
from trajscore.io import Run, Step
from trajscore.tracer import SAUP, ChannelRisk, SemanticEntropy


def test_baselines(signals):
    for scorer, name in (
        (ChannelRisk(), "surprisal"),
        (ChannelRisk("confidence", kind="confidence"), "confidence"),
    ):
        trace = scorer.fit(signals).transform(signals)
        reads = signals[name].to_list()
        for run, values in zip(trace, reads, strict=True):
            for t in range(len(run)):
                so_far = values[: t + 1][~np.isnan(values[: t + 1])]
                expected = so_far.mean() if len(so_far) else np.nan
                if name == "confidence":
                    expected = 1 - expected
                assert np.allclose(run[t], expected, equal_nan=True)
    calls = signals["tool_calls"].to_list()
    assert np.array_equal(
        ChannelRisk(None, kind="count").fit(signals).score_samples(signals), signals.lengths
    )
    found = ChannelRisk("tool_calls", kind="count").fit(signals).score_samples(signals)
    assert np.array_equal(found, [run.sum() for run in calls])
    with pytest.raises(ValueError, match="ChannelRisk needs the channel 'verbal'"):
        ChannelRisk("verbal", kind="confidence").fit(signals)
    for wrong, problem in (({"kind": "sum"}, "kind must"), ({"channel": None}, 'kind="count"')):
        with pytest.raises(ValueError, match=problem):
            ChannelRisk(**wrong).fit(signals)


def test_saup_weighs_each_part_of_a_situation_once():
    channels = ["surprisal", "repetition", "agent_gap", "user_gap"]
    S = TrajectoryArray([[2.0, 0.1, 0.02, 0.003]], [1], channels=channels)
    assert SAUP().fit(S).score_samples(S) == pytest.approx([2 * 1.123])


def test_saup_is_the_root_mean_square_of_weighted_surprisal(signals):
    scores = SAUP(alpha=0.5, beta=2, gamma=1).fit(signals).score_samples(signals)
    for run, score in zip(signals, scores, strict=True):
        u, a, oa, ou = np.nan_to_num(run[:, :4]).T
        there = ~np.isnan(run[:, 0])
        squares = ((1 + 0.5 * a + 2 * oa + ou) * u)[there] ** 2
        expected = np.sqrt(squares.mean()) if there.any() else np.nan
        assert score == pytest.approx(expected, abs=1e-12, nan_ok=True)


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
