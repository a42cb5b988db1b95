"""The first screen: the answer, said against happened, a strip a predictor, three tiles."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd

from trajscore.report._acting import LOST, PRICE, WORTH, price_text
from trajscore.report._answer import LOOK, PROBLEM, SOUND
from trajscore.report._cards import AVOID, RECALIBRATE, TOO_FEW, USE, form_of, varies
from trajscore.report._data import AS_GIVEN, FORMS, columns_of
from trajscore.report._disclosures import counted_as
from trajscore.report._first_screen import of_hundred
from trajscore.report._groups import ERROR_RATE, shown_groups
from trajscore.report._numbers import fixed, with_interval
from trajscore.report._reliability import Bins, reliability
from trajscore.report._runs import number_of_runs
from trajscore.report._sentences import SENTENCES
from trajscore.report._verdict import card_reason, of_groups, opening
from trajscore.report.page.charts import Axis, Plot, axis_of, path
from trajscore.report.page.transcripts import quote
from trajscore.report.page.view import View

STYLES = {USE: "use", RECALIBRATE: "recalibrate", TOO_FEW: "few", AVOID: "avoid"}
_LIGHTS = {SOUND: "sound", LOOK: "look", PROBLEM: "problem"}
_MOST_ROWS = 9
_FEW_NAMED = 5
# Where forecasts lie closer together, a line between them would stand upright.
_CLOSE = 0.035


def screen(view: View) -> dict[str, Any]:
    """Return what the first screen shows."""
    of, data = view.screen, view.data
    parts: dict[str, Any] = {
        "light": _LIGHTS[of.answer.light],
        "rate": f"{data.facts.rate:.0%}",
        "unknown": f", unknown outcomes {counted_as(data)}" * bool(data.facts.n_censored),
        "price": f"{PRICE:g}", "lost": f"{LOST:g}",
    }  # fmt: skip
    if view.has_few:
        n, more = data.cards.loc[view.names[0], ["n_runs", "n_needed"]].astype(int)
        return parts | {"share": 100 * n / (n + more), "n": number_of_runs(n)}
    parts |= _strips(view) | {"groups": _groups(view)}
    if of.shown:
        parts |= {
            "curve": said_against_happened(view, of.shown, notes=True),
            "curve_title": _title(view),
            "worst": _worst(view),
            "costs": _costs(view),
            "saves": _saves(view),
            "script": _script(view),
        }
    return parts


def _title(view: View) -> str:
    name, decided = view.screen.shown, view.screen.answer
    ahead = ", ahead so far" * (decided.action == TOO_FEW)
    were = "were " * (view.won == "solved")
    return f"{name}{ahead}: what it said, and how many {were}{view.won}"


# -------------------------------------------------------------------- said against happened


def said_against_happened(
    view: View, name: str, part: str | None = None, *, notes: bool = False, height: int = 300
) -> Plot | None:
    """Draw the share of successes against the forecast; None where no bin has enough runs."""
    data, plot = view.data, Plot(Axis(), Axis(), "", height)
    plot.line([0, 1], [0, 1], "reference")
    bins = {form: reliability(data, (name, form), part) for form in view.forms(name)}
    bins = {form: own for form, own in bins.items() if len(own.rate)}
    for form, own in bins.items():
        plot.spans(own.forecast, own.low, own.high, form)
        for first, last in _stretches(own):
            plot.line(own.forecast[first:last], own.rate[first:last], form)
        plot.points(own.forecast, own.rate, form)
    if notes:
        for form, own in bins.items():
            for k in own.largest_gaps() if form == AS_GIVEN else []:
                text = f"said {own.forecast[k]:.0%}, {own.rate[k]:.0%} {view.won}"
                plot.note(own.forecast[k], own.rate[k], text, f"strong {form}")
        for form, own in bins.items():
            inner = own.forecast.argsort()[len(own.rate) // 2]
            order = np.argsort(np.abs(own.forecast - own.forecast[inner]))
            plot.note(own.forecast[order], own.rate[order], FORMS[form], form)
        share = np.linspace(0.1, 0.9, 9)
        plot.note(share, share, "said = happened", "muted")
    ends = [f"{FORMS[form]} off by {own.error:.0%} on average" for form, own in bins.items()]
    plot.about = f"{name}, share of runs that {view.won} by forecast: {', '.join(ends)}"
    return plot if bins else None


def _stretches(bins: Bins) -> list[tuple[int, int]]:
    """Return where dots are joined: not where one stands above the other."""
    ends = np.flatnonzero(np.diff(bins.forecast) < _CLOSE) + 1
    edges = [0, *ends.tolist(), len(bins.forecast)]
    return [(a, b) for a, b in pairwise(edges) if b - a > 1]


# -------------------------------------------------------------------- strips


def _strips(view: View) -> dict[str, Any]:
    """Return a row for each predictor, the tied ones first, and those that are folded."""
    cards = view.data.cards
    useful = [name for name in view.names if cards.loc[name, "card"] != AVOID]
    rest = [name for name in view.names if name not in useful]
    if not useful:
        useful, rest = view.names, []
    shown, more = useful[:_MOST_ROWS], useful[_MOST_ROWS:]
    rows = {name: _row(view, name) for name in view.names}
    matters = float(cards.loc[view.names[0], "matters"])
    axis = axis_of([*(rows[name]["three"] for name in shown), [-matters, 0, matters]], 3)
    band = axis([-matters, matters])
    for row in rows.values():
        row["places"] = [float(place) for place in axis(row["three"])]
        row["known"] = [bool(np.isfinite(end)) for end in row["three"]]
    tied, n_tied = [name for name in shown if cards.loc[name, "tied"]], int(cards["tied"].sum())
    folds = []
    if more:
        n_useful = sum(cards.loc[name, "card"] in (USE, RECALIBRATE) for name in more)
        rank = "that beat the base rate by less" if n_useful == len(more) else "that rank lower"
        folds.append({"title": f"{len(more)} more {rank}", "names": "", "rows": more})
    if rest:
        named = ", ".join(rest[:_FEW_NAMED])
        others = f" and {len(rest) - _FEW_NAMED} more" * (len(rest) > _FEW_NAMED)
        folds.append({"title": f"{len(rest)} not to use:", "names": named + others, "rows": rest})
    return {
        "rows": rows, "axis": axis, "zero": float(axis(0.0)), "ticks": axis.ticks,
        "band": [float(band[0]), float(band[1] - band[0])],
        "tied": tied if n_tied > 1 else [], "n_tied": n_tied,
        "single": [name for name in shown if n_tied < 2 or name not in tied],
        "folds": folds, "has_worse": bool(axis.low < -3 * matters),
    }  # fmt: skip


def _row(view: View, name: str) -> dict[str, Any]:
    """Return the margin of a predictor in the form to use, and what to do with it."""
    card, digits = view.data.cards.loc[name], view.digits
    form = form_of(view.data.cards, name)
    three = [float(card[name]) for name in columns_of(form)]
    text = "" if np.isnan(three[0]) else with_interval(three, digits, "+")
    other = card[AS_GIVEN]
    as_given = "" if form == AS_GIVEN or pd.isna(other) else f"as given {fixed(other, digits, '+')}"
    why = card_reason(card, view.data)
    return {
        "name": name, "three": three, "margin": text,
        "as_given": as_given if varies(card) else why,
        "card": card["card"], "style": STYLES[card["card"]],
        "why": f"{why}.", "place": _place(view, name),
    }  # fmt: skip


def _place(view: View, name: str) -> int:
    """Return where a predictor is among those that are explained; -1 if it is not."""
    drawn = view.screen.drawn
    return drawn.index(name) if name in drawn else -1


def _groups(view: View) -> list[dict[str, Any]]:
    """Return the cards of the first predictor within each kind of groups."""
    table, name = view.data.by, view.names[0]
    if table is None:
        return []
    kinds = []
    for kind in table.index.unique("by"):
        of_kind = table.loc[kind]
        shown, more = shown_groups(of_kind)
        cards = shown.xs(name, level="predictor") if len(shown) else shown
        form = form_of(view.data.cards, name)
        columns = columns_of(form)
        whole = float(view.data.cards.loc[name, form])
        ends = cards[columns].to_numpy(dtype=float)
        sure = np.isfinite(ends).all(axis=1)  # a group without an interval would stretch the axis
        axis = axis_of(np.append(ends[sure], whole), 3)
        differ = bool((of_kind.xs(name, level="predictor")["p_value"] < ERROR_RATE).any())
        rows = []
        for group, card in cards.sort_values(form, ascending=False).iterrows():
            three = [float(value) for value in card[columns]]
            matters = axis([-card["matters"], card["matters"]])
            needed = f"about {int(card['n_needed']):,} more runs"
            rows.append(
                {"name": str(group), "places": axis(three).tolist(),
                 "known": [bool(np.isfinite(three).all())] * 3,
                 "band": [float(matters[0]), float(matters[1] - matters[0])],
                 "about": f"{card['n_runs']:,} runs, {card['success_rate']:.0%} {view.won}",
                 "margin": "" if np.isnan(three[0]) else with_interval(three, view.digits, "+"),
                 "card": needed if card["card"] == TOO_FEW else card["card"],
                 "style": STYLES[card["card"]]}
            )  # fmt: skip
        kinds.append(
            {"rows": rows, "more": more, "zero": float(axis(0.0)),
             "ticks": axis.ticks, "whole": float(axis(whole)), "name": name,
             "sentence": opening(of_groups(view.data, kind)),
             "title": f"{'Groups' if differ else 'No sign of a difference between groups'} by "
                      f"{kind}{' differ' * differ}"}
        )  # fmt: skip
    return kinds


# -------------------------------------------------------------------- tiles


def _worst(view: View) -> dict[str, Any]:
    """Return the line of the run to read first, with its flag and its outcome."""
    worst, (name, form) = view.screen.worst, view.shown
    assert worst is not None
    return run_line(view, (name, form), int(worst.name), int(worst["flag"])) | {
        "outcome": worst["outcome"], "label": float(worst["label"]),
        "quote": quote(view, worst["id"], (name, form), int(worst["flag"])),
    }  # fmt: skip


def _costs(view: View) -> dict[str, Any]:
    """Return the cost of thresholds by the runs that they accept, and the cheapest."""
    curve = view.screen.accept
    assert curve is not None
    share, cost = np.append(curve.accepted, 0.0), curve.cost(PRICE)
    best, spread = curve.cheapest(PRICE), float(np.ptp(cost)) or 1.0
    at = f"from {curve.threshold[best]:.{curve.digits}f}: " if 0 < best < len(cost) - 1 else ""
    height = 88 - 80 * (cost - cost.min()) / spread
    return {
        "path": path(100 * share[::-1], height[::-1]),
        "x": float(100 * share[best]), "y": float(height[best]),
        "text": at + price_text(cost[best]),
    }  # fmt: skip


def _saves(view: View) -> dict[str, Any]:
    """Return what is saved by the good runs that thresholds stop, and the one to take."""
    curve, held_out = view.screen.stops[view.screen.shown], _held_out(view)
    lost = np.append(0.0, curve.good)
    saved = {kind: np.append(0.0, values) for kind, values in curve.saved.items()}
    best, steps = curve.highest(LOST / 100), saved["steps"]
    top = max([*(float(values.max()) for values in saved.values()), *held_out[1]]) or 1.0
    at = 0 if best is None else best + 1
    paths = {kind: path(100 * lost, 100 - 92 * values / top) for kind, values in saved.items()}
    return {
        "path": paths.pop("steps"), "others": paths, "top": top,
        "held_out": [(100 * x, 100 - 92 * y / top) for x, y in zip(*held_out, strict=True)],
        "x": float(100 * lost[at]), "y": float(100 - 92 * steps[at] / top),
        "text": "" if best is None else f"{of_hundred(steps[at])}%",
    }  # fmt: skip


def _held_out(view: View) -> tuple[list[float], list[float]]:
    """Return good runs lost and steps saved of a rule that was judged on other runs."""
    table, name = view.data.monitoring, view.screen.shown
    if table is None or name not in table.index.get_level_values("predictor"):
        return [], []
    own = table.loc[name].dropna(subset="false_alarm_rate")
    return own["false_alarm_rate"].tolist(), own["steps_saved_overall"].tolist()


def run_line(view: View, key: tuple[str, str], row: int, flag: int) -> dict[str, Any]:
    """Draw a run's forecasts by step, and name the one where its flag stands."""
    trace = view.data.traces[key]
    cells = np.clip(trace.cells[trace.offsets[row] : trace.offsets[row + 1]], 0, 1)
    n, forecast = len(cells), f"said {cells[flag - 1]:.0%}"
    plot = Plot(Axis(1.0, max(n, 2), 1), Axis(n_ticks=1), f"Step {flag} of {n} {forecast}", 90, 170)
    steps = np.arange(1, n + 1)
    plot.line([1, 2] if n == 1 else steps, np.repeat(cells, 2) if n == 1 else cells, key[1])
    plot.points([flag], [cells[flag - 1]], "flag")
    plot.note(flag, cells[flag - 1], f"step {flag}: {forecast}", "flagged")
    return {"plot": plot, "steps": n}


def _script(view: View) -> dict[str, Any]:
    """Return what the script fills sentences with: curves and the sentences themselves."""
    of = view.screen
    assert of.accept is not None
    return {
        "accept": {"t": _short(of.accept.threshold), "a": _short(of.accept.accepted),
                   "f": _short(of.accept.failing), "digits": of.accept.digits},
        "stop": {
            name: {"t": _short(curve.threshold), "g": _short(curve.good), "b": _short(curve.bad),
                   "s": {kind: _short(saved) for kind, saved in curve.saved.items()},
                   "digits": curve.digits}
            for name, curve in of.stops.items()
        },
        "top": _saves(view)["top"], "shown": of.shown,
        "texts": {name: SENTENCES[name] for name in ("accept", "stop")},
        "doubt": of.answer.before, "form": of.form, "score": of.score, "worth": WORTH,
    }  # fmt: skip


def _short(values: Any) -> list[float]:
    return [float(f"{value:.15g}") for value in values]
