"""Confidence as agents write it: forms, scales, and what is not one."""

import numpy as np
import pytest

from trajscore import StepConfidence
from trajscore.io import Run, Step

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
