"""When in the run does a forecast say something."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.stats import t as student

from trajscore.core.outcomes import CENSORED
from trajscore.core.run_sums import score_cells
from trajscore.core.score_families import get_family
from trajscore.core.type_aliases import FloatArray
from trajscore.core.within_runs import step_numbers
from trajscore.metrics._step_profile import mean_by_step
from trajscore.report._data import AS_GIVEN
from trajscore.report.page.charts import Axis, Panel, axis_of
from trajscore.report.page.view import Section, View
from trajscore.report.render.cells import step_cells

_FEWEST_AT_A_STEP = 10
_MOST_STEPS = 60


class _Profile(NamedTuple):
    step: FloatArray
    margin: FloatArray
    error: FloatArray  # its standard error
    n: FloatArray  # runs

    def half(self, n_steps: int = 1) -> FloatArray:
        """Half the width of 95% intervals, or of ones that hold for several steps at once."""
        return np.asarray(student.ppf(1 - 0.025 / n_steps, self.n - 1) * self.error)


def timing(view: View) -> Section:
    """Return the margin over the base rate at each step, and who reaches it."""
    profiles = {name: _profile(view, view.acted_on(name)) for name in view.drawn}
    profiles = {name: profile for name, profile in profiles.items() if len(profile.step)}
    return Section(
        "timing",
        "When in the run does it say something?",
        _sentence(view, profiles),
        {
            "panels": _panels(view, profiles),
            "alive": _alive(view),
            "at_steps": _at_steps(view),
            "equal": _equal_length(view),
        },
    )


def _at_steps(view: View) -> dict[str, Any]:
    """Return AUROC at each step that the report has."""
    cells = step_cells(view.data)
    if cells.empty:
        return {}
    names = [name for name in view.names if name in cells]
    rows = [
        {"step": step, "runs": row["runs"], "cells": row[names]} for step, row in cells.iterrows()
    ]
    return {"names": names, "rows": rows}


def _equal_length(view: View) -> list[dict[str, Any]]:
    """Return AUROC among runs of equal length, and what it is above that of length."""
    table = view.data.equal_length.xs(AS_GIVEN, level="form")
    rows = table.loc[[name for name in view.names if name in table.index]]
    return rows.reset_index().to_dict("records")


def _sentence(view: View, profiles: dict[str, _Profile]) -> str:
    if not profiles:
        return f"At no step are there {_FEWEST_AT_A_STEP} runs: too few to say."
    name, profile = next(iter(profiles.items()))
    # at one error rate for all steps
    is_clear = profile.margin - profile.half(len(profile.step)) > 0
    clear = profile.step[is_clear]
    called = view.called(name)
    if not len(clear):
        return f"{called}: at no single step is it shown to be better than the base rate."
    best = int(clear[np.argmax(profile.margin[is_clear])])
    return (
        f"{called}: first shown to be better than the base rate at step {int(clear[0])}, and by "
        f"most at step {best}; later steps are reached by other runs than early ones."
    )


def _profile(view: View, key: tuple[str, str]) -> _Profile:
    """Return the mean margin of the leading score at each step, over the runs that reach it."""
    trace, labels = view.data.traces[key], view.data.labels[key]
    family = get_family(view.data.options.scores[0])
    constant = np.full(len(trace.cells), view.data.facts.rate)
    score = score_cells(family, trace.cells, labels, trace.lengths)
    score -= score_cells(family, constant, labels, trace.lengths)
    n, mean, error = mean_by_step(step_numbers(trace) - 1, np.ones(len(score)), score)
    shown = np.flatnonzero(n[:_MOST_STEPS] >= _FEWEST_AT_A_STEP)
    columns = (shown + 1, mean[shown], error[shown], n[shown])
    return _Profile(*(np.asarray(column, dtype=np.float64) for column in columns))


def _panels(view: View, profiles: dict[str, _Profile]) -> list[dict[str, Any]]:
    """Draw each predictor on the axes of all."""
    if not profiles:
        return []
    label = f"margin{view.data.options.unit.replace(' ', ', ')}"
    y = axis_of(_range(profiles), 150, 20, zero=True, label=label)
    last = max(profile.step[-1] for profile in profiles.values())
    x = Axis(1 if last > 1 else 0, last if last > 1 else 2, 52, 240, "step")
    panels = []
    for name, profile in profiles.items():
        panel = Panel(x, y, f"{view.called(name)}: margin over the base rate by step")
        style = view.acted_on(name)[1]
        panel.line([x.low, x.high], [0, 0], "reference")
        step, margin, half = profile.step, profile.margin, profile.half()
        panel.band(step, margin - half, margin + half, style)
        panel.line(step, margin, style)
        if len(step) < 8:
            panel.points(step, margin, style)
        panels.append({"name": name, "called": view.called(name), "panel": panel})
    return panels


def _range(profiles: dict[str, _Profile]) -> FloatArray:
    """Return margins and their intervals, cut where these are far wider than margins vary."""
    margin = np.append(np.concatenate([profile.margin for profile in profiles.values()]), 0.0)
    ends = [
        profile.margin + sign * profile.half() for profile in profiles.values() for sign in (-1, 1)
    ]
    room = 2 * np.ptp(margin)
    return np.clip(np.concatenate(ends), margin.min() - room, margin.max() + room)


def _alive(view: View) -> Panel:
    """Draw how many runs reach each step, and how many of these were not observed."""
    key = next(key for key in view.data.traces if view.data.traces[key] is view.constant)
    unobserved = view.data.outcomes[key] == CENSORED
    step = step_numbers(view.constant) - 1
    n = np.bincount(step)[:_MOST_STEPS]
    hidden = np.bincount(step, np.repeat(unobserved, view.constant.lengths))[:_MOST_STEPS]
    places = np.arange(len(n)) + 1.0
    panel = Panel(
        Axis(0.5, len(n) + 0.5, 52, 240, "step"),
        Axis(0, float(n.max()) * 1.05, 150, 20),
        "Number of runs that reach each step; the dark part was not observed",
    )
    panel.bars(places - 0.42, places + 0.42, n, "constant")
    if unobserved.any():
        panel.bars(places - 0.42, places + 0.42, hidden, "hidden")
    return panel
