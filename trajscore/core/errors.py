"""Errors that name the argument or the extra which would help, or carry the place of a fault.

Texts of users in them, and elsewhere, are shown so that they do not act on a screen.
"""

import re
import shlex
from collections.abc import Mapping
from importlib import import_module
from typing import Any

_ARGUMENT = re.compile(r"\{argument(?::(\w+)(?:=([^{}]*))?)?\}")


class ArgumentError(ValueError):
    """An input that an argument would mend.

    Python calls the argument `part` by its name, which may be that of an owner's, such as
    ``EvaluationOptions.missing``; a command line by its option (`in_options`). In
    `text`, one sentence, ``{argument}`` stands for it with the `value` to give it,
    ``{argument:name}`` for another argument, ``{argument:name=value}`` for that with its value.

    >>> error = ArgumentError("step 0 is the first; pass {argument}", "first_step", 0)
    >>> print(error)
    step 0 is the first; pass first_step=0
    >>> error.in_options({"first_step": "--first-step"})
    'step 0 is the first; pass --first-step 0'
    """

    def __init__(self, text: str, part: str = "", value: Any = None) -> None:
        self.text = text
        self.part = part
        self.value = value
        super().__init__(self.in_options({}))

    def in_options(self, options: Mapping[str, str]) -> str:
        """Return the text with options for the arguments that have one, by their names."""

        def named(match: re.Match[str]) -> str:
            owner, _, part = self.part.rpartition(".")
            name, value = match.groups()
            if name is None:
                name = part
                value = self.value
            if name in options and value is None:
                return options[name]
            if name in options:
                return f"{options[name]} {shlex.quote(str(value))}"
            if value is None:
                return f"{name}{'=' * bool(match[1])}"
            if owner and name == part:
                return f"{owner}({name}={value!r})"
            return f"{name}={value!r}"

        return _ARGUMENT.sub(named, self.text)


class CannotMeasureError(ArgumentError):
    """A number that these runs do not give: what can go on without it catches this, and says so.

    Any other `ValueError` is a fault of the code, which nothing hides.
    """


class MissingStepError(ArgumentError):
    """A run of a table starts late or has a gap: the row of a missing step may stand elsewhere."""


class TooFewRunsError(ArgumentError):
    """Runs, labels or groups do not fill the folds of a fit: what can go on without it says so."""


class RowError(ValueError):
    """A value in one row of the input is wrong; whoever knows the run of that `row` can name it.

    >>> print(RowError("q_z is 1.5; give a chance in [0, 1]", row=3))
    row 3: q_z is 1.5; give a chance in [0, 1]
    """

    def __init__(self, text: str, row: int) -> None:
        self.text = text
        self.row = row
        super().__init__(text, row)  # so that a process can send the error to another one

    def __str__(self) -> str:
        return f"row {self.row}: {self.text}"


def optional(module: str, need: str, extra: str, instead: str = "") -> Any:
    """Import a module, or say what needs it and which extra brings it."""
    try:
        return import_module(module)
    except ImportError as error:
        raise ImportError(
            f'{need}; run `pip install "scikit-trajscore[{extra}]"`{instead}'
        ) from error


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
