"""What came of gates, in numbers; `_written` gives them words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from trajscore.gates._change import Matching
from trajscore.gates._gate import FAIL, PASS, UNDECIDED, UNUSABLE, Gate, Rules
from trajscore.gates._run_set import RunSet

EXIT_CODES = {PASS: 0, FAIL: 1, UNUSABLE: 2, UNDECIDED: 3}
WORST_FIRST = (UNUSABLE, FAIL, UNDECIDED, PASS)


def worst(verdicts: Iterable[str], problems: Sequence[str]) -> str:
    """Return the worst verdict; where the data have problems, it is "unusable"."""
    known = {*verdicts, *[UNUSABLE] * bool(problems)}
    return next((verdict for verdict in WORST_FIRST if verdict in known), PASS)


@dataclass(frozen=True)
class GateResult:
    """What came of one gate.

    Attributes
    ----------
    gate : Gate
        The gate.
    verdict : {"pass", "fail", "undecided", "unusable"}
        What the bounds say.
    counts_as : str
        What it counts as: `verdict`, but for undecided gates that are to pass or to fail.
    value, reference, change : float
        The new set's number, what it is held against, and the difference.
    low, high : float
        Bounds of the change; each holds for all gates at once with a chance of 1 - level.
    runs_needed : float
        Runs of each set that would decide the gate with a chance of 0.8, if the change is what was
        seen; inf for more than a million, NaN where it is decided or cannot be said.
    why : str
        Why a gate is unusable.
    """

    gate: Gate
    verdict: str
    counts_as: str
    value: float = np.nan
    reference: float = np.nan
    change: float = np.nan
    low: float = np.nan
    high: float = np.nan
    runs_needed: float = np.nan
    why: str = ""


@dataclass(frozen=True)
class CheckData:
    """The numbers of a check; see `CheckResult`."""

    verdict: str
    gates: list[GateResult]
    problems: list[str]
    rules: Rules
    new: RunSet = field(repr=False)
    baseline: RunSet | None = field(repr=False)
    matched: Matching | None = field(repr=False)

    @property
    def passed(self) -> bool:
        """Whether all gates count as passed."""
        return self.verdict == PASS

    @property
    def exit_code(self) -> int:
        """0 pass, 1 fail, 2 unusable, 3 undecided."""
        return EXIT_CODES[self.verdict]
