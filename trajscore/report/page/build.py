"""The page: a first screen and three drawers, from templates; why is in a file of its own."""

import base64
import json
from collections.abc import Iterable
from dataclasses import asdict
from importlib.resources import files
from typing import Any

import numpy as np

from trajscore.core.errors import optional, show_controls, visible
from trajscore.core.parallel import Progress, Work
from trajscore.evaluation.evaluation import Evaluation
from trajscore.evaluation.reliability import worst_runs
from trajscore.io import Run
from trajscore.io.files import to_csv
from trajscore.report._disclosures import disclosures
from trajscore.report.glossary import GLOSSARY, LITERATURE, explain
from trajscore.report.page.screen import run_line, screen
from trajscore.report.page.view import Drawer, View, transcripts
from trajscore.report.page.why import why
from trajscore.report.render.as_json import to_json
from trajscore.report.render.tables import STEPS, of_locators, tables_of
from trajscore.report.verdicts import of_window, verdicts
from trajscore.report.wording import outcome_of

_MOST_RUNS = 60
_FIRST_RUNS = 20  # that are shown before one asks for more


def to_html(data: Evaluation, log: Iterable[Run] = (), progress: Progress | None = None) -> str:
    """Return the report as one page without anything outside of it."""
    view = View(data, log)
    drawers = [make(view) for make in Work(progress=progress).track([why, steps, runs, numbers])]
    shown = [drawer for drawer in drawers if drawer is not None]
    return _render("page.html.j2", view, drawers=shown)


def embedded(data: Evaluation) -> str:
    """Return the first screen, for a notebook."""
    return _render("embedded.html.j2", View(data), drawers=[])


def _render(name: str, view: View, drawers: list[Any]) -> str:
    template = environment().get_template(name)
    return template.render(view=view, of=view.screen, parts=screen(view), drawers=drawers)


def environment() -> Any:
    """Return Jinja2's environment over the templates of this package; everything is escaped."""
    jinja = optional("jinja2", "an HTML report needs Jinja2", "report")
    markup = optional("markupsafe", "an HTML report needs Jinja2", "report")
    environment = jinja.Environment(
        loader=jinja.PackageLoader("trajscore.report.page"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja.StrictUndefined,
        finalize=lambda value: visible(value) if type(value) is str else value,
    )

    def bold(text: str) -> Any:
        """Make the words between two pairs of stars bold."""
        parts = [markup.escape(part) for part in show_controls(text).split("**")]
        return markup.Markup("").join(
            markup.Markup("<b>%s</b>") % part if k % 2 else part for k, part in enumerate(parts)
        )

    def as_script(value: Any) -> Any:
        """Write JSON that no text in it can end."""
        text = json.dumps(value, ensure_ascii=False, allow_nan=False)
        return markup.Markup(text.replace("<", "\\u003c").replace("&", "\\u0026"))

    environment.filters |= {
        "bold": bold,
        "json": as_script,
        "place": lambda value: f"{float(value):.2f}%",
        # a name may break after an underscore
        "breaks": lambda name: markup.Markup("_<wbr>").join(
            map(markup.escape, visible(name).split("_"))
        ),
        "whole": lambda text: markup.escape(show_controls(text)),  # long words too
    }
    environment.globals["explain"] = explain
    environment.globals["style"] = _file("page.css")
    environment.globals["script"] = _file("page.js")
    return environment


def _file(name: str) -> str:
    return files("trajscore.report.page").joinpath("templates", name).read_text(encoding="utf-8")


def steps(view: View) -> Drawer | None:
    """Return which signals find the first wrong step; None without labels."""
    if view.data.first_errors is None:
        return None
    about = "which signals find the first wrong step, and how much there is to read"
    return Drawer("steps", STEPS, about, {"table": of_locators(view.data)})


def runs(view: View) -> Drawer:
    """Return the worst runs of the best predictor, with what was said in them."""
    key = view.shown
    if not view.data.forms_of(key[0]):
        return Drawer("runs", "Runs", "no predictor is a probability, so no run has a loss")
    worst = worst_runs(view.data, key, _MOST_RUNS)
    texts = transcripts(view, key, worst) if view.log else {}
    digits = 2 if max(run.loss for run in worst) >= 0.1 else 4
    rows = [
        asdict(run) | {
            "plot": run_line(view, key, run.row, run.flag), "place": place,
            "outcome": outcome_of(view.data, run.y), "read": of_window(view.data, run.row),
            "transcript": texts.get(run.id), "text": f"{run.loss:.{digits}f}",
            "ends": [f"{np.clip(end, 0, 1):.0%}" for end in (run.first, run.last)],
            "change": abs(run.last - run.first),
        }
        for place, run in enumerate(worst)
    ]  # fmt: skip
    which = f"{len(rows)} of {len(view.data.runs):,}, those that {view.called(key[0])} got most"
    about = f"{which} wrong first; a row opens in place"
    parts: dict[str, Any] = {
        "rows": rows, "first": _FIRST_RUNS, "has_log": bool(texts),
        "outcomes": list(dict.fromkeys(row["outcome"] for row in rows)),
        "unit": view.data.options.unit,
    }  # fmt: skip
    return Drawer("runs", "Runs", about, parts)


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
        "code": view.screen.texts.get("code"),
    }
    about = "every number, the data, how it was made, what the words mean"
    return Drawer("numbers", "Numbers and method", about, parts)


def _link(text: str, kind: str) -> str:
    """Return a file as a link, which needs no script and no server."""
    return f"data:{kind};base64,{base64.b64encode(text.encode()).decode()}"
