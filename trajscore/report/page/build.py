"""The page: a first screen and four drawers, from templates."""

import base64
import json
from collections.abc import Callable, Iterable
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import t as student

from trajscore.core.errors import optional, show_controls, visible
from trajscore.core.parallel import Progress, Work
from trajscore.core.policy import MIN_RUNS_PER_OUTCOME, MIN_RUNS_PER_STEP
from trajscore.core.storage import to_csv
from trajscore.core.values import ByName, FloatArray
from trajscore.core.weights import PART_STARTS, score_cells
from trajscore.core.within_runs import step_numbers
from trajscore.evaluation.acting import LOST, PRICE
from trajscore.evaluation.evaluation import Evaluation
from trajscore.evaluation.options import RowKey
from trajscore.evaluation.recommendation import Action
from trajscore.evaluation.reliability import worst_runs
from trajscore.io import Run
from trajscore.metrics.steps import mean_by_step
from trajscore.report._disclosures import disclosures
from trajscore.report.glossary import (
    GLOSSARY,
    LITERATURE,
    counted_as,
    explain,
    fixed,
    happened,
    opening,
)
from trajscore.report.page.charts import Axis, Plot, axis_of
from trajscore.report.page.screen import run_line, said_against_happened, screen
from trajscore.report.page.view import Drawer, View, calls_of, cut, said_in, transcripts
from trajscore.report.render.as_json import to_json
from trajscore.report.render.tables import STEPS, of_locators, tables_of
from trajscore.report.verdicts import against_counting, card_reason, of_window, verdicts

STYLES = {
    Action.USE: "use",
    Action.RECALIBRATE: "recalibrate",
    Action.COMBINE: "recalibrate",
    Action.NO_GAIN: "few",
    Action.TOO_FEW: "few",
    Action.UNSCORED: "few",
    Action.AVOID: "avoid",
}
_MOST_RUNS = 60
_FIRST_RUNS = 20  # that are shown before one asks for more


def to_html(data: Evaluation, log: Iterable[Run] = (), progress: Progress | None = None) -> str:
    """Return the report as one page without anything outside of it."""
    view = View(data, log)
    drawers = [make(view) for make in Work(progress=progress).track([why, steps, runs, numbers])]
    return _render("page.html.j2", view, drawers=list(filter(None, drawers)))


def embedded(data: Evaluation) -> str:
    """Return the first screen, for a notebook."""
    return _render("embedded.html.j2", View(data), drawers=[])


def _render(name: str, view: View, drawers: list[Any]) -> str:
    jinja = optional("jinja2", "an HTML report needs Jinja2", "report")
    template = _environment(jinja).get_template(name)
    return template.render(view=view, of=view.screen, parts=screen(view), drawers=drawers)


@cache  # and with it the templates once they are compiled
def _environment(jinja: Any) -> Any:
    """Return Jinja2's environment over the templates of this package; everything is escaped."""
    from markupsafe import Markup, escape  # which Jinja2 brings

    environment = jinja.Environment(
        loader=jinja.PackageLoader("trajscore.report.page"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja.StrictUndefined,
        finalize=lambda value: visible(value) if type(value) is str else value,
    )

    def bold(text: str, show: Callable[[str], str] = visible) -> Any:
        """Make the words between two pairs of stars bold."""
        parts = [escape(part) for part in show(text).split("**")]
        return Markup("").join(
            Markup("<b>%s</b>") % part if k % 2 else part for k, part in enumerate(parts)
        )

    def rounded(array: FloatArray) -> list[float]:
        return [float(f"{value:.15g}") for value in array]

    def as_script(value: Any) -> Any:
        """Write JSON that no text in it can end, and arrays without what is rounding."""
        text = json.dumps(value, ensure_ascii=False, allow_nan=False, default=rounded)
        return Markup(text.replace("<", "\\u003c").replace("&", "\\u0026"))

    environment.filters |= {
        "bold": bold,
        "json": as_script,
        "place": lambda value: f"{float(value):.2f}%",
        "fixed": fixed,
        "said": said_in,
        "calls": calls_of,
        "cut": cut,
        "bold_whole": lambda text: bold(text, show_controls),
        # a name may break after an underscore
        "breaks": lambda name: Markup("_<wbr>").join(map(escape, visible(name).split("_"))),
        "whole": lambda text: escape(show_controls(text)),  # long words too
    }
    environment.tests["finite"] = np.isfinite
    environment.globals |= {
        "explain": explain, "card_reason": card_reason, "styles": STYLES,
        "counted_as": counted_as, "happened": happened, "price": f"{PRICE:g}",
        "lost": f"{LOST:g}", "enough": MIN_RUNS_PER_OUTCOME,
        "style": _file("page.css"), "script": _file("page.js"),
    }  # fmt: skip
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
    if (first := view.screen.worst) is not None and first.row not in [run.row for run in worst]:
        worst.append(first)
    texts = transcripts(view, worst)
    digits = 2 if max(run.loss for run in worst) >= 0.1 else 4
    rows = [
        {
            "run": run, "plot": run_line(view, run),
            "read": of_window(view.data, run.row), "transcript": texts.get(run.id),
            "loss": f"{run.loss:.{digits}f}",
        }
        for run in worst
    ]  # fmt: skip
    which = f"{len(rows)} of {len(view.data.runs):,}, those that {view.called(key[0])} got most"
    about = f"{which} wrong first; a row opens in place"
    parts: ByName = {
        "rows": rows, "first": _FIRST_RUNS, "has_log": bool(texts),
        "outcomes": list(dict.fromkeys(view.outcome(run) for run in worst)),
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
        "verdicts": verdicts(data),
        "disclosures": disclosures(data),
        "glossary": {name: text for name, text in GLOSSARY.items() if name not in titles},
        "references": LITERATURE,
    }
    about = "every number, the data, how it was made, what the words mean"
    return Drawer("numbers", "Numbers and method", about, parts)


def _link(text: str, kind: str) -> str:
    """Return a file as a link, which needs no script and no server."""
    return f"data:{kind};base64,{base64.b64encode(text.encode()).decode()}"


_MOST_STEPS = 60
# What is lost may dwarf what is known: the axis ends at so many times what is known.
_LONGEST_LOSS = 2.0


class Profile(NamedTuple):
    """Mean margin of each step, its standard error, and the runs that reach it."""

    step: FloatArray
    margin: FloatArray
    error: FloatArray
    n: FloatArray

    def half(self, n_steps: int = 1) -> FloatArray:
        """Half the width of 95% intervals, or of ones that hold for several steps at once."""
        return np.asarray(student.ppf(1 - 0.025 / n_steps, self.n - 1) * self.error)


def why(view: View) -> Drawer | None:
    """Return what explains each predictor that is drawn; None where nothing is."""
    if not view.screen.shown:
        return None
    parts = [_predictor(view, name) for name in view.screen.drawn]
    about = "what a predictor knows and loses, its margin by step, its gaps by part of the run"
    return Drawer("why", "Why", about, {"predictors": parts})


def _predictor(view: View, name: str) -> ByName:
    data = view.data
    best = data.recommendations[name]
    panels = [
        {"title": _title(part), "plot": plot, "errors": data.table[f"S-ECE {part}"][name]}
        for part in PART_STARTS
        if (plot := said_against_happened(view, name, part, height=170)) is not None
    ]
    profile = _profile(view, best.key)
    reasons = [card_reason(best, data), *against_counting(data, name)]
    return {
        "name": name, "reason": f"{opening('; '.join(reasons))}.",
        "bars": _bars(view, name), "timing": _timing(view, profile),
        "profile": _margin_by_step(view, name, profile), "panels": panels,
    }  # fmt: skip


def _title(part: str) -> str:
    """Name the steps of a part: "Steps 1 to 3", "Steps from 11 on"."""
    first = PART_STARTS[part]
    last = min((start - 1 for start in PART_STARTS.values() if start > first), default=0)
    return f"Steps {first} to {last}" if last else f"Steps from {first} on"


# -------------------------------------------------------------------- knows and loses


def _bars(view: View, name: str) -> ByName:
    """Return what each form knows, and the margin that miscalibration leaves of it."""
    data = view.data
    rows: list[ByName] = []
    for form in data.forms_of(name):
        row = data.table.loc[(name, form)]
        lost = float(row[data.options.miscalibration])
        margin = float(row[f"{data.score_name} margin"])
        called = view.label(name, form)
        rows.append({"form": form, "called": called, "knows": margin + lost, "margin": margin})
    most = max(row["knows"] for row in rows) or 1.0
    low = max(min(row["margin"] for row in rows), -_LONGEST_LOSS * most)
    axis = axis_of([low, most])
    return {"rows": rows, "axis": axis}


# -------------------------------------------------------------------- when in the run


def _profile(view: View, key: RowKey) -> Profile:
    """Return the mean margin of the leading score at each step, over the runs that reach it."""
    trace = view.data.traces[key]
    labels = view.data.runs.labels
    family = view.data.options.scores[0]
    constant = np.full(len(trace.cells), view.data.facts.base_rate)
    score = score_cells(family, trace.cells, labels, trace.lengths)
    score -= score_cells(family, constant, labels, trace.lengths)
    n, mean, error = mean_by_step(step_numbers(trace) - 1, np.ones(len(score)), score)
    shown = np.flatnonzero(n[:_MOST_STEPS] >= MIN_RUNS_PER_STEP)
    return Profile(shown.astype(float) + 1, mean[shown], error[shown], n[shown])


def _clear(profile: Profile) -> FloatArray:
    """Return the steps at which the margin is above 0, at one error rate for all steps."""
    return profile.step[profile.margin - profile.half(len(profile.step)) > 0]


def _timing(view: View, profile: Profile) -> str:
    """Say from which step on a predictor is shown to be better than the base rate."""
    clear = _clear(profile)
    if not len(clear):
        return "At no single step is it shown to be better than the base rate."
    best = int(np.argmax(np.where(np.isin(profile.step, clear), profile.margin, -np.inf)))
    margin = fixed(profile.margin[best], view.data.digits, "+")
    return (
        f"First shown to be better than the base rate at step {clear[0]:.0f}; best at step "
        f"{profile.step[best]:.0f} ({margin}, {profile.n[best]:,.0f} runs reach it). Later steps "
        f"are reached by fewer runs."
    )


def _margin_by_step(view: View, name: str, profile: Profile) -> Plot | None:
    """Draw the margin by step with its interval, cut where that is far wider than margins vary."""
    step = profile.step
    margin = profile.margin
    half = profile.half()
    if len(step) < 2:
        return None
    room = 2 * np.ptp(np.append(margin, 0.0))
    low = np.maximum(margin - half, margin.min() - room)
    high = np.minimum(margin + half, margin.max() + room)
    form = view.data.recommendations[name].form
    x = Axis(float(step[0]), float(step[-1]), 4, ".0f")
    plot = Plot(x, axis_of([low, high]), f"{view.called(name)}: margin over the base rate by step")
    plot.line([step[0], step[-1]], [0, 0], "zero")
    plot.band(step, low, high, form)
    plot.line(step, margin, form)
    if len(clear := _clear(profile)):
        first = clear[:1], margin[step == clear[0]]
        plot.points(*first, form)
        plot.note(*first, f"first shown better: step {clear[0]:.0f}", form)
    return plot
