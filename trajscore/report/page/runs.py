"""Which runs do I read first: the worst by their score, with the log's transcript."""

from __future__ import annotations

from typing import Any

import numpy as np

from trajscore.core.outcomes import CENSORED, FAILURE, SUCCESS
from trajscore.core.run_sums import run_sums
from trajscore.report.page.charts import sparkline
from trajscore.report.page.transcripts import transcripts
from trajscore.report.page.view import NO_PROBABILITY, Section, View

_ROWS = 240  # of all predictors together
_FEWEST_ROWS = 20
FIRST = 20
"""Number of runs that are printed, and have a transcript."""


def runs(view: View) -> Section:
    """Return the worst runs of each predictor that is drawn, and the transcripts of the best's."""
    rows = [row for name in view.drawn for row in _worst(view, name)]
    first = [row["run"] for row in rows if row["predictor"] == view.drawn[0]][:FIRST]
    shown = transcripts(view, first)
    return Section(
        "runs",
        "Which runs do I read first?",
        _sentence(view, rows),
        {
            "rows": rows,
            "reasons": any(row["reason"] for row in rows),
            "transcripts": shown,
            "linked": [transcript["run"] for transcript in shown],
        },
    )


def read_first(view: View) -> list[str]:
    """Return the names of the three worst runs of the best predictor."""
    return [row["run"] for row in _worst(view, view.drawn[0])[:3]] if view.drawn else []


def _sentence(view: View, rows: list[dict[str, Any]]) -> str:
    if not rows:
        return NO_PROBABILITY
    worst = rows[0]
    among = ", of the runs with an outcome" if view.data.facts.n_censored else ""
    return (
        f"Run {worst['run']}: {view.called(worst['predictor'])} was most wrong on it{among}. "
        f"The outcome is {worst['outcome']}; the forecast that is furthest off is "
        f"{worst['furthest']:.2f}, at step {worst['at']}."
    )


def _worst(view: View, name: str) -> list[dict[str, Any]]:
    """Return the runs that cost a predictor most; first those whose outcome contradicts it."""
    key, data = view.acted_on(name), view.data
    trace, labels, y = data.traces[key], data.labels[key], data.outcomes[key]
    sums = run_sums(labels, trace, data.options.scores[0], data.options.weights)
    # of its own steps; those of a run may all be without weight
    scores = sums.total / np.where(sums.divisor > 0, sums.divisor, 1.0)
    n = max(_FEWEST_ROWS, _ROWS // max(len(view.drawn), 1))
    worst = np.lexsort((scores, y == CENSORED))[:n]
    ids = view.ids(key)
    meta = trace.meta.reindex(columns=["stop_reason"])["stop_reason"]
    reasons = meta.astype(object).where(meta.notna(), "").astype(str)
    rows = []
    for place, row in enumerate(worst):
        cells = trace.cells[trace.offsets[row] : trace.offsets[row + 1]]
        furthest = int(np.argmax(np.abs(labels[row] - cells)))
        rows.append(
            {
                "predictor": name, "form": key[1], "run": ids[row], "place": place,
                "outcome": _outcome(y[row]),
                "score": float(scores[row]), "steps": len(cells), "first": float(cells[0]),
                "last": float(cells[-1]), "furthest": float(cells[furthest]), "at": furthest + 1,
                "spark": sparkline(cells),
                "reason": reasons.iloc[row],
            }
        )  # fmt: skip
    return rows


def _outcome(y: float) -> str:
    known: dict[float, str] = {SUCCESS: "success", FAILURE: "failure", CENSORED: "not observed"}
    return known.get(y, f"{y:g}")
