"""What TRACER is measured against, against slow ways to compute it."""

import numpy as np
import pytest

from trajscore import TrajectoryArray
from trajscore.tracer import SAUP, ChannelRisk


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
