"""What should I do: a card for each predictor."""

from __future__ import annotations

from typing import Any

import pandas as pd

from trajscore.report._cards import AVOID, ENDS, MATTERS, RECALIBRATE, TOO_FEW, USE
from trajscore.report._data import AS_GIVEN, FORMS, RECALIBRATED, VALUE
from trajscore.report._verdict import answer as say_answer
from trajscore.report._verdict import behind_counting, card_reason, counted_as, ranking
from trajscore.report.page.view import Section, View

MARKS = {USE: ("use", "\u2714"), RECALIBRATE: ("recalibrate", "\u21bb"),
         AVOID: ("avoid", "\u2716"), TOO_FEW: ("few", "?")}  # fmt: skip
FORECAST_OF = {
    "last": "last forecast",
    "mean": "average forecast",
    "min": "lowest forecast",
    "weighted": "average forecast, early steps counting more,",
}
"""What a threshold is compared with, by the way in which a run's forecasts become one number."""


def answer(view: View) -> Section:
    """Return the cards, best first, and what is best."""
    cards = [card(view, name) for name in view.names]
    headline, unobserved = say_answer(view.data)
    level = view.data.facts.intervals.confidence_level
    wrong = f"{100 * (1 - level):.3g} of 100 reports"
    parts = {
        "cards": cards, "unobserved": unobserved, "wrong": wrong, "matters": MATTERS,
        "counted_as": counted_as(view.data) if unobserved else "",
        "forecast": FORECAST_OF[view.data.options.phi],
    }  # fmt: skip
    return Section("answer", "Which predictor should I use?", headline, parts)


def card(view: View, name: str) -> dict[str, Any]:
    """Return what a predictor's card says."""
    row, data = view.cards.loc[name], view.data
    style, mark = MARKS[row["card"]]
    errors = {
        form: tuple(data.intervals.loc[(name, form, "S-ECE"), list(VALUE)])
        for form in view.forms(name)
    }
    return {
        "name": name,
        "action": row["card"],
        "style": style,
        "mark": mark,
        "why": card_reason(row, data),
        "behind": behind_counting(data, name),
        "margins": {
            form: tuple(row[f"{form}{end}"] for end in ENDS)
            for form in FORMS
            if not pd.isna(row[form])
        },
        "errors": errors,
        "auroc": data.table.loc[(name, AS_GIVEN), "AUROC"],
        "calibrated_auroc": data.table["AUROC"].get((name, RECALIBRATED)),
        "than_counting": ranking(data, name, brief=True),
        "notes": [note for note in data.remarks if note.predictor == name],
    }
