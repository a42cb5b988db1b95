"""``trajscore describe``: what a table or a log holds, and what a report would do with it."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from trajscore.cli.inputs import TABLE, add_input_options, reading
from trajscore.report._describe import describe


def add_parser(commands: Any) -> argparse.ArgumentParser:
    """Add the command."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "describe",
        help="say what a table or a log holds, and what a report would do with it",
        description="Say in which format a file is, which runs, outcomes, stop reasons and "
        "confidences it holds, what is not used, and what a report would judge or refuse.",
    )
    parser.add_argument("file", type=Path, metavar="FILE", help=TABLE)
    parser.add_argument("--json", action="store_true", help="write the facts as JSON")
    add_input_options(parser)
    return parser


def run(arguments: argparse.Namespace) -> None:
    """Print the description."""
    description = describe(arguments.file, options=arguments.options, **reading(arguments))
    print(json.dumps(description.as_dict(), indent=2) if arguments.json else description)
