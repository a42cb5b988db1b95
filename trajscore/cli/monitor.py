"""``trajscore monitor``: decide after every score whether a run should stop, a line for a line."""

import argparse
import json
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import BinaryIO

import numpy as np

from trajscore.cli.inputs import READING
from trajscore.cli.main import sentence_of
from trajscore.core.storage import parse_integer, plain, unique_keys
from trajscore.core.values import ByName, is_count, number_of, unknown_name
from trajscore.monitoring import EProcessMonitor
from trajscore.monitoring.persistence import load_process

_KEYS = ("id", "step", "score", "end")
_EXAMPLE = 'send an object such as {"id": "run 1", "step": 1, "score": 0.7}'
_LONGEST = 1 << 20  # bytes of a line
_BETWEEN = 60.0  # seconds between looks for runs that are to be forgotten


OPTIONS = READING


def run(arguments: argparse.Namespace) -> None:
    """Answer the lines on standard input."""
    if not arguments.forget_after > 0:
        raise ValueError("--forget-after must be a number of hours above 0")
    process = load_process(arguments.model, arguments.trust, arguments.max_size)
    monitor = process.monitor(arguments.alpha, arguments.state, arguments.durability)
    if np.isinf(process.thresholds_).all():
        print(
            f"warning: {arguments.model} can flag no run: it was fitted on too few; fit it on more "
            f"runs, or with a larger --alpha",
            file=sys.stderr,
        )
    try:
        n_refused = serve(monitor, 3600 * arguments.forget_after)
    finally:
        monitor.close()
    if n_refused:
        raise ValueError(
            f"answered {number_of(n_refused, 'line')} by an error, not by a decision; each answer "
            f"says what to send"
        )


def serve(monitor: EProcessMonitor, forget_after: float) -> int:
    """Answer each line of input, ``{"id": run, "score": number, list or object}``, with ``"end":
    true`` beside the last score or alone after it, by a decision or ``{"error": sentence, "line":
    number}``, at once. With ``"step": number`` a repeated line is answered again. After an error,
    a full disk's too, the monitor is as it was. Runs that had no score for `forget_after` seconds
    are forgotten. Return how many lines were answered by an error.
    """
    n_refused = 0
    due = time.monotonic() + _BETWEEN
    for n, line in enumerate(read_lines(sys.stdin.buffer), start=1):
        if time.monotonic() > due:
            with suppress(OSError, ValueError):  # what cannot be kept now is forgotten later
                monitor.forget(forget_after)
            due = time.monotonic() + _BETWEEN
        if not line.strip():
            continue
        try:
            answer = _answer(monitor, _read_message(line))
        except OSError as error:
            problem = f"the step cannot be kept: {error}; send the line again later"
            answer = {"error": problem, "line": n}
        except (KeyError, ValueError, TypeError, RecursionError) as error:
            answer = {"error": sentence_of(error, {}), "line": n}
        n_refused += "error" in answer
        print(json.dumps(plain(answer)), flush=True)
    return n_refused


def read_lines(file: BinaryIO) -> Iterator[bytes]:
    """Lines of a file; of one that is too long, no more than shows it."""
    while line := file.readline(_LONGEST + 1):
        yield line
        while len(line) > _LONGEST and not line.endswith(b"\n"):
            line = file.readline(_LONGEST + 1)


def _read_message(line: bytes) -> ByName:
    """Read an object of JSON with an id and none but known keys, or say what to send."""
    if len(line) > _LONGEST:
        raise ValueError(f"the line has more than {_LONGEST:,} bytes; {_EXAMPLE}")
    try:
        text = line.decode("utf-8")
        message = json.loads(text, parse_int=parse_integer, object_pairs_hook=unique_keys)
    except UnicodeDecodeError as error:
        raise ValueError(f"not UTF-8, at byte {error.start}; {_EXAMPLE}") from error
    except (json.JSONDecodeError, RecursionError) as error:
        raise ValueError(f"not JSON; {_EXAMPLE}") from error
    if not isinstance(message, dict):
        raise ValueError(f"not an object; {_EXAMPLE}")
    for key in message:
        if key not in _KEYS:
            raise ValueError(f"{unknown_name('key', key, _KEYS)}; {_EXAMPLE}")
    if "id" not in message:
        raise ValueError(f'"id" is missing: the run that the line belongs to; {_EXAMPLE}')
    run = message["id"]
    if isinstance(run, bool) or not isinstance(run, (str, int)):
        raise ValueError(f'"id" must be text or a whole number, got {json.dumps(run)}')
    return message


def _answer(monitor: EProcessMonitor, message: ByName) -> ByName:
    step = message.get("step")
    end = message.get("end", False)
    if "step" in message and not is_count(step):
        raise ValueError(f'"step" must be a whole number from 1 on, got {json.dumps(step)}')
    if not isinstance(end, bool):
        raise ValueError(f'"end" must be true or false, got {json.dumps(end)}')
    if "score" in message:
        decision = monitor.update(message["score"], message["id"], step=step, done=end)
    elif end:
        decision = monitor.finish(message["id"], step=step)
    else:
        raise ValueError('"score" is missing; send one, or "end": true')
    first = {"id": decision.id, "step": decision.step, "flagged": decision.flagged}
    return first | decision._asdict()
