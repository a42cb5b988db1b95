"""What a report comes to, on one screen of a terminal."""

from __future__ import annotations

import re

import pandas as pd

from trajscore.core.score_families import digits_of
from trajscore.report._cards import MARGINS, TOO_FEW, ranked
from trajscore.report._data import RAW, ReportData
from trajscore.report._disclosures import (
    identification,
    level_of_margins,
    number_of_runs,
    population,
    sentence,
)
from trajscore.report._verdict import (
    answer,
    behind_counting,
    card_reason,
    of_groups,
    of_stopping,
    without_unobserved,
)
from trajscore.report.render.cells import fixed
from trajscore.report.render.layout import in_blocks, lines, short_names

_MOST_ROWS, _MOST_NOTES = 10, 2


def to_summary(data: ReportData) -> str:
    """Return the answer, a line a predictor, and what a reader should know."""
    names = ranked(data.cards)
    best = names[0]
    parts = [
        lines(
            one
            for one in (
                answer(data),
                f"{best}: {card_reason(data.cards.loc[best], data)}",
                behind_counting(data, best),
                without_unobserved(data),
            )
            if one
        ),
        _table(data, names[:_MOST_ROWS]),
        lines(_about(data, len(names))),
        lines(_warnings(data)),
    ]
    return "\n\n".join(part for part in parts if part)


def _table(data: ReportData, names: list[str]) -> str:
    short, digits = short_names(names), digits_of(data.score_name)
    cards = data.cards.loc[names]
    columns = {"what to do": list(cards["card"])}
    if (cards["card"] == TOO_FEW).any():
        columns["runs lacking"] = [f"{n:,}" if n else "" for n in cards["n_needed"]]
    for form, margin in MARGINS.items():
        columns["as given" if form == RAW else "calibrated"] = [
            "" if pd.isna(one) else fixed(one, digits, "+") for one in cards[margin]
        ]
    columns["AUROC"] = [f"{data.table.loc[(name, RAW), 'AUROC']:.3f}" for name in names]
    return in_blocks(pd.DataFrame(columns, index=[short[name] for name in names]))


def _about(data: ReportData, n_predictors: int) -> list[str]:
    said = []
    if n_predictors > _MOST_ROWS:
        said.append(f"and {n_predictors - _MOST_ROWS} more predictors")
    unit = data.options.unit and f", in{data.options.unit}"
    said.append(
        f"Margins of {data.score_name} over the base rate{unit}, of {population(data.facts)}; "
        f"{level_of_margins(data)}."
    )
    if data.monitoring is not None:
        said.append(f"Stopping early: {of_stopping(data)}")
    if data.by is not None:
        said += [f"By {kind}, {of_groups(data, kind)}" for kind in data.by.index.unique("by")]
    return said


def _warnings(data: ReportData) -> list[str]:
    notes = [f"note: {sentence(note)}" for note in data.remarks]
    said = notes[:_MOST_NOTES]
    if len(notes) > _MOST_NOTES:
        said.append(f"and {len(notes) - _MOST_NOTES} more notes")
    if n := int(data.excluded["n_runs"].sum()):
        said.append(f"left out: {number_of_runs(n)}, for reasons that all numbers give")
    said.append(_more(data.source.command))
    if data.source.name:
        said.append(identification(data))
    return said


def _more(command: str) -> str:
    """Say where there is more, to who came by a command or by Python."""
    if not command:
        return "All numbers: report.to_text(verbose=True); a page: report.to_html('report.html')"
    page = "" if re.search(" --out[ =]", command) else "; a page: --out report.html"
    return f"All numbers: --verbose{page}"
