"""``trajscore annotate``: write what a guard says of finished runs, as a platform takes scores."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import numpy as np

from trajscore.cli.inputs import check_folder, number
from trajscore.core.values import number_of
from trajscore.integrations import Guard
from trajscore.integrations._annotations import LINES, as_lines, scores_of, write_inspect
from trajscore.io import Run, read_runs
from trajscore.io.files import list_paths
from trajscore.io.registry import detect_format

_READ = {name: (name,) for name in (*LINES, "inspect")} | {"langfuse": ("langfuse", "otel")}


def add_parser(commands: Any) -> argparse.ArgumentParser:
    """Add the command."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "annotate",
        help="write what a guard says of finished runs, as a platform takes scores",
        description="Writes for each turn the p-value of its run so far, and for each run whether "
        "it was flagged: as JSON lines, each the body of one call of the platform, or as a copy of "
        "a log of Inspect. Nothing is sent. trajscore leaves these scores out when it reads a log.",
    )
    add = parser.add_argument
    add("log", type=Path, help="log that the platform saved or exported")
    add("--model", type=Path, required=True, metavar="GUARD.skops", help="trajscore fit --guard")
    add("--to", required=True, choices=tuple(_READ), help="platform that takes the scores")
    add("--out", type=Path, metavar="FILE", help="file to write (standard output)")
    add("--alpha", type=number, help="one of the fitted levels")
    add("--outcome", metavar="NAME", help="field or score that is the outcome, of several")
    add("--format", help="format of the log, if it is not recognised")
    add("--trust", action="append", default=[], metavar="TYPE", help="a type in the model to trust")
    return parser


def run(arguments: argparse.Namespace) -> None:
    """Write the scores."""
    log, out, to = arguments.log, arguments.out, arguments.to
    form = arguments.format or detect_format(list_paths(log), None).name
    if form not in _READ[to]:
        raise ValueError(
            f"--to {to} needs a log of {' or '.join(_READ[to])}, whose runs and turns have the ids "
            f"that {to} knows; {log} is {form}"
        )
    guard = Guard.load(arguments.model, arguments.trust)
    if to == "inspect" and out is None:
        raise ValueError("--to inspect writes a copy of the log; name it by --out COPY.eval")
    if out is not None:
        check_folder("--out", out)
        if out.resolve() == log.resolve():
            raise ValueError(f"--out: {out} is the log itself; name another file")
    runs = read_runs(log, format=form, outcome=arguments.outcome)
    looks = guard.looks(runs, arguments.alpha)
    if to == "inspect":
        write_inspect(log, out, runs, looks)
    else:
        pairs = zip(runs, looks, strict=True)
        of_runs = [list(scores_of(run, seen)) for run, seen in pairs if seen]
        text = "".join(as_lines(LINES[to](scores)) for scores in of_runs)
        if out is None:
            sys.stdout.write(text)
        else:
            out.write_text(text)
    print(_summary(runs, looks, to), file=sys.stderr)
    if any(seen and np.isinf(seen[-1].log_threshold) for seen in looks):
        print(
            "note: this guard flags nothing, as it has too few successes for its alpha; fit it "
            "again on more runs, or with a larger --alpha",
            file=sys.stderr,
        )


def _summary(runs: list[Run], looks: list[list[Any]], to: str) -> str:
    """Say what was written, and what has no score."""
    own = [(run, seen) for run, seen in zip(runs, looks, strict=True) if seen]
    n_flagged = sum(seen[-1].stop for _, seen in own)
    sentence = f"{number_of(len(own), 'run')}, {n_flagged} flagged"
    if len(own) < len(runs):
        sentence += f"; {len(runs) - len(own)} without a turn of agent or user, left out"
    turns = [step for run, _ in own for step in run.steps if step.actor == "agent"]
    n_without = sum(step.span is None for step in turns)
    if to != "inspect" and n_without:
        sentence += f"; {n_without} of {len(turns)} turns of agents have no span, so no score"
    return sentence
