"""The state of a fleet monitor as JSON: all that runs change, and nothing that the fit made."""

from __future__ import annotations

import json
from collections import OrderedDict
from hashlib import sha256
from typing import Any

import numpy as np

from trajscore.core.plain import plain
from trajscore.monitoring._fleet import FleetChange, FleetMonitor
from trajscore.monitoring._fleet_cause import Run, Runs

_NUMBERS = ("n_runs_", "n_left_out_", "n_late_outcomes_")
_ARRAYS = (
    *("_shares", "_log_e", "_lowest", "_lowest_at", "_counts"),
    *("_edges", "_known", "_successes", "_splits", "_bets"),
)


def dumped(fleet: FleetMonitor) -> dict[str, Any]:
    """Return the state, to the last digit."""
    # a run may be in two lists, and gets its outcome in both
    lists = {
        "waiting": list(fleet._waiting.values()),
        "recent": fleet._recent,
        "after": fleet._after,
        "reference": fleet._reference if _is_later(fleet.changes_) else None,
    }
    every = {id(run): run for runs in lists.values() for run in runs or ()}
    place = {key: k for k, key in enumerate(every)}
    return {
        "numbers": [getattr(fleet, name) for name in _NUMBERS],
        "arrays": [getattr(fleet, name).tolist() for name in _ARRAYS],
        "changes": [list(change) for change in fleet.changes_],
        "random": fleet._random.bit_generator.state,
        # sorted, as the order of a set differs between processes
        "tasks": None if fleet._tasks is None else plain(sorted(fleet._tasks, key=repr)),
        "runs": [_row(run) for run in every.values()],
        **{
            name: None if runs is None else [place[id(run)] for run in runs]
            for name, runs in lists.items()
        },
    }


def restore(fleet: FleetMonitor, state: dict[str, Any]) -> None:
    """Bring a monitor that was fitted on the same reference to a state."""
    for name, value in zip(_NUMBERS, state["numbers"], strict=True):
        setattr(fleet, name, value)
    for name, values in zip(_ARRAYS, state["arrays"], strict=True):
        setattr(fleet, name, np.array(values, dtype=getattr(fleet, name).dtype))
    fleet.changes_ = [FleetChange(*map(_as_tuple, change)) for change in state["changes"]]
    fleet._random.bit_generator.state = state["random"]
    fleet._tasks = None if state["tasks"] is None else set(state["tasks"])
    every = [
        Run(number, run_id, length, np.array(forecast), np.array(cells), outcome)
        for number, run_id, length, forecast, cells, outcome in state["runs"]
    ]
    fleet._waiting = OrderedDict((every[k].id, every[k]) for k in state["waiting"])
    fleet._recent = [every[k] for k in state["recent"]]
    fleet._after = None if state["after"] is None else [every[k] for k in state["after"]]
    if state["reference"] is not None:
        fleet._reference = [every[k] for k in state["reference"]]


def fingerprint(fleet: FleetMonitor) -> str:
    """Return a hash of a monitor that has seen no run: of its reference and parameters."""
    reference = _rows(fleet._reference)
    parameters = repr(sorted(fleet.get_params().items()))
    content = json.dumps([parameters, fleet._names, reference, dumped(fleet)])
    return sha256(content.encode()).hexdigest()


def _is_later(changes: list[FleetChange]) -> bool:
    """Whether the reference is no longer that of the fit."""
    return len(changes) > 1 or any(change.cause for change in changes)


def _rows(runs: Runs) -> list[list[Any]]:
    return [_row(run) for run in runs]


def _row(run: Run) -> list[Any]:
    forecast, cells = run.forecast.tolist(), run.cells.tolist()
    return [run.number, plain(run.id), run.length, forecast, cells, run.outcome]


def _as_tuple(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value
