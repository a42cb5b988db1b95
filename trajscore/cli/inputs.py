"""The options that say what to read, the same for every command that reads tables and logs."""

from __future__ import annotations

import argparse
import math
import sys
import tomllib
from collections.abc import Callable, Iterable
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import Any

import pandas as pd

from trajscore.core.errors import ArgumentError, optional
from trajscore.core.score_families import usage
from trajscore.core.stops import MECHANISMS
from trajscore.core.storage import replacing
from trajscore.core.values import split_pairs
from trajscore.io.fields import ANY_PARTS, Fields
from trajscore.io.files import to_csv
from trajscore.io.unread import refusals
from trajscore.loading.load import load
from trajscore.loading.tables import Inputs, LoadRequest

_HELP: dict[str, Any] = tomllib.loads(
    files("trajscore.cli").joinpath("help.toml").read_text(encoding="utf-8")
)

# A progress bar is shown for work that takes longer than this many seconds.
_PATIENCE = 1.5


def adder(parts: Any, command: str) -> Callable[..., Any]:
    """Return what adds an argument, with its help."""

    def add(name: str, **how: Any) -> None:
        text = _HELP[command][name].format(table=_HELP["table"], families=usage())
        shown = argparse.SUPPRESS if name in _HELP["rare"] else text
        parts.add_argument(name, help=shown, **how).words = text

    return add


class _Once(argparse.Action):
    """Take a value, and refuse a second one, which would replace it in silence."""

    def __call__(self, parser: Any, space: Any, value: Any, option: str | None = None) -> None:
        if getattr(space, self.dest) is not None:
            raise argparse.ArgumentError(self, "it is given twice; give it once")
        setattr(space, self.dest, value)


class _HelpAll(argparse.Action):
    """Print the help with the options that few calls need."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        for action in parser._actions:
            action.help = getattr(action, "words", action.help)
        parser.print_help()
        parser.exit()


def add_command(commands: Any, name: str) -> tuple[argparse.ArgumentParser, Callable[..., Any]]:
    """Add a command; return its parser, and what adds an argument to it."""
    words = _HELP[name]
    parser = commands.add_parser(
        name,
        description=words["description"],
        epilog=words.get("examples"),
        usage=f"%(prog)s [options] {words['takes']}",
    )
    if parser.epilog is not None:
        parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--help-all", action=_HelpAll, nargs=0, help="show all options and exit")
    return parser, adder(parser, name)


def add_input_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that say what to read."""
    add = adder(parser.add_argument_group("what to read"), "shared")
    add("--format")
    many: dict[str, Any] = {"action": "append", "default": []}
    add("--id", **many)
    add("--step")
    add("--wide", **many, metavar="PREFIX")
    add("--first-step", type=whole_number)
    add("--score", dest="scores", metavar="NAME", **many)
    add("--confidence", metavar="NAME", action=_Once)
    add("--risk", dest="risks", metavar="NAME", **many)
    add("--scale", dest="scales", type=_scale, metavar="NAME=TOP", **many)
    add("--outcome", metavar="NAME")
    add("--map", dest="outcome_map", **many, metavar="WORD=OUTCOME,...")
    add("--outcomes", type=Path, metavar="TABLE")
    add("--field", dest="fields", **many, metavar="PART=NAME,...")
    add("--stop-reason", metavar="NAME")
    add("--stop", dest="rule", type=_rule, action="extend", default=[], metavar="REASON=KIND,...")
    add("--role", dest="roles", **many, metavar="NAME=ACTOR,...")
    add("--group")
    add_max_size(parser)
    add("--embedder")


def add_max_size(parser: argparse.ArgumentParser) -> None:
    """Add the option that says how much a compressed file may unpack to."""
    adder(parser, "shared")("--max-size", type=_bytes, metavar="BYTES")


def add_censored(parser: argparse.ArgumentParser) -> None:
    """Add the option that says what runs without an outcome count as."""
    adder(parser, "shared")("--censored", choices=("failure", "drop"), default="failure")


def check_folder(option: str, path: Path, ending: str = "") -> None:
    """Refuse a file that cannot be written before the work is done, not after it."""
    if not path.name.lower().endswith(ending):
        raise ValueError(f"{option}: {path} must end in {ending}")
    if not path.parent.is_dir():
        raise ValueError(f"{option}: the folder {path.parent} does not exist; create it first")


def check_table(option: str, path: Path) -> None:
    """Refuse a table that cannot be written before the work is done."""
    check_folder(option, path)
    if path.suffix not in (".parquet", ".csv"):
        raise ValueError(f"{option}: {path} must end in .parquet or .csv")
    if path.suffix == ".parquet":
        optional("pyarrow", f"{option}: {path} needs pyarrow", "data", ", or name a .csv")


def write_table(table: pd.DataFrame, path: Path) -> None:
    """Write a table by the ending of its name."""
    with replacing(path) as file:
        if path.suffix == ".csv":
            file.write(to_csv(table).encode())
        else:
            table.to_parquet(file, index=False)


def note_if_same(path: Path, other: Path) -> None:
    """Say that runs are compared with themselves."""
    if path.resolve() == other.resolve():
        print(f"note: both sets of runs are the same file, {path}", file=sys.stderr)


def load_request(arguments: argparse.Namespace, **more: Any) -> LoadRequest:
    """Return what the options ask of a file."""
    ids = tuple(arguments.id)
    fields = Fields(
        id=ids[0] if len(ids) == 1 else ids or None,
        step=arguments.step,
        scores=tuple(arguments.scores),
        confidence=arguments.confidence,
        wide=tuple(arguments.wide),
        risks=tuple(arguments.risks),
        scales=tuple(arguments.scales),
        outcome=arguments.outcome,
        stop_reason=arguments.stop_reason,
        group=arguments.group,
    )
    parts = _parts(",".join(arguments.fields))
    for part in parts:
        if getattr(fields, part) is not None:
            raise ArgumentError(
                f"{{argument}} and --field name the {part} both; name it once", part
            )
    return LoadRequest(
        fields.over(Fields(**parts)),
        format=arguments.format,
        outcome_map=",".join(arguments.outcome_map) or None,
        outcomes=arguments.outcomes,
        rule=dict(arguments.rule) or None,
        first_step=arguments.first_step,
        embedder=arguments.embedder,
        max_size=arguments.max_size,
        roles=",".join(arguments.roles) or None,
        **more,
    )


def load_file(path: Path, arguments: argparse.Namespace, **more: Any) -> Inputs:
    """Read a file by the options, and say what was guessed."""
    with refusals(path, named=False):
        inputs = load(path, load_request(arguments, **more))
    for line in inputs.describe(arguments.options).splitlines():
        print(f"{path}: {line}")
    return inputs


def _parts(text: str) -> dict[str, Any]:
    """Read the parts of a log of any JSON, steps=events,text=body.text."""
    if not text:
        return {}
    pairs = split_pairs(text)
    for part, name in pairs:
        if part not in ANY_PARTS or not name:
            raise ArgumentError(
                f"{{argument}}: {part!r} is not PART=NAME; give pairs such as text=body, where "
                f"PART is one of {', '.join(ANY_PARTS)}",
                "fields",
            )
    return dict(pairs)


def whole_number(text: str) -> int:
    """Read a whole number."""
    try:
        return int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number") from None


def number(text: str) -> float:
    """Read a number."""
    try:
        return float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number") from None


def _bytes(text: str) -> int:
    """Read 4GB, 500MB or a number of bytes."""
    digits = text.strip().upper().removesuffix("B")
    unit = next((unit for unit in "KMGT" if digits.endswith(unit)), "")
    try:
        return int(float(digits.removesuffix(unit)) * 1000 ** (" KMGT".index(unit or " ")))
    except (ValueError, OverflowError):
        raise argparse.ArgumentTypeError(f"{text!r} is not a size; give one such as 4GB") from None


def _scale(text: str) -> tuple[str, float]:
    name, _, top = text.rpartition("=")
    try:
        number = float(top)
    except ValueError:
        number = 0.0
    if not name or not 0 < number < math.inf:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not NAME=TOP; give a column and a number, such as verbal=100"
        )
    return name, number


def _rule(text: str) -> list[tuple[str, str]]:
    pairs = split_pairs(text)
    if not all(reason and kind in MECHANISMS for reason, kind in pairs):
        raise argparse.ArgumentTypeError(
            f"{text!r} is not REASON=KIND; give pairs such as timeout=administrative, where KIND "
            f"is one of {', '.join(MECHANISMS)}"
        )
    return pairs


def progress_bar(n_jobs: int | None = None) -> Callable[[Iterable[Any]], Iterable[Any]]:
    """Return a progress bar, if tqdm is installed, that shows up only when the work takes long."""
    try:
        from tqdm import tqdm
    except ImportError:
        return iter
    hidden = not sys.stderr.isatty()
    return partial(tqdm, total=n_jobs, desc="working", delay=_PATIENCE, leave=False, disable=hidden)
