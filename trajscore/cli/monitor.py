"""``trajscore monitor``: decide after every score whether a run should stop."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import numpy as np

from trajscore.cli.inputs import number
from trajscore.monitoring._persistence import load_process
from trajscore.monitoring._service import lines_of, serve


def add_parser(commands: Any) -> argparse.ArgumentParser:
    """Add the command."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "monitor",
        help="decide after every score whether a run should stop",
        description='Reads lines such as {"id": "run 1", "step": 1, "score": 0.7} on standard '
        'input, with "end": true beside the last score of a run or alone after it, and answers '
        "each with a decision on standard output. With steps, a line that is sent again is "
        "answered again and not counted twice.",
    )
    add = parser.add_argument
    add("--model", type=Path, required=True, metavar="MODEL.skops", help="fitted process")
    add("--alpha", type=number, help="one of the fitted levels")
    add(
        "--state",
        type=Path,
        metavar="FILE",
        help="keep every step here before it is answered, and go on where it was",
    )
    add(
        "--durability",
        choices=("normal", "full"),
        default="normal",
        help="what --state survives: kills (normal), or power cuts too, more slowly (full)",
    )
    add(
        "--forget-after",
        type=number,
        default=7 * 24.0,
        metavar="HOURS",
        help="forget runs that had no score for so long (168)",
    )
    add("--trust", action="append", default=[], metavar="TYPE", help="a type in the model to trust")
    return parser


def run(arguments: argparse.Namespace) -> int:
    """Answer the lines on standard input."""
    if not arguments.forget_after > 0:
        raise ValueError("--forget-after must be a number of hours above 0")
    process = load_process(arguments.model, arguments.trust)
    monitor = process.monitor(arguments.alpha, arguments.state, arguments.durability)
    if np.isinf(process.thresholds_).all():
        print(
            f"warning: {arguments.model} can flag no run: it was fitted on too few; fit it on more "
            f"runs, or with a larger --alpha",
            file=sys.stderr,
        )
    try:
        lines = lines_of(sys.stdin.buffer)
        serve(monitor, lines, sys.stdout, 3600 * arguments.forget_after)
    finally:
        monitor.close()
    return 0
