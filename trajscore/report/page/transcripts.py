"""What was said in a run of a log, with confidence, risk and flag beside each turn."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from trajscore.core.type_aliases import FloatArray
from trajscore.io import Run, Step
from trajscore.report._data import AS_GIVEN
from trajscore.report.page.acting import best_threshold
from trajscore.report.page.view import View

# So that the page stays below 3 MB; what is cut is said.
_LONGEST_TEXT, _MOST_TURNS, _MOST_CHARACTERS = 1200, 80, 900_000


def transcripts(view: View, names: list[str]) -> list[dict[str, Any]]:
    """Return the turns of some runs of the log, as far as there is room."""
    known = [name for name in dict.fromkeys(names) if name in view.log]
    if not known:
        return []
    key, room, shown = view.acted_on(view.drawn[0]), _MOST_CHARACTERS, []
    rows = {name: row for row, name in enumerate(view.ids(key))}
    threshold = best_threshold(view)
    for name in known:
        run, row = view.log[name], rows[name]
        beside = dict(_beside(view, key, run, row, threshold))
        turns = [_turn(step, beside.get(k, {})) for k, step in enumerate(run.steps[:_MOST_TURNS])]
        room -= sum(len(turn["text"]) + len(turn["result"]) for turn in turns)
        if room < 0:
            break
        shown.append({"run": name, "turns": turns, "n_more": len(run.steps) - len(turns)})
    return shown


def _turn(step: Step, beside: dict[str, Any]) -> dict[str, Any]:
    calls = "\n".join(f"{call.name}({call.arguments})" for call in step.tool_calls)
    text = "\n".join(part for part in (step.text.strip(), calls) if part)
    return {
        "actor": step.actor,
        "text": _cut(text),
        "result": _cut(step.observation or ""),
        **beside,
    }


def _cut(text: str) -> str:
    if len(text) <= _LONGEST_TEXT:
        return text
    return f"{text[:_LONGEST_TEXT]} ... ({len(text) - _LONGEST_TEXT:,} characters more)"


def _beside(
    view: View, key: tuple[str, str], run: Run, row: int, threshold: float | None
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Return, by place of the turn, the value as given, the risk, and whether it is flagged."""
    trace, raw = view.data.traces[key], view.data.traces[key[0], AS_GIVEN]
    part = slice(trace.offsets[row], trace.offsets[row + 1])
    places = view.places(run, int(trace.lengths[row]))
    forecast: FloatArray = trace.cells[part]
    below = np.flatnonzero(forecast < (-np.inf if threshold is None else threshold))
    flagged = below[0] if len(below) else -1
    for k, place in enumerate(places):
        yield (
            place,
            {
                "value": float(raw.cells[part][k]),
                "risk": 1 - float(forecast[k]),
                "flag": k == flagged,
            },
        )
