"""``trajscore watch``: say when the runs of an agent are no longer as they were."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from trajscore import io
from trajscore.calibration import PrefixForecaster
from trajscore.cli.inputs import (
    TABLE,
    add_input_options,
    check_folder,
    naming,
    note_if_same,
    number,
    reading,
    whole_number,
)
from trajscore.core.array import TrajectoryArray
from trajscore.core.errors import ArgumentError
from trajscore.core.outcomes import CENSORED
from trajscore.core.plain import plain
from trajscore.core.storage import replacing
from trajscore.core.type_aliases import IntArray
from trajscore.core.values import number_of
from trajscore.gates import RunSet, compare
from trajscore.gates._compare import Comparison
from trajscore.gates._gate import FAIL, PASS
from trajscore.gates._result import EXIT_CODES
from trajscore.monitoring import FleetMonitor
from trajscore.monitoring._fleet import FleetChange
from trajscore.monitoring._fleet_recalibration import Recalibration, recalibration
from trajscore.monitoring._fleet_service import FleetStream, batches_of_lines
from trajscore.plotting import FleetDisplay
from trajscore.report._inputs import load
from trajscore.report._missing import whole_runs
from trajscore.report.page.build import environment

_QUANTITIES = {
    "length": "the lengths of runs changed",
    "forecast": "the forecasts{of} changed",
    "success": "the success rate changed",
    "level": "success at the same forecast{of} changed",
    "slope": "how well the forecasts{of} rank runs changed",
}


@dataclass
class _Runs:
    """Runs in the order of their start."""

    X: TrajectoryArray
    y: Any
    groups: Any
    times: Any

    def take(self, rows: IntArray) -> _Runs:
        groups, times = (
            None if values is None else values[rows] for values in (self.groups, self.times)
        )
        return _Runs(self.X[rows], self.y[rows], groups, times)


def add_parser(commands: Any) -> argparse.ArgumentParser:
    """Add the command."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "watch",
        help="say when the runs of an agent are no longer as they were, and what changed",
        description="Hold runs, in the order of their start, against a reference: tables or logs, "
        'or lines on standard input such as {"id": "run 1", "scores": [0.7, 0.8], "outcome": 1}, '
        'and {"id": "run 1", "outcome": 0} for an outcome that comes later. If nothing changes, '
        "the chance of any alarm, ever, is at most alpha. Exit codes: 0 no alarm, 1 an alarm among "
        "these runs, 2 unusable input.",
    )
    add = parser.add_argument
    add("runs", type=Path, nargs="*", metavar="RUNS", help=f"{TABLE}; none: standard input")
    add("--reference", type=Path, required=True, metavar="REF", help="runs as they should be")
    add("--time", metavar="NAME", help="column of the time at which a run starts (order of rows)")
    add("--alpha", type=number, default=0.05, help="chance of any false alarm (0.05)")
    add(
        "--after",
        dest="n_after",
        type=whole_number,
        default=500,
        metavar="RUNS",
        help="runs after an alarm from which the cause is named (500)",
    )
    add("--state", type=Path, metavar="FILE", help="of a stream: go on where it was")
    add("--json", action="store_true", help="write a line of JSON for each alarm and each cause")
    add("--picture", type=Path, metavar="FILE.png", help="of tables: draw the evidence")
    add(
        "--html",
        type=Path,
        metavar="FILE.html",
        help="of tables: a page of what changed, since when, how sure that is, and what to do",
    )
    add(
        "--recalibrated",
        type=Path,
        metavar="MAP.skops",
        help="after an alarm: fit a new map of the forecasts, say what it gains, and write it",
    )
    add_input_options(parser)
    return parser


def run(arguments: argparse.Namespace) -> int:
    """Say what changed, and return the exit code."""
    for option, ending in (("picture", ".png"), ("html", ".html"), ("recalibrated", ".skops")):
        if (path := getattr(arguments, option)) is not None:
            check_folder(f"--{option}", path, ending)
    for option, is_for_tables in (("state", False), ("picture", True), ("html", True)):
        if getattr(arguments, option) is not None and is_for_tables != bool(arguments.runs):
            used = "tables and logs" if is_for_tables else "a stream on standard input"
            raise ValueError(f"--{option} is for {used}; leave it out")
    reference = _read(arguments.reference, arguments)
    fleet = _fitted(reference, arguments)
    watch = _watch_tables if arguments.runs else _watch_stream
    is_changed = watch(fleet, reference, arguments)
    if arguments.recalibrated is not None and not fleet.changes_:
        _say(f"no alarm, so {arguments.recalibrated} was not written", arguments)
    return EXIT_CODES[FAIL if is_changed else PASS]


# ------------------------------------------------------------------ input


def _read(path: Path, arguments: argparse.Namespace) -> _Runs:
    """Read runs, and say what was guessed and left out."""
    by = () if arguments.time is None else (arguments.time,)
    try:
        with naming(path):
            inputs = load(path, **reading(arguments), by=by)
    except ArgumentError as error:
        hint = ""
        if error.part == "outcome":
            hint = "; without outcomes, add an empty column of them: lengths and forecasts alone"
            hint += " are watched then"
        part = "time" if error.part == "by" else error.part
        raise ArgumentError(f"{error.text}{hint}", part, error.value) from error
    predictors = inputs.predictors
    if isinstance(predictors, TrajectoryArray):
        predictors = {name: predictors[name] for name in predictors.channels or ()}
    X = TrajectoryArray.stack(list(predictors.values()), channels=list(predictors))
    whole = np.logical_and.reduce([whole_runs(trace) for trace in predictors.values()])
    notes = str(inputs).splitlines()
    if not whole.all():
        notes.append(f"left out: {number_of(int((~whole).sum()), 'run')} with a missing value")
    for line in notes:
        _say(f"{path}: {line}", arguments)
    times = None
    if arguments.time is not None:
        table = io.meta(inputs.log) if inputs.log else X.meta
        times = _as_times(table[arguments.time], arguments.time)
    groups = None if inputs.groups is None else np.asarray(inputs.groups).astype(str)
    return _Runs(X, np.asarray(inputs.y), groups, times).take(np.flatnonzero(whole))


def _joined(parts: list[_Runs]) -> _Runs:
    """Put runs of several files in the order of their start."""
    columns: list[Any] = []
    for name in ("y", "groups", "times"):
        values = [getattr(part, name) for part in parts]
        is_there = [value is not None for value in values]
        if any(is_there) and not all(is_there):
            raise ValueError(
                f"some of these files have {name}, and some have not; watch each alone"
            )
        columns.append(np.concatenate(values) if all(is_there) else None)
    runs = _Runs(TrajectoryArray.concat([part.X for part in parts]), *columns)
    return runs if runs.times is None else runs.take(np.argsort(runs.times, kind="stable"))


def _say(line: str, arguments: argparse.Namespace) -> None:
    """Write words for people, beside lines for machines."""
    print(line, file=sys.stderr if arguments.json else sys.stdout, flush=True)


def _as_times(column: pd.Series, name: str) -> Any:
    if not pd.api.types.is_numeric_dtype(column):
        try:
            column = pd.to_datetime(column, utc=True).dt.tz_localize(None)
        except (ValueError, TypeError) as error:
            raise ValueError(f"--time: column {name!r} holds something else: {error}") from error
    if column.isna().any():
        raise ValueError(f"--time: {number_of(int(column.isna().sum()), 'run')} without {name!r}")
    return column.to_numpy()


def _fitted(reference: _Runs, arguments: argparse.Namespace) -> FleetMonitor:
    cells = reference.X.cells
    forecaster = None
    if cells.min() < 0 or cells.max() > 1:
        forecaster = PrefixForecaster(features="running", pooled=True)
        _say("scores outside [0, 1]: a forecaster is fitted on the reference", arguments)
    if (reference.y == CENSORED).all():
        _say("the reference has no outcomes: lengths and forecasts alone are watched", arguments)
    fleet = FleetMonitor(forecaster, alpha=arguments.alpha, n_after=arguments.n_after)
    return fleet.fit(reference.X, *_labels(reference))


# ------------------------------------------------------------------ tables


def _watch_tables(fleet: FleetMonitor, reference: _Runs, arguments: argparse.Namespace) -> bool:
    runs = _joined([_read(path, arguments) for path in arguments.runs])
    for path in arguments.runs:
        note_if_same(path, arguments.reference)
    display = None
    if arguments.picture is not None or arguments.html is not None:
        display = FleetDisplay.from_estimator(fleet, runs.X, *_labels(runs))
    fleet.update(runs.X, runs.y, runs.groups)
    before, shown = reference, []
    for change in fleet.changes_:
        rows = np.arange(change.alarm, min(change.alarm + arguments.n_after, len(runs.X)))
        after = runs.take(rows)
        compared, a_week = _compared(before, after), _a_week(after)
        _show_change(change, "change", arguments, compared, a_week)
        shown.append((change, compared, a_week))
        before = after
    _show_status(fleet, arguments)
    if display is not None and arguments.picture is not None:
        with replacing(arguments.picture) as file:
            display.figure_.savefig(file, format="png", dpi=150)
    if display is not None and arguments.html is not None:
        page = _page(fleet, shown, display)
        with replacing(arguments.html) as file:
            file.write(page.encode())
    if arguments.recalibrated is not None and fleet.changes_:
        since = runs.take(np.arange(fleet.changes_[-1].alarm, len(runs.X)))
        _write_map(lambda: _map_since(fleet, since), arguments)
    return bool(fleet.changes_)


def _map_since(fleet: FleetMonitor, since: _Runs) -> Recalibration:
    """Fit a map of every step."""
    X = since.X if fleet.forecaster_ is None else fleet.forecaster_.transform(since.X)
    if X.channels:
        X = X[fleet.changes_[-1].predictor or X.channels[0]]
    return recalibration(X, since.y, since.groups)


# ------------------------------------------------------------------ a stream


def _watch_stream(fleet: FleetMonitor, reference: _Runs, arguments: argparse.Namespace) -> bool:
    stream = FleetStream(fleet, arguments.state)
    first = n_shown = len(fleet.changes_)
    n_refused = 0
    is_named = not (first and not fleet.changes_[-1].cause)
    try:
        for lines in batches_of_lines(sys.stdin.buffer):
            errors = stream.take(lines)
            n_refused += len(errors)
            for error in errors:
                print(json.dumps(error), file=sys.stderr, flush=True)
            # a batch may hold several changes; the first may be the cause of an earlier alarm
            start = n_shown if is_named else n_shown - 1
            for k, change in enumerate(fleet.changes_[start:], start=start):
                if k >= n_shown:
                    _show_change(change, "alarm", arguments)
                if change.cause:
                    sets = [_outcomes(*counts) for counts in (change.before, change.after)]
                    _show_change(change, "cause", arguments, _difference(*sets))
            n_shown = len(fleet.changes_)
            is_named = not fleet.changes_ or bool(fleet.changes_[-1].cause)
    except KeyboardInterrupt:  # the state has every batch that was answered
        pass
    finally:
        stream.close()
    if n_refused and not fleet.n_runs_:
        raise ValueError(f"no line could be used: {number_of(n_refused, 'line')} refused")
    _show_status(fleet, arguments)
    if arguments.recalibrated is not None and fleet.changes_:
        _write_map(fleet.recalibrate, arguments)
    return len(fleet.changes_) > first


# ------------------------------------------------------------------ words


def _outcomes(n_successes: int, n_known: int) -> RunSet | None:
    """Make a set of runs of which nothing but outcomes is known."""
    return RunSet(None, np.arange(n_known) < n_successes) if n_known else None


def _compared(before: _Runs, after: _Runs) -> Comparison | None:
    """Compare all that the gates compare, with runs after the alarm alone."""
    sets = []
    for runs in (before, after):
        if not (runs.y != CENSORED).any():
            return None
        predictors = {name: runs.X[name] for name in runs.X.channels or ()}
        sets.append(RunSet(predictors, runs.y, tasks=runs.groups, censored="drop"))
    return _difference(*sets)


def _difference(before: RunSet | None, after: RunSet | None) -> Comparison | None:
    return None if before is None or after is None else compare(before, after)


def _a_week(after: _Runs) -> str:
    """Say how many runs a week come, where times are known."""
    if after.times is None or after.times.dtype.kind != "M" or len(after.times) < 2:
        return ""
    weeks = (after.times[-1] - after.times[0]) / np.timedelta64(7, "D")
    return f"{len(after.times) / weeks:.0f}" if weeks > 0 else ""


def _show_change(
    change: FleetChange,
    event: str,
    arguments: argparse.Namespace,
    compared: Comparison | None = None,
    a_week: str = "",
) -> None:
    success = None if compared is None else compared.table.xs("success").iloc[0]
    ends = None if success is None else success[["change", "change_low", "change_high"]].tolist()
    if arguments.json:
        fields = {"event": event, **change._asdict(), "advice": change.advice}
        print(json.dumps(plain(fields | {"success_change": ends})), flush=True)
        return
    lines = [_alarm(change)]
    if event == "cause":
        lines = [f"Cause of the alarm at run {change.alarm:,}: {change.cause}"]
    elif change.cause:
        lines.append(f"  Cause: {change.cause}")
    lines.append(f"  What to do: {change.advice}")
    if success is not None:
        lines.append(f"  {_cost(success, a_week)}")
    print("\n".join(lines), flush=True)
    if compared is not None and len(compared.table) > 1:
        print(compared, flush=True)


def _alarm(change: FleetChange) -> str:
    """Say what changed, and since when."""
    of = f" of {change.predictor}" if change.predictor else ""
    words = _QUANTITIES[change.quantity].format(of=of)
    return f"Alarm at run {change.alarm:,}: {words}, since about run {change.since:,}."


def _cost(success: pd.Series, a_week: str) -> str:
    """Say what it costs to wait."""
    span = f"from {success['base']:.1%} to {success['new']:.1%}"
    low, high = (0 - 100 * success[end] for end in ("change_high", "change_low"))
    if low > 0:
        runs = f"; {a_week} runs come in a week" if a_week else ""
        return (
            f"Cost of waiting: success fell {span}, so that {low:.0f} to {high:.0f} more of each "
            f"100 runs fail{runs}"
        )
    if high < 0:
        return f"Waiting costs no runs: success rose {span}"
    return (
        f"Success went {span}: from {round(low):+d} to {round(high):+d} more of each 100 runs fail"
    )


def _page(
    fleet: FleetMonitor, shown: list[tuple[FleetChange, Comparison | None, str]], display: Any
) -> str:
    """Return a page of what changed, with the picture of the evidence."""
    changes = []
    for k, (change, compared, a_week) in enumerate(shown):
        cost = compared and _cost(compared.table.xs("success").iloc[0], a_week)
        share = fleet.alpha / 2 ** (k + 1)
        changes.append(
            {
                "alarm": _alarm(change),
                "cause": change.cause or "not known yet",
                "advice": change.advice,
                "sure": f"If nothing had changed, the chance of this alarm, at any time, was at "
                f"most {share:g}",
                "cost": cost or "Outcomes of runs after the alarm are not known",
                "table": "" if compared is None else str(compared),
            }
        )
    picture = StringIO()
    display.figure_.savefig(picture, format="svg", bbox_inches="tight")
    svg = picture.getvalue()
    template = environment().get_template("watch.html.j2")
    return str(
        template.render(
            headline=changes[-1]["alarm"] if changes else "Nothing is shown to have changed",
            changes=changes,
            status=_status(fleet),
            svg=svg[svg.index("<svg") :],
        )
    )


def _show_status(fleet: FleetMonitor, arguments: argparse.Namespace) -> None:
    table = fleet.e_values_
    share = (table["log_e_value"] / table["log_threshold"]).max()
    if arguments.json:
        fields = {"n_runs": fleet.n_runs_, "n_left_out": fleet.n_left_out_}
        fields |= {"n_late_outcomes": fleet.n_late_outcomes_, "n_changes": len(fleet.changes_)}
        print(json.dumps({"event": "status", **fields, "evidence": plain(float(share))}))
        return
    print("\n".join(_status(fleet)))


def _status(fleet: FleetMonitor) -> list[str]:
    """Say how many runs were watched, what was left out, and what holds."""
    count = number_of(len(fleet.changes_), "change") if fleet.changes_ else "no change"
    lines = [f"{number_of(fleet.n_runs_, 'run')} since the reference: {count}"]
    if fleet.n_left_out_:
        lines.append(
            f"{fleet.n_left_out_:,} of them not counted: their task came before, here or in the "
            f"reference; if runs of a task are independent, name a column of run ids, each used "
            f"once, with --group"
        )
    if fleet.n_late_outcomes_:
        lines.append(
            f"{number_of(fleet.n_late_outcomes_, 'outcome')} of runs before an alarm came after it"
        )
    lines.append(
        f"If nothing changes, the chance of any alarm, ever, is at most {fleet.alpha:g} in all"
    )
    return lines


def _write_map(fit: Callable[[], Recalibration], arguments: argparse.Namespace) -> None:
    """Write a new map, or say why there is not one; the alarm stands either way."""
    try:
        result = fit()
    except ValueError as error:
        print(f"no new map: {error}", file=sys.stderr)
        return
    result.save(arguments.recalibrated)
    if arguments.json:
        fields = {name: getattr(result, name) for name in ("gain", "low", "high", "n_runs")}
        print(json.dumps({"event": "recalibrated", **fields, "map": str(arguments.recalibrated)}))
    else:
        print(f"{result}\nwrote {arguments.recalibrated}")


def _labels(runs: _Runs) -> tuple[Any, Any]:
    return (None if (runs.y == CENSORED).all() else runs.y), runs.groups
