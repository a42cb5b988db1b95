"""Does 70% mean 70%, early, in the middle and late in a run."""

from __future__ import annotations

import numpy as np

from trajscore.core.array import TrajectoryArray
from trajscore.core.binning import bins_of, uniform_bins
from trajscore.core.type_aliases import FloatArray, IntArray
from trajscore.core.weighted_steps import PARTS, step_parts
from trajscore.core.weights import StepWeights
from trajscore.core.within_runs import run_numbers
from trajscore.inference.rate_intervals import Z
from trajscore.report._data import FORMS, VALUE
from trajscore.report._numbers import with_interval
from trajscore.report.page.charts import Axis, Panel
from trajscore.report.page.view import NO_PROBABILITY, Section, View

_FEWEST_IN_A_BIN = 10
_MOST_BINS = 10


def calibration(view: View) -> Section:
    """Return curves of each predictor, by range of steps."""
    groups = []
    for name in view.drawn:
        panels = [_panel(view, name, part) for part in PARTS]
        groups.append({"name": name, "panels": [panel for panel in panels if panel.layers[1:]]})
    return Section("calibration", "Does 70% mean 70%?", _sentence(view), {"groups": groups})


def _sentence(view: View) -> str:
    if not view.drawn:
        return NO_PROBABILITY
    name = view.drawn[0]
    parts = []
    for form in view.forms(name):
        error = view.data.intervals.loc[(name, form, "S-ECE"), list(VALUE)]
        parts.append(f"{with_interval(error)} {FORMS[form]}")
    return f"{name}: the forecast of a step is off by {', '.join(parts)}, on average."


def _panel(view: View, name: str, part: str) -> Panel:
    """Draw the share of successes against the forecast, and below how forecasts are spread."""
    data, title, ends = view.data, _title(part), []
    panel = Panel(
        Axis(0, 1, 38, 172, "forecast", n_ticks=2),
        Axis(0, 1, 160, 22, "share of successes", n_ticks=2),
        "",
        title=title,
        width=184,
        height=196,
    )
    panel.line([0, 1], [0, 1], "reference")
    for form in view.forms(name):
        traces, labels = data.traces[name, form], data.labels[name, form]
        cells, weight, run = _part_of(traces, data.options.weights, part)
        if not len(cells):
            continue
        share = np.bincount(uniform_bins(cells, 20), weight, 20)
        edges = np.arange(21) / 20
        height = 0.22 * share / share.max()
        panel.bars(edges[:-1] + 0.006, edges[1:] - 0.006, height, form)
        x, y, half = _curve(cells, weight, run, labels)
        panel.spans(x, np.clip(y - half, 0, 1), np.clip(y + half, 0, 1), form)
        panel.line(x, y, form)
        panel.points(x, y, form)
        error = data.table.loc[(name, form), f"S-ECE {part}"]
        ends.append(f"{FORMS[form]} off by {error:.3f}")
    panel.about = f"{name}, {title}: {', '.join(ends)}"
    return panel


def _title(part: str) -> str:
    """Name the steps of a part: "steps 1 to 3", "steps from 11 on"."""
    first = PARTS[part]
    last = min((start - 1 for start in PARTS.values() if start > first), default=0)
    return f"steps {first} to {last}" if last else f"steps from {first} on"


def _part_of(
    X: TrajectoryArray, weights: StepWeights, part: str
) -> tuple[FloatArray, FloatArray, IntArray]:
    """Return forecast, weight and run of the steps of a part that weigh something."""
    w = weights.of(X).cells()
    used = np.flatnonzero((step_parts(X) == list(PARTS).index(part)) & (w > 0))
    return X.cells[used], w[used], run_numbers(X)[used]


def _curve(
    cells: FloatArray, w: FloatArray, run: IntArray, labels: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return mean forecast, share of successes and half its interval in bins of equal weight."""
    n_bins = int(np.clip(len(np.unique(run)) // (2 * _FEWEST_IN_A_BIN), 1, _MOST_BINS))
    bins = bins_of(cells, w, n_bins, "quantile")
    total = np.bincount(bins, w, n_bins)
    with np.errstate(invalid="ignore", divide="ignore"):
        forecast = np.bincount(bins, w * cells, n_bins) / total
        share = np.bincount(bins, w * labels[run], n_bins) / total
        # the steps of a run stand or fall together
        place, inverse = np.unique(run * n_bins + bins, return_inverse=True)
        residual = np.bincount(inverse, w * (labels[run] - share[bins]), len(place))
        variance = np.bincount(place % n_bins, residual**2, n_bins)
        n = np.bincount(place % n_bins, minlength=n_bins)
        half = Z * np.sqrt(variance * n / np.maximum(n - 1, 1)) / total
    few = n < _FEWEST_IN_A_BIN
    return np.where(few, np.nan, forecast), np.where(few, np.nan, share), half
