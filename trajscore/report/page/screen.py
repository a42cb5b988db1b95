"""The first screen: the answer, said against happened, a strip a predictor, three tiles."""

from dataclasses import asdict
from itertools import pairwise

import numpy as np

from trajscore.core.errors import visible
from trajscore.core.policy import MATERIAL_SAVING
from trajscore.core.values import ByName, number_of
from trajscore.evaluation.acting import PRICE
from trajscore.evaluation.groups import shown_groups
from trajscore.evaluation.options import AS_GIVEN
from trajscore.evaluation.recommendation import Action, Interval
from trajscore.evaluation.reliability import Bins, WrongRun, reliability, typical
from trajscore.report.glossary import TEMPLATES, of_hundred, whole_of_hundred
from trajscore.report.page.charts import Axis, Plot, axis_of, path
from trajscore.report.page.view import View, quote
from trajscore.report.verdicts import of_groups, opening

_MOST_ROWS = 9
# Where forecasts lie closer together, a line between them would stand upright.
_CLOSE = 0.035


def screen(view: View) -> ByName:
    """Return what the first screen draws."""
    if view.data.is_small:
        return {}
    of = view.screen
    parts = _strips(view) | {"groups": _groups(view)}
    if of.worst is not None:
        parts |= {
            "curve": said_against_happened(view, of.shown),
            "n_bins": len(reliability(view.data, view.shown).rate),
            "worst": run_line(view, of.worst),
            "quote": quote(view, of.worst),
            "costs": _costs(view),
            "saves": _saves(view),
            "script": _script(view),
        }
    return parts


# -------------------------------------------------------------------- said against happened


def said_against_happened(
    view: View, name: str, part: str | None = None, *, height: int = 300
) -> Plot | None:
    """Draw the share of successes against the forecast, with labels if it is of all steps.

    None where no bin has enough runs.
    """
    data = view.data
    plot = Plot(Axis(), Axis(), "", height)
    plot.line([0, 1], [0, 1], "reference")
    bins = {form: reliability(data, (name, form), part) for form in data.forms_of(name)}
    bins = {form: of_form for form, of_form in bins.items() if len(of_form.rate)}
    for form, of_form in bins.items():
        plot.spans(of_form.forecast, of_form.low, of_form.high, form)
        for first, last in _stretches(of_form):
            plot.line(of_form.forecast[first:last], of_form.rate[first:last], form)
        plot.points(of_form.forecast, of_form.rate, form)
    if part is None:
        if AS_GIVEN in bins:
            stated = typical(data, name)
            text = f"said {stated.forecast:.0%}, {stated.rate:.0%} {view.won}"
            plot.note(stated.forecast, stated.rate, text, f"strong {AS_GIVEN}")
        for form, of_form in bins.items():
            inner = of_form.forecast.argsort()[len(of_form.rate) // 2]
            order = np.argsort(np.abs(of_form.forecast - of_form.forecast[inner]))
            plot.note(of_form.forecast[order], of_form.rate[order], view.label(name, form), form)
        share = np.linspace(0.1, 0.9, 9)
        plot.note(share, share, "said = happened", "muted")
    ends = [
        f"{view.label(name, form)} off by {each.error:.0%} on average"
        for form, each in bins.items()
    ]
    plot.about = f"{name}, share of runs that {view.won} by forecast: {', '.join(ends)}"
    return plot if bins else None


def _stretches(bins: Bins) -> list[tuple[int, int]]:
    """Return where dots are joined: not where one stands above the other."""
    ends = np.flatnonzero(np.diff(bins.forecast) < _CLOSE) + 1
    edges = [0, *ends.tolist(), len(bins.forecast)]
    return [(a, b) for a, b in pairwise(edges) if b - a > 1]


# -------------------------------------------------------------------- strips


def _strips(view: View) -> ByName:
    """Return the margin of each predictor, the tied ones first, and those that are folded."""
    best = view.data.recommendations
    useful = [name for name, each in best.items() if each.action != Action.AVOID]
    shown = (useful or list(best))[:_MOST_ROWS]
    matters = view.data.best.matters
    axis = axis_of([*(best[name].margin for name in shown), [-matters, 0, matters]], 3)
    n_tied = sum(each.tied for each in best.values())
    tied = [name for name in shown if best[name].tied] if n_tied > 1 else []
    return {
        "axis": axis, "matters": matters,
        "tied": tied, "n_tied": n_tied, "single": [name for name in shown if name not in tied],
        "folded": [name for name in best if name not in shown],
        "has_worse": bool(axis.low < -3 * matters),
    }  # fmt: skip


def _groups(view: View) -> list[ByName]:
    """Return the margins of the first predictor within each kind of groups."""
    kinds: list[ByName] = []
    best = view.data.best
    for kind, of_kind in view.data.groups_by_kind.items():
        of_best = [each for each in of_kind if each.best.predictor == best.predictor]
        shown, more = shown_groups(of_best)
        margins = {each.group: each.best.interval(best.form) for each in shown}
        # a group without an interval comes last, and would stretch the axis
        shown.sort(key=lambda each: np.nan_to_num(-margins[each.group].estimate, nan=np.inf))
        sure = {group: ends for group, ends in margins.items() if np.isfinite(ends).all()}
        axis = axis_of([best.margin.estimate, *np.ravel(list(sure.values()))], 3)
        kinds.append({
            "kind": kind, "groups": shown, "margins": margins, "axis": axis,
            "drawn": {group: sure.get(group, Interval()) for group in margins},
            "whole": float(axis(best.margin.estimate)), "differs": of_best[0].differs,
            "sentence": opening(of_groups(view.data, kind)),
            "more": number_of(more, "smaller group") if more else "",
        })  # fmt: skip
    return kinds


# -------------------------------------------------------------------- tiles


def _costs(view: View) -> ByName:
    """Return the cost of thresholds by the runs that they accept, and the cheapest."""
    curve = view.screen.accept
    assert curve is not None
    share = np.append(curve.accepted, 0.0)
    cost = curve.cost(PRICE)
    best = curve.cheapest(PRICE)
    spread = float(np.ptp(cost)) or 1.0
    at = f"from {curve.threshold[best]:.{curve.digits}f}: " if 0 < best < len(cost) - 1 else ""
    height = 88 - 80 * (cost - cost.min()) / spread
    return {
        "path": path(100 * share[::-1], height[::-1]),
        "x": float(100 * share[best]), "y": float(height[best]),
        "text": at + whole_of_hundred(cost[best]),
    }  # fmt: skip


def _saves(view: View) -> ByName:
    """Return what is saved by the good runs that thresholds stop, and the one to take."""
    curve = view.screen.stops[view.screen.shown]
    lost = np.append(0.0, curve.good)
    saved = {kind: np.append(0.0, values) for kind, values in curve.saved.items()}
    best = curve.highest
    steps = saved["steps"]
    top = max(float(values.max()) for values in saved.values()) or 1.0
    at = 0 if best is None else best + 1
    paths = {kind: path(100 * lost, 100 - 92 * values / top) for kind, values in saved.items()}
    return {
        "path": paths.pop("steps"), "others": paths, "top": top,
        "x": float(100 * lost[at]), "y": float(100 - 92 * steps[at] / top),
        "text": "" if best is None else f"{of_hundred(steps[at])}%",
    }  # fmt: skip


def run_line(view: View, run: WrongRun) -> Plot:
    """Draw a run's forecasts by step, and name the one where its flag stands."""
    cells = run.cells
    flag = run.flag
    form = view.shown[1]
    n = len(cells)
    forecast = f"said {cells[flag - 1]:.0%}"
    plot = Plot(Axis(1.0, max(n, 2), 1), Axis(n_ticks=1), f"Step {flag} of {n} {forecast}", 90, 170)
    labelled = view.data.first_errors
    if labelled is not None and run.row in labelled.windows:
        likeliest, first, last = labelled.windows[run.row]
        plot.band([first - 0.5, last + 0.5], [0, 0], [1, 1], "window")
        plot.points([likeliest], [cells[likeliest - 1]], "likeliest")
    line = cells if n > 1 else np.repeat(cells, 2)
    plot.line(np.arange(len(line)) + 1, line, form)
    plot.points([flag], [cells[flag - 1]], "flag")
    plot.note(flag, cells[flag - 1], f"step {flag}: {forecast}", "flagged")
    return plot


def _script(view: View) -> ByName:
    """Return what the script fills sentences with: curves and the sentences themselves."""
    of = view.screen
    assert of.accept is not None
    return {
        "accept": asdict(of.accept),
        "stop": {visible(name): asdict(curve) for name, curve in of.stops.items()},
        "top": _saves(view)["top"], "shown": visible(of.shown),
        "texts": TEMPLATES,
        "doubt": of.answer.before, "form": of.form, "score": of.score, "worth": MATERIAL_SAVING,
    }  # fmt: skip
