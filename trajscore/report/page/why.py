"""Why: what a predictor knows and loses, when in the run it says something, part by part."""

from typing import NamedTuple

import numpy as np
from scipy.stats import t as student

from trajscore.core.policy import MIN_RUNS_PER_STEP
from trajscore.core.run_sums import PART_STARTS, score_cells
from trajscore.core.score_families import get_family
from trajscore.core.type_aliases import ByName, FloatArray
from trajscore.core.within_runs import step_numbers
from trajscore.evaluation.options import FORMS
from trajscore.metrics.steps import mean_by_step
from trajscore.report._first_screen import acted_on
from trajscore.report.glossary import fixed
from trajscore.report.page.charts import Axis, Plot, axis_of
from trajscore.report.page.screen import STYLES, said_against_happened
from trajscore.report.page.view import Drawer, View
from trajscore.report.verdicts import against_counting, card_reason, opening

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
    return Drawer("why", "Why", about, {"predictors": parts, "unit": view.data.options.unit})


def _predictor(view: View, name: str) -> ByName:
    data = view.data
    best = data.recommendations[name]
    panels = [
        {"title": _title(part), "plot": plot, "errors": _errors(view, name, part)}
        for part in PART_STARTS
        if (plot := said_against_happened(view, name, part, height=170)) is not None
    ]
    profile = _profile(view, acted_on(data, name))
    reasons = [card_reason(best, data), *against_counting(data, name)]
    return {
        "name": name, "style": STYLES[best.action], "card": str(best.action),
        "reason": f"{opening('; '.join(reasons))}.",
        "bars": _bars(view, name), "timing": _timing(view, profile),
        "profile": _margin_by_step(view, name, profile), "panels": panels,
    }  # fmt: skip


def _errors(view: View, name: str, part: str) -> list[tuple[str, str]]:
    """Return how far each form is off in a part of the runs, in points."""
    table = view.data.table[f"S-ECE {part}"]
    return [
        (form, f"{FORMS[form]} off by {100 * table[name, form]:.0f} points")
        for form in view.data.forms_of(name)
        if np.isfinite(table[name, form])
    ]


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
        lost = float(data.table.loc[(name, form), data.options.miscalibration])
        margin = float(data.table.loc[(name, form), f"{data.score_name} margin"])
        rows.append({"form": form, "called": FORMS[form], "knows": margin + lost, "margin": margin})
    most = max((row["knows"] for row in rows), default=0.0) or 1.0
    low = max(min(row["margin"] for row in rows), -_LONGEST_LOSS * most)
    axis = axis_of([low, most])
    for row in rows:
        row |= {
            "to": float(axis(row["knows"])), "end": float(axis(row["margin"])),
            "is_cut": row["margin"] < axis.low,
            "knows_text": f"knows {fixed(row['knows'], data.digits)}",
            "margin_text": fixed(row["margin"], data.digits, "+"),
        }  # fmt: skip
    return {"rows": rows, "zero": float(axis(0.0))}


# -------------------------------------------------------------------- when in the run


def _profile(view: View, key: tuple[str, str]) -> Profile:
    """Return the mean margin of the leading score at each step, over the runs that reach it."""
    trace = view.data.traces[key]
    labels = view.data.runs.labels
    family = get_family(view.data.options.scores[0])
    constant = np.full(len(trace.cells), view.data.facts.rate)
    score = score_cells(family, trace.cells, labels, trace.lengths)
    score -= score_cells(family, constant, labels, trace.lengths)
    n, mean, error = mean_by_step(step_numbers(trace) - 1, np.ones(len(score)), score)
    shown = np.flatnonzero(n[:_MOST_STEPS] >= MIN_RUNS_PER_STEP)
    columns = (shown + 1, mean[shown], error[shown], n[shown])
    return Profile(*(np.asarray(column, dtype=float) for column in columns))


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
    form = acted_on(view.data, name)[1]
    x = Axis(float(step[0]), float(step[-1]), 4, ".0f")
    plot = Plot(x, axis_of([low, high]), f"{view.called(name)}: margin over the base rate by step")
    plot.line([step[0], step[-1]], [0, 0], "zero")
    plot.band(step, low, high, form)
    plot.line(step, margin, form)
    if len(clear := _clear(profile)):
        place = int(np.flatnonzero(step == clear[0])[0])
        plot.points([clear[0]], [margin[place]], form)
        plot.note([clear[0]], [margin[place]], f"first shown better: step {int(clear[0])}", form)
    return plot
