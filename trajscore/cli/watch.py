"""``trajscore watch``: say when the runs of an agent are no longer as they were."""

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np

from trajscore.calibration import PrefixForecaster
from trajscore.cli.inputs import READING, note_if_same, read_inputs
from trajscore.core.array import TrajectoryArray
from trajscore.core.errors import ArgumentError, show_controls, visible
from trajscore.core.outcomes import CENSORED
from trajscore.core.storage import replacing
from trajscore.core.values import are_probabilities, number_of
from trajscore.gates import RunSet, compare
from trajscore.monitoring import FleetMonitor
from trajscore.monitoring._fleet_runs import ADVICE, FleetChange, run_hashes
from trajscore.plotting import FleetDisplay

_QUANTITIES = {
    "length": "the lengths of runs changed",
    "forecast": "the forecasts{of} changed",
    "spread": "the spread of the forecasts{of} changed",
    "success": "the success rate changed",
    "level": "success at the same forecast{of} changed",
    "slope": "how steeply success rises with the forecasts{of} changed",
}


OPTIONS = READING


def run(arguments: argparse.Namespace) -> int:
    """Say what changed, and return the exit code."""
    reference, new = (_read(path, arguments) for path in (arguments.reference, arguments.new))
    note_if_same(arguments.reference, arguments.new)
    if n := len({*run_hashes(reference[0])} & {*run_hashes(new[0])}):
        print(
            f"{number_of(n, 'run')} of NEW with the id and the values of a run of REF: all count; "
            f"if they are the same, leave them out of NEW"
        )
    fleet = FleetMonitor(
        _forecaster(*reference[:2]), alpha=arguments.alpha, n_after=arguments.n_after
    )
    fleet.fit(*reference)
    n_left_out = fleet.n_left_out_
    n_without = fleet.n_without_forecast_
    if arguments.picture is not None:
        display = FleetDisplay.from_estimator(fleet, *new)
    fleet.update(*new)
    n_left_out = fleet.n_left_out_ - n_left_out
    if n_left_out == fleet.n_runs_:
        raise ArgumentError(
            f"each task of NEW is in REF too, and only the first run of a task counts; to hold two "
            f"sets of runs of the same tasks against each other, type: trajscore compare "
            f"{arguments.reference} {arguments.new}; if runs of a task are independent, name a "
            f"column in which no two runs agree with {{argument}}",
            "group",
        )
    for k, change in enumerate(fleet.changes_, start=1):
        print(visible("\n".join(_describe(change, fleet.n_after, fleet.alpha / 2**k))))
    changes = number_of(len(fleet.changes_), "change") if fleet.changes_ else "no change shown"
    print(
        f"{number_of(fleet.n_runs_, 'run')} since the reference, in the order of the file: "
        f"{changes}"
    )
    rates = {}
    if reference[1] is not None and new[1] is not None:
        before, since = (float(y[y != CENSORED].mean()) for _, y, _ in (reference, new))
        print(
            f"success: {before:.1%} in the reference, {since:.1%} since (of runs whose outcome was "
            f"observed)"
        )
        rates = {"reference": before, "new": since}
    if n := fleet.n_without_forecast_ - n_without:
        print(
            f"{n:,} without a forecast, as a step or a value is missing: outcome and length count"
        )
    if n_left_out:
        print(f"{n_left_out:,} of them not counted: their task came before")
    print(f"If nothing changes, the chance of any alarm is at most {fleet.alpha:g}")
    if arguments.picture is not None:
        with replacing(arguments.picture) as file:
            display.figure_.savefig(file, format="png", dpi=150)
    _write_metrics(arguments.metrics, fleet, rates)
    return int(bool(fleet.changes_))


def _write_metrics(path: Path | None, fleet: FleetMonitor, rates: dict[str, float]) -> None:
    """Write what is known now, name by name, in the text format of Prometheus."""
    if path is None:
        return
    gauges: dict[str, Any] = {
        "runs Runs since the reference": {"": fleet.n_runs_},
        "success_rate Share of successes": {f'runs="{key}"': rates[key] for key in rates},
        "e_value Evidence of a change since the last alarm, after which it begins anew at 1": {
            f'quantity="{quantity}",predictor='
            f"{json.dumps(show_controls(predictor.expandtabs(1)), ensure_ascii=False)}": value
            for (quantity, predictor), value in fleet.e_values_["e_value"].items()
        },
        "alarms Alarms by cause; it is empty until it is named": {
            f'cause="{cause}"': sum(change.cause == cause for change in fleet.changes_)
            for cause in (*ADVICE, "")
        },
    }
    lines = []
    for meaning, values in gauges.items():
        name = f"trajscore_{meaning.split()[0]}"
        lines += [f"# HELP trajscore_{meaning}", f"# TYPE {name} gauge"]
        lines += [f"{name}{{{labels}}} {value}" for labels, value in values.items()]
    with replacing(path) as file:
        file.write("\n".join([*lines, ""]).encode())


def _read(path: Path, arguments: argparse.Namespace) -> tuple[TrajectoryArray, Any, Any]:
    """Read runs in their order, with outcomes and tasks; None where there are none."""
    inputs = read_inputs(path, arguments, is_followed=path == arguments.new)
    y: Any = inputs.y
    if (y == CENSORED).all():
        y = None
        print(f"{path}: no run has an outcome: lengths and forecasts alone are watched")
    groups = inputs.groups
    if groups is not None:
        groups = np.asarray(groups).astype(str)
    return inputs.container(), y, groups


def _forecaster(X: TrajectoryArray, y: Any) -> PrefixForecaster | None:
    """Return what makes forecasts of scores that are none."""
    if are_probabilities(X.cells[~np.isnan(X.cells)]):
        return None
    if y is None:
        raise ArgumentError(
            "scores of REF lie outside [0, 1], and no run has an outcome from which to learn "
            "forecasts; give outcomes, or the value that means certainty with {argument}",
            "scales",
        )
    print("scores outside [0, 1]: a forecaster is fitted on the reference")
    return PrefixForecaster(features="running", pooled=True)


def _describe(change: FleetChange, n_after: int, chance: float) -> list[str]:
    """Say what changed, since when, how sure that is, and what to do."""
    of = f" of {change.predictor}" * bool(change.predictor)
    words = _QUANTITIES[change.quantity].format(of=of)
    lines = [
        f"Alarm at run {change.alarm:,}: {words}, since about run {change.since:,}.",
        f"  If nothing had changed, the chance of this alarm was at most {chance:g}.",
        f"  Cause: {change.cause or f'named {n_after} runs after the alarm (--after)'}",
        f"  What to do: {change.advice}",
    ]
    counts = (change.before, change.after)
    if all(n_known for _, n_known in counts):
        sets = [RunSet(None, np.arange(n_known) < n_successes) for n_successes, n_known in counts]
        success = compare(*sets).table.xs("success").iloc[0]
        lines.append(
            f"  Success: {success['base']:.1%} before the change, {success['new']:.1%} after the "
            f"alarm; 90% interval of the difference {100 * success['change_low']:+.1f} to "
            f"{100 * success['change_high']:+.1f} points"
        )
    return lines
