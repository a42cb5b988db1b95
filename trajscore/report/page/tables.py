"""Tables of the page: heads that say what they mean, and cells that sort by their numbers."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import pandas as pd

from trajscore.report._glossary import GLOSSARY, explain


class Head(NamedTuple):
    """Head of a column, what it means, and whether numbers stand below it."""

    text: str
    about: str = ""
    is_number: bool = True


class Cell(NamedTuple):
    """What a cell shows, and the number that it sorts by."""

    text: str
    value: Any = ""
    is_best: bool = False


@dataclass(frozen=True)
class Table:
    """A table, whose first columns name its rows."""

    title: str
    heads: Sequence[Head]
    rows: Sequence[Sequence[Cell]]
    note: str = ""
    n_names: int = 1
    id: str = ""


def table_of(
    title: str,
    frame: pd.DataFrame,
    names: Sequence[str],
    *,
    about: Mapping[str, str] | None = None,
    note: str = "",
) -> Table | None:
    """Return a table of texts, whose index has these names; None without rows."""
    if frame.empty:
        return None
    heads = [Head(name, "", False) for name in names]
    heads += [_head(str(name), about or {}) for name in frame]
    rows = [
        [Cell(text) for text in (*_parts(key), *map(str, cells))]
        for key, cells in zip(frame.index, frame.to_numpy(), strict=True)
    ]
    return Table(title, heads, rows, note, len(names))


def _head(name: str, about: Mapping[str, str]) -> Head:
    """Return the head of a column, explained by the glossary if by nothing else."""
    known = about.get(name, "") or (explain(name) if name in GLOSSARY else "")
    return Head(name, known)


def _parts(key: Hashable) -> Iterable[str]:
    return map(str, key) if isinstance(key, tuple) else (str(key),)
