"""Lines and tables of a terminal of 72 to 100 columns."""

from __future__ import annotations

import shutil
import textwrap
from collections.abc import Iterable

import pandas as pd

from trajscore.core.visible import visible

# Narrower, tables fall apart; wider, sentences are hard to read.
_NARROWEST, _USUAL, _WIDEST = 72, 80, 100
_LONGEST_NAME = 20


def width() -> int:
    """Return how many columns there are to write on."""
    columns = shutil.get_terminal_size(fallback=(_USUAL, 24)).columns
    return min(max(columns, _NARROWEST), _WIDEST)


def lines(sentences: Iterable[str]) -> str:
    """Write sentences, each from the start of a line."""
    return "\n".join(
        textwrap.fill(visible(sentence), width(), subsequent_indent="    ", break_long_words=False)
        for sentence in sentences
    )


def in_blocks(table: pd.DataFrame) -> str:
    """Print a table of text; where it is wider than the terminal, in blocks of columns."""
    table = table.rename(visible)
    labels = max(map(len, map(str, table.index)), default=0)
    blocks: list[list[str]] = [[]]
    room = width() - labels
    for name in table:
        needed = 2 + max(len(visible(str(name))), table[name].astype(str).str.len().max())
        if needed > room and blocks[-1]:
            blocks.append([])
            room = width() - labels
        blocks[-1].append(name)
        room -= needed
    return "\n\n".join(table[names].rename(columns=visible).to_string() for names in blocks)


def short_names(names: Iterable[str]) -> dict[str, str]:
    """Shorten long names, at the end or in the middle, as long as they stay distinct."""
    known = list(dict.fromkeys(names))
    for head in (_LONGEST_NAME - 3, _LONGEST_NAME // 2 - 3):
        tail = _LONGEST_NAME - 3 - head
        short = [
            name if len(name) <= _LONGEST_NAME else name[:head] + "..." + name[len(name) - tail :]
            for name in known
        ]
        if len(set(short)) == len(known):
            return dict(zip(known, short, strict=True))
    return {name: name for name in known}
