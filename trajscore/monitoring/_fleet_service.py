"""``trajscore watch`` on a stream: runs and late outcomes on lines, and a state that survives."""

from __future__ import annotations

import json
import warnings
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from itertools import groupby
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from trajscore.core.array import TrajectoryArray
from trajscore.core.outcomes import CENSORED
from trajscore.core.type_aliases import FloatArray
from trajscore.monitoring._fleet import REMEMBERED, FleetMonitor
from trajscore.monitoring._fleet_state import dumped, fingerprint, restore
from trajscore.monitoring._service import read_message
from trajscore.monitoring._state_file import StateFile

_KEYS = ("id", "scores", "outcome", "task")
_EXAMPLE = 'send an object such as {"id": "run 1", "scores": [0.7, 0.8], "outcome": 1}'
_CHUNK = 1 << 20  # bytes
_SLOT = "fleet"
_OUTCOMES: dict[int | None, int] = {None: CENSORED, 1: 1, 0: 0}


class _Line(NamedTuple):
    number: int
    id: Any
    cells: FloatArray | None  # of shape (n_steps, n_predictors); None of a late outcome
    outcome: int
    task: Any


class FleetStream:
    """A monitor that takes lines, and is as it was after a restart."""

    def __init__(self, fleet: FleetMonitor, state: Path | None = None) -> None:
        self.fleet, self.n_lines, self._file = fleet, 0, None
        self._ids: OrderedDict[Any, None] = OrderedDict()
        if state is None:
            return
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of what is damaged, which is refused here
            self._file = StateFile(state, {"fleet": fingerprint(fleet)}, "normal")
        if self._file.contents:
            self._go_on(self._file.contents.get(_SLOT))

    def _go_on(self, content: bytes | None) -> None:
        if content is None:
            path = self._file.path if self._file else None
            self.close()
            raise ValueError(
                f"{path} is damaged, and the runs so far are lost; delete it and send all runs "
                f"since the reference again, or bring back a copy"
            )
        state = json.loads(content)
        restore(self.fleet, state["fleet"])
        self.n_lines, self._ids = state["n_lines"], OrderedDict.fromkeys(state["ids"])

    def take(self, lines: Iterable[bytes]) -> list[dict[str, Any]]:
        """Take lines, keep what came of them, and return the errors."""
        messages, errors = [], []
        for line in lines:
            self.n_lines += 1
            if not line.strip():
                continue
            try:
                messages.append(self._read(line))
            except (ValueError, TypeError) as error:
                errors.append({"error": str(error), "line": self.n_lines})
        for is_late, some in groupby(messages, lambda message: message.cells is None):
            if is_late:
                errors += filter(None, map(self._add_outcome, some))
            else:
                self._update(list(some))
        if self._file is not None:
            content = {"fleet": dumped(self.fleet), "n_lines": self.n_lines, "ids": [*self._ids]}
            self._file.write({_SLOT: json.dumps(content).encode()})
        return sorted(errors, key=lambda error: error["line"])

    def close(self) -> None:
        """Let go of the file."""
        if self._file is not None:
            self._file.close()

    def _read(self, line: bytes) -> _Line:
        message = read_message(line, _KEYS, _EXAMPLE)
        run, outcome = message["id"], message.get("outcome")
        if not isinstance(outcome, (int, type(None))) or outcome not in _OUTCOMES:
            raise ValueError(f'"outcome" must be 1, 0 or null, got {json.dumps(outcome)}')
        code = _OUTCOMES[outcome]
        if "scores" in message:
            return self._read_run(run, message["scores"], code, message.get("task"))
        if code == CENSORED:
            raise ValueError(f'"scores" and "outcome" are missing; {_EXAMPLE}')
        return _Line(self.n_lines, run, None, code, None)

    def _read_run(self, run: Any, scores: Any, code: int, task: Any) -> _Line:
        if run in self._ids:
            raise ValueError(
                f'run {run!r} was counted before; for a late outcome send "id" and "outcome" only'
            )
        if self.fleet._tasks is not None and not isinstance(task, (str, int)):
            raise ValueError(
                '"task" is missing; give the task of the run, as the reference has (--group); '
                'where every run is its own task, repeat its "id"'
            )
        is_forecast = self.fleet.forecaster is None
        cells = _cells(scores, self.fleet.channels_in_ or [""], is_forecast=is_forecast)
        self._ids[run] = None
        while len(self._ids) > REMEMBERED:
            self._ids.popitem(last=False)
        return _Line(self.n_lines, run, cells, code, task)

    def _update(self, runs: list[_Line]) -> None:
        names = self.fleet.channels_in_ or [""]
        cells = np.concatenate([run.cells for run in runs if run.cells is not None])
        X = TrajectoryArray(
            cells[:, 0] if names == [""] else cells,
            [len(run.cells) for run in runs if run.cells is not None],
            channels=None if names == [""] else names,
            ids=[run.id for run in runs],
        )
        tasks = None if self.fleet._tasks is None else [str(run.task) for run in runs]
        self.fleet.update(X, [run.outcome for run in runs], tasks)

    def _add_outcome(self, late: _Line) -> dict[str, Any] | None:
        try:
            self.fleet.add_outcomes([late.id], [late.outcome])
        except KeyError as error:
            return {"error": str(error.args[0]), "line": late.number}
        return None


def batches_of_lines(file: BinaryIO) -> Iterator[list[bytes]]:
    """Lines of a file as they come: those that are there together."""
    rest = b""
    while chunk := file.read1(_CHUNK):  # type: ignore[attr-defined]
        *lines, rest = (rest + chunk).split(b"\n")
        if lines:
            yield lines
    if rest:
        yield [rest]


def _cells(scores: Any, names: list[str], *, is_forecast: bool) -> FloatArray:
    """Read a number, a list of a number each step, or an object of these by predictor."""
    by_name = scores if isinstance(scores, dict) else {names[0]: scores}
    if set(by_name) != set(names):
        expected = "a number for each step"
        if names != [""]:
            expected = f"an object with {', '.join(map(repr, names))}"
        example = _EXAMPLE
        if len(names) > 1:
            objects = json.dumps({name: [0.7, 0.8] for name in names})
            example = example.replace("[0.7, 0.8]", objects)
        raise ValueError(f'"scores" must be {expected}; {example}')
    columns = [by_name[name] for name in names]
    lists = [column if isinstance(column, list) else [column] for column in columns]
    if len({len(values) for values in lists}) > 1 or not lists[0]:
        raise ValueError('"scores" must have a number for each step, of each predictor')
    flat = [value for values in lists for value in values]
    for value in flat:
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not np.isfinite(value):
            raise ValueError(f'"scores" must be finite numbers, got {json.dumps(value)}')
        if is_forecast and not 0 <= value <= 1:
            raise ValueError(
                f'"scores" must be forecasts in [0, 1] as in the reference, got {value}'
            )
    return np.array(lists, dtype=np.float64).T
