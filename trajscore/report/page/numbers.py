"""Numbers and method: every number, what may be wrong with the data, and how it was made."""

from __future__ import annotations

import base64

from trajscore.evaluation.options import AS_GIVEN
from trajscore.io.spreadsheets import to_csv
from trajscore.report._disclosures import disclosures
from trajscore.report.glossary import GLOSSARY, LITERATURE
from trajscore.report.page.view import Drawer, View
from trajscore.report.render.as_json import to_json
from trajscore.report.render.tables import tables_of
from trajscore.report.verdicts import verdicts


def numbers(view: View) -> Drawer:
    """Return all tables, and what the report discloses."""
    data = view.data
    main, *tables = tables_of(data)
    titles = [main.title, *(table.title for table in tables), "Groups of runs"]
    parts = {
        "main": main,
        "tables": tables,
        "files": {
            "report.json": _link(to_json(data), "application/json"),
            "report.csv": _link(to_csv(data.intervals.reset_index().round(6)), "text/csv"),
        },
        "reasons": view.screen.answer.doubts,
        "verdicts": verdicts(data),
        "notes": view.screen.answer.notes,
        "disclosures": disclosures(data),
        "glossary": {name: text for name, text in GLOSSARY.items() if name not in titles},
        "references": LITERATURE,
        "command": data.source.command,
        "guesses": data.source.guesses.splitlines(),
        "recipe": _recipe(view),
    }
    about = "every number, the data, how it was made, what the words mean"
    return Drawer("numbers", "Numbers and method", about, parts)


def _recipe(view: View) -> str:
    """Return the call that gives new runs the forecasts that the thresholds are for."""
    calibrators, (name, form) = view.data.facts.calibrators or {}, view.shown
    if form == AS_GIVEN or name not in calibrators:
        return ""
    return f"{calibrators[name]}.fit(X[{name!r}], y).transform(new[{name!r}])"


def _link(text: str, kind: str) -> str:
    """Return a file as a link, which needs no script and no server."""
    return f"data:{kind};base64,{base64.b64encode(text.encode()).decode()}"
