"""How objects show in a notebook: what they say of themselves, and a few rows."""

from __future__ import annotations

from html import escape
from typing import Any

import pandas as pd

N_SHOWN = 8
"""Number of rows shown; what is said of the object counts all."""


def as_html(summary: str, rows: pd.DataFrame) -> str:
    """Return a line and a small table, both escaped."""
    table = rows.to_html(border=0, na_rep="", float_format="{:.3g}".format, max_cols=12)
    return f"<div><p>{escape(summary)}</p>{table if len(rows) else ''}</div>"


def runs_as_html(X: Any) -> str:
    """Show a container: of the first runs the first and the last value of each channel."""
    few = X[:N_SHOWN]
    columns = {"steps": few.lengths, "ended": few.ended}
    cells = few.cells if few.cells.ndim == 2 else few.cells[:, None]
    for k, name in enumerate(few.channels or ("",)):
        columns[f"{name} first".strip()] = cells[few.offsets[:-1], k]
        columns[f"{name} last".strip()] = cells[few.offsets[1:] - 1, k]
    rows = pd.DataFrame(columns, index=pd.Index(few.ids, name="run"))
    return as_html(repr(X)[1:-1], pd.concat([rows, few.meta.set_axis(rows.index)], axis=1))
