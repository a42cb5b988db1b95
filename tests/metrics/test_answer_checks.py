"""Which answers, decisions and parameters are refused, in which words."""

import numpy as np
import pytest

from trajscore.metrics._answer_checks import check_answers, check_decisions, check_eps
from trajscore.metrics._ecuas import ecuas_from_confidence

NAN, INF = float("nan"), float("inf")


def test_answers_and_decisions_are_floats():
    found = check_answers([True, False], [0, 1], None, probability=True)
    assert [part.tolist() for part in found] == [[1, 0], [0, 1], [1, 1]]
    found = check_answers([1, 0], [-INF, 7], [2, 0])
    assert [part.tolist() for part in found] == [[1, 0], [-INF, 7], [2, 0]]
    found = check_decisions([0, 2], [0.5, 0], [1, 3])
    assert [part.tolist() for part in found] == [[0, 2], [0.5, 0], [1, 3]]
    assert all(part.dtype == np.float64 for part in found)


@pytest.mark.parametrize(
    ("right", "c", "probability", "words"),
    [
        ([1, 0], [0.5, 1.01], True, "row 1: confidence is 1.01; it must be in [0, 1]"),
        ([1, 0], [-0.01, 1.01], True, "row 0: confidence is -0.01; it must be in [0, 1]"),
        ([1, 0], [0.5, NAN], True, "row 1: confidence is nan; it must be in [0, 1]"),
        ([1, 0], [3, NAN], False, "row 1: confidence is nan; it must be a number"),
        ([1, 0.5], [0, 1], False, "row 1: correct is 0.5; it must be 0 or 1"),
        ([-1, 0], [0, 1], True, "row 0: correct is -1; it must be 0 or 1"),
        (
            [1, 0, 1],
            [0, 1],
            True,
            (
                "correct has shape (3,) and confidence (2,); give two lists of the same length, "
                "with at least one value"
            ),
        ),
        ([], [], True, "correct has shape (0,) and confidence (0,); give two lists"),
        ([[1]], [[1]], True, "correct has shape (1, 1) and confidence (1, 1); give two lists"),
        (["yes"], [1], True, "correct must be numbers: "),
        ([1], ["high"], True, "confidence must be numbers: "),
    ],
)
def test_answers_that_are_refused(right, c, probability, words):
    with pytest.raises(ValueError) as error:
        check_answers(right, c, None, probability=probability)
    assert str(error.value).startswith(words)


@pytest.mark.parametrize(
    ("paid", "u", "words"),
    [
        ([0, -1], [0, 0], "row 1: paid is -1; it must be finite and >= 0"),
        ([0, INF], [0, 0], "row 1: paid is inf; it must be finite and >= 0"),
        ([0, 0], [NAN, -1], "row 0: u is nan; it must be finite and >= 0"),
        ([0], [0, 1], "paid has shape (1,) and u (2,); give two lists of the same length"),
    ],
)
def test_decisions_that_are_refused(paid, u, words):
    with pytest.raises(ValueError) as error:
        check_decisions(paid, u, None)
    assert str(error.value).startswith(words)


def cost_of_one(n):
    return ecuas_from_confidence([1], [0.9], n=n)


@pytest.mark.parametrize(
    ("check", "good", "bad", "words"),
    [
        (check_eps, [0, 0.5, 1 - 1e-9], [-1e-9, 1, NAN, "0"], r"eps must be a number in \[0, 1\)"),
        (cost_of_one, [0, 1.5, 2, 1e300], [-1e-9, INF, NAN, "1"], "n must be a finite number >= 0"),
    ],
)
def test_bounds(check, good, bad, words):
    for value in good:
        check(value)
    for value in bad:
        with pytest.raises(ValueError, match=f"{words}, got {value!r}"):
            check(value)
