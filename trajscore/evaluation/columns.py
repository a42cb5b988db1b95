"""What describes a row of the main table, and how columns of that table are shown."""

from collections.abc import Callable
from typing import NamedTuple

from trajscore.evaluation.rows import Row


class Column(NamedTuple):
    """A column of a report's main table: its name in code and JSON, and what people read."""

    name: str
    heading: str
    meaning: str = ""  # for the glossary, which has that of metrics
    digits: int = 3
    better: str = ""  # an arrow up or down
    sentence: str = ""  # below the table of the first screen; "" leaves the column out there


DESCRIPTIONS: dict[Column, Callable[[Row], float]] = {
    Column("n_runs", "runs", "Runs that this row is of.", 0): lambda row: len(row.runs),
    Column("n_censored", "no outcome", "Of these, runs whose outcome was not observed.", 0): (
        lambda row: (~row.runs.observed).sum()
    ),
}
"""Columns that are neither better high nor low, with their number of a row."""
