"""Can failing runs be stopped early, and at which promise."""

from __future__ import annotations

from trajscore.report._data import REFERENCES
from trajscore.report._glossary import explain
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
    table = view.data.monitoring
    if table is None:
        return (
            "A guarantee on the good runs that are stopped was not asked for; what plain "
            "thresholds do stands in the section before."
        )
    own = table if table.empty else table.drop(list(REFERENCES), level=0, errors="ignore")
    if not own.empty:
        own = own.dropna(subset="power_before_end")
    if own.empty:
        return "These runs are too few, or too alike, to fit a rule on some and judge it on others."
    levels = own.index.get_level_values("alpha").unique().sort_values()
    at_level = own.xs(levels[len(levels) // 2], level="alpha", drop_level=False)
    (name, alpha) = at_level["power_before_end"].idxmax()
    row = own.loc[(name, alpha)]
    if row["power_before_end"] < 0.005:
        return (
            f"With at most {alpha:.0%} of the good runs flagged, no predictor flags a failing run "
            f"before its last step."
        )
    return (
        f"On {name}, with at most {alpha:.0%} of the good runs flagged, "
        f"{row['power_before_end']:.0%} of the failing runs are flagged before their last step, "
        f"which saves {row['steps_saved']:.0%} of their steps."
    )
