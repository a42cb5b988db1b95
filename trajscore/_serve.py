"""``trajscore monitor``: a decision on a line for every score on a line."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from math import isfinite
from pathlib import Path
from typing import Any, TextIO
from zipfile import BadZipFile

from trajscore.monitoring import Decision, DensityRatioEProcess, EProcessMonitor

_TRUSTED = ("trajscore.", "sklearn.", "numpy.", "scipy.")


def load_process(path: str | Path, trusted: Sequence[str] = ()) -> DensityRatioEProcess:
    """Read a fitted process from a .skops file, which runs no code of its own.

    Parameters
    ----------
    path : str or Path
        Written by ``skops.io.dump(process, path)``.
    trusted : sequence of str
        Types to trust beside those of trajscore and scikit-learn.

    Returns
    -------
    DensityRatioEProcess
        The process.

    Raises
    ------
    ValueError
        If the file holds something else, or a type that is not trusted.
    ImportError
        If skops is not installed.
    """
    try:
        from skops import io
    except ImportError as error:
        raise ImportError(
            'reading a model needs skops; run `pip install "scikit-trajscore[monitor]"`'
        ) from error
    file = Path(path)
    if not file.exists():
        raise OSError(f"{file} does not exist; write it with skops.io.dump(process, {str(file)!r})")
    try:
        unknown = io.get_untrusted_types(file=file)
    except (BadZipFile, KeyError, ValueError) as error:
        raise ValueError(
            f"{file} is no .skops file; write one with skops.io.dump(process, path)"
        ) from error
    refused = [one for one in unknown if not one.startswith(_TRUSTED) and one not in trusted]
    if refused:
        raise ValueError(f"{file} holds {', '.join(refused)}; trust it with --trust {refused[0]}")
    process = io.load(file, trusted=unknown)
    if not isinstance(process, DensityRatioEProcess):
        raise ValueError(f"{file} holds a {type(process).__name__}, not a DensityRatioEProcess")
    return process


def serve(monitor: EProcessMonitor, lines: Iterable[str], out: TextIO) -> None:
    """Answer each line of input with one line of output, at once.

    Parameters
    ----------
    monitor : EProcessMonitor
        Follows the runs.
    lines : iterable of str
        JSON objects: ``{"id": run, "score": number, list or object}``, and ``{"id": run, "end":
        true}`` when a run has ended; without an id there is one run only.
    out : file
        Gets a JSON object for each: the decision, or ``{"error": sentence, "line": number}``,
        after which the monitor is as it was.

    Examples
    --------
    >>> import sys
    >>> from trajscore import DensityRatioEProcess
    >>> from trajscore.datasets import make_trajectories
    >>> X, y = make_trajectories(2000, lengths=6, random_state=0, return_X_y=True)
    >>> monitor = DensityRatioEProcess(alpha=0.1).fit(X, y).monitor()
    >>> serve(monitor, ['{"id": "a", "score": 0.1}'], sys.stdout)  # doctest: +ELLIPSIS
    {"id": "a", "step": 1, "flagged": true, ...}
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
    given = [message["id"]] if "id" in message else []
    if given and not isinstance(given[0], (str, int)):
        raise ValueError(f'"id" must be text or a whole number, got {given[0]!r}')
    if message.get("end"):
        return monitor.finish(*given)
    if "score" not in message:
        raise ValueError('there is no "score"; send one, or "end": true')
    return monitor.update(*given, message["score"])


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
