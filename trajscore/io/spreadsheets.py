"""Tables as CSV in which no text is a formula to a spreadsheet: an apostrophe stands before it.

What is read gives up one apostrophe before the same characters, so that all texts come back.
"""

from __future__ import annotations

import csv
import re

import pandas as pd

_FORMULA = r"('*[=+\-@\t\r])"  # how a text begins that is written with an apostrophe
_STARTS = tuple("'=+-@\t\r")


def to_csv(table: pd.DataFrame) -> str:
    """Write a table without its index; numbers stay as they are.

    >>> print(to_csv(pd.DataFrame({"id": ["=1+1", "'=a", "a=b"], "score": [-0.5, 0.2, 0.1]})))
    "id","score"
    "'=1+1",-0.5
    "''=a",0.2
    "a=b",0.1
    <BLANKLINE>
    """
    safe = _replaced(table, _STARTS, f"^{_FORMULA}", r"'\1")
    return safe.to_csv(index=False, quoting=csv.QUOTE_NONNUMERIC)


def from_csv(table: pd.DataFrame) -> pd.DataFrame:
    """Return a table that was read, its texts as they were before `to_csv`."""
    return _replaced(table, ("'",), f"^'{_FORMULA}", r"\1")


def _replaced(table: pd.DataFrame, starts: tuple[str, ...], pattern: str, by: str) -> pd.DataFrame:
    """Replace a pattern, which has one of these starts, in texts and in names of columns."""
    for name, cells in table.items():
        if cells.dtype.kind == "O" and cells.astype(str).str.startswith(starts).any():
            table = table.assign(**{str(name): cells.replace(pattern, by, regex=True)})
    return table.rename(columns=lambda name: re.sub(pattern, by, name))
