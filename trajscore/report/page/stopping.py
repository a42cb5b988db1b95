"""Can failing runs be stopped early, and at which promise."""

from __future__ import annotations

from trajscore.report._glossary import explain
from trajscore.report._verdict import of_stopping
from trajscore.report.page.view import Section, View
from trajscore.report.render.cells import stopping_cells

_ASK = "trajscore report ... --monitor, or evaluate(..., monitoring=True)"


def stopping(view: View) -> Section:
    """Return what a stopping rule did on runs that it was not fitted on."""
    cells = stopping_cells(view.data)
    rows = [
        {"name": name, "alpha": f"{alpha:g}", "cells": list(row)}
        for (name, alpha), row in zip(cells.index, cells.to_numpy(), strict=True)
    ]
    places = {name: place for place, name in enumerate(view.names)}
    rows.sort(key=lambda row: places.get(row["name"], len(places)))
    heads = [{"name": name, "about": explain(name)} for name in cells if name != "good, bad runs"]
    return Section(
        "stopping", "Can I stop failing runs early?", _sentence(view),
        {"heads": heads, "rows": rows, "ask": _ASK},
    )  # fmt: skip


def _sentence(view: View) -> str:
    if view.data.monitoring is None:
        return "No stopping rule was asked for. The section before shows what plain thresholds do."
    return of_stopping(view.data)
