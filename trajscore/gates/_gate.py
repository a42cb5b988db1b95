"""Gates that a set of runs must hold; a TOML file may have several."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from enum import StrEnum, auto
from pathlib import Path
from typing import Any

from trajscore.core.values import (
    as_count,
    as_path,
    as_within,
    check_choice,
    is_number,
    parse_number,
    unknown_name,
)
from trajscore.evaluation.options import AS_GIVEN, RECALIBRATED
from trajscore.gates._metrics import OPTIONS, SUCCESS, is_fraction

BASELINE = "baseline"
COUNTS_AS = ("undecided", "pass", "fail")
"""What an undecided gate may count as."""


class Verdict(StrEnum):
    """What the bounds show of a gate; the worst first."""

    UNUSABLE = auto()
    FAIL = auto()
    UNDECIDED = auto()
    PASS = auto()


@dataclass(frozen=True)
class Gate:
    """One thing that must hold: a metric is no worse than something, but for a margin.

    Parameters
    ----------
    metric : str, default="success"
        "success", "pass^2" (3, ...), "length", "cost", "tokens" or what else the runs took; or, of
        a predictor, a metric of `trajscore.evaluate`, such as "TPS log", "TPS beta(2,4)", "S-ECE"
        or "AUROC", and its margin over the base rate, such as "TPS log margin".
    predictor : str, optional
        Whose forecasts are meant; may be left out where there is only one.
    form : {"as_given", "recalibrated"}, default="as_given"
        The forecasts as given, or recalibrated out of fold.
    versus : "baseline" or float, default="baseline"
        What the metric is held against: the same of the baseline, or a number.
    margin : float or str, default=0.0
        How much worse it may be, in the metric's unit; below 0, how much better it must be. As
        "10%", a share of what the baseline has.
    most : float, optional
        The most that a run can cost or take, such as its budget of dollars or steps. Left out, a
        run that no run showed is allowed to cost five times the mean.

    Examples
    --------
    >>> from trajscore.gates import Gate
    >>> print(Gate("success", margin=0.05))
    success no worse than the baseline by more than 0.05
    """

    metric: str = SUCCESS
    predictor: str | None = None
    form: str = AS_GIVEN
    versus: str | float = BASELINE
    margin: float | str = 0.0
    most: float | None = None

    def __post_init__(self) -> None:
        check_choice(self.form, "form", (AS_GIVEN, RECALIBRATED))
        for name in ("metric", "predictor"):
            value = getattr(self, name)
            if not isinstance(value, str) and (name == "metric" or value is not None):
                raise ValueError(f"{name} must be text, got {value!r}")
        if self.versus != BASELINE and not _is_finite(self.versus):
            raise ValueError(f"versus must be {BASELINE!r} or a number, got {self.versus!r}")
        if self.share is None and not _is_finite(self.margin):
            raise ValueError(f'margin must be a number, or such as "10%", got {self.margin!r}')
        if self.most is not None and not _is_finite(self.most):
            raise ValueError(f"most must be a number, got {self.most!r}")
        if is_fraction(self.metric):
            self._check_fraction()
        if self.share is not None and self.versus != BASELINE:
            raise ValueError(f"margin {self.margin!r} is a share of the baseline; give a number")

    def _check_fraction(self) -> None:
        """Refuse numbers that decide nothing about a metric in [0, 1]."""
        for name, least in (("margin", -1), ("versus", 0)):
            value = getattr(self, name)
            is_whole = name == "margin" and value in (-1, 1)
            if _is_finite(value) and (is_whole or not least <= value <= 1):
                text = f"{self.metric} lies in [0, 1], so {name} = {value:g} decides nothing"
                if value > 1:
                    text += f"; {value:g} of a hundred is {value / 100:g}"
                raise ValueError(text)
        if (self.share or 0) >= 1 and self.metric not in OPTIONS.lower_is_better:
            raise ValueError(
                f"{self.metric} is never below 0, so margin {self.margin!r} decides nothing"
            )

    @property
    def share(self) -> float | None:
        """The margin as a share of the baseline: 0.1 for "10%"; None where it is a number."""
        if isinstance(self.margin, str) and self.margin.endswith("%"):
            share = parse_number(self.margin)
            if _is_finite(share):
                return share
        return None

    @property
    def size(self) -> float:
        """The margin as a number, or a share of the baseline."""
        return float(self.margin) if self.share is None else self.share

    @property
    def name(self) -> str:
        """The metric, and whose it is."""
        if not self.predictor:
            return self.metric
        form = f", {self.form}" * (self.form != AS_GIVEN)
        return f"{self.metric} of {self.predictor}{form}"

    def __str__(self) -> str:
        other = "the baseline" if self.versus == BASELINE else f"{self.versus:g}"
        if self.size < 0:
            return f"{self.name} better than {other} by {str(self.margin).lstrip('-')}"
        by = f" by more than {self.margin}" * (self.size > 0)
        return f"{self.name} no worse than {other}{by}"


@dataclass(frozen=True)
class Rules:
    """All that `check` asks for; what a file of gates holds."""

    gates: tuple[Gate, ...]
    level: float = 0.05  # chance that any gate fails that holds, or passes that does not
    undecided: str = Verdict.UNDECIDED
    least_runs: int = 1  # with fewer, `check` raises

    def __post_init__(self) -> None:
        check_choice(self.undecided, "undecided", COUNTS_AS)
        as_within(self.level, "level", 0, 0.5)
        as_count(self.least_runs, "least_runs")


def read_gates(path: str | Path) -> Rules:
    """Read gates from a TOML file; a key that is not known is an error."""
    file = as_path(path, "rules")
    try:
        contents = tomllib.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise ValueError(f"{file} does not exist; give the path of a file of gates") from error
    except (ValueError, OSError, RecursionError) as error:
        raise ValueError(
            f"{file} is not a TOML file: {error}; a gate is a line [[gate]] and, below it, lines "
            f'such as metric = "success" and margin = 0.05'
        ) from error
    gates = contents.pop("gate", [])
    if not isinstance(gates, list) or not gates:
        raise ValueError(
            f"{file} has no gates; write a table for each: [[gate]], and "
            "below it lines such as metric = 'success'"
        )
    try:
        _refuse_unknown(contents, ["level", "undecided", "least_runs", "gate"])
        return Rules(tuple(_build(gate, n) for n, gate in enumerate(gates, start=1)), **contents)
    except ValueError as error:
        raise ValueError(f"{file}: {error}") from error


def _build(contents: Any, number: int) -> Gate:
    try:
        if not isinstance(contents, Mapping):
            raise ValueError(f"it must be a table, got {contents!r}")
        _refuse_unknown(contents, [parameter.name for parameter in fields(Gate)])
        return Gate(**contents)
    except ValueError as error:
        raise ValueError(f"gate {number}: {error}") from error


def _refuse_unknown(contents: Mapping[str, Any], names: list[str]) -> None:
    for key in contents:
        if key not in names:
            raise ValueError(unknown_name("key", key, names))


def _is_finite(value: Any) -> bool:
    # whole numbers may be too large for a float
    return is_number(value) and not isinstance(value, bool) and bool(-1e300 < value < 1e300)
