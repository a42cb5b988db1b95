"""The options that say what to read, the same for every command that reads tables and logs."""

import argparse
import math
import sys
from collections.abc import Callable, Iterable
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import pandas as pd

from trajscore.cli.main import Options, reader
from trajscore.core.errors import ArgumentError
from trajscore.core.stops import MECHANISMS
from trajscore.core.storage import replacing, to_csv
from trajscore.core.values import ByName, split_pairs
from trajscore.io.fields import ANY_PARTS, USUAL_FIELDS, Fields
from trajscore.io.unread import refusals
from trajscore.loading.load import load
from trajscore.loading.tables import Inputs, LoadRequest, describe_notes

# A progress bar is shown for work that takes longer than this many seconds.
_PATIENCE = 1.5
_UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}


class _Once(argparse.Action):
    """Take a value, and refuse a second one, which would replace it in silence."""

    def __call__(self, parser: Any, space: Any, value: Any, option: str | None = None) -> None:
        if getattr(space, self.dest) is not None:
            raise argparse.ArgumentError(self, "it is given twice; give it once")
        setattr(space, self.dest, value)


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


READING: Options = {
    "--confidence": {"action": _Once},
    "--scale": {"type": reader(_scale, "NAME=TOP; give a column and a number, such as verbal=100")},
    "--stop": {
        "type": reader(
            _rule,
            f"REASON=KIND; give pairs such as timeout=administrative, where KIND is one of "
            f"{', '.join(MECHANISMS)}",
        )
    },
    "--max-size": {"type": reader(_bytes, "a size; give one such as 4GB")},
}
"""Of the options that say what to read."""


def write_table(table: pd.DataFrame, path: Path) -> None:
    """Write a table by the ending of its name."""
    with replacing(path) as file:
        if path.suffix.lower() == ".csv":
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
    names: ByName = {
        part: tuple(value) if isinstance(value, list) else value
        for part, value in options.items()
        if part in vars(USUAL_FIELDS)
    }
    if len(arguments.id) < 2:
        names["id"] = next(iter(arguments.id), None)
    fields = Fields(**names)
    parts: ByName = {}
    for part, name in chain.from_iterable(map(split_pairs, arguments.fields)):
        if part not in ANY_PARTS or not name:
            raise ArgumentError(
                f"{{argument}}: {part!r} is not PART=NAME; give pairs such as text=body, where "
                f"PART is one of {', '.join(ANY_PARTS)}",
                "fields",
            )
        if getattr(fields, part) is not None:
            raise ArgumentError(
                f"{{argument}} and --field name the {part} both; name it once", part
            )
        parts[part] = name
    same = ("format", "outcomes", "first_step", "embedder", "max_size")
    return LoadRequest(
        fields.over(Fields(**parts)),
        outcome_map=",".join(arguments.outcome_map) or None,
        rule=dict(arguments.rule) or None,
        roles=",".join(arguments.roles) or None,
        **{name: options[name] for name in same},
        **more,
    )


def progress_bar(n_jobs: int | None = None) -> Callable[[Iterable[Any]], Iterable[Any]]:
    """Return a progress bar, if tqdm is installed, that shows up only when the work takes long."""
    try:
        from tqdm import tqdm
    except ImportError:
        return iter
    hidden = not sys.stderr.isatty()
    return partial(tqdm, total=n_jobs, desc="working", delay=_PATIENCE, leave=False, disable=hidden)
