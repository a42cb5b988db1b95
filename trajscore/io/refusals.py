"""Refusing a file: one sentence of at most 200 characters, which names it once."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from trajscore.core.errors import ArgumentError
from trajscore.io._unread import is_prose
from trajscore.io._vocabulary import as_fields

_LONGEST = 200
_SHORTEST = 24  # characters of a path that are shown at least
_LONG = (
    (re.compile(r"\(([^(){}]{24})[^(){}]{4,}\)"), r"(\1…)"),
    (re.compile(r"'([^'{}]{14})[^'{}]{4,}'"), r"'\1…'"),
)
_MOST = 3  # names that are shown


@contextmanager
def refusals(path: Path, *, named: bool = True) -> Iterator[None]:
    """Keep what refuses a file to one short sentence; put the path before it if not `named`."""
    try:
        yield
    except (ValueError, FileNotFoundError) as error:
        if len(error.args) != 1:  # of the system, or of a library
            raise
        short = error if isinstance(error, ArgumentError) else ArgumentError(str(error))
        if not named and path.name not in str(error):
            short.text = f"{path}: {short.text}"
        shorten(short, str(path))
        error.args = (short.in_options({}),)
        raise


def shorten(error: ArgumentError, path: str = "") -> None:
    """Shorten the path from the left, then lists in brackets, long names, and the end."""
    before, shown, rest = error.text.partition(path or "\n")
    error.text = before + shown + rest.replace(path or "\n", Path(path).name or " ")
    if path and (over := _excess(error)) > 0:
        length = max(len(path) - over - 1, _SHORTEST)
        error.text = error.text.replace(
            path, f"…{path[-length:]}" if length < len(path) - 1 else path
        )
    for long, short in _LONG:
        if _excess(error) > 0:
            error.text = long.sub(short, error.text)
    while isinstance(error.value, dict) and len(error.value) > 2 and _excess(error) > 0:
        error.value.popitem()
    if len(str(error.value)) > _LONGEST // 2 and _excess(error) > 0:
        error.value = None  # a word of any length cannot be typed
    while (over := _excess(error)) > 0:
        text = error.text[: -over - 1]
        error.text = f"{text[: text.rfind('{')] if text.count('{') > text.count('}') else text}…"


def _excess(error: ArgumentError) -> int:
    return len(error.in_options({})) - _LONGEST


def unknown_json(
    file: Path, record: Mapping[str, Any], formats: Mapping[str, tuple[str, ...]]
) -> ArgumentError:
    """Return the error for a JSON file by its first record, and the fields that formats have."""
    if not record:
        return ArgumentError(f"{file}: no JSON object could be read from it; give a log of runs")
    missing = {name: [key for key in keys if key not in record] for name, keys in formats.items()}
    nearest = max(formats, key=lambda name: len(formats[name]) - len(missing[name]))
    lacks = ", ".join(map(repr, missing[nearest][:2]))
    near = f"the nearest is {nearest}, but there is no {lacks}"
    if len(missing[nearest]) == len(formats[nearest]):
        near = "no format has one of these"
    there = ", ".join(map(repr, list(record)[:_MOST]))
    steps = next((name for name, value in record.items() if isinstance(value, list) and value), "")
    if len(steps) >= _SHORTEST:
        steps = ""
    step = record
    if steps:
        step = record[steps][0]
    text = next((k for k, value in as_fields(step).items() if is_prose(str(value))), "NAME")
    parts = ",".join([f"steps={steps}"] * bool(steps) + [f"text={text}"] * isinstance(step, dict))
    return ArgumentError(
        f"{file}: the format is not known; it has {there}; {near}; name its parts, "
        f"{{argument:fields={parts}}}",
        "format",
    )
