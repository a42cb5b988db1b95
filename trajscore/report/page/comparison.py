"""How do the predictors compare: margins over the base rate, pairs, and groups of runs."""

from __future__ import annotations

from typing import Any

import numpy as np

from trajscore.report._cards import ENDS
from trajscore.report._data import AS_GIVEN, FORMS, RECALIBRATED
from trajscore.report._groups import shown_groups
from trajscore.report._verdict import card_reason, of_groups
from trajscore.report.page.answer import MARKS
from trajscore.report.page.charts import axis_of
from trajscore.report.page.view import Section, View

_WIDTH = 230


def comparison(view: View) -> Section:
    """Return the forest of margins, the pairs and the groups."""
    columns = [_column(view, form) for form in (AS_GIVEN, RECALIBRATED)]
    return Section(
        "comparison",
        "How do they compare?",
        _sentence(view),
        {
            "forest": [column for column in columns if column["strips"]],
            "names": view.names,
            "matrix": _matrix(view),
            "groups": _groups(view),
        },
    )


def _sentence(view: View) -> str:
    pairs = view.data.pairs
    if len(view.names) == 1:
        return f"There is one predictor, {view.best}, beside the base rate and counting steps."
    if pairs is None or not len(pairs):
        return "The predictors are judged on different runs: compare their margins only."
    apart = ((pairs["low"] > 0) | (pairs["high"] < 0)).sum()
    if not apart:
        return "No two predictors differ significantly: take the cheapest."
    return f"{apart} of {len(pairs)} pairs of predictors differ significantly."


def _column(view: View, form: str) -> dict[str, Any]:
    """Return strips of a form's margins, on an axis of their own."""
    rows = view.cards[[f"{form}{end}" for end in ENDS]]
    axis = axis_of(rows, 8, _WIDTH - 8, zero=True)
    strips = {}
    for name, (value, low, high) in zip(rows.index, rows.to_numpy(dtype=float), strict=True):
        if not np.isnan(value):
            strips[name] = {
                "places": [float(axis(end)) for end in (value, low, high)],
                "ends": (value, low, high),
                "has_interval": bool(np.isfinite([low, high]).all()),
            }
    return {
        "title": FORMS[form], "form": form, "axis": axis, "zero": float(axis(0.0)),
        "strips": strips, "width": _WIDTH,
    }  # fmt: skip


def _matrix(view: View) -> dict[str, Any] | None:
    """Return what each predictor is above each other one, at one error rate for all pairs."""
    pairs = view.data.pairs
    names = view.names[:30]
    if pairs is None or len(names) < 2 or not len(pairs):
        return None
    cells: dict[tuple[str, str], Any] = {}
    for name, other, difference, low, high in pairs.itertuples(index=False):
        cells[name, other] = (difference, low, high)
        cells[other, name] = (-difference, -high, -low)
    return {"names": names, "cells": cells}


def _groups(view: View) -> list[dict[str, Any]]:
    """Return the cards within each kind of groups, the largest first, not many that say nothing."""
    table = view.data.by
    if table is None:
        return []
    kinds = []
    for kind in table.index.unique("by"):
        shown, more = shown_groups(table.loc[kind])
        rows = [
            {"group": group, "predictor": name, "style": MARKS[row["card"]][0], "row": row,
             "why": card_reason(row, view.data)}
            for (group, name), row in shown.iterrows()
        ]  # fmt: skip
        sentence = of_groups(view.data, kind)
        kinds.append({"kind": kind, "rows": rows, "more": more, "sentence": sentence})
    return kinds
