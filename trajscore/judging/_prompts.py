"""What a judge is shown of a run: what was said and done up to a turn of the agent."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from trajscore.io import Run, Step
from trajscore.io._unread import is_prose
from trajscore.tracer.turns import call_text

_FURTHER_LINE = "\n| "  # no line of a text can pose as the start of another, or as the question
_END = "\nThe record ends here."


def make_prompt(record: str, question: str, answer: str) -> str:
    """Return what is asked; the record comes first, so that a server reads it once for a run."""
    start = f"An agent works on a task. Its record so far:\n\n{record}\n\n"
    return f"{start}Question: {question} Answer with {answer}.\nAnswer:"


def prefixes(run: Run) -> Iterator[str]:
    """Write, for each turn of the agent, the task and the messages up to and including it."""
    heard = _heard(run)
    task = (run.task or "").strip()
    # an id says nothing of a task, an object may hold its answer, and most runs begin with the task
    is_text = is_prose(task) and not task.startswith(("{", "["))
    lines = []
    if is_text and task not in run.steps[0].text:
        lines.append(_entry("task", task))
    for place, step in enumerate(run.steps):
        lines += heard[place] + _turn(step)
        if step.actor == "agent":
            yield "\n".join([*lines, _END])


def _entry(who: str, text: str) -> str:
    return _FURTHER_LINE.join(f"{who}: {text}".splitlines())


def _heard(run: Run) -> dict[int, list[str]]:
    """Return instructions and results of tools, by the number of turns that were made before."""
    heard: dict[int, list[str]] = defaultdict(list)
    instructions = run.extra.get("system", [])
    places = run.extra.get("system_after", [0] * len(instructions))
    for place, text in zip(places, instructions, strict=True):
        heard[place].append(_entry("system", text))
    for place, step in enumerate(run.steps, start=1):
        results = [call.result for call in step.tool_calls if call.result is not None]
        if step.observation is not None:
            results = [step.observation]
        heard[step.extra.get("answered_after", place)] += [
            _entry("result", text) for text in results
        ]
    return heard


def _turn(step: Step) -> list[str]:
    who: str = step.actor
    if who == "environment":
        who = str(step.extra.get("role", who))
    entries = [_entry("call", call_text(call)) for call in step.tool_calls]
    text = step.text.strip()
    if text or not entries:
        entries.insert(0, _entry(who, text))
    return entries


def cut(text: str, most: int) -> str:
    """Leave out the middle of a text that is too long, and say so there: two thirds are its end."""
    if len(text) <= most:
        return text
    marker = "\n[... {:,} characters left out ...]" + _FURTHER_LINE
    room = most - len(marker.format(len(text)))
    head = room // 3
    return text[:head] + marker.format(len(text) - room) + text[head - room :]
