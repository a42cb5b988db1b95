"""``trajscore fit``: learn from finished runs when to stop others, or how to forecast them."""

import argparse
import json
import shlex
import sys
from typing import Any

import numpy as np

from trajscore.calibration import PrefixForecaster
from trajscore.cli.forecast import refuse_tracer
from trajscore.cli.inputs import read_inputs
from trajscore.cli.main import HELP
from trajscore.cli.report import JUDGING, RECALIBRATION, judge_log, words_of
from trajscore.core.array import TrajectoryArray
from trajscore.core.checks import check_predictors
from trajscore.core.convert import as_table
from trajscore.core.errors import ArgumentError
from trajscore.core.outcomes import CENSORED
from trajscore.core.values import number_of
from trajscore.core.within_runs import whole_runs
from trajscore.gates import RunSet
from trajscore.inference.intervals import clopper_pearson_excess
from trajscore.integrations import Guard
from trajscore.io.unread import refusals
from trajscore.loading.load import RISKS
from trajscore.loading.tables import Inputs
from trajscore.monitoring import DensityRatioEProcess, split_report
from trajscore.monitoring.persistence import load_fitted, save_fitted
from trajscore.monitoring.thresholds import GUARANTEES, THRESHOLDS, HeldOut

_ENDS = {"step": "step", "after": "after", "unknown": None}
_N_SPLITS = 10
_PARAMETERS = ("--alpha", "--guarantee", "--threshold", "--flags", "--end", "--end-worth")
_OF_PROCESSES = (*_PARAMETERS, "--guard", "--refit")
_OF_FORECASTERS = [key.partition(" ")[0] for part in JUDGING for key in HELP["options"][part]]
_TOO_FEW = "four fifths of these runs are too few to set a threshold"


OPTIONS = RECALIBRATION | {
    "--guarantee": {"choices": GUARANTEES},
    "--threshold": {"choices": THRESHOLDS},
}


def run(arguments: argparse.Namespace) -> None:
    """Fit a forecaster, or a process, alone or in a guard, and write it."""
    name = arguments.forecaster
    unused = _OF_FORECASTERS if name is None else _OF_PROCESSES
    for word in arguments.argv:
        option = word.partition("=")[0]
        if option in unused:
            without = "out" * (name is None)
            raise ValueError(f"{word} is not used with{without} --forecaster; leave it out")
        if arguments.refit is not None and option in _PARAMETERS:
            raise ValueError(f"{word} is a parameter, which --refit takes from its file")
    if name is not None:
        _fit_forecaster(arguments)
    elif arguments.guard:
        _fit_guard(arguments)
    else:
        _fit_process(arguments)


def _fit_forecaster(arguments: argparse.Namespace) -> None:
    """Fit what recalibrates a predictor in a report of these runs, and write it."""
    report, log = judge_log(words_of(arguments))
    forecaster = report.forecaster(arguments.forecaster)
    refuse_tracer(log, forecaster.channels_in_)
    save_fitted(forecaster, arguments.out)
    print(
        f"fitted on {number_of(len(report.runs), 'run')}; wrote {arguments.out}; use it with: "
        f"trajscore forecast {shlex.quote(str(arguments.out))} NEW --out forecasts.csv"
    )


def _fit_process(arguments: argparse.Namespace) -> None:
    """Fit a process on the predictors of a table or a log, and write it."""
    inputs = _read(arguments)
    y = None
    groups = inputs.groups
    with refusals(arguments.table, named=False):
        runs: Any = check_predictors(inputs.predictors, inputs.y, reserved=())
        if (inputs.y != CENSORED).any():
            runs = RunSet._from_inputs(inputs, censored=arguments.censored)
            y = runs.y
            groups = runs.tasks
    X = _predictors(runs.traces, arguments.scores)
    n_runs = len(X)
    complete = np.flatnonzero(whole_runs(X))
    if not len(complete):
        raise ValueError(f"no run has {', '.join(runs.traces)} at every step")
    process = _process(arguments)
    outcome = np.repeat(runs.y, X.lengths)[:, None]
    if (as_table(X.cells) == outcome).all(axis=0).any():
        raise ArgumentError(
            "{argument} names the outcome itself; name a score that is known while a run goes on",
            "scores",
        )
    X = X[complete]
    if y is not None:
        y = y[complete]
    if groups is not None:
        groups = np.asarray(groups)[complete]
    process.fit(X, y, groups=groups)
    process._warn_if_idle(X)
    save_fitted(process, arguments.out)
    _describe(process, X, groups, n_runs)
    scores = [float(f"{value:.3g}") for value in X.cells[0].ravel()]
    line = {"id": "run 1", "step": 1, "score": scores[0]}
    if len(scores) > 1:
        line["score"] = dict(zip(process.channels_in_ or (), scores, strict=True))
    print(f"send lines such as {json.dumps(line)}")
    print(
        f"wrote {arguments.out}; use it with: "
        f"trajscore monitor --model {shlex.quote(str(arguments.out))}"
    )
    _try_out(process, X, y, groups)


def _fit_guard(arguments: argparse.Namespace) -> None:
    """Fit a guard on a log and write it."""
    if arguments.scores:
        raise ValueError(
            "--score is not used with --guard, which learns from messages; leave it out"
        )
    inputs = _read(arguments)
    if not inputs.log:
        raise ValueError("--guard learns from what was said; a table has none of it, give a log")
    started = [row for row, run in enumerate(inputs.log) if not run.ended_before_start]
    runs = [inputs.log[row] for row in started]
    y = inputs.y[started]
    groups = inputs.groups
    if groups is not None:
        groups = groups[started]
    if arguments.refit is None:
        guard = Guard(process=_process(arguments))
    else:
        guard = load_fitted(arguments.refit, Guard)
    guard.fit(runs, y, groups=groups)
    guard.save(arguments.out)
    X = guard.signals_.transform(runs)
    _describe(guard.process_, X, groups, len(inputs.y))
    print(
        f"wrote {arguments.out}; use it with: "
        f"trajscore.integrations.Guard.load({str(arguments.out)!r})"
    )
    _try_out(guard.process_, X, y, groups)


def _read(arguments: argparse.Namespace) -> Inputs:
    """Read runs, none of which needs an outcome where no option names it."""
    is_named = bool(arguments.outcome or arguments.outcomes)
    inputs = read_inputs(arguments.table, arguments, needs_scores=False, needs_outcomes=is_named)
    if not (is_named or (inputs.y != CENSORED).any()):
        print("no run has an outcome; if some have, name them with --outcome or --outcomes")
    return inputs


def _process(arguments: argparse.Namespace) -> DensityRatioEProcess:
    if arguments.refit is not None:
        return load_fitted(arguments.refit, DensityRatioEProcess)
    threshold: Any = GUARANTEES.get(arguments.threshold, arguments.threshold)
    if arguments.end_worth is not None:
        kind = THRESHOLDS[threshold]
        if not issubclass(kind, HeldOut):
            raise ValueError(
                f"--end-worth needs a threshold that held-out runs set, but {threshold!r} is one "
                f"on M itself; take --threshold conformal, or leave --end-worth out"
            )
        threshold = kind(end_worth=arguments.end_worth)
    return DensityRatioEProcess(
        PrefixForecaster(features="running", pooled=True, end=_ENDS[arguments.end]),
        threshold=threshold,
        alpha=arguments.alpha or 0.05,
        flags=arguments.flags,
    )


def _describe(process: DensityRatioEProcess, X: TrajectoryArray, groups: Any, n_runs: int) -> None:
    """Print what a process was fitted on, and when it flags a run."""
    if groups is not None and np.isinf(process.thresholds_).any():
        print(
            "warning: of each task one run counts. Give runs of more tasks, raise --alpha or, "
            "if runs of a task are independent, name the column of run ids with --group",
            file=sys.stderr,
        )
    counts = f"fitted on {len(X) - process.n_dropped_:,} of {number_of(n_runs, 'run')}"
    if process.n_dropped_:
        counts += f"; {process.n_dropped_:,} without an outcome"
    if len(X) < n_runs:
        counts += f"; {n_runs - len(X):,} with a missing value or no step"
    print(counts)
    if n := process.n_calibration_successes_:
        counted = f"{n:,} {process.promise().of}"
        if groups is not None:
            counted += f", at most one a task ({len(np.unique(groups)):,} tasks in {len(X):,} runs)"
        print(f"threshold set by {counted}")
    for alpha, limit in process.thresholds_.items():
        effect = "no run will be flagged"
        if np.isfinite(limit):
            name = ", ".join(X.channels or ("score",))
            effect = f"a run is flagged once {_crossing(process, name)} {limit:.3g}"
        print(f"alpha = {alpha:g}: {effect}")
        _describe_promise(process, float(alpha))


def _crossing(process: DensityRatioEProcess, name: str) -> str:
    """Say what of a run crosses the threshold."""
    test = process.test_
    if not test.has_outcomes:
        return f"its {name} is {('above', 'below')[process.flags == 'failure']}"
    evidence = f"M, its evidence of {process.flags},"
    if test.threshold.end_worth is not None:
        evidence += " times what a flag is worth there,"
    return f"{evidence} is above"


def _describe_promise(process: DensityRatioEProcess, alpha: float) -> None:
    """Print what is promised, and what another guarantee needs."""
    promise = process.promise(alpha)
    print(f"  promise: {promise}")
    n_learned_from = 2  # or more, which are not held out
    if not process.test_.has_outcomes:
        spared = {"failure": "successes", "success": "failures"}[process.flags]
        print(f"  of the {spared} at most {alpha:g} over their share, which is not known")
        n_learned_from = 0
    for name, keyword in GUARANTEES.items():
        other: Any = THRESHOLDS[keyword]()
        if other.holds != promise.holds:
            n = other.needs(alpha) + n_learned_from
            print(f"  --guarantee {name}: {other.holds}; needs {n:,} {promise.of} or more")


def _try_out(process: DensityRatioEProcess, X: TrajectoryArray, y: Any, groups: Any) -> None:
    """Print what processes that are fitted on some of the runs do on the others."""
    if np.isinf(process.thresholds_).all():
        return
    if not process.test_.has_outcomes:
        for alpha in process.alphas_.tolist():
            stops = process.stopping_steps(X, alpha)
            saved = np.where(stops > 0, X.lengths - stops, 0).sum() / X.lengths.sum()
            print(
                f"  alpha = {alpha:g}: flags {(stops > 0).mean():.1%} of these runs, which saves "
                f"{saved:.1%} of all steps; how many of them fail is not known"
            )
        print("once outcomes are known, learn from them with --refit")
        return
    sys.stdout.flush()  # what follows takes longer than fitting, and nothing waits for it
    try:
        table = split_report(process, X, y, groups=groups, n_splits=_N_SPLITS, n_jobs=-1)
    except ValueError:  # no success, or no failure, to fit on
        print(f"not tried on held-out runs: {_TOO_FEW}")
        return
    print(f"on a fifth of the runs, held out (mean of {_N_SPLITS} random splits):")
    spared = process.promise().of
    sought = {"failure": "failures", "success": "successes"}[process.flags]
    n = process.n_calibration_successes_ or len(y)
    for alpha, rates in table.iterrows():
        rate = rates["false_alarm_rate"]
        above, below = clopper_pearson_excess(
            [n * rate, n * (1 - rate)], [n * (1 - rate), n * rate], 0.975
        )
        effect = (
            f"flagged {rates['power_before_end']:.0%} of {sought} before their last step, which "
            f"saves {rates['steps_saved']:.0%} of their steps ({rates['power']:.0%} with their "
            f"last step), and {rate:.0%} of {spared} (95% interval {max(rate - below, 0):.0%} to "
            f"{rate + above:.0%})"
        )
        if not (rate or rates["power"]):
            effect = "flagged none of them, so the process may never flag a run"
        print(f"  alpha = {alpha:g}: {_TOO_FEW if rates['too_few'] else effect}")


def _predictors(traces: dict[str, TrajectoryArray], names: list[str]) -> TrajectoryArray:
    """Put the predictors side by side."""
    if not any(traces):
        raise ArgumentError(
            f"there is no confidence to learn from; name a column with {{argument}}, or for a log "
            f"what TRACER sees in the dialogue: {', '.join(RISKS)}",
            "scores",
        )
    if len(traces) > 1 and not names:
        raise ArgumentError(
            f"there are several predictors, {', '.join(traces)}; name those by {{argument}} "
            f"that the monitor will be sent at every step",
            "scores",
        )
    return TrajectoryArray.stack(list(traces.values()), channels=list(traces))
