"""``trajscore compare``: what changed between two tables or logs of runs."""

import argparse
from pathlib import Path

from trajscore.cli.inputs import (
    READING,
    note_if_same,
    read_inputs,
)
from trajscore.gates import RunSet, compare
from trajscore.io.unread import refusals

OPTIONS = READING


def run(arguments: argparse.Namespace) -> None:
    """Print what changed."""
    sets = [read(path, arguments) for path in (arguments.base, arguments.new)]
    note_if_same(arguments.base, arguments.new)
    print(compare(*sets))


def read(path: Path, arguments: argparse.Namespace) -> RunSet:
    """Read a set of runs."""
    inputs = read_inputs(path, arguments, needs_scores=False)
    with refusals(path, named=False):
        return RunSet._from_inputs(inputs, censored=arguments.censored)
