"""Can I trust the data: lengths, stop reasons, ranges, what was left out."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

from trajscore.calibration.fixed_step import auroc_interval
from trajscore.core.equal_length import span, success_by_length
from trajscore.core.outcomes import CENSORED
from trajscore.core.ties import group_ties
from trajscore.report._data import AS_GIVEN, BASE_RATE, CONSTANT, FORMS
from trajscore.report._disclosures import sentence
from trajscore.report.page.charts import Axis, Panel
from trajscore.report.page.view import Section, View

_MOST_BARS = 10
_MOST_REASONS = 12


def health(view: View) -> Section:
    """Return what may be wrong with the data."""
    data = view.data
    kinds = {"leakage", "risk", "few clusters", "outside"}
    kinds |= {"heavy run", "small groups", "conventions"}
    return Section(
        "health",
        "Can I trust the data?",
        _sentence(view),
        {
            "warnings": [sentence(note) for note in data.remarks if note.kind in kinds],
            "length": _length(view),
            "stops": _stops(view),
            "left_out": data.excluded.to_dict("records"),
            "columns": [_column(view, name) for name in view.names],
            "sensitivity": _sensitivity(view),
        },
    )


def _sentence(view: View) -> str:
    key = BASE_RATE, CONSTANT
    groups, seen = view.data.groups.get(key), view.data.outcomes[key] != CENSORED
    labels, steps = view.data.labels[key][seen], -view.constant.lengths[seen].astype(np.float64)
    units = None if groups is None else np.unique(groups[seen].astype(str), return_inverse=True)[1]
    level, stratum = (
        view.data.facts.intervals.confidence_level,
        np.zeros(len(labels), dtype=np.int64),
    )
    area, low, high = auroc_interval(steps, labels, stratum, units, level)
    aside = "" if seen.all() else f", of the {seen.sum():,} runs with an outcome"
    if low <= 0.5 <= high:
        return (
            f"Neither short nor long runs are shown to succeed more often (AUROC {area:.3f} of few "
            f"steps{aside}). Rates that rise and fall with length are in the chart."
        )
    side, share = ("shorter", area) if area > 0.5 else ("longer", 1 - area)
    return (
        f"In {share:.0%} of pairs, the run that succeeded was {side} (AUROC {area:.3f} of few "
        f"steps{aside}). A predictor has to beat counting steps."
    )


def _length(view: View) -> Panel:
    """Draw the success rate of observed runs by their number of steps."""
    lengths, y = view.constant.lengths, view.data.outcomes[BASE_RATE, CONSTANT]
    table = success_by_length(lengths, y, _MOST_BARS)
    at, share = np.arange(len(table)), (table["n_runs"] / len(y)).to_numpy()
    rate = table["success_rate"].to_numpy(np.float64)
    panel = Panel(
        Axis(-0.5, len(table) - 0.5, 52, 240, "steps in the run"),
        Axis(0, 1, 150, 20, "share"),
        "Success rate by number of steps (dots), and the share of runs of that length (bars)",
        title="success by length",
    )
    panel.bars(at - 0.42, at + 0.42, share, "constant")
    panel.points(at, rate, "recalibrated", 3.2)
    panel.line(at, rate, "recalibrated")
    labels = [span(*ends) for ends in zip(table["low"], table["high"], strict=True)]
    every = 2 if len(table) > 6 else 1
    panel.names = [(float(panel.x(k)), labels[k]) for k in at[::every]]
    return panel


def _stops(view: View) -> list[dict[str, Any]]:
    """Count the stop reasons, where the runs have some."""
    meta = view.constant.meta
    if "stop_reason" not in meta:
        return []
    reasons = meta["stop_reason"].astype(object).where(meta["stop_reason"].notna(), "(none)")
    y = view.data.outcomes[BASE_RATE, CONSTANT]
    counts = Counter(reasons)
    rows = []
    for reason, n in counts.most_common(_MOST_REASONS):
        own = y[(reasons == reason).to_numpy()]
        seen = own[own != CENSORED]
        rate = float(seen.mean()) if len(seen) else np.nan
        rows.append({"reason": str(reason), "n": n, "seen": len(seen), "rate": rate})
    return rows


def _column(view: View, name: str) -> dict[str, Any]:
    """Return range and ties of a predictor as given."""
    cells = view.data.traces[name, AS_GIVEN].cells
    distinct, _ = group_ties(cells)
    return {
        "name": name, "low": float(cells.min()), "high": float(cells.max()),
        "median": float(np.median(cells)), "n_distinct": len(distinct), "n": len(cells),
        "sure": float(((cells <= 0) | (cells >= 1)).mean()) if view.is_scored(name) else np.nan,
        "is_probability": AS_GIVEN in view.forms(name),
    }  # fmt: skip


def _sensitivity(view: View) -> list[dict[str, Any]]:
    """Return margins on the observed runs alone, where some were not observed."""
    table = view.data.sensitivity
    if "observed_only" not in table:
        return []
    return [
        {"predictor": name, "form": FORMS[form], **table.loc[(name, form)]}
        for name in view.names
        for form in view.forms(name)
    ]
