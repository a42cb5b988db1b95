"""``trajscore report``: judge the confidence in a table or a log of runs."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from trajscore.calibration.calibrators import CALIBRATORS
from trajscore.cli.batches import batches_of
from trajscore.cli.inputs import (
    add_censored,
    add_command,
    add_input_options,
    check_folder,
    number,
    progress_bar,
    reading,
    whole_number,
)
from trajscore.core.array import TrajectoryArray
from trajscore.core.errors import ArgumentError
from trajscore.core.run_sums import AGGREGATORS
from trajscore.core.score_families import USUAL_SCORES, ScoreFamily, family_name, get_family
from trajscore.core.values import number_of
from trajscore.core.weights import OWN, WEIGHT_SCHEDULES
from trajscore.evaluation.runs import MISSING
from trajscore.io import Run
from trajscore.io.registry import is_folder_of_tables
from trajscore.monitoring._thresholds import Conformal
from trajscore.report import EvaluationOptions, MonitoringOptions, Report, evaluate
from trajscore.report._inputs import Inputs, load
from trajscore.report.verdicts import without_threshold
from trajscore.tracer.action_signals import n_tokens
from trajscore.tracer.turns import take_turns

_WRITERS: dict[str, Callable[[Report, Path, Sequence[Run]], Path]] = {
    ".html": lambda report, path, log: report.to_html(path, log=log, progress=progress_bar()),
    ".json": lambda report, path, log: report.to_json(path),
    ".md": lambda report, path, log: report.to_markdown(path),
}


def add_parser(commands: Any) -> argparse.ArgumentParser:
    """Add the command; an option that Python knows by another name has that as its dest."""
    parser, add = add_command(commands, "report")
    add("table", nargs="?", type=Path)
    add_input_options(parser)
    add("--weights", choices=WEIGHT_SCHEDULES, default="early")
    add("--horizon", type=_horizon)
    add("--end", choices=("known", "unknown"))
    add("--family", default="log", type=_family)
    add("--phi", choices=AGGREGATORS, default="weighted")
    add("--missing", choices=MISSING, default="same_runs")
    add("--calibrator", choices=(*CALIBRATORS, "none"), default="auto")
    add_censored(parser)
    add("--by", action="append", default=[], metavar="COLUMN")
    add("--monitor", action="store_true")
    add("--known-share", type=number, metavar="SHARE")
    add("--splits", dest="n_splits", metavar="N", type=whole_number)
    add("--resamples", dest="n_resamples", metavar="N", type=whole_number, default=1000)
    add("--seed", dest="random_state", metavar="N", type=whole_number, default=0)
    add("--jobs", dest="n_jobs", metavar="N", type=whole_number, default=-1)
    add("--verbose", action="store_true")
    add("--out", type=Path)
    return parser


def run(arguments: argparse.Namespace) -> None:
    """Print the report, and write it as a page if that is wanted."""
    _check_out(arguments.out)
    if arguments.table is not None and is_folder_of_tables(arguments.table):
        report, guesses, log = _judge_folder(arguments)
    else:
        report, guesses, log = _judge(arguments)
    name = "the bundled chess data" if arguments.table is None else str(arguments.table)
    command = shlex.join(["trajscore", *arguments.argv])
    source = replace(report.source, name=name, command=command, guesses=guesses)
    report = replace(report, source=source)
    if n := report.facts.n_unscored:
        print(f"Not scored: {number_of(n, 'step')} beyond --horizon {arguments.horizon}\n")
    if why := _without_threshold(report):
        print(f"{why}\n")
    print(report.to_text(verbose=arguments.verbose), flush=True)
    if arguments.out is not None:
        write = _WRITERS[arguments.out.suffix.lower()]
        print(f"\nwrote {write(report, arguments.out, log)}")


def _judge(arguments: argparse.Namespace) -> tuple[Report, str, Sequence[Run]]:
    """Return the report of a table or a log, what was guessed, and the runs of a log."""
    known = reading(arguments)
    inputs = load(
        arguments.table, **known, by=arguments.by, missing=arguments.missing, keep_lost=True
    )
    guesses = str(inputs)
    if guesses:
        print(f"{guesses}\n")
    report = evaluate(
        inputs.predictors,
        inputs.y,
        groups=inputs.groups,
        **_options(arguments, inputs),
    )
    report = replace(report, source=replace(report.source, outcome=inputs.outcome))
    return report, guesses, inputs.log


def _judge_folder(arguments: argparse.Namespace) -> tuple[Report, str, Sequence[Run]]:
    """Return the report of a folder of Parquet files, and what was guessed."""
    options, known = _options(arguments), reading(arguments)
    for scattered in (False, True):
        batches, reason, guesses = batches_of(arguments.table, known, arguments.by, scattered)
        if guesses and not scattered:
            print(f"{guesses}\n", flush=True)
        try:
            report = evaluate(batches, stop_reason=reason, **options)
            break
        except ArgumentError as error:
            if scattered or error.part != "scattered":
                raise
            print("the rows of a run lie apart: putting them together\n", flush=True)
    source = replace(report.source, outcome=batches.columns.outcome)
    return replace(report, source=source), guesses, []


def _options(arguments: argparse.Namespace, inputs: Inputs | None = None) -> dict[str, Any]:
    """Return what is computed, of whatever was read."""
    leading = arguments.family
    others = [family for family in USUAL_SCORES if family_name(family) != leading.name]
    return {
        "weights": arguments.weights,
        "calibrator": None if arguments.calibrator == "none" else arguments.calibrator,
        "censored": arguments.censored,
        "by": {name: name for name in arguments.by} or None,
        "monitoring": _monitoring(arguments, inputs),
        "options": EvaluationOptions(
            families=[leading, *others],
            horizon=arguments.horizon,
            phi=arguments.phi,
            missing=arguments.missing,
            end=None if arguments.end is None else arguments.end == "known",
            n_resamples=arguments.n_resamples,
            random_state=arguments.random_state,
            n_jobs=arguments.n_jobs,
            progress=progress_bar(),
        ),
    }


def _monitoring(arguments: argparse.Namespace, inputs: Inputs | None) -> bool | MonitoringOptions:
    options = {"known_share": arguments.known_share, "n_splits": arguments.n_splits}
    options = {name: value for name, value in options.items() if value is not None}
    if not arguments.monitor:
        if options:
            raise ValueError("--known-share and --splits need --monitor; add it")
        return False
    cost = _tokens_of(inputs.log, inputs.predictors) if inputs and inputs.log else None
    return MonitoringOptions(**options, cost=cost)


def _tokens_of(runs: Sequence[Run], predictors: Any) -> TrajectoryArray | None:
    """Return the agent's tokens in each step of predictors made of a log; None if not known."""
    X = next(iter(predictors.values())) if isinstance(predictors, dict) else predictors
    for actors in (("agent",), ("agent", "user")):
        turns = take_turns(runs, actors, "monitoring")
        if np.array_equal(turns.lengths, X.lengths):
            tokens = np.where(turns.is_agent, [n_tokens(step) for step in turns.steps], 0.0)
            agent = np.flatnonzero(turns.is_agent)
            opening = agent[np.unique(turns.run_of[agent], return_index=True)[1]]
            tokens[opening] = np.nan_to_num(tokens[opening])
            return None if np.isnan(tokens).any() else turns.container(tokens, ["tokens"])
    return None


def _without_threshold(report: Report) -> str:
    """Say at which levels no run can be flagged, and why."""
    if report.monitoring is None or report.monitoring.empty:
        return ""
    too_few = report.monitoring["too_few"].groupby(level="alpha").max()
    levels = too_few.index[too_few > 0.5].tolist()
    if not levels:
        return ""
    by_task = report.runs.groups is not None
    return without_threshold(levels, Conformal(levels[0]).needs(), by_task)


def _check_out(out: Path | None) -> None:
    """Refuse a page that cannot be written before the work is done, not after it."""
    if out is None:
        return
    check_folder("--out", out)
    if out.is_dir():
        raise ValueError(f"--out: {out} is a folder; name a file in it, say {out / 'report.html'}")
    if out.suffix.lower() not in _WRITERS:
        raise ValueError(
            f"--out: {out} must end in one of {', '.join(_WRITERS)}, which says what is written"
        )


def _horizon(text: str) -> int | str:
    """Read a number of steps, or own."""
    if text == OWN:
        return OWN
    if text.isdecimal() and int(text):
        return int(text)
    raise argparse.ArgumentTypeError(f"{text!r} is not a number of steps, such as 30, or own")


def _family(text: str) -> ScoreFamily:
    """Read the name of a score family, with its numbers."""
    try:
        return get_family(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
