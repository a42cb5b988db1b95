"""The page, from sections and templates."""

from __future__ import annotations

from collections.abc import Iterable
from importlib.resources import files
from typing import Any

import numpy as np
import pandas as pd

from trajscore.core.optional import optional
from trajscore.core.parallel import Progress, Work
from trajscore.io import Run
from trajscore.report._data import FORMS, ReportData
from trajscore.report._glossary import explain
from trajscore.report._numbers import fixed, interval
from trajscore.report.page.acting import PRICE, acting, best_threshold
from trajscore.report.page.answer import answer
from trajscore.report.page.calibration import calibration
from trajscore.report.page.comparison import comparison
from trajscore.report.page.header import header
from trajscore.report.page.health import health
from trajscore.report.page.losses import losses
from trajscore.report.page.method import method
from trajscore.report.page.numbers import numbers
from trajscore.report.page.runs import FIRST, read_first, runs
from trajscore.report.page.stopping import stopping
from trajscore.report.page.timing import timing
from trajscore.report.page.view import View

_SECTIONS = (
    answer, comparison, losses, calibration, timing, acting, stopping, runs, health, numbers, method
)  # fmt: skip


def to_html(data: ReportData, log: Iterable[Run] = (), progress: Progress | None = None) -> str:
    """Return the report as one page without anything outside of it."""
    view = View(data, log)
    sections = [make(view) for make in Work(progress=progress).track(_SECTIONS)]
    return _render("page.html.j2", view, sections=sections, title="trajscore report")


def first_screen(data: ReportData) -> str:
    """Return header and answer, for a notebook."""
    view = View(data)
    return _render("first_screen.html.j2", view, sections=[answer(view)])


def _render(name: str, view: View, **parts: Any) -> str:
    environment = _environment()
    template = environment.get_template(name)
    start = {"threshold": best_threshold(view), "price": PRICE, "runs": read_first(view)}
    return template.render(
        view=view, head=header(view), start=start, first=FIRST, forms=FORMS, explain=explain,
        **parts,
    )  # fmt: skip


def _environment() -> Any:
    """Return Jinja2's environment over the templates of this package; everything is escaped."""
    jinja = optional("jinja2", "an HTML report needs Jinja2", "report")
    environment = jinja.Environment(
        loader=jinja.PackageLoader("trajscore.report.page"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja.StrictUndefined,
    )
    environment.filters |= {
        "signed": lambda value, digits=3: "" if pd.isna(value) else fixed(value, digits, "+"),
        "fixed": lambda x, digits=3: (
            f"{round(x, digits) + 0.0:,.{digits}f}" if np.isfinite(x) else ""
        ),
        "percent": lambda x, digits=0: "" if pd.isna(x) else f"{100 * x:.{digits}f}%",
        "interval": lambda ends, digits=3: interval(ends[0], ends[1], digits, "+"),
    }
    environment.tests["missing"] = pd.isna
    environment.globals["style"] = _file("page.css")
    environment.globals["script"] = _file("page.js")
    return environment


def _file(name: str) -> str:
    return files("trajscore.report.page").joinpath("templates", name).read_text(encoding="utf-8")
