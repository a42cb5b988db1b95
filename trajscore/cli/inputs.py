"""The options that say what to read, the same for every command that reads tables and logs."""

import argparse
import math
import sys
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd

from trajscore.cli.main import HELP
from trajscore.core.errors import ArgumentError, optional
from trajscore.core.score_families import usage
from trajscore.core.stops import MECHANISMS
from trajscore.core.storage import replacing
from trajscore.core.type_aliases import ByName
from trajscore.core.values import split_pairs
from trajscore.io.fields import ANY_PARTS, Fields
from trajscore.io.files import to_csv
from trajscore.io.unread import refusals
from trajscore.loading.load import load
from trajscore.loading.tables import Inputs, LoadRequest, describe_notes

# A progress bar is shown for work that takes longer than this many seconds.
_PATIENCE = 1.5
_UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}


def adder(parts: Any, command: str) -> Callable[..., Any]:
    """Return what adds an argument, with its help and what its value is called there."""

    def add(name: str, **how: Any) -> None:
        key = next(key for key in HELP[command] if key.split()[0] == name)
        if value := key.partition(" ")[2]:
            how["metavar"] = value
        text = HELP[command][key].format(table=HELP["table"], families=usage())
        shown = argparse.SUPPRESS if name in HELP["rare"] else text
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
    words = HELP[name]
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


def reader(read: Callable[[str], Any], expected: str) -> Callable[[str], Any]:
    """Return what reads the value of an option, and says what is expected where it cannot."""

    def read_value(text: str) -> Any:
        try:
            return read(text)
        except (ValueError, KeyError, OverflowError):
            raise argparse.ArgumentTypeError(f"{text!r} is not {expected}") from None

    return read_value


whole_number = reader(int, "a whole number")
number = reader(float, "a number")


def _bytes(text: str) -> int:
    """Read 4GB, 500MB or a number of bytes."""
    size = text.strip().upper().removesuffix("B")
    digits = size.rstrip("KMGT")
    return int(float(digits) * _UNITS[size.removeprefix(digits)])


def named_number(text: str) -> tuple[str, float]:
    """Read a name and its number, NAME=0.5."""
    name, _, value = text.rpartition("=")
    if not name:
        raise ValueError
    return name, float(value)


def _scale(text: str) -> tuple[str, float]:
    name, top = named_number(text)
    if not 0 < top < math.inf:
        raise ValueError
    return name, top


def _rule(text: str) -> list[tuple[str, str]]:
    pairs = split_pairs(text)
    if not all(reason and kind in MECHANISMS for reason, kind in pairs):
        raise ValueError
    return pairs


def add_input_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that say what to read."""
    add = adder(parser.add_argument_group("what to read"), "shared")
    add("--format")
    many: ByName = {"action": "append", "default": []}
    add("--id", **many)
    add("--step")
    add("--wide", **many)
    add("--first-step", type=whole_number)
    add("--score", dest="scores", **many)
    add("--confidence", action=_Once)
    add("--risk", dest="risks", **many)
    scale = reader(_scale, "NAME=TOP; give a column and a number, such as verbal=100")
    add("--scale", dest="scales", type=scale, **many)
    add("--outcome")
    add("--map", dest="outcome_map", **many)
    add("--outcomes", type=Path)
    add("--field", dest="fields", **many)
    add("--stop-reason")
    rule = reader(
        _rule,
        f"REASON=KIND; give pairs such as timeout=administrative, where KIND is one of "
        f"{', '.join(MECHANISMS)}",
    )
    add("--stop", dest="rule", type=rule, action="extend", default=[])
    add("--role", dest="roles", **many)
    add("--group")
    add_label = adder(parser.add_mutually_exclusive_group(), "shared")
    add_label("--first-error")
    add_label("--step-label")
    add_max_size(parser)
    add("--embedder")


def add_max_size(parser: argparse.ArgumentParser) -> None:
    """Add the option that says how much a compressed file may unpack to."""
    size = reader(_bytes, "a size; give one such as 4GB")
    adder(parser, "shared")("--max-size", type=size)


def add_censored(parser: argparse.ArgumentParser) -> None:
    """Add the option that says what runs without an outcome count as."""
    adder(parser, "shared")("--censored", choices=("failure", "drop"), default="failure")


def check_folder(option: str, path: Path, ending: str = "") -> None:
    """Refuse a file that cannot be written before the work is done, not after it."""
    if not path.name.lower().endswith(ending):
        raise ValueError(f"{option}: {path} must end in {ending}")
    if not path.parent.is_dir():
        raise ValueError(f"{option}: the folder {path.parent} does not exist; create it first")


def check_table(path: Path) -> None:
    """Refuse a table that cannot be written before the work is done."""
    check_folder("--out", path)
    if path.suffix not in (".parquet", ".csv"):
        raise ValueError(f"--out: {path} must end in .parquet or .csv")
    if path.suffix == ".parquet":
        optional("pyarrow", f"--out: {path} needs pyarrow", "data", ", or name a .csv")


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


def read_inputs(path: Path, arguments: argparse.Namespace, **more: Any) -> Inputs:
    """Load a file, and say on standard error what was recognised in it: it is not the answer."""
    with refusals(path, named=False):
        inputs = load(path, load_request(arguments, **more))
    for line in describe_notes(inputs.notes, arguments.options).splitlines():
        print(f"{path}: {line}", file=sys.stderr)
    return inputs


def load_request(arguments: argparse.Namespace, **more: Any) -> LoadRequest:
    """Return what the options ask of a file."""
    options = vars(arguments)
    one = ("step", "confidence", "outcome", "stop_reason", "group", "first_error", "step_label")
    names = {part: options[part] for part in one}
    names |= {part: tuple(options[part]) for part in ("scores", "wide", "risks", "scales")}
    ids = tuple(arguments.id)
    fields = Fields(id=ids[0] if len(ids) == 1 else ids or None, **names)
    parts = _parts(",".join(arguments.fields))
    for part in parts:
        if getattr(fields, part) is not None:
            raise ArgumentError(
                f"{{argument}} and --field name the {part} both; name it once", part
            )
    same = ("format", "outcomes", "first_step", "embedder", "max_size")
    return LoadRequest(
        fields.over(Fields(**parts)),
        outcome_map=",".join(arguments.outcome_map) or None,
        rule=dict(arguments.rule) or None,
        roles=",".join(arguments.roles) or None,
        **{name: options[name] for name in same},
        **more,
    )


def _parts(text: str) -> ByName:
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


def progress_bar(n_jobs: int | None = None) -> Callable[[Iterable[Any]], Iterable[Any]]:
    """Return a progress bar, if tqdm is installed, that shows up only when the work takes long."""
    try:
        from tqdm import tqdm
    except ImportError:
        return iter
    hidden = not sys.stderr.isatty()
    return partial(tqdm, total=n_jobs, desc="working", delay=_PATIENCE, leave=False, disable=hidden)
