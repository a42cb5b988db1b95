"""All numbers."""

from __future__ import annotations

import base64
from typing import Any

import pandas as pd

from trajscore.core.score_families import digits_of
from trajscore.report._cards import gain_of
from trajscore.report._data import (
    FORMS,
    GAIN,
    MARGIN,
    OVER_ALIVE,
    OVER_ALIVE_END,
    REFERENCES,
    ReportData,
)
from trajscore.report._glossary import arrow, explain
from trajscore.report._numbers import short_number
from trajscore.report.page.view import Section, View
from trajscore.report.render.as_json import to_json

_OVER = {
    f"AUROC {OVER_ALIVE[0]}": "AUROC over counting",
    f"AUROC {OVER_ALIVE_END[0]}": "AUROC over counting, end known",
}


_SHORT = {"n_runs": "runs", "n_censored": "no outcome", **_OVER}


def numbers(view: View) -> Section:
    """Return the main table, best values marked, and the files to save."""
    data = view.data
    columns = ["n_runs", "n_censored", *data.options.metrics, *_OVER]
    best = {name: _best(data, name, arrow(name, data.options)) for name in columns}
    rows = []
    ordered = [
        key for name in (*view.names, *REFERENCES) for key in data.table.index if key[0] == name
    ]
    for name, form in ordered:
        row = data.table.loc[(name, form)]
        cells = [
            {
                "value": row[column],
                "text": _text(row[column], column),
                "best": (name, form) in best[column],
            }
            for column in columns
        ]
        rows.append(
            {
                "name": name,
                "form": "" if name in REFERENCES else FORMS.get(form, ""),
                "cells": cells,
            }
        )
    heads = [
        {
            "parts": _SHORT.get(column, column).replace("_", "_ ").split(" "),
            "arrow": arrow(column, data.options),
            "about": explain(column),
        }
        for column in columns
    ]
    files = {
        "report.json": _link(to_json(data), "application/json"),
        "report.csv": _link(data.intervals.reset_index().round(6).to_csv(index=False), "text/csv"),
    }
    return Section(
        "numbers",
        "What are all the numbers?",
        "Arrows say which way is better. Among the rows that beat the base rate, the best of each "
        "column is bold. Point at a name to read what it means, or see the glossary below.",
        {"heads": heads, "rows": rows, "files": files, "gains": _gains(view)},
    )


def _gains(view: View) -> list[dict[str, Any]]:
    """Return what recalibration changes in each metric of each predictor."""
    data = view.data
    return [
        {"name": name, "metric": metric, "digits": digits_of(metric), "about": explain(metric),
         **row, **dict(zip(GAIN, gain_of(data, name, metric), strict=True))}
        for (name, metric), row in data.calibration_gain.to_dict("index").items()
    ]  # fmt: skip


def _text(value: Any, name: str) -> str:
    if pd.isna(value):
        return ""
    return f"{int(value):,}" if name.startswith("n_") else short_number(value, digits_of(name))


def _best(data: ReportData, name: str, way: str) -> set[Any]:
    """Return the rows with the best value, among those that beat the base rate."""
    column = data.table[name].dropna().drop(list(REFERENCES), level="predictor", errors="ignore")
    known = column[[_beats(data, key, name, way) for key in column.index]] if way else column[:0]
    if known.empty:
        return set()
    best = known.min() if way == "\u2193" else known.max()
    return set(known.index[known == best])


def _beats(data: ReportData, key: tuple[str, str], name: str, way: str) -> bool:
    if name in _OVER:
        return bool(data.table.loc[key, f"{name}_low"] > 0)
    low, high = data.intervals.loc[(*key, name), list(MARGIN[1:])]
    by_card = data.cards.loc[key[0], f"{key[1]}_low"]
    return bool(by_card > 0 or (high < 0 if way == "\u2193" else low > 0))


def _link(text: str, kind: str) -> str:
    """Return a file as a link, which needs no script and no server."""
    return f"data:{kind};base64,{base64.b64encode(text.encode()).decode()}"
