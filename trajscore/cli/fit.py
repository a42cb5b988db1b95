"""``trajscore fit``: learn from finished runs when to stop others, for ``trajscore monitor``."""

from __future__ import annotations

import argparse
import json
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import StratifiedGroupKFold

from trajscore.calibration import PrefixForecaster
from trajscore.cli.compare import read
from trajscore.cli.inputs import add_command, add_input_options, check_folder, number, reading
from trajscore.core.array import TrajectoryArray
from trajscore.core.errors import ArgumentError
from trajscore.core.outcomes import CENSORED
from trajscore.core.parts import as_table
from trajscore.core.type_aliases import IntArray
from trajscore.core.values import number_of
from trajscore.gates import RunSet
from trajscore.integrations import Guard
from trajscore.io import Run
from trajscore.monitoring import DensityRatioEProcess
from trajscore.monitoring._eprocess import FIXED, HELD_OUT
from trajscore.monitoring._persistence import save_fitted
from trajscore.report._inputs import RISKS, load
from trajscore.report._runs import whole_runs

_TOO_FEW = "not tried on runs that were held out: half of these runs are too few to fit a guard"


def add_parser(commands: Any) -> argparse.ArgumentParser:
    """Add the command."""
    parser, add = add_command(commands, "fit")
    add("table", type=Path)
    add("--out", type=Path, required=True, metavar="MODEL.skops")
    add("--alpha", type=number, action="append")
    add("--threshold", choices=(*HELD_OUT, *FIXED), default="conformal")
    add("--end", choices=("step", "after", "unknown"), default="step")
    add("--end-worth", type=number, metavar="SHARE")
    add("--guard", action="store_true")
    add_input_options(parser)
    parser.set_defaults(censored="failure")
    return parser


def run(arguments: argparse.Namespace) -> None:
    """Fit a process and write it."""
    check_folder("--out", arguments.out, ".skops")
    if arguments.guard:
        _fit_guard(arguments)
        return
    runs = read(arguments.table, arguments)
    X, whole = _channels(runs, arguments.scores)
    end = None if arguments.end == "unknown" else arguments.end
    process = DensityRatioEProcess(
        PrefixForecaster(features="running", pooled=True, end=end),
        threshold=arguments.threshold,
        alpha=arguments.alpha or 0.05,
        end_worth=arguments.end_worth,
    )
    y = runs.y[whole]
    outcome = np.repeat(runs.y, X.lengths)[:, None]
    if (as_table(X.cells) == outcome).all(axis=0).any():
        raise ArgumentError(
            "{argument} names the outcome itself; name a score that is known while a run goes on",
            "scores",
        )
    groups = None if runs.tasks is None else runs.tasks[whole]
    process.fit(X[whole], y, groups=groups)
    save_fitted(process, arguments.out)
    if groups is not None and np.isinf(process.thresholds_).any():
        print(
            "warning: of each task one success counts. Give runs of more tasks, raise --alpha or, "
            "if runs of a task are independent, name the column of run ids with --group",
            file=sys.stderr,
        )
    print(_summary(process, X, runs, whole))
    flags = ", which flags no run" if np.isinf(process.thresholds_).all() else ""
    print(f"wrote {arguments.out}{flags}; use it with: trajscore monitor --model {arguments.out}")


def _fit_guard(arguments: argparse.Namespace) -> None:
    """Fit a guard on a log and write it."""
    if arguments.scores:
        raise ValueError(
            "--score is not used with --guard, which learns from messages; leave it out"
        )
    inputs = load(arguments.table, **reading(arguments), needs_scores=False)
    if not inputs.log:
        raise ValueError("--guard learns from what was said; a table has none of it, give a log")
    process = DensityRatioEProcess(
        threshold=arguments.threshold,
        alpha=arguments.alpha or 0.05,
        end_worth=arguments.end_worth,
    )
    guard = Guard(process=process).fit(inputs.log, inputs.y, groups=inputs.groups)
    guard.save(arguments.out)
    print(_fitted_on(guard.process_, len(inputs.y), len(inputs.y)))
    print(_tried(guard, inputs.log, inputs.y, inputs.groups))
    print(
        f"wrote {arguments.out}; use it with: "
        f"trajscore.integrations.Guard.load({str(arguments.out)!r})"
    )


def _tried(guard: Guard, runs: Sequence[Run], y: IntArray, groups: Any) -> str:
    """Say what guards that are fitted on one half of the runs do on the other half."""
    known = np.flatnonzero(y != CENSORED)
    tasks = known if groups is None else np.asarray(groups)[known]
    stops = np.zeros(len(y), dtype=np.int64)
    halves = StratifiedGroupKFold(2, shuffle=True, random_state=0)
    try:
        for parts in halves.split(known, y[known], tasks):
            half, rest = (known[part] for part in parts)
            with warnings.catch_warnings():  # of few runs, which the whole guard has said
                warnings.simplefilter("ignore")
                own = clone(guard).fit([runs[k] for k in half], y[half], groups=tasks[parts[0]])
                if np.isinf(own.process_.thresholds_).all():
                    return _TOO_FEW
                stops[rest] = own.stopping_steps([runs[k] for k in rest])
    except ValueError:
        return _TOO_FEW
    bad, good = ((stops[y == outcome] > 0).mean() for outcome in (0, 1))
    caught = stops[(y == 0) & (stops > 0)]
    early = f" (half of these by step {np.median(caught):.0f})" if len(caught) else ""
    return (
        f"on runs that were held out, by two guards fitted on half of the runs each: {bad:.0%} of "
        f"the failures are stopped{early}, and {good:.0%} of the successes"
    )


def _channels(runs: RunSet, named: list[str]) -> tuple[TrajectoryArray, Any]:
    """Put the predictors side by side, and find the runs without a missing value."""
    traces = runs.traces
    if not runs.predictors:
        raise ArgumentError(
            f"there is no confidence to learn from; name a column with {{argument}}, or for a log "
            f"what TRACER sees in the dialogue: {', '.join(RISKS)}",
            "scores",
        )
    if len(traces) > 1 and not named:
        raise ArgumentError(
            f"there are several predictors, {', '.join(traces)}; name those by {{argument}} "
            f"that the monitor will be sent at every step",
            "scores",
        )
    X = TrajectoryArray.stack(list(traces.values()), channels=list(traces))
    whole = np.flatnonzero(whole_runs(X))
    if not len(whole):
        raise ValueError(f"no run has {', '.join(traces)} at every step")
    return X, whole


def _fitted_on(process: DensityRatioEProcess, n_whole: int, n_runs: int) -> str:
    """Say of how many runs a process has learned, and why not of the others."""
    words = f"fitted on {n_whole - process.n_dropped_} of {number_of(n_runs, 'run')}"
    if process.n_dropped_:
        words += f"; {process.n_dropped_} without an outcome"
    return words + (f"; {n_runs - n_whole} with a missing value" if n_whole < n_runs else "")


def _summary(process: DensityRatioEProcess, X: TrajectoryArray, runs: RunSet, whole: Any) -> str:
    """Say what was learned from, and what to send."""
    lines = [_fitted_on(process, len(whole), runs.n_runs)]
    if n := process.n_calibration_successes_:
        lines.append(f"threshold set by {number_of(n, 'success')}")
    weighted = "," if process.end_worth is None else ", times what a flag is worth there,"
    lines += [
        f"alpha = {alpha:g}: "
        + (
            f"a run is flagged once M, its evidence of failing{weighted} is above {limit:.3g}"
            if np.isfinite(limit)
            else "no run will be flagged"
        )
        for alpha, limit in process.thresholds_.items()
    ]
    names = X.channels or ()
    first = [float(f"{value:.3g}") for value in X.cells[X.offsets[whole[0]]].ravel()]
    score = first[0] if len(names) == 1 else dict(zip(names, first, strict=True))
    lines.append(f"send lines such as {json.dumps({'id': 'run 1', 'step': 1, 'score': score})}")
    return "\n".join(lines)
