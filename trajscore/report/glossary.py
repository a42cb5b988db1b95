"""What each number means, in a line: tooltips of the page, help of the terminal.

With them, the sentences that the script of the page fills in as well as Python does, how numbers
and intervals are written, and words that many sentences have.
"""

import math
import tomllib
from collections.abc import Iterable
from importlib.resources import files
from typing import NamedTuple

import numpy as np

from trajscore.core.outcomes import CENSORED, FAILURE, SUCCESS
from trajscore.core.ties import SUM_ROUNDING
from trajscore.evaluation.columns import DESCRIPTIONS
from trajscore.evaluation.evaluation import Evaluation
from trajscore.evaluation.options import RUN_METRICS

_TEXTS = tomllib.loads(files("trajscore.report").joinpath("glossary.toml").read_text("utf-8"))
LITERATURE: list[str] = _TEXTS["literature"]
TEMPLATES: dict[str, dict[str, str]] = {name: _TEXTS[name] for name in ("accept", "stop")}
LOCATORS: dict[str, str] = _TEXTS["locators"]
RUN_SCORE: dict[str, str] = _TEXTS["run_score"]
NOTES: dict[str, str] = _TEXTS["notes"]
_MOST_NAMED = 5
_VERBS = ("won", "passed", "succeeded", "failed")
_SUCCEEDED = (*_VERBS[:3], "solved")
"""Names of columns of outcomes that say in a sentence what a run did."""
GLOSSARY: dict[str, str] = (
    {column.heading: column.meaning for column in DESCRIPTIONS}
    | _TEXTS["glossary"]
    | {name.partition("_")[0]: metric.meaning for name, metric in RUN_METRICS.items()}
)


def counted_as(censored: str, n_runs: int = 2) -> str:
    """Say what a number of runs without an outcome count as."""
    return str(_TEXTS["counted_as"][censored][int(n_runs > 1)])


def explain(name: str) -> str:
    """Return the line for a column: its own, or that of its family; "" without one.

    >>> explain("S-ECE late") == explain("S-ECE")
    True
    """
    family = max(filter(name.startswith, GLOSSARY), key=len, default="")
    return GLOSSARY.get(family, "")


# -------------------------------------------------------------------- numbers


def short_number(value: float, digits: int) -> str:
    """Write a number as printed tables do: .714, -.684; nothing for NaN.

    >>> short_number(-0.6841, 3), short_number(-0.00004, 3), short_number(1050, 0)
    ('-.684', '.000', '1,050')
    """
    text = fixed(value, digits, ",")
    return text.replace("0.", ".", 1) if text.startswith(("0.", "-0")) else text


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
    """Write a number with these digits, nothing for NaN; what rounds to zero has no minus.

    >>> fixed(-0.0004, 3, "+"), fixed(-0.0004, 4), fixed(1050, 0, ",")
    ('+0.000', '-0.0004', '1,050')
    """
    if math.isnan(value):
        return ""
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


# -------------------------------------------------------------------- words


class Instruction(NamedTuple):
    """A sentence that holds an option or a call, which the page and notebooks write otherwise."""

    before: str
    how: str = ""
    after: str = ""

    @property
    def text(self) -> str:
        """The whole sentence."""
        return "".join(self)


def listed(names: Iterable[str], most: int = _MOST_NAMED) -> str:
    """Join names; beyond the most, the rest are others."""
    shown = list(names)
    if len(shown) > most:
        shown[most:] = ["others"]
    return " and ".join(filter(None, [", ".join(shown[:-1]), shown[-1]]))


def opening(text: str) -> str:
    """Write the start of a sentence large."""
    return f"{text[:1].upper()}{text[1:]}"


def quoted(name: str) -> str:
    """Name a predictor in a sentence; quoted, where its name has several words."""
    return f"\u201c{name}\u201d" if " " in name else name


def without_marks(text: str) -> str:
    """Take the marks of bold words off a sentence."""
    return text.replace("**", "")


def succeeded(data: Evaluation) -> str:
    """Say what a successful run did: "won", as its column is named, or "succeeded"."""
    name = data.source.outcome.lower()
    return name if name in _SUCCEEDED else "succeeded"


def happened(outcome: str, were: str) -> str:
    """Say of runs how they ended: "won", but "were solved".

    >>> happened("won", "were"), happened("solved", "were")
    ('won', 'were solved')
    """
    return outcome if outcome in _VERBS else f"{were} {outcome}"


def outcome_of(data: Evaluation, y: float) -> str:
    """Say how a run ended: "won", "failed", "not observed" or "graded 0.5"."""
    names: dict[float, str] = {
        SUCCESS: succeeded(data),
        FAILURE: "failed",
        CENSORED: "not observed",
    }
    return names.get(y, f"graded {y:g}")
