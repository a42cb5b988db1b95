"""``trajscore check``: gates for a table or a log of runs, with an exit code."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from typing import Any

from trajscore.cli.compare import read
from trajscore.cli.inputs import (
    add_censored,
    add_command,
    add_input_options,
    check_folder,
    note_if_same,
)
from trajscore.core.storage import replacing
from trajscore.gates import Gate, check
from trajscore.gates._gate import FAIL, PASS, UNDECIDED, Rules, read_gates
from trajscore.gates._result import CheckResult


def add_parser(commands: Any) -> argparse.ArgumentParser:
    """Add the command."""
    parser, add = add_command(commands, "check")
    add("new", type=Path, metavar="NEW")
    add("--baseline", type=Path, metavar="BASE")
    add("--gates", type=Path, metavar="GATES.toml")
    add("--margin", type=_margin)
    add("--undecided", choices=(UNDECIDED, PASS, FAIL))
    add("--json", type=Path, metavar="FILE")
    add("--junit", type=Path, metavar="FILE")
    add_input_options(parser)
    add_censored(parser)
    return parser


def run(arguments: argparse.Namespace) -> int:
    """Print the verdict, write what is wanted, and return the exit code."""
    wanted = {kind: getattr(arguments, kind) for kind in ("json", "junit")}
    for kind, path in wanted.items():
        if path is not None:
            check_folder(f"--{kind}", path)
    rules = _rules(arguments)
    path = arguments.baseline
    if path is not None and not path.exists():
        raise ValueError(
            f"--baseline: {path} does not exist; write it from earlier runs: "
            f"trajscore check OLD --json {path}"
        )
    baseline = None if path is None else read(path, arguments)
    new = read(arguments.new, arguments)
    if path is not None:
        note_if_same(path, arguments.new)
    if rules.gates:
        result = check(new, baseline, rules)
    else:
        result = CheckResult([], [], rules, new, None, None)
    print(result)
    for kind, path in wanted.items():
        if path is not None:
            with replacing(path) as file:
                file.write(getattr(result, f"to_{kind}")().encode())
            print(f"wrote {path}")
    if wanted["json"] is not None and not rules.gates:
        print(
            f"hold later runs against these with: trajscore check NEW --baseline {wanted['json']}"
        )
    return result.exit_code


def _margin(text: str) -> float | str:
    try:
        float(text.removesuffix("%"))
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a margin; give a number such as 0.05, or a share such as 5%"
        ) from None
    return text if text.endswith("%") else float(text)


def _rules(arguments: argparse.Namespace) -> Rules:
    if arguments.gates is None:
        if arguments.margin is not None and arguments.baseline is None:
            raise ValueError(
                "--margin says how much lower than the baseline success may be; add --baseline"
            )
        gates = () if arguments.baseline is None else (Gate(margin=arguments.margin or 0.0),)
        if not gates and arguments.json is None:
            raise ValueError(
                "there is nothing to check: give --baseline or --gates, or --json to write a "
                "baseline"
            )
        rules = Rules(gates)
    elif arguments.margin is not None:
        raise ValueError("--margin does not go with --gates; write margin in the file")
    else:
        rules = read_gates(arguments.gates)
    return rules if arguments.undecided is None else replace(rules, undecided=arguments.undecided)
