"""Refusing JSON that no format declares: what it has, the nearest format, how to name its parts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from trajscore.core.errors import ArgumentError

_MOST = 3  # names that are shown
_LONGEST = 14  # characters of one


def unknown_json(
    file: Path, record: Mapping[str, Any], formats: Mapping[str, tuple[str, ...]]
) -> ArgumentError:
    """Return the error for a JSON file by its first record, and the fields that formats have."""
    if not record:
        return ArgumentError(f"{file}: no JSON object could be read from it; give a log of runs")
    missing = {name: [key for key in keys if key not in record] for name, keys in formats.items()}
    nearest = max(formats, key=lambda name: len(formats[name]) - len(missing[name]))
    near = f"the nearest is {nearest}, but there is no {_names(missing[nearest][:2])}"
    if len(missing[nearest]) == len(formats[nearest]):
        near = "no format has one of these"
    listed = (name for name, value in record.items() if isinstance(value, list) and value)
    parts = "".join(f"steps={name}," for name in list(listed)[:1] if len(name) <= _LONGEST)
    return ArgumentError(
        f"{file}: the format is not known; it has {_names(record)}; {near}; name its parts, "
        f"{{argument:fields={parts}text=NAME}}",
        "format",
    )


def _names(names: Iterable[Any]) -> str:
    return ", ".join(repr(str(name)[:_LONGEST]) for name in list(names)[:_MOST])
