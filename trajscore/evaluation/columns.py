"""The columns of a report's main table: what describes a row, and how a column is shown."""

from collections.abc import Callable
from typing import NamedTuple

from trajscore.evaluation.rows import Row


class Column(NamedTuple):
    """A column of the main table: its name in code and JSON, and what people read."""

    name: str
    heading: str
    meaning: str = ""  # of a metric, its line in the glossary
    digits: int = 3  # none of a count
    better: str = ""  # an arrow: up, down, or neither
    sentence: str = ""  # of the first screen, which has no column without


DESCRIPTIONS: dict[Column, Callable[[Row], float]] = {
    Column("n_runs", "runs", "Runs that this row is of.", 0): lambda row: len(row.runs),
    Column("n_censored", "no outcome", "Of these, runs whose outcome was not observed.", 0): (
        lambda row: (~row.runs.observed).sum()
    ),
}
"""What describes a row and is neither good nor bad, with its number of it."""
