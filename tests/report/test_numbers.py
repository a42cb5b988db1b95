"""Numbers and intervals as people read them, and why runs are left out."""

import math

import pytest

from trajscore.report._left_out import lacks_values, number_of_runs, stopped_by, without_values
from trajscore.report._numbers import (
    digits_that_show,
    fixed,
    interval,
    short_number,
    with_interval,
)

NAN = float("nan")


@pytest.mark.parametrize(
    ("value", "digits", "text"),
    [
        (0.5, 3, ".500"),
        (-0.5, 2, "-.50"),
        (0.9996, 3, "1.000"),
        (-0.9996, 3, "-1.000"),
        (1.0, 2, "1.00"),
        (-1.0, 2, "-1.00"),
        (10.25, 1, "10.2"),
        (0.0, 1, ".0"),
        (-0.0004, 3, ".000"),
    ],
)
def test_short_numbers(value, digits, text):
    assert short_number(value, digits) == text


def test_intervals():
    assert with_interval((0.5, 0.25, 0.75)) == "0.500 [0.250, 0.750]"
    assert with_interval((0.5, -0.25, 0.75), 1, "+") == "+0.5 [-0.2, +0.8]"
    assert interval(NAN, 1, 3) == interval(0, NAN, 3) == "[no interval]"
    assert with_interval((0.5, NAN, NAN), 2) == "0.50 [no interval]"
    assert (fixed(-0.0004, 3), fixed(0.0006, 3, "+")) == ("0.000", "+0.001")


@pytest.mark.parametrize(
    ("value", "digits"),
    [(0.0006, 3), (-0.0006, 3), (0.0004, 4), (-0.00004, 5), (1e-7, 7), (0, 3), (math.inf, 3)],
)
def test_digits_that_show(value, digits):
    assert digits_that_show(value, 3) == digits


def test_why_runs_are_left_out():
    assert [number_of_runs(n) for n in (0, 1, 2, 2000)] == [
        "0 runs",
        "1 run",
        "2 runs",
        "2,000 runs",
    ]
    assert stopped_by(None) == "no outcome and no stop reason"
    assert stopped_by("crash") == "no outcome; stopped by crash, not by a budget"
    reasons = [without_values(list(names)) for names in ("a", "ab", "abc")]
    assert reasons == [
        "a value of a is missing",
        "values of a and b are missing",
        "values of a, b and c are missing",
    ]
    assert all(map(lacks_values, reasons))
    assert not lacks_values(stopped_by(None))
