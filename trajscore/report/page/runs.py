"""Runs: those that the best predictor got most wrong; a row opens in place."""

from __future__ import annotations

from typing import Any

import numpy as np

from trajscore.report._worst_runs import worst_runs
from trajscore.report.page.screen import run_line
from trajscore.report.page.transcripts import transcripts
from trajscore.report.page.view import Drawer, View

_MOST = 60
FIRST = 20
"""Runs that are shown before one asks for more."""


def runs(view: View) -> Drawer:
    """Return the worst runs of the best predictor, with what was said in them."""
    key = view.shown
    if not view.forms(key[0]):
        return Drawer("runs", "Runs", "no predictor is a probability, so no run has a loss")
    table = worst_runs(view.data, key, _MOST)
    flags = dict(zip(table["id"], table["flag"], strict=True))
    texts = transcripts(view, key, flags) if view.log else {}
    digits = 2 if table["loss"].max() >= 0.1 else 4
    rows = [
        _row(row) | run_line(view, key, int(number), row["flag"])
        | {"transcript": texts.get(row["id"]), "place": place, "text": f"{row['loss']:.{digits}f}"}
        for place, (number, row) in enumerate(table.iterrows())
    ]  # fmt: skip
    who, whole = view.called(key[0]), len(rows) == view.data.facts.n_runs
    which = f"all {len(rows)}, those that {who} got most wrong first"
    which = which if whole else f"the {len(rows)} that {who} got most wrong"
    about = f"{which}; a row opens in place"
    parts: dict[str, Any] = {
        "rows": rows, "first": FIRST, "has_log": bool(texts),
        "outcomes": list(dict.fromkeys(row["outcome"] for row in rows)),
        "unit": view.data.options.unit,
    }  # fmt: skip
    return Drawer("runs", "Runs", about, parts)


def _row(row: Any) -> dict[str, Any]:
    """Return what a row says of a run."""
    return {
        "id": row["id"], "outcome": row["outcome"], "loss": float(row["loss"]),
        "first_value": f"{np.clip(row['first'], 0, 1):.0%}",
        "last_value": f"{np.clip(row['last'], 0, 1):.0%}",
        "reason": row["reason"], "task": row["task"],
        "change": float(abs(row["last"] - row["first"])), "label": float(row["label"]),
    }  # fmt: skip
