"""A report in a terminal of 72 to 100 columns."""

from __future__ import annotations

import shutil
import textwrap
from collections.abc import Iterable

import pandas as pd

from trajscore.report._data import CALIBRATED, CONSTANT, RAW, SCALAR_METRICS, ReportData
from trajscore.report._disclosures import disclosures, number_of_runs, population, sentence
from trajscore.report._verdict import contradictions, verdicts
from trajscore.report.render.cells import (
    digits_of,
    gain_cells,
    margin_cells,
    step_cells,
    stopping_cells,
)

# Narrower, tables fall apart; wider, sentences are hard to read.
_NARROWEST, _WIDEST = 72, 100
_LONGEST_NAME = 20
_SHORT_FORMS = {RAW: "raw", CALIBRATED: "cal.", CONSTANT: ""}


def to_text(data: ReportData) -> str:
    """Return verdicts, tables, what was left out, and disclosures as plain text."""
    parts = [
        _lines(verdicts(data)),
        _lines([f"every number is of {population(data.facts)}"]),
        _steps(data),
        _collapsed(data),
        _lines(contradictions(data)),
        _margins(data),
        _gains(data),
        _at_steps(data),
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


def _steps(data: ReportData) -> str:
    rows = data.table[data.table[data.score_name].notna()]
    text = _columns(rows, ["n_runs", *data.options.step_metrics])
    title = (
        "the forecast of every step: scores (higher is better), calibration error S-ECE, in all "
        "and by third of the run, and miscalibration MCB, what recalibration could gain (lower is "
        "better)"
    )
    short = text.rename(columns=lambda name: name.removeprefix("TPS ").removeprefix("S-ECE "))
    return f"{_lines([title])}\n{_to_string(short)}"


def _collapsed(data: ReportData) -> str:
    text = _columns(data.table, ["n_runs", *SCALAR_METRICS])
    title = (
        f"one number a run, its {data.options.phi} forecast: AUROC and AUPRC (higher is better), "
        f"calibration error T-ECE, which a constant base rate has none of, squared error, and the "
        f"cost ECUAS of accepting or rejecting runs by it (lower is better)"
    )
    return f"{_lines([title])}\n{_to_string(text)}"


def _columns(table: pd.DataFrame, names: list[str]) -> pd.DataFrame:
    text = pd.DataFrame({name: [_number(x, name) for x in table[name]] for name in names})
    return text.set_axis(_labels(table))


def _margins(data: ReportData) -> str:
    cells = margin_cells(data).rename(columns=lambda name: name.removeprefix("TPS "))
    return "margin over the base rate\n" + _to_string(cells.set_axis(_labels(cells)))


def _gains(data: ReportData) -> str:
    cells = gain_cells(data)
    if cells.empty:
        return ""
    cells.columns = [_short_names(cells.columns)[name] for name in cells]
    cells.index = cells.index.str.removeprefix("TPS ")
    return "raw -> calibrated, and the gain (above 0: better)\n" + _to_string(cells)


def _at_steps(data: ReportData) -> str:
    cells = step_cells(data)
    if cells.empty:
        return ""
    names = _short_names(data.predictors)
    title = "AUROC at a step, of the runs that are at least so long: length tells nothing here"
    return f"{_lines([title])}\n{_to_string(cells.rename(columns=names))}"


def _stopping(data: ReportData) -> str:
    cells = stopping_cells(data)
    if cells.empty:
        return ""
    short = _short_names(cells.index.get_level_values("predictor"))
    cells = cells.set_axis([f"{short[name]}, {alpha:g}" for name, alpha in cells.index])
    title = "stopping failing runs early, by predictor and level (on held-out runs)\n"
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
    text = f"{value:.{digits_of(name)}f}"
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
