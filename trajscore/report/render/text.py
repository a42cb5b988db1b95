"""A report in a terminal: one screen, or all numbers."""

from __future__ import annotations

from trajscore.evaluation.evaluation import Evaluation
from trajscore.report._disclosures import disclosures, left_out
from trajscore.report.render.layout import in_blocks, lines, short_names
from trajscore.report.render.summary import to_summary
from trajscore.report.render.tables import Table, tables_of
from trajscore.report.verdicts import verdicts
from trajscore.report.wording import answer


def to_text(data: Evaluation, *, verbose: bool = False) -> str:
    """Return one screen of text; verbose, all tables, what was left out, and disclosures."""
    if not verbose:
        return to_summary(data)
    short, stated = short_names(data.predictors), answer(data)
    parts = [
        lines(stated.lines),
        lines(verdicts(data)),
        *(_table(table, short) for table in tables_of(data)),
        lines(f"note: {note}" for note in stated.notes),
        lines([left_out(data)]),
        lines(f"{name}: {text}" for name, text in disclosures(data).items()),
    ]
    return "\n\n".join(part for part in parts if part)


def _table(table: Table, short: dict[str, str]) -> str:
    """Write a table, long names of predictors shortened."""
    rows = [
        ", ".join(short.get(part, str(part)) for part in key if part != "") for key, _ in table.rows
    ]
    title = lines([f"{table.title}. {table.note}".strip()])
    if not rows:
        return title
    return f"{title}\n{in_blocks(table.frame.set_axis(rows).rename(columns=short))}"
