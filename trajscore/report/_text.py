"""A report in a terminal of 100 columns."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

import pandas as pd

if TYPE_CHECKING:
    from trajscore.report._report import Report

_WIDTH = 100


def to_text(report: Report) -> str:
    """Return the report as plain text.

    Parameters
    ----------
    report : Report
        The report.

    Returns
    -------
    str
        Verdicts, table, what was left out, disclosures.
    """
    parts = [
        "\n".join(_wrap(sentence) for sentence in report.verdicts()),
        _table(report),
        *(["\n".join(_wrap("note: " + note) for note in report.notes)] if report.notes else []),
        _left_out(report),
        "\n".join(_wrap(f"{name}: {text}") for name, text in report.disclosures.items()),
    ]
    return "\n\n".join(parts)


def _wrap(text: str) -> str:
    return textwrap.fill(text, _WIDTH, subsequent_indent="    ", break_long_words=False)


def _table(report: Report) -> str:
    table = report.table
    score = report.score_name
    shown = [name for name in table.columns if "margin" not in name and name != "n_censored"]
    text = pd.DataFrame(index=table.index)
    for name in shown:
        text[name.replace("TPS ", "")] = [_number(value, name) for value in table[name]]
    text[f"{score.removeprefix('TPS ')} vs base rate"] = [
        ""
        if pd.isna(row[f"{score} margin"]) or predictor == "base rate"
        else f"{row[f'{score} margin']:+.3f} "
        f"[{row[f'{score} margin_low']:+.3f}, {row[f'{score} margin_high']:+.3f}]"
        for (predictor, _), row in table.iterrows()
    ]
    names = [f"{predictor} {form}" for predictor, form in table.index]
    text.index = pd.Index([name if len(name) <= 24 else name[:21] + "..." for name in names])
    return text.to_string()


def _number(value: float, name: str) -> str:
    if pd.isna(value):
        return ""
    if name == "n_runs":
        return f"{int(value)}"
    return f"{value:.5f}" if "beta" in name else f"{value:.3f}"


def _left_out(report: Report) -> str:
    if report.excluded.empty:
        return "left out: no run"
    rows = [
        f"{row.n_runs} runs ({'all predictors' if row.predictor == 'all' else row.predictor}: {row.reason})"
        for row in report.excluded.itertuples()
    ]
    return _wrap("left out: " + "; ".join(rows))
