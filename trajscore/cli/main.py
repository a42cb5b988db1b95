"""The command ``trajscore``: its parser, its exit codes, and how it says what is wrong.

A command is a file with ``OPTIONS``, what `help.toml` cannot say of its options, and
``run(arguments)``; only the one that is called is imported.
"""

import argparse
import gc
import os
import sys
import tomllib
import warnings
from collections import defaultdict
from collections.abc import Callable, Sequence
from importlib import import_module
from importlib.resources import files
from pathlib import Path
from typing import Any, NoReturn

from trajscore import __version__
from trajscore.core.errors import ArgumentError, optional, visible

HELP: dict[str, Any] = tomllib.loads(
    files("trajscore.cli").joinpath("help.toml").read_text(encoding="utf-8")
)
"""The words of `--help` and all options, by command."""

Options = dict[str, dict[str, Any]]
"""What argparse should know of options, by their names: ``{"--alpha": {"type": float}}``."""


def reader(read: Callable[[str], Any], expected: str) -> Callable[[str], Any]:
    """Return what reads the value of an option, and says what is expected where it cannot."""

    def read_value(text: str) -> Any:
        try:
            return read(text)
        except (ValueError, KeyError, OverflowError):
            raise argparse.ArgumentTypeError(f"{text!r} is not {expected}") from None

    return read_value


READERS = {
    "path": Path,
    "number": reader(float, "a number"),
    "whole": reader(int, "a whole number"),
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit code: 0, 2 where the input was not usable, or 130.

    >>> from trajscore.cli.main import main
    >>> main(["report", "--score", "material", "--resamples", "50"])  # doctest: +ELLIPSIS
    no table was given: ...
    0
    """
    words = list(sys.argv[1:] if argv is None else argv)
    is_process = argv is None
    if is_process:
        gc.disable()  # what is imported stays, and need not be searched again and again
    parser = make_parser(words[:1])
    if is_process:
        gc.freeze()
        gc.enable()
    arguments, unknown = parser.parse_known_args(words, argparse.Namespace(argv=words))
    if unknown:
        command = f"trajscore {words[0]}"
        parser.exit(2, f"{command}: unknown: {' '.join(unknown)}; see {command} --help\n")
    with warnings.catch_warnings():
        # of a fit that goes on in another way
        warnings.filterwarnings("ignore", "Line search of Newton", category=UserWarning)
        warnings.showwarning = _print_warning
        try:
            for name, endings in arguments.writes.items():
                _check_output(arguments.options[name], getattr(arguments, name), endings)
            return int(arguments.run(arguments) or 0)
        except BrokenPipeError:  # the reader has seen enough, as `head` does
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        except KeyboardInterrupt:
            print(f"\ntrajscore: stopped{arguments.stopped}", file=sys.stderr)
            return 130
        except (ValueError, KeyError, ImportError, OSError) as error:
            print(f"trajscore: {visible(sentence_of(error, arguments.options))}", file=sys.stderr)
            return 2
    return 0


def _print_warning(message: Warning | str, *_: object, **__: object) -> None:
    """Write a warning as a line, without the line of code that it comes from."""
    print(f"warning: {visible(str(message))}", file=sys.stderr)


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        """Say what is wrong on one line."""
        self.exit(2, f"trajscore: {message}; see {self.prog} --help\n")


def make_parser(called: list[str]) -> argparse.ArgumentParser:
    """Return the parser of the command that is called."""
    parser = _Parser(
        prog="trajscore", description="Evaluate the step-by-step confidence of agents."
    )
    parser.add_argument("--version", action="version", version=f"trajscore {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for name, purpose in HELP["commands"].items():
        if [name] != called:
            commands.add_parser(name, help=purpose)
            continue
        command = import_module(f"trajscore.cli.{name}")
        command_parser = _add_command(commands, name, command.OPTIONS)
        # the option for each argument of Python that the command takes
        options = {
            action.dest: action.option_strings[0]
            for action in command_parser._actions
            if action.option_strings
        }
        if "group" in options:
            options["groups"] = options["group"]  # one column here, labels of runs in Python
        command_parser.set_defaults(run=command.run, options=options)
    return parser


def _add_command(commands: Any, name: str, options: Options) -> argparse.ArgumentParser:
    words = HELP[name]
    parser: argparse.ArgumentParser = commands.add_parser(
        name,
        description=words["description"],
        epilog=words.get("examples"),
        usage=f"%(prog)s [options] {words['takes']}",
    )
    if parser.epilog is not None:
        parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--help-all", action=_HelpAll, nargs=0, help="show all options and exit")
    # what it says when it is interrupted, and the endings of the files that it writes
    parser.set_defaults(stopped=words.get("stopped", ""), writes=words.get("writes", {}))
    add_options(parser, words["parts"], options)
    return parser


def add_options(parser: Any, parts: Sequence[str], options: Options) -> None:
    """Add the options of some parts of `help.toml`."""
    for part in parts:
        group = parser
        if part == "reading":
            group = parser.add_argument_group("what to read")
        exclusive: dict[str, Any] = defaultdict(group.add_mutually_exclusive_group)
        for key, words in HELP["options"][part].items():
            name, _, value = key.partition(" ")
            facts = words | options.get(name, {})
            if facts.get("type") in READERS:
                facts["type"] = READERS[facts["type"]]
            if value:
                facts["metavar"] = value
            text = facts.pop("help").format(table=HELP["table"])
            either = facts.pop("either", None)
            place = exclusive[either] if either else group
            shown = argparse.SUPPRESS if facts.pop("rare", False) else text
            place.add_argument(name, help=shown, **facts).words = text


class _HelpAll(argparse.Action):
    """Print the help with the options that few calls need."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        for action in parser._actions:
            action.help = getattr(action, "words", action.help)
        parser.print_help()
        parser.exit()


def _check_output(option: str, path: Path | None, endings: list[str]) -> None:
    """Refuse a file that cannot be written before the work is done, not after it."""
    if path is None:
        return
    if path.is_dir():
        raise ValueError(f"{option}: {path} is a folder; name a file in it")
    ending = path.suffix.lower()
    if endings and ending not in endings:
        raise ValueError(f"{option}: {path} must end in {' or '.join(endings)}")
    if not path.parent.is_dir():
        raise ValueError(f"{option}: the folder {path.parent} does not exist; create it first")
    if ending == ".parquet":
        optional("pyarrow", f"{option}: {path} needs pyarrow", "data", ", or name a .csv")


def sentence_of(error: Exception, options: dict[str, str]) -> str:
    """Say what is wrong in the words of the command line."""
    if isinstance(error, ArgumentError):
        return error.in_options(options)
    text = str(error)
    if isinstance(error, KeyError) and error.args:
        text = str(error.args[0])
    argument, _, rest = text.partition(" ")  # what is wrong with a value begins with its name
    if argument in options and rest:
        return f"{options[argument]} {rest}"
    return text


if __name__ == "__main__":
    sys.exit(main())
