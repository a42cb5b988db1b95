"""Runs: those that the best predictor got most wrong; a row opens in place."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np

from trajscore.evaluation.reliability import worst_runs
from trajscore.report.page.screen import run_line
from trajscore.report.page.view import Drawer, View, transcripts
from trajscore.report.wording import outcome_of

_MOST = 60
FIRST = 20
"""Runs that are shown before one asks for more."""


def runs(view: View) -> Drawer:
    """Return the worst runs of the best predictor, with what was said in them."""
    key = view.shown
    if not view.data.forms_of(key[0]):
        return Drawer("runs", "Runs", "no predictor is a probability, so no run has a loss")
    worst = worst_runs(view.data, key, _MOST)
    texts = transcripts(view, key, worst) if view.log else {}
    digits = 2 if max(run.loss for run in worst) >= 0.1 else 4
    rows = [
        asdict(run) | {
            "plot": run_line(view, key, run.row, run.flag), "place": place,
            "outcome": outcome_of(view.data, run.y),
            "transcript": texts.get(run.id), "text": f"{run.loss:.{digits}f}",
            "ends": [f"{np.clip(end, 0, 1):.0%}" for end in (run.first, run.last)],
            "change": abs(run.last - run.first),
        }
        for place, run in enumerate(worst)
    ]  # fmt: skip
    which = f"{len(rows)} of {len(view.data.runs):,}, those that {view.called(key[0])} got most"
    about = f"{which} wrong first; a row opens in place"
    parts: dict[str, Any] = {
        "rows": rows, "first": FIRST, "has_log": bool(texts),
        "outcomes": list(dict.fromkeys(row["outcome"] for row in rows)),
        "unit": view.data.options.unit,
    }  # fmt: skip
    return Drawer("runs", "Runs", about, parts)
