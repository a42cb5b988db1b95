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
        _costs(report),
        _margins(report),
        *_stopping(report),
        *(["\n".join(_wrap("note: " + note) for note in report.notes)] if report.notes else []),
        _left_out(report),
        "\n".join(_wrap(f"{name}: {text}") for name, text in report.disclosures.items()),
    ]
    return "\n\n".join(parts)


def _wrap(text: str) -> str:
    return textwrap.fill(text, _WIDTH, subsequent_indent="    ", break_long_words=False)


def _table(report: Report) -> str:
    names = [name for name in report.table if "margin" not in name and "ECUAS" not in name]
    text = _columns(report.table, [name for name in names if name != "n_censored"])
    return text.rename(columns=lambda name: name.removeprefix("TPS ")).to_string()


def _costs(report: Report) -> str:
    rows = report.table[report.table["ECUAS_1"].notna()]
    text = _columns(rows, [name for name in rows if name.startswith("ECUAS")])
    return "cost of accepting or rejecting runs by it (lower is better)\n" + text.to_string()


def _columns(table: pd.DataFrame, names: list[str]) -> pd.DataFrame:
    text = pd.DataFrame({name: [_number(x, name) for x in table[name]] for name in names})
    text.index = pd.Index(_labels(table))
    return text


def _margins(report: Report) -> str:
    text = report.margins().rename(columns=lambda name: name.removeprefix("TPS "))
    text.index = pd.Index(_labels(text))
    return "margin over the base rate\n" + text.to_string()


def _stopping(report: Report) -> list[str]:
    text = report.stopping()
    if text.empty:
        return []
    text.index = pd.Index([f"{name[:20]}, {alpha:g}" for name, alpha in text.index])
    return [
        "stopping failing runs early, by predictor and level (out of fold)\n" + text.to_string()
    ]


def _labels(table: pd.DataFrame) -> list[str]:
    forms = {"raw": "raw", "calibrated": "cal.", "constant": ""}
    return [
        (name if len(name) <= 20 else name[:17] + "...") + " " + forms[form]
        for name, form in table.index
    ]


def _number(value: float, name: str) -> str:
    if pd.isna(value):
        return ""
    if name == "n_runs":
        return f"{int(value)}"
    text = f"{value:.5f}" if "beta" in name else f"{value:.3f}"
    # as printed tables do: .714, -.684
    return text.replace("0.", ".", 1) if abs(value) < 1 else text


def _left_out(report: Report) -> str:
    if report.excluded.empty:
        return "left out: no run"
    rows = [
        f"{n_runs} runs ({'all predictors' if predictor == 'all' else predictor}: {reason})"
        for predictor, reason, n_runs in report.excluded.itertuples(index=False)
    ]
    return _wrap("left out: " + "; ".join(rows))
