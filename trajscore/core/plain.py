"""Values as JSON has them, and texts of users as people may read them.

JSON knows no NaN, no infinity and none of NumPy's scalars, nor says which of two values of one key
counts. A text of users may act on a screen.
"""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np

_MAX_DIGITS = 300  # a float of more digits is infinite


def plain(value: Any) -> Any:
    """Return dictionaries, lists and scalars as JSON has them: null for what is not finite."""
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def parse_integer(digits: str) -> int | float:
    """Return a whole number, ``parse_int`` of readers of JSON; infinity beyond a float."""
    return int(digits) if len(digits) <= _MAX_DIGITS else float(digits)


def unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object of JSON, ``object_pairs_hook`` of its readers, if no key stands twice."""
    fields = dict(pairs)
    if len(fields) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise ValueError(f"the key {twice!r} stands twice in one object; keep one of them")
    return fields


# all but tabs and ends of lines, and what turns the direction of a text
_CONTROLS = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]|\r(?!\n)"
)
_LONG_WORD = re.compile(r"(?<!\S)(\S{150})\S{51,}(\S{49})(?!\S)")
_LONG_LINE = re.compile(r"(.{4500}).{500,}")


def show_controls(text: str) -> str:
    r"""Write control characters, also those of the direction of a text, as Python does.

    >>> show_controls("\x1b[2J\u202e") == r"\x1b[2J\u202e"
    True
    """
    return _CONTROLS.sub(lambda control: repr(control[0])[1:-1], text)


def visible(text: str) -> str:
    """Show control characters; cut words beyond 250 characters, in their middle, and endless lines.

    >>> len(visible(f"run {'x' * 200_000}"))
    204
    """
    return _LONG_LINE.sub(r"\1…", _LONG_WORD.sub(r"\1…\2", show_controls(text)))
