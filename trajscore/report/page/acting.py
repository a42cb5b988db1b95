"""From which threshold: accept or review a run, or stop it, and what that costs and saves."""

from __future__ import annotations

from typing import Any

import numpy as np

from trajscore.core.type_aliases import FloatArray
from trajscore.core.within_runs import first_step_above, run_numbers, step_numbers
from trajscore.inference.rate_intervals import wilson_interval
from trajscore.metrics._selective import risk_by_coverage
from trajscore.report._data import AS_GIVEN
from trajscore.report.page.charts import Axis, Panel
from trajscore.report.page.view import NO_PROBABILITY, Section, View

PRICE = 2.0
"""What a failing run that is let through costs, in reviews, until the reader says."""
_STOPPED = np.array([0.05, 0.1, 0.2, 0.3, 0.5])
_SHARES = np.array([1.0, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1])


def acting(view: View) -> Section:
    """Return, for each predictor, what thresholds cost and save."""
    tables = [_of_predictor(view, name) for name in view.drawn]
    doubt = "No predictor is shown to beat the base rate by enough. As it looks so far, with "
    doubt = doubt if tables and not view.has_answer else ""
    return Section(
        "acting", "From which threshold do I act?", f"{doubt}{_sentence(tables)}",
        {"tables": tables, "price": PRICE, "recipe": _recipe(view)},
    )  # fmt: skip


def _recipe(view: View) -> str:
    """Return the call that gives new runs the forecasts that the thresholds are for."""
    calibrators = view.data.facts.calibrators or {}
    name, form = view.acted_on(view.drawn[0]) if view.drawn else ("", AS_GIVEN)
    if form == AS_GIVEN or name not in calibrators:
        return ""
    return f"{calibrators[name]}.fit(X[{name!r}], y).transform(new[{name!r}])"


def best_threshold(view: View) -> float | None:
    """Return the cheapest threshold; None where all runs, or none, should be accepted."""
    table = _of_predictor(view, view.drawn[0]) if view.drawn else None
    if table is None or table["best"] in (table["accept"][0], table["accept"][-1]):
        return None
    return float(table["best"]["t"])


def _sentence(tables: list[dict[str, Any]]) -> str:
    if not tables:
        return NO_PROBABILITY
    first = tables[0]
    best, all_in = first["best"], first["accept"][0]
    where = f"{first['called']}: where a failure let through costs {PRICE:g} reviews,"
    if best["n_accepted"] == 0:
        return f"{where} review every run."
    if best is all_in:
        cost = f"{best['cost']:.2f} reviews a run"
        return f"{where} accept every run, at {cost}; no threshold is cheaper."
    return (
        f"{where} accept runs from {best['t']:.3f} and review the others. That costs "
        f"{best['cost']:.2f} reviews a run; to accept all costs {all_in['cost']:.2f}, to review "
        f"all 1."
    )


def _of_predictor(view: View, name: str) -> dict[str, Any]:
    key = view.acted_on(name)
    labels, number = view.data.labels[key], view.collapsed(key)
    rows = _accepting(number, labels)
    # what saves less than is shown does not pay
    best = min(rows, key=lambda row: (round(row["cost"], 2), 0 < row["n_accepted"] < len(number)))
    return {
        "name": name,
        "called": view.called(name),
        "accept": rows,
        "best": best,
        "stop": _stopping(view, key),
        "kinds": list(view.costs(key)),
        "panel": _risk_coverage(view, name, number, labels),
    }


def _accepting(number: FloatArray, labels: FloatArray) -> list[dict[str, Any]]:
    """Return what accepting from thresholds lets through and holds back; first all, last none."""
    n, n_success = len(number), labels.sum()
    # no threshold lies within values that are the same but for rounding
    marks = np.unique(np.quantile(number, 1 - _SHARES).round(3))
    rows = [
        _at(t, number.round(6) >= t, labels, n, n_success)
        for t in [*marks[marks > number.min()], np.inf]
    ]
    return [_at(float(number.min()), np.ones(n, dtype=bool), labels, n, n_success), *rows]


def _at(
    t: float, accepted: np.ndarray, labels: FloatArray, n: int, n_success: float
) -> dict[str, Any]:
    n_accepted, right = int(accepted.sum()), float(labels[accepted].sum())
    wrong = n_accepted - right
    rate = right / n_accepted if n_accepted else np.nan
    low, high = wilson_interval(rate, n_accepted) if n_accepted else (np.nan, np.nan)
    return {
        "t": float(t), "n_accepted": n_accepted, "share": n_accepted / n, "rate": rate,
        "low": float(low), "high": float(high), "through": 100 * wrong / n,
        "held": 100 * (n_success - right) / n, "cost": (PRICE * wrong + n - n_accepted) / n,
    }  # fmt: skip


def _stopping(view: View, key: tuple[str, str]) -> list[dict[str, Any]]:
    """Return what it comes to when a run is stopped once its forecast falls below a threshold."""
    trace, labels = view.data.traces[key], view.data.labels[key]
    lowest = np.minimum.reduceat(trace.cells, trace.offsets[:-1])
    marks = np.append(np.quantile(lowest, _STOPPED), np.quantile(trace.cells, _STOPPED)).round(3)
    costs, run, step = view.costs(key), run_numbers(trace), step_numbers(trace)
    rows = []
    for t in np.unique(marks[marks > lowest.min()]):
        stopped = first_step_above(trace, -trace.cells, np.full(len(trace), -t))
        flagged = stopped > 0
        after = flagged[run] & (step > stopped[run])
        rows.append(
            {
                "t": float(t),
                "good": _share(flagged, labels),
                "bad": _share(flagged, 1 - labels),
                "steps": float(after.mean()),
                "saved": {
                    kind: {"sum": cost[after].sum(), "share": cost[after].sum() / cost.sum()}
                    for kind, cost in costs.items()
                },
            }
        )
    return rows


def _share(flagged: np.ndarray, weight: FloatArray) -> float:
    return float((flagged * weight).sum() / weight.sum()) if weight.sum() else np.nan


def _risk_coverage(view: View, name: str, number: FloatArray, labels: FloatArray) -> Panel:
    """Draw the share of successes among the accepted runs against the share accepted."""
    share, risk, _ = risk_by_coverage(labels, number, np.ones(len(number)))
    if len(share) > 200:
        pick = np.unique(np.linspace(0, len(share) - 1, 200).astype(int))
        share, risk = share[pick], risk[pick]
    panel = Panel(
        Axis(0, 1, 52, 240, "share of runs accepted"),
        Axis(0, 1, 150, 20, "successes among them"),
        f"{view.called(name)}: success rate of the accepted runs by the share that is accepted",
    )
    panel.line([0, 1], [labels.mean()] * 2, "reference")
    panel.line(share, 1 - risk, view.acted_on(name)[1])
    return panel
