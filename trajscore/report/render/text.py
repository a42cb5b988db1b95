"""A report in a terminal: one screen, or all numbers."""

from __future__ import annotations

import numpy as np
import pandas as pd

from trajscore.core.score_families import digits_of
from trajscore.report._answer import answer
from trajscore.report._cards import ranked
from trajscore.report._contradictions import contradictions
from trajscore.report._data import AS_GIVEN, RECALIBRATED, REFERENCES, RUN_METRICS, ReportData
from trajscore.report._disclosures import (
    disclosures,
    identification,
    left_out,
    level_of_margins,
    population,
    sentence,
)
from trajscore.report._first_screen import without_marks
from trajscore.report._numbers import short_number
from trajscore.report._verdict import of_groups, verdicts
from trajscore.report.render.cells import (
    gain_cells,
    group_cells,
    margin_cells,
    step_cells,
    stopping_cells,
)
from trajscore.report.render.layout import in_blocks, lines, short_names
from trajscore.report.render.summary import to_summary

_SHORT_FORMS = {AS_GIVEN: "given", RECALIBRATED: "recal."}


def to_text(data: ReportData, *, verbose: bool = False) -> str:
    """Return one screen of text; verbose, all tables, what was left out, and disclosures."""
    if not verbose:
        return to_summary(data)
    stated = answer(data)
    parts = [
        lines([stated.headline, without_marks(f"{stated.why}: {stated.reason}")]),
        lines(verdicts(data)),
        lines([f"every number is of {population(data.facts)}"]),
        _steps(data),
        _collapsed(data),
        lines(contradictions(data)),
        _margins(data),
        _gains(data),
        _at_steps(data),
        *_groups(data),
        _stopping(data),
        lines("note: " + sentence(note) for note in data.remarks),
        lines([left_out(data)]),
        lines(f"{name}: {text}" for name, text in disclosures(data).items()),
        lines([identification(data)]),
    ]
    return "\n\n".join(part for part in parts if part)


# -------------------------------------------------------------------- tables


def _steps(data: ReportData) -> str:
    rows = _sorted(data, data.table[data.table[data.score_name].notna()])
    text = _columns(rows, ["n_runs", *data.options.step_metrics])
    title = (
        "the forecast of every step: scores (higher is better), calibration error S-ECE, in all "
        "and at steps 1 to 3, 4 to 10 and from 11 on, and miscalibration MCB, what recalibration "
        "could gain (lower is better)"
    )
    short = text.rename(columns=lambda name: name.removeprefix("TPS ").removeprefix("S-ECE "))
    return _titled(title, short)


def _collapsed(data: ReportData) -> str:
    title = (
        f"one number a run, its {data.options.phi} forecast: AUROC and AUPRC (higher is better), "
        f"calibration error T-ECE, which a constant base rate has none of, squared error, and the "
        f"cost ECUAS of accepting or rejecting runs by it (lower is better)"
    )
    return _titled(title, _columns(_sorted(data, data.table), ["n_runs", *RUN_METRICS]))


def _sorted(data: ReportData, table: pd.DataFrame) -> pd.DataFrame:
    """Put the best predictor first, and the references last."""
    order = {name: place for place, name in enumerate(ranked(data.cards))}
    names = table.index.get_level_values("predictor")
    places = [order.get(name, len(order)) for name in names]
    return table.iloc[np.argsort(places, kind="stable")]


def _columns(table: pd.DataFrame, names: list[str]) -> pd.DataFrame:
    text = pd.DataFrame({name: [_number(x, name) for x in table[name]] for name in names})
    return text.set_axis(_labels(table))


def _margins(data: ReportData) -> str:
    cells = _sorted(data, margin_cells(data)).rename(columns=lambda name: name.removeprefix("TPS "))
    title = f"margin over the base rate; {level_of_margins(data)}"
    return _titled(title, cells.set_axis(_labels(cells)))


def _gains(data: ReportData) -> str:
    cells = gain_cells(data)
    cells = cells[[name for name in ranked(data.cards) if name in cells]]
    cells = cells.rename(columns=short_names(cells))
    cells.index = cells.index.map(lambda name: name.removeprefix("TPS "))
    return _titled("as given -> recalibrated, and the gain (above 0: better)", cells)


def _at_steps(data: ReportData) -> str:
    title = (
        "AUROC at a step, of the runs that are at least that long, which counting steps cannot rank"
    )
    return _titled(title, step_cells(data).rename(columns=short_names(data.predictors)))


def _groups(data: ReportData) -> list[str]:
    parts = []
    for kind in [] if data.by is None else data.by.index.unique("by"):
        cells, n_left_out = group_cells(data, kind)
        short = short_names(cells.index.get_level_values("predictor"))
        several = len(short) > 1
        labels = [f"{group}, {short[name]}" if several else group for group, name in cells.index]
        text = [lines([f"by {kind}: {of_groups(data, kind)}"])]
        text += [in_blocks(cells.set_axis(labels))] if labels else []
        text += [f"and {n_left_out} smaller groups"] if n_left_out else []
        parts.append("\n".join(text))
    return parts


def _stopping(data: ReportData) -> str:
    cells = stopping_cells(data)
    short = short_names(name for name, _ in cells.index)
    cells = cells.set_axis([f"{short[name]}, {alpha:g}" for name, alpha in cells.index])
    return _titled("stopping failing runs early, by predictor and level (on held-out runs)", cells)


def _titled(title: str, cells: pd.DataFrame) -> str:
    return "" if cells.empty else f"{lines([title])}\n{in_blocks(cells)}"


def _labels(table: pd.DataFrame) -> list[str]:
    names = [name for name in table.index.get_level_values("predictor") if name not in REFERENCES]
    short = short_names(names)
    return [
        name if name in REFERENCES else f"{short[name]} {_SHORT_FORMS[form]}"
        for name, form in table.index
    ]


def _number(value: float, name: str) -> str:
    if pd.isna(value):
        return ""
    if name == "n_runs":
        return f"{int(value):,}"
    return short_number(value, digits_of(name))
