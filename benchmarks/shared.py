"""What benchmarks share: public tables of forecasts, the command line, seeds, tables."""

import argparse
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from joblib import Parallel, delayed

from public_sets import SOURCES
from reproduction.items import Data
from trajscore import TrajectoryArray
from trajscore.core.weights import as_step_weights
from trajscore.datasets import load_chess

JUDGED = ("hotpotqa", "gsm8k", "math", "mmlupro", "chessgames", "medqa")
JUDGES = JUDGED[:2]  # the largest tables, which most scripts take
STATED = ("basketball, win probabilities", "game of 24, GPT-4's values")
CLASSIFIERS = ("agnews_gpt2", "sst2_gpt2", "pneumoniamnist_resnet50", "cifar10_resnet-20")


class Table(NamedTuple):
    """Forecasts of runs, their outcomes (-1: not observed), and tasks, where runs share one."""

    X: TrajectoryArray
    y: np.ndarray
    tasks: np.ndarray | None = None


def public_tables(folder: Path | None) -> Iterator[tuple[str, Table]]:
    """Yield the public tables that are at hand, in a folder or fetched, and name the others."""
    data = Data(folder)
    games, ended = load_chess(return_X_y=True)
    read = {f"chess, {name}": partial(Table, games[name], ended) for name in games.channels}
    read |= {name: partial(judged, data, name) for name in JUDGED}
    read |= {name: partial(stated, name) for name in STATED}
    read |= {name: partial(classified, data, name) for name in CLASSIFIERS}
    yield from at_hand(read)


def at_hand(sources: Mapping[str, Callable[[], Any]]) -> Iterator[tuple[str, Any]]:
    """Yield what the sources give that can be had, and name the others."""
    for name, source in sources.items():
        try:
            yield name, source()
        except (OSError, ImportError) as error:
            print(f"{name} is not at hand: {error}")


def ended_chess() -> tuple[TrajectoryArray, np.ndarray]:
    """Return the bundled games that came to their end."""
    X, y = load_chess(return_X_y=True)
    return X[y >= 0], y[y >= 0]


def judged(data: Data, name: str) -> Table:
    """What a judge says of each step."""
    return Table(*data.runs(name))


def stated(name: str) -> Table:
    """A set of values of the board, fetched."""
    X, y, group, _ = SOURCES[name](None, None)
    return Table(X, y, None if group is X.ids else np.asarray(group))


def classified(data: Data, name: str) -> Table:
    """One answer each: is the likeliest class right?"""
    log_p, y = data.answers(name)
    p = np.exp(log_p)
    X = TrajectoryArray(p.max(axis=1), np.ones(len(p), dtype=np.int64))
    return Table(X, (p.argmax(axis=1) == y).astype(int))


def base_rate(X: TrajectoryArray, y: np.ndarray) -> TrajectoryArray:
    """Return the best constant as a forecast: the success rate, with the weights of the steps."""
    return X.with_cells(np.full(X.cells.shape, as_step_weights().of(X).rate(y)))


def options(doc: str, commands: Sequence[str] = (), **numbers: Any) -> argparse.Namespace:
    """Read the command line: what is to be done, a folder of public data, numbers and flags.

    A list is an option of several values; `...` stands for values without an option, `Path` for a
    path that need not be given.
    """
    parser = argparse.ArgumentParser(
        description=doc, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    if commands:
        parser.add_argument("what", choices=commands)
    parser.add_argument("--data", type=Path, help="folder of public data; default: fetch")
    for name, value in numbers.items():
        option = f"--{name.replace('_', '-')}"
        if value is ...:
            parser.add_argument(name, nargs="+")
        elif value is False:
            parser.add_argument(option, action="store_true")
        elif isinstance(value, list):
            kind = type(value[0]) if value else str
            parser.add_argument(option, nargs="+", type=kind, default=value)
        elif value is Path:
            parser.add_argument(option, type=Path)
        else:
            parser.add_argument(option, type=type(value), default=value)
    return parser.parse_args()


def dispatch(doc: str, commands: Mapping[str, Callable[[Any], None]], **numbers: Any) -> None:
    args = options(doc, tuple(commands), **numbers)
    commands[args.what](args)


def over(function: Callable[..., Any], every: Iterable[Any], jobs: int = 2) -> list[Any]:
    """Call for each seed (or tuple of arguments), in processes."""
    calls = (one if isinstance(one, tuple) else (one,) for one in every)
    return Parallel(n_jobs=jobs)(delayed(function)(*one) for one in calls)


def covered(low: Any, high: Any, truth: Any) -> Any:
    return (low <= truth) & (truth <= high)


def coverage(low: Any, high: Any, truth: Any) -> float:
    """Share of the intervals that hold the truth."""
    return float(covered(low, high, truth).mean())


def plus_minus(values: Any) -> str:
    """Mean with the half-width of its 95% interval over splits or sets."""
    values = np.asarray(values, dtype=float)
    half = 1.96 * values.std(ddof=1) / np.sqrt(len(values))
    return f"{values.mean():.3f} +- {half:.3f}"


def show(title: str, rows: Any, digits: int = 3) -> None:
    """Print a table: a frame, or a dict of rows."""
    table = rows if isinstance(rows, pd.DataFrame) else pd.DataFrame.from_dict(rows, orient="index")
    text = table.round(digits).to_string(na_rep="")
    print(f"\n{title}\n{text}", flush=True)
