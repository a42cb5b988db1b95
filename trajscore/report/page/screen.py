"""The first screen: the answer, said against happened, a strip a predictor, three tiles."""

from dataclasses import asdict
from itertools import pairwise
from typing import Any

import numpy as np

from trajscore.core.errors import visible
from trajscore.core.policy import MATERIAL_SAVING, MIN_RUNS_PER_OUTCOME
from trajscore.core.type_aliases import ByName
from trajscore.core.values import number_of
from trajscore.evaluation.acting import LOST, PRICE, price_text
from trajscore.evaluation.groups import shown_groups
from trajscore.evaluation.options import AS_GIVEN, RowKey
from trajscore.evaluation.recommendation import Action, Interval
from trajscore.evaluation.reliability import Bins, reliability, typical
from trajscore.evaluation.runs import number_of_runs
from trajscore.report.glossary import COUNTED_AS, TEMPLATES, fixed, of_hundred, with_interval
from trajscore.report.page.charts import Axis, Plot, axis_of, path
from trajscore.report.page.view import View, quote
from trajscore.report.verdicts import card_reason, of_groups, opening
from trajscore.report.wording import outcome_of

STYLES = {
    Action.USE: "use",
    Action.RECALIBRATE: "recalibrate",
    Action.COMBINE: "recalibrate",
    Action.NO_GAIN: "few",
    Action.TOO_FEW: "few",
    Action.UNSCORED: "few",
    Action.AVOID: "avoid",
}
_MOST_ROWS = 9
_FEW_NAMED = 5
# Where forecasts lie closer together, a line between them would stand upright.
_CLOSE = 0.035


def screen(view: View) -> ByName:
    """Return what the first screen shows."""
    of = view.screen
    data = view.data
    parts: ByName = {
        "light": of.answer.light.name.lower(),
        "unknown": f", unknown outcomes {COUNTED_AS[data.facts.censored]}"
                   * bool(data.facts.n_censored),
        "price": f"{PRICE:g}", "lost": f"{LOST:g}",
    }  # fmt: skip
    if data.is_small:
        best = data.best
        return parts | {
            "share": 100 * best.n_runs / (best.n_runs + best.n_needed),
            "n": number_of_runs(best.n_runs),
            "enough": MIN_RUNS_PER_OUTCOME,
        }
    parts |= _strips(view) | {"groups": _groups(view)}
    if of.shown:
        parts |= {
            "curve": said_against_happened(view, of.shown, notes=True),
            "curve_title": _title(view),
            "bins": _bins(view),
            "worst": _worst(view),
            "costs": _costs(view),
            "saves": _saves(view),
            "script": _script(view),
        }
    return parts


def _bins(view: View) -> str:
    """Say how many bins the curve has, and why where they are few."""
    n = len(reliability(view.data, view.shown).rate)
    few = " (more need more runs)" * (n <= 2)
    return f"{number_of(n, 'bin')} of equal weight{few}"


def _title(view: View) -> str:
    name = view.screen.shown
    decided = view.screen.answer
    ahead = ", ahead so far" * (decided.action == Action.TOO_FEW)
    were = "were " * (view.won == "solved")
    return f"{name}{ahead}: what it said, and how many {were}{view.won}"


# -------------------------------------------------------------------- said against happened


def said_against_happened(
    view: View, name: str, part: str | None = None, *, notes: bool = False, height: int = 300
) -> Plot | None:
    """Draw the share of successes against the forecast; None where no bin has enough runs."""
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
    if notes:
        if AS_GIVEN in bins:
            stated = typical(data, (name, AS_GIVEN))
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
    """Return a row for each predictor, the tied ones first, and those that are folded."""
    best = view.data.recommendations
    useful = [name for name in view.names if best[name].action != Action.AVOID]
    shown = (useful or view.names)[:_MOST_ROWS]
    folded = [name for name in view.names if name not in shown]
    matters = view.data.best.matters
    axis = axis_of([*(best[name].margin for name in shown), [-matters, 0, matters]], 3)
    n_tied = sum(each.tied for each in best.values())
    tied = [name for name in shown if best[name].tied] if n_tied > 1 else []
    others = f" and {len(folded) - _FEW_NAMED} more" * (len(folded) > _FEW_NAMED)
    return {
        "rows": {name: _row(view, name, axis) for name in view.names},
        "zero": float(axis(0.0)), "ticks": axis.ticks, "band": _band(axis, matters),
        "tied": tied, "n_tied": n_tied, "single": [name for name in shown if name not in tied],
        "folded": folded, "folded_names": ", ".join(folded[:_FEW_NAMED]) + others,
        "has_worse": bool(axis.low < -3 * matters),
    }  # fmt: skip


def _row(view: View, name: str, axis: Axis) -> ByName:
    """Return the margin of a predictor in the form to use, and what to do with it."""
    best = view.data.recommendations[name]
    drawn = view.screen.drawn
    why = card_reason(best, view.data)
    as_given = why
    if best.best_alone:
        as_given = f"{fixed(best.gain.estimate, view.data.digits, '+')} over {best.best_alone}"
    elif best.varies:
        form = best.form != AS_GIVEN and best.as_given.is_known
        margin = fixed(best.as_given.estimate, view.data.digits, "+")
        parts = [f"as given {margin}"] * form
        as_given = " · ".join([*parts, f"at its word: {best.at_its_word}"])
    return _interval(view, best.action, best.margin, axis) | {
        "name": name, "as_given": as_given, "card": str(best.action),
        "why": f"{why}.", "place": drawn.index(name) if name in drawn else -1,
    }  # fmt: skip


def _band(axis: Axis, matters: float) -> list[float]:
    """Return where what does not matter begins, and how wide it is."""
    low, high = axis([-matters, matters])
    return [float(low), float(high - low)]


def _interval(view: View, action: Action, margin: Interval, axis: Axis) -> ByName:
    """Return a margin with its interval on an axis, and in words."""
    return {
        "places": axis(margin).tolist(), "known": np.isfinite(margin).tolist(),
        "margin": with_interval(margin, view.data.digits, "+") if margin.is_known else "",
        "style": STYLES[action],
    }  # fmt: skip


def _groups(view: View) -> list[ByName]:
    """Return the cards of the first predictor within each kind of groups."""
    kinds: list[ByName] = []
    best = view.data.best
    name = best.predictor
    form = best.form
    whole = best.margin.estimate
    for kind, of_kind in view.data.groups_by_kind.items():
        of_best = [each for each in of_kind if each.best.predictor == name]
        shown, more = shown_groups(of_best)
        # a group without an interval comes last, and would stretch the axis
        shown.sort(key=lambda each: np.nan_to_num(-each.best.interval(form).estimate, nan=np.inf))
        margins = [each.best.interval(form) for each in shown]
        axis = axis_of([whole, *np.ravel([ends for ends in margins if np.isfinite(ends).all()])], 3)
        rows = []
        for each, margin in zip(shown, margins, strict=True):
            group = each.best
            action = str(group.action)
            if group.action == Action.TOO_FEW:
                action = f"about {group.n_needed:,} more runs"
            row = _interval(view, group.action, margin, axis)
            rows.append(row | {
                "name": each.group, "band": _band(axis, group.matters),
                "known": [all(row["known"])] * 3,
                "about": f"{group.n_runs:,} runs, {group.success_rate:.0%} {view.won}",
                "card": action,
            })  # fmt: skip
        title = f"No sign of a difference between groups by {kind}"
        if of_best[0].differs:
            title = f"Groups by {kind} differ"
        kinds.append({
            "rows": rows, "zero": float(axis(0.0)), "ticks": axis.ticks,
            "whole": float(axis(whole)), "name": name,
            "sentence": opening(of_groups(view.data, kind)),
            "more": number_of(more, "smaller group") if more else "",
            "title": title,
        })  # fmt: skip
    return kinds


# -------------------------------------------------------------------- tiles


def _worst(view: View) -> ByName:
    """Return the line of the run to read first, with its flag and its outcome."""
    worst = view.screen.worst
    key = view.shown
    assert worst is not None
    shown = {"outcome": outcome_of(view.data, worst.y), "quote": quote(view, worst)}
    return asdict(worst) | shown | {"plot": run_line(view, key, worst.row, worst.flag)}


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
        "text": at + price_text(cost[best]),
    }  # fmt: skip


def _saves(view: View) -> ByName:
    """Return what is saved by the good runs that thresholds stop, and the one to take."""
    curve = view.screen.stops[view.screen.shown]
    lost = np.append(0.0, curve.good)
    saved = {kind: np.append(0.0, values) for kind, values in curve.saved.items()}
    best = curve.highest(LOST / 100)
    steps = saved["steps"]
    top = max(float(values.max()) for values in saved.values()) or 1.0
    at = 0 if best is None else best + 1
    paths = {kind: path(100 * lost, 100 - 92 * values / top) for kind, values in saved.items()}
    return {
        "path": paths.pop("steps"), "others": paths, "top": top,
        "x": float(100 * lost[at]), "y": float(100 - 92 * steps[at] / top),
        "text": "" if best is None else f"{of_hundred(steps[at])}%",
    }  # fmt: skip


def run_line(view: View, key: RowKey, row: int, flag: int) -> Plot:
    """Draw a run's forecasts by step, and name the one where its flag stands."""
    trace = view.data.traces[key]
    cells = np.clip(trace[row], 0, 1)
    n = len(cells)
    forecast = f"said {cells[flag - 1]:.0%}"
    plot = Plot(Axis(1.0, max(n, 2), 1), Axis(n_ticks=1), f"Step {flag} of {n} {forecast}", 90, 170)
    found = view.data.first_errors
    if found is not None and (window := found.window(row)) is not None:
        likeliest, first, last = window
        plot.band([first - 0.5, last + 0.5], [0, 0], [1, 1], "window")
        plot.points([likeliest], [cells[likeliest - 1]], "likeliest")
    steps = np.arange(1, n + 1)
    plot.line([1, 2] if n == 1 else steps, np.repeat(cells, 2) if n == 1 else cells, key[1])
    plot.points([flag], [cells[flag - 1]], "flag")
    plot.note(flag, cells[flag - 1], f"step {flag}: {forecast}", "flagged")
    return plot


def _script(view: View) -> ByName:
    """Return what the script fills sentences with: curves and the sentences themselves."""
    of = view.screen
    assert of.accept is not None
    return {
        "accept": {"t": _short(of.accept.threshold), "a": _short(of.accept.accepted),
                   "f": _short(of.accept.failing), "digits": of.accept.digits},
        "stop": {
            visible(name): {
                "t": _short(curve.threshold), "g": _short(curve.good), "b": _short(curve.bad),
                "s": {kind: _short(saved) for kind, saved in curve.saved.items()},
                "digits": curve.digits,
            }
            for name, curve in of.stops.items()
        },
        "top": _saves(view)["top"], "shown": visible(of.shown),
        "texts": TEMPLATES,
        "doubt": of.answer.before, "form": of.form, "score": of.score, "worth": MATERIAL_SAVING,
    }  # fmt: skip


def _short(values: Any) -> list[float]:
    return [float(f"{value:.15g}") for value in values]
