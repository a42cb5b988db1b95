"""Texts of users as people read them: what would act on a screen is shown instead, and cut."""

from __future__ import annotations

import re

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
