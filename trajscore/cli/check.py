"""``trajscore check``: gates for a table or a log of runs, with an exit code."""

import argparse
from dataclasses import replace

from trajscore.cli.compare import read
from trajscore.cli.inputs import (
    READING,
    note_if_same,
)
from trajscore.cli.main import reader
from trajscore.core.storage import replacing
from trajscore.gates import Gate, check
from trajscore.gates._gate import COUNTS_AS, Rules, read_gates


def _margin(text: str) -> float | str:
    """Read a number, or check a share."""
    share = float(text.removesuffix("%"))
    return text if text.endswith("%") else share


OPTIONS = READING | {
    "--margin": {
        "type": reader(_margin, "a margin; give a number such as 0.05, or a share such as 5%")
    },
    "--undecided": {"choices": COUNTS_AS},
}


def run(arguments: argparse.Namespace) -> int:
    """Print the verdict, write it where it is wanted, and return the exit code."""
    rules = _rules(arguments)
    baseline = None
    if arguments.baseline is not None:
        note_if_same(arguments.baseline, arguments.new)
        baseline = read(arguments.baseline, arguments)
    new = read(arguments.new, arguments)
    result = check(new, baseline, rules)
    print(result)
    if arguments.json is not None:
        with replacing(arguments.json) as file:
            file.write(result.to_json().encode())
        print(f"wrote {arguments.json}")
    return result.exit_code


def _rules(arguments: argparse.Namespace) -> Rules:
    if arguments.gates is None:
        rules = Rules((Gate(margin=arguments.margin or 0.0),))
    elif arguments.margin is not None:
        raise ValueError("--margin does not go with --gates; write margin in the file")
    else:
        rules = read_gates(arguments.gates)
    if arguments.undecided is not None:
        rules = replace(rules, undecided=arguments.undecided)
    return rules
