"""Rows of a table in JSON: objects of a list, or one a line."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from trajscore.io.files import Broken, LogFile


def json_rows(path: Path, max_size: int | None = None) -> Iterator[dict[str, Any]]:
    """Yield the objects of a list in JSON, or of JSON lines."""
    for key, index, row in LogFile(path, max_size=max_size).items():
        if index is None:
            raise ValueError(
                f"it is one object, with the field {key!r}; write a list of rows, or one row a "
                f"line, in pandas with orient='records'"
            )
        if isinstance(row, Broken):
            raise ValueError(row)
        if not isinstance(row, dict):
            raise ValueError(f"row {index} is {type(row).__name__}, not an object")
        yield row
