"""What each number means, in a line: tooltips of the page, help of the terminal.

With them, the sentences that the script of the page fills in as well as Python does, and how
numbers and intervals are written.
"""

import math
import tomllib
from collections.abc import Iterable
from importlib.resources import files

import numpy as np

from trajscore.core.ties import SUM_ROUNDING
from trajscore.evaluation.options import RUN_METRICS, Options

_TEXTS = tomllib.loads(files("trajscore.report").joinpath("glossary.toml").read_text("utf-8"))
LITERATURE: list[str] = _TEXTS["literature"]
TEMPLATES: dict[str, dict[str, str]] = {name: _TEXTS[name] for name in ("accept", "stop")}
LOCATORS: dict[str, str] = _TEXTS["locators"]
COUNTED_AS: dict[str, str] = _TEXTS["counted_as"]
RUN_SCORE: dict[str, str] = _TEXTS["run_score"]
NOTES: dict[str, str] = _TEXTS["notes"]
GLOSSARY: dict[str, str] = _TEXTS["glossary"] | {
    name.partition("_")[0]: metric.meaning for name, metric in RUN_METRICS.items()
}


def explain(name: str) -> str:
    """Return the line for a column: its own, or that of its family.

    >>> explain("S-ECE late") == explain("S-ECE")
    True
    >>> explain("new")
    Traceback (most recent call last):
    ...
    KeyError: "report/glossary.toml has no meaning of the column 'new'; add a line"
    """
    if name in GLOSSARY:
        return GLOSSARY[name]
    if " over_" in name:
        return GLOSSARY[name.rpartition(" ")[2]]
    family = next(filter(name.startswith, GLOSSARY), None)
    if family is None:
        raise KeyError(f"report/glossary.toml has no meaning of the column {name!r}; add a line")
    return GLOSSARY[family]


def arrow(name: str, options: Options) -> str:
    """Say which way a metric is better: up, down, or neither."""
    if name.startswith("n_"):
        return ""
    if name in options.lower_is_better:
        return "\u2193"
    return "\u2191"


# -------------------------------------------------------------------- numbers


def short_number(value: float, digits: int) -> str:
    """Write a number as printed tables do: .714, -.684.

    >>> short_number(-0.6841, 3), short_number(-0.00004, 3), short_number(10.5, 1)
    ('-.684', '.000', '10.5')
    """
    text = f"{round(value, digits) + 0.0:.{digits}f}"
    return text.replace("0.", ".", 1) if abs(value) < 1 and text[:2] in ("0.", "-0") else text


def with_interval(estimate: Iterable[float], digits: int = 3, sign: str = "") -> str:
    """Write a number with its interval, if there is one; with "+", signs of positive ones too.

    >>> with_interval((0.1, -0.05, 0.2512), sign="+")
    '+0.100 [-0.050, +0.251]'
    """
    value, low, high = estimate
    if math.isnan(value):
        return ""
    return f"{fixed(value, digits, sign)} {interval(low, high, digits, sign)}"


def interval(low: float, high: float, digits: int, sign: str = "") -> str:
    """Write an interval; those that would hold too seldom are not given."""
    if math.isnan(low) or math.isnan(high):
        return "[no interval]"
    return f"[{fixed(low, digits, sign)}, {fixed(high, digits, sign)}]"


def fixed(value: float, digits: int, sign: str = "") -> str:
    """Write a number with these digits; what rounds to zero has no minus.

    >>> fixed(-0.0004, 3, "+"), fixed(-0.0004, 4)
    ('+0.000', '-0.0004')
    """
    return f"{round(float(value), digits) + 0.0:{sign}.{digits}f}"


def digits_that_show(value: float, digits: int) -> int:
    """Return how many digits it takes to tell a number from zero, at least `digits`.

    >>> digits_that_show(0.2, 3), digits_that_show(0.00042, 3), digits_that_show(0.0, 3)
    (3, 4, 3)
    """
    if not value or round(value, digits) or not math.isfinite(value):
        return digits
    return math.ceil(-math.log10(abs(value)))


def whole_of_hundred(share: float) -> str:
    """Write a share as a whole number of 100, halves up, as the page's script does.

    >>> whole_of_hundred(0.125), whole_of_hundred(0.004)
    ('13', '0')
    """
    return f"{np.floor(100 * share + 0.5 + SUM_ROUNDING):.0f}"


def of_hundred(share: float) -> str:
    """Write a share as a number of 100; small ones with a decimal, as the page's script does.

    >>> of_hundred(0.125), of_hundred(0.004)
    ('13', '0.4')
    """
    if 0 < share < 0.01:
        return f"{np.floor(1000 * share + 0.5 + SUM_ROUNDING) / 10:g}"
    return whole_of_hundred(share)
