"""A report in a terminal of 72 to 100 columns."""

from __future__ import annotations

import shutil
import textwrap
from collections.abc import Iterable

import pandas as pd

from trajscore.report._data import CALIBRATED, CONSTANT, RAW, ReportData
from trajscore.report._disclosures import disclosures, number_of_runs, population, sentence
from trajscore.report._verdict import verdicts
from trajscore.report.render.cells import margin_cells, stopping_cells

# Narrower, tables fall apart; wider, sentences are hard to read.
_NARROWEST, _WIDEST = 72, 100
_LONGEST_NAME = 20
_SHORT_FORMS = {RAW: "raw", CALIBRATED: "cal.", CONSTANT: ""}


def to_text(data: ReportData) -> str:
    """Return verdicts, tables, what was left out, and disclosures as plain text."""
    parts = [
        _lines(verdicts(data)),
        _lines([f"every number is of {population(data.facts)}"]),
        _table(data),
        _costs(data),
        _margins(data),
        _stopping(data),
        _lines("note: " + sentence(note) for note in data.remarks),
        _left_out(data),
        _lines(f"{name}: {text}" for name, text in disclosures(data).items()),
    ]
    return "\n\n".join(part for part in parts if part)


def _width() -> int:
    columns = shutil.get_terminal_size(fallback=(_WIDEST, 24)).columns
    return min(max(columns, _NARROWEST), _WIDEST)


def _lines(sentences: Iterable[str]) -> str:
    return "\n".join(
        textwrap.fill(one, _width(), subsequent_indent="    ", break_long_words=False)
        for one in sentences
    )


def _to_string(table: pd.DataFrame) -> str:
    """Print a table, in blocks of columns where it is wider than the terminal."""
    return table.to_string(line_width=_width())


# -------------------------------------------------------------------- tables


def _table(data: ReportData) -> str:
    names = [name for name in data.metrics if "ECUAS" not in name and name != "n_censored"]
    text = _columns(data.table, names)
    return _to_string(text.rename(columns=lambda name: name.removeprefix("TPS ")))


def _costs(data: ReportData) -> str:
    rows = data.table[data.table["ECUAS_1"].notna()]
    text = _columns(rows, [name for name in rows if name.startswith("ECUAS")])
    return "cost of accepting or rejecting runs by it (lower is better)\n" + _to_string(text)


def _columns(table: pd.DataFrame, names: list[str]) -> pd.DataFrame:
    text = pd.DataFrame({name: [_number(x, name) for x in table[name]] for name in names})
    return text.set_axis(_labels(table))


def _margins(data: ReportData) -> str:
    cells = margin_cells(data).rename(columns=lambda name: name.removeprefix("TPS "))
    return "margin over the base rate\n" + _to_string(cells.set_axis(_labels(cells)))


def _stopping(data: ReportData) -> str:
    cells = stopping_cells(data)
    if cells.empty:
        return ""
    short = _short_names(cells.index.get_level_values("predictor"))
    cells = cells.set_axis([f"{short[name]}, {alpha:g}" for name, alpha in cells.index])
    title = "stopping failing runs early, by predictor and level (out of fold)\n"
    return title + _to_string(cells)


def _labels(table: pd.DataFrame) -> list[str]:
    short = _short_names(table.index.get_level_values("predictor"))
    return [f"{short[name]} {_SHORT_FORMS[form]}" for name, form in table.index]


def _short_names(names: Iterable[str]) -> dict[str, str]:
    """Shorten long names, at the end or in the middle, as far as they can still be told apart."""
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


def _number(value: float, name: str) -> str:
    if pd.isna(value):
        return ""
    if name == "n_runs":
        return f"{int(value)}"
    text = f"{value:.5f}" if "beta" in name else f"{value:.3f}"
    # as printed tables do: .714, -.684
    return text.replace("0.", ".", 1) if abs(value) < 1 else text


def _left_out(data: ReportData) -> str:
    if data.excluded.empty:
        return "left out: no run"
    rows = [
        f"{number_of_runs(n)} ({'all predictors' if predictor == 'all' else predictor}: {reason})"
        for predictor, reason, n in data.excluded.itertuples(index=False)
    ]
    return _lines(["left out: " + "; ".join(rows)])
