"""Errors that name the argument which would help."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
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
