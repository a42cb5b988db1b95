"""``trajscore report``: judge the confidence in a table or a log of runs."""

import argparse
import shlex
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from trajscore.calibration.calibrators import CALIBRATORS
from trajscore.cli.inputs import READING, load_request, named_number, progress_bar
from trajscore.cli.main import Options, add_options, make_parser, reader
from trajscore.core.array import TrajectoryArray
from trajscore.core.errors import ArgumentError
from trajscore.core.score_families import USUAL_SCORES, ScoreFamily, family_name, get_family, usage
from trajscore.core.values import ByName, check_known, number_of
from trajscore.core.weights import AGGREGATORS, OWN, WEIGHT_SCHEDULES
from trajscore.evaluation.notes import without_leaky_columns
from trajscore.evaluation.runs import MISSING
from trajscore.io import Run
from trajscore.io.fields import ROWS, Fields
from trajscore.io.files import NO_READAHEAD, parquet_dataset
from trajscore.io.tables import agent_rows, choose_columns
from trajscore.loading.detection import is_folder_of_tables
from trajscore.loading.load import load, turns_of
from trajscore.loading.tables import (
    Inputs,
    LoadRequest,
    NoteText,
    describe_notes,
    first_step_of,
    note_on_guesses,
    note_on_unused,
    notes_on_outcome,
    task_column,
)
from trajscore.report import EvaluationOptions, MonitoringOptions, Report, evaluate
from trajscore.report.verdicts import without_threshold
from trajscore.streaming import iter_batches
from trajscore.streaming.batches import BATCH_ROWS
from trajscore.tracer.action_signals import n_tokens

JUDGING = ("recalibration", "censored")
"""Parts of `help.toml` that say on which runs, and how, predictors are recalibrated."""
_ENDS = {"known": True, "unknown": False, None: None}


def _horizon(text: str) -> int | str:
    """Read a number of steps, or own."""
    if text == OWN:
        return text
    if not (text.isdecimal() and int(text)):
        raise ValueError
    return int(text)


def _family(text: str) -> ScoreFamily:
    """Read the name of a score family, with its numbers."""
    try:
        return get_family(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


RECALIBRATION: Options = READING | {
    "--weights": {"choices": WEIGHT_SCHEDULES},
    "--horizon": {"type": reader(_horizon, "a number of steps, such as 30, or own")},
    "--missing": {"choices": MISSING},
    "--calibrator": {"choices": (*CALIBRATORS, "none")},
}
"""Of the options that say on which runs, and how, predictors are recalibrated."""

OPTIONS = RECALIBRATION | {
    "--family": {"type": _family, "help": f"leading score: {usage()} (%(default)s)"},
    "--phi": {"choices": AGGREGATORS},
    "--price": {"type": reader(named_number, "a score and its price, such as judge=0.002")},
}


def words_of(arguments: argparse.Namespace, parts: Sequence[str] = JUDGING) -> tuple[str, ...]:
    """Return the file of a command, and its options on what to read, and of these parts."""
    parser = argparse.ArgumentParser(add_help=False)
    add_options(parser, ["reading", *parts], RECALIBRATION)
    words = [str(arguments.table)] if arguments.table else []
    for action in parser._actions:
        value = getattr(arguments, action.dest)
        if value != action.default:
            for part in value if isinstance(value, list) else [value]:
                text = "=".join(map(str, part)) if isinstance(part, tuple) else str(part)
                words.append(f"{action.option_strings[0]}={text}")
    return tuple(words)


def judge(words: str) -> Report:
    """Return the report of ``trajscore report`` with these words.

    >>> from trajscore.cli.report import judge
    >>> judge("--score=material --censored=drop").predictors  # doctest: +ELLIPSIS
    no table was given: ...
    ['material', 'material with its history']
    """
    return judge_log(shlex.split(words))[0]


def judge_log(words: Sequence[str]) -> tuple[Report, Sequence[Run]]:
    """Return the same report, and the runs of its log, if it is of one."""
    argv = ["report", *words]
    return _judge(make_parser(["report"]).parse_args(argv, argparse.Namespace(argv=argv)))


def run(arguments: argparse.Namespace) -> None:
    """Print the report, and write it as a page if that is wanted."""
    report, log = _judge(arguments)
    if n := report.facts.n_unscored:
        print(f"Not scored: {number_of(n, 'step')} beyond --horizon {arguments.horizon}\n")
    if why := without_threshold(report):
        print(f"{why}\n")
    print(report.to_text(verbose=arguments.verbose), flush=True)
    if arguments.code:
        print(f"\n{report.code()}")
    if (out := arguments.out) is not None:
        writers: dict[str, Callable[[Path], Any]] = {
            ".html": partial(report.to_html, log=log, progress=progress_bar()),
            ".json": report.to_json,
            ".md": report.to_markdown,
        }
        print(f"\nwrote {writers[out.suffix.lower()](out)}")


def _judge(arguments: argparse.Namespace) -> tuple[Report, Sequence[Run]]:
    """Return the report of a table, a log or a folder of Parquet files, and the runs of a log."""
    path = arguments.table
    request = load_request(arguments, by=arguments.by, missing=arguments.missing, keep_lost=True)
    reason = None
    if path is not None and is_folder_of_tables(path):
        inputs, reason = batches_of(path, request)
    else:
        inputs = load(path, request)
    guesses = describe_notes(inputs.notes, arguments.options)
    if guesses:
        print(f"{guesses}\n", flush=True)
    X: Any = inputs.predictors
    judged = partial(
        evaluate, X, inputs.y, groups=inputs.groups, stop_reason=reason,
        **_options(arguments, inputs),
    )  # fmt: skip
    try:
        report = judged()
    except ArgumentError as error:
        if error.part != "scattered":
            raise
        print("the rows of a run lie apart: putting them together\n", flush=True)
        X.columns = replace(X.columns, scattered=True)
        report = judged()
    name = str(path or "the bundled chess data")
    command = shlex.join(["trajscore", *arguments.argv])
    source = replace(
        report.source, name=name, command=command, reading=words_of(arguments, ()),
        words=words_of(arguments), guesses=guesses, outcome=inputs.outcome,
        writes_file=arguments.out is not None,
    )  # fmt: skip
    return replace(report, source=source), inputs.log


def _options(arguments: argparse.Namespace, inputs: Inputs) -> ByName:
    """Return what is computed, of whatever was read."""
    leading = arguments.family
    others = [family for family in USUAL_SCORES if family_name(family) != leading.name]
    names = vars(EvaluationOptions()).keys() & vars(arguments).keys()
    options = {name: getattr(arguments, name) for name in names} | {
        "families": [leading, *others],
        "prices": arguments.prices and dict(arguments.prices),
        "first_error": inputs.first_error,
        "end": _ENDS[arguments.end],
        "progress": progress_bar(),
    }
    return {
        "weights": arguments.weights,
        "calibrator": None if arguments.calibrator == "none" else arguments.calibrator,
        "censored": arguments.censored,
        "by": {name: name for name in arguments.by} or None,
        "monitoring": _monitoring(arguments, inputs),
        "options": EvaluationOptions(**options),
    }


def _monitoring(arguments: argparse.Namespace, inputs: Inputs) -> bool | MonitoringOptions:
    options: ByName = {
        name: value
        for name in ("known_share", "n_splits")
        if (value := getattr(arguments, name)) is not None
    }
    if not arguments.monitor:
        if options:
            raise ValueError("--known-share and --splits need --monitor; add it")
        return False
    if inputs.log:
        options["cost"] = _tokens_of(inputs)
    return MonitoringOptions(**options)


def _tokens_of(inputs: Inputs) -> TrajectoryArray | None:
    """Return what the agent generated in each step of predictors of a log; None if not known."""
    predictors: Any = inputs.predictors
    turns = turns_of(predictors, inputs.log)
    tokens = np.where(turns.is_agent, [n_tokens(step) for step in turns.steps], 0.0)
    agent = np.flatnonzero(turns.is_agent)
    opening = agent[np.unique(turns.run_of[agent], return_index=True)[1]]
    tokens[opening] = np.nan_to_num(tokens[opening])
    return None if np.isnan(tokens).any() else turns.container(tokens, ["generated tokens"])


_HEAD = 10_000  # rows by which columns are chosen


def batches_of(path: Path, request: LoadRequest) -> tuple[Inputs, str | None]:
    """Return batches of a folder, with what was guessed, and the column of stop reasons."""
    asked = vars(request) | vars(request.fields) | {"step": request.fields.step == ROWS}
    for part in (
        "risks", "scales", "wide", "outcome_map", "outcomes", "rule", "step", "first_error",
        "step_label",
    ):  # fmt: skip
        if asked[part]:
            raise ArgumentError(
                "{argument} is not for a folder of Parquet files; write columns of step numbers, "
                "of forecasts, and of outcomes as 1, 0 or empty",
                part,
            )
    files = parquet_dataset(path)
    chosen, first_step, notes = _choose_columns(files, request)
    reason = chosen.stop_reason
    batches: Any = iter_batches(
        str(path),
        id=chosen.ids[0],
        step=str(chosen.step),
        value=list(chosen.scores),
        outcome=str(chosen.outcome),
        group=chosen.group,
        meta=[*dict.fromkeys(filter(None, (*request.by, reason)))],
        first_step=first_step,
        progress=progress_bar(1 + files.count_rows() // BATCH_ROWS),
    )
    y: Any = None  # which they hold themselves
    return Inputs(batches, y, notes=tuple(notes), outcome=batches.columns.outcome), reason


def _choose_columns(files: Any, request: LoadRequest) -> tuple[Fields, int, list[NoteText]]:
    """Return columns and first step, by the first rows as for a table, and what was guessed."""
    import pyarrow.compute as pc

    head = files.head(_HEAD, batch_size=_HEAD, **NO_READAHEAD).to_pandas()
    check_known(request.by, head.columns, "column", "by")
    chosen, guessed = choose_columns(head, request.fields)
    if len(chosen.ids) > 1:
        raise ArgumentError("{argument}: name one column, of a folder of Parquet files", "id")
    if agent_rows(head, chosen)[1]:
        raise ValueError("not all rows are the agent's, by a column of roles; write these alone")
    task = task_column(head, chosen)
    if task is not None and files.count_rows(filter=pc.field(task).is_null(nan_is_null=True)):
        task = None
    chosen = replace(chosen, group=chosen.group or task)
    unused = note_on_unused(head.drop(columns=list(request.by)), chosen)
    leaks: list[NoteText] = []
    if "scores" in guessed:
        X, y = TrajectoryArray.from_frame(
            head,
            id=chosen.ids[0],
            step=None,  # the first rows may not have all steps of a run
            value=list(chosen.scores),
            outcome=chosen.outcome,
            missing="allow",
            stop_reason=(),
        )
        X, leaks = without_leaky_columns(X, y, np.ones(len(y), dtype=bool))
        guessed["scores"] = X.channels or ()
        chosen = replace(chosen, scores=guessed["scores"])
    first_step = first_step_of(head, chosen, request)
    guesses = note_on_guesses(guessed, first_step, request.first_step)
    notes = [*guesses, *leaks, *unused, *notes_on_outcome(head, str(chosen.outcome), {})]
    if chosen.group is not None:
        notes.append(f"clusters of runs by {chosen.group!r}")
    return chosen, first_step, notes
