"""The confidence that an agent states, in a field or in its words."""

import math
import re
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from trajscore.core.type_aliases import FloatArray
from trajscore.core.values import check_choice, is_number, outside_unit
from trajscore.io import Step

# never a part of a longer number, as 1.2 of 1.2.3 would be
_PLAIN = r"(?:\d+(?:[.,]\d+)?|[.,]\d+)(?:[eE][-+]?\d+)?(?!\d|[.,]\d|[eE][-+]?\d)"
_NUMBER = rf"([-+]?{_PLAIN}(?:\.?\s*%|\s*/\s*{_PLAIN}|(?!\s*/\s*\d)))"
# possessive, so that no text of an agent takes long
_RANGE = r"(?:\(\s*0\s*(?:-|to|\u2013|\.\.)\s*(?P<_top>\d+)\s*+(?:%\s*+)?\)|\([^()\n]*\))"
_THOUSANDS = re.compile(r"[-+]?[1-9]\d{0,2}(?:,\d{3})+")
FORMS = {
    "tag": rf"<\s*confidence\s*>\s*{_NUMBER}\s*<\s*/\s*confidence\s*>",
    "json": rf"""["']confidence["']\s*:\s*["']?{_NUMBER}""",
    "line": rf"\bconfidence\b(?:\s++(?:level|score|is))*+(?:[\s*_]*+{_RANGE})?"
    rf"[\s*_]*+(?:[:=][\s*_]*+)?{_NUMBER}",
}
_BARE_ONE = math.inf  # stands for a bare 1 until all steps of a call are read
# the patterns are slow, and are tried only on a text that has one of these
_WORDS = ("onfidence", "CONFIDENCE")
SCALES = {"auto": 0.0, "fraction": 1.0, "percent": 100.0}
"""What certainty is on each scale; 0 where each number has to say."""
MOST_OF_OTHER_SCALES = 10
"""Above 1 and up to this, a bare number may be per cent, or of 5 or of 10."""


class StatedConfidence:
    """Read the confidence stated in a turn: in its field, else the last one in its text.

    `form` and `scale` are `verbal` and `scale` of `StepConfidence`; `reads_one` says whether a bare
    1 is certainty. None: it is unless another bare number of the steps of a call is above 1.
    """

    def __init__(
        self,
        form: str | Callable[[Step], float | None] = "auto",
        scale: str | float = "auto",
        reads_one: bool | None = None,
    ) -> None:
        self._clips = False
        if is_number(scale) and scale > 0:  # type: ignore[operator]
            self._top = float(scale)
        else:
            check_choice(scale, "scale", tuple(SCALES))
            self._top = SCALES[str(scale)]
            self._clips = self._top > 0
        self._fixed = self.reads_one = reads_one
        self._is_above_one = False  # whether a bare number is
        self._form = form
        if not callable(form):
            self._pattern = _pattern(form)
        self._needs_word = form == "auto" or (isinstance(form, str) and form in FORMS)

    def __call__(self, steps: Iterable[Step]) -> FloatArray:
        """Return one confidence a step; NaN where none is stated, or its scale is not known."""
        self._is_above_one = False
        stated = np.array([self._of(step) for step in steps], dtype=float)
        self.reads_one = self._fixed
        if self._fixed is None:
            self.reads_one = not self._is_above_one
        return np.where(stated == _BARE_ONE, 1.0 if self.reads_one else math.nan, stated)

    def _of(self, step: Step) -> float:
        if callable(self._form):
            value: Any = self._form(step)
            return math.nan if value is None else self._scaled(float(value))
        if step.confidence is not None:
            return self._scaled(float(step.confidence))
        if self._needs_word and not any(word in step.text for word in _WORDS):
            return math.nan
        matches = list(self._pattern.finditer(step.text))
        if not matches:
            return math.nan
        last = matches[-1]
        return self._read(last.group(last.lastindex or 0), last.groupdict().get("_top"))

    def _read(self, words: str, top: str | None) -> float:
        part, _, whole = words.strip().rstrip("%").partition("/")
        try:
            number = _as_float(part)
            if "%" in words:
                return self._within(number / 100)
            if whole or top:
                largest = _as_float(whole or str(top))
                return self._within(number / largest) if largest > 0 else math.nan
        except ValueError:
            return math.nan
        return self._scaled(number)

    def _within(self, share: float) -> float:
        if not self._clips and outside_unit(share):
            return math.nan
        return min(max(share, 0.0), 1.0)

    def _scaled(self, number: float) -> float:
        if self._top:
            return self._within(number / self._top)
        if not outside_unit(number):
            number = min(max(number, 0.0), 1.0)
            return _BARE_ONE if number == 1 else number
        if number > 1 and not outside_unit(number / 100):
            self._is_above_one = True
            if number > MOST_OF_OTHER_SCALES:
                return min(number / 100, 1.0)
        return math.nan


def _as_float(words: str) -> float:
    bare = words.strip().rstrip(".")
    if _THOUSANDS.fullmatch(bare):
        return float(bare.replace(",", ""))
    return float(bare.replace(",", "."))


def _pattern(form: str) -> re.Pattern[str]:
    if form == "auto":
        return re.compile("|".join(FORMS.values()), re.IGNORECASE)
    if form in FORMS:
        return re.compile(FORMS[form], re.IGNORECASE)
    allowed = f"verbal must be 'auto', {', '.join(map(repr, FORMS))}, a regular expression"
    return compile_with_group(form, allowed, "number")


def compile_with_group(pattern: Any, allowed: str, kind: str) -> re.Pattern[str]:
    """Compile a user's regular expression, whose first group is what is looked for."""
    try:
        compiled = re.compile(pattern)
    except (re.error, TypeError) as error:
        raise ValueError(f"{allowed} or a function, got {pattern!r}: {error}") from error
    if not compiled.groups:
        raise ValueError(
            f"the regular expression {pattern!r} needs a group, in parentheses, for the {kind}"
        )
    return compiled
