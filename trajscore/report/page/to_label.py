"""A page to read runs of a log and say how each ended, which works from a file."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from trajscore.io import Run
from trajscore.report.page.build import environment
from trajscore.report.page.transcripts import turns_of

# A cell of a spreadsheet holds 32,767 characters.
_LONGEST = 30_000


def transcript(run: Run) -> str:
    """Return what was said in a run, as one text."""
    lines = [f"task: {run.task}"] if run.task is not None else []
    for turn in turns_of(run):
        parts = [turn["text"], turn["calls"], turn["result"] and f"-> {turn['result']}"]
        lines.append(f"{turn['actor']}: " + "\n".join(part for part in parts if part))
    text = "\n\n".join(lines)
    if len(text) <= _LONGEST:
        return text
    half = _LONGEST // 2
    return f"{text[:half]}\n... ({len(text) - 2 * half:,} characters left out)\n{text[-half:]}"


def page_to_label(table: pd.DataFrame, log: Sequence[Run], file: str) -> str:
    """Return a page with the runs of a table; it saves the table, with outcomes, as `file`."""
    runs, shown = {str(run.id): run for run in log}, []
    for row in table.to_dict("records"):
        run = runs[str(row["run"])]
        shown.append(
            {
                "id": str(row["run"]),
                "outcome": "" if pd.isna(row["outcome"]) else str(int(row["outcome"])),
                "probability": repr(float(row["label_probability"])),
                "task": "" if run.task is None else str(run.task),
                "turns": turns_of(run),
            }
        )
    return str(environment().get_template("label.html.j2").render(runs=shown, file=file))
