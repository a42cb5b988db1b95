"""``trajscore monitor``: decide after every score whether a run should stop."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import numpy as np

from trajscore.cli.inputs import add_command, add_max_size, number
from trajscore.monitoring._persistence import load_process
from trajscore.monitoring._service import read_lines, serve


def add_parser(commands: Any) -> argparse.ArgumentParser:
    """Add the command."""
    parser, add = add_command(commands, "monitor")
    add("--model", type=Path, required=True, metavar="MODEL.skops")
    add("--alpha", type=number)
    add("--state", type=Path, metavar="FILE")
    add("--durability", choices=("normal", "full"), default="normal")
    add("--forget-after", type=number, default=7 * 24.0, metavar="HOURS")
    add("--trust", action="append", default=[], metavar="TYPE")
    add_max_size(parser)
    return parser


def run(arguments: argparse.Namespace) -> int:
    """Answer the lines on standard input."""
    if not arguments.forget_after > 0:
        raise ValueError("--forget-after must be a number of hours above 0")
    process = load_process(arguments.model, arguments.trust, arguments.max_size)
    monitor = process.monitor(arguments.alpha, arguments.state, arguments.durability)
    if np.isinf(process.thresholds_).all():
        print(
            f"warning: {arguments.model} can flag no run: it was fitted on too few; fit it on more "
            f"runs, or with a larger --alpha",
            file=sys.stderr,
        )
    try:
        lines = read_lines(sys.stdin.buffer)
        serve(monitor, lines, sys.stdout, 3600 * arguments.forget_after)
    finally:
        monitor.close()
    return 0
