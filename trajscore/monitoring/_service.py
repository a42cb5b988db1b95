"""``trajscore monitor``: a decision on a line for every score on a line."""

from __future__ import annotations

import json
from collections.abc import Iterable
from math import isfinite
from typing import Any, TextIO

from trajscore.monitoring._monitor import Decision, EProcessMonitor


def serve(monitor: EProcessMonitor, lines: Iterable[str], out: TextIO) -> None:
    """Answer each line of input, ``{"id": run, "score": number, list or object}``, with ``"end":
    true`` beside the last score or alone after it, by a decision or ``{"error": sentence, "line":
    number}``, at once. Without an id there is one run only; after an error the monitor is as it
    was.
    """
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            answer = _shown(_answer(monitor, _read(line)))
        except (ValueError, KeyError, TypeError) as error:
            said = error.args[0] if isinstance(error, KeyError) and error.args else error
            answer = {"error": str(said), "line": number}
        print(json.dumps(answer), file=out, flush=True)


def _read(line: str) -> Any:
    try:
        return json.loads(line)
    except ValueError as error:
        raise ValueError(
            'not JSON; send an object such as {"id": "run 1", "score": 0.7}'
        ) from error


def _answer(monitor: EProcessMonitor, message: Any) -> Decision:
    if not isinstance(message, dict):
        raise ValueError('expected an object such as {"id": "run 1", "score": 0.7}')
    run = message.get("id")
    if "id" in message and (isinstance(run, bool) or not isinstance(run, (str, int))):
        raise ValueError(f'"id" must be text or a whole number, got {json.dumps(run)}')
    end = message.get("end", False)
    if not isinstance(end, bool):
        raise ValueError(f'"end" must be true or false, got {json.dumps(end)}')
    if end and "score" not in message:
        return monitor.finish(run)
    if "score" not in message:
        raise ValueError('there is no "score"; send one, or "end": true')
    return monitor.update(message["score"], run, done=end)


def _shown(decision: Decision) -> dict[str, Any]:
    """JSON has no infinity: it stands as null."""
    numbers = {
        "log_e_value": decision.log_e_value,
        "log_threshold": decision.log_threshold,
        "margin": decision.margin,
    }
    return {
        "id": decision.id,
        "step": decision.step,
        "flagged": bool(decision.flagged),
        **{name: float(value) if isfinite(value) else None for name, value in numbers.items()},
    }
