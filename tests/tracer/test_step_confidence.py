"""Five streams of confidence, against numbers computed by hand."""

import math

import numpy as np
import pytest

from trajscore import StepConfidence, io
from trajscore.io import Run, Step

TOKENS = ("Thought", ": go.\n", "Action", ": ", "look", "[x]", "\nConfidence: 0.6")
LOGPROBS = (-0.1, -0.2, -0.3, -0.4, -0.5, -1.0, -0.05)
FLAT = tuple((f"t{k}", math.log(0.2)) for k in range(5))
SURE = (("a", 0.0), *((f"t{k}", -math.inf) for k in range(4)))


def step(**more):
    return Step("agent", "".join(TOKENS), tokens=TOKENS, logprobs=LOGPROBS, **more)


def values(*steps, **parameters):
    X = StepConfidence(**parameters).fit_transform([Run("a", list(steps))])
    return {name: X[name].cells.ravel() for name in X.channels}


def test_by_hand():
    top = (FLAT,) * 4 + (SURE, FLAT, FLAT)
    found = values(Step("user", "hi"), step(top_logprobs=top))
    assert found["verbal"] == [0.6]
    assert found["token_probability"] == pytest.approx(np.exp(LOGPROBS).mean())
    assert found["entropy_confidence"] == pytest.approx(1 / 7)
    # the action is look[x]: two tokens, one of them sure
    assert found["action_token_probability"] == pytest.approx(np.exp([-0.5, -1.0]).mean())
    assert found["action_entropy_confidence"] == pytest.approx(0.5)


def test_entropy_is_that_of_the_five_likeliest_brought_to_one():
    p = np.array([0.4, 0.2, 0.1, 0.05, 0.05, 0.01])
    top = (tuple(zip("fabcde", np.log(p[[5, 0, 1, 2, 3, 4]]).tolist(), strict=True)),)
    one = Step("agent", "x", tokens=("x",), logprobs=(-0.9,), top_logprobs=top)
    q = p[:5] / p[:5].sum()
    expected = 1 + (q * np.log(q)).sum() / math.log(5)
    assert values(one)["entropy_confidence"] == pytest.approx(expected)
    q = p[:2] / p[:2].sum()
    expected = 1 + (q * np.log(q)).sum() / math.log(2)
    assert values(one, top=2)["entropy_confidence"] == pytest.approx(expected)


def test_what_is_not_recorded_is_missing():
    found = values(Step("agent", "Confidence: maybe"))
    assert all(np.isnan(stream).all() for stream in found.values())
    found = values(step())  # no top_logprobs
    assert np.isnan(found["entropy_confidence"]).all()
    assert found["token_probability"] > 0
    few = step(top_logprobs=(FLAT[:3],) * 7)
    assert np.isnan(values(few)["entropy_confidence"]).all()
    assert np.isfinite(values(few, top=3)["entropy_confidence"]).all()
    some = step(top_logprobs=((),) * 6 + (SURE,))
    assert values(some)["entropy_confidence"] == [1.0]
    bare = Step("agent", "x", logprobs=(-0.1, math.nan, -math.inf))
    assert values(bare)["token_probability"] == pytest.approx(math.exp(-0.1) / 2)
    assert np.isnan(values(bare)["action_token_probability"]).all()


@pytest.mark.parametrize(
    ("tokens", "action"),
    [
        (("<action>", "go", "</action>"), slice(1, 2)),
        (("Action", ": ", "a\n", "Action", ": ", "b"), slice(5, 6)),
        (("Final", " Answer", ": ", "42"), slice(3, 4)),
        (("Action", ": ", "go\n", "Thought: ", "well"), slice(2, 3)),
        (("no", " such", " thing"), slice(0, 0)),
        (("Action:",), slice(0, 0)),
        (("Action: ", "look[x]", "\n\nThought: ", "y"), slice(1, 2)),
        (("**Action**", ": ", "a\n", "  b", " \n"), slice(2, 4)),
        (("Action:\n\n a", "\nAction Input: ", "b"), slice(2, 3)),
        (("action: ", "a\n", "no action here: b", "\nObservation: c"), slice(1, 3)),
        (("<action> ", "a", " <action>", "b", "</action>"), slice(3, 4)),
        (("action:\n", "thought: ", "a"), slice(0, 0)),
        (("an action: ", "a"), slice(0, 0)),
    ],
)
def test_the_action(tokens, action):
    logprobs = tuple(-0.1 * (k + 1) for k in range(len(tokens)))
    one = Step("agent", "".join(tokens), tokens=tokens, logprobs=logprobs)
    found = values(one)["action_token_probability"]
    chosen = np.exp(logprobs[action])
    assert np.array_equal(np.isnan(found), [not len(chosen)])
    if len(chosen):
        assert found == pytest.approx(chosen.mean())


def test_the_action_by_pattern_and_function():
    one = Step("agent", "do: go now", tokens=("do: ", "go", " now"), logprobs=(-1.0, -2.0, -3.0))
    assert values(one, action=r"do: (\w+)")["action_token_probability"] == pytest.approx(
        math.exp(-2)
    )
    found = values(one, action=lambda step: (4, 10))["action_token_probability"]
    assert found == pytest.approx(np.exp([-2, -3]).mean())
    assert np.isnan(values(one, action=lambda step: None)["action_token_probability"]).all()
    for bad, message in (("(", "a regular expression or a function"), ("go", "needs a group")):
        with pytest.raises(ValueError, match=message):
            values(one, action=bad)


def test_a_turn_that_only_calls_tools_is_all_action():
    call = io.ToolCall("find", {"bag": 1})
    one = Step("agent", "", tool_calls=[call], tokens=("find", "(1)"), logprobs=(-1.0, -2.0))
    found = values(one)
    assert found["action_token_probability"] == found["token_probability"]
    both = Step("agent", "Let me look", tool_calls=[call], tokens=("Let",), logprobs=(-1.0,))
    assert np.isnan(values(both)["action_token_probability"]).all()


def test_chosen_streams_and_what_is_counted():
    estimator = StepConfidence(channels=["verbal", "token_probability"])
    X = estimator.fit_transform([Run("a", [step(), Step("agent", "no")], task="t")])
    assert X.channels == ("verbal", "token_probability")
    assert estimator.n_missing_ == {"verbal": 1, "token_probability": 1}
    assert estimator.get_feature_names_out().tolist() == ["verbal", "token_probability"]
    assert X.meta["task"].tolist() == ["t"]
    with pytest.raises(ValueError, match="no stream named 'verbl'; did you mean 'verbal'"):
        StepConfidence(channels=["verbl"]).fit([Run("a", [step()])])
    with pytest.raises(ValueError, match="must be a list of names"):
        StepConfidence(channels="verbal").fit([Run("a", [step()])])
    with pytest.raises(ValueError, match="top must be"):
        StepConfidence(top=1).fit([Run("a", [step()])])
    with pytest.raises(ValueError, match=r"run 'b' \(row 0\) has no turn of the agent"):
        StepConfidence().fit([Run("b", [Step("user", "hi")])])


def test_alternatives_that_fit_no_token_are_refused_by_name():
    one = {"tokens": ("a",), "logprobs": (-0.1,)}
    for listed in ((FLAT, SURE), (FLAT,) * 3):
        long = Step("agent", "x", top_logprobs=listed, **one)
        runs = [Run("r", [Step("user", "hi"), long, Step("agent", "y", **one)])]
        with pytest.raises(ValueError, match=rf"run 'r' .*step 1: {len(listed)} lists"):
            StepConfidence().fit_transform(runs)
    positive = ((("a", 0.5), *FLAT[1:]),)
    fine = Step("agent", "x", top_logprobs=(FLAT,), **one)
    wrong = Step("agent", "y", top_logprobs=positive, **one)
    with pytest.raises(ValueError, match=r"'r' .*step 2, token 0: a top_logprob of 0.5 is abov"):
        StepConfidence().fit_transform([Run("r", [fine, wrong])])
    # as where logs are read, -9999 is no candidate
    padded = ((*FLAT[:3], ("x", -9999.0), ("y", math.nan)),)
    few = Step("agent", "x", top_logprobs=padded, **one)
    assert np.isnan(values(few)["entropy_confidence"]).all()
    assert values(few, top=3)["entropy_confidence"] == pytest.approx(0)
