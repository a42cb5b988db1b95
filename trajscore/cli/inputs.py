"""The options that say what to read, the same for every command that reads tables and logs."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from trajscore.core.errors import ArgumentError
from trajscore.core.stops import MECHANISMS
from trajscore.core.values import split_pairs
from trajscore.io.fields import NAMED_PARTS, Fields

TABLE = "table: .csv, .csv.gz, .parquet, .jsonl; log: .json, .json.gz, .jsonl, .eval, folder"


def add_input_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that say what to read."""
    add = parser.add_argument_group("what to read").add_argument
    add("--format", help="format of a log, if it is not recognised: tau2, openai, ...")
    many: dict[str, Any] = {"action": "append", "default": []}
    add("--id", **many, help="field or column of run ids (several make one: --id task --id trial)")
    add("--step", help="column of step numbers or times; rows: the order of the rows")
    add(
        "--wide",
        **many,
        metavar="PREFIX",
        help="prefix of the columns of steps, in a table with one row a run: step_ for "
        "step_1 to step_7, or 'step_*_conf' for step_1_conf to step_7_conf (may be repeated)",
    )
    add("--first-step", type=whole_number, help="number of each run's first step")
    add(
        "--score",
        dest="scores",
        metavar="NAME",
        **many,
        help="column of a predictor; predictor of a log (may be repeated)",
    )
    add("--confidence", metavar="NAME", help="field or score of a turn that is the confidence")
    add(
        "--risk",
        dest="risks",
        metavar="NAME",
        **many,
        help="column of a predictor whose high values go with failure (may be repeated)",
    )
    add(
        "--scale",
        dest="scales",
        type=_scale,
        metavar="NAME=TOP",
        **many,
        help="column of a predictor from 0 to TOP, such as verbal=100 (may be repeated)",
    )
    add("--outcome", metavar="NAME", help="field or column of outcomes; dots lead into objects")
    add(
        "--map",
        dest="outcome_map",
        **many,
        metavar="WORD=OUTCOME,...",
        help="what words mean: 1 success, 0 failure, -1 not observed, say pass=1,fail=0,timeout=-1 "
        "(may be repeated)",
    )
    add(
        "--outcomes",
        type=Path,
        metavar="TABLE",
        help="table with a row a run: its id, its outcome, maybe its stop reason",
    )
    add(
        "--field",
        dest="fields",
        **many,
        metavar="PART=NAME,...",
        help="parts of any JSON log: steps, text, actor, action, observation ..., say "
        "steps=events,text=body.text (may be repeated)",
    )
    add("--stop-reason", metavar="NAME", help="field or column of stop reasons")
    add(
        "--stop",
        dest="rule",
        type=_rule,
        action="extend",
        default=[],
        metavar="REASON=KIND,...",
        help="what stop reasons mean: complete, administrative, informative or excluded, say "
        "timeout=administrative (may be repeated)",
    )
    add(
        "--role",
        dest="roles",
        **many,
        metavar="NAME=ACTOR,...",
        help="who acts under a role of a log: agent, user or environment, say WebSurfer=agent (may "
        "be repeated)",
    )
    add("--group", help="column of clusters (the task); for none, the column of run ids")
    add(
        "--max-size",
        type=_bytes,
        metavar="BYTES",
        help="how much a compressed file may unpack to, say 4GB (100 times its size or 256MB)",
    )
    add(
        "--embedder",
        help="for logs without confidence: char (default), wordllama, or a "
        "sentence-transformers model",
    )


def add_censored(parser: argparse.ArgumentParser) -> None:
    """Add the option that says what runs without an outcome count as."""
    parser.add_argument(
        "--censored",
        choices=("failure", "drop"),
        default="failure",
        help="what runs without an observed outcome count as (%(default)s)",
    )


def check_folder(option: str, path: Path, ending: str = "") -> None:
    """Refuse a file that cannot be written before the work is done, not after it."""
    if not path.name.lower().endswith(ending):
        raise ValueError(f"{option}: {path} must end in {ending}")
    if not path.parent.is_dir():
        raise ValueError(f"{option}: the folder {path.parent} does not exist; create it first")


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Name the file in an error, where a command reads several."""
    try:
        yield
    except ValueError as error:
        if str(path) in str(error):
            raise
        problem = error if isinstance(error, ArgumentError) else ArgumentError(str(error))
        raise ArgumentError(f"{path}: {problem.text}", problem.part, problem.value) from error


def note_if_same(path: Path, other: Path) -> None:
    """Say that runs are compared with themselves."""
    if path.resolve() == other.resolve():
        print(f"note: both sets of runs are the same file, {path}", file=sys.stderr)


def reading(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return what `load` is to know beside the file."""
    ids = tuple(arguments.id)
    return {
        "fields": Fields(
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
            **_parts(",".join(arguments.fields)),
        ),
        "format": arguments.format,
        "outcome_map": ",".join(arguments.outcome_map) or None,
        "outcomes": arguments.outcomes,
        "rule": dict(arguments.rule) or None,
        "first_step": arguments.first_step,
        "embedder": arguments.embedder,
        "max_size": arguments.max_size,
        "roles": ",".join(arguments.roles) or None,
    }


def _parts(text: str) -> dict[str, str]:
    """Read the parts of a log of any JSON, steps=events,text=body.text."""
    pairs = split_pairs(text) if text else []
    for part, name in pairs:
        if part not in NAMED_PARTS or not name:
            raise ArgumentError(
                f"{{argument}}: {part!r} is not PART=NAME; give pairs such as text=body, where "
                f"PART is one of {', '.join(NAMED_PARTS)}",
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
    if not name or not number > 0:
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
