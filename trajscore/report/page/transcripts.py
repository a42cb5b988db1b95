"""What was said in a run of a log, with the step and the forecast beside each turn."""

from __future__ import annotations

from typing import Any

from trajscore.evaluation.worst_runs import WrongRun
from trajscore.io import Step
from trajscore.report.page.view import View

# So that the page stays below 3 MB; what is cut is said.
_LONGEST_TEXT, _MOST_TURNS, _MOST_CHARACTERS = 1200, 80, 900_000
_QUOTED = 160


def transcripts(
    view: View, key: tuple[str, str], worst: list[WrongRun]
) -> dict[str, dict[str, Any]]:
    """Return the turns of runs of the log, by id, as far as there is room."""
    room, trace = _MOST_CHARACTERS, view.data.traces[key]
    shown: dict[str, dict[str, Any]] = {}
    for wrong in worst:
        run = view.log.get(wrong.id)
        if run is None:
            continue
        places = view.places(run, wrong.steps)
        step_of = {place: k + 1 for k, place in enumerate(places)}
        cells = trace.cells[trace.offsets[wrong.row] :]
        turns: list[dict[str, Any]] = []
        for k, step in enumerate(run.steps[:_MOST_TURNS]):
            number = step_of.get(k)
            forecast = f"{cells[number - 1]:.0%}" if number else ""
            turns.append(
                {"actor": step.actor, "text": _cut(step.text.strip()), "calls": _calls(step),
                 "result": _cut(step.observation or ""), "step": number, "said": forecast,
                 "flag": number == wrong.flag}
            )  # fmt: skip
        room -= sum(len(turn["text"]) + len(turn["result"]) for turn in turns)
        if room < 0:
            break
        task = "" if run.task is None else str(run.task)
        shown[wrong.id] = {"turns": turns, "n_more": len(run.steps) - len(turns), "task": task}
    return shown


def quote(view: View, worst: WrongRun) -> str:
    """Return what was said at the step to look at of a run of the log; "" without wrong."""
    run = view.log.get(worst.id)
    places = [] if run is None else view.places(run, worst.steps)
    if run is None or not places:
        return ""
    step = run.steps[places[worst.flag - 1]]
    text = " ".join((step.text.strip() or _calls(step)).split())
    if len(text) > _QUOTED:
        text = f"{text[:_QUOTED].rsplit(' ', 1)[0]} ..."
    return f"Step {worst.flag}, {step.actor}: \u201c{text}\u201d" if text else ""


def _calls(step: Step) -> str:
    return _cut("\n".join(f"{call.name}({call.arguments})" for call in step.tool_calls))


def _cut(text: str) -> str:
    if len(text) <= _LONGEST_TEXT:
        return text
    return f"{text[:_LONGEST_TEXT]} ... ({len(text) - _LONGEST_TEXT:,} characters more)"
