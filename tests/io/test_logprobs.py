"""Token log-probabilities in all forms in which logs hold them."""

import math
from pathlib import Path

import pytest

from trajscore.io.files import Place
from trajscore.io.logprobs import any_recorded, parse_logprobs

PLACE = Place(Path("log.json"), 0)
LISTED = [
    {"token": "a", "logprob": -0.5, "top_logprobs": [{"token": "b", "logprob": -1}, {}, "x"]},
    {"token": "c", "logprob": None},
    {"token": "d", "logprob": -0.0, "top_logprobs": {"e": -2, "f": -9999}},
]
COLUMNS = {"token_logprobs": [-1, -2, -3], "tokens": ["a", "b", "c"], "top_logprobs": [{"x": -1}]}


@pytest.mark.parametrize("raw", [LISTED, {"content": LISTED}, tuple(LISTED)])
def test_list(raw):
    scores = parse_logprobs(raw, PLACE, 3)
    assert scores.tokens == ("a", "c", "d")
    assert scores.logprobs == pytest.approx((-0.5, math.nan, 0), nan_ok=True)
    assert scores.top_logprobs == ((("b", -1),), (), (("e", -2),))


def test_columns():
    tops = ((("x", -1),), (), ())
    assert parse_logprobs(COLUMNS, PLACE, 0) == (("a", "b", "c"), (-1, -2, -3), tops)
    short = parse_logprobs({"token_logprobs": [-1, -2], "tokens": ["a"]}, PLACE, 0)
    assert short == (None, (-1, -2), None)
    assert parse_logprobs([-1, -2.5], PLACE, 0) == (None, (-1, -2.5), None)


@pytest.mark.parametrize(
    "raw",
    [None, [], {}, {"content": None}, {"token_logprobs": None}, [0.0, 0.0], [None], [-9999.0],
     [-10000, 0]],
)  # fmt: skip
def test_nothing_recorded(raw):
    assert parse_logprobs(raw, PLACE, 0) == (None, None, None)


@pytest.mark.parametrize(
    ("values", "expected"),
    [([0, -1], True), ([0, 0], False), ([], False), ([-math.inf], True), ([-9999], False),
     ([-9998.9], True), ([math.nan], False), ([-1e5], False)],
)  # fmt: skip
def test_any_recorded(values, expected):
    assert any_recorded(values) is expected


def test_infinite_and_unrecorded_values():
    scores = parse_logprobs([-math.inf, -9999, -9998, -1e6], PLACE, 0)
    expected = (-math.inf, math.nan, -9998, math.nan)
    assert scores.logprobs == pytest.approx(expected, nan_ok=True)


@pytest.mark.parametrize(
    ("raw", "error", "message"),
    [
        ("abc", ValueError, "message 3: its logprobs are str, not a list"),
        (7, ValueError, "message 3: its logprobs are int, not a list"),
        (["x"], ValueError, "the logprob is 'x', not a number; write null if"),
        ([-1, 0.25], ValueError, "the logprob is 0.25, but the natural logarithm"),
        ([{"logprob": -1, "top_logprobs": {"a": 1}}], ValueError, "the logprob is 1, but"),
    ],
)
def test_refused(raw, error, message):
    with pytest.raises(error, match=message):
        parse_logprobs(raw, PLACE, 3)


@pytest.mark.parametrize(
    ("raw", "scores"),
    [
        ([{"token": "a", "logprob": -1}, {"logprob": -2}], (None, (-1, -2), None)),
        ([{"token": "", "logprob": -1}], (("",), (-1,), None)),
        ([{"token": 3, "logprob": 0}, {"token": "b", "logprob": -2}], (("3", "b"), (0, -2), None)),
        ({"token_logprobs": [-1, -2], "tokens": ["a", "b"], "top_logprobs": [None, {"x": -3}]},
         (("a", "b"), (-1, -2), ((), (("x", -3),)))),
        ({"token_logprobs": [-1], "top_logprobs": [{"x": None, "y": -9999, "z": -9998}]},
         (None, (-1,), ((("z", -9998),),))),
        ({"token_logprobs": [-1], "top_logprobs": [{}]}, (None, (-1,), None)),
        ({"content": [-1.5]}, (None, (-1.5,), None)),
        ([{"logprob": -1, "top_logprobs": [{"logprob": -2}, {"token": "b"}]}],
         (None, (-1,), ((("", -2),),))),
    ],
)  # fmt: skip
def test_tokens_and_alternatives(raw, scores):
    assert parse_logprobs(raw, PLACE, 0) == scores
