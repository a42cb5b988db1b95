"""Tables, figures and constants: what is printed, how ours is made, and where the two differ."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.special import log_softmax

from trajscore import TrajectoryArray
from trajscore.datasets import fetch_evaluator, fetch_expected_cost

RUNS = {
    "id": "uq_problem_idx", "step": "num_steps", "value": "judge_probability", "outcome": "solved",
}  # fmt: skip
SCORE_SET = ("expected_cost/{}/scores.npy", "expected_cost/{}/targets.npy")
TABLE = "evaluator/{}_w_scores_compressed.csv.gz"
NOT_FETCHED = ("medqa",)


class Cell(NamedTuple):
    """One printed number, or a printed statement, and ours."""

    row: str
    column: str
    printed: str
    ours: float
    why: str = ""  # where they differ
    slack: float = 0.0  # what the rounding of printed numbers leaves open, if ours is made of them
    holds: bool | None = None  # of a statement: whether ours agrees

    @property
    def decimals(self) -> int:
        return len(self.printed.partition(".")[2])

    @property
    def difference(self) -> float:
        """Ours, as far as it is printed, minus what is printed; NaN for a statement."""
        if self.holds is not None:
            return math.nan
        return round(round(self.ours, self.decimals) - float(self.printed), self.decimals)

    @property
    def equal(self) -> bool:
        if self.holds is not None:
            return self.holds
        return self.difference == 0 or abs(self.ours - float(self.printed)) <= self.slack

    @property
    def status(self) -> str:
        return "equal" if self.equal else f"differs, because {self.why}"

    def shown(self) -> str:
        """Ours, with what is printed where that is another number."""
        number = f"{self.ours:.{self.decimals}f}" if self.holds is None else f"{self.ours:.3g}"
        if self.holds:
            return f"{number} ({self.printed})"
        return number if self.equal else f"**{number}** (printed: {self.printed})"


class Item(NamedTuple):
    """A table, a figure or a group of constants of a paper."""

    name: str
    what: str
    how: str = ""  # how ours is made, and the tests and benchmarks that run it
    missing: str = ""  # what is missing, of the whole or of the rest
    note: str = ""  # above the table of `instead`
    caption: str = ""  # of what it draws
    needs: Sequence[str] = ()  # public sets that may be absent from the folder
    printed: str = ""  # the table
    derived: Sequence[Mapping[str, Any]] = ()  # cells of two printed numbers
    cells: Sequence[Cell | Callable[[Data], Iterable[Cell]]] = ()
    instead: Callable[[Data], pd.DataFrame] | None = None  # the same on data that are public
    draw: Callable[[Data], Any] | None = None  # returns a figure

    def found(self, data: Data) -> list[Cell]:
        """Return the cells, but for those of data that are not there."""
        found = [derived(**one) for one in self.derived]
        for part in self.cells:
            with suppress(FileNotFoundError):
                found += [part] if isinstance(part, Cell) else list(part(data))
        return found


class Paper:
    """A paper and all of its items, as a TOML file beside this one says what they are."""

    def __init__(self, name: str) -> None:
        text = (Path(__file__).parent / f"{name}.toml").read_text(encoding="utf-8")
        read = tomllib.loads(text)
        self.title = read["title"]
        self._items = {one["name"]: Item(**one) for one in read["items"]}

    def __getitem__(self, name: str) -> Item:
        return self._items[name]

    @property
    def items(self) -> list[Item]:
        return list(self._items.values())

    def make(self, **how: Mapping[str, Any]) -> None:
        """Say of items how their cells, what is instead of them, or their figures are made."""
        for field, of_items in how.items():
            for name, made in of_items.items():
                self._items[name] = self[name]._replace(**{field: made})

    def rows(self, name: str) -> list[list[str]]:
        return [line.split() for line in self[name].printed.splitlines()]


class Data:
    """Public data in a folder, or fetched; a FileNotFoundError says what is not there.

    reproduce.py says what the folder holds; rates over splits are of so many random `splits`.
    """

    def __init__(self, folder: Path | None, splits: int = 50) -> None:
        self.folder, self.splits = folder, splits
        # each is read once
        self.answers, self.runs = cache(self._answers), cache(self._runs)

    def _answers(self, name: str) -> tuple[np.ndarray, np.ndarray]:
        """Log-probabilities and classes of a score set."""
        if self.folder is None:
            return fetch_expected_cost(name, return_X_y=True)
        scores, y = (np.load(self.folder / path.format(name)) for path in SCORE_SET)
        return log_softmax(scores.astype(np.float64), axis=1), y.ravel().astype(np.int64)

    def _runs(self, name: str) -> tuple[TrajectoryArray, np.ndarray]:
        """Return a verifier's scores and outcomes."""
        if self.folder is None and name in NOT_FETCHED:
            raise FileNotFoundError(name)
        if self.folder is None:
            return fetch_evaluator(name, return_X_y=True)
        return TrajectoryArray.from_frame(pd.read_csv(self.folder / TABLE.format(name)), **RUNS)

    def absent(self, names: Sequence[str]) -> list[str]:
        """Those of the public sets that are not there."""
        if self.folder is None:
            return [name for name in names if name in NOT_FETCHED]
        paths = (SCORE_SET[0], TABLE)
        return [n for n in names if not any((self.folder / p.format(n)).exists() for p in paths)]

    def logs(self, *names: str) -> list[Path]:
        """Those of the agent logs that are there."""
        paths = [self.folder / name for name in names] if self.folder else []
        return [path for path in paths if path.exists()]


def derived(of: str, **cell: Any) -> Cell:
    """Make a cell of two printed numbers, such as ``0.611 - 0.623``; ``%`` is for a percentage."""
    first, sign, second = of.split()
    a, b = float(first), float(second)
    return Cell(ours={"+": a + b, "-": a - b, "/": a / b, "%": 100 * a / b}[sign], **cell)


def at_least(row: str, column: str, bound: float, ours: float, why: str = "") -> Cell:
    """Make a cell of a printed statement, that a number is at least so large."""
    return Cell(row, column, f"at least {bound:g}", ours, why, holds=ours >= bound)


def at_most(row: str, column: str, bound: float, ours: float, why: str = "") -> Cell:
    """Make a cell of a printed statement, that a number is at most so large."""
    return Cell(row, column, f"at most {bound:g}", ours, why, holds=ours <= bound)
