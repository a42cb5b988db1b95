"""Confidence as agents write it: forms, scales, and what is not one."""

import math

import numpy as np
import pytest

from trajscore.io import Step
from trajscore.tracer._stated_confidence import StatedConfidence


def read(text, form="auto", scale="auto", confidence=None):
    return StatedConfidence(form, scale)([Step("agent", text, confidence=confidence)])[0]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("<confidence>0.7</confidence>", 0.7),
        ("< Confidence > 70 </ confidence >", 0.7),
        ('{"confidence": 0.4, "a": 1}', 0.4),
        ("{'confidence': '40%'}", 0.4),
        ("Confidence: 85%", 0.85),
        ("confidence level is 85 %", 0.85),
        ("**Confidence** (0-100): 80", 0.8),
        ("Confidence (0-10): 8", 0.8),
        ("Confidence (0 to 5): 4", 0.8),
        ("Confidence (high): 0.8", 0.8),
        ("CONFIDENCE = 3/4", 0.75),
        ("Confidence: 3 / 0", None),
        ("Confidence: 1", 1.0),
        ("Confidence: 1.5", None),
        ("Confidence: 0", 0.0),
        ("Confidence: 100", 1.0),
        ("Confidence: 100.5", None),
        ("Confidence: -0.5", None),
        ("Confidence: 0,9", 0.9),
        ("Confidence: .9", 0.9),
        ("Confidence: 9e-1", 0.9),
        ("Confidence: 0.9.", 0.9),
        ("Confidence: 90.%", 0.9),
        ("Confidence: 1.2.3", None),
        ("Confidence: 110%", None),
        ("Confidence: -1%", None),
        ("Confidence: 100%", 1.0),
        ("Confidence: 0%", 0.0),
        ("Confidence: 6/5", None),
        ("Confidence: 500/1,000", 0.5),
        ("Confidence: 0.2\nConfidence: 0.6", 0.6),
        ("I am confident: 0.9", None),
        ("0.9", None),
        ("", None),
    ],
)
def test_auto(text, expected):
    value = read(text)
    assert math.isnan(value) if expected is None else value == pytest.approx(expected)


@pytest.mark.parametrize(
    ("scale", "stated", "expected"),
    [
        ("fraction", 0.7, 0.7), ("fraction", 1.5, 1.0), ("fraction", -0.5, 0.0),
        ("percent", 70, 0.7), ("percent", 0.7, 0.007), ("percent", 150, 1.0), ("percent", -1, 0.0),
        ("auto", 70, 0.7), ("auto", 1, 1.0), ("auto", 1.01, None), ("auto", 100, 1.0),
        ("auto", 10, None), ("auto", 10.5, 0.105), (5, 3, 0.6), (5, 6, None),
        (10.0, 8, 0.8), (5, -1, None),
        ("auto", 101, None), ("auto", -1e-9, None), ("percent", math.nan, None),
        ("fraction", math.nan, None), ("auto", math.nan, None), ("auto", 0, 0.0),
    ],
)  # fmt: skip
def test_scales_of_a_field(scale, stated, expected):
    value = read("Confidence: 0.3", scale=scale, confidence=stated)
    assert math.isnan(value) if expected is None else value == pytest.approx(expected)


@pytest.mark.parametrize(
    ("scale", "text", "expected"),
    [
        ("percent", "Confidence: 80%", 0.8), ("percent", "Confidence: 0.8", 0.008),
        ("fraction", "Confidence: 80%", 0.8), ("fraction", "Confidence: 120%", 1.0),
        ("fraction", "Confidence: -20%", 0.0), ("fraction", "Confidence: 7/5", 1.0),
        ("fraction", "Confidence: 80", 1.0),
    ],
)  # fmt: skip
def test_scales_of_text(scale, text, expected):
    assert read(text, scale=scale) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("form", "text", "expected"),
    [
        ("tag", "<confidence>0.7</confidence> Confidence: 0.1", 0.7),
        ("json", '"confidence": 0.4 <confidence>0.7</confidence>', 0.4),
        ("line", 'Confidence: 0.1 <confidence>0.7</confidence> {"confidence": 0.4}', 0.1),
        (r"sure:(\d+)", "sure:80", 0.8),
        (r"sure:(\w+)", "sure:very", None),
        (lambda step: len(step.text) or None, "x" * 50, 0.5),
        (lambda step: len(step.text) or None, "", None),
    ],
)
def test_forms(form, text, expected):
    value = read(text, form)
    assert math.isnan(value) if expected is None else value == pytest.approx(expected)


def test_one_value_a_step():
    steps = [Step("agent", "Confidence: 0.1"), Step("agent", "-"), Step("user", "", confidence=0.9)]
    values = StatedConfidence()(steps).tolist()
    assert [values[0], math.isnan(values[1]), values[2]] == [0.1, True, 0.9]
    assert len(StatedConfidence()([])) == 0


@pytest.mark.parametrize(
    ("form", "message"),
    [
        ("(", r"verbal must be 'auto', 'tag', 'json', 'line', a regular expression or a function,"),
        (r"\d+", "needs a group, in parentheses, for the number"),
        (3, "a regular expression or a function, got 3"),
    ],
)
def test_bad_forms(form, message):
    with pytest.raises(ValueError, match=message):
        StatedConfidence(form)


def test_bad_scale():
    with pytest.raises(ValueError, match="scale"):
        StatedConfidence(scale="ratio")


def test_a_bare_1_is_certainty_only_where_no_number_is_above_1():
    def read_all(*words, scale="auto"):
        steps = [Step("agent", f"Confidence: {word}") for word in words]
        return StatedConfidence(scale=scale)(steps).tolist()

    assert read_all("1", "0.5", "80%", "4/5") == [1.0, 0.5, 0.8, 0.8]
    for other in ("3", "80"):
        assert np.isnan(read_all("1", other)[0])
        assert read_all("100%", "0", other)[:2] == [1.0, 0.0]
    assert read_all("1", "3", scale=5) == [0.2, 0.6]
    stated = StatedConfidence()
    stated([Step("agent", confidence=3)])
    assert stated([Step("agent", confidence=1)]).tolist() == [1.0]


@pytest.mark.parametrize(
    "part", [" ", "\n", "*", "_ ", " is", "(0 - 5 ", "confidence ", "1", "1,", "/ ", "<confidence>"]
)
@pytest.mark.parametrize(
    "start", ["confidence", "<confidence> ", "confidence (0-5", "confidence 1 /"]
)
def test_a_long_text_takes_no_longer_than_it_is_long(start, part):
    """It would be hours, were the time to go with the square of the length."""
    read(start + part * (400_000 // len(part)) + "x")
