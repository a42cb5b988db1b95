"""``trajscore compare``: what changed between two tables or logs of runs."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from trajscore.cli.inputs import (
    TABLE,
    add_censored,
    add_input_options,
    naming,
    note_if_same,
    reading,
)
from trajscore.gates import RunSet, compare


def add_parser(commands: Any) -> argparse.ArgumentParser:
    """Add the command."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "compare",
        help="say what changed between two tables or logs of runs",
        description="Compare the runs of NEW with those of BASE: success, pass^k, steps, cost, and "
        "the worth and calibration of each confidence; paired by task where both have tasks in "
        "common. Either is a table, a log, or a file that trajscore check --json wrote.",
    )
    parser.add_argument("base", type=Path, metavar="BASE", help=TABLE)
    parser.add_argument("new", type=Path, metavar="NEW", help="the same, of the new runs")
    add_input_options(parser)
    add_censored(parser)
    return parser


def run(arguments: argparse.Namespace) -> None:
    """Print what changed."""
    sets = [read(path, arguments) for path in (arguments.base, arguments.new)]
    note_if_same(arguments.base, arguments.new)
    print(compare(*sets))


def read(path: Path, arguments: argparse.Namespace) -> RunSet:
    """Read a set of runs, and say what was guessed to get there."""
    with naming(path):
        runs = RunSet.read(path, censored=arguments.censored, **reading(arguments))
    for line in runs.notes.splitlines():
        print(f"{path}: {line}")
    return runs
