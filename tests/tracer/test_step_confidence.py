"""Five streams of confidence, against numbers computed by hand, and what agents write of it."""

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


NAN = np.nan


def stated(*steps, form="auto", scale="auto"):
    verbal = StepConfidence(channels=["verbal"], verbal=form, scale=scale)
    return verbal.fit_transform([Run("a", list(steps))]).cells.ravel()


def read(text, form="auto", scale="auto", confidence=None):
    return stated(Step("agent", text, confidence=confidence), form=form, scale=scale)[0]


def wrong(rows, read_row):
    """Rows of which another value is read than the last one."""
    found = [(row, read_row(*row[:-1])) for row in rows]
    return [(row, x) for row, x in found if not np.allclose(x, row[-1], 0, 1e-12, equal_nan=True)]


def test_what_is_read_from_text():
    assert not wrong([
        ("<confidence>0.7</confidence>", 0.7), ("< Confidence > 70 </ confidence >", 0.7),
        ("<confidence>0,85</confidence>", 0.85), ('{"confidence": 0.4, "a": 1}', 0.4),
        ("{'confidence': '40%'}", 0.4), ('{"confidence": 0.85,"n": 3}', 0.85),
        ('{"confidence": 5e-2}', 0.05), ("Confidence: 85%", 0.85),
        ("confidence level is 85 %", 0.85), ("**Confidence:** 85", 0.85),
        ("Confidence is 8/10.", 0.8), ("confidence = .5", 0.5), ("CONFIDENCE = 3/4", 0.75),
        ("Confidence: .9", 0.9), ("Confidence: 0,9", 0.9), ("Confidence: 9e-1", 0.9),
        ("Confidence: 0.9.", 0.9), ("Confidence: 90.%", 0.9), ("Confidence: 85,5%", 0.855),
        ("Confidence: 85, or so", 0.85), ("Confidence: 500/1,000", 0.5),
        ("Confidence: 0.2\nOn reflection:\nConfidence: 0.6", 0.6),
        # scales that are written down
        ("**Confidence** (0-100): 80", 0.8), ("Confidence (0-100): 1", 0.01),
        ("Confidence (0-10): 8", 0.8), ("Confidence (0 to 5): 4", 0.8),
        ("**Confidence (0 to 10)**: 8", 0.8), ("Confidence (0-1): 0.8", 0.8),
        ("Confidence (0-100): 80%", 0.8), ("Confidence (high): 0.8", 0.8),
        ("Confidence (high): 80", 0.8), ("Confidence (0-10): 80", NAN),
        # ends
        ("Confidence: 0", 0), ("Confidence: 1", 1), ("Confidence: 100", 1), ("Confidence: 0%", 0),
        ("Confidence: 1%", 0.01), ("Confidence: 100%", 1), ("Confidence: 10", NAN),
        ("Confidence: 10.5", 0.105), ("Confidence: 1.5", NAN), ("Confidence: 100.5", NAN),
        ("Confidence: -0.5", NAN), ("Confidence: 110%", NAN), ("Confidence: -1%", NAN),
        ("Confidence: 6/5", NAN), ("Confidence: 3 / 0", NAN), ("Confidence: 1,000", NAN),
        ("Confidence: 1.2.3", NAN), ("Confidence: high", NAN), ("I am confident: 0.9", NAN),
        ("I have every confidence", NAN), ("0.9", NAN), ("", NAN),
    ], read)  # fmt: skip


def test_scales():
    assert not wrong([
        ("fraction", 0.7, 0.7), ("fraction", 1.5, 1), ("fraction", -0.5, 0),
        ("percent", 70, 0.7), ("percent", 0.7, 0.007), ("percent", 150, 1), ("percent", -1, 0),
        ("auto", 70, 0.7), ("auto", 1, 1), ("auto", 1.01, NAN), ("auto", 100, 1), ("auto", 10, NAN),
        ("auto", 101, NAN), ("auto", -1e-5, NAN), ("auto", -1e-7, 0), ("auto", 0, 0),
        ("auto", 100.00001, 1),
        (5, 3, 0.6), (5, 6, NAN), (10.0, 8, 0.8), (5, -1, NAN), (5, 0, 0), (5, 5, 1),
        ("percent", NAN, NAN), ("fraction", NAN, NAN), ("auto", NAN, NAN),
    ], lambda scale, field: read("Confidence: 0.3", scale=scale, confidence=field))  # fmt: skip
    assert not wrong([
        ("percent", "80%", 0.8), ("percent", "0.8", 0.008), ("percent", "6/10", 0.6),
        ("fraction", "80%", 0.8), ("fraction", "120%", 1), ("fraction", "-20%", 0),
        ("fraction", "7/5", 1), ("fraction", "80", 1), ("fraction", "-0.2", 0), (5, "120%", NAN),
    ], lambda scale, text: read(f"Confidence: {text}", scale=scale))  # fmt: skip


def test_forms():
    both = '{"confidence": 0.4} <confidence>0.7</confidence> Confidence: 0.1'
    assert not wrong([
        ("tag", both, 0.7), ("json", both, 0.4), ("line", both, 0.1), ("auto", both, 0.1),
        (r"sure:(\d+)", "sure:80", 0.8), (r"sure:(\w+)", "sure:very", NAN),
        (lambda step: len(step.text) or None, "x" * 50, 0.5),
        (lambda step: len(step.text) or None, "", NAN),
    ], lambda form, text: read(text, form))  # fmt: skip
    for options, problem in [
        ({"form": "("}, "verbal .*a regular expression"),
        ({"form": 3}, "regular expression or a function, got 3"),
        ({"form": r"\d+"}, "needs a group"),
        ({"scale": "ratio"}, "scale .*'ratio'"),
    ]:
        with pytest.raises(ValueError, match=problem):
            read("x", **options)


def test_a_bare_1_is_certainty_only_where_no_number_is_above_1():
    def run(*words):
        return Run("a", [Step("agent", f"Confidence: {word}") for word in words])

    def values(*words, scale="auto"):
        return stated(*run(*words).steps, scale=scale).tolist()

    assert values("1", "0.5", "80%", "4/5") == [1, 0.5, 0.8, 0.8]
    for other in ("3", "80"):
        assert np.isnan(values("1", other)[0])
        assert values("100%", "0", other)[:2] == [1, 0]
    assert values("1", "3", scale=5) == [0.2, 0.6]
    # as in fit, whatever comes after it
    for known, first in ((run("0.2", "0.9"), 1.0), (run("3", "5"), NAN)):
        fitted = StepConfidence(channels=["verbal"]).fit([known])
        for words in (["1"], ["1", "0.5", "80%"], ["1", "4"]):
            found = fitted.transform([run(*words)]).cells.ravel()
            np.testing.assert_array_equal(found[0], first)


def test_a_long_text_takes_no_longer_than_it_is_long():
    """It would be hours, were the time to go with the square of the length."""
    for start in ("confidence", "<confidence> ", "confidence (0-5", "confidence 1 /"):
        for part in (" ", "\n", "*", "_ ", " is", "(0 - 5 ", "confidence ", "1", "1,", "/ "):
            read(start + part * (100_000 // len(part)) + "x")
    for text in (
        "<action>" * 25_000, "action: x" + "\n" * 100_000 + "x", "action: x\n" * 15_000,
        "action: x\n" + "\t" * 100_000 + "thought", "action" + " *" * 50_000,
    ):  # fmt: skip
        written = Step("agent", text, tokens=(text,), logprobs=(-0.1,))
        StepConfidence().fit_transform([Run("a", [written])])
